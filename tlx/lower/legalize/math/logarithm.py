"""log, log2 and log10: logarithms to the base b = e, 2 and 10.

    x = 2^k (1 + f),   sqrt(1/2) <= 1 + f < sqrt(2),   f exact
    log_b x = k log_b 2 + c log(1 + f),                c = 1 / ln b

With s = f / (2 + f) and z = s²,

    log(1 + f) = 2 atanh s = 2 s + s z P(z)            P(z) = 2/3 + 2/5 z + 2/7 z² + ...
               = f - L,    L = f²/2 - s (f²/2 + z P(z))    as 2 s = f - s f

L is small compared with f, so its rounding error matters little. c is split into a power of two A and a rest B (for
b = e 1 and 0, for b = 2 1 and 0.44, for b = 10 1/2 and -0.07), so that the larger term is exact:

    log_b x = k H + A f + (B f - c L + k h)

H has so few bits that k H is exact, h is the rest of log_b 2; the sum of the first two terms keeps its rounding error.
Where k = 0, near x = 1, the first term is zero, and A f is exact: the relative error stays small there.

log2 of a power of two is exact.

P is a minimax approximation by Remez's algorithm in 200 bits, rounded afterwards; its error is less than 2^-29.5
(float, degree 2) or 2^-58.5 (double, degree 6) of the result.

On targets with instructions for the parts of a number and for a table lookup, logarithms of floats use tables, with an
error of at most 2.2 ulp:

    x = 2^k m,   3/4 <= m < 3/2,   log_b x = (k H + log_b m) + k h

    r = m c - 1,   log_b m = -log_b c + r p(r)         c near 1 / m, |r| < 1/32

The 32 intervals of m have equally many floats each. c is 1 in the two intervals at 1, where the logarithm is r p(r)
alone, with a small relative error: 2^-27 by minimax approximations, rounded afterwards. The table is indexed by the
last five of m's upper bits. The instructions return k = -infinity for zero, infinity for infinity, and m = NaN for
negative numbers, so there are no special cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, fast_two_sum, hex_floats, horner
from tlx.target.instructions.functions import FloatInstructions

INTERVAL_SHIFT: Final = 18
"""Bits of a float below the index of the interval."""
INVERSES: Final = hex_floats("""
    0x1p+0 0x1.e9131ap-1 0x1.dae608p-1 0x1.cd8568p-1 0x1.c0e07p-1 0x1.b4e81cp-1 0x1.a98ef6p-1 0x1.9ec8eap-1
    0x1.948b1p-1 0x1.8acb9p-1 0x1.818182p-1 0x1.78a4c8p-1 0x1.702e06p-1 0x1.681682p-1 0x1.605816p-1 0x1.58ed24p-1
    0x1.51d07ep+0 0x1.4afd6ap+0 0x1.446f86p+0 0x1.3e22ccp+0 0x1.381382p+0 0x1.323e34p+0 0x1.2c9fb4p+0 0x1.27350cp+0
    0x1.21fb78p+0 0x1.1cf06ap+0 0x1.181182p+0 0x1.135c82p+0 0x1.0ecf56p+0 0x1.0a681p+0 0x1.0624dep+0 0x1p+0
