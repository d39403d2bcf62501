"""exp and exp2.

    e^x = 2^n e^r,      n = round(x / ln 2),  r = x - n ln 2,  |r| <= ln 2 / 2
    e^r = 1 + (r + r² q(r))
    2^x = 2^n 2^r,      n = round(x),         r = x - n,       |r| <= 1/2
    2^r = 1 + r p(r)

ln 2 is the sum of two numbers, the first with so few bits that n times it is exact, with a fused multiply-add or not.
The error is that of the last sum, half an ulp, and of r, which is less than 2^-26 (2^-55) of the result.

The coefficients are minimax approximations by Remez's algorithm in 200 bits, for floats with the first one given, 1/2
or ln 2; then they were rounded. Largest errors as rounded, relative to e^r: float, q of degree 4, 2^-27.9; double,
degree 10, 2^-60. Relative to 2^r: float, p of degree 5, 2^-27.9; double, degree 11, 2^-55, which is that of ln 2.

For results of 16 bits a polynomial of degree 4 does, off by 2^-18. Where the fraction of a number and multiplying by
2^floor(n) are instructions, r is that of x / ln 2 rounded to a float, another 2^-17, and nothing has to be clamped:

    t = x / ln 2,  r = fraction t,  e^x = 2^(t - r) (1 + r p(r))

Where elements of a table are an instruction, n of e^x for floats is a multiple of 1/32, and its fraction's power is one
of 32:

    n = round(32 x / ln 2) / 32,  e^x = 2^floor(n) (T + T r (a + c r)),  T = 2^(n - floor(n)),  |r| <= ln 2 / 64

A minimax approximation of the relative error again, 2^-24.1; with all roundings the result is off by 1.8 ulp at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import (
    LaneArithmetic,
    RoundedNumber,
    even_odd,
    hex_floats,
    horner,
    round_to_step,
    scale_by_power_of_two,
)
from tlx.target.hardware import FloatInstructions

LOG2_E: Final = float.fromhex("0x1.71547652b82fep+0")
"""1 / ln 2."""


@dataclass(frozen=True, slots=True)
class ExponentialParameters:
    """What exp and exp2 are made of for one element type.

    Attributes:
        ln2: ln 2 as a sum of two; the first has 16 bits (float) or 40 (double), |n| at most 8 or 11.
        q: (e^r - 1 - r) / r².
        p: (2^r - 1) / r.
        lowest: Below it, e^x is zero; `lowest2`: 2^x is.
        highest: Above it, e^x is infinite; `highest2`: 2^x is.
    """

    ln2: tuple[float, ...]
    q: tuple[float, ...]
    p: tuple[float, ...]
    lowest: float
    highest: float
    lowest2: float
    highest2: float


SINGLE: Final = ExponentialParameters(
    ln2=hex_floats("0x1.62e4p-1 0x1.7f7d1cp-20"),
    q=hex_floats("0x1.000000p-1 0x1.5554a2p-3 0x1.555684p-5 0x1.12305cp-7 0x1.6b7684p-10"),
    p=hex_floats("0x1.62e430p-1 0x1.ebfbdcp-3 0x1.c6af86p-5 0x1.3b2e06p-7 0x1.5f04f4p-10 0x1.415804p-13"),
    lowest=-105.0,
    highest=89.0,
    lowest2=-151.0,
    highest2=129.0,
)
DOUBLE: Final = ExponentialParameters(
    ln2=hex_floats("0x1.62e42fefap-1 0x1.cf79abc9e3b3ap-40"),
    q=hex_floats("""
        0x1.0000000000000p-1  0x1.555555555555bp-3  0x1.5555555555503p-5  0x1.111111110ebf8p-7
        0x1.6c16c16c3002fp-10 0x1.a01a01b3a66a7p-13 0x1.a01a01385ce91p-16 0x1.71ddefba30161p-19
        0x1.27e5af93a8451p-22 0x1.af6c9e2f93c91p-26 0x1.1e45a0c51e0a7p-29
    """),
    p=hex_floats("""
        0x1.62e42fefa39efp-1  0x1.ebfbdff82c58fp-3  0x1.c6b08d704a0cfp-5  0x1.3b2ab6fba4e23p-7
        0x1.5d87fe78a2601p-10 0x1.430912f883893p-13 0x1.ffcbfc751745ap-17 0x1.62c021e40f6fcp-20
        0x1.b524dcc2c4aacp-24 0x1.e4d0649d4badep-28 0x1.ea023b2ef6963p-32 0x1.c2dbc9f860683p-36
    """),
    lowest=-746.0,
    highest=710.0,
    lowest2=-1076.0,
    highest2=1025.0,
)


SHORT_E: Final = hex_floats("0x1.fff9a6p-1 0x1.fff56cp-2 0x1.583d98p-3 0x1.5b2da4p-5")
SHORT_2: Final = hex_floats("0x1.62dfcap-1 0x1.ebf1b6p-3 0x1.ca8ffap-5 0x1.409050p-7")


_STEPS: Final = 32
_POWERS: Final = tuple(2.0 ** (i / _STEPS) for i in range(_STEPS))
_LN2: Final = hex_floats("0x1.62e430p-1 -0x1.05c610p-29")
_NEAR_ZERO: Final = hex_floats("0x1.0000f6p+0 0x1.000006p-1")


def exponential_parameters(lanes: LaneArithmetic) -> ExponentialParameters:
    """The parameters of the element type."""
    return SINGLE if lanes.single else DOUBLE


def exp(lanes: LaneArithmetic, x: Value) -> Value:
    """e^x."""
    if lanes.short and lanes.float_instructions is not None:
        return short_exp(lanes, x)
    known = exponential_parameters(lanes)
    x = lanes.at_most(lanes.at_least(x, known.lowest), known.highest)
    if lanes.single and lanes.float_instructions is not None:
        return _by_table(lanes, lanes.float_instructions, x)
    n, r = reduce_exponent(lanes, x)
    return scale_by_power_of_two(lanes, exp_of_reduced(lanes, r), n)


def _by_table(lanes: LaneArithmetic, float_instructions: FloatInstructions, x: Value) -> Value:
    n = round_to_step(lanes, x, LOG2_E, _STEPS)
    r = x
    for part in _LN2:
        r = lanes.multiply_add(n.number, -part, r)
    power = float_instructions.pick(lanes.b, _POWERS, n.ending)
    less_one = lanes.mul(r, horner(lanes, r, _NEAR_ZERO))
    return float_instructions.scale(lanes.b, lanes.multiply_add(power, less_one, power), n.number)


def short_exp(lanes: LaneArithmetic, x: Value) -> Value:
    """e^x for results of 16 bits, on machines with instructions for it."""
    assert lanes.float_instructions is not None
    t = lanes.mul(x, LOG2_E)
    r = lanes.float_instructions.fraction(lanes.b, t)
    return lanes.float_instructions.scale(lanes.b, horner(lanes, r, (1.0, *SHORT_2)), lanes.sub(t, r))


def reduce_exponent(lanes: LaneArithmetic, x: Value) -> tuple[RoundedNumber, Value]:
    """The n and r of e^x = 2^n e^r."""
    known = exponential_parameters(lanes)
    n = round_to_step(lanes, x, LOG2_E)
    r = lanes.multiply_add(n.number, -known.ln2[0], x)
    return n, lanes.multiply_add(n.number, -known.ln2[1], r)


def exp_of_reduced(lanes: LaneArithmetic, r: Value) -> Value:
    """e^r; for floats by one chain, whose last sums lose a tenth of an ulp more."""
    if lanes.short:
        return horner(lanes, r, (1.0, *SHORT_E))
    if lanes.single and lanes.float_instructions is not None:
        return horner(lanes, r, (1.0, 1.0, *SINGLE.q))
    return lanes.add(expm1_of_reduced(lanes, r), 1.0)


def expm1_of_reduced(lanes: LaneArithmetic, r: Value) -> Value:
    """e^r - 1."""
    square = lanes.mul(r, r)
    return lanes.multiply_add(square, _polynomial(lanes, r, square, exponential_parameters(lanes).q), r)


def expm1_of_reduced_less_r(lanes: LaneArithmetic, r: Value) -> Value:
    """e^r - 1 - r."""
    square = lanes.mul(r, r)
    return lanes.mul(square, _polynomial(lanes, r, square, exponential_parameters(lanes).q))


def exp2(lanes: LaneArithmetic, x: Value) -> Value:
    """2^x, exact where x is an integer."""
    known = exponential_parameters(lanes)
    x = lanes.at_most(lanes.at_least(x, known.lowest2), known.highest2)
    n = round_to_step(lanes, x)
    r = lanes.sub(x, n.number)
    fraction = lanes.multiply_add(r, _polynomial(lanes, r, lanes.mul(r, r), known.p), 1.0)
    return scale_by_power_of_two(lanes, fraction, n)


def _polynomial(lanes: LaneArithmetic, r: Value, square: Value, coefficients: tuple[float, ...]) -> Value:
    return horner(lanes, r, coefficients) if lanes.single else even_odd(lanes, r, square, coefficients)
