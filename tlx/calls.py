"""Calling machine code with numpy arrays: what is passed is checked first.

Machine code trusts its arguments; a wrong one would crash the process or return nonsense. So every argument is compared
with what the function's IR says, and an error names both sides:

    argument 2 (%c): expected 4096 elements of float32, got float64 array of shape (64, 64)

Arguments that ctypes cannot pass (vectors, half, bfloat) go through memory: see `tlx.jit`.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from typing import Any, Final, SupportsFloat, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from tlx.diagnostics import TlxError, UsageError
from tlx.ir.types import VOID, FloatType, IntType, PointerType, Type, VectorType
from tlx.signatures import Parameter, Prototype

Array = NDArray[Any]

_INTEGERS: Final = {1: np.bool_, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_FLOATS: Final = {"half": np.float16, "float": np.float32, "double": np.float64}
_BY_VALUE: Final[dict[str, Any]] = {
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}


class ArgumentError(TlxError, TypeError):
    """An argument does not fit what the function takes."""


def by_value(type_: Type) -> bool:
    """Whether ctypes passes and returns the type as LLVM does."""
    return str(type_) in _BY_VALUE or isinstance(type_, PointerType)


def in_memory(type_: Type) -> bool:
    """Whether the type can go through memory as a numpy array."""
    return dtype_of(type_.element if isinstance(type_, VectorType) else type_) is not None


def dtype_of(type_: Type) -> np.dtype[Any] | None:
    """The numpy type of an LLVM scalar; None where there is none."""
    if isinstance(type_, IntType) and type_.bits in _INTEGERS:
        return np.dtype(_INTEGERS[type_.bits])
    if isinstance(type_, FloatType):
        if type_.name == "bfloat":
            return _bfloat()
        return np.dtype(_FLOATS[type_.name]) if type_.name in _FLOATS else None
    return None


class Call:
    """A function of a compiled module.

    Args:
        prototype: What it takes and returns.
        address: Where its code is.
        through_memory: Whether the code is a wrapper that takes pointers to what ctypes cannot pass.
        keep: Whatever must live as long as the code.
    """

    def __init__(self, prototype: Prototype, address: int, *, through_memory: bool, keep: object) -> None:
        self.prototype = prototype
        self._keep = keep
        self._result_in_memory = through_memory and not (prototype.result == VOID or by_value(prototype.result))
        types = [_ctype(p.type) for p in prototype.parameters]
        if self._result_in_memory:
            types.append(ctypes.c_void_p)
        restype = None if self._result_in_memory or prototype.result == VOID else _result_ctype(prototype.result)
        self._code = ctypes.CFUNCTYPE(restype, *types)(address)

    def __repr__(self) -> str:
        taken = ", ".join(f"{p.type} {p.name}" for p in self.prototype.parameters)
        return f"<compiled {self.prototype.result} @{self.prototype.name}({taken})>"

    def __call__(self, *arguments: Any) -> Any:
        """Call the function.

        Pointers take numpy arrays (C-contiguous, of the right element type and size), integers and floating-point
        numbers take numbers, vectors take arrays or sequences.

        Raises:
            ArgumentError: An argument does not fit.
        """
        parameters = self.prototype.parameters
        if len(arguments) != len(parameters):
            names = ", ".join(p.name for p in parameters)
            raise ArgumentError(
                f"@{self.prototype.name} takes {len(parameters)} arguments ({names}), got {len(arguments)}"
            )
        held = [_checked(i, p, a) for i, (p, a) in enumerate(zip(parameters, arguments, strict=True))]
        result = _empty(self.prototype.result) if self._result_in_memory else None
        passed = [_address(value) for value in held]
        if result is not None:
            passed.append(_address(result))
        returned = self._code(*passed)
        if result is not None:
            return result if isinstance(self.prototype.result, VectorType) else result[0]
        return bool(returned & 1) if str(self.prototype.result) == "i1" else returned

    @property
    def code(self) -> Any:
        """What ctypes calls: the machine code."""
        return self._code

    def unchecked(self, *passed: Any) -> Any:
        """Call the function with what its code takes: numbers and addresses. Nothing is checked."""
        return self._code(*passed)


def _checked(index: int, parameter: Parameter, value: Any) -> Any:
    """The argument in the form it is passed in."""
    type_ = parameter.type
    if isinstance(type_, PointerType):
        return _pointer(index, parameter, value)
    if isinstance(type_, VectorType):
        return _vector(index, parameter, type_, value)
    if isinstance(type_, IntType):
        return _integer(index, parameter, type_, value)
    number = _float(index, parameter, value)
    return number if by_value(type_) else np.array([number], dtype=dtype_of(type_))


def _pointer(index: int, parameter: Parameter, value: Any) -> Array:
    array = _array(value)
    if array is None:
        raise _error(index, parameter, f"{_expected(parameter)} in a numpy array", _described(value))
    if parameter.element is not None and not _same(array.dtype, parameter.element):
        raise _error(index, parameter, _expected(parameter), _described(array))
    if parameter.count is not None and parameter.element is not None and array.size < parameter.count:
        raise _error(index, parameter, _expected(parameter), _described(array))
    if not array.flags.c_contiguous:
        raise _error(index, parameter, "a C-contiguous array", f"{_described(array)} and strides {array.strides}")
    if not array.flags.aligned or array.ctypes.data % parameter.align:
        raise _error(index, parameter, f"an array aligned to {parameter.align} bytes", "one that is not")
    if parameter.written and not array.flags.writeable:
        raise _error(
            index, parameter, "an array that can be written, since the function stores to it", "a read-only one"
        )
    return array


def _vector(index: int, parameter: Parameter, type_: VectorType, value: Any) -> Array:
    dtype = dtype_of(type_.element)
    expected = f"{type_.count} elements of {dtype}"
    array = _array(value)
    if array is None:
        try:
            array = np.array(value, dtype=dtype)
        except (TypeError, ValueError, OverflowError):
            raise _error(index, parameter, expected, _described(value)) from None
    if not _same(array.dtype, type_.element) or array.size != type_.count:
        raise _error(index, parameter, expected, _described(array))
    return np.ascontiguousarray(array)


def _integer(index: int, parameter: Parameter, type_: IntType, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise _error(index, parameter, f"an integer for {type_}", _described(value)) from None
    if not -(1 << (type_.bits - 1)) <= number < 1 << type_.bits:
        raise _error(index, parameter, f"an integer of {type_.bits} bits", str(number))
    return number


def _float(index: int, parameter: Parameter, value: Any) -> float:
    if isinstance(value, SupportsFloat | SupportsIndex) and _array(value) is None:
        return float(value)
    raise _error(index, parameter, f"a number for {parameter.type}", _described(value))


def _same(dtype: np.dtype[Any], element: Type) -> bool:
    """Whether an array's elements are the parameter's, whatever the sign."""
    wanted = dtype_of(element)
    if wanted is None or dtype == wanted:
        return True
    if isinstance(element, IntType):
        return dtype.kind in "iub" and dtype.itemsize == wanted.itemsize
    return str(element) == "bfloat" and dtype.name == "bfloat16"


def _expected(parameter: Parameter) -> str:
    if parameter.element is None:
        return "elements"
    name = "bfloat16" if str(parameter.element) == "bfloat" else dtype_of(parameter.element)
    if parameter.count is None:
        return f"elements of {name}"
    return f"{parameter.count} element{'s' if parameter.count != 1 else ''} of {name}"


def _described(value: object) -> str:
    array = _array(value)
    if array is not None:
        return f"{array.dtype} array of shape {array.shape}"
    return f"{type(value).__name__} {value!r}"[:80]


def _array(value: object) -> Array | None:
    return cast("Array", value) if isinstance(value, np.ndarray) else None


def _error(index: int, parameter: Parameter, expected: str, got: str) -> ArgumentError:
    return ArgumentError(f"argument {index} ({parameter.name}): expected {expected}, got {got}")


def _empty(type_: Type) -> Array:
    element, count = (type_.element, type_.count) if isinstance(type_, VectorType) else (type_, 1)
    return np.zeros(count, dtype=dtype_of(element))


def _address(value: Any) -> Any:
    return value.ctypes.data if isinstance(value, np.ndarray) else value


def _ctype(type_: Type) -> Any:
    return _BY_VALUE.get(str(type_), ctypes.c_void_p)


def _result_ctype(type_: Type) -> Any:
    return ctypes.c_uint8 if str(type_) == "i1" else _ctype(type_)


def _bfloat() -> np.dtype[Any]:
    """bfloat16 of ml_dtypes; its bits as numpy's uint16 where that is not installed."""
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint16)
    return np.dtype(ml_dtypes.bfloat16)


def unsupported(prototype: Prototype) -> UsageError | None:
    """Why the function cannot be called from numpy; None if it can."""
    types: Sequence[Type] = [*(p.type for p in prototype.parameters), prototype.result]
    for type_ in types:
        if type_ != VOID and not by_value(type_) and not in_memory(type_):
            return UsageError(
                f"@{prototype.name} passes {type_} by value, which numpy has no counterpart of; use a pointer"
            )
    return None
