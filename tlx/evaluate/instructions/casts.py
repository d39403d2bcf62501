"""Steps of casts.

Every cast is a function on arrays; a scalar is cast as an array of one element, except between integers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import FunctionScope, Step
from tlx.evaluate.values import (
    Array,
    Codecs,
    RuntimeValue,
    element_dtype,
    from_integers,
    scalar,
    signed,
    signed_array,
    to_float,
    vector,
    width_of,
    wrapped,
)
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


def cast_function(opcode: str, source: Type, target: Type, codecs: Codecs) -> Cast:
    """The function of a cast opcode between two types."""
    if opcode in ("bitcast", "addrspacecast"):
        return _bitcast(source, target, codecs)
    if opcode in ("trunc", "zext", "ptrtoint", "ptrtoaddr", "inttoptr"):
        return _resize(source, target)
    if opcode == "sext":
        return _sign_extend(source, target)
    function = _array_cast(opcode, scalar_of(source), scalar_of(target))
    if isinstance(source, VectorType):
        return function
    element = scalar_of(source)
    return lambda value: scalar(function(vector([value], element))[0], target)


def _bitcast(source: Type, target: Type, codecs: Codecs) -> Cast:
    if source == target or (isinstance(source, PointerType) and isinstance(target, PointerType)):
        return lambda value: value
    encode, decode = codecs[source].encode, codecs[target].decode
    return lambda value: decode(memoryview(encode(value)), 0)


def _resize(source: Type, target: Type) -> Cast:
    """Keep the low bits, or add zeros."""
    if isinstance(source, VectorType):
        element = scalar_of(target)
        return lambda value: wrapped(value, element)
    mask = (1 << width_of(target)) - 1
    return lambda value: value & mask


def _sign_extend(source: Type, target: Type) -> Cast:
    bits = width_of(source)
    if isinstance(source, VectorType):
        element = scalar_of(target)
        return lambda value: wrapped(signed_array(value, bits).astype(_signed_wide(element)), element)
    mask = (1 << width_of(target)) - 1
    return lambda value: signed(value, bits) & mask


def _signed_wide(element: Type) -> str:
    return "object" if width_of(element) > 64 else "int64"


def _array_cast(opcode: str, source: Type, target: Type) -> Callable[[Array], Array]:
    """Casts from or to floating point, on arrays."""
    if opcode in ("fptrunc", "fpext"):
        return lambda value: to_float(value, element_dtype(target))
    if opcode == "uitofp":
        return lambda value: from_integers(value, element_dtype(target))
    if opcode == "sitofp":
        return lambda value: from_integers(signed_array(value, width_of(source)), element_dtype(target))
    if opcode in ("fptoui", "fptosi"):
        return lambda value: to_integers(value, target)
    raise EvaluationError(f"the evaluator does not know the cast '{opcode}'")


def to_integers(numbers: Array, target: Type) -> Array:
    """Floating-point numbers truncated to integers; what does not fit is undefined (some bits)."""
    if width_of(target) > 64:
        return wrapped(np.array([_truncated(float(n)) for n in numbers], object), target)
    wide = numbers.astype(np.float64)
    high = wide >= 2.0**63
    low = np.where(high, 0.0, wide).astype(np.int64).view(np.uint64)
    whole = np.where(high, np.where(high, wide, 0.0).astype(np.uint64), low)
    return wrapped(whole, target)


def _truncated(number: float) -> int:
    return int(number) if np.isfinite(number) else -1


def saturated(numbers: Array, target: IntType, *, is_signed: bool) -> Array:
    """`llvm.fptosi.sat` and `llvm.fptoui.sat`: clamp to the integer's range, NaN gives 0."""
    bits = target.bits
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    clamped = [_clamp(float(n), low, high) for n in numbers]
    return wrapped(np.array([n & ((1 << bits) - 1) for n in clamped], element_dtype(target)), target)


def _clamp(number: float, low: int, high: int) -> int:
    if np.isnan(number):
        return 0
    if np.isinf(number):
        return high if number > 0 else low
    return min(max(int(number), low), high)


def is_floating(type_: Type) -> bool:
    """Whether a type is floating point or a vector of it."""
    return isinstance(scalar_of(type_), FloatType)
