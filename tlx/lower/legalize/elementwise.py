"""Elementwise instructions on registers, in forms that no LLVM from 14 on turns into library calls.

bfloat and half are computed in float and rounded back, which rounds sums, products, quotients and roots correctly, as
float has more than twice their precision. Operations that only move elements or change signs work on their bits. With
arithmetic on half, it is not extended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import copysign, isnan, nan
from typing import Final

from tlx.intrinsics.small_floats import is_conversion
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import CAST_OPCODES
from tlx.ir.rewrite import definitions
from tlx.ir.tensors.conversions import SmallConversion
from tlx.ir.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I16,
    I32,
    I64,
    FloatType,
    IntType,
    Type,
    VectorType,
    scalar_of,
    vector_of,
)
from tlx.ir.values import Aggregate, ConstFloat, ConstInt, Keyword, Local, Value, const_ints, zero
from tlx.lower.legalize.conversions import (
    ROUNDINGS,
    SATURATING,
    BfloatRounding,
    as_bits,
    compare,
    convert_register,
    float_rounded_to_odd,
    float_to_narrow,
    fma_rounded_once,
    fma_rounded_to_odd,
    in_float_pairs,
    rounded_to_integer,
    saturated,
    works_on_float_pairs,
)
from tlx.lower.legalize.math import emit_math_function
from tlx.lower.legalize.math.arithmetic import lanes_of
from tlx.lower.legalize.math.exponential import lowered_bfloats, raised_exp
from tlx.lower.legalize.math.small_floats import convert_small
from tlx.lower.legalize.registers import register_element, splat_like
from tlx.lower.operations import FULL_ACCURACY, LIBRARY_FUNCTIONS, MATH_INTRINSICS, Accuracy, ElementwiseOp
from tlx.target.instructions.compilers import LlvmBackend
from tlx.target.instructions.functions import FloatInstructions
from tlx.target.instructions.vectors import VectorInstructions
from tlx.target.target import Target

_SIGN_AND_INFINITY: Final = {
    HALF: (-1 << 15, 0x7C00),
    BFLOAT: (-1 << 15, 0x7F80),
    FLOAT: (-1 << 31, 0x7F800000),
    DOUBLE: (-1 << 63, 0x7FF << 52),
}
"""The sign's bit, and infinity, of floating-point types."""
_NARROW: Final = (BFLOAT, HALF)
_ROUNDINGS: Final = frozenset(f"llvm.{name}" for name in ROUNDINGS)
_ROUNDED_INTEGERS: Final = {
    "llvm.lrint": "llvm.rint",
    "llvm.llrint": "llvm.rint",
    "llvm.lround": "llvm.round",
    "llvm.llround": "llvm.round",
}
_EXTREMES: Final = {
    "llvm.minnum": "olt",
    "llvm.maxnum": "ogt",
    "llvm.minimumnum": "olt",
    "llvm.maximumnum": "ogt",
    "llvm.minimum": "olt",
    "llvm.maximum": "ogt",
}
_NAN_EXTREMES: Final = ("llvm.minimum", "llvm.maximum")


def emit_elementwise(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    element: Type,
    sources: Sequence[Type],
    registers: Sequence[Value],
) -> Value:
    """Emit one register of the result.

    Args:
        b: The builder.
        target: The machine.
        operation: The operation.
        element: Element type of the result.
        sources: Element types of the operands.
        registers: The operands, bfloat and half as i16; immediates are scalars.
    """
    opcode = operation.opcode
    if is_conversion(operation.callee):
        conversion = SmallConversion.of(operation.callee, registers)
        return convert_small(b, target, conversion, registers[0], sources[0], element)
    if opcode in CAST_OPCODES:
        return convert_register(b, target, opcode, registers[0], sources[0], element)
    if opcode in ("select", "freeze"):
        plain = ElementwiseOp(opcode, operation.flags if element not in _NARROW else ())
        return plain.emit(b, _register(registers, element), registers)
    if operation.callee.removeprefix("llvm.") in MATH_INTRINSICS:
        return emit_math(b, target, operation.callee.removeprefix("llvm."), element, registers[0])
    if opcode == "fneg" and element in _NARROW:
        return b.binary("xor", registers[0], splat_like(registers[0], -0x8000))
    if operation.callee in ("llvm.fabs", "llvm.copysign") and element in _NARROW:
        return _signs(b, registers)
    if operation.callee == "llvm.is.fpclass" and sources[0] in _NARROW:
        return _is_class(b, sources[0], *registers)
    if operation.is_half_arithmetic([element, *sources], target):
        return _in_half(b, target, operation, element, registers)
    if operation.callee == "llvm.fma" and (
        element in _NARROW or (element == FLOAT and not target.instructions.has_fma)
    ):
        return _fma(b, target, element, registers)
    if element in _NARROW or any(s in _NARROW for s in sources):
        return _as_float(b, target, operation, element, sources, registers)
    return _by_instruction(b, target, operation, element, sources, registers)


