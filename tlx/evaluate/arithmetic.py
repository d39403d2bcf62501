"""Arithmetic, comparisons and conversions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import FunctionScope, Step
from tlx.evaluate.values import (
    BFLOAT16,
    Codecs,
    RuntimeValue,
    element_dtype,
    from_integers,
    is_native,
    scalar,
    signed,
    signed_array,
    to_float,
    vector,
    width_of,
    wrapped,
)
from tlx.intrinsics.numpy_types import Array
from tlx.ir.instructions import Instruction
from tlx.ir.types import FloatType, IntType, PointerType, Type, VectorType, scalar_of

Cast = Callable[[RuntimeValue], RuntimeValue]


def cast(scope: FunctionScope, instruction: Instruction) -> Step:
    """Any cast instruction."""
    (a,) = scope.slots(instruction)
    out = scope.result(instruction)
    function = cast_function(instruction.opcode, instruction.operands[0].type, instruction.type, scope.context.codecs)

    def step(frame: list[RuntimeValue]) -> None:
        frame[out] = function(frame[a])

    return step


def cast_function(opcode: str, source: Type, to: Type, codecs: Codecs) -> Cast:
    """The function of a cast opcode between two types."""
    if opcode in ("bitcast", "addrspacecast"):
        return _bitcast(source, to, codecs)
    if opcode in ("trunc", "zext", "ptrtoint", "ptrtoaddr", "inttoptr"):
        return _resize(source, to)
    if opcode == "sext":
        return _sign_extend(source, to)
    function = _array_cast(opcode, scalar_of(source), scalar_of(to))
    if isinstance(source, VectorType):
        return function
    element = scalar_of(source)
    return lambda value: scalar(function(vector([value], element))[0], to)


def _bitcast(source: Type, to: Type, codecs: Codecs) -> Cast:
    if source == to or (isinstance(source, PointerType) and isinstance(to, PointerType)):
        return lambda value: value
    if isinstance(source, VectorType) and source.scalable:
        dtype = element_dtype(scalar_of(to))
        return lambda value: value.view(dtype)
    return codecs.bitcast(source, to)


def _resize(source: Type, to: Type) -> Cast:
    """Keep the low bits, or add zeros."""
    if isinstance(source, VectorType):
        element = scalar_of(to)
        return lambda value: wrapped(value, element)
    mask = (1 << width_of(to)) - 1
    return lambda value: value & mask


def _sign_extend(source: Type, to: Type) -> Cast:
    bits = width_of(source)
    if isinstance(source, VectorType):
        element = scalar_of(to)
        return lambda value: wrapped(signed_array(value, bits).astype(_signed_wide(element)), element)
    mask = (1 << width_of(to)) - 1
    return lambda value: signed(value, bits) & mask


def _signed_wide(element: Type) -> str:
    return "object" if width_of(element) > 64 else "int64"


def _array_cast(opcode: str, source: Type, to: Type) -> Callable[[Array], Array]:
    """Casts from or to floating point, on arrays."""
    if opcode in ("fptrunc", "fpext"):
        return lambda value: to_float(value, element_dtype(to))
    if opcode == "uitofp":
        return lambda value: from_integers(value, element_dtype(to))
    if opcode == "sitofp":
        return lambda value: from_integers(signed_array(value, width_of(source)), element_dtype(to))
    if opcode in ("fptoui", "fptosi"):
        return lambda value: to_integers(value, to)
    raise EvaluationError(f"the evaluator does not support the cast '{opcode}'")


def to_integers(numbers: Array, to: Type) -> Array:
    """Floating-point numbers truncated to integers; numbers out of range give unspecified bits."""
    if width_of(to) > 64:
        return wrapped(np.array([_truncated(float(n)) for n in numbers], object), to)
    wide = numbers.astype(np.float64)
    high = wide >= 2.0**63
    low = np.where(high, 0.0, wide).astype(np.int64).view(np.uint64)
    whole = np.where(high, np.where(high, wide, 0.0).astype(np.uint64), low)
    return wrapped(whole, to)


def _truncated(number: float) -> int:
    return int(number) if np.isfinite(number) else -1


def saturated(numbers: Array, to: IntType, *, is_signed: bool) -> Array:
    """`llvm.fptosi.sat` and `llvm.fptoui.sat`: clamp to the integer's range, NaN gives 0."""
    bits = to.bits
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    clamped = [_clamp(float(n), low, high) for n in numbers]
    return wrapped(np.array([n & ((1 << bits) - 1) for n in clamped], element_dtype(to)), to)


