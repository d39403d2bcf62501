"""Quotients on machines without instructions for exponents: by the division instruction, or scaled where it is slow.

Let u be the least subnormal number and 2^k a power of two. The division instruction rounds a 2^k / b, which is normal,
to q, and r = |a| 2^k - q |b| is exact. The bits of |a / b| are

    s = q, or the next number above it where r > 0
    f = 1, or 1 - 2^-p where r is not 0, p being the bits of a significand
    t = s f + max(q, m), rounded once,    m the least normal number times 2^k
    bits(t) - bits(2 m) + ulp             which are bits(t) - (k + 1) exponent units

Where |a / b| is subnormal, t is from m to 2 m: its ulp is u 2^k, and it ends in the bits of the quotient. s f is q if
that is exact, else between the same two numbers as the quotient, so that t is rounded as the quotient itself would be.
Where |a / b| is normal, t is 2 q. Of bfloats, q + max(q, m) is enough: rounded to bfloat, it needs no correction.

A subnormal number's bits, with k exponent units more, are the number y = h + a 2^(k - 1), h half of m. So, for
subnormal and normal numbers,

    a 2^k = min(y, 2 y - m)

One branch decides for several registers. The next registers probably are of the same case (`DivisionCase`): that is
remembered in a variable of the function, for _REMEMBERED blocks, in which only the conditions of that case are tested.

    %remembered = load i32, ptr %cell                   ; the case, and for how many blocks; 0: no number is subnormal
    br i1 %is.known, label %known, label %compare
    compare:
      br i1 %may.be.subnormal, label %choose, label %divide
    known:
      store i32 %remembered.less.one, ptr %cell
      br i1 %is.first.case, label %normal.operands, label %case
    normal.operands:
      br i1 %fails, label %normal.divisors, label %done

Three instructions on 256-bit registers begin in a cycle; a register of floats is divided in 5 cycles, one of doubles in
8. 1.3 times that is 19 instructions in float. Finding what may be subnormal takes 6 instructions a register and 10 for
two, for the branches. Without these, a scaled quotient of normal floats takes 18: two magnitudes, the product by 2^k,
the division, r, 4 for s and f, 3 for t, the sign 3, and the conditions 6 for two registers. Subnormal numerators take
2 more. Blocks of four registers need fewer instructions, but more than 16 registers. Measured (Xeon 6/167/1, `avx2`,
4096 elements, 2026-11-30):

| time over that of ordinary quotients | float | bfloat | double |
| --- | --- | --- | --- |
| subnormal quotients of normal numbers | 1.33 | 1.17 | 1.10 |
| one in ten of them | 1.34 | 1.16 | 1.11 |
| one in a hundred | 1.26 | 1.16 | 1.08 |
| subnormal numerators | 1.46 | 1.31 | 1.10 |
| subnormal divisors, or both | 1.28 | 1.40 | 1.04 |
| numbers of all exponents | 2.1 | 2.2 | 1.5 |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial, reduce
from itertools import zip_longest
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.instructions import Block
from tlx.ir.rewrite import split_block
from tlx.ir.types import DOUBLE, FLOAT, I32, IntType
from tlx.ir.values import Value, const_int
from tlx.lower.legalize.math.arithmetic import LaneArithmetic
from tlx.lower.legalize.registers import emit_interleaved

_LOWERED: Final = 64
"""The exponent by which divisors of subnormal numbers are lowered, so that no scaled quotient is subnormal."""
_FACTOR: Final = 2.0
"""Of both operands of a division in double that LLVM may not turn into one in float."""
_REMEMBERED: Final = 128
"""Blocks of registers for which a case is remembered that occurs again; a power of two."""
_BRIEFLY: Final = 8
"""The same where it occurs first."""
_EXPIRED: Final = 1
"""What is remembered after these blocks: less than any case."""


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
    """Numerators are normal or zero, divisors are normal."""
    ANY = 5


_NEXT: Final = {
    DivisionCase.NORMAL_OPERANDS: DivisionCase.NORMAL_DIVISORS,
    DivisionCase.NORMAL_DIVISORS: DivisionCase.NORMAL_NUMBERS,
    DivisionCase.NORMAL_QUOTIENTS: DivisionCase.ANY,
    DivisionCase.NORMAL_NUMBERS: DivisionCase.ANY,
}
"""The case that is tried where another one does not hold."""


@dataclass(frozen=True, slots=True)
class DivisionOperands:
    """Numerators and divisors in registers, and arithmetic on these or on their bits."""

    lanes: LaneArithmetic
    numerators: Sequence[Value]
    divisors: Sequence[Value]


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


def begin_quotients(
    lanes: LaneArithmetic,
    pairs: Sequence[tuple[Value, Value]],
    case: DivisionCase,
    operands: DivisionOperands,
) -> DivisionAttempt:
    """Quotients of registers in a case; of bfloats the magnitudes, as floats that are to be rounded.

    Args:
        lanes: Arithmetic on registers like those of the pairs.
        pairs: Numerators and divisors.
        case: The case.
        operands: The same operands, perhaps in narrower elements.
    """

    def emitted(quotient: Callable[[LaneArithmetic, Value, Value], Value]) -> list[Value]:
        return emit_interleaved(lanes.b, [partial(quotient, lanes, *pair) for pair in pairs])

    if case is DivisionCase.NORMAL_QUOTIENTS:
        return _unscaled(lanes, pairs, operands)
    if case is DivisionCase.NORMAL_NUMBERS:
        extremes = Extremes.of(operands)
        fails = lanes.b.binary("or", extremes.have_subnormal_numerators(), extremes.have_special_divisors())
        return DivisionAttempt(any_lane(extremes.lanes, fails), lambda: emitted(_scaled_where_small))
    if case is DivisionCase.ANY:
        return DivisionAttempt(None, lambda: emitted(_double_quotient if lanes.single else _careful_quotient))
    return _scaled(lanes, pairs, case)


def _scaled(lanes: LaneArithmetic, pairs: Sequence[tuple[Value, Value]], case: DivisionCase) -> DivisionAttempt:
    """Quotients by normal divisors, where some may be subnormal.

    Whether numerators are normal is a question of speed alone, which the first register answers for all.
    """
    b, k = lanes.b, _scale_exponent(lanes)
    is_normal = case is DivisionCase.NORMAL_OPERANDS

    def divided(numerator: Value, divisor: Value) -> tuple[Value, Value, Value]:
        by, size = lanes.magnitude(divisor), lanes.magnitude(numerator)
        dividend = lanes.mul(size, 2.0**k) if is_normal else raised_magnitude(lanes, size, k)
        return dividend, by, lanes.div(dividend, by)

    divisions = [divided(*pair) for pair in pairs]
    words, largest, fraction = _extreme_words(lanes, [lanes.bits(q) for _, _, q in divisions], "umax")
    if is_normal:
        # The only negative magnitudes are NaN, so that one comparison of numbers is enough.
        fails = lanes.compare("ugt", lanes.from_bits(largest), 2.0 ** (lanes.bias - 1))
        is_subnormal = lanes.compare("olt", lanes.magnitude(pairs[0][0]), 2.0 ** (1 - lanes.bias))
        fails = b.binary("or", fails, is_subnormal)
    else:
        fails = b.icmp("ugt", largest, words.word((2 * lanes.bias - 1) << fraction))

    def rounded(dividend: Value, by: Value, quotient: Value, signed: tuple[Value, Value]) -> Value:
        bits = lanes.integer_op("sub", lanes.bits(_sum(lanes, dividend, by, quotient)), (k + 1) << lanes.fraction)
        return lanes.from_bits(bits if lanes.accuracy.for_bfloat else with_sign_of_quotient(lanes, bits, *signed))

    def finish() -> list[Value]:
        return [rounded(*d, pair) for d, pair in zip(divisions, pairs, strict=True)]

    return DivisionAttempt(any_lane(words, fails), finish)


def _sum(lanes: LaneArithmetic, dividend: Value, by: Value, quotient: Value) -> Value:
    """The sum t, by whose bits a quotient is rounded."""
    b, one = lanes.b, lanes.bias << lanes.fraction
    least = 2.0 ** (_scale_exponent(lanes) + 1 - lanes.bias)
    addend = lanes.choose(lanes.compare("ogt", quotient, least), quotient, least)
    if lanes.accuracy.for_bfloat:
        return lanes.add(quotient, addend)
    remainder = b.fma(lanes.negative(quotient), by, dividend)
    is_above = b.cast("sext", lanes.compare("ogt", remainder, 0.0), lanes.words)
    is_exact = b.cast("sext", b.icmp("eq", lanes.bits(remainder), lanes.word(0)), lanes.words)
    upper = lanes.from_bits(b.binary("sub", lanes.bits(quotient), is_above))
    if lanes.constraint:
        # Otherwise LLVM blends the two factors, which takes three instructions instead of one.
        is_exact = b.opaque(is_exact, lanes.constraint)
    factor = lanes.from_bits(b.binary("sub", lanes.word(one - 1), is_exact))
    return b.fma(upper, factor, addend)


def _unscaled(
    lanes: LaneArithmetic, pairs: Sequence[tuple[Value, Value]], operands: DivisionOperands
) -> DivisionAttempt:
    """Normal quotients of any numbers."""
    b, k = lanes.b, lanes.fraction + 2

    def divided(numerator: Value, divisor: Value) -> Value:
        return lanes.div(*(raised_magnitude(lanes, lanes.magnitude(x), k) for x in (numerator, divisor)))

    ratios = [divided(*pair) for pair in pairs]
    narrow, registers = operands.lanes, (*operands.numerators, *operands.divisors)
    sizes = [narrow.integer_op("and", narrow.bits(x), narrow.sign_bit - 1) for x in registers]
    words, largest, fraction = _extreme_words(narrow, sizes, "umax")
    is_large = b.icmp("sgt", largest, words.word((2 * lanes.bias - k) << fraction))
    sizes = [lanes.integer_op("sub", lanes.bits(ratio), 1 + lanes.sign_bit) for ratio in ratios]
    others, least, fraction = _extreme_words(lanes, sizes, "smin")
    is_small = b.icmp("slt", least, others.word(others.sign_bit + (1 << fraction)))
    if words.count == others.count:
        fails = any_lane(words, b.binary("or", is_large, is_small))
    else:
        fails = b.binary("or", any_lane(words, is_large), any_lane(others, is_small))

    def signed(ratio: Value, pair: tuple[Value, Value]) -> Value:
        return lanes.from_bits(with_sign_of_quotient(lanes, lanes.bits(ratio), *pair))

    def finish() -> list[Value]:
        if lanes.accuracy.for_bfloat:
            return ratios
        return [signed(*both) for both in zip(ratios, pairs, strict=True)]

    return DivisionAttempt(fails, finish)


def _scale_exponent(lanes: LaneArithmetic) -> int:
    return 900 if lanes.element == DOUBLE else 100


def raised_magnitude(lanes: LaneArithmetic, x: Value, exponent: int) -> Value:
    """A magnitude times 2^exponent, by instructions that have no subnormal operands or results."""
    raised = lanes.integer_op("add", lanes.bits(x), exponent << lanes.fraction)
    normal = lanes.from_bits(raised)
    subnormal = lanes.b.fma(normal, lanes.number(2.0), lanes.number(-(2.0 ** (exponent + 1 - lanes.bias))))
    return lanes.choose(lanes.compare("olt", normal, subnormal), normal, subnormal)


def quotients_by_case(
    operands: DivisionOperands, divide: Callable[[], list[Value]], begin: Callable[[DivisionCase], DivisionAttempt]
) -> list[Value]:
    """Quotients, by code that is chosen at run time.

    The builder is in another block afterwards.

    Args:
        operands: What is divided.
        divide: Emits the code for registers where no operand or quotient is subnormal.
        begin: Emits that for a case; called once for each.
    """
    lanes = operands.lanes
    b, cases = lanes.b, cases_of(lanes)
    cell = _zero_cell(b)
    end = split_block(b.function, b.block, b.index, "quotients.end")
    head, incoming = b.block, list[tuple[list[Value], Block]]()
    blocks = [head]
    for stem in ("compare", "choose", "divide", "known", *(case.name.lower().replace("_", ".") for case in cases)):
        blocks.append(b.new_block(stem, blocks[-1]))
    _, compare, choose, plain, known, *starts = blocks
    start_of = dict(zip(cases, starts, strict=True))

    b.at_end(head)
    remembered = b.load(I32, cell, 4)
    b.branch_if(b.icmp("ugt", remembered, _EXPIRED), known, compare)

    b.at_end(compare)
    extremes = Extremes.of(operands)
    b.branch_if(any_lane(extremes.lanes, extremes.may_have_subnormal_quotients()), choose, plain)

    b.at_end(choose)
    first = _first_case(operands, extremes)
    is_repeated = b.binary("and", b.icmp("ne", remembered, 0), b.icmp("ult", first, DivisionCase.ANY * _REMEMBERED))
    first = b.add(first, b.select(is_repeated, const_int(I32, _REMEMBERED - _BRIEFLY), const_int(I32, 0)))
    b.branch(known)

    b.at_end(plain)
    b.store(const_int(I32, 0), cell, 4)
    incoming.append((divide(), b.block))
    b.branch(end)

    b.at_end(known)
    count = b.phi(I32, [(remembered, head), (first, choose)])
    left = b.binary("and", count, const_int(I32, _REMEMBERED - 1))
    is_last = b.icmp("eq", left, 0)
    b.store(b.select(is_last, const_int(I32, _EXPIRED), b.sub(count, 1)), cell, 4)
    for case in cases[:-1]:
        following = start_of[DivisionCase.ANY] if case is cases[-2] else b.new_block("case")
        b.branch_if(b.icmp("ult", count, (case + 1) * _REMEMBERED), start_of[case], following)
        b.at_end(following)

    for case in cases:
        b.at_end(start_of[case])
        attempt = begin(case)
        if attempt.fails is not None:
            failed, done = b.if_else_blocks(attempt.fails, ("failed", "done"))
            b.at_end(failed)
            other = _NEXT[case]
            if other is not DivisionCase.ANY:
                rest = b.add(left, other * _REMEMBERED - 1)
                b.store(b.select(is_last, const_int(I32, _EXPIRED), rest), cell, 4)
            elif case is not DivisionCase.NORMAL_NUMBERS:
                b.store(const_int(I32, _remembered(other, _BRIEFLY)), cell, 4)
            b.branch(start_of[other])
            b.at_end(done)
        incoming.append((attempt.finish(), b.block))
        b.branch(end)
    b.block, b.index = end, 0
    return [
        b.phi(values[0].type, list(zip(values, [block for _, block in incoming], strict=True)))
        for values in zip(*(values for values, _ in incoming), strict=True)
    ]


def _remembered(case: DivisionCase, blocks: int) -> int:
    return case * _REMEMBERED + blocks - 1


def _zero_cell(b: Builder) -> Value:
    """A variable of the function, zero at first."""
    cell = b.alloca(I32, "case", 4)
    entry, saved = b.function.entry, (b.block, b.index)
    b.block, b.index = entry, 1
    b.store(const_int(I32, 0), cell, 4)
    inserted = b.index - 1
    b.block, b.index = saved
    if b.block is entry:
        b.index += inserted
    return cell


def any_lane(lanes: LaneArithmetic, mask: Value) -> Value:
    """An i1, true if some lane of a vector of i1 is."""
    return lanes.b.icmp("ne", lanes.b.cast("bitcast", mask, IntType(lanes.count)), 0)


@dataclass(frozen=True, slots=True)
class Extremes:
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

    @staticmethod
    def of(operands: DivisionOperands) -> Extremes:
        """The extremes of registers."""
        lanes = operands.lanes
        words, least, fraction = _extreme_words(lanes, _sizes(lanes, operands.numerators, 1), "smin")
        _, most, _ = _extreme_words(lanes, _sizes(lanes, operands.divisors, 1 << lanes.fraction), "smax")
        return Extremes(words, least, most, fraction)

    def may_have_subnormal_quotients(self) -> Value:
        """Where a quotient or an operand may be subnormal: a / b is at least 2^-126 if A is at least B - 126 F."""
        lanes, field = self.lanes, 1 << self.fraction
        bias = ((lanes.sign_bit >> self.fraction) - 1) // 2
        bound = _extreme(lanes, "smax", self.most, lanes.word((bias - 1) * field + lanes.sign_bit))
        # Upper words that are equal may belong to a quotient below the least normal number.
        bound = lanes.integer_op("sub", bound, (bias - 2) * field - 1)
        return lanes.b.icmp("slt", self.least, bound)

    def have_subnormal_numerators(self) -> Value:
        """Where a numerator is subnormal or the least normal number."""
        return self.lanes.b.icmp("slt", self.least, self.lanes.word(self.lanes.sign_bit + (1 << self.fraction)))

    def have_special_divisors(self) -> Value:
        """Where a divisor is no normal number."""
        return self.lanes.b.icmp("sge", self.most, self.lanes.word(-2 << self.fraction))


def _first_case(operands: DivisionOperands, extremes: Extremes) -> Value:
    """The case to try first, as it is remembered: none where an instruction would have a subnormal result."""
    lanes, words = operands.lanes, extremes.lanes
    b = lanes.b
    is_special = any_lane(words, extremes.have_special_divisors())
    is_subnormal = any_lane(words, extremes.have_subnormal_numerators())
    # Subnormal numbers are less than their exponent field says.
    least = lanes.bias - lanes.fraction - 2
    is_low, is_lower = (
        any_lane(words, _quotients_below(operands, exponent)) for exponent in (least, least + _scale_exponent(lanes))
    )

    def either(condition: Value, case: DivisionCase | Value, otherwise: DivisionCase | Value) -> Value:
        first, second = (
            const_int(I32, _remembered(x, _BRIEFLY)) if isinstance(x, DivisionCase) else x for x in (case, otherwise)
        )
        return b.select(condition, first, second)

    normal = either(is_subnormal, DivisionCase.NORMAL_DIVISORS, cases_of(lanes)[0])
    low = either(is_subnormal, DivisionCase.ANY, DivisionCase.NORMAL_NUMBERS)
    special = either(is_low, DivisionCase.ANY, DivisionCase.NORMAL_QUOTIENTS)
    return either(is_special, special, either(is_lower, low, normal))


def _quotients_below(operands: DivisionOperands, exponent: int) -> Value:
    """Where a quotient other than zero may be below 2^-exponent, by the exponent fields of its operands."""
    lanes = operands.lanes
    words, low, fraction = _words_of(lanes, _sizes(lanes, operands.numerators, 1, distinct=False))
    _, high, _ = _words_of(lanes, _sizes(lanes, operands.divisors, 0, distinct=False))
    less = (exponent << fraction) + 1
    masks: list[Value] = []
    for numerator, divisor in zip(low, high, strict=True):
        bound = _extreme(words, "smax", divisor, words.word(less + words.sign_bit))
        masks.append(words.b.icmp("slt", numerator, words.integer_op("sub", bound, less)))
    return reduce(partial(words.b.binary, "or"), masks)


def _sizes(lanes: LaneArithmetic, registers: Sequence[Value], less: int, *, distinct: bool = True) -> list[Value]:
    """Bits of magnitudes, less a number, plus the least integer."""
    registers = list(dict.fromkeys(registers)) if distinct else registers
    magnitudes = [lanes.integer_op("and", lanes.bits(x), lanes.sign_bit - 1) for x in registers]
    return [lanes.integer_op("sub", magnitude, less + lanes.sign_bit) for magnitude in magnitudes]


def _words_of(lanes: LaneArithmetic, registers: Sequence[Value]) -> tuple[LaneArithmetic, Sequence[Value], int]:
    """Integers, of longer ones the upper words; and the fraction bits of these."""
    if lanes.element != DOUBLE:
        return lanes, registers, lanes.fraction
    words = LaneArithmetic(lanes.b, 2 * lanes.count, FLOAT)
    return words, _upper_words(lanes, words, registers), lanes.fraction - 32


def _extreme_words(lanes: LaneArithmetic, registers: Sequence[Value], name: str) -> tuple[LaneArithmetic, Value, int]:
    """The minimum or maximum of integers, of longer ones that of the upper words; and the fraction bits of these."""
    words, parts, fraction = _words_of(lanes, registers)
    return words, reduce(partial(_extreme, words, name), parts), fraction


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


def _double_quotient(lanes: LaneArithmetic, numerator: Value, divisor: Value) -> Value:
    """A quotient of floats, computed in double.

    That is correct, also where the result is subnormal: no quotient of two significands of 24 bits is within 2^-49 of
    itself of the middle between two numbers of at most 24 bits, but those in the middle, which are exact in double.
    LLVM knows that, too: without the factor it divides floats.
    """
    b, doubles = lanes.b, LaneArithmetic(lanes.b, lanes.count, DOUBLE)
    wide = (doubles.mul(b.cast("fpext", x, doubles.floats), _FACTOR) for x in (numerator, divisor))
    return b.cast("fptrunc", doubles.div(*wide), lanes.floats)


def _scaled_where_small(lanes: LaneArithmetic, numerator: Value, divisor: Value) -> Value:
    """A quotient whose operands are not subnormal, scaled where it is below the least normal number.

    A subnormal q would be slow: only a below 2^-124 by b above 2^126 has one (float), whose quotient is zero.

    The lanes that are not small have a remainder of zero, as the remainder of tiny numbers may be subnormal.
    """
    b = lanes.b
    dividend, by = (lanes.magnitude(x) for x in (numerator, divisor))
    raised = lanes.mul(dividend, 2.0 ** (lanes.bias - 1))
    is_small = lanes.compare("olt", raised, by)
    raised = lanes.choose(is_small, raised, 0.0)
    quotient = lanes.div(lanes.choose(lanes.compare("ogt", raised, dividend), raised, dividend), by)
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
    (dividend, up), (by, by_up) = (_raised_and_exponent(lanes, lanes.magnitude(x)) for x in (numerator, divisor))
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
