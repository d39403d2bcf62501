"""The arguments of machine code: each is checked against its parameter, and becomes a number or an address.

Machine code trusts its arguments; a wrong one would crash the process or return nonsense. So every argument is checked
against the function's IR, and an error names what was expected and what was passed:

    argument 2 (%c): expected 4096 elements of float32, got float64 array of shape (64, 64)
"""

from __future__ import annotations

import ctypes
import math
import operator
import sys
from functools import cache
from typing import Any, Final, SupportsFloat, SupportsIndex, cast

import numpy as np

from tlx.api.signatures import CallParameter, Prototype
from tlx.diagnostics import TlxError, UsageError, counted
from tlx.intrinsics.numpy_types import Array, memory_dtype, small_float_of
from tlx.ir.abi import C_CALLABLE_CONVENTIONS, parse_attributes
from tlx.ir.prepared import BLOCK_ALIGN
from tlx.ir.types import BFLOAT, I8, VOID, FloatType, IntType, PointerType, Type, VectorType, exceeds_abi

_NOT_FROM_PYTHON: Final = ("inalloca", "preallocated", "swifterror")
_SAVING_ALL: Final = ("coldcc", "preserve_allcc")
_CALLEE_POPS: Final = ("tailcc", "swifttailcc")
_SEGMENTS: Final = 256  # the first address space that is a segment of x86, or has pointers of another size
_STACK: Final = 1 << 20
_BY_VALUE: Final[dict[str, Any]] = {
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}


# Bits of PyArray_FLAGS in numpy's C interface.
C_CONTIGUOUS: Final = 0x0001
ALIGNED: Final = 0x0100
WRITEABLE: Final = 0x0400


class ArgumentError(TlxError, TypeError):
    """An argument does not fit what the function takes."""


# In numpy's C interface an array is PyObject_HEAD and then `char *data`.
_DATA: Final = object.__basicsize__
_word_at: Final = ctypes.c_size_t.from_address
_probe: Final = np.zeros(3, np.uint8)[1:]
_IS_READABLE: Final = sys.implementation.name == "cpython" and _word_at(id(_probe) + _DATA).value == _probe.ctypes.data


def array_address(array: Array) -> int:
    """Address of an array's first element: `array.ctypes.data`, in a tenth of the time."""
    return _word_at(id(array) + _DATA).value if _IS_READABLE else array.ctypes.data


def aligned_array(shape: tuple[int, ...], dtype: np.dtype[Any], align: int = BLOCK_ALIGN) -> Array:
    """An array with undefined elements that begins at a multiple of `align` bytes.

    numpy aligns to 16 bytes, and large arrays begin 16 bytes into a page: each row of a tile, and each vector of 64
    bytes, would be in two cache lines.
    """
    memory = np.empty(math.prod(shape) * dtype.itemsize + align, np.uint8)
    return np.ndarray(shape, dtype, memory, -array_address(memory) % align)


def passed_by_value(type_: Type) -> bool:
    """Whether ctypes passes and returns the type like LLVM."""
    return str(type_) in _BY_VALUE or isinstance(type_, PointerType)


def passed_in_memory(type_: Type) -> bool:
    """Whether the type can be passed in memory, as a numpy array."""
    if isinstance(type_, VectorType):
        return not type_.scalable and memory_dtype(type_.element) is not None
    return memory_dtype(type_) is not None


FitCheck = tuple[frozenset[np.dtype[Any]] | None, int, int, int]
"""Element types (None: any), minimum bytes, flags and alignment of arrays that certainly fit a parameter."""

_NEVER: Final[FitCheck] = (None, 0, -1, 1)


def fit_check(parameter: CallParameter) -> FitCheck:
    """The properties of arrays that the fast path accepts; none fit parameters that are passed by value."""
    if not isinstance(parameter.type, PointerType):
        return _NEVER
    dtypes = None if parameter.element is None else _dtypes(parameter.element)
    if parameter.byval_bytes:
        return _NEVER
    flags = C_CONTIGUOUS | ALIGNED | (WRITEABLE if parameter.written else 0)
    return dtypes, _minimum_bytes(parameter), flags, parameter.align


def _minimum_bytes(parameter: CallParameter) -> int:
    """Minimum size of an array in bytes."""
    dtype = None if parameter.element is None else memory_dtype(parameter.element)
    accessed = (parameter.count or 0) * dtype.itemsize if dtype is not None else 0
    return max(accessed, parameter.size)


