"""Quotients, computed by instructions that never have a subnormal operand or result.

With one, a division takes microcode on many machines, and 10 to 27 times as long (Xeon 6/207/2, 2026-11-28). The bits
of a subnormal quotient are the integer nearest to a / b / u, with u the least subnormal number.

| machine | quotients |
| --- | --- |
| with instructions for exponents and significands | as fast as a / b; a branch rounds subnormal ones |
| others | a / b, unless some quotient of a few registers may be subnormal: scaled then |
| others, with subnormal operands: double | scaled, operands as well |
| others, with subnormal operands: float, bfloat | computed in double |

With the instructions: let |a| = m 2^i and |b| = k 2^j, 1 <= m, k < 2, q = m / k and e = i - j. |a / b| = q 2^e is q
with another exponent, unless it is subnormal. As q has been rounded already, the integer next to q 2^e / u may have to
be corrected, in the direction of an exact remainder.

Without: where |a / b| is below the least normal number, it is multiplied by a power of two so that u is the ulp of 1,
and q, rounded, is below 1. With r = |a| - q |b|, which is exact,

    s = q, or the next number above it where r > 0
    f = 1, or 1 - 2^-24 where r is not 0
    n = s f + 1, rounded once

s f is q if that is exact, else between the same two numbers as |a / b|: n is |a / b| + 1, rounded, and ends in the bits
of the quotient. Of bfloats, q + 1 is enough: rounded to bfloat, it needs no correction.

Three instructions on 256-bit registers begin in a cycle; a register of floats is divided in 5 cycles, one of doubles in
8. 1.3 times that is 19 instructions in float. Finding what may be subnormal takes 6 instructions a register, and the
two branches for two registers 10. A scaled quotient takes 18: the factor 4, the division, the remainder 2, s and f 5,
the sum 3 and the sign 3. That is 29 in all, and 10 cycles. Measured (Xeon 6/207/2, `avx2`, 4096 elements, 2026-11-29):

| time over that of ordinary quotients | float | bfloat | double |
| --- | --- | --- | --- |
| subnormal or zero quotients of normal numbers | 2.2 | 1.7 | 1.4 |
| one in ten of them | 1.8 | 1.7 | 1.1 |
| subnormal operands | 2.9 | 2.9 | 2.6 |

No arrangement of these steps was found that is below 1.3 in float. One factor for all lanes, which only numbers below
2^28 allow, takes 14 instructions: 1.2 times as long as the division without a check, but 1.75 with it, in C. Selecting
by VBLENDVPS would be three instructions; a select of two constants becomes one, so that masks are added instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import zip_longest
from typing import Final

from tlx.ir.types import DOUBLE, FLOAT
from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, either
from tlx.lower.legalize.registers import emit_interleaved
from tlx.target.hardware import FloatInstructions

_LOWERED: Final = 64
"""The exponent by which divisors of subnormal numbers are lowered, so that no scaled quotient is subnormal."""
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
    return branch_on_subnormal(
        lanes,
        numerators,
        divisors,
        divide,
        lambda: scaled_quotients(lanes, pairs),
        lambda: careful_quotients(lanes, pairs),
    )


def branch_on_subnormal(
    lanes: LaneArithmetic,
    numerators: Sequence[Value],
    divisors: Sequence[Value],
    divide: Callable[[], list[Value]],
    scaled: Callable[[], list[Value]],
    careful: Callable[[], list[Value]],
) -> list[Value]:
    """Quotients, by code that is chosen from three at run time.

    Args:
        lanes: Arithmetic on registers like the operands, or on their bits.
        numerators: Registers.
        divisors: As many registers.
        divide: Emits the code for registers where no operand or quotient is subnormal.
        scaled: Emits that for registers where no operand is subnormal, and no divisor is zero, infinite or NaN.
        careful: Emits that for any operands.
    """
    extremes = _extremes(lanes, numerators, divisors)
    return either(
        extremes.lanes,
        extremes.may_have_subnormal_quotients(),
        lambda: either(extremes.lanes, extremes.have_special_operands(), careful, scaled),
        divide,
    )


def scaled_quotients(lanes: LaneArithmetic, pairs: Sequence[tuple[Value, Value]]) -> list[Value]:
    """Quotients of registers as in `branch_on_subnormal`; of bfloats the magnitudes."""
    return emit_interleaved(lanes.b, [partial(_scaled_quotient, lanes, *pair) for pair in pairs])


def careful_quotients(lanes: LaneArithmetic, pairs: Sequence[tuple[Value, Value]]) -> list[Value]:
    """Quotients of registers, for any operands; of bfloats (`lanes.accuracy.for_bfloat`) the magnitudes are enough."""
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
        return lanes.from_bits(bits if lanes.accuracy.for_bfloat else with_sign_of_quotient(lanes, bits, *ratio.signed))

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
    if lanes.accuracy.for_bfloat:
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
    if lanes.accuracy.for_bfloat:
        return bits
    remainder = b.fma(lanes.negative(ratio.quotient), ratio.divisor, ratio.dividend)
    remainder = lanes.choose(small, remainder, 0.0)
    offset = lanes.choose(small, instructions.fraction(b, scaled), 0.0)
    beyond = lanes.mul(offset, instructions.multiply_add_up(b, remainder, offset, lanes.number(1.0)))
    return b.binary("add", bits, lanes.bits(instructions.round_to_bits(b, beyond, small)))


def _scaled_quotient(lanes: LaneArithmetic, numerator: Value, divisor: Value) -> Value:
    """A quotient whose operands are not subnormal, scaled where it is below the least normal number.

    A subnormal q would be slow: only a below 2^-124 by b above 2^126 has one (float), whose quotient is zero.

    The lanes that are not small have a remainder of zero, as the remainder of tiny numbers may be subnormal.
    """
    b = lanes.b
    dividend, by = (lanes.magnitude(x) for x in (numerator, divisor))
    raised = lanes.mul(dividend, 2.0 ** (lanes.bias - 1))
    is_small = lanes.compare("olt", raised, by)
    raised = lanes.choose(is_small, raised, 0.0)
    quotient = lanes.div(_greater(lanes, raised, dividend), by)
    magic = lanes.choose(is_small, 1.0, 0.0)
    if lanes.accuracy.for_bfloat:
        return lanes.from_bits(b.binary("sub", lanes.bits(lanes.add(quotient, magic)), lanes.bits(magic)))
    remainder = b.fma(lanes.negative(lanes.choose(is_small, quotient, 0.0)), by, raised)
    return _rounded_once(lanes, quotient, remainder, magic, (numerator, divisor))


def _careful_quotient(lanes: LaneArithmetic, numerator: Value, divisor: Value) -> Value:
    """A quotient of any operands, scaled where it is below the least normal number.

    |b| is lowered there, so that no q is subnormal.
    """
    b, one = lanes.b, lanes.bias << lanes.fraction
    (dividend, up), (by, by_up) = (_raised(lanes, lanes.magnitude(x)) for x in (numerator, divisor))
    is_small = _is_below(lanes, *(b.binary("sub", lanes.bits(x), n) for x, n in ((dividend, up), (by, by_up))))
    is_small = b.binary("and", is_small, lanes.compare("ord", by, by))
    left = b.binary("sub", lanes.word((lanes.bias - 1) << lanes.fraction), up)
    dividend, by = (
        lanes.mul(x, lanes.from_bits(lanes.integer_op("add", b.select(is_small, *exponents), one)))
        for x, exponents in ((dividend, (left, by_up)), (by, (lanes.word(-_LOWERED << lanes.fraction), up)))
    )
    quotient = lanes.div(dividend, by)
    magic = lanes.choose(is_small, 2.0**_LOWERED, 0.0)
    remaining, times = (lanes.choose(is_small, x, 0.0) for x in (dividend, by))
    remainder = b.fma(lanes.negative(quotient), times, remaining)
    return _rounded_once(lanes, quotient, remainder, magic, (numerator, divisor))


def _rounded_once(
    lanes: LaneArithmetic, quotient: Value, remainder: Value, magic: Value, signed: tuple[Value, Value]
) -> Value:
    """The number whose bits are those of s f + magic, less those of magic; with the sign of the quotient.

    f is 1 or the number below it. LLVM makes a blend of these, which is slow on AVX2, of one comparison and a sum of
    two.

    Args:
        lanes: Arithmetic on registers like the operands.
        quotient: q.
        remainder: r.
        magic: The number whose ulp is u, or zero.
        signed: The operands, of which the quotient has its sign.
    """
    b, one = lanes.b, lanes.bias << lanes.fraction
    is_above, is_below = (
        b.cast("sext", lanes.compare(predicate, remainder, 0.0), lanes.words) for predicate in ("ogt", "olt")
    )
    upper = lanes.from_bits(b.binary("sub", lanes.bits(quotient), is_above))
    factor = lanes.from_bits(lanes.integer_op("add", b.binary("add", is_above, is_below), one))
    bits = b.binary("sub", lanes.bits(b.fma(upper, factor, magic)), lanes.bits(magic))
    return lanes.from_bits(with_sign_of_quotient(lanes, bits, *signed))


def _greater(lanes: LaneArithmetic, x: Value, y: Value) -> Value:
    """The greater of two numbers, y if one is NaN."""
    return lanes.choose(lanes.compare("ogt", x, y), x, y)


def _is_below(lanes: LaneArithmetic, dividend: Value, divisor: Value) -> Value:
    """Where a / b is below the least normal number, by the bits of a and b."""
    bound = lanes.integer_op("sub", divisor, (lanes.bias - 1) << lanes.fraction)
    return lanes.b.icmp("sgt", bound, dividend)


def _raised(lanes: LaneArithmetic, x: Value) -> tuple[Value, Value]:
    """Magnitudes, subnormal ones times a power of two that makes them normal; its exponent, in the exponent field."""
    b, up, word = lanes.b, lanes.fraction + 1, lanes.bits(x)
    is_subnormal = b.icmp("slt", word, lanes.word(1 << lanes.fraction))
    exponent, unit = (b.select(is_subnormal, lanes.word(n << lanes.fraction), lanes.word(0)) for n in (up, up + 1))
    raised = lanes.from_bits(b.binary("or", word, unit))
    return lanes.sub(raised, lanes.from_bits(unit)), exponent


@dataclass(frozen=True, slots=True)
class _Extremes:
    """The least magnitude above zero of numerators, and the greatest of divisors, as integers.

    Bits of positive numbers are in the order of the numbers, and an exponent field less is half the number. Let A and B
    be the bits of magnitudes, F the exponent field's unit and L the least integer. A - 1 + L is the greatest integer
    for zero, and B - F + L is at least zero for subnormal numbers and zero, otherwise negative: nothing but comparisons
    of signed integers is needed, as not every machine compares unsigned ones.

    Of doubles, the upper words are enough. Few machines have a minimum of longer ones.

    Attributes:
        lanes: Arithmetic on registers with words like these.
        least: The minimum of A - 1 + L.
        most: The maximum of B - F + L.
        fraction: Bits of the words below the exponent field.
    """

    lanes: LaneArithmetic
    least: Value
    most: Value
    fraction: int

    def may_have_subnormal_quotients(self) -> Value:
        """Where a quotient or an operand may be subnormal: a / b is at least 2^-126 if A is at least B - 126 F."""
        lanes, field = self.lanes, 1 << self.fraction
        bias = ((lanes.sign_bit >> self.fraction) - 1) // 2
        bound = _extreme(lanes, "smax", self.most, lanes.word((bias - 1) * field + lanes.sign_bit))
        # Upper words that are equal may belong to a quotient below the least normal number.
        bound = lanes.integer_op("sub", bound, (bias - 2) * field - 1)
        return lanes.b.icmp("slt", self.least, bound)

    def have_special_operands(self) -> Value:
        """Where a numerator is subnormal or the least normal number, or a divisor is no normal number."""
        lanes, field = self.lanes, 1 << self.fraction
        numerators = lanes.b.icmp("slt", self.least, lanes.word(lanes.sign_bit + field))
        divisors = lanes.b.icmp("sge", self.most, lanes.word(-2 * field))
        return lanes.b.binary("or", numerators, divisors)


def _extremes(lanes: LaneArithmetic, numerators: Sequence[Value], divisors: Sequence[Value]) -> _Extremes:
    def sizes(registers: Sequence[Value], less: int) -> list[Value]:
        magnitudes = [lanes.integer_op("and", lanes.bits(x), lanes.sign_bit - 1) for x in dict.fromkeys(registers)]
        return [lanes.integer_op("sub", magnitude, less + lanes.sign_bit) for magnitude in magnitudes]

    least, most, words, fraction = sizes(numerators, 1), sizes(divisors, 1 << lanes.fraction), lanes, lanes.fraction
    if lanes.element == DOUBLE:
        words, fraction = LaneArithmetic(lanes.b, 2 * lanes.count, FLOAT), fraction - 32
        least, most = (_upper_words(lanes, words, registers) for registers in (least, most))
    minimum, maximum = (partial(_extreme, words, name) for name in ("smin", "smax"))
    return _Extremes(words, reduce(minimum, least), reduce(maximum, most), fraction)


def _upper_words(lanes: LaneArithmetic, words: LaneArithmetic, registers: Sequence[Value]) -> list[Value]:
    """The upper words of doubles, those of two registers in one: in an order that is one instruction of x86.

    <x0 x1 x2 x3>, <y0 y1 y2 y3>    ->    <x0 x1 y0 y1 x2 x3 y2 y3>
    """
    halves = [lanes.b.cast("bitcast", x, words.words) for x in registers]
    upper, group = int(not lanes.big_endian), min(2, lanes.count)
    order = [
        2 * lane + register + upper
        for first in range(0, lanes.count, group)
        for register in (0, words.count)
        for lane in range(first, first + group)
    ]
    pairs = zip_longest(halves[::2], halves[1::2], fillvalue=halves[-1])
    return [lanes.b.shuffle(x, y, order) for x, y in pairs]


def _extreme(lanes: LaneArithmetic, name: str, x: Value, y: Value) -> Value:
    return lanes.b.call_intrinsic(f"llvm.{name}", [lanes.words], lanes.words, [x, y])


def with_sign_of_quotient(lanes: LaneArithmetic, bits: Value, numerator: Value, divisor: Value) -> Value:
    """The bits of magnitudes, or of quotients, with the sign of quotients."""
    signs = lanes.b.binary("xor", lanes.bits(numerator), lanes.bits(divisor))
    return lanes.b.binary("or", bits, lanes.integer_op("and", signs, lanes.sign_bit))
