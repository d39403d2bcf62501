"""exp, exp2, tanh and the sigmoid.

exp and exp2:

    e^x = 2^n e^r,      n = round(x / ln 2),  r = x - n ln 2,  |r| <= ln 2 / 2
    e^r = 1 + (r + r² q(r))
    2^x = 2^n 2^r,      n = round(x),         r = x - n,       |r| <= 1/2
    2^r = 1 + r p(r)

Arithmetic with subnormal operands or results takes microcode on many machines: with it e^x takes 20 times as long where
e^x is subnormal or zero, and 47 times where x is subnormal (AVX-512, Emerald Rapids, 2026-11-24). So 2^n e^r below the
normal numbers is computed as an integer, a multiple of the least subnormal number, whose bits are the result; and a
number too small to matter is added to x, so that x is not subnormal either.

ln 2 is the sum of two numbers, the first with so few bits that n times it is exact, with a fused multiply-add or not.
The error is that of the last sum, half an ulp, and of r, which is less than 2^-26 (2^-55) of the result.

The coefficients are minimax approximations by Remez's algorithm in 200 bits, for floats with the first one given, 1/2
or ln 2; then they were rounded. Largest errors as rounded, relative to e^r: float, q of degree 4, 2^-27.9; double,
degree 10, 2^-60. Relative to 2^r: float, p of degree 5, 2^-27.9; double, degree 11, 2^-55, which is that of ln 2.

For results of 16 bits a polynomial of degree 4 is enough, with an error of 2^-18. On targets with instructions for the
fraction of a number and for multiplying by 2^floor(n), r is that of x / ln 2 rounded to a float, which adds 2^-17, and
nothing has to be clamped:

    t = x / ln 2,  r = fraction t,  e^x = 2^(t - r) (1 + r p(r))

A sigmoid whose error may be relative to 1 has this r, too, with the polynomial for floats: the error of t matters less
the larger t is, as the sigmoid is near 0 or 1 there.

Where no x is above 0 and e^x is rounded to bfloat, no case is needed for subnormal results. With k = 10, all powers
that do not round to zero are normal, times 2^k:

    s = 2^k e^x,  t = s + max(s, m), rounded once,      m the least normal number times 2^k

Where e^x is subnormal, t is from m to 2 m, and has the last place of a subnormal bfloat, times 2^k, when it is rounded
to bfloat; elsewhere it is 2 s. In both cases k + 1 is subtracted from the exponent field of the rounded number.

On targets that estimate 2^t with an error of 2^-22,

    e^x = 2^n 2^t,       n = round(x / ln 2) between -126 and 126,  t = x / ln 2 - n

where t is below -24 if e^x is less than the subnormal numbers.

On targets with a table lookup, n of e^x for floats is a multiple of 1/32, and 2^fraction is one of 32 table entries:

    n = round(32 x / ln 2) / 32,  e^x = 2^floor(n) (T + T r (a + c r)),  T = 2^(n - floor(n)),  |r| <= ln 2 / 64

Again a minimax approximation of the relative error, 2^-24.1; with all roundings the error is at most 1.8 ulp.

sigmoid(x) = (1 + tanh(x / 2)) / 2, but neither is computed from the other, as the sum would cancel where the sigmoid is
small. For floats, with E = e^x, which need not be more than e^20,

    sigmoid(x) = E / (1 + E)        relatively exact down to the denormals

and for doubles, with E = e^-|x|,

    sigmoid(x) = 1 / (1 + E)        x >= 0
               = E / (1 + E)        x < 0

On targets with instructions that scale numbers and estimate 1 / d, it has no cases, and an error of 2 ulp, with
P = e^-x = 2^n f(r):

    sigmoid(x) = 1 / (1 + P) = y + y ((1 - y) - y P)      y near 1 / (1 + P)
               = 1 / P = 2^-n f(-r)                       where it is subnormal

With M = e^(2|x|) - 1,

    tanh |x| = M / (M + 2)          M = (2^n - 1) + 2^n (e^r - 1)

where e^r - 1 is relatively exact, so that M is, too: for n = 0 it is e^r - 1 itself, for n >= 1 the sum is at least
0.41 and loses at most one bit.

That is enough for floats: 2.1 ulp for the sigmoid, 2.6 for tanh. On targets with a table lookup, tanh of floats is a
polynomial in v for |x| near each multiple of a step, |x| = n h + v, |v| <= h / 2, with an error of 2.3 ulp and half as
many instructions:

    tanh |x| = c0[n] + v (c1[n] + v (c2[n] + ...))

Near zero c0 is 0 and c1 is 1, so that the relative error stays small. In the last interval it is 1, with an error of at
most 1.2 ulp of a float. The coefficients are minimax approximations of the relative error by Remez's algorithm in 120
bits, rounded afterwards: 2^-23.8 with 32 intervals and degree 5; 2^-14.1 with 16 and degree 3, for results of 16 bits.

On targets that estimate 2^t and 1 / d, the sigmoid is c / (c + c e^-x) with c = 2^-24: where it is not zero, neither
c e^-x nor its inverse is infinite or subnormal. On these targets, tanh |x| = 1 - 2 / (1 + e^(2|x|)) from 0.55 on, where
that is more than 1/2: the error of e^(2|x|) counts three eighths at most. Below, x + x³ p(x²) has a minimax polynomial
of degree 3, whose error is 2^-24.7.

For doubles each of E, M and the denominators is kept with its rounding error, and q = a / d of the rounded a and d is
corrected by the errors a' and d':

    (a + a') / (d + d') = q + (a' - q d') / d       to the first order

where 1/d is q or 1 - q for the sigmoid, (1 - q) / 2 for tanh. What remains are the rounding errors of the quotient and
of the last sum, and the error of r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.values import Value, zero
from tlx.lower.legalize.math.arithmetic import (
    LaneArithmetic,
    RoundedNumber,
    ScaledNumber,
    away_from_zero,
    even_odd,
    fast_two_sum,
    hex_floats,
    horner,
    power_of_two,
    raise_subnormal,
    round_scaled,
    round_to_step,
    scale_by_instruction,
    scale_by_power_of_two,
    scale_to_normal,
    two_sum,
    ulp_to_one,
)
from tlx.lower.legalize.registers import splat_like
from tlx.target.instructions.functions import FloatEstimates, FloatInstructions

LOG2_E: Final = float.fromhex("0x1.71547652b82fep+0")
"""1 / ln 2."""
_LOG2_E_SINGLE: Final = float.fromhex("0x1.715476p+0")
_LARGEST_EXPONENT: Final = 126
_ROUNDING: Final = 1.5 * 2**23 + 127
"""Added to a number, it rounds that to an integer n; the sum's bits end in those of n + 127, the exponent of 2^n."""
_BFLOAT_FRACTION: Final = 7
_BFLOAT_INFINITY: Final = 0x7F80
_RAISED_BY: Final = _BFLOAT_FRACTION + 3
"""The exponent k in 2^k e^x: 2^-135, which is rounded to zero as bfloat, becomes a normal number."""
_ROUNDED_TO_ONE: Final = 20.0
"""The sigmoid of a float from there on is 1."""
_SUBNORMAL_BELOW: Final = float.fromhex("-0x1.5d589ep+6")
"""The last float whose sigmoid is a normal number."""
_SIGMOID_EXPONENT: Final = -24
"""That of c in the sigmoid c / (c + c e^-x) by estimates."""