def _by_instruction(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    element: Type,
    sources: Sequence[Type],
    registers: Sequence[Value],
) -> Value:
    """The operation on registers of the types that it computes in."""
    if operation.callee in _ROUNDINGS and not (target.instructions.has_rounding and operation.callee != "llvm.round"):
        return rounded_to_integer(b, operation.callee.removeprefix("llvm."), registers[0])
    if operation.callee == "llvm.roundeven":  # the same, and backends that lack it have rint
        operation = ElementwiseOp("call", operation.flags, "", "llvm.rint")
    if operation.callee in SATURATING and not target.backend.has_saturating_conversions:
        assert isinstance(element, IntType)
        return saturated(b, operation.callee, registers[0], element)
    if operation.callee in _ROUNDED_INTEGERS:  # for which LLVM calls the C library, one element after another
        rounding = ElementwiseOp("call", (), "", _ROUNDED_INTEGERS[operation.callee])
        rounded = emit_elementwise(b, target, rounding, sources[0], sources, registers)
        whole = convert_register(b, target, "fptosi", rounded, sources[0], element)
        return ElementwiseOp("freeze").emit(b, whole.type, [whole])  # numbers that do not fit are not poison
    if operation.callee == "llvm.canonicalize":
        return _with_quiet_nan(b, registers[0])
    if operation.callee in _EXTREMES and not (
        target.instructions.has_minimum and operation.callee in _NAN_EXTREMES and element == FLOAT
    ):
        best = _extreme(b, operation.callee, registers[0], registers[1])
        if target.backend.keeps_selected_nan or operation.callee not in _NAN_EXTREMES:
            return best
        return with_nan(b, best, *registers)
    if operation.callee in _FUNNEL_SHIFTS and is_miscompiled(target.backend, operation, element):
        return _funnel_shift(b, operation.callee, *registers)
    if operation.opcode == "fcmp" and is_miscompiled(target.backend, operation, element):
        operation, registers = ElementwiseOp("fcmp", operation.flags, "ugt"), registers[::-1]
    if operation.callee == "llvm.fmuladd" and target.instructions.has_fma:
        operation = ElementwiseOp("call", operation.flags, "", "llvm.fma")
    return operation.emit(b, vector_of(_lanes(registers), element), registers)


_FUNNEL_SHIFTS: Final = ("llvm.fshl", "llvm.fshr")


def is_miscompiled(backend: LlvmBackend, operation: ElementwiseOp, element: Type) -> bool:
    """Whether LLVM compiles an operation wrong that other instructions can replace.

    These are funnel shifts of i64, and the comparison `ult`, which LLVM makes ordered in selects.
    """
    if operation.callee in _FUNNEL_SHIFTS:
        return element == I64 and not backend.has_funnel_shifts
    return operation.opcode == "fcmp" and operation.predicate == "ult" and not backend.keeps_selected_nan


def library_call(instructions: VectorInstructions, operation: ElementwiseOp, element: Type) -> bool:
    """Whether LLVM lowers an operation to calls to the C library, one for each element."""
    if operation.callee == "llvm.fma":
        return element == DOUBLE and not instructions.has_fma
    return operation.opcode == "frem" or operation.callee.removeprefix("llvm.") in LIBRARY_FUNCTIONS


