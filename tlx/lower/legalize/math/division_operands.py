"""The operands of divisions in registers, and what can be said of them by comparisons of integers.

Bits of positive numbers are in the order of the numbers, and an exponent field less is half the number. Let A and B be
the bits of magnitudes, F the exponent field's unit and L the least integer. A - 1 + L is the greatest integer for zero,
and B - F + L is at least zero for subnormal numbers and zero, otherwise negative: nothing but comparisons of signed
integers is needed, as not every machine compares unsigned ones.

Of doubles, the upper words are enough. Few machines have a minimum of longer ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import zip_longest

from tlx.ir.types import DOUBLE, FLOAT
from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic


def _unchanged(registers: Sequence[Value]) -> list[Value]:
    return list(registers)


@dataclass(frozen=True, slots=True)
class DivisionOperands:
    """Numerators and divisors in registers; those of bfloat are divided as floats.

    Attributes:
        lanes: Arithmetic on the registers; of bfloat on their bits alone.
        numerators: Registers.
        divisors: As many registers.
        floats: Arithmetic on the registers that are divided.
        widened: Emits registers that are divided, from registers of operands.
        rounded: Emits registers of quotients, from those that were divided.
        truncated: The same, without the bits that quotients do not have.
    """

    lanes: LaneArithmetic
    numerators: Sequence[Value]
    divisors: Sequence[Value]
    floats: LaneArithmetic
    widened: Callable[[Sequence[Value]], list[Value]] = _unchanged
    rounded: Callable[[Sequence[Value]], list[Value]] = _unchanged
    truncated: Callable[[Sequence[Value]], list[Value]] = _unchanged

    def magnitude_bits(self, registers: Sequence[Value], exponent: int = 0) -> list[Value]:
        """The bits of operands' magnitudes, to whose exponent fields a number is added."""
        lanes = self.lanes
        words = [lanes.integer_op("and", lanes.bits(x), lanes.sign_bit - 1) for x in registers]
        return [lanes.integer_op("add", x, exponent << lanes.fraction) for x in words] if exponent else words

    def magnitudes(self, registers: Sequence[Value], exponent: int = 0) -> list[Value]:
        """The floats with the bits of `magnitude_bits`."""
        words = self.widened(self.magnitude_bits(registers, exponent))
        return [self.floats.from_bits(self.floats.bits(x)) for x in words]

    def signed(self, magnitudes: Sequence[Value]) -> list[Value]:
        """Quotients, given their magnitudes in registers like the operands."""
        lanes, b = self.lanes, self.lanes.b
        signed: list[Value] = []
        for magnitude, numerator, divisor in zip(magnitudes, self.numerators, self.divisors, strict=True):
            bits = with_sign_of_quotient(lanes, lanes.bits(magnitude), numerator, divisor)
            signed.append(b.cast("bitcast", bits, numerator.type))
        return signed

    def quotients_below(self, exponent: int) -> Value:
        """Where a quotient other than zero may be below 2^-exponent, by the exponent fields of its operands."""
        words, low, fraction = _words_of(self.lanes, _distances(self.lanes, self.numerators, 1))
        _, high, _ = _words_of(self.lanes, _distances(self.lanes, self.divisors, 0))
        less = (exponent << fraction) + 1
        masks: list[Value] = []
        for numerator, divisor in zip(low, high, strict=True):
            bound = _extreme(words, "smax", divisor, words.word(less + words.sign_bit))
            masks.append(words.b.icmp("slt", numerator, words.integer_op("sub", bound, less)))
        return reduce(partial(words.b.binary, "or"), masks)


@dataclass(frozen=True, slots=True)
class Extremes:
    """The least magnitude above zero of numerators, and the greatest of divisors, as integers.

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
        numerators, divisors = (list(dict.fromkeys(x)) for x in (operands.numerators, operands.divisors))
        words, least, fraction = extreme_words(lanes, _distances(lanes, numerators, 1), "smin")
        _, most, _ = extreme_words(lanes, _distances(lanes, divisors, 1 << lanes.fraction), "smax")
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

    def have_subnormal_divisors(self) -> Value:
        """Where a divisor is subnormal or zero."""
        return self.lanes.b.icmp("sge", self.most, self.lanes.word(0))


def _distances(lanes: LaneArithmetic, registers: Sequence[Value], less: int) -> list[Value]:
    """Bits of magnitudes, less a number, plus the least integer."""
    magnitudes = [lanes.integer_op("and", lanes.bits(x), lanes.sign_bit - 1) for x in registers]
    return [lanes.integer_op("sub", magnitude, less + lanes.sign_bit) for magnitude in magnitudes]


def _words_of(lanes: LaneArithmetic, registers: Sequence[Value]) -> tuple[LaneArithmetic, Sequence[Value], int]:
    """Integers, of longer ones the upper words; and the fraction bits of these."""
    if lanes.element != DOUBLE:
        return lanes, registers, lanes.fraction
    words = LaneArithmetic(lanes.b, 2 * lanes.count, FLOAT)
    return words, _upper_words(lanes, words, registers), lanes.fraction - 32


def extreme_words(lanes: LaneArithmetic, registers: Sequence[Value], name: str) -> tuple[LaneArithmetic, Value, int]:
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