def checked_argument(index: int, parameter: CallParameter, value: Any) -> Any:
    """The argument as it is passed: a number, or an array whose address is passed.

    Args:
        index: Its number, for messages.
        parameter: What the function takes.
        value: What the caller passes.

    Raises:
        ArgumentError: It does not fit.
    """
    type_ = parameter.type
    if isinstance(type_, PointerType):
        return checked_array(index, parameter, value)
    if isinstance(type_, VectorType):
        return _vector(index, parameter, type_, value)
    if isinstance(type_, IntType):
        return _integer(index, parameter, type_, value)
    number = _float(index, parameter, value)
    return number if passed_by_value(type_) else np.array([number], dtype=memory_dtype(type_))


def checked_array(index: int, parameter: CallParameter, value: Any) -> Array:
    """The array that a pointer takes, or a copy where the function's memory has another alignment or size.

    Raises:
        ArgumentError: It does not fit.
    """
    array = as_array(value)
    if array is None:
        raise _error(index, parameter, f"{_expected(parameter)} in a numpy array", _described(value))
    if parameter.element is not None and not _same_element(array.dtype, parameter.element):
        raise _error(index, parameter, _expected(parameter), _described(array))
    if parameter.count is not None and parameter.element is not None and array.size < parameter.count:
        raise _error(index, parameter, _expected(parameter), _described(array))
    if array.nbytes < parameter.size:
        raise _error(index, parameter, f"an array of {parameter.size} bytes", f"{array.nbytes}: {_described(array)}")
    if not array.flags.c_contiguous:
        raise _error(index, parameter, "a C-contiguous array", f"{_described(array)} and strides {array.strides}")
    if parameter.written and not array.flags.writeable:
        raise _error(index, parameter, "a writable array, since the function stores to it", "a read-only one")
    if parameter.byval_bytes:
        return _copy(array, parameter.size, parameter)
    if not array.flags.aligned or array_address(array) % parameter.align:
        if parameter.is_result:
            return _copy(array, array.nbytes, parameter)
        align = max(parameter.align, array.dtype.alignment)
        raise _error(index, parameter, f"an array aligned to {counted(align, 'byte')}", "one that is not")
    return array


def _copy(array: Array, size: int, parameter: CallParameter) -> Array:
    """The first bytes of an array, aligned and padded like the type of a `byval` or `sret` parameter.

    Machine code assumes that such memory is aligned, while numpy guarantees 16 bytes at most. The callee's own copy of
    a `byval` argument includes its padding, and in preserve_nonecc LLVM makes no copy.
    """
    memory = np.zeros(max(size, parameter.byval_bytes) + parameter.align, np.uint8)
    start = -array_address(memory) % parameter.align
    copy = memory[start : start + max(size, parameter.byval_bytes)]
    copy[:size] = array_bytes(array)[:size]
    return copy


def array_bytes(array: Array) -> Array:
    """The memory of a contiguous array."""
    return np.asarray(array).reshape(-1).view(np.uint8)


def _vector(index: int, parameter: CallParameter, type_: VectorType, value: Any) -> Array:
    dtype = memory_dtype(type_.element)
    expected = f"{type_.count} elements of {dtype}"
    array = as_array(value)
    if array is None:
        try:
            array = np.array(value, dtype=dtype)
        except (TypeError, ValueError, OverflowError):
            raise _error(index, parameter, expected, _described(value)) from None
    if not _same_element(array.dtype, type_.element) or array.size != type_.count:
        raise _error(index, parameter, expected, _described(array))
    return np.require(np.ascontiguousarray(array), requirements="A")