@dataclass(frozen=True, slots=True)
class ExponentialParameters:
    """Constants of exp and exp2 for one element type.

    Attributes:
        ln2: ln 2 as a sum of two; the first has 16 bits (float) or 40 (double), |n| at most 8 or 11.
        q: (e^r - 1 - r) / r².
        p: (2^r - 1) / r.
        lowest: Below it, e^x is zero; `lowest2`: 2^x is.
        overflow: From it on, e^x is infinite; `overflow2`: 2^x is.
    """

    ln2: tuple[float, ...]
    q: tuple[float, ...]
    p: tuple[float, ...]
    lowest: float
    overflow: float
    lowest2: float
    overflow2: float


SINGLE: Final = ExponentialParameters(
    ln2=hex_floats("0x1.62e4p-1 0x1.7f7d1cp-20"),
    q=hex_floats("0x1.000000p-1 0x1.5554a2p-3 0x1.555684p-5 0x1.12305cp-7 0x1.6b7684p-10"),
    p=hex_floats("0x1.62e430p-1 0x1.ebfbdcp-3 0x1.c6af86p-5 0x1.3b2e06p-7 0x1.5f04f4p-10 0x1.415804p-13"),
    lowest=-105.0,
    overflow=float.fromhex("0x1.62e430p+6"),
    lowest2=-151.0,
    overflow2=128.0,
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
    overflow=float.fromhex("0x1.62e42fefa39f0p+9"),
    lowest2=-1076.0,
    overflow2=1024.0,
)


SHORT_E: Final = hex_floats("0x1.fff9a6p-1 0x1.fff56cp-2 0x1.583d98p-3 0x1.5b2da4p-5")
SHORT_2: Final = hex_floats("0x1.62dfcap-1 0x1.ebf1b6p-3 0x1.ca8ffap-5 0x1.409050p-7")