def emit_math(
    b: Builder,
    target: Target,
    name: str,
    element: Type,
    register: Value,
    accuracy: Accuracy = FULL_ACCURACY,
) -> Value:
    """A function such as tanh of one register, as vector code."""
    if element == DOUBLE:
        return emit_math_function(b, target, name, register, element)
    if works_on_float_pairs(target.vector_bytes, element, [element], register):
        short = Accuracy(short=True)
        if name == "exp" and accuracy.nonpositive and target.instructions.functions is not None:
            return _exp_of_bfloats(b, target, target.instructions.functions, register)
        return in_float_pairs(b, target, [register], lambda x: emit_math_function(b, target, name, x[0], FLOAT, short))
    wide = convert_register(b, target, "fpext", register, element, FLOAT) if element != FLOAT else register
    if element == BFLOAT:
        accuracy = replace(accuracy, short=True)
    result = emit_math_function(b, target, name, wide, FLOAT, accuracy)
    return result if element == FLOAT else convert_register(b, target, "fptrunc", result, FLOAT, element)


def _exp_of_bfloats(b: Builder, target: Target, instructions: FloatInstructions, register: Value) -> Value:
    """e^x of bfloats that are not above 0."""

    def raised(operands: Sequence[Value]) -> Value:
        return raised_exp(lanes_of(b, target, operands[0], FLOAT), instructions, operands[0])

    return lowered_bfloats(b, in_float_pairs(b, target, [register], raised, BfloatRounding.HALF_UP))


def emit_unary(
    b: Builder,
    target: Target,
    name: str,
    element: Type,
    register: Value,
    accuracy: Accuracy = FULL_ACCURACY,
) -> Value:
    """A unary tensor operation of one register: relu, sqrt, fabs, floor, ceil and the functions of `emit_math`."""
    if name == "relu":
        return _relu(b, target.backend, element, register)
    if name in MATH_INTRINSICS:
        return emit_math(b, target, name, element, register, accuracy)
    return emit_elementwise(b, target, ElementwiseOp("call", (), "", f"llvm.{name}"), element, [element], [register])


def _relu(b: Builder, backend: LlvmBackend, element: Type, register: Value) -> Value:
    """The number where it is positive or NaN, else 0.

    Floats of 16 bits, and all where LLVM loses NaN, are compared as bits: with the sign flipped, negative numbers are
    those up to infinity, and larger bits are positive numbers or NaN.
    """
    if not isinstance(element, FloatType):
        return b.select(b.icmp("sgt", register, zero(register.type)), register, zero(register.type))
    if element not in _NARROW and backend.keeps_selected_nan:
        return b.select(compare(b, "ugt", register, zero(register.type)), register, zero(register.type))
    bits = register if element in _NARROW else as_bits(b, register)
    sign, infinity = _SIGN_AND_INFINITY[element]
    flipped = b.binary("xor", bits, splat_like(bits, sign))
    positive = b.select(b.icmp("ugt", flipped, splat_like(bits, infinity)), bits, zero(bits.type))
    return positive if element in _NARROW else b.cast("bitcast", positive, register.type)


def _as_float(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    element: Type,
    sources: Sequence[Type],
    registers: Sequence[Value],
) -> Value:
    """The operation in float, with bfloat and half operands extended and the result rounded."""
    if works_on_float_pairs(target.vector_bytes, element, sources, registers[0]):
        types = [FLOAT] * len(registers)
        is_exact = operation.callee in _ROUNDINGS or operation.callee in _EXTREMES
        rounding = BfloatRounding.TRUNCATE if is_exact else BfloatRounding.HALF_TO_EVEN
        return in_float_pairs(
            b, target, registers, lambda x: emit_elementwise(b, target, operation, FLOAT, types, x), rounding
        )
    wide = [
        convert_register(b, target, "fpext", r, s, FLOAT) if s in _NARROW else r
        for r, s in zip(registers, sources, strict=True)
    ]
    types = [FLOAT if s in _NARROW else s for s in sources]
    if element not in _NARROW:
        return emit_elementwise(b, target, operation, element, types, wide)
    result = emit_elementwise(b, target, operation, FLOAT, types, wide)
    return convert_register(b, target, "fptrunc", result, FLOAT, element)


def _in_half(b: Builder, target: Target, operation: ElementwiseOp, element: Type, registers: Sequence[Value]) -> Value:
    """The operation by instructions on half."""
    halves = [b.cast("bitcast", r, VectorType(_lanes([r]), HALF)) for r in registers]
    result = _by_instruction(b, target, operation, element, [HALF] * len(halves), halves)
    return b.cast("bitcast", result, VectorType(_lanes([result]), I16)) if element == HALF else result