""")


@dataclass(frozen=True, slots=True)
class LogarithmTable:
    """The table for one base.

    Attributes:
        p: log_b (1 + r) / r.
        logarithms: -log_b c of each interval.
    """

    p: tuple[float, ...]
    logarithms: tuple[float, ...]


E_TABLE: Final = LogarithmTable(
    p=hex_floats("0x1p+0 -0x1.00002cp-1 0x1.555f4cp-2 -0x1.f3a48cp-3"),
    logarithms=hex_floats("""
        0x0p+0 0x1.77459cp-5 0x1.341d74p-4 0x1.a926d8p-4 0x1.0d77e8p-3 0x1.44d2b4p-3 0x1.7ab89p-3 0x1.af3c92p-3
        0x1.e27076p-3 0x1.0a325p-2 0x1.22941ep-2 0x1.3a64c6p-2 0x1.51aad8p-2 0x1.686c8p-2 0x1.7eaf84p-2 0x1.94793ep-2
        -0x1.1bf994p-2 -0x1.071386p-2 -0x1.e530eep-3 -0x1.bd0874p-3 -0x1.95a5b2p-3 -0x1.6f0124p-3 -0x1.4913d2p-3
        -0x1.23d716p-3 -0x1.fe8912p-4 -0x1.b6ac7cp-4 -0x1.700d3ep-4 -0x1.2aa058p-4 -0x1.ccb726p-5 -0x1.466adap-5
        -0x1.849286p-6 0x0p+0
    """),
)
TWO_TABLE: Final = LogarithmTable(
    p=hex_floats("0x1.715476p+0 -0x1.7154b6p-1 0x1.ec7efep-2 -0x1.686a84p-2"),
    logarithms=hex_floats("""
        0x0p+0 0x1.0eb392p-4 0x1.bc841cp-4 0x1.32aea2p-3 0x1.84c2bep-3 0x1.d49eep-3 0x1.11307ep-2 0x1.37124ap-2
        0x1.5c01a2p-2 0x1.800a5ap-2 0x1.a3375ep-2 0x1.c592fcp-2 0x1.e726aap-2 0x1.03fda8p-1 0x1.140cap-1
        0x1.23c41cp-1 -0x1.99b07p-2 -0x1.7b89fp-2 -0x1.5dfdcep-2 -0x1.410602p-2 -0x1.249cd6p-2 -0x1.08bcdep-2
        -0x1.dac224p-3 -0x1.a5095p-3 -0x1.704602p-3 -0x1.3c6faep-3 -0x1.097e42p-3 -0x1.aed3a6p-4 -0x1.4c56p-4
        -0x1.d6ebb6p-5 -0x1.184bb4p-5 0x0p+0
    """),
)
TEN_TABLE: Final = LogarithmTable(
    p=hex_floats("0x1.bcb7b2p-2 -0x1.bcb7fep-3 0x1.28831ep-3 -0x1.b1fbf4p-4"),
    logarithms=hex_floats("""
        0x0p+0 0x1.45f5p-6 0x1.0ba016p-5 0x1.714838p-5 0x1.d41d54p-5 0x1.1a2342p-4 0x1.48f3eep-4 0x1.76913ep-4
        0x1.a30a9cp-4 0x1.ce6e46p-4 0x1.f8c966p-4 0x1.11143p-3 0x1.254b4cp-3 0x1.390f66p-3 0x1.4c658p-3 0x1.5f5242p-3
        -0x1.ed50a2p-4 -0x1.c902a2p-4 -0x1.a56e82p-4 -0x1.828dp-4 -0x1.60573ap-4 -0x1.3ec6aap-4 -0x1.1dd542p-4
        -0x1.fafa72p-5 -0x1.bb7208p-5 -0x1.7d06f6p-5 -0x1.3faf88p-5 -0x1.03623p-5 -0x1.902c1ep-6 -0x1.1b85c4p-6
        -0x1.518278p-7 0x0p+0
    """),
)


@dataclass(frozen=True, slots=True)
class LogarithmBase:
    """The constants of one base.

    Attributes:
        exact: A, a power of two.
        rest: B = c - A.
        factor: c = 1 / ln b.
        single, double: H and h, for floats and doubles.
        table: The table for floats.
    """

    exact: float
    rest: float
    factor: float
    single: tuple[float, ...]
    double: tuple[float, ...]
    table: LogarithmTable


E: Final = LogarithmBase(
    exact=1.0,
    rest=0.0,
    factor=1.0,
    single=hex_floats("0x1.62e4p-1 0x1.7f7d1cp-20"),
    double=hex_floats("0x1.62e42fefa38p-1 0x1.ef35793c7673p-45"),
    table=E_TABLE,
)
TWO: Final = LogarithmBase(
    exact=1.0,
    rest=float.fromhex("0x1.c551d94ae0bf8p-2"),
    factor=float.fromhex("0x1.71547652b82fep+0"),
    single=(1.0, 0.0),
    double=(1.0, 0.0),
    table=TWO_TABLE,
)
TEN: Final = LogarithmBase(
    exact=0.5,
    rest=float.fromhex("-0x1.0d213ab646bc7p-4"),
    factor=float.fromhex("0x1.bcb7b1526e50ep-2"),
    single=hex_floats("0x1.344p-2 0x1.3509f8p-18"),
    double=hex_floats("0x1.34413509f8p-2 -0x1.80433b83b532ap-44"),
    table=TEN_TABLE,
)
SINGLE: Final = hex_floats("0x1.55557ap-1 0x1.995eacp-2 0x1.31e4a0p-2")
DOUBLE: Final = hex_floats("""
    0x1.5555555555592p-1 0x1.999999997fcc3p-2 0x1.2492494200ca7p-2 0x1.c71c51fb334f2p-3
    0x1.7466421390055p-3 0x1.39a162c573733p-3 0x1.2f0913b7c5f6fp-3