_STEPS: Final = 32
_POWERS: Final = tuple(2.0 ** (i / _STEPS) for i in range(_STEPS))
_LN2: Final = hex_floats("0x1.62e430p-1 -0x1.05c610p-29")
_E_TO_MINUS_R: Final = tuple(c * (-1) ** i for i, c in enumerate((1.0, 1.0, *SINGLE.q)))
"""e^-r as a polynomial in r."""
_LARGEST_OF_SIGMOID: Final = 87.0
"""From 17 on, the sigmoid is 1; e^-87 is a normal number."""
_LARGEST_POWER: Final = 152.0
"""From it on, 2^-n is zero."""
_NEAR_ZERO: Final = hex_floats("0x1.0000f6p+0 0x1.000006p-1")


def exponential_parameters(lanes: LaneArithmetic) -> ExponentialParameters:
    """The parameters of the element type."""
    return SINGLE if lanes.single else DOUBLE


def exp(lanes: LaneArithmetic, x: Value) -> Value:
    """e^x."""
    if lanes.accuracy.short and lanes.float_instructions is not None:
        return _short_power(lanes, lanes.float_instructions, lanes.mul(away_from_zero(lanes, x), LOG2_E))
    if lanes.single and lanes.estimates is not None:
        return _power_by_estimates(lanes, lanes.estimates, x, LOG2_E)
    parameters, is_normal = exponential_parameters(lanes), lanes.accuracy.normal
    bounded = x if is_normal else _bounded(lanes, x, parameters.lowest, parameters.overflow)
    if lanes.single and lanes.float_instructions is not None:
        return _by_table(lanes, lanes.float_instructions, bounded)
    n, r = reduce_exponent(lanes, bounded)
    if is_normal:
        return scale_to_normal(lanes, exp_of_reduced(lanes, r), n)
    return _power(lanes, x, exp_of_reduced(lanes, r), n, parameters.overflow)


def raised_exp(lanes: LaneArithmetic, float_instructions: FloatInstructions, x: Value) -> Value:
    """The number t for e^x, where x is not above 0; rounded to bfloat, it becomes e^x by `lowered_bfloats`."""
    least = 1.0 - lanes.bias
    t = lanes.at_least(lanes.mul(away_from_zero(lanes, x), LOG2_E), least - _BFLOAT_FRACTION - 2)
    r = float_instructions.fraction(lanes.b, t)
    fraction = horner(lanes, r, [coefficient * 2.0**_RAISED_BY for coefficient in (1.0, *SHORT_2)])
    power, bound = float_instructions.scale(lanes.b, fraction, lanes.sub(t, r)), 2.0 ** (least + _RAISED_BY)
    return lanes.add(power, lanes.choose(lanes.compare("ogt", power, bound), power, bound))


def lowered_bfloats(b: Builder, bits: Value) -> Value:
    """The bits of bfloats e^x, given those of the rounded t; NaN stays."""
    is_number = b.icmp("ult", bits, splat_like(bits, _BFLOAT_INFINITY))
    lowered_by = splat_like(bits, (_RAISED_BY + 1) << _BFLOAT_FRACTION)
    return b.binary("sub", bits, b.select(is_number, lowered_by, zero(bits.type)))


def _bounded(lanes: LaneArithmetic, x: Value, lowest: float, overflow: float) -> Value:
    """An exponent that is not subnormal, not below `lowest`, and not above `overflow` unless `_power` sees to that."""
    x = lanes.at_least(away_from_zero(lanes, x), lowest)
    is_bounded = lanes.float_instructions is None or lanes.accuracy.nonpositive
    return x if is_bounded else lanes.at_most(x, overflow)


def _power(lanes: LaneArithmetic, x: Value, fraction: Value, n: RoundedNumber, overflow: float) -> Value:
    """2^n fraction, which is infinite where x is not below `overflow`, and NaN where x is."""
    result = round_scaled(lanes, scale_by_power_of_two(lanes, fraction, n))
    if lanes.float_instructions is not None:
        return result
    return lanes.choose(lanes.compare("olt", x, overflow), result, lanes.add(x, math.inf))


def _power_by_estimates(
    lanes: LaneArithmetic, estimates: FloatEstimates, x: Value, log2: float, exponent: int = 0
) -> Value:
    """The power with exponent x of a number, given by its binary logarithm: e or 2; multiplied by 2^exponent."""
    span = 2 * _LARGEST_EXPONENT
    share = estimates.saturate(lanes.b, lanes.multiply_add(x, log2 / span, 0.5 + exponent / span))
    word = lanes.multiply_add(share, span, _ROUNDING - _LARGEST_EXPONENT)
    high = _LOG2_E_SINGLE if log2 == LOG2_E else log2
    t = lanes.b.fma(x, lanes.number(high), lanes.negative(lanes.sub(word, _ROUNDING + exponent)))
    if high != log2:
        t = lanes.b.fma(x, lanes.number(log2 - high), t)
    scale = lanes.from_bits(lanes.integer_op("shl", lanes.bits(word), lanes.fraction))
    return lanes.mul(estimates.power_of_two(lanes.b, t), scale)


