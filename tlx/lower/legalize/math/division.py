"""Division of several registers by one number, by products; rounded as the instruction rounds.

Division of 512 bits takes 16 cycles on Intel's machines. With y = 1/d, rounded, which is computed once,

    q0 = n y,    q1 = q0 - (q0 d - n) y,    q2 = q1 - (q1 d - n) y

q1 is one of the two floats next to n/d, so that its remainder is exact, and q2 is n/d rounded to nearest (Markstein,
"Computation of elementary functions on the IBM RISC System/6000 processor", 1990). That requires normal remainders, and
a positive d for the sign of zeros. So d has to be between 2^-24 and 2^24, and n zero or of magnitude between 2^-100 and
2^100; if some element is not, all are divided by the instruction.

bfloat needs no remainder: n y is off by 2^-23, and no quotient of two 8-bit significands is within 2^-17 of the middle
between two others, unless it is denormal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.types import BFLOAT, FLOAT, I16, I32, IntType, Type, VectorType
from tlx.ir.values import Value, const_ints
from tlx.lower.legalize.bfloat_pairs import in_float_pairs, odd_elements, works_on_float_pairs
from tlx.lower.legalize.elementwise import emit_elementwise
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, where_any
from tlx.lower.operations import ElementwiseOp
from tlx.target.target import Target

_DIVISION: Final = ElementwiseOp("fdiv")
_MAX_NUMERATOR_EXPONENT: Final = 100
"""Exponent of the largest numerator, and of the reciprocal of the smallest."""
_MAX_DIVISOR_EXPONENT: Final = 24


def row_quotients(
    b: Builder, target: Target, element: Type, numerators: Sequence[Value], divisors: Sequence[Value]
) -> list[Value]:
    """Quotients of registers by splats, computed by products; empty where the instruction is as good."""
    if not is_quotient_by_product_better(target, element, divisors):
        return []
    rows = groupby(range(len(divisors)), lambda i: divisors[i])
    return [q for d, row in rows for q in divide_registers(b, target, element, [numerators[i] for i in row], d)]


def is_quotient_by_product_better(target: Target, element: Type, divisors: Sequence[Value]) -> bool:
    """Whether quotients by splats are faster as products."""
    if target.float_instructions is None:
        return False
    if element == BFLOAT:
        return all(works_on_float_pairs(target, element, [element], d) for d in divisors)
    return element == FLOAT and all(isinstance(d.type, VectorType) and _is_whole(target, d.type) for d in divisors)


def _is_whole(target: Target, type_: VectorType) -> bool:
    return type_.count * 32 == target.vector_bytes * 8


def divide_registers(
    b: Builder, target: Target, element: Type, numerators: Sequence[Value], divisor: Value
) -> list[Value]:
    """Quotients of registers of float or bfloat by a splat, the last register.

    The builder is in another block afterwards.
    """
    assert isinstance(divisor.type, VectorType)
    lanes = LaneArithmetic(b, divisor.type.count, FLOAT)
    bits = _RangeChecks(b, I16 if element == BFLOAT else I32, divisor.type.count)
    rare = bits.is_no_divisor(divisor)
    for numerator in numerators:
        rare = b.binary("or", rare, bits.is_no_numerator(numerator))
    if element == BFLOAT:
        fast = _bfloat_quotients(b, target, numerators, divisor)
    else:
        inverse = lanes.div(1.0, divisor)
        fast = [_quotient(lanes, n, divisor, inverse) for n in numerators]
    types = [element, element]
    return where_any(
        lanes,
        rare,
        fast,
        lambda: [emit_elementwise(b, target, _DIVISION, element, types, [n, divisor]) for n in numerators],
    )


def _quotient(lanes: LaneArithmetic, numerator: Value, divisor: Value, inverse: Value) -> Value:
    quotient = lanes.mul(numerator, inverse)
    for _ in range(2):
        rest = lanes.multiply_add(quotient, divisor, lanes.negative(numerator))
        quotient = lanes.multiply_add(lanes.negative(rest), inverse, quotient)
    return quotient


def _bfloat_quotients(b: Builder, target: Target, numerators: Sequence[Value], divisor: Value) -> list[Value]:
    assert isinstance(divisor.type, VectorType)
    lanes = LaneArithmetic(b, divisor.type.count // 2, FLOAT)
    inverse = lanes.div(1.0, odd_elements(b, divisor))
    return [in_float_pairs(b, target, [n], lambda x: lanes.mul(x[0], inverse)) for n in numerators]


@dataclass(frozen=True, slots=True)
class _RangeChecks:
    """Range checks of numbers by their bits: an exponent of 8 bits above the fraction.

    Attributes:
        b: The builder.
        element: The integer type as wide as a number.
        count: Elements of a register.
    """

    b: Builder
    element: IntType
    count: int

    def is_no_divisor(self, x: Value) -> Value:
        """Where a number is not between 2^-24 and 2^24."""
        return self._outside(self._words(x), self._power(-_MAX_DIVISOR_EXPONENT), self._power(_MAX_DIVISOR_EXPONENT))

    def is_no_numerator(self, x: Value) -> Value:
        """Where a number is neither zero nor of magnitude between 2^-100 and 2^100."""
        words = self._words(x)
        size = self.b.binary("shl", words, self._all(1))
        far = self._outside(size, 2 * self._power(-_MAX_NUMERATOR_EXPONENT), 2 * self._power(_MAX_NUMERATOR_EXPONENT))
        return self.b.binary("and", far, self.b.icmp("ne", size, self._all(0)))

    def _outside(self, words: Value, low: int, high: int) -> Value:
        return self.b.icmp("ugt", self.b.binary("sub", words, self._all(low)), self._all(high - low))

    def _power(self, exponent: int) -> int:
        """The bits of a power of two."""
        return (127 + exponent) << (self.element.bits - 9)

    def _words(self, x: Value) -> Value:
        return self.b.cast("bitcast", x, VectorType(self.count, self.element))

    def _all(self, number: int) -> Value:
        half = 1 << (self.element.bits - 1)
        return const_ints(self.element, [(number + half) % (2 * half) - half] * self.count)
