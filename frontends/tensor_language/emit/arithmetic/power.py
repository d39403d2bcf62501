"""`x ** y` on machines whose compiler has no library of functions: `exp(y log |x|)`, in doubles.

The logarithm is the sum of two doubles, high and low, as the exponential makes an error of its argument an error
relative to the result: of 2^9 units in the last place at the ends of the range.

    |x| = 2^e m, sqrt(1/2) <= m < sqrt(2)       s = (m - 1) / (m + 1)       z = s^2 <= 0.03
    log |x| = e log 2 + 2 s (1 + z/3 + z^2/5 + z^3/7 + ...)

The quotient, the square, the first two terms of the series and their product are high and low; the error of a product
is `fma(a, b, -(a b))`, and that of a sum of `a` and a smaller `b` is `b - ((a + b) - a)` (Dekker, 1971).
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.emit.arithmetic.registers import (
    apply_function,
    call,
    compare,
    full_like,
    negated,
    typed_like,
)
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.ir.types import DOUBLE, I64
from tlx.ir.values import Value

_Pair = tuple[Value, Value]

_MANTISSA_BITS: Final = 52
_BIAS: Final = 1023
_MANTISSA: Final = (1 << _MANTISSA_BITS) - 1
_LEAST_NORMAL: Final = 2.0**-1022
_SCALE_BITS: Final = 54
_ROOT_OF_TWO: Final = 2.0**0.5
_THIRD: Final = (1 / 3, 1 / 3 * 2.0**-54)  # 1/3 in binary: its digits repeat every two bits
_LOG_OF_TWO: Final = (float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33"))  # the high one: 32 bits
_TERMS: Final = 14
_LARGEST: Final = 800.0  # the exponential of it overflows, of its negative it vanishes


def power(e: Emitter, x: Value, y: Value) -> Value:
    """`x ** y` of floats or doubles, or of vectors of them, as C's `pow`."""
    result = _power(e, *(e.b.cast("fpext", value, typed_like(value, DOUBLE)) for value in (x, y)))
    return e.b.cast("fptrunc", result, x.type)


def _power(e: Emitter, x: Value, y: Value) -> Value:
    b, size = e.b, call(e, "llvm.fabs", [x])
    zero, one, infinity, nan = (full_like(x, number) for number in (0.0, 1.0, float("inf"), float("nan")))
    grows = _is(e, "ogt", y, zero)
    finite = _exponential(e, y, _logarithm(e, size))
    is_zero = _is(e, "oeq", size, zero)
    end = b.select(_same(e, is_zero, grows), zero, infinity)
    magnitude = b.select(_or(e, is_zero, _is(e, "oeq", size, infinity)), end, finite)
    magnitude = b.select(_is(e, "oeq", size, one), one, magnitude)
    is_whole = _is(e, "oeq", call(e, "llvm.trunc", [y]), y)
    half = _times(e, y, full_like(y, 0.5))
    is_odd = b.binary("and", is_whole, _is(e, "une", call(e, "llvm.trunc", [half]), half))
    signed = b.select(is_odd, call(e, "llvm.copysign", [magnitude, x]), magnitude)
    has_no_root = b.binary(
        "and", _is(e, "olt", x, zero), b.binary("and", _is(e, "une", size, infinity), _not(e, is_whole))
    )
    result = b.select(_or(e, has_no_root, _is(e, "uno", x, y)), nan, signed)
    return b.select(_or(e, _is(e, "oeq", y, zero), _is(e, "oeq", x, one)), one, result)