def _integer(index: int, parameter: CallParameter, type_: IntType, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise _error(index, parameter, f"an integer for {type_}", _described(value)) from None
    if not -(1 << (type_.bits - 1)) <= number < 1 << type_.bits:
        raise _error(index, parameter, f"an integer of {counted(type_.bits, 'bit')}", str(number))
    return number


def _float(index: int, parameter: CallParameter, value: Any) -> float:
    if isinstance(value, SupportsFloat | SupportsIndex) and as_array(value) is None:
        return float(value)
    raise _error(index, parameter, f"a number for {parameter.type}", _described(value))


def _same_element(dtype: np.dtype[Any], element: Type) -> bool:
    """Whether an array's elements have the parameter's type, signed or unsigned."""
    dtypes = _dtypes(element)
    is_small = element == I8 and small_float_of(dtype) is not None
    return dtypes is None or dtype in dtypes or is_small or (element == BFLOAT and dtype.name == "bfloat16")


@cache
def _dtypes(element: Type) -> frozenset[np.dtype[Any]] | None:
    """The element types of arrays that match an LLVM scalar type; None if numpy has none."""
    dtype = memory_dtype(element)
    if dtype is None:
        return None
    if not isinstance(element, IntType):
        return frozenset({dtype})
    return frozenset(np.dtype(f"{kind}{dtype.itemsize}") for kind in ("iub" if dtype.itemsize == 1 else "iu"))


def _expected(parameter: CallParameter) -> str:
    if parameter.element is None:
        return "elements"
    name = "bfloat16" if str(parameter.element) == "bfloat" else memory_dtype(parameter.element)
    if parameter.count is None:
        return f"elements of {name}"
    return f"{counted(parameter.count, 'element')} of {name}"


def _described(value: object) -> str:
    array = as_array(value)
    if array is not None:
        return f"{array.dtype} array of shape {array.shape}"
    kind, shape = type(value), getattr(value, "shape", None)
    if isinstance(shape, tuple):  # an array of another library, whose text may be long
        return f"{kind.__module__}.{kind.__qualname__} of shape {tuple(cast('tuple[Any, ...]', shape))}"
    return f"{kind.__name__} {value!r}"[:80]


def as_array(value: object) -> Array | None:
    """The value if it is a numpy array, else None."""
    return cast("Array", value) if isinstance(value, np.ndarray) else None


def _error(index: int, parameter: CallParameter, expected: str, got: str) -> ArgumentError:
    return ArgumentError(f"argument {index} ({parameter.name}): expected {expected}, got {got}")


def empty_result(type_: Type) -> Array:
    """An array for a result of a type."""
    element, count = (type_.element, type_.count) if isinstance(type_, VectorType) else (type_, 1)
    return np.zeros(count, dtype=memory_dtype(element))


def ctype_of(type_: Type) -> Any:
    """The type that ctypes passes an argument as: a pointer where the value goes through memory."""
    return _BY_VALUE.get(str(type_), ctypes.c_void_p)


def result_ctype(type_: Type) -> Any:
    """The type that ctypes reads a result as; an i1 is a byte, of which only one bit is defined."""
    return ctypes.c_uint8 if str(type_) == "i1" else ctype_of(type_)


def unsupported_error(prototype: Prototype) -> UsageError | None:
    """Why the function cannot be called from numpy; None if it can."""
    reason = _reason(prototype)
    return None if reason is None else UsageError(f"@{prototype.name} {reason}", prototype.span)


def _miscompiled(prototype: Prototype) -> str | None:
    """The part of a signature for which LLVM violates the calling convention.

    Callers of tailcc corrupt the stack pointer where stack arguments are aligned to more than 8 bytes. Functions that
    save all registers for their callers restore even the result register.
    """
    result = prototype.result
    if prototype.convention in _SAVING_ALL and (isinstance(result, FloatType) or _is_in_registers(result)):
        return f"returns {result}"
    aligned = [p.name for p in prototype.parameters if p.byval_bytes or _is_in_registers(p.type)]
    return f"takes {aligned[0]} by value" if prototype.convention in _CALLEE_POPS and aligned else None


def _is_in_registers(type_: Type) -> bool:
    """Whether a type is a vector that is not lowered to a pointer."""
    return isinstance(type_, VectorType) and not exceeds_abi(type_)


def _reason(prototype: Prototype) -> str | None:
    if prototype.convention and prototype.convention not in C_CALLABLE_CONVENTIONS:
        return (
            f"has the calling convention {prototype.convention}, which Python cannot call; "
            "call it from a function of another convention"
        )
    if not prototype.preserves_registers:
        return "preserves no registers ('no_callee_saved_registers'), but Python relies on them; remove the attribute"
    for parameter in prototype.parameters:
        for attribute in parse_attributes(parameter.abi_attributes):
            if attribute.name in _NOT_FROM_PYTHON:
                return (
                    f"takes {parameter.name} by '{attribute.name}', which has no counterpart in Python; use a pointer"
                )
        if isinstance(parameter.type, PointerType) and parameter.type.addrspace >= _SEGMENTS:
            space = "in an address space that numpy arrays cannot be in; use addrspace(0)"
            return f"takes {parameter.type} {parameter.name}, {space}"
    if wrong := _miscompiled(prototype):
        convention = prototype.convention
        return f"{wrong} in {convention}, which LLVM (19 to 22) miscompiles; use a pointer or another convention"
    for type_ in (*(p.type for p in prototype.parameters), prototype.result):
        if type_ != VOID and not passed_by_value(type_) and not passed_in_memory(type_):
            return f"passes {type_} by value, which has no counterpart in numpy; use a pointer"
    stack = sum(p.byval_bytes + p.align for p in prototype.parameters if p.byval_bytes)
    if stack > _STACK:
        return f"takes {stack} bytes by value on the stack, but only {_STACK} certainly fit; use a pointer"
    return None