def _fma(b: Builder, target: Target, element: Type, registers: Sequence[Value]) -> Value:
    if element == FLOAT:
        return fma_rounded_once(b, *registers)
    wide = [convert_register(b, target, "fpext", r, element, FLOAT) for r in registers]
    return float_to_narrow(b, target.narrow_floats, float_rounded_to_odd(b, fma_rounded_to_odd(b, *wide)), element)


def _signs(b: Builder, registers: Sequence[Value]) -> Value:
    """fabs, copysign: on the bits of 16-bit floats."""
    magnitude = b.binary("and", registers[0], splat_like(registers[0], 0x7FFF))
    if len(registers) == 1:
        return magnitude
    return b.binary("or", magnitude, b.binary("and", registers[1], splat_like(registers[1], -0x8000)))


_CLASSES: Final = (6, 7, 8, 9, 0, 1, 5, 4, 3, 2, 0, 1)
"""Bits of `llvm.is.fpclass`: zero, subnormal, normal, infinity, signalling and quiet NaN, and the same with a sign."""


def _is_class(b: Builder, element: Type, register: Value, mask: Value) -> Value:
    """is.fpclass of 16-bit floats: the bits of each class are a range of unsigned integers.

    As floats, subnormal halves would be normal, and signalling NaNs quiet.
    """
    assert isinstance(element, FloatType)
    assert isinstance(mask, ConstInt)
    _, infinity = _SIGN_AND_INFINITY[element]
    normal = infinity & -infinity
    starts = (0, 1, normal, infinity, infinity + 1, infinity + normal // 2)
    bounds = (*starts, *(0x8000 + start for start in starts), 0x10000)
    result: Value = zero(VectorType(_lanes([register]), I1))
    for start, end, number in zip(bounds, bounds[1:], _CLASSES, strict=False):
        if mask.value >> number & 1:
            from_start = b.binary("sub", register, splat_like(register, _signed(start)))
            result = b.binary("or", result, b.icmp("ult", from_start, splat_like(register, _signed(end - start))))
    return result


def _signed(bits: int) -> int:
    """The signed integer of 16 bits."""
    return bits - (bits >> 15 << 16)


def _with_quiet_nan(b: Builder, x: Value) -> Value:
    """canonicalize, which LLVM 14 to 19 cannot select: a signalling NaN becomes quiet."""
    assert isinstance(x.type, VectorType)
    element, quiet = (I64, 1 << 51) if x.type.element == DOUBLE else (I32, 1 << 22)
    marked = b.binary("or", as_bits(b, x), const_ints(element, [quiet] * x.type.count))
    return b.select(compare(b, "uno", x, x), b.cast("bitcast", marked, x.type), x)


def _extreme(b: Builder, callee: str, x: Value, y: Value) -> Value:
    """minnum, maxnum, minimumnum and maximumnum ignore a NaN; minimum and maximum propagate it.

    minnum and maxnum may return either of -0 and 0; for the others -0 is less. A constant takes one comparison, as in
    ReLU:

        %r = call @llvm.maximum(%x, 0)    ->    %c = fcmp ugt %x, 0
                                                %r = select %c, %x, 0
    """
    predicate = _EXTREMES[callee]
    if _splat_number(x) is not None:
        x, y = y, x
    bound = _splat_number(y)
    if bound is not None:
        return _clamped(b, callee, x, y, bound)
    if callee in ("llvm.minnum", "llvm.maxnum"):
        best = b.select(compare(b, predicate, x, y), x, y)
        return b.select(compare(b, "uno", y, y), x, best)
    other = compare(b, predicate, y, x)
    equal = _equal_or_nan(b, x, y, least=predicate == "olt")
    best = b.select(compare(b, predicate, x, y), x, b.select(other, y, equal))
    if callee in _NAN_EXTREMES:
        return best
    return b.select(compare(b, "uno", y, y), x, b.select(compare(b, "uno", x, x), y, best))


def with_nan(b: Builder, number: Value, x: Value, y: Value) -> Value:
    """A number, or NaN where `x` or `y` is NaN, which LLVM may have lost."""
    return b.select(compare(b, "uno", x, y), splat_like(number, nan), number)


def nan_operands(function: Function) -> dict[str, int]:
    """Selects of the lesser or greater of two numbers, by name, and the operand that they select if either is NaN.

    Backends that ignore NaN turn them into minima and maxima:

        %c = fcmp ogt %x, %y                      %c = fcmp ugt %x, %y
        %r = select %c, %x, %y      2             %r = select %c, %x, %y      1
    """
    found: dict[str, int] = {}
    defined = definitions(function)
    for select in function.instructions():
        if select.opcode != "select" or select.result is None or scalar_of(select.type) not in (FLOAT, DOUBLE):
            continue
        condition, *numbers = select.operands
        comparison = defined.get(condition.name) if isinstance(condition, Local) else None
        operation = None if comparison is None else ElementwiseOp.of(comparison)
        if comparison is None or operation is None or operation.opcode != "fcmp":
            continue
        orders = operation.predicate[1:] in ("gt", "ge", "lt", "le")
        if orders and {str(o) for o in comparison.operands} == {str(number) for number in numbers}:
            found[select.result] = 1 if operation.predicate.startswith("u") else 2
    return found


def _splat_number(register: Value) -> float | None:
    """The number in every lane of a constant; None if there is none, or a NaN."""
    if isinstance(register, Keyword):
        return 0.0 if register.word == "zeroinitializer" else None
    if not isinstance(register, Aggregate):
        return None
    first = register.elements[0]
    same = isinstance(first, ConstFloat) and all(element == first for element in register.elements)
    return first.value if isinstance(first, ConstFloat) and same and not isnan(first.value) else None


def _clamped(b: Builder, callee: str, x: Value, y: Value, bound: float) -> Value:
    """The lesser (greater) of a register and a number: x where it lies beyond the number, which then is no zero.

    Where x and the number are zeros of either sign, x is right if the number is the lesser (greater) one.
    """
    predicate = _EXTREMES[callee]
    loses_ties = bound == 0 and (copysign(1, bound) > 0) == (predicate == "olt")
    order = "u" if callee in _NAN_EXTREMES else "o"
    return b.select(compare(b, f"{order}{predicate[1]}{'e' if loses_ties else 't'}", x, y), x, y)


def _funnel_shift(b: Builder, callee: str, x: Value, y: Value, amount: Value) -> Value:
    """Shift pairs of i64 by single shifts: fshl or fshr, which LLVM miscompiles.

    One half is shifted by the amount n modulo 64, the other one by 64 - n in three steps, 1 + m / 2 + (m + 1) / 2 with
    m = 63 - n: a zero n needs no selection, and LLVM does not make a funnel shift of them again.

        %r = call @llvm.fshl(%x, %y, %n)    ->    %high = shl %x, %n
                                                  %low = lshr (lshr (lshr %y, 1), %m / 2), (%m + 1) / 2
                                                  %r = or %high, %low
    """
    near, far = ("shl", "lshr") if callee == "llvm.fshl" else ("lshr", "shl")
    moved, filling = (x, y) if callee == "llvm.fshl" else (y, x)
    one, last = splat_like(amount, 1), splat_like(amount, 63)
    count = b.binary("and", amount, last)
    rest = b.binary("xor", count, last)
    for part in (one, b.binary("lshr", rest, one), b.binary("lshr", b.binary("add", rest, one), one)):
        filling = b.binary(far, filling, part)
    return b.binary("or", b.binary(near, moved, count), filling)


def _equal_or_nan(b: Builder, x: Value, y: Value, *, least: bool) -> Value:
    """The lesser (greater) of two equal numbers, by sign; NaN where one is NaN, whose bits `or` preserves."""
    bits, other = as_bits(b, x), as_bits(b, y)
    both = b.binary("or", bits, other)
    if not least:
        signs = as_bits(b, splat_like(x, -0.0))
        differ = b.binary("and", b.binary("xor", bits, other), signs)
        both = b.binary("xor", both, differ)
    return b.cast("bitcast", both, x.type)


def _register(registers: Sequence[Value], element: Type) -> VectorType:
    """The type of a result as wide as the operands."""
    return vector_of(_lanes(registers), register_element(element))


def _lanes(registers: Sequence[Value]) -> int:
    """Elements of each register."""
    return next(r.type.count for r in registers if isinstance(r.type, VectorType))