def _by_table(lanes: LaneArithmetic, float_instructions: FloatInstructions, x: Value) -> Value:
    n = round_to_step(lanes, x, LOG2_E, _STEPS)
    r = x
    for part in _LN2:
        r = lanes.multiply_add(n.number, -part, r)
    power = float_instructions.look_up(lanes.b, _POWERS, n.low_bits)
    less_one = lanes.mul(r, horner(lanes, r, _NEAR_ZERO))
    fraction = lanes.multiply_add(power, less_one, power)
    if lanes.accuracy.normal:
        return scale_to_normal(lanes, fraction, n)
    return round_scaled(lanes, scale_by_power_of_two(lanes, fraction, n))


def _short_power(lanes: LaneArithmetic, float_instructions: FloatInstructions, exponent: Value) -> Value:
    """2^exponent for results of 16 bits, on targets with instructions for it.

    Where it is below half the least float, it is 2^-151 instead: raised, smaller ones would be subnormal. If results
    below the normal numbers may be zero, they are zeros that an instruction with a mask does not compute.
    """
    flushes, least = lanes.accuracy.no_subnormals, 1.0 - lanes.bias
    t = exponent if flushes else lanes.at_least(exponent, least - lanes.fraction - 2)
    r = float_instructions.fraction(lanes.b, t)
    n, fraction = lanes.sub(t, r), horner(lanes, r, (1.0, *SHORT_2))
    if flushes:
        return lanes.choose(lanes.compare("olt", t, least), 0.0, float_instructions.scale(lanes.b, fraction, n))
    return round_scaled(lanes, scale_by_instruction(lanes, float_instructions, fraction, n))


def reduce_exponent(lanes: LaneArithmetic, x: Value) -> tuple[RoundedNumber, Value]:
    """The n and r of e^x = 2^n e^r."""
    n = round_to_step(lanes, x, LOG2_E)
    return n, less_multiple_of_ln2(lanes, x, n.number)


def less_multiple_of_ln2(lanes: LaneArithmetic, x: Value, n: Value) -> Value:
    """The difference x - n ln 2."""
    high, low = exponential_parameters(lanes).ln2
    return lanes.multiply_add(n, -low, lanes.multiply_add(n, -high, x))


def exp_of_reduced(lanes: LaneArithmetic, r: Value) -> Value:
    """e^r; for floats by one chain, whose last sums add a tenth of an ulp."""
    if lanes.accuracy.short:
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
    if lanes.accuracy.short and lanes.float_instructions is not None:
        return _short_power(lanes, lanes.float_instructions, away_from_zero(lanes, x))
    if lanes.single and lanes.estimates is not None:
        return _power_by_estimates(lanes, lanes.estimates, x, 1.0)
    parameters = exponential_parameters(lanes)
    bounded = _bounded(lanes, x, parameters.lowest2, parameters.overflow2)
    n = round_to_step(lanes, bounded)
    r = lanes.sub(bounded, n.number)
    fraction = lanes.multiply_add(r, _polynomial(lanes, r, lanes.mul(r, r), parameters.p), 1.0)
    return _power(lanes, x, fraction, n, parameters.overflow2)


def _polynomial(lanes: LaneArithmetic, r: Value, square: Value, coefficients: tuple[float, ...]) -> Value:
    return horner(lanes, r, coefficients) if lanes.single else even_odd(lanes, r, square, coefficients)


@dataclass(frozen=True, slots=True)
class TanhTable:
    """Coefficients of a polynomial for each interval.

    Attributes:
        step: Width of an interval, h.
        highest: The largest argument that is in the last interval.
        coefficients: For each power, lowest first, the coefficients of all intervals.
    """

    step: float
    highest: float
    coefficients: tuple[tuple[float, ...], ...]


