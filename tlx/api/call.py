"""Calling machine code with numpy arrays: the arguments are checked first.

Machine code trusts its arguments; a wrong one would crash the process or return nonsense. So every argument is checked
against the function's IR, and an error names what was expected and what was passed:

    argument 2 (%c): expected 4096 elements of float32, got float64 array of shape (64, 64)

Arguments that ctypes cannot pass (vectors, half, bfloat) go through memory: see `tlx.api.compiler`.
"""

from __future__ import annotations

import ctypes
import math
import operator
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Any, Final, SupportsFloat, SupportsIndex, cast

import numpy as np

from tlx.api.signatures import Parameter, Prototype
from tlx.diagnostics import TlxError, UsageError, counted
from tlx.intrinsics.numpy_types import Array, memory_dtype, small_float_of
from tlx.ir.abi import C_CALLABLE_CONVENTIONS, parse_attributes
from tlx.ir.prepared import BLOCK_ALIGN, CONSTANT
from tlx.ir.types import BFLOAT, I1, I8, VOID, FloatType, IntType, PointerType, Type, VectorType, exceeds_abi

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


class CompiledFunction:
    """A function of a compiled module.

    The checks of its parameters are prepared when it is created.

    Args:
        prototype: Its parameters and result.
        address: Address of its code.
        through_memory: Whether the code is a wrapper that takes pointers to values that ctypes cannot pass.
        owner: An object that must live as long as the code.
        workspace: Bytes of workspace that the code takes as its last argument.
    """

    def __init__(
        self, prototype: Prototype, address: int, *, through_memory: bool, owner: object, workspace: int = 0
    ) -> None:
        self.prototype = prototype
        self._keep = owner
        self._workspace = workspace
        self._result_in_memory = through_memory and not (prototype.result == VOID or passed_by_value(prototype.result))
        self._returns_truth = prototype.result == I1
        self._count = len(prototype.parameters)
        self._fit_checks = [_fit_check(parameter) for parameter in prototype.parameters]
        types = [_ctype(p.type) for p in prototype.parameters]
        if workspace:
            types.append(ctypes.c_void_p)
        if self._result_in_memory:
            types.append(ctypes.c_void_p)
        restype = None if self._result_in_memory or prototype.result == VOID else _result_ctype(prototype.result)
        self._code = ctypes.CFUNCTYPE(restype, *types)(address)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{p.type} {p.name}" for p in self.prototype.parameters)
        return f"<compiled {self.prototype.result} @{self.prototype.name}({parameters})>"

    def __call__(self, *arguments: Any) -> Any:
        """Call the function.

        Pointers take numpy arrays (C-contiguous, of the right element type and size), integers and floating-point
        numbers take numbers, vectors take arrays or sequences.

        Raises:
            ArgumentError: An argument does not fit.
        """
        if len(arguments) != self._count:
            raise self._count_error(len(arguments))
        passed: list[Any] = []
        result_copies: list[tuple[Array, Array]] = []
        for value, (dtypes, size, flags, align) in zip(arguments, self._fit_checks, strict=True):
            if (
                type(value) is np.ndarray
                and value.flags.num & flags == flags
                and value.nbytes >= size
                and (dtypes is None or value.dtype in dtypes)
            ):
                address = array_address(value)
                if not address % align:
                    passed.append(address)
                    continue
            parameter = self.prototype.parameters[len(passed)]
            checked = checked_argument(len(passed), parameter, value)
            array = _array(checked)
            if array is not None and array is not value and parameter.is_result:
                result_copies.append((value, array))
            passed.append(checked if array is None else array.ctypes)  # keeps the array alive
        workspace = _acquire_workspace(self._workspace) if self._workspace else None
        if workspace is not None:
            passed.append(array_address(workspace))
        returned = self._call_with_result_array(passed) if self._result_in_memory else self._code(*passed)
        if workspace is not None:
            _thread.workspace = workspace
        for array, copy in result_copies:
            _bytes(array)[:] = copy[: array.nbytes]
        return bool(returned & 1) if self._returns_truth else returned

    def _call_with_result_array(self, passed: list[Any]) -> Any:
        """Call the code with an array for its result."""
        type_ = self.prototype.result
        result = empty_result(type_)
        self._code(*passed, array_address(result))
        return result if isinstance(type_, VectorType) else result[0]

    def _count_error(self, count: int) -> ArgumentError:
        names = ", ".join(p.name for p in self.prototype.parameters)
        return ArgumentError(f"@{self.prototype.name} takes {counted(self._count, 'argument')} ({names}), got {count}")

    def prepare(self, *arrays: Any, **named: Any) -> PreparedFunction:
        """The function with prepared arguments; see `tlx.api.prepare.PreparableFunction.prepare`.

        Raises:
            ArgumentError: The function has no arguments that are constant over calls.
        """
        given = len(arrays) + len(named)
        message = f"@{self.prototype.name} has no argument with the attribute {CONSTANT}, and got {given} to prepare"
        raise ArgumentError(f"{message}: call it without prepare")

    def call_prepared(self, *arguments: Any) -> Any:
        """Call the function with all arguments; those that are constant over calls are prepared first.

        Raises:
            ArgumentError: An argument does not fit.
        """
        return self(*arguments)

    @property
    def code(self) -> Any:
        """What ctypes calls: the machine code."""
        return self._code

    def unchecked(self, *passed: Any) -> Any:
        """Call the code with numbers, addresses and a workspace. Nothing is checked."""
        return self._code(*passed)


