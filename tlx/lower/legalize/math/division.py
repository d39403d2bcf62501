"""Quotients by instructions none of which has a subnormal operand or result.

With one, a division takes microcode on many machines, and 10 to 27 times as long (Xeon 6/207/2, 2026-11-28). So a few
registers are divided by the instruction only if no operand and no quotient is subnormal; see `quotients`. Otherwise,
with |a| = m 2^i and |b| = k 2^j, 1 <= m, k < 2,

    q = m / k,    e = i - j,    |a / b| = q 2^e

where q 2^e is q with another exponent, unless it is subnormal. Then the bits of the quotient are the integer nearest to
q 2^e / u, with u the least subnormal number. As q has been rounded already, an integer n next to it is corrected by

    r = m 2^e / u - n k

which is exact. With instructions for exponents and significands, n is q 2^e / u without its fraction, and one is added
if r is more than k / 2, or k / 2 and n odd. Without, n is q 2^e / u rounded, which is wrong only where q was rounded to
the middle between two integers; there, and only there, |r| > k / 2, and n is corrected in the direction of r.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Final

from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, either
from tlx.lower.legalize.registers import emit_interleaved
from tlx.target.hardware import FloatInstructions

_RAISED: Final = 63
"""Subnormal numbers times 2^63 are normal."""


def quotients(
    lanes: LaneArithmetic, numerators: Sequence[Value], divisors: Sequence[Value], divide: Callable[[], list[Value]]
) -> list[Value]:
    """Quotients of registers, rounded as the instruction rounds.

        %rare = icmp ult %least, %bound          ; some |a|, not 0, is below some |b| 2^-126, or one is subnormal
        br i1 %any, label %rare.do, label %rare.not

    The builder is in another block afterwards.

    Args:
        lanes: Arithmetic on registers like the operands.
        numerators: Registers.
        divisors: As many registers.
        divide: Emits the instruction for each.
    """
    pairs = list(zip(numerators, divisors, strict=True))
    instructions = lanes.float_instructions
    if instructions is None:
        rare = _may_be_subnormal(lanes, numerators, divisors)
        careful = [partial(_careful_quotient, lanes, *pair) for pair in pairs]
    else:
        exponents = [_Exponents.of(lanes, instructions, *pair) for pair in pairs]
        rare = _any_subnormal(lanes, exponents)
        careful = [
            partial(_quotient_by_instructions, lanes, instructions, *pair, exponent.difference)
            for pair, exponent in zip(pairs, exponents, strict=True)
        ]
    return either(lanes, rare, lambda: emit_interleaved(lanes.b, careful), divide)


@dataclass(frozen=True, slots=True)
class _Exponents:
    """The exponents of a pair of registers, as numbers: of zero -infinity, of infinity infinity.

    Attributes:
        difference: The numerator's less the divisor's.
        least: The least of both and their difference.
    """

    difference: Value
    least: Value

    @classmethod
    def of(cls, lanes: LaneArithmetic, instructions: FloatInstructions, numerator: Value, divisor: Value) -> _Exponents:
        """The exponents of two registers."""
        first, second = (instructions.exponent(lanes.b, x) for x in (numerator, divisor))
        difference = lanes.sub(first, second)
        least = reduce(lambda x, y: lanes.choose(lanes.compare("olt", x, y), x, y), (first, second, difference))
        return cls(difference, least)


def _any_subnormal(lanes: LaneArithmetic, exponents: Sequence[_Exponents]) -> Value:
    """The lanes in which some quotient or operand may be subnormal: an exponent is small, but none is -infinity.

    Bits of negative numbers are in the order of their magnitudes, above those of positive ones. Adding the unit of the
    exponent field makes -infinity 0.
    """
    unit = 1 << lanes.fraction
    bits = [lanes.integer_op("add", lanes.bits(x.least), unit) for x in exponents]
    bound = lanes.integer_op("add", lanes.bits(lanes.number(1.0 - lanes.bias)), unit)
    return lanes.b.icmp("uge", reduce(partial(_extreme, lanes, "umax"), bits), bound)


def _may_be_subnormal(lanes: LaneArithmetic, numerators: Sequence[Value], divisors: Sequence[Value]) -> Value:
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
    return _signed(lanes, result, numerator, divisor)


def _quotient_by_instructions(
    lanes: LaneArithmetic, instructions: FloatInstructions, numerator: Value, divisor: Value, exponent: Value
) -> Value:
    """The same on a target with instructions for exponents and significands, which have a meaning for all numbers."""
    b = lanes.b
    dividend, by = (instructions.significand(b, x) for x in (numerator, divisor))
    exponent = lanes.at_least(exponent, -(lanes.bias + lanes.fraction + 2.0))
    is_small = lanes.compare("olt", exponent, 2.0 - lanes.bias)
    exponent = lanes.choose(is_small, lanes.add(exponent, lanes.bias + lanes.fraction - 1.0), exponent)
    scaled, remaining = (instructions.scale(b, x, exponent) for x in (lanes.div(dividend, by), dividend))
    below = b.select(is_small, b.cast("fptosi", scaled, lanes.words), lanes.bits(scaled))
    remainder = b.fma(lanes.negative(b.cast("sitofp", below, lanes.floats)), by, remaining)
    is_even = lanes.integer_op("and", lanes.integer_op("xor", below, -1), 1)
    half = b.binary("add", lanes.bits(by), lanes.integer_op("or", is_even, -1 << lanes.fraction))
    is_above = b.binary("and", b.icmp("sge", lanes.bits(remainder), half), is_small)
    return _signed(lanes, b.select(is_above, lanes.integer_op("add", below, 1), below), numerator, divisor)


def _corrected(
    lanes: LaneArithmetic, integer: Value, lanes_of_integers: Value, remainder: Value, divisor: Value
) -> Value:
    """Integers next to quotients, in some lanes: the nearest ones."""
    b = lanes.b
    is_off = lanes.compare("ogt", lanes.magnitude(remainder), lanes.mul(divisor, 0.5))
    step = lanes.integer_op("or", lanes.integer_op("ashr", lanes.bits(remainder), lanes.integer.bits - 1), 1)
    return b.select(b.binary("and", is_off, lanes_of_integers), b.binary("add", integer, step), integer)


def _signed(lanes: LaneArithmetic, magnitude: Value, numerator: Value, divisor: Value) -> Value:
    """Bits of a magnitude as a number with the sign of a quotient."""
    sign = lanes.b.binary("xor", lanes.bits(numerator), lanes.bits(divisor))
    return lanes.from_bits(lanes.b.binary("or", magnitude, lanes.integer_op("and", sign, lanes.sign_bit)))


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