_TANH_COEFFICIENTS: Final = (
    hex_floats("""
        0x0p+0 0x1.18a398p-2 0x1.05086ep-1 0x1.60260ap-1 0x1.9e5cb6p-1 0x1.c5fce8p-1 0x1.de1eb6p-1 0x1.ec6acp-1
        0x1.f4bfd6p-1 0x1.f98f24p-1 0x1.fc51f6p-1 0x1.fde668p-1 0x1.fecd6cp-1 0x1.ff513ap-1 0x1.ff9c64p-1
        0x1.ffc73cp-1 0x1.ffdfa8p-1 0x1.ffed92p-1 0x1.fff58p-1 0x1.fffa04p-1 0x1.fffc98p-1 0x1.fffe0ep-1 0x1.fffee4p-1
        0x1.ffff5ep-1 0x1.ffffa4p-1 0x1.ffffccp-1 0x1.ffffe2p-1 0x1.ffffeep-1 0x1.fffff6p-1 0x1.fffffap-1
        0x1.fffffcp-1 0x1p+0
    """),
    hex_floats("""
        0x1p+0 0x1.d98b4p-1 0x1.7aeaeap-1 0x1.0dcbbp-1 0x1.615002p-2 0x1.b5cdfp-3 0x1.06129cp-3 0x1.33560cp-4
        0x1.64108ap-5 0x1.999f4ap-6 0x1.d553fap-7 0x1.0c3e6cp-7 0x1.3238b8p-8 0x1.5d4f9cp-9 0x1.8e4a9p-10
        0x1.c60708p-11 0x1.02becap-11 0x1.26e376p-12 0x1.5010aep-13 0x1.7efb44p-14 0x1.b470eep-15 0x1.f15bep-16
        0x1.1b636cp-16 0x1.42f0dap-17 0x1.700356p-18 0x1.a3602p-19 0x1.dde7fep-20 0x1.104d88p-20 0x1.364e9cp-21
        0x1.619d86p-22 0x1.92f7c8p-23 0x0p+0
    """),
    hex_floats("""
        0x1.2c83fap-21 -0x1.038b74p-2 -0x1.825bd8p-2 -0x1.7320cp-2 -0x1.1df0bcp-2 -0x1.84341ep-3 -0x1.e976dep-4
        -0x1.2794c4p-4 -0x1.5c3d3ap-5 -0x1.94777cp-6 -0x1.d1f386p-7 -0x1.0b242ep-7 -0x1.3180a4p-8 -0x1.5cd788p-9
        -0x1.8dfc18p-10 -0x1.c5d39p-11 -0x1.02adccp-11 -0x1.26d81cp-12 -0x1.5008f2p-13 -0x1.7ef5d4p-14 -0x1.b46ceep-15
        -0x1.f158bep-16 -0x1.1b6218p-16 -0x1.42efa4p-17 -0x1.700226p-18 -0x1.a35ee8p-19 -0x1.dde6bp-20 -0x1.104cdp-20
        -0x1.364dcep-21 -0x1.619c9ep-22 -0x1.92f6c2p-23 0x0p+0
    """),
    hex_floats("""
        -0x1.555ea8p-2 -0x1.e93dccp-3 -0x1.bd44b8p-5 0x1.2d8d98p-4 0x1.c69034p-4 0x1.8c91eep-4 0x1.1a5ce6p-4
        0x1.6ba9bcp-5 0x1.bbcd02p-6 0x1.06d6f4p-6 0x1.322962p-7 0x1.6143a6p-8 0x1.956e3cp-9 0x1.cfe1ep-10
        0x1.08eb8cp-10 0x1.2e4a08p-11 0x1.58bc3ap-12 0x1.8903eep-13 0x1.bff9a8p-14 0x1.fe914ap-15 0x1.22ef7cp-15
        0x1.4b8e0ep-16 0x1.79d696p-17 0x1.ae93e6p-18 0x1.eaacf8p-19 0x1.179472p-19 0x1.3e99b8p-20 0x1.6b1114p-21
        0x1.9dbd1cp-22 0x1.d77b9p-23 0x1.0ca48ep-23 0x0p+0
    """),
    hex_floats("""
        0x1.5f87c8p-11 0x1.2ece98p-3 0x1.380be8p-3 0x1.20abf2p-4 0x1.f41844p-9 -0x1.6e7a5p-6 -0x1.90a588p-6
        -0x1.316466p-6 -0x1.947d4p-7 -0x1.f43474p-8 -0x1.2a427ap-8 -0x1.5caedcp-9 -0x1.932198p-10 -0x1.cf2d54p-11
        -0x1.0924b6p-11 -0x1.2ef368p-12 -0x1.59c10ap-13 -0x1.8a5938p-14 -0x1.c19b32p-15 -0x1.003fdap-15
        -0x1.240f3ap-16 -0x1.4cd9e2p-17 -0x1.7b5346p-18 -0x1.b0475ep-19 -0x1.ec9e48p-20 -0x1.18b028p-20
        -0x1.3fdd42p-21 -0x1.6c81eap-22 -0x1.9f6186p-23 -0x1.d95ab6p-24 -0x1.0db596p-24 0x0p+0
    """),
    hex_floats("""
        0x1.086b3p-3 0x1.f624f8p-5 -0x1.578348p-5 -0x1.f0b39ep-5 -0x1.0759ep-5 -0x1.f435c6p-8 0x1.5fb108p-9
        0x1.388a74p-8 0x1.05229ap-8 0x1.658636p-9 0x1.c0b38ep-10 0x1.0d845cp-10 0x1.3c4cbcp-11 0x1.6e7606p-12
        0x1.a58978p-13 0x1.e2ee1ep-14 0x1.13ff98p-14 0x1.3b0f52p-15 0x1.67621cp-16 0x1.99c4f4p-17 0x1.d31b84p-18
        0x1.0a32b2p-18 0x1.2f61a4p-19 0x1.59be4cp-20 0x1.8a02acp-21 0x1.c10264p-22 0x1.ffae62p-23 0x1.238c88p-23
        0x1.4c3d86p-24 0x1.7a9c46p-25 0x1.af73b2p-26 0x0p+0
    """),
)
_SHORT_TANH_COEFFICIENTS: Final = (
    hex_floats("""
        0x0p+0 0x1.52be58p-2 0x1.31563p-1 0x1.8c7f1p-1 0x1.c278f2p-1 0x1.e01c2cp-1 0x1.efb678p-1 0x1.f7bebcp-1
        0x1.fbd51cp-1 0x1.fde672p-1 0x1.fef16ep-1 0x1.ff77ep-1 0x1.ffbb8ap-1 0x1.ffdd92p-1 0x1.ffeebp-1 0x1p+0
    """),
    hex_floats("""
        0x1p+0 0x1.c8092cp-1 0x1.49efe6p-1 0x1.99eb92p-2 0x1.cea888p-3 0x1.ee5bf2p-4 0x1.007486p-4 0x1.060872p-5
        0x1.09a408p-6 0x1.0c3a96p-7 0x1.0e4c64p-8 0x1.101bb2p-9 0x1.11ca5ap-10 0x1.136996p-11 0x1.15022p-12 0x0p+0
    """),
    hex_floats("""
        -0x1.dfcef2p-12 -0x1.28d4b4p-2 -0x1.85e492p-2 -0x1.3cca2cp-2 -0x1.9853f8p-3 -0x1.d27aeap-4 -0x1.f4962ap-5
        -0x1.041edcp-5 -0x1.09f7dp-6 -0x1.0db7d2p-7 -0x1.10636ap-8 -0x1.1282ccp-9 -0x1.145bfep-10 -0x1.1612bap-11
        -0x1.17b92p-12 0x0p+0
    """),
    hex_floats("""
        -0x1.4eeaecp-2 -0x1.a369f4p-3 0x1.3ef212p-7 0x1.ac4fc8p-4 0x1.966fbcp-4 0x1.0eaee6p-4 0x1.37a8dcp-5
        0x1.4f15d4p-6 0x1.5c6734p-7 0x1.64462ap-8 0x1.694e54p-9 0x1.6ce26ep-10 0x1.6fba54p-11 0x1.72342cp-12
        0x1.747fd8p-13 0x0p+0
    """),
)
_TANH_FAR: Final = 0.55
_TANH_NEAR: Final = hex_floats("-0x1.555452p-2 0x1.10cef6p-3 -0x1.af7cc8p-5 0x1.0d5022p-6")
"""(tanh(x) / x - 1) / x², by powers of x²."""
TANH_TABLE: Final = TanhTable(9 / 32, 8.85, _TANH_COEFFICIENTS)
SHORT_TANH_TABLE: Final = TanhTable(11 / 32, 5.3, _SHORT_TANH_COEFFICIENTS)


