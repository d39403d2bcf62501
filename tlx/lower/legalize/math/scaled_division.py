"""Quotients on machines without instructions for exponents: scaled by a power of two where they may be subnormal.

Let u be the least subnormal number and 2^k a power of two. The division instruction rounds a 2^k / b, which is normal,
to q, and r = |a| 2^k - q |b| is exact. The bits of |a / b| are

    s = q, or the next number above it where r > 0
    f = 1, or 1 - 2^-p where r is not 0, p being the bits of a significand
    t = s f + max(q, m), rounded once,    m the least normal number times 2^k
    bits(t) - bits(2 m) + ulp             which are bits(t) - (k + 1) exponent units

Where |a / b| is subnormal, t is from m to 2 m: its ulp is u 2^k, and it ends in the bits of the quotient. s f is q if
that is exact, else between the same two numbers as the quotient, so that t is rounded as the quotient itself would be.
Where |a / b| is normal, t is 2 q.

Quotients of bfloats, computed in float, need no r: q is rounded again as the quotient would be. With P the power of two
in q, but at least m,

    t = q + 2^16 P, rounded once
    upper half of bits(t) + lower half of bits(t) - (k + 17) exponent units

The ulp of t is that of bfloats from P on, 2^-7 P. The lower half is the quotient as a multiple of it; from 128 on, its
first bit makes P's exponent field, in the upper half, that of 2 P.

A subnormal number's bits, with k exponent units more, are the number y = h + a 2^(k - 1), h half of m. So, for
subnormal and normal numbers,

    a 2^k = min(y, 2 y - m)

Three instructions on 256-bit registers begin in a cycle, but only two products, comparisons or minima; a register of
floats is divided in 5 cycles, one of doubles in 8. 1.3 times that is at most 19 instructions in float, less what the
ports cannot share evenly. Finding what may be subnormal takes 6 instructions a register and 10 for two, for the
branches; so cases are told apart, and remembered. A scaled quotient of normal floats takes 15: two magnitudes, the
product by 2^k, the division, r, 4 for s and f, 3 for t, the sign 3; in a loop without any condition, 1.2 times as long
as the division. The conditions of the case take 6 for two registers. Subnormal numerators take 2 more, and 1.35 times
as long without a condition. Numbers of all exponents need a scale for each lane: 18 instructions, and 5 to find
subnormal operands, which take 40. Measured (Xeon 6/167/1, medians of three runs, 2026-11-30) by

    python tools/measure/measure_arguments.py --target=avx2 fdiv

| time over that of ordinary quotients | float | bfloat | double | half |
| --- | --- | --- | --- | --- |
| subnormal quotients of normal numbers | 1.37 | 1.14 | 1.11 | 1.00 |
| one in a hundred of them | 1.42 | 1.17 | 1.07 | 1.00 |
| subnormal numerators | 1.68 | 1.26 | 1.12 | 1.00 |
| one numerator in a hundred | 1.60 | 1.24 | 1.11 | 1.00 |
| subnormal divisors | 1.28 | 1.21 | 1.02 | 1.00 |
| one divisor in a hundred | 1.27 | 1.21 | 1.03 | 1.00 |
| subnormal numerators and divisors | 1.36 | 1.21 | 1.02 | 1.00 |
| subnormal quotients, half zeros | 1.60 | 1.28 | 1.18 | 1.00 |
| subnormal quotients, few NaN | 1.86 | 1.59 | 1.25 | 1.00 |
| all exponents | 2.34 | 2.00 | 1.28 | 1.00 |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Final

from tlx.ir.types import DOUBLE
from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, any_lane
from tlx.lower.legalize.math.division_operands import DivisionOperands, Extremes, extreme_words
from tlx.lower.legalize.registers import emit_interleaved

_LOWERED: Final = 64
"""The exponent by which divisors of subnormal numbers are lowered, so that no scaled quotient is subnormal."""


class DivisionCase(IntEnum):
    """What the operands and quotients of some registers may be, where some are subnormal.

    Each case but the last requires that of all lanes. Its code finds out whether that holds as far as results depend on
    it: subnormal numerators are only slow, and looked for in the first register.
    """

    NORMAL_OPERANDS = 1
    """Numerators are normal or zero, divisors are normal, quotients are at most 2^26."""
    NORMAL_DIVISORS = 2
    """The same, but numerators may be subnormal; quotients of doubles are at most 2^122."""
    NORMAL_QUOTIENTS = 3
    """Quotients are normal, zero or infinite, operands are below 2^102 (float)."""
    NORMAL_NUMBERS = 4
    """No operand is subnormal, no divisor is zero."""
    ANY = 5


@dataclass(frozen=True, slots=True)
class DivisionAttempt:
    """Quotients in the course of their computation.

    Attributes:
        fails: An i1, true if the case does not hold; None if it always does.
        finish: Emits the rest; returns the registers of quotients.
    """

    fails: Value | None
    finish: Callable[[], list[Value]]


def cases_of(lanes: LaneArithmetic) -> list[DivisionCase]:
    """The cases that are told apart; of doubles, whose division takes longer, fewer."""
    return [case for case in DivisionCase if lanes.element != DOUBLE or case is not DivisionCase.NORMAL_OPERANDS]


def begin_quotients(operands: DivisionOperands, case: DivisionCase) -> DivisionAttempt:
    """Quotients of registers in a case."""
    if case is DivisionCase.NORMAL_QUOTIENTS:
        return _unscaled(operands)
    if case is DivisionCase.NORMAL_NUMBERS:
        extremes = Extremes.of(operands)
        fails = extremes.lanes.b.binary("or", extremes.have_subnormal_numerators(), extremes.have_subnormal_divisors())
        return DivisionAttempt(any_lane(extremes.lanes, fails), lambda: _each_quotient(operands, _scaled_where_small))
    if case is DivisionCase.ANY:
        return DivisionAttempt(None, lambda: _each_quotient(operands, _careful_quotient))
    return _scaled(operands, case)


def _each_quotient(
    operands: DivisionOperands, quotient: Callable[[LaneArithmetic, Value, Value], Value]
) -> list[Value]:
    pairs = zip(operands.magnitudes(operands.numerators), operands.magnitudes(operands.divisors), strict=True)
    lanes = operands.floats
    magnitudes = emit_interleaved(lanes.b, [partial(quotient, lanes, *pair) for pair in pairs])
    return operands.signed(operands.rounded(magnitudes))


def _scaled(operands: DivisionOperands, case: DivisionCase) -> DivisionAttempt:
    """Quotients by normal divisors, where some may be subnormal.

    Whether numerators are normal is a question of speed alone, which the first register answers for all.
    """
    lanes = operands.floats
    b, k = lanes.b, scale_exponent(lanes)
    divisors = operands.magnitudes(operands.divisors)
    if case is DivisionCase.NORMAL_OPERANDS:
        numerators = operands.magnitudes(operands.numerators)
        dividends = [lanes.mul(x, 2.0**k) for x in numerators]
    else:
        numerators = operands.magnitudes(operands.numerators, k)
        dividends = [_normalized(lanes, x, k) for x in numerators]
    ratios = [lanes.div(*pair) for pair in zip(dividends, divisors, strict=True)]
    words, largest, fraction = extreme_words(lanes, [lanes.bits(ratio) for ratio in ratios], "umax")
    greatest = 2 * lanes.bias - 1 - (lanes.fraction - operands.lanes.fraction)
    if case is DivisionCase.NORMAL_OPERANDS:
        # The only negative magnitudes are NaN, so that one comparison of numbers is enough.
        fails = lanes.compare("ugt", lanes.from_bits(largest), 2.0 ** (greatest - lanes.bias))
        fails = b.binary("or", fails, lanes.compare("olt", numerators[0], 2.0 ** (1 - lanes.bias)))
    else:
        fails = b.icmp("ugt", largest, words.word(greatest << fraction))

    def finish() -> list[Value]:
        if lanes.accuracy.short:
            return _rounded_bfloats(operands, ratios)
        return _rounded(operands, list(zip(dividends, divisors, ratios, strict=True)))

    return DivisionAttempt(any_lane(words, fails), finish)


def _rounded(operands: DivisionOperands, divisions: Sequence[tuple[Value, Value, Value]]) -> list[Value]:
    """Quotients by the bits of t; of each division the dividend, the divisor and q are given."""
    lanes = operands.floats
    k = scale_exponent(lanes)
    least = 2.0 ** (k + 1 - lanes.bias)
    results: list[Value] = []
    for dividend, by, quotient in divisions:
        addend = lanes.choose(lanes.compare("ogt", quotient, least), quotient, least)
        total = _sum(lanes, quotient, _remainder(lanes, dividend, by, quotient), addend)
        results.append(lanes.from_bits(lanes.integer_op("sub", lanes.bits(total), (k + 1) << lanes.fraction)))
    return operands.signed(results)


def _rounded_bfloats(operands: DivisionOperands, ratios: Sequence[Value]) -> list[Value]:
    """Quotients by the two halves of the bits of t; q is given."""
    narrow, lanes = operands.lanes, operands.floats
    dropped, k = lanes.fraction - narrow.fraction, scale_exponent(lanes)
    least, infinity = 2.0 ** (k + 1 - lanes.bias), (2 * lanes.bias + 1) << lanes.fraction
    totals: list[Value] = []
    for ratio in ratios:
        power = lanes.from_bits(lanes.integer_op("and", lanes.bits(ratio), infinity))
        power = lanes.choose(lanes.compare("ogt", power, least), power, least)
        totals.append(lanes.b.fma(power, lanes.number(2.0**dropped), ratio))
    lower = [lanes.from_bits(lanes.integer_op("shl", lanes.bits(total), dropped)) for total in totals]
    halves = zip(operands.truncated(totals), operands.truncated(lower), strict=True)
    sums = [narrow.integer_op("add", narrow.bits(high), narrow.bits(low)) for high, low in halves]
    return operands.signed([narrow.integer_op("sub", x, (k + 1 + dropped) << narrow.fraction) for x in sums])


def _remainder(lanes: LaneArithmetic, dividend: Value, by: Value, quotient: Value) -> Value:
    return lanes.b.fma(lanes.negative(quotient), by, dividend)


def _sum(lanes: LaneArithmetic, quotient: Value, remainder: Value, addend: Value) -> Value:
    """The sum s f + addend, rounded once, where q and r are given."""
    b, one = lanes.b, lanes.bias << lanes.fraction
    is_above = b.cast("sext", lanes.compare("ogt", remainder, 0.0), lanes.words)
    is_exact = b.cast("sext", b.icmp("eq", lanes.bits(remainder), lanes.word(0)), lanes.words)
    upper = lanes.from_bits(b.binary("sub", lanes.bits(quotient), is_above))
    if lanes.constraint:
        # Otherwise LLVM blends the two factors, which takes three instructions instead of one.
        is_exact = b.opaque(is_exact, lanes.constraint)
    factor = lanes.from_bits(b.binary("sub", lanes.word(one - 1), is_exact))
    return b.fma(upper, factor, addend)


def _unscaled(operands: DivisionOperands) -> DivisionAttempt:
    """Normal quotients of any numbers.

    No quotient of bfloats is in the middle between two, so that adding half of a last place rounds it.
    """
    narrow, lanes = operands.lanes, operands.floats
    b, k = lanes.b, lanes.fraction + 2
    raised = (operands.magnitudes(registers, k) for registers in (operands.numerators, operands.divisors))
    pairs = zip(*([_normalized(lanes, x, k) for x in registers] for registers in raised), strict=True)
    ratios = [lanes.div(*pair) for pair in pairs]
    sizes = operands.magnitude_bits([*operands.numerators, *operands.divisors])
    words, largest, fraction = extreme_words(narrow, sizes, "umax")
    is_large = b.icmp("sgt", largest, words.word((2 * lanes.bias - k) << fraction))
    sizes = [lanes.integer_op("sub", lanes.bits(ratio), 1 + lanes.sign_bit) for ratio in ratios]
    others, least, fraction = extreme_words(lanes, sizes, "smin")
    is_small = b.icmp("slt", least, others.word(others.sign_bit + (1 << fraction)))
    if words.count == others.count:
        fails = any_lane(words, b.binary("or", is_large, is_small))
    else:
        fails = b.binary("or", any_lane(words, is_large), any_lane(others, is_small))

    def finish() -> list[Value]:
        if not lanes.accuracy.short:
            return operands.signed(ratios)
        half = 1 << (lanes.fraction - narrow.fraction - 1)
        nearest = [lanes.from_bits(lanes.integer_op("add", lanes.bits(ratio), half)) for ratio in ratios]
        return operands.signed(operands.truncated(nearest))

    return DivisionAttempt(fails, finish)


def scale_exponent(lanes: LaneArithmetic) -> int:
    """The exponent k of the scale: t may be 2^17 times as large as a quotient of bfloats, otherwise twice."""
    return 84 if lanes.accuracy.short else 100 if lanes.single else 900


def raised_magnitude(lanes: LaneArithmetic, x: Value, exponent: int) -> Value:
    """A magnitude times 2^exponent, by instructions that have no subnormal operands or results."""
    return _normalized(
        lanes, lanes.from_bits(lanes.integer_op("add", lanes.bits(x), exponent << lanes.fraction)), exponent
    )


def _normalized(lanes: LaneArithmetic, normal: Value, exponent: int) -> Value:
    """A magnitude times 2^exponent; given that for a normal number, by adding to the exponent field."""
    subnormal = lanes.b.fma(normal, lanes.number(2.0), lanes.number(-(2.0 ** (exponent + 1 - lanes.bias))))
    return lanes.choose(lanes.compare("olt", normal, subnormal), normal, subnormal)


def _scaled_where_small(lanes: LaneArithmetic, dividend: Value, by: Value) -> Value:
    """A quotient whose operands are not subnormal, scaled where it is below the least normal number.

    A subnormal q would be slow: only a below 2^-124 by b above 2^126 has one (float), whose quotient is zero.
    """
    raised = lanes.mul(dividend, 2.0 ** (lanes.bias - 1))
    is_small = lanes.compare("olt", raised, by)
    raised = lanes.choose(is_small, raised, 0.0)
    quotient = lanes.div(lanes.choose(lanes.compare("ogt", raised, dividend), raised, dividend), by)
    return _rounded_where_small(lanes, is_small, quotient, (raised, by), 1.0)


def _careful_quotient(lanes: LaneArithmetic, dividend: Value, by: Value) -> Value:
    """A quotient of any operands, scaled where it is below the least normal number.

    |b| is lowered there, so that no q is subnormal.
    """
    b, one = lanes.b, lanes.bias << lanes.fraction
    (dividend, up), (by, by_up) = (_raised_and_exponent(lanes, x) for x in (dividend, by))
    is_small = _is_below(lanes, *(b.binary("sub", lanes.bits(x), n) for x, n in ((dividend, up), (by, by_up))))
    is_small = b.binary("and", is_small, lanes.compare("ord", by, by))
    left = b.binary("sub", lanes.word((lanes.bias - 1) << lanes.fraction), up)
    dividend, by = (
        lanes.mul(x, lanes.from_bits(lanes.integer_op("add", b.select(is_small, *exponents), one)))
        for x, exponents in ((dividend, (left, by_up)), (by, (lanes.word(-_LOWERED << lanes.fraction), up)))
    )
    return _rounded_where_small(lanes, is_small, lanes.div(dividend, by), (dividend, by), 2.0**_LOWERED)


def _rounded_where_small(
    lanes: LaneArithmetic, is_small: Value, quotient: Value, division: tuple[Value, Value], magic: float
) -> Value:
    """A magnitude from q, whose bits those of s f + magic end in where it is small; elsewhere it is q.

    The remainder is zero elsewhere, as that of tiny numbers may be subnormal.
    """
    addend = lanes.choose(is_small, magic, 0.0)
    if lanes.accuracy.short:
        total = lanes.add(quotient, addend)
    else:
        dividend, by = (lanes.choose(is_small, x, 0.0) for x in division)
        total = _sum(lanes, quotient, _remainder(lanes, dividend, by, quotient), addend)
    return lanes.from_bits(lanes.integer_op("sub", lanes.bits(total), lanes.bits(addend)))


def _is_below(lanes: LaneArithmetic, dividend: Value, divisor: Value) -> Value:
    """Where a / b is below the least normal number, by the bits of a and b."""
    bound = lanes.integer_op("sub", divisor, (lanes.bias - 1) << lanes.fraction)
    return lanes.b.icmp("sgt", bound, dividend)


def _raised_and_exponent(lanes: LaneArithmetic, x: Value) -> tuple[Value, Value]:
    """Magnitudes, subnormal ones times a power of two that makes them normal; its exponent, in the exponent field."""
    b, up, word = lanes.b, lanes.fraction + 1, lanes.bits(x)
    is_subnormal = b.icmp("slt", word, lanes.word(1 << lanes.fraction))
    exponent, unit = (b.select(is_subnormal, lanes.word(n << lanes.fraction), lanes.word(0)) for n in (up, up + 1))
    raised = lanes.from_bits(b.binary("or", word, unit))
    return lanes.sub(raised, lanes.from_bits(unit)), exponent
