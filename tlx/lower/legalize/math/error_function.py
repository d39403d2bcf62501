"""The complementary error function, erfc x = 1 - erf x, with a small relative error also where it is small.

    erfc a = e^(-a²) P(a) / (R(a) + sqrt(pi) a P(a))        a = |x|
    erfc -a = 2 - erfc a

P and R are polynomials with positive coefficients, so that nothing cancels. Where a is large and their rounding errors
add up, R is a small part of the denominator, and the errors of P almost cancel. They were fitted in 230 bits, with
weights that make the largest relative errors equal, and then rounded: 2^-25.8 for floats (degrees 4 and 4), 2^-57.8 for
doubles (10 and 9). With all roundings, the error is at most 3.4 ulp of floats with fused multiply-adds, 3.9 without.

P(0) is 13/8 for floats: near 0, P and the denominator are then a little below 2, where a rounding error is the smallest
part of a number. The denominator is R + (sqrt(pi) - 2) a P + 2 a P, whose last product is exact.

The rounding error of a² would become an error of the result. So a² is a sum of two, with a fused multiply-add

    h = a a rounded         l = a a - h

and without, with z near a that has half of the bits,

    h = z z                 l = (a - z) (a + z)

and l is subtracted from the reduced exponent. Where the result is below the normal numbers, it is computed multiplied
by a power of two, as that of `exp` is.

For results of 16 bits, if those below the normal numbers may be zero, erfc a = 2^(a p(a)) with a polynomial of degree
8, whose error is 2^-14.9 up to the last normal result; with the roundings 2^-14.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import (
    LaneArithmetic,
    RoundedNumber,
    ScaledNumber,
    hex_floats,
    horner,
    power_of_two,
    round_scaled,
    round_to_step,
    ulp_to_one,
)
from tlx.lower.legalize.math.exponential import LOG2_E, exp2, expm1_of_reduced, less_multiple_of_ln2

_SHORT: Final = hex_floats("""
    -0x1.a0c004p+0 -0x1.d59634p-1 -0x1.39694ep-3 0x1.1ddbep-5 -0x1.7f2c7cp-8 0x1.65e784p-11 -0x1.b43b6cp-15
    0x1.35b988p-19 -0x1.83020ap-25
""")
"""log2(erfc a) / a, by powers of a."""


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Constants for one element type.

    Attributes:
        p: The coefficients of P.
        r: Those of R.
        slope: The square root of pi.
        least: Below it, erfc is 1. It is so large that the square of its square is a normal number.
        last_normal: The last number whose erfc is a normal number.
        largest: Its erfc is zero.
    """

    p: tuple[float, ...]
    r: tuple[float, ...]
    slope: float
    least: float
    last_normal: float
    largest: float


_SINGLE: Final = _Parameters(
    p=hex_floats("0x1.ap+0 0x1.0c5bccp+1 0x1.472414p+0 0x1.a937fep-2 0x1.ff01cp-5"),
    r=hex_floats("0x1.ap+0 0x1.0cc852p+0 0x1.7c7636p-2 0x1.c2bab4p-5 0x1.106838p-17"),
    slope=float.fromhex("0x1.c5bf8ap+0"),
    least=2.0**-30,
    last_normal=float.fromhex("0x1.2639bep+3"),
    largest=10.0625,
)
_DOUBLE: Final = _Parameters(
    p=hex_floats("""
        0x1.0000000000000p+0 0x1.328191b473123p+1 0x1.6b0707a3d7f7fp+1 0x1.1352b00c81f8ep+1 0x1.259bd8c779d80p+0
        0x1.ca30f93feb6f1p-2 0x1.08af0ad2e1d05p-3 0x1.bfe2cea0ad78ap-6 0x1.0ac818b85b0ddp-8 0x1.975d1950950cap-12
        0x1.33170b7dc2a4fp-16
    """),
    r=hex_floats("""
        0x1.0000000000000p+0 0x1.c0210f51c0e4cp+0 0x1.912db6942b214p+0 0x1.d24e2162b7b5bp-1 0x1.7e228fae86295p-2
        0x1.c6876c76b2120p-4 0x1.8749a83e7959ep-6 0x1.d6bb60480eadcp-9 0x1.6904433a15235p-12 0x1.1026c4ff3733ep-16
    """),
    slope=math.sqrt(math.pi),
    least=2.0**-100,
    last_normal=float.fromhex("0x1.a8b12fc6e4892p+4"),
    largest=27.25,
)