@dataclass(frozen=True, slots=True)
class CompensatedNumber:
    """A number and its rounding error."""

    high: Value
    low: Value


def sigmoid(lanes: LaneArithmetic, x: Value) -> Value:
    """1 / (1 + e^-x)."""
    if lanes.single and lanes.estimates is not None:
        power = _power_by_estimates(lanes, lanes.estimates, lanes.negative(x), LOG2_E, _SIGMOID_EXPONENT)
        inverse = lanes.estimates.reciprocal(lanes.b, lanes.add(power, 2.0**_SIGMOID_EXPONENT))
        return lanes.mul(inverse, 2.0**_SIGMOID_EXPONENT)
    if lanes.single and lanes.float_instructions is not None:
        return _sigmoid_by_instructions(lanes, lanes.float_instructions, x)
    quotient = _short_sigmoid(lanes, x) if lanes.single else _long_sigmoid(lanes, x)
    result = round_scaled(lanes, quotient)
    return result if lanes.single else lanes.choose(lanes.compare("uno", x, 0.0), x, result)


def _short_sigmoid(lanes: LaneArithmetic, x: Value) -> ScaledNumber:
    """The sigmoid of floats, on targets without instructions for it.

    E is a product, so that NaN stays, and 1 + E a multiply-add: of raised powers, and of zero where E is subnormal.
    """
    x = lanes.at_most(lanes.at_least(away_from_zero(lanes, x), SINGLE.lowest), _ROUNDED_TO_ONE)
    word = lanes.multiply_add(x, LOG2_E, _ROUNDING)
    r = less_multiple_of_ln2(lanes, x, lanes.sub(word, _ROUNDING))
    fraction = horner(lanes, r, (1.0, 1.0, *SINGLE.q))
    power = lanes.integer_op("shl", lanes.bits(word), lanes.fraction)
    is_subnormal = lanes.compare("olt", x, _SUBNORMAL_BELOW)
    raised = lanes.from_bits(raise_subnormal(lanes, power, is_subnormal))
    added = lanes.choose(is_subnormal, 0.0, lanes.from_bits(power))
    return ScaledNumber(lanes.div(lanes.mul(fraction, raised), lanes.multiply_add(fraction, added, 1.0)), is_subnormal)


