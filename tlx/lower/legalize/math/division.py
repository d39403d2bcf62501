"""Quotients by instructions none of which has a subnormal operand or result.

With one, a division takes microcode on many machines, and 10 to 27 times as long (Xeon 6/207/2, 2026-11-28). With
|a| = m 2^i and |b| = k 2^j, 1 <= m, k < 2,

    q = m / k,    e = i - j,    |a / b| = q 2^e

where q 2^e is q with another exponent, unless it is subnormal. Then the bits of the quotient are the integer nearest to
q 2^e / u, with u the least subnormal number. As q has been rounded already, the integer next to it may have to be
corrected, in the direction of an exact remainder.

| machine | quotients |
| --- | --- |
| with instructions for exponents and significands | q 2^e, as fast as a / b; a branch rounds subnormal ones |
| others, double | a / b, unless some operand or quotient of a few registers may be subnormal: q 2^e then |
| others, float | a / b, likewise: computed in double then |
| bfloat | a / b in float, likewise: q 2^e or double then, whose rounding to float never needs a correction |

Without the instructions, n is q 2^e / u rounded, which is wrong only where q was rounded to the middle between two
integers; there, and only there, r = m 2^e / u - n k is above k / 2, and n is corrected in the direction of r.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Final

from tlx.ir.types import DOUBLE
from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, either
from tlx.lower.legalize.registers import emit_interleaved
from tlx.target.hardware import FloatInstructions

_RAISED: Final = 63
"""Subnormal numbers times 2^63 are normal."""
_FACTOR: Final = 2.0
"""Of both operands of a division in double that LLVM may not turn into one in float."""


def quotients(
    lanes: LaneArithmetic, numerators: Sequence[Value], divisors: Sequence[Value], divide: Callable[[], list[Value]]
) -> list[Value]:
    """Quotients of registers, rounded as the instruction rounds.

        %rare = icmp slt %least, %bound          ; some |a|, not 0, is below some |b| 2^-126, or one is subnormal
        br i1 %any, label %rare.do, label %rare.not

    The builder is in another block afterwards.

    Args:
        lanes: Arithmetic on registers like the operands.
        numerators: Registers.
        divisors: As many registers.
        divide: Emits the instruction for each.
    """
    pairs = list(zip(numerators, divisors, strict=True))
    if lanes.float_instructions is not None:
        return _quotients_by_instructions(lanes, lanes.float_instructions, pairs)
    rare = may_be_subnormal(lanes, numerators, divisors)
    return either(lanes, rare, lambda: careful_quotients(lanes, pairs), divide)


def careful_quotients(lanes: LaneArithmetic, pairs: Sequence[tuple[Value, Value]]) -> list[Value]:
    """Quotients of registers, for any operands; of bfloats (`lanes.short`) the magnitudes are enough."""
    b, instructions = lanes.b, lanes.float_instructions
    if instructions is not None:
        ratios = emit_interleaved(b, [partial(_ratio, lanes, instructions, *pair) for pair in pairs])
        return _rounded(lanes, instructions, ratios)
    careful = _double_quotient if lanes.single else _careful_quotient
    return emit_interleaved(b, [partial(careful, lanes, *pair) for pair in pairs])


def _double_quotient(lanes: LaneArithmetic, numerator: Value, divisor: Value) -> Value:
    """A quotient of floats, computed in double.

    That is correct, also where the result is subnormal: no quotient of two significands of 24 bits is within 2^-49 of
    itself of the middle between two numbers of at most 24 bits, but those in the middle, which are exact in double.
    LLVM knows that, too: without the factor it divides floats.
    """
    b, doubles = lanes.b, LaneArithmetic(lanes.b, lanes.count, DOUBLE)
    wide = (doubles.mul(b.cast("fpext", x, doubles.floats), _FACTOR) for x in (numerator, divisor))
    return b.cast("fptrunc", doubles.div(*wide), lanes.floats)


@dataclass(frozen=True, slots=True)
class _Ratio:
    """A quotient of magnitudes as q 2^e, where q is m / k.

    Attributes:
        dividend: m, from 1 to 2.
        divisor: k, from 1 to 2.
        quotient: q, rounded.
        exponent: e, an integer as a number, of zero -infinity.
        is_small: Where q 2^e is subnormal, or may be; of quotients in bfloat also where it is zero.
        signed: The operands, of which the quotient has its sign.
    """

    dividend: Value
    divisor: Value
    quotient: Value
    exponent: Value
    is_small: Value
    signed: tuple[Value, Value]


def _quotients_by_instructions(
    lanes: LaneArithmetic, instructions: FloatInstructions, pairs: Sequence[tuple[Value, Value]]
) -> list[Value]:
    """Quotients on a target with instructions for exponents and significands, which have a meaning for all numbers.

    All are computed from significands, which takes no longer than the division itself: only subnormal quotients are
    rare.
    """
    b = lanes.b
    ratios = emit_interleaved(b, [partial(_ratio, lanes, instructions, *pair) for pair in pairs])
    rare = reduce(partial(b.binary, "or"), [ratio.is_small for ratio in ratios])

    def scaled(ratio: _Ratio) -> Value:
        bits = lanes.bits(instructions.scale(b, ratio.quotient, ratio.exponent))
        return lanes.from_bits(with_sign_of_quotient(lanes, bits, *ratio.signed))

    return either(
        lanes,
        rare,
        lambda: _rounded(lanes, instructions, ratios),
        lambda: emit_interleaved(b, [partial(scaled, ratio) for ratio in ratios]),
    )


def _rounded(lanes: LaneArithmetic, instructions: FloatInstructions, ratios: Sequence[_Ratio]) -> list[Value]:
    def rounded(ratio: _Ratio) -> Value:
        bits = _rounded_bits(lanes, instructions, ratio)
        return lanes.from_bits(bits if lanes.short else with_sign_of_quotient(lanes, bits, *ratio.signed))

    return emit_interleaved(lanes.b, [partial(rounded, ratio) for ratio in ratios])


def _ratio(lanes: LaneArithmetic, instructions: FloatInstructions, numerator: Value, divisor: Value) -> _Ratio:
    """A quotient of registers.

    Bits of negative numbers are in the order of their magnitudes, above those of positive ones. Adding the unit of the
    exponent field makes -infinity 0, so that one comparison finds the exponents that are small but not -infinity.
    """
    b, unit = lanes.b, 1 << lanes.fraction
    m, k = (instructions.significand(b, x) for x in (numerator, divisor))
    quotient = lanes.div(m, k)
    exponent = lanes.sub(*(instructions.exponent(b, x) for x in (numerator, divisor)))
    if lanes.short:
        is_small = lanes.compare("ole", exponent, 1.0 - lanes.bias)
    else:
        bound = lanes.integer_op("add", lanes.bits(lanes.number(1.0 - lanes.bias)), unit)
        is_small = b.icmp("uge", lanes.integer_op("add", lanes.bits(exponent), unit), bound)
    return _Ratio(m, k, quotient, exponent, is_small, (numerator, divisor))


def _rounded_bits(lanes: LaneArithmetic, instructions: FloatInstructions, ratio: _Ratio) -> Value:
    """The bits of q 2^e.

    Where it is small, let s = q 2^e / u and n the integer nearest to s, both exact. If s is in the middle between two
    integers though m / k is not, the quotient is off by one where the remainder m - q k has the sign of d = s - n; then

        y = 1 + (m - q k) d, rounded up,    d y

    is beyond 1/2, elsewhere not. Of bfloats no such n changes the result: their quotients are in the middle between two
    bfloats or at least 2^-142 away from it.

    A subnormal s would be slow: only a below 2^-147 by b above 2^126 has one (float), whose quotient is zero.
    """
    b, small = lanes.b, ratio.is_small
    raised = lanes.add(ratio.exponent, lanes.bias + lanes.fraction - 1.0)
    scaled = instructions.scale(b, ratio.quotient, lanes.choose(small, raised, ratio.exponent))
    bits = lanes.bits(instructions.round_to_bits(b, scaled, small))
    if lanes.short:
        return bits
    remainder = b.fma(lanes.negative(ratio.quotient), ratio.divisor, ratio.dividend)
    remainder = lanes.choose(small, remainder, 0.0)
    offset = lanes.choose(small, instructions.fraction(b, scaled), 0.0)
    beyond = lanes.mul(offset, instructions.multiply_add_up(b, remainder, offset, lanes.number(1.0)))
    return b.binary("add", bits, lanes.bits(instructions.round_to_bits(b, beyond, small)))


def may_be_subnormal(lanes: LaneArithmetic, numerators: Sequence[Value], divisors: Sequence[Value]) -> Value:
    """The lanes in which some quotient or operand may be subnormal.

    Bits shifted left have no sign, and subtracting 1 makes 0 the largest number. Bits of positive numbers are in the
    order of the numbers, and an exponent field less is half the number: a / b is at least 2^-126 if the bits of a are
    at least those of b less 126 fields. Subtracting a field makes subnormal numbers, and 0, the largest. All that is
    compared with the sign bit inverted, as signed numbers are: not every machine compares unsigned ones.
    """
    field, lowest = 2 << lanes.fraction, lanes.sign_bit

    def doubled(x: Value, less: int) -> Value:
        return lanes.integer_op("sub", lanes.integer_op("shl", lanes.bits(x), 1), less + lowest)

    least = reduce(partial(_extreme, lanes, "smin"), [doubled(x, 1) for x in dict.fromkeys(numerators)])
    most = reduce(partial(_extreme, lanes, "smax"), [doubled(x, field) for x in dict.fromkeys(divisors)])
    bound = _extreme(lanes, "smax", most, lanes.word((lanes.bias - 1) * field + lowest))
    bound = lanes.integer_op("sub", bound, (lanes.bias - 2) * field)
    return lanes.b.icmp("slt", least, bound)


def _extreme(lanes: LaneArithmetic, name: str, x: Value, y: Value) -> Value:
    return lanes.b.call_intrinsic(f"llvm.{name}", [lanes.words], lanes.words, [x, y])


@dataclass(frozen=True, slots=True)
class _Parts:
    """The magnitude of a number as significand 2^exponent.

    Attributes:
        normal: The magnitude, times 2^63 if it is subnormal.
        significand: From 1 to 2.
        exponent: Above that of the least normal number by the exponent field less 1.
        is_special: Where the number is zero, infinite or NaN, and significand and exponent have no meaning.
    """

    normal: Value
    significand: Value
    exponent: Value
    is_special: Value


def _parts(lanes: LaneArithmetic, x: Value) -> _Parts:
    b, one = lanes.b, lanes.bias << lanes.fraction
    size = lanes.integer_op("and", lanes.bits(x), lanes.sign_bit - 1)
    unit = (_RAISED + 1) << lanes.fraction
    raised = lanes.sub(lanes.from_bits(lanes.integer_op("or", size, unit)), lanes.from_bits(lanes.word(unit)))
    is_subnormal = b.icmp("ult", size, lanes.word(1 << lanes.fraction))
    normal = b.select(is_subnormal, lanes.bits(raised), size)
    lowered = b.select(is_subnormal, lanes.word(_RAISED), lanes.word(0))
    exponent = lanes.integer_op("sub", lanes.integer_op("lshr", normal, lanes.fraction), lowered)
    significand = lanes.integer_op("or", lanes.integer_op("and", normal, (1 << lanes.fraction) - 1), one)
    infinity = (2 * lanes.bias + 1) << lanes.fraction
    is_special = b.icmp("uge", lanes.integer_op("sub", size, 1), lanes.word(infinity - 1))
    return _Parts(lanes.from_bits(normal), lanes.from_bits(significand), exponent, is_special)


def _careful_quotient(lanes: LaneArithmetic, numerator: Value, divisor: Value) -> Value:
    """The quotient of a register, for any operands."""
    b = lanes.b
    a, d = _parts(lanes, numerator), _parts(lanes, divisor)
    is_special = b.binary("or", a.is_special, d.is_special)
    dividend, by = (lanes.choose(is_special, x.normal, x.significand) for x in (a, d))
    quotient = lanes.div(dividend, by)
    exponent = lanes.integer_op("sub", a.exponent, d.exponent)
    integer, is_subnormal = _in_least_units(lanes, quotient, exponent, a.significand, d.significand)
    normal = _with_exponent(lanes, quotient, exponent)
    result = b.select(is_special, lanes.bits(quotient), b.select(is_subnormal, integer, normal))
    return lanes.from_bits(with_sign_of_quotient(lanes, result, numerator, divisor))


def _corrected(
    lanes: LaneArithmetic, integer: Value, lanes_of_integers: Value, remainder: Value, divisor: Value
) -> Value:
    """Integers next to quotients, in some lanes: the nearest ones."""
    b = lanes.b
    is_off = lanes.compare("ogt", lanes.magnitude(remainder), lanes.mul(divisor, 0.5))
    step = lanes.integer_op("or", lanes.integer_op("ashr", lanes.bits(remainder), lanes.integer.bits - 1), 1)
    return b.select(b.binary("and", is_off, lanes_of_integers), b.binary("add", integer, step), integer)


def with_sign_of_quotient(lanes: LaneArithmetic, bits: Value, numerator: Value, divisor: Value) -> Value:
    """The bits of magnitudes, or of quotients, with the sign of quotients."""
    signs = lanes.b.binary("xor", lanes.bits(numerator), lanes.bits(divisor))
    return lanes.b.binary("or", bits, lanes.integer_op("and", signs, lanes.sign_bit))


def _with_exponent(lanes: LaneArithmetic, quotient: Value, exponent: Value) -> Value:
    """The bits of q 2^e, which is not subnormal; of infinity where it is too large."""
    bounded = _extreme(lanes, "smin", exponent, lanes.word(lanes.bias + 2))
    field = lanes.integer_op("shl", bounded, lanes.fraction)
    infinity = lanes.word((2 * lanes.bias + 1) << lanes.fraction)
    return _extreme(lanes, "umin", lanes.b.binary("add", lanes.bits(quotient), field), infinity)


def _in_least_units(
    lanes: LaneArithmetic, quotient: Value, exponent: Value, dividend: Value, divisor: Value
) -> tuple[Value, Value]:
    """The integer n nearest to q 2^e / u, and where q 2^e is subnormal."""
    b, fraction = lanes.b, lanes.fraction
    to_units = lanes.bias + fraction - 1
    raised = _extreme(lanes, "smin", lanes.integer_op("add", exponent, to_units), lanes.word(fraction + 1))
    field = lanes.integer_op("shl", _extreme(lanes, "smax", raised, lanes.word(-2)), fraction)
    scaled, remaining = (lanes.from_bits(b.binary("add", lanes.bits(x), field)) for x in (quotient, dividend))
    magic = 2.0**fraction
    total = lanes.add(scaled, magic)
    integer = lanes.integer_op("sub", lanes.bits(total), lanes.bits(lanes.number(magic)))
    is_subnormal = lanes.compare("olt", scaled, magic)
    remainder = b.fma(lanes.negative(lanes.sub(total, magic)), divisor, remaining)
    return _corrected(lanes, integer, is_subnormal, remainder, divisor), is_subnormal
