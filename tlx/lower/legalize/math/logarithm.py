"""log, log2 and log10: logarithms to the base b = e, 2 and 10.

    x = 2^k (1 + f),   sqrt(1/2) <= 1 + f < sqrt(2),   f exact
    log_b x = k log_b 2 + c log(1 + f),                c = 1 / ln b

With s = f / (2 + f) and z = s²,

    log(1 + f) = 2 atanh s = 2 s + s z P(z)            P(z) = 2/3 + 2/5 z + 2/7 z² + ...
               = f - L,    L = f²/2 - s (f²/2 + z P(z))    as 2 s = f - s f

L is small beside f, so that its rounding counts little. c is split into a part A that is a power of two or none and a
rest B (for b = e 1 and 0, for b = 2 1 and 0.44, for b = 10 1/2 and -0.07), so that the larger term is exact:

    log_b x = k H + A f + (B f - c L + k h)

H has so few bits that k H is exact, h is the rest of log_b 2; the sum of the first two terms keeps its rounding error.
Where k = 0, near x = 1, the first term is zero, and A f is exact: the relative error stays small there.

Logarithms of powers of two to the base 2 are exact.

P is a minimax approximation by Remez's algorithm in 200 bits, rounded afterwards; its error makes less than 2^-29.5
(float, degree 2) or 2^-58.5 (double, degree 6) of the result.

Where the parts of a number and elements of a table are instructions, logarithms of floats are of tables
(`logarithm_tables.py`), off by 2.2 ulp at most:

    x = 2^k m,   3/4 <= m < 3/2,   log_b x = (k H + log_b m) + k h

The instructions make of zero a k of -infinity, of infinity infinity, of negative numbers an m of NaN: nothing is
special.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.values import Value
from tlx.lower.legalize.math import logarithm_tables
from tlx.lower.legalize.math.lanes import Lanes
from tlx.lower.legalize.math.pieces import fast_sum
from tlx.lower.legalize.math.polynomial import horner, numbers
from tlx.target import FloatHelpers


@dataclass(frozen=True, slots=True)
class Base:
    """What makes a logarithm one to a base.

    Attributes:
        exact: A, a power of two.
        rest: B = c - A.
        factor: c = 1 / ln b.
        single, double: H and h, for floats and doubles.
        table: For floats.
    """

    exact: float
    rest: float
    factor: float
    single: tuple[float, ...]
    double: tuple[float, ...]
    table: logarithm_tables.Table


E: Final = Base(
    exact=1.0,
    rest=0.0,
    factor=1.0,
    single=numbers("0x1.62e4p-1 0x1.7f7d1cp-20"),
    double=numbers("0x1.62e42fefa38p-1 0x1.ef35793c7673p-45"),
    table=logarithm_tables.E,
)
TWO: Final = Base(
    exact=1.0,
    rest=float.fromhex("0x1.c551d94ae0bf8p-2"),
    factor=float.fromhex("0x1.71547652b82fep+0"),
    single=(1.0, 0.0),
    double=(1.0, 0.0),
    table=logarithm_tables.TWO,
)
TEN: Final = Base(
    exact=0.5,
    rest=float.fromhex("-0x1.0d213ab646bc7p-4"),
    factor=float.fromhex("0x1.bcb7b1526e50ep-2"),
    single=numbers("0x1.344p-2 0x1.3509f8p-18"),
    double=numbers("0x1.34413509f8p-2 -0x1.80433b83b532ap-44"),
    table=logarithm_tables.TEN,
)
SINGLE: Final = numbers("0x1.55557ap-1 0x1.995eacp-2 0x1.31e4a0p-2")
DOUBLE: Final = numbers("""
    0x1.5555555555592p-1 0x1.999999997fcc3p-2 0x1.2492494200ca7p-2 0x1.c71c51fb334f2p-3
    0x1.7466421390055p-3 0x1.39a162c573733p-3 0x1.2f0913b7c5f6fp-3