@dataclass(frozen=True, slots=True)
class Preparation:
    """The code that prepares a function's constant arguments.

    Attributes:
        address: Address of the code.
        numbers: The arguments.
        sizes: Bytes of their blocks.
    """

    address: int
    numbers: tuple[int, ...]
    sizes: tuple[int, ...]


class PreparableFunction(CompiledFunction):
    """A function with arguments that are constant over calls: `prepare` packs them.

    Args:
        prototype, address, through_memory, owner, workspace: As for other functions.
        preparation: The code that packs the constant arguments.
    """

    def __init__(
        self,
        prototype: Prototype,
        address: int,
        *,
        through_memory: bool,
        owner: object,
        workspace: int,
        preparation: Preparation,
    ) -> None:
        super().__init__(prototype, address, through_memory=through_memory, owner=owner, workspace=workspace)
        self._preparation = preparation
        sizes = dict(zip(preparation.numbers, preparation.sizes, strict=True))
        parameters = tuple(
            Parameter(p.name, p.type, size=sizes[n], align=BLOCK_ALIGN) if n in sizes else p
            for n, p in enumerate(prototype.parameters)
        )
        self._on_blocks = CompiledFunction(
            replace(prototype, parameters=parameters),
            address,
            through_memory=through_memory,
            owner=owner,
            workspace=workspace,
        )
        self._prepare = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (2 * len(sizes)))(preparation.address)

    def __call__(self, *arguments: Any) -> Any:
        """Refuse the call: the function takes prepared blocks.

        Raises:
            ArgumentError: Always.
        """
        names = [p.name.removeprefix("%") for p in self._constant]
        others = [p.name.removeprefix("%") for p in self.prototype.parameters if p not in self._constant]
        name = self.prototype.name
        message = f"@{name} has arguments that are constant over calls, and {len(arguments)} arrays were passed"
        example = f"prepared = {name}.prepare({', '.join(names)}); prepared({', '.join(others)})"
        raise ArgumentError(f"{message}: prepare them once, and call the result: {example}")

    def prepare(self, *arrays: Any, **named: Any) -> PreparedFunction:
        """The function of its other arguments, with its constant arguments packed.

        Args:
            *arrays: The constant arguments, in order.
            **named: The same by their names in the IR.

        Raises:
            ArgumentError: An array is missing or does not fit.
        """
        return PreparedFunction(self, self._by_number(arrays, named))

    @property
    def _constant(self) -> list[Parameter]:
        return [self.prototype.parameters[number] for number in self._preparation.numbers]

    def _by_number(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Array]:
        """The constant arguments in order, checked."""
        parameters = self._constant
        names = [p.name.removeprefix("%") for p in parameters]
        listed = ", ".join(names)
        given = dict(zip(names, arrays, strict=False))
        wrong = [name for name in named if name not in names or name in given]
        given |= named
        if wrong or len(arrays) > len(names) or len(given) < len(names):
            got = ", ".join([*[f"{len(arrays)} by position"] * bool(arrays), *named]) or "none"
            raise ArgumentError(
                f"@{self.prototype.name}.prepare takes {counted(len(names), 'array')} ({listed}), got {got}"
            )
        return [
            _pointer(number, parameter, given[name])
            for number, parameter, name in zip(self._preparation.numbers, parameters, names, strict=True)
        ]

    def pack(self, blocks: Sequence[Array], arrays: Sequence[Array]) -> None:
        """Fill the blocks from the arrays. Nothing is checked."""
        pairs = zip(blocks, arrays, strict=True)
        self._prepare(*(array_address(array) for pair in pairs for array in pair))

    def call_prepared(self, *arguments: Any) -> Any:
        """Prepare the constant arguments, and call the function with the others.

        Raises:
            ArgumentError: An argument does not fit.
        """
        if len(arguments) != self._count:
            raise self._count_error(len(arguments))
        constant = [arguments[number] for number in self._preparation.numbers]
        others = [value for n, value in enumerate(arguments) if n not in self._preparation.numbers]
        return self.prepare(*constant)(*others)

    def call_on_blocks(self, blocks: Sequence[Array], arguments: Sequence[Any]) -> Any:
        """Call the code with blocks in place of the constant arguments."""
        numbers = self._preparation.numbers
        if len(arguments) + len(numbers) != self._count:
            others = [p.name for n, p in enumerate(self.prototype.parameters) if n not in numbers]
            takes = f"takes {counted(len(others), 'argument')} ({', '.join(others)})"
            message = f"@{self.prototype.name}, prepared, {takes}"
            raise ArgumentError(f"{message}, got {len(arguments)}")
        passed = list(arguments)
        for number, block in zip(numbers, blocks, strict=True):
            passed.insert(number, block)
        return self._on_blocks(*passed)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Bytes of the blocks of its constant arguments."""
        return self._preparation.sizes


class PreparedFunction:
    """A function whose constant arguments are packed: it is called with the others.

    Args:
        function: The function.
        arrays: Its constant arguments. They are kept, since the function may read them besides the packed form.
    """

    def __init__(self, function: PreparableFunction, arrays: Sequence[Array]) -> None:
        self._function, self._arrays = function, tuple(arrays)
        self._blocks = _aligned_blocks(function.block_sizes)
        self.prepare()

    @property
    def blocks(self) -> tuple[Array, ...]:
        """The prepared blocks that the code takes in place of the constant arguments, in their order."""
        return tuple(self._blocks)

    def __repr__(self) -> str:
        return f"<prepared {repr(self._function).removeprefix('<')}"

    def prepare(self) -> None:
        """Pack the constant arguments again, after their arrays have changed. No call may run meanwhile."""
        self._function.pack(self._blocks, self._arrays)

    @property
    def packed_bytes(self) -> int:
        """Bytes of packed arguments."""
        return sum(block.nbytes for block in self._blocks)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function with the arguments that are not constant.

        Raises:
            ArgumentError: An argument does not fit.
        """
        return self._function.call_on_blocks(self._blocks, arguments)