def _logarithm(e: Emitter, x: Value) -> _Pair:
    """The logarithm of a positive number."""
    b = e.b
    is_small = _is(e, "olt", x, full_like(x, _LEAST_NORMAL))
    x = b.select(is_small, _times(e, x, full_like(x, 2.0**_SCALE_BITS)), x)
    bits = b.cast("bitcast", x, typed_like(x, I64))
    exponent = b.binary("lshr", bits, full_like(bits, _MANTISSA_BITS))
    one_bits = full_like(bits, _BIAS << _MANTISSA_BITS)
    m = b.cast("bitcast", b.binary("or", b.binary("and", bits, full_like(bits, _MANTISSA)), one_bits), x.type)
    is_large = _is(e, "ogt", m, full_like(x, _ROOT_OF_TWO))
    m = b.select(is_large, _times(e, m, full_like(m, 0.5)), m)
    bias = b.select(is_small, full_like(bits, _BIAS + _SCALE_BITS), full_like(bits, _BIAS))
    exponent = b.binary("sub", exponent, b.select(is_large, b.binary("sub", bias, full_like(bits, 1)), bias))
    two = b.cast("sitofp", exponent, x.type)
    one = full_like(x, 1.0)
    above, below = _sum(e, m, one), _minus(e, m, one)
    s = _quotient(e, below, (above[0], _minus(e, m, _minus(e, above[0], one))))
    z = _product(e, s, s)
    rest = full_like(x, 1 / (2 * _TERMS + 1))
    for k in range(_TERMS - 1, 1, -1):
        rest = call(e, "llvm.fma", [rest, z[0], full_like(x, 1 / (2 * k + 1))])
    rest = _times(e, _times(e, z[0], z[0]), rest)
    first = _product(e, z, (full_like(x, _THIRD[0]), full_like(x, _THIRD[1])))
    high, low = _sum(e, one, first[0])
    series = _sum(e, high, _plus(e, low, _plus(e, first[1], rest)))
    high, low = (_plus(e, value, value) for value in _product(e, s, series))
    whole = _times(e, two, full_like(x, _LOG_OF_TWO[0]))
    high, error = _sum(e, whole, high)
    return _sum(e, high, _plus(e, error, call(e, "llvm.fma", [two, full_like(x, _LOG_OF_TWO[1]), low])))


def _exponential(e: Emitter, y: Value, logarithm: _Pair) -> Value:
    """`exp(y (high + low))`; infinite, or 0, if it is too large or too small."""
    b, (high, low) = e.b, _product(e, (y, full_like(y, 0.0)), logarithm)
    largest, zero = full_like(y, _LARGEST), full_like(y, 0.0)
    is_inside = _is(e, "olt", call(e, "llvm.fabs", [high]), largest)
    high = b.select(is_inside, high, b.select(_is(e, "ogt", high, zero), largest, negated(e, largest)))
    power = apply_function(e, "exp", high)
    corrected = call(e, "llvm.fma", [power, low, power])
    return b.select(b.binary("and", is_inside, _is(e, "olt", power, full_like(y, float("inf")))), corrected, power)


def _sum(e: Emitter, a: Value, b: Value) -> _Pair:
    """`a + b`, where a is larger or 0."""
    total = _plus(e, a, b)
    return total, _minus(e, b, _minus(e, total, a))


def _product(e: Emitter, a: _Pair, b: _Pair) -> _Pair:
    high = _times(e, a[0], b[0])
    low = call(e, "llvm.fma", [a[0], b[0], negated(e, high)])
    return high, call(e, "llvm.fma", [a[0], b[1], call(e, "llvm.fma", [a[1], b[0], low])])


def _quotient(e: Emitter, a: Value, b: _Pair) -> _Pair:
    high = e.b.binary("fdiv", a, b[0])
    left = call(e, "llvm.fma", [negated(e, high), b[0], a])
    left = call(e, "llvm.fma", [negated(e, high), b[1], left])
    return high, e.b.binary("fdiv", left, b[0])


def _plus(e: Emitter, a: Value, b: Value) -> Value:
    return e.b.binary("fadd", a, b)


def _minus(e: Emitter, a: Value, b: Value) -> Value:
    return e.b.binary("fsub", a, b)


def _times(e: Emitter, a: Value, b: Value) -> Value:
    return e.b.binary("fmul", a, b)


def _is(e: Emitter, predicate: str, a: Value, b: Value) -> Value:
    return compare(e, "fcmp", predicate, a, b)


def _or(e: Emitter, a: Value, b: Value) -> Value:
    return e.b.binary("or", a, b)


def _not(e: Emitter, a: Value) -> Value:
    return e.b.binary("xor", a, full_like(a, 1))


def _same(e: Emitter, a: Value, b: Value) -> Value:
    return _not(e, e.b.binary("xor", a, b))
