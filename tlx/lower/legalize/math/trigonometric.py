"""sin and cos, of arguments up to the largest finite ones.

With |x| = n pi/2 + r, |r| <= pi/4 (`reduction.py`, `huge.py`), and cos x = sin(|x| + pi/2):

    m = n (sine), n + 1 (cosine)     m mod 4 =  0: sin r    1: cos r    2: -sin r    3: -cos r

    sin r = r + r³ S(r²)                         S(z) = -1/6 + z/120 - ...
    cos r = 1 - r²/2 + r⁴ C(r²)                  C(z) = 1/24 - z/720 + ...

For doubles, r = h + l with l below an ulp of h, and to the first order in l

    sin r = h + (h³ S(h²) + l (1 - h²/2))
    cos r = (1 - h²/2) + ((1 - (1 - h²/2)) - h²/2 + h⁴ C(h²) - h l)

The reduction is in doubles for floats, too; their r is rounded to a float before the polynomials.

S and C are minimax approximations by Remez's algorithm in 200 bits, rounded one coefficient after the other, S, and all
at once, C. Their errors make of the result: float, S of degree 2, 2^-27.8; C of degree 2, 2^-30.5; double, S of degree
5, 2^-57.8; C of degree 5, 2^-59.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.types import DOUBLE
from tlx.ir.values import Value
from tlx.lower.legalize.math.argument_reduction import (
    HUGE,
    ReducedArgument,
    cody_waite,
    cody_waite_single,
    payne_hanek,
    payne_hanek_single,
)
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, hex_floats, horner, where_any

SINE_SINGLE: Final = hex_floats("-0x1.555546p-3 0x1.11077cp-7 -0x1.995590p-13")
COSINE_SINGLE: Final = hex_floats("0x1.55554ap-5 -0x1.6c0c82p-10 0x1.99ff42p-16")
SINE_DOUBLE: Final = hex_floats("""
    -0x1.5555555555549p-3 0x1.111111110f89cp-7 -0x1.a01a019c1416cp-13
    0x1.71de3578e993ep-19 -0x1.ae5e66a16f048p-26 0x1.5d930066e307ep-33
""")
COSINE_DOUBLE: Final = hex_floats("""
    0x1.555555555554cp-5 -0x1.6c16c16c15141p-10 0x1.a01a019cab7f7p-16
    -0x1.27e4f8053a382p-22 0x1.1ee9e89444239p-29 -0x1.8facd2d502748p-37
""")


def sin(lanes: LaneArithmetic, x: Value) -> Value:
    """The sine; of zero, the zero itself."""
    size = lanes.magnitude(x)
    m, sine, cosine = _of_rest(lanes, size)
    negative = lanes.integer_op("and", lanes.bits(x), lanes.sign_bit)
    return _finite_only(lanes, x, size, _quadrant(lanes, m, sine, cosine, negative))


def cos(lanes: LaneArithmetic, x: Value) -> Value:
    """The cosine."""
    size = lanes.magnitude(x)
    n, sine, cosine = _of_rest(lanes, size)
    return _finite_only(lanes, x, size, _quadrant(lanes, lanes.integer_op("add", n, 1), sine, cosine, None))


def _of_rest(lanes: LaneArithmetic, size: Value) -> tuple[Value, Value, Value]:
    """n, sin r and cos r."""
    rest = _reduced_single(lanes, size) if lanes.single else _reduced_double(lanes, size)
    square = lanes.mul(rest.high, rest.high)
    return rest.n, _sine(lanes, rest, square), _cosine(lanes, rest, square)


def _reduced_double(lanes: LaneArithmetic, size: Value) -> ReducedArgument:
    fast = cody_waite(lanes, size)
    huge = lanes.compare("oge", size, HUGE)
    n, high, low = where_any(lanes, huge, fast.values, lambda: payne_hanek(lanes, size).values)
    return ReducedArgument(n, high, low)


def _reduced_single(lanes: LaneArithmetic, size: Value) -> ReducedArgument:
    b = lanes.b
    doubles = LaneArithmetic(b, lanes.count, DOUBLE)
    wide = b.cast("fpext", size, doubles.floats)
    fast = cody_waite_single(doubles, wide)
    huge = lanes.compare("oge", size, HUGE)
    n, high = where_any(lanes, huge, fast.values, lambda: payne_hanek_single(doubles, wide).values)
    return ReducedArgument(b.cast("trunc", n, lanes.words), b.cast("fptrunc", high, lanes.floats), None)


def _sine(lanes: LaneArithmetic, rest: ReducedArgument, square: Value) -> Value:
    series = horner(lanes, square, SINE_SINGLE if lanes.single else SINE_DOUBLE)
    cube = lanes.mul(square, rest.high)
    if rest.low is None:
        return lanes.multiply_add(cube, series, rest.high)
    low = lanes.multiply_add(lanes.mul(square, -0.5), rest.low, rest.low)
    return lanes.add(rest.high, lanes.multiply_add(cube, series, low))


def _cosine(lanes: LaneArithmetic, rest: ReducedArgument, square: Value) -> Value:
    series = horner(lanes, square, COSINE_SINGLE if lanes.single else COSINE_DOUBLE)
    half = lanes.mul(square, 0.5)
    head = lanes.sub(1.0, half)
    tail = lanes.sub(lanes.sub(1.0, head), half)
    if rest.low is not None:
        tail = lanes.sub(tail, lanes.mul(rest.high, rest.low))
    return lanes.add(head, lanes.multiply_add(lanes.mul(square, square), series, tail))


def _quadrant(lanes: LaneArithmetic, m: Value, sine: Value, cosine: Value, negative: Value | None) -> Value:
    """sin(r + m pi/2), its sign changed where the sign bits of `negative` are set."""
    top = lanes.integer.bits - 1
    is_odd = lanes.b.icmp("slt", lanes.integer_op("shl", m, top), 0)
    sign = lanes.integer_op("and", lanes.integer_op("shl", m, top - 1), lanes.sign_bit)
    sign = sign if negative is None else lanes.integer_op("xor", sign, negative)
    return lanes.from_bits(lanes.integer_op("xor", lanes.bits(lanes.choose(is_odd, cosine, sine)), sign))


def _finite_only(lanes: LaneArithmetic, x: Value, size: Value, result: Value) -> Value:
    """The result, and NaN of infinity and of NaN."""
    return lanes.choose(lanes.compare("olt", size, float("inf")), result, lanes.sub(x, x))