def _sigmoid_by_instructions(lanes: LaneArithmetic, float_instructions: FloatInstructions, x: Value) -> Value:
    """The sigmoid of floats."""
    b, x, accuracy = lanes.b, away_from_zero(lanes, x), lanes.accuracy
    flushes = accuracy.no_subnormals or accuracy.absolute
    if accuracy.short or accuracy.absolute:
        t = lanes.at_least(lanes.mul(x, -LOG2_E), 2.0 - lanes.bias)
        if not accuracy.no_subnormals:
            t = lanes.at_most(t, lanes.bias - 2.0 if accuracy.absolute else _LARGEST_POWER)
        r = float_instructions.fraction(b, t)
        n, coefficients = lanes.sub(t, r), (1.0, *(SHORT_2 if accuracy.short else SINGLE.p))
    else:
        x = lanes.at_most(lanes.at_least(x, SINGLE.lowest), _LARGEST_OF_SIGMOID)
        n, coefficients = round_to_step(lanes, x, -LOG2_E).number, _E_TO_MINUS_R
        r = lanes.multiply_add(n, SINGLE.ln2[1], lanes.multiply_add(n, SINGLE.ln2[0], x))
    is_subnormal = lanes.compare("ogt", n, lanes.bias - 2.0)
    if not flushes:
        r = lanes.choose(is_subnormal, lanes.negative(r), r)
        n = lanes.choose(is_subnormal, lanes.sub(float(ulp_to_one(lanes)), n), n)
    power = float_instructions.scale(b, horner(lanes, r, coefficients), n)
    total = lanes.add(power, 1.0)
    inverse = float_instructions.reciprocal(b, total)
    if not accuracy.short:
        factor, missing = (total, 1.0) if accuracy.absolute else (power, lanes.sub(1.0, inverse))
        missing = lanes.multiply_add(lanes.negative(inverse), factor, missing)
        inverse = lanes.multiply_add(missing, inverse, inverse)
    if accuracy.absolute:  # a factor of any size must not see that the power was limited
        return lanes.choose(lanes.compare("ogt", n, lanes.bias - 3.0), 0.0, inverse)
    if flushes:
        return inverse
    return float_instructions.round_to_bits(b, power, is_subnormal, inverse)


def _long_sigmoid(lanes: LaneArithmetic, x: Value) -> ScaledNumber:
    """The sigmoid of doubles. Where E is tiny, 1 + E is 1, and E needs no correction."""
    n, r = _reduce_negative(lanes, x)
    high, low = fast_two_sum(lanes, 1.0, expm1_of_reduced(lanes, r))
    power = scale_by_power_of_two(lanes, high, n)
    is_tiny = lanes.compare("olt", n.number, -100.0)
    low = lanes.mul(low, lanes.choose(is_tiny, 0.0, power_of_two(lanes, n.word)))
    total, error = fast_two_sum(lanes, 1.0, lanes.choose(is_tiny, 0.0, power.number))
    denominator = CompensatedNumber(total, lanes.add(error, low))
    is_negative = lanes.compare("olt", x, 0.0)
    numerator = CompensatedNumber(lanes.choose(is_negative, power.number, 1.0), lanes.choose(is_negative, low, 0.0))
    quotient = lanes.div(numerator.high, denominator.high)
    inverse = lanes.choose(is_negative, lanes.sub(1.0, quotient), quotient)
    result = _corrected(lanes, quotient, numerator, denominator, inverse)
    return ScaledNumber(result, lanes.b.binary("and", is_negative, power.is_subnormal))


