"""Functions of the C library in double, for machines without one: powers, inverse and hyperbolic functions.

Each is within 4 ulp for all arguments and returns IEEE 754's special values; `LIBRARY` lists them.

Powers are e^(y log |x|). The logarithm is a sum of two doubles, as an absolute error of the exponential's argument
becomes a relative error of the result: of 2^9 units in the last place at the ends of the range.

    |x| = 2^e m, sqrt(1/2) <= m < sqrt(2)       s = (m - 1) / (m + 1)       z = s^2 <= 0.03
    log |x| = e log 2 + 2 s (1 + z/3 + z^2/5 + z^3/7 + ...)

The quotient, the square, the first two terms of the series and their product are sums of two doubles as well; the
error of a product is `fma(a, b, -(a b))`.

Arc tangents are reduced to |u| <= tan(pi/8), where 21 terms of the series are enough:

    atan x = pi/2 - atan(1 / x)                         x > 1
    atan t = pi/4 + atan((t - 1) / (t + 1))             t > tan(pi/8)
    atan u = u - u^3/3 + u^5/5 - ...

and the other inverse functions are arc tangents of quotients:

    asin x = atan(x / sqrt((1 - x) (1 + x)))            acos x = 2 atan(sqrt((1 - x) / (1 + x)))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from tlx.ir.types import I64, VectorType
from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, fast_two_sum, hex_floats, horner
from tlx.lower.legalize.math.exponential import exp
from tlx.lower.legalize.math.trigonometric import tan

_Pair = tuple[Value, Value]

_FRACTION_BITS: Final = 52
_BIAS: Final = 1023
_LEAST_NORMAL: Final = 2.0**-1022
_RAISED: Final = 54
_THIRD: Final = (1 / 3, 1 / 3 * 2.0**-54)  # 1/3 in binary: its digits repeat every two bits
_LOG_OF_TWO: Final = hex_floats("0x1.62e42feep-1 0x1.a39ef35793c76p-33")  # the first has 32 bits
_LOG_OF_TEN: Final = hex_floats("0x1.26bb1bbb55516p+1 -0x1.f48ad494ea3e9p-53")
_LOGARITHM_TERMS: Final = 14
_OVERFLOWING: Final = 800.0  # e^x is infinite, e^-x is zero
_HALF_PI: Final = hex_floats("0x1.921fb54442d18p+0 0x1.1a62633145c07p-54")
_EIGHTH_OF_TURN: Final = math.tan(math.pi / 8)
_ARC_TERMS: Final = tuple((-1) ** k / (2 * k + 1) for k in range(1, 22))
_SINH_TERMS: Final = tuple(1 / math.factorial(2 * k + 1) for k in range(1, 10))
_LARGE: Final = 700.0  # e^x is finite up to 709.78


def _pow(lanes: LaneArithmetic, x: Value, y: Value) -> Value:
    """The power x^y, as C's `pow`."""
    b, size = lanes.b, lanes.magnitude(x)
    grows = lanes.compare("ogt", y, 0.0)
    product = _product(lanes, (y, lanes.number(0.0)), _logarithm(lanes, size))
    finite = _exponential(lanes, *product)
    is_zero = lanes.compare("oeq", size, 0.0)
    end = lanes.choose(b.binary("xor", is_zero, grows), math.inf, 0.0)
    is_end = b.binary("or", is_zero, lanes.compare("oeq", size, math.inf))
    magnitude = lanes.choose(is_end, end, finite)
    magnitude = lanes.choose(lanes.compare("oeq", size, 1.0), 1.0, magnitude)
    is_whole, half = _is_integer(lanes, y), lanes.mul(y, 0.5)
    is_fractional = b.icmp("eq", is_whole, 0)
    is_odd = b.binary("and", is_whole, b.icmp("eq", _is_integer(lanes, half), 0))
    signed = lanes.choose(is_odd, lanes.with_sign_of(magnitude, x), magnitude)
    is_negative = b.binary("and", lanes.compare("olt", x, 0.0), lanes.compare("une", size, math.inf))
    has_no_root = b.binary("and", is_negative, is_fractional)
    result = lanes.choose(b.binary("or", has_no_root, lanes.compare("uno", x, y)), math.nan, signed)
    return lanes.choose(b.binary("or", lanes.compare("oeq", y, 0.0), lanes.compare("oeq", x, 1.0)), 1.0, result)


def _is_integer(lanes: LaneArithmetic, y: Value) -> Value:
    return lanes.compare("oeq", lanes.b.call_intrinsic("llvm.trunc", [lanes.floats], lanes.floats, [y]), y)