def erfc(lanes: LaneArithmetic, x: Value) -> Value:
    """The complementary error function."""
    parameters = _SINGLE if lanes.single else _DOUBLE
    magnitude = lanes.at_least(lanes.magnitude(x), parameters.least)
    is_short = lanes.single and lanes.accuracy.short and lanes.accuracy.no_subnormals
    tail = _short_tail(lanes, magnitude) if is_short else _tail(lanes, parameters, magnitude)
    return lanes.choose(lanes.compare("olt", x, 0.0), lanes.sub(2.0, tail), tail)


def _short_tail(lanes: LaneArithmetic, a: Value) -> Value:
    """The function of numbers from 0, with an error of 2^-14.2."""
    return exp2(lanes, lanes.b.binary("fmul", horner(lanes, a, _SHORT), a, flags="contract"))


def _tail(lanes: LaneArithmetic, parameters: _Parameters, magnitude: Value) -> Value:
    """The function of numbers from 0."""
    flushes = lanes.accuracy.no_subnormals
    a = lanes.at_most(magnitude, parameters.last_normal if flushes else parameters.largest)
    is_subnormal = lanes.compare("ogt", magnitude, parameters.last_normal)
    p, r = horner(lanes, a, parameters.p), horner(lanes, a, parameters.r)
    product = lanes.mul(a, p)
    denominator = lanes.multiply_add(product, 2.0, lanes.multiply_add(product, parameters.slope - 2.0, r))
    n, rest = _reduced_square(lanes, a)
    quotient = lanes.ratio(p, denominator)
    number = lanes.multiply_add(quotient, expm1_of_reduced(lanes, rest), quotient)
    if flushes:
        return lanes.choose(is_subnormal, 0.0, _scaled(lanes, number, n.number, n.word))
    raise_by = ulp_to_one(lanes)
    scaled = _scaled(
        lanes,
        number,
        lanes.choose(is_subnormal, lanes.add(n.number, float(raise_by)), n.number),
        lanes.b.select(is_subnormal, lanes.integer_op("add", n.word, raise_by), n.word),
    )
    return round_scaled(lanes, ScaledNumber(scaled, is_subnormal))


def _reduced_square(lanes: LaneArithmetic, a: Value) -> tuple[RoundedNumber, Value]:
    """The n and r of e^(-a²) = 2^n e^r."""
    near = high = lanes.mul(lanes.negative(a), a)
    if lanes.has_fma:
        low = lanes.b.fma(lanes.negative(a), a, lanes.negative(high))
    else:
        z = lanes.from_bits(lanes.integer_op("and", lanes.bits(a), -1 << (lanes.fraction + 2) // 2))
        high, low = lanes.mul(lanes.negative(z), z), lanes.mul(lanes.sub(z, a), lanes.add(z, a))
    n = round_to_step(lanes, near, LOG2_E)
    return n, lanes.add(less_multiple_of_ln2(lanes, high, n.number), low)


def _scaled(lanes: LaneArithmetic, x: Value, exponent: Value, word: Value) -> Value:
    """The product of x and a power of two, whose exponent is given as a float and as an integer; NaN stays."""
    if lanes.float_instructions is not None:
        return lanes.float_instructions.scale(lanes.b, x, exponent)
    return lanes.mul(x, power_of_two(lanes, word))