""")


def log(lanes: Lanes, x: Value) -> Value:
    """The natural logarithm."""
    return _logarithm(lanes, x, E)


def log2(lanes: Lanes, x: Value) -> Value:
    """The binary logarithm."""
    return _logarithm(lanes, x, TWO)


def log10(lanes: Lanes, x: Value) -> Value:
    """The decimal logarithm."""
    return _logarithm(lanes, x, TEN)


def _logarithm(lanes: Lanes, x: Value, base: Base) -> Value:
    """log_b x, with the special values: -infinity of zero, NaN of negative numbers, infinity of itself."""
    if lanes.single and lanes.helpers is not None:
        return _by_table(lanes, lanes.helpers, x, base)
    k, f = _split(lanes, x)
    high, low = base.single if lanes.single else base.double
    rest = _rest(lanes, f, base)
    if low:
        rest = lanes.multiply_add(k, low, rest)
    large = lanes.mul(k, high) if high != 1.0 else k
    small = lanes.mul(f, base.exact) if base.exact != 1.0 else f
    total, lost = fast_sum(lanes, large, small)
    return _with_special_values(lanes, x, lanes.add(total, lanes.add(lost, rest)))


def _by_table(lanes: Lanes, helpers: FloatHelpers, x: Value, base: Base) -> Value:
    """log_b x of floats; k is the exponent of x less that of m, which is 0 or -1."""
    b = lanes.b
    m = helpers.mantissa(b, x)
    k = lanes.sub(helpers.exponent(b, x), helpers.exponent(b, m))
    interval = lanes.integer_op("lshr", lanes.bits(m), logarithm_tables.INTERVAL)
    r = lanes.multiply_add(m, helpers.pick(b, logarithm_tables.INVERSES, interval), -1.0)
    high, low = base.single
    p = horner(lanes, r, base.table.p)
    small = lanes.multiply_add(r, p, lanes.mul(k, low)) if low else lanes.mul(r, p)
    return lanes.add(lanes.multiply_add(k, high, helpers.pick(b, base.table.logarithms, interval)), small)


def _split(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """The k and f of a positive x.

    The bits of a number less those of sqrt(1/2) are k in the place of the exponent and the rest below it, which,
    with those of sqrt(1/2) added again, is 1 + f. k + bias, positive, becomes a number as the last bits of 2^p + k,
    p the bits of the fraction. A denormal is multiplied by 2^(p + 2) first.
    """
    p = lanes.fraction
    is_denormal = lanes.compare("olt", x, 2.0 ** (1 - lanes.bias))
    x = lanes.choose(is_denormal, lanes.mul(x, 2.0 ** (p + 2)), x)
    offset = lanes.choose(is_denormal, 2.0**p + lanes.bias + p + 2, 2.0**p + lanes.bias)
    root = 0x3F3504F3 if lanes.single else 0x3FE6A09E667F3BCD
    above = lanes.integer_op("sub", lanes.bits(x), root)
    fraction = lanes.integer_op("add", lanes.integer_op("and", above, (1 << p) - 1), root)
    field = lanes.integer_op("lshr", lanes.integer_op("add", above, lanes.bias << p), p)
    number = lanes.from_bits(lanes.integer_op("or", field, (lanes.bias + p) << p))
    return lanes.sub(number, offset), lanes.sub(lanes.from_bits(fraction), 1.0)


def _rest(lanes: Lanes, f: Value, base: Base) -> Value:
    """B f - c L."""
    s = lanes.ratio(f, lanes.add(f, 2.0))
    z = lanes.mul(s, s)
    half_square = lanes.mul(lanes.mul(f, 0.5), f)
    series = horner(lanes, z, SINGLE if lanes.single else DOUBLE)
    inner = lanes.multiply_add(z, series, half_square)
    negative = lanes.sub(lanes.mul(s, inner), half_square)
    return lanes.multiply_add(negative, base.factor, lanes.mul(f, base.rest)) if base.rest else negative


def _with_special_values(lanes: Lanes, x: Value, result: Value) -> Value:
    result = lanes.choose(lanes.compare("olt", x, float("inf")), result, lanes.add(x, x))
    result = lanes.choose(lanes.compare("olt", x, 0.0), float("nan"), result)
    return lanes.choose(lanes.compare("oeq", x, 0.0), float("-inf"), result)