def _logarithm(lanes: LaneArithmetic, x: Value) -> _Pair:
    """The logarithm of a positive number."""
    b = lanes.b
    is_small = lanes.compare("olt", x, _LEAST_NORMAL)
    bits = lanes.bits(lanes.choose(is_small, lanes.mul(x, 2.0**_RAISED), x))
    fraction = lanes.integer_op("and", bits, (1 << _FRACTION_BITS) - 1)
    m = lanes.from_bits(lanes.integer_op("or", fraction, _BIAS << _FRACTION_BITS))
    is_large = lanes.compare("ogt", m, math.sqrt(2))
    m = lanes.choose(is_large, lanes.mul(m, 0.5), m)
    bias = b.select(is_small, lanes.word(_BIAS + _RAISED), lanes.word(_BIAS))
    bias = b.select(is_large, lanes.integer_op("sub", bias, 1), bias)
    field = lanes.integer_op("lshr", bits, _FRACTION_BITS)
    exponent = b.cast("sitofp", lanes.integer_op("sub", field, bias), lanes.floats)
    above, below = fast_two_sum(lanes, m, lanes.number(1.0)), lanes.sub(m, 1.0)
    s = _quotient(lanes, below, (above[0], lanes.sub(m, lanes.sub(above[0], 1.0))))
    z = _product(lanes, s, s)
    rest = horner(lanes, z[0], [1 / (2 * k + 1) for k in range(2, _LOGARITHM_TERMS + 1)])
    rest = lanes.mul(lanes.mul(z[0], z[0]), rest)
    first = _product(lanes, z, (lanes.number(_THIRD[0]), lanes.number(_THIRD[1])))
    high, low = fast_two_sum(lanes, lanes.number(1.0), first[0])
    series = fast_two_sum(lanes, high, lanes.add(low, lanes.add(first[1], rest)))
    high, low = (lanes.add(value, value) for value in _product(lanes, s, series))
    high, error = fast_two_sum(lanes, lanes.mul(exponent, _LOG_OF_TWO[0]), high)
    return fast_two_sum(lanes, high, lanes.add(error, _fma(lanes, exponent, lanes.number(_LOG_OF_TWO[1]), low)))


def _exponential(lanes: LaneArithmetic, high: Value, low: Value) -> Value:
    """The exponential e^(high + low); infinite, or 0, if that is too large or too small."""
    is_inside = lanes.compare("olt", lanes.magnitude(high), _OVERFLOWING)
    power = exp(lanes, lanes.at_most(lanes.at_least(high, -_OVERFLOWING), _OVERFLOWING))
    is_finite = lanes.b.binary("and", is_inside, lanes.compare("olt", power, math.inf))
    return lanes.choose(is_finite, _fma(lanes, power, low, power), power)


def _product(lanes: LaneArithmetic, x: _Pair, y: _Pair) -> _Pair:
    high = lanes.mul(x[0], y[0])
    low = _fma(lanes, x[0], y[0], lanes.negative(high))
    return high, _fma(lanes, x[0], y[1], _fma(lanes, x[1], y[0], low))


def _quotient(lanes: LaneArithmetic, x: Value, y: _Pair) -> _Pair:
    high = lanes.div(x, y[0])
    left = _fma(lanes, lanes.negative(high), y[0], x)
    left = _fma(lanes, lanes.negative(high), y[1], left)
    return high, lanes.div(left, y[0])


def _fma(lanes: LaneArithmetic, a: Value, b: Value, c: Value) -> Value:
    """The sum a b + c, rounded once."""
    return lanes.b.call_intrinsic("llvm.fma", [lanes.floats], lanes.floats, [a, b, c])


def _powi(lanes: LaneArithmetic, x: Value, n: Value) -> Value:
    """The power x^n of a whole n."""
    return _pow(lanes, x, lanes.b.cast("sitofp", n, lanes.floats))


def _ldexp(lanes: LaneArithmetic, x: Value, n: Value) -> Value:
    """The product x 2^n: by at most three factors, of which only the last one rounds."""
    b = lanes.b
    n = b.cast("sext", n, VectorType(lanes.count, I64))
    for _ in range(2):
        is_above, is_below = b.icmp("sgt", n, _BIAS), b.icmp("slt", n, 1 - _BIAS)
        factor = lanes.choose(is_above, 2.0**_BIAS, lanes.choose(is_below, 2.0 ** (1 - _BIAS + _RAISED), 1.0))
        x = lanes.mul(x, factor)
        taken = b.select(is_below, lanes.word(1 - _BIAS + _RAISED), lanes.word(0))
        n = b.binary("sub", n, b.select(is_above, lanes.word(_BIAS), taken))
    n = b.select(b.icmp("sgt", n, _BIAS), lanes.word(_BIAS), n)
    n = b.select(b.icmp("slt", n, 1 - _BIAS), lanes.word(1 - _BIAS), n)
    field = lanes.integer_op("add", n, _BIAS)
    return lanes.mul(x, lanes.from_bits(lanes.integer_op("shl", field, _FRACTION_BITS)))