_HUGE_PAGE: Final = 2 << 20
_LEAST_HUGE: Final = 4 << 20
"""Bytes of arrays for which numpy requests huge pages, at least."""


def _aligned_blocks(sizes: Sequence[int]) -> list[Array]:
    """Memory of blocks, one after the other in one array, which consists of huge pages if it is large.

    With fewer misses of the TLB, and longer streams for hardware prefetchers than with an array for each block, twelve
    blocks of a transformer of one row take 19.9 ms instead of 21.2 (f32), those of 128 rows of bfloat 29.9 instead of
    31.3. Separately prepared layers of 128x3072x768 bfloats take 0.58 to 0.61 ms each where their arrays begin at huge
    pages, and 0.62 to 0.70 where they do not (one core of a Xeon 6/167/1, 2026-11-30); on a Xeon 6/207/2, 0.57 in
    either case, and 512x3072x768 1.57 instead of 1.66.
    """
    *starts, end = accumulate((-(-size // BLOCK_ALIGN) * BLOCK_ALIGN for size in sizes), initial=0)
    align = _HUGE_PAGE if end >= _LEAST_HUGE else BLOCK_ALIGN
    memory = aligned_array((-(-end // align) * align,), np.dtype(np.uint8), align)
    return [memory[start : start + size] for start, size in zip(starts, sizes, strict=True)]


_thread: Final = threading.local()


def _acquire_workspace(size: int) -> Array:
    """At least `size` bytes: the thread's workspace, which a call takes and puts back, or new memory."""
    memory: Array | None = _thread.__dict__.pop("workspace", None)
    return memory if memory is not None and memory.nbytes >= size else np.empty(size, np.uint8)


_FitCheck = tuple[frozenset[np.dtype[Any]] | None, int, int, int]
"""Element types (None: any), minimum bytes, flags and alignment of arrays that certainly fit a parameter."""

_NEVER: Final[_FitCheck] = (None, 0, -1, 1)


def _fit_check(parameter: Parameter) -> _FitCheck:
    """The properties of arrays that the fast path accepts; none fit parameters that are passed by value."""
    if not isinstance(parameter.type, PointerType):
        return _NEVER
    dtypes = None if parameter.element is None else _dtypes(parameter.element)
    if parameter.byval_bytes:
        return _NEVER
    flags = C_CONTIGUOUS | ALIGNED | (WRITEABLE if parameter.written else 0)
    return dtypes, _minimum_bytes(parameter), flags, parameter.align


def _minimum_bytes(parameter: Parameter) -> int:
    """Minimum size of an array in bytes."""
    dtype = None if parameter.element is None else memory_dtype(parameter.element)
    accessed = (parameter.count or 0) * dtype.itemsize if dtype is not None else 0
    return max(accessed, parameter.size)


def checked_argument(index: int, parameter: Parameter, value: Any) -> Any:
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
        return _pointer(index, parameter, value)
    if isinstance(type_, VectorType):
        return _vector(index, parameter, type_, value)
    if isinstance(type_, IntType):
        return _integer(index, parameter, type_, value)
    number = _float(index, parameter, value)
    return number if passed_by_value(type_) else np.array([number], dtype=memory_dtype(type_))


def _pointer(index: int, parameter: Parameter, value: Any) -> Array:
    array = _array(value)
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
        raise _error(index, parameter, f"an array aligned to {parameter.align} bytes", "one that is not")
    return array


def _copy(array: Array, size: int, parameter: Parameter) -> Array:
    """The first bytes of an array, aligned and padded like the type of a `byval` or `sret` parameter.

    Machine code assumes that such memory is aligned, while numpy guarantees 16 bytes at most. The callee's own copy of
    a `byval` argument includes its padding, and in preserve_nonecc LLVM makes no copy.
    """
    memory = np.zeros(max(size, parameter.byval_bytes) + parameter.align, np.uint8)
    start = -array_address(memory) % parameter.align
    copy = memory[start : start + max(size, parameter.byval_bytes)]
    copy[:size] = _bytes(array)[:size]
    return copy


def _bytes(array: Array) -> Array:
    """The memory of a contiguous array."""
    return np.asarray(array).reshape(-1).view(np.uint8)


def _vector(index: int, parameter: Parameter, type_: VectorType, value: Any) -> Array:
    dtype = memory_dtype(type_.element)
    expected = f"{type_.count} elements of {dtype}"
    array = _array(value)
    if array is None:
        try:
            array = np.array(value, dtype=dtype)
        except (TypeError, ValueError, OverflowError):
            raise _error(index, parameter, expected, _described(value)) from None
    if not _same_element(array.dtype, type_.element) or array.size != type_.count:
        raise _error(index, parameter, expected, _described(array))
    return np.require(np.ascontiguousarray(array), requirements="A")


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


def _expected(parameter: Parameter) -> str:
    if parameter.element is None:
        return "elements"
    name = "bfloat16" if str(parameter.element) == "bfloat" else memory_dtype(parameter.element)
    if parameter.count is None:
        return f"elements of {name}"
    return f"{counted(parameter.count, 'element')} of {name}"


def _described(value: object) -> str:
    array = _array(value)
    if array is not None:
        return f"{array.dtype} array of shape {array.shape}"
    kind, shape = type(value), getattr(value, "shape", None)
    if isinstance(shape, tuple):  # an array of another library, whose text may be long
        return f"{kind.__module__}.{kind.__qualname__} of shape {tuple(cast('tuple[Any, ...]', shape))}"
    return f"{kind.__name__} {value!r}"[:80]


def _array(value: object) -> Array | None:
    return cast("Array", value) if isinstance(value, np.ndarray) else None


def _error(index: int, parameter: Parameter, expected: str, got: str) -> ArgumentError:
    return ArgumentError(f"argument {index} ({parameter.name}): expected {expected}, got {got}")


def empty_result(type_: Type) -> Array:
    """An array for a result of a type."""
    element, count = (type_.element, type_.count) if isinstance(type_, VectorType) else (type_, 1)
    return np.zeros(count, dtype=memory_dtype(element))


def _ctype(type_: Type) -> Any:
    return _BY_VALUE.get(str(type_), ctypes.c_void_p)


def _result_ctype(type_: Type) -> Any:
    return ctypes.c_uint8 if str(type_) == "i1" else _ctype(type_)


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