""")


def log(lanes: LaneArithmetic, x: Value) -> Value:
    """The natural logarithm."""
    return _logarithm(lanes, x, E)


def log2(lanes: LaneArithmetic, x: Value) -> Value:
    """The binary logarithm."""
    return _logarithm(lanes, x, TWO)


def log10(lanes: LaneArithmetic, x: Value) -> Value:
    """The decimal logarithm."""
    return _logarithm(lanes, x, TEN)


def _logarithm(lanes: LaneArithmetic, x: Value, base: LogarithmBase) -> Value:
    """log_b x, with the special values: -infinity of zero, NaN of negative numbers, infinity of itself."""
    if lanes.single and lanes.float_instructions is not None:
        return _by_table(lanes, lanes.float_instructions, x, base)
    k, f = _split(lanes, x)
    high, low = base.single if lanes.single else base.double
    rest = _rest(lanes, f, base)
    if low:
        rest = lanes.multiply_add(k, low, rest)
    large = lanes.mul(k, high) if high != 1.0 else k
    small = lanes.mul(f, base.exact) if base.exact != 1.0 else f
    total, error = fast_two_sum(lanes, large, small)
    return _with_special_values(lanes, x, lanes.add(total, lanes.add(error, rest)))


def _by_table(lanes: LaneArithmetic, float_instructions: FloatInstructions, x: Value, base: LogarithmBase) -> Value:
    """log_b x of floats; k is the exponent of x less that of m, which is 0 or -1."""
    b = lanes.b
    m = float_instructions.mantissa(b, x)
    k = lanes.sub(float_instructions.exponent(b, x), float_instructions.exponent(b, m))
    interval = lanes.integer_op("lshr", lanes.bits(m), INTERVAL_SHIFT)
    r = lanes.multiply_add(m, float_instructions.look_up(b, INVERSES, interval), -1.0)
    high, low = base.single
    p = horner(lanes, r, base.table.p)
    small = lanes.multiply_add(r, p, lanes.mul(k, low)) if low else lanes.mul(r, p)
    return lanes.add(lanes.multiply_add(k, high, float_instructions.look_up(b, base.table.logarithms, interval)), small)


def _split(lanes: LaneArithmetic, x: Value) -> tuple[Value, Value]:
    """The k and f of a positive x.

    The bits of a number minus those of sqrt(1/2) have k in the exponent field; the bits below it, with those of
    sqrt(1/2) added again, are 1 + f. k + bias, which is positive, is converted to a number as the low bits of 2^p + k,
    with p the bits of the fraction. The bits of a subnormal number are an integer, which is converted in the same way.
    """
    p = lanes.fraction
    is_subnormal = lanes.compare("olt", x, 2.0 ** (1 - lanes.bias))
    integer = lanes.integer_op("or", lanes.bits(x), (lanes.bias + p) << p)
    x = lanes.choose(is_subnormal, lanes.sub(lanes.from_bits(integer), 2.0**p), x)
    offset = lanes.choose(is_subnormal, 2.0**p + 2 * lanes.bias - 1 + p, 2.0**p + lanes.bias)
    root = 0x3F3504F3 if lanes.single else 0x3FE6A09E667F3BCD
    above = lanes.integer_op("sub", lanes.bits(x), root)
    fraction = lanes.integer_op("add", lanes.integer_op("and", above, (1 << p) - 1), root)
    field = lanes.integer_op("lshr", lanes.integer_op("add", above, lanes.bias << p), p)
    number = lanes.from_bits(lanes.integer_op("or", field, (lanes.bias + p) << p))
    return lanes.sub(number, offset), lanes.sub(lanes.from_bits(fraction), 1.0)


def _rest(lanes: LaneArithmetic, f: Value, base: LogarithmBase) -> Value:
    """B f - c L."""
    s = lanes.ratio(f, lanes.add(f, 2.0))
    z = lanes.mul(s, s)
    half_square = lanes.mul(lanes.mul(f, 0.5), f)
    series = horner(lanes, z, SINGLE if lanes.single else DOUBLE)
    inner = lanes.multiply_add(z, series, half_square)
    negative = lanes.sub(lanes.mul(s, inner), half_square)
    return lanes.multiply_add(negative, base.factor, lanes.mul(f, base.rest)) if base.rest else negative


def _with_special_values(lanes: LaneArithmetic, x: Value, result: Value) -> Value:
    result = lanes.choose(lanes.compare("olt", x, math.inf), result, lanes.add(x, math.inf))
    result = lanes.choose(lanes.compare("olt", x, 0.0), math.nan, result)
    return lanes.choose(lanes.compare("oeq", x, 0.0), -math.inf, result)