def _clamp(number: float, low: int, high: int) -> int:
    if np.isnan(number):
        return 0
    if np.isinf(number):
        return high if number > 0 else low
    return min(max(int(number), low), high)


_Binary = Callable[[RuntimeValue, RuntimeValue], RuntimeValue]

# Integers ------------------------------------------------------------------------------------------------------------


def _divided(a: int, b: int) -> int:
    """Quotient truncated towards zero."""
    if b == 0:
        raise EvaluationError("division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    return a - b * _divided(a, b)


def _signed_quotient(a: int, b: int, bits: int) -> int:
    a, b = signed(a, bits), signed(b, bits)
    if b == -1 and a == -1 << (bits - 1):
        raise EvaluationError(f"signed division overflows: {a} / -1 in i{bits}")
    return _divided(a, b)


def _signed_remainder(a: int, b: int, bits: int) -> int:
    return signed(a, bits) - signed(b, bits) * _signed_quotient(a, b, bits)


def _shift_right(a: int, b: int, bits: int) -> int:
    return a >> b if b < bits else (1 << bits) - 1


def _shift_left(a: int, b: int, bits: int) -> int:
    return a << b if b < bits else (1 << bits) - 1


def _arithmetic_shift(a: int, b: int, bits: int) -> int:
    return signed(a, bits) >> b if b < bits else (1 << bits) - 1


_SIMPLE: Final[dict[str, _Binary]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "udiv": _divided,
    "urem": _remainder,
}
_SIZED: Final[dict[str, Callable[[int, int, int], int]]] = {
    "sdiv": _signed_quotient,
    "srem": _signed_remainder,
    "shl": _shift_left,
    "lshr": _shift_right,
    "ashr": _arithmetic_shift,
}


def _scalar_integer(opcode: str, bits: int) -> _Binary:
    mask = (1 << bits) - 1
    if opcode in ("and", "or", "xor", "udiv", "urem"):
        return _SIMPLE[opcode]
    if opcode in _SIMPLE:
        plain = _SIMPLE[opcode]
        return lambda a, b: plain(a, b) & mask
    sized = _SIZED[opcode]
    return lambda a, b: sized(a, b, bits) & mask


def _vector_integer(opcode: str, type_: Type) -> _Binary:
    scalar = _scalar_integer(opcode, width_of(type_))
    fast = _FAST.get(opcode)
    if fast is not None and is_native(type_):
        return fast
    if opcode in ("and", "or", "xor"):
        return _SIMPLE[opcode]

    def each(a: Array, b: Array) -> Array:
        return np.array([scalar(int(x), int(y)) for x, y in zip(a, b, strict=True)], element_dtype(type_))

    return each


def _vector_udiv(a: Array, b: Array) -> Array:
    if not b.all():
        raise EvaluationError("division by zero")
    return a // b


def _vector_urem(a: Array, b: Array) -> Array:
    if not b.all():
        raise EvaluationError("division by zero")
    return a % b


def _shift(shift: Callable[[Array, Array], Array]) -> _Binary:
    """A vector shift; amounts of the width or more give undefined bits."""

    def shifted(a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        result = shift(a, np.minimum(b, bits - 1))
        return np.where(b < bits, result, np.iinfo(a.dtype).max).astype(a.dtype, copy=False)

    return shifted


_FAST: Final[dict[str, _Binary]] = {
    **{name: _SIMPLE[name] for name in ("add", "sub", "mul", "and", "or", "xor")},
    "udiv": _vector_udiv,
    "urem": _vector_urem,
    "shl": _shift(np.left_shift),
    "lshr": _shift(np.right_shift),
    "ashr": _shift(
        lambda a, b: (signed_array(a, 8 * a.dtype.itemsize) >> b.astype(np.int64).astype(f"i{a.dtype.itemsize}")).view(
            a.dtype
        )
    ),
}

# Floating point ------------------------------------------------------------------------------------------------------

_FLOAT: Final[dict[str, _Binary]] = {
    "fadd": operator.add,
    "fsub": operator.sub,
    "fmul": operator.mul,
    "fdiv": lambda a, b: a / b,
    "frem": np.fmod,
}


def through_single(function: Callable[..., RuntimeValue]) -> Callable[..., RuntimeValue]:
    """A function on bfloat that computes in float and rounds."""
    return lambda *args: function(*(a.astype(np.float32) for a in args)).astype(BFLOAT16)


def binary_function(opcode: str, type_: Type) -> _Binary:
    """The function of a binary opcode on values of a type."""
    element = scalar_of(type_)
    if isinstance(element, FloatType):
        return through_single(_FLOAT[opcode]) if element.name == "bfloat" else _FLOAT[opcode]
    if isinstance(type_, VectorType):
        return _vector_integer(opcode, element)
    return _scalar_integer(opcode, width_of(type_))


def binary(scope: FunctionScope, instruction: Instruction) -> Step:
    """`add`, `fmul`, ...: all opcodes with two operands of one type."""
    function = binary_function(instruction.opcode, instruction.type)
    a, b = scope.slots(instruction)
    out = scope.result(instruction)

    def step(frame: list[RuntimeValue]) -> None:
        frame[out] = function(frame[a], frame[b])

    return step


def fneg(scope: FunctionScope, instruction: Instruction) -> Step:
    """`fneg`: flips the sign bit, of NaN as well."""
    (a,) = scope.slots(instruction)
    out = scope.result(instruction)

    def step(frame: list[RuntimeValue]) -> None:
        frame[out] = np.negative(frame[a])

    return step


def freeze(scope: FunctionScope, instruction: Instruction) -> Step:
    """`freeze`: the identity, as undefined values have fixed bits here."""
    (a,) = scope.slots(instruction)
    out = scope.result(instruction)

    def step(frame: list[RuntimeValue]) -> None:
        frame[out] = frame[a]

    return step


# Comparison and selection --------------------------------------------------------------------------------------------

_COMPARE: Final[dict[str, _Binary]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}


def _unordered(a: RuntimeValue, b: RuntimeValue) -> RuntimeValue:
    return np.isnan(a) | np.isnan(b)


_FCMP: Final[dict[str, _Binary]] = {
    "false": lambda a, b: np.zeros_like(_unordered(a, b)),
    "true": lambda a, b: np.ones_like(_unordered(a, b)),
    "oeq": operator.eq,
    "ogt": operator.gt,
    "oge": operator.ge,
    "olt": operator.lt,
    "ole": operator.le,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: ~_unordered(a, b),
    "uno": _unordered,
    "ueq": lambda a, b: ~((a < b) | (a > b)),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "une": operator.ne,
}


def icmp_function(predicate: str, type_: Type) -> _Binary:
    """The function of an integer predicate, giving bool or an array of bool."""
    compare = _COMPARE[predicate[-2:]]
    bits = width_of(type_)
    if predicate[0] != "s":
        return compare
    if isinstance(type_, VectorType):
        return lambda a, b: compare(signed_array(a, bits), signed_array(b, bits))
    sign = 1 << (bits - 1)
    return lambda a, b: compare(a ^ sign, b ^ sign)


def compare(scope: FunctionScope, instruction: Instruction) -> Step:
    """`icmp` and `fcmp`."""
    type_ = instruction.operands[0].type
    if instruction.opcode == "icmp":
        function = icmp_function(instruction.predicate, type_)
    else:
        function = _FCMP[instruction.predicate]
    a, b = scope.slots(instruction)
    out = scope.result(instruction)
    if isinstance(type_, VectorType):

        def vector_step(frame: list[RuntimeValue]) -> None:
            frame[out] = np.asarray(function(frame[a], frame[b]), np.bool_)

        return vector_step

    def step(frame: list[RuntimeValue]) -> None:
        frame[out] = 1 if function(frame[a], frame[b]) else 0

    return step


def select(scope: FunctionScope, instruction: Instruction) -> Step:
    """`select`: a scalar condition selects a whole value, a vector selects element by element."""
    condition, yes, no = scope.slots(instruction)
    out = scope.result(instruction)
    if isinstance(instruction.operands[0].type, VectorType):

        def vector_step(frame: list[RuntimeValue]) -> None:
            frame[out] = np.where(frame[condition], frame[yes], frame[no])

        return vector_step

    def step(frame: list[RuntimeValue]) -> None:
        frame[out] = frame[yes] if frame[condition] else frame[no]

    return step