def _exp10(lanes: LaneArithmetic, x: Value) -> Value:
    """The power 10^x."""
    x = lanes.at_most(lanes.at_least(x, -_OVERFLOWING), _OVERFLOWING)
    factor = lanes.number(_LOG_OF_TEN[0]), lanes.number(_LOG_OF_TEN[1])
    return _exponential(lanes, *_product(lanes, (x, lanes.number(0.0)), factor))


def _sinh(lanes: LaneArithmetic, x: Value) -> Value:
    """The hyperbolic sine: (e^x - e^-x) / 2, or its series below 1."""
    size = lanes.magnitude(x)
    square = lanes.mul(size, size)
    series = lanes.multiply_add(lanes.mul(size, square), horner(lanes, square, _SINH_TERMS), size)
    half, inverse = _halves(lanes, size)
    result = lanes.choose(lanes.compare("olt", size, 1.0), series, lanes.sub(half, inverse))
    return lanes.with_sign_of(_unless_large(lanes, size, result), x)


def _cosh(lanes: LaneArithmetic, x: Value) -> Value:
    """The hyperbolic cosine: (e^x + e^-x) / 2."""
    size = lanes.magnitude(x)
    return _unless_large(lanes, size, lanes.add(*_halves(lanes, size)))


def _halves(lanes: LaneArithmetic, size: Value) -> _Pair:
    power = exp(lanes, size)
    return lanes.mul(power, 0.5), lanes.div(0.5, power)


def _unless_large(lanes: LaneArithmetic, size: Value, result: Value) -> Value:
    """The result, or e^size / 2 where e^size may be infinite."""
    root = exp(lanes, lanes.mul(size, 0.5))
    return lanes.choose(lanes.compare("ogt", size, _LARGE), lanes.mul(lanes.mul(root, 0.5), root), result)


def _atan(lanes: LaneArithmetic, x: Value) -> Value:
    """The arc tangent."""
    return lanes.with_sign_of(_positive_atan(lanes, lanes.magnitude(x)), x)


def _positive_atan(lanes: LaneArithmetic, size: Value) -> Value:
    """The arc tangent of a number that is not negative, or infinite."""
    is_inverted = lanes.compare("ogt", size, 1.0)
    t = lanes.choose(is_inverted, lanes.div(1.0, size), size)
    is_shifted = lanes.compare("ogt", t, _EIGHTH_OF_TURN)
    u = lanes.choose(is_shifted, lanes.div(lanes.sub(t, 1.0), lanes.add(t, 1.0)), t)
    square = lanes.mul(u, u)
    angle = lanes.multiply_add(lanes.mul(u, square), horner(lanes, square, _ARC_TERMS), u)
    high, low = (lanes.choose(is_shifted, part / 2, 0.0) for part in _HALF_PI)
    angle = lanes.add(high, lanes.add(low, angle))
    rest = lanes.add(lanes.sub(_HALF_PI[0], angle), _HALF_PI[1])
    return lanes.choose(is_inverted, rest, angle)


def _atan2(lanes: LaneArithmetic, y: Value, x: Value) -> Value:
    """The angle of the point (x, y)."""
    above, beside = lanes.magnitude(y), lanes.magnitude(x)
    equal = lanes.choose(lanes.compare("oeq", above, 0.0), 0.0, 1.0)  # both are zero, or infinite
    quotient = lanes.choose(lanes.compare("oeq", above, beside), equal, lanes.div(above, beside))
    angle = _positive_atan(lanes, quotient)
    other = lanes.add(lanes.sub(2 * _HALF_PI[0], angle), 2 * _HALF_PI[1])
    angle = lanes.choose(lanes.b.icmp("slt", lanes.bits(x), 0), other, angle)
    return lanes.with_sign_of(lanes.choose(lanes.compare("uno", x, y), math.nan, angle), y)


def _asin(lanes: LaneArithmetic, x: Value) -> Value:
    """The arc sine; NaN beyond 1."""
    return _atan(lanes, lanes.div(x, _root(lanes, lanes.mul(lanes.sub(1.0, x), lanes.add(1.0, x)))))


def _acos(lanes: LaneArithmetic, x: Value) -> Value:
    """The arc cosine; NaN beyond 1."""
    return lanes.mul(_atan(lanes, _root(lanes, lanes.div(lanes.sub(1.0, x), lanes.add(1.0, x)))), 2.0)


def _root(lanes: LaneArithmetic, x: Value) -> Value:
    return lanes.b.call_intrinsic("llvm.sqrt", [lanes.floats], lanes.floats, [x])


LIBRARY: Final[dict[str, Callable[..., Value]]] = {
    "exp10": _exp10,
    "tan": tan,
    "sinh": _sinh,
    "cosh": _cosh,
    "asin": _asin,
    "acos": _acos,
    "atan": _atan,
    "atan2": _atan2,
    "pow": _pow,
    "powi": _powi,
    "ldexp": _ldexp,
}
"""Functions of registers of doubles, by LLVM's names; `powi` and `ldexp` take a register of integers second."""
