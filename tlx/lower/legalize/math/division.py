"""Quotients, computed by instructions that never have a subnormal operand or result.

With one, a division takes microcode on many machines, and 10 to 27 times as long (Xeon 6/207/2, 2026-11-28). The bits
of a subnormal quotient are the integer nearest to a / b / u, with u the least subnormal number.

| machine | quotients |
| --- | --- |
| with instructions for exponents and significands | as fast as a / b; a branch rounds subnormal ones |
| others | a / b, unless a number in a few registers may be subnormal: `division_cases`, `scaled_division` |

With the instructions: let |a| = m 2^i and |b| = k 2^j, 1 <= m, k < 2, q = m / k and e = i - j. |a / b| = q 2^e is q
with another exponent, unless it is subnormal. As q has been rounded already, the integer next to q 2^e / u may have to
be corrected, in the direction of an exact remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, branch_if_any_lane
from tlx.lower.legalize.math.division_cases import quotients_by_case
from tlx.lower.legalize.math.division_operands import DivisionOperands, with_sign_of_quotient
from tlx.lower.legalize.registers import emit_interleaved
from tlx.target.instructions.functions import FloatInstructions


def quotients(
    lanes: LaneArithmetic, numerators: Sequence[Value], divisors: Sequence[Value], divide: Callable[[], list[Value]]
) -> list[Value]:
    """Quotients of registers, rounded as the instruction rounds.

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
    return quotients_by_case(DivisionOperands(lanes, numerators, divisors, lanes), divide)


def rounded_ratios(
    lanes: LaneArithmetic, instructions: FloatInstructions, pairs: Sequence[tuple[Value, Value]]
) -> list[Value]:
    """Quotients of registers, for any operands; of bfloats (`lanes.accuracy.short`) the magnitudes."""
    ratios = emit_interleaved(lanes.b, [partial(_ratio, lanes, instructions, *pair) for pair in pairs])
    return _rounded(lanes, instructions, ratios)


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

    return branch_if_any_lane(
        lanes,
        rare,
        lambda: _rounded(lanes, instructions, ratios),
        lambda: emit_interleaved(b, [partial(scaled, ratio) for ratio in ratios]),
    )


def _rounded(lanes: LaneArithmetic, instructions: FloatInstructions, ratios: Sequence[_Ratio]) -> list[Value]:
    def rounded(ratio: _Ratio) -> Value:
        bits = _rounded_bits(lanes, instructions, ratio)
        return lanes.from_bits(bits if lanes.accuracy.short else with_sign_of_quotient(lanes, bits, *ratio.signed))

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
    if lanes.accuracy.short:
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
    bits = lanes.bits(instructions.round_to_bits(b, scaled, small, scaled))
    if lanes.accuracy.short:
        return bits
    remainder = b.fma(lanes.negative(ratio.quotient), ratio.divisor, ratio.dividend)
    remainder = lanes.choose(small, remainder, 0.0)
    offset = lanes.choose(small, instructions.fraction(b, scaled), 0.0)
    beyond = lanes.mul(offset, instructions.multiply_add_up(b, remainder, offset, lanes.number(1.0)))
    return b.binary("add", bits, lanes.bits(instructions.round_to_bits(b, beyond, small, beyond)))