def _reduce_negative(lanes: LaneArithmetic, x: Value) -> tuple[RoundedNumber, Value]:
    """The n and r of e^-|x|."""
    exponent = away_from_zero(lanes, lanes.negative_magnitude(x))
    return reduce_exponent(lanes, lanes.at_least(exponent, exponential_parameters(lanes).lowest))


def tanh(lanes: LaneArithmetic, x: Value) -> Value:
    """The hyperbolic tangent; signed zeros are preserved. That of a small x, or of NaN, is x."""
    if lanes.single and lanes.estimates is not None:
        return _tanh_by_estimates(lanes, lanes.estimates, x)
    small = 2.0**-13 if lanes.single else 2.0**-28
    magnitude = lanes.magnitude(x)
    is_small = lanes.compare("olt", magnitude, small)
    size = lanes.choose(is_small, 0.0, magnitude)
    if not lanes.single:
        result = _long_tanh(lanes, size)
    elif lanes.float_instructions is not None:
        result = _tanh_by_table(lanes, lanes.float_instructions, size)
    else:
        result = _short_tanh(lanes, size)
    result = lanes.choose(is_small, x, lanes.with_sign_of(result, x))
    if lanes.float_instructions is not None:
        return result
    return lanes.choose(lanes.compare("uno", x, 0.0), x, result)  # a machine's minimum may lose NaN


def _long_tanh(lanes: LaneArithmetic, size: Value) -> Value:
    """The hyperbolic tangent of doubles that are zero or positive and not small."""
    size = lanes.at_most(size, 20.0)
    numerator = _exp_less_one(lanes, lanes.add(size, size))
    total, error = two_sum(lanes, numerator.high, 2.0)
    denominator = CompensatedNumber(total, lanes.add(error, numerator.low))
    quotient = lanes.div(numerator.high, denominator.high)
    inverse = lanes.multiply_add(quotient, -0.5, 0.5)
    return _corrected(lanes, quotient, numerator, denominator, inverse)


def _short_tanh(lanes: LaneArithmetic, size: Value) -> Value:
    """The hyperbolic tangent of floats that are zero or positive and not small."""
    size = lanes.at_most(size, 10.0)
    n, r = reduce_exponent(lanes, lanes.add(size, size))
    power = power_of_two(lanes, n.word)
    numerator = lanes.multiply_add(power, expm1_of_reduced(lanes, r), lanes.sub(power, 1.0))
    return lanes.ratio(numerator, lanes.add(numerator, 2.0))


def _tanh_by_table(lanes: LaneArithmetic, float_instructions: FloatInstructions, size: Value) -> Value:
    """The hyperbolic tangent of floats from zero by the polynomial of the interval that they are in."""
    table = SHORT_TANH_TABLE if lanes.accuracy.short else TANH_TABLE
    size = lanes.at_most(size, table.highest)
    n = round_to_step(lanes, size, 1 / table.step)
    v = lanes.multiply_add(n.number, -table.step, size)
    *lower, result = [float_instructions.look_up(lanes.b, c, n.low_bits) for c in table.coefficients]
    for coefficient in reversed(lower):
        result = lanes.multiply_add(result, v, coefficient)
    return result


def _tanh_by_estimates(lanes: LaneArithmetic, estimates: FloatEstimates, x: Value) -> Value:
    """The hyperbolic tangent on targets that estimate 2^t and 1 / d."""
    size = lanes.magnitude(x)
    power = estimates.power_of_two(lanes.b, lanes.mul(size, 2 * LOG2_E))
    far = lanes.multiply_add(estimates.reciprocal(lanes.b, lanes.add(power, 1.0)), -2.0, 1.0)
    square = lanes.mul(x, x)
    near = lanes.multiply_add(lanes.mul(horner(lanes, square, _TANH_NEAR), square), size, size)
    return lanes.with_sign_of(lanes.choose(lanes.compare("olt", size, _TANH_FAR), near, far), x)


def _corrected(
    lanes: LaneArithmetic, quotient: Value, numerator: CompensatedNumber, denominator: CompensatedNumber, inverse: Value
) -> Value:
    error = lanes.sub(numerator.low, lanes.mul(quotient, denominator.low))
    return lanes.multiply_add(error, inverse, quotient)


def _exp_less_one(lanes: LaneArithmetic, x: Value) -> CompensatedNumber:
    """e^x - 1 for 0 <= x <= 40."""
    n, r = reduce_exponent(lanes, x)
    fraction, error = fast_two_sum(lanes, r, expm1_of_reduced_less_r(lanes, r))
    power = power_of_two(lanes, n.word)
    high, low = fast_two_sum(lanes, lanes.sub(power, 1.0), lanes.mul(power, fraction))
    return CompensatedNumber(high, lanes.multiply_add(power, error, low))
