"""sin, cos and tan, and their argument reduction: Cody and Waite below 2^20, Payne and Hanek above.

Arguments are reduced by the nearest multiple of pi/2: x = n pi/2 + r, |r| <= pi/4, in doubles.

Cody and Waite: pi/2 is a sum of parts of 33 bits, so that n, of at most 20 bits, times a part is exact. r is a sum of
two doubles, as the first subtractions may cancel all but its last bits.

Payne and Hanek, in integers of 64 bits:

x = M 2^E with M of 53 bits, and 2/pi = 0.b1 b2 b3 ... in binary, so that

    x 2/pi = sum over i of  M b_i 2^(E - i)

Terms with E - i >= 2 are multiples of 4, whole periods, and are dropped. So M is multiplied by the bits from i = E - 1
on, as many as the result needs: doubles come within 2^-62 of a multiple of pi/2, so that 62 bits may cancel before the
53 + 11 significant ones. 2/pi is stored in words of 26 bits, after two words of zeros; E - 1 is in word k at bit s from
its top:

    E + 50 = 26 k + s
    word:      W0          W1          W2     ...     W7         eight words from the k-th on
             ......|.... ........... ...........   ...........
                   ^ weight 2 at bit s

With M = a1 2^26 + a0, column c of the product, its last bit of weight 2^(s - 24 - 26 c), is

    S_c = a0 W_c + a1 W_(c+1)  <  2^54

After carry propagation there are columns of 26 bits, L0 L1 | L2 L3 | L4 L5, each pair exact in a double. The first pair
holds n and the start of the fraction. A float has a0 = 0 and fewer exponents, and needs fewer columns.

The words are selected without a table in memory: bit 5 of k selects between each word and the 32nd after it, bit 4
between each of these and the 16th after it, and so on; after bit 0, eight are left.

The functions, with |x| = n pi/2 + r and cos x = sin(|x| + pi/2):

    m = n (sine), n + 1 (cosine)     m mod 4 =  0: sin r    1: cos r    2: -sin r    3: -cos r
    tan x = tan r where n is even, -1 / tan r where it is odd

    sin r = r + r³ S(r²)                         S(z) = -1/6 + z/120 - ...
    cos r = 1 - r²/2 + r⁴ C(r²)                  C(z) = 1/24 - z/720 + ...

For doubles, r = h + l with l below an ulp of h, and to the first order in l

    sin r = h + (h³ S(h²) + l (1 - h²/2))
    cos r = (1 - h²/2) + ((1 - (1 - h²/2)) - h²/2 + h⁴ C(h²) - h l)

Floats are reduced in doubles, too; their r is rounded to a float before the polynomials.

S and C are minimax approximations by Remez's algorithm in 200 bits. The coefficients of S were rounded one after the
other, those of C all at once. Errors of the result: float, S of degree 2, 2^-27.8; C of degree 2, 2^-30.5; double, S of
degree 5, 2^-57.8; C of degree 5, 2^-59.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.types import DOUBLE
from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import (
    LaneArithmetic,
    fast_two_sum,
    hex_floats,
    horner,
    replace_rare_lanes,
    round_to_step,
    two_sum,
)

HUGE: Final = 2.0**20
TWO_OVER_PI: Final = float.fromhex("0x1.45f306dc9c883p-1")
PARTS: Final = hex_floats("0x1.921fb54400000p+0 0x1.0b4611a600000p-34 0x1.3198a2e000000p-69 0x1.b839a252049c1p-104")
"""pi/2: three parts of 33 bits, and the rest."""
TWO_PARTS: Final = hex_floats("0x1.921fb54400000p+0 0x1.0b4611a626331p-34")
"""pi/2: a part of 33 bits, and the rest; enough for results in float."""


@dataclass(frozen=True, slots=True)
class ReducedArgument:
    """x = n pi/2 + (high + low).

    Attributes:
        n: As an integer; only its last two bits matter.
        high, low: r as a sum; no low part for results in float.
    """

    n: Value
    high: Value
    low: Value | None

    @property
    def values(self) -> list[Value]:
        """The registers."""
        return [self.n, self.high] if self.low is None else [self.n, self.high, self.low]


def cody_waite(lanes: LaneArithmetic, x: Value) -> ReducedArgument:
    """Reduce 0 <= x < 2^20, to about 2^-106 of the rest."""
    n = round_to_step(lanes, x, TWO_OVER_PI)
    high = lanes.multiply_add(n.number, -PARTS[0], x)
    high, second = two_sum(lanes, high, lanes.mul(n.number, -PARTS[1]))
    high, third = two_sum(lanes, high, lanes.mul(n.number, -PARTS[2]))
    low = lanes.multiply_add(n.number, -PARTS[3], lanes.add(second, third))
    return ReducedArgument(n.word, *fast_two_sum(lanes, high, low))


def cody_waite_single(lanes: LaneArithmetic, x: Value) -> ReducedArgument:
    """Reduce a float, 0 <= x < 2^20, to 2^-53 of the rest and 2^-66."""
    n = round_to_step(lanes, x, TWO_OVER_PI)
    high = lanes.multiply_add(n.number, -TWO_PARTS[0], x)
    return ReducedArgument(n.word, lanes.multiply_add(n.number, -TWO_PARTS[1], high), None)


BITS: Final = 26
_MASK: Final = (1 << BITS) - 1

# floor(2/pi 2^1170), the bits of 45 words, computed to 1400 bits; the zeros are the two words before it.
TWO_OVER_PI_BITS: Final = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b801924bba827464873f87"
    "7ac72c4a69cfba208d7d4baed1213a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603fbcbc462"
    "d6829b47db4d9fb3c9f2c26dd3d18fd9a797fa8b5d49eeb1faf97c5ecf41ce7de294a4ba9afed7ec47e357421580c",
    16,
)
WORDS: Final = (0, 0, *((TWO_OVER_PI_BITS >> BITS * (44 - i)) & _MASK for i in range(45)))
"""k is at most 39, for the largest double, and 46 the last word."""

HALF_PI: Final = hex_floats("0x1.921fb50000000p+0 0x1.110b4611a6263p-26 0x1.921fb54442d18p+0")
"""pi/2: its first 26 bits, the rest, and all in one double."""


def payne_hanek(lanes: LaneArithmetic, x: Value) -> ReducedArgument:
    """Reduce doubles from 2^20 up."""
    k, s, significand = _parts(lanes, x)
    words = _words_from(lanes, k, 6, 8)
    low, high = lanes.integer_op("and", significand, _MASK), lanes.integer_op("lshr", significand, BITS)
    columns = [
        lanes.integer_op("add", lanes.integer_op("mul", low, words[c]), lanes.integer_op("mul", high, words[c + 1]))
        for c in range(7)
    ]
    limbs = _carried(lanes, columns)
    n, first, scale = _split_columns(lanes, limbs, s)
    second = lanes.mul(_pair(lanes, limbs[2], limbs[3]), lanes.mul(scale, 2.0 ** (-2 * BITS)))
    third = lanes.mul(_pair(lanes, limbs[4], limbs[5]), lanes.mul(scale, 2.0 ** (-4 * BITS)))
    fraction, rest = fast_two_sum(lanes, first, second)
    return ReducedArgument(n, *_times_half_pi(lanes, fraction, lanes.add(rest, third)))


def payne_hanek_single(lanes: LaneArithmetic, x: Value) -> ReducedArgument:
    """Reduce doubles from 2^20 up that are floats, to 2^-52 of the rest."""
    k, s, significand = _parts(lanes, x)
    words = _words_from(lanes, k, 3, 6)
    high = lanes.integer_op("lshr", significand, BITS)
    limbs = _carried(lanes, [lanes.integer_op("mul", high, words[c + 1]) for c in range(5)])
    n, first, scale = _split_columns(lanes, limbs, s)
    second = lanes.mul(_pair(lanes, limbs[2], limbs[3]), lanes.mul(scale, 2.0 ** (-2 * BITS)))
    return ReducedArgument(n, lanes.mul(lanes.add(first, second), HALF_PI[2]), None)


def _parts(lanes: LaneArithmetic, x: Value) -> tuple[Value, Value, Value]:
    """The k, s and M of x; k = p / 26 is p 2521 / 2^16 in the range of p."""
    bits = lanes.bits(x)
    exponent = lanes.integer_op("sub", lanes.integer_op("lshr", bits, 52), 1075 - 50)
    place = lanes.integer_op("and", exponent, 0x7FF)
    k = lanes.integer_op("lshr", lanes.integer_op("mul", place, 2521), 16)
    s = lanes.integer_op("sub", place, lanes.integer_op("mul", k, BITS))
    significand = lanes.integer_op("or", lanes.integer_op("and", bits, (1 << 52) - 1), 1 << 52)
    return k, s, significand


def _words_from(lanes: LaneArithmetic, k: Value, bits: int, count: int) -> list[Value]:
    """`count` words from word k on; k has `bits` bits."""
    words = [lanes.word(word) for word in WORDS[: count + (1 << bits) - 1]]
    for bit in reversed(range(bits)):
        step = 1 << bit
        mask = lanes.integer_op("sub", lanes.word(0), lanes.integer_op("and", lanes.integer_op("lshr", k, bit), 1))
        words = [
            _blended(lanes, mask, words[i + step], words[i]) if i + step < len(words) else words[i]
            for i in range(min(len(words), count + step - 1))
        ]
    return words


def _blended(lanes: LaneArithmetic, mask: Value, first: Value, second: Value) -> Value:
    """Lanes of the first where the mask is all ones, of the second where it is zero."""
    differing = lanes.integer_op("xor", first, second)
    return lanes.integer_op("xor", second, lanes.integer_op("and", differing, mask))


def _carried(lanes: LaneArithmetic, columns: list[Value]) -> list[Value]:
    """Columns of 26 bits, after carrying into the one before."""
    limbs: list[Value] = []
    carry: Value | None = None
    for column in reversed(columns):
        total = column if carry is None else lanes.integer_op("add", column, carry)
        carry = lanes.integer_op("lshr", total, BITS)
        limbs.insert(0, lanes.integer_op("and", total, _MASK))
    return limbs


def _pair(lanes: LaneArithmetic, first: Value, second: Value) -> Value:
    """L + L' 2^-26, exact."""
    return lanes.multiply_add(_number(lanes, second), 2.0**-BITS, _number(lanes, first))


def _number(lanes: LaneArithmetic, word: Value) -> Value:
    """An integer below 2^52 as a double, by the low bits of 2^52."""
    return lanes.sub(lanes.from_bits(lanes.integer_op("or", word, (1023 + 52) << 52)), 2.0**52)


def _split_columns(lanes: LaneArithmetic, limbs: list[Value], s: Value) -> tuple[Value, Value, Value]:
    """n, the rest of the first two columns, and the weight of the first column's last bit."""
    scale = lanes.from_bits(lanes.integer_op("shl", lanes.integer_op("add", s, 1023 - 24), 52))
    head = lanes.mul(_pair(lanes, limbs[0], limbs[1]), scale)
    n = round_to_step(lanes, head)
    return n.word, lanes.sub(head, n.number), scale


def _times_half_pi(lanes: LaneArithmetic, high: Value, low: Value) -> tuple[Value, Value]:
    """(high + low) pi/2 as a sum: the product of the first 26 bits of both is exact."""
    head = lanes.from_bits(lanes.integer_op("and", lanes.bits(high), -(1 << 27)))
    tail = lanes.add(lanes.sub(high, head), low)
    product = lanes.mul(head, HALF_PI[0])
    rest = lanes.multiply_add(head, HALF_PI[1], lanes.mul(tail, HALF_PI[2]))
    return fast_two_sum(lanes, product, rest)


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
    """The sine; signed zeros are preserved."""
    magnitude = lanes.magnitude(x)
    m, sine, cosine = _sine_and_cosine(lanes, magnitude)
    negative = lanes.integer_op("and", lanes.bits(x), lanes.sign_bit)
    return _finite_only(lanes, x, magnitude, _quadrant(lanes, m, sine, cosine, negative))


def cos(lanes: LaneArithmetic, x: Value) -> Value:
    """The cosine."""
    magnitude = lanes.magnitude(x)
    n, sine, cosine = _sine_and_cosine(lanes, magnitude)
    return _finite_only(lanes, x, magnitude, _quadrant(lanes, lanes.integer_op("add", n, 1), sine, cosine, None))


def tan(lanes: LaneArithmetic, x: Value) -> Value:
    """The tangent, by a division; signed zeros are preserved."""
    magnitude = lanes.magnitude(x)
    n, sine, cosine = _sine_and_cosine(lanes, magnitude)
    top = lanes.integer.bits - 1
    sign = lanes.integer_op("shl", n, top)
    is_odd = lanes.b.icmp("slt", sign, 0)
    quotient = lanes.div(lanes.choose(is_odd, cosine, sine), lanes.choose(is_odd, sine, cosine))
    sign = lanes.integer_op("xor", sign, lanes.integer_op("and", lanes.bits(x), lanes.sign_bit))
    return _finite_only(lanes, x, magnitude, lanes.from_bits(lanes.integer_op("xor", lanes.bits(quotient), sign)))


def _sine_and_cosine(lanes: LaneArithmetic, magnitude: Value) -> tuple[Value, Value, Value]:
    """n, sin r and cos r."""
    rest = _reduced_single(lanes, magnitude) if lanes.single else _reduced_double(lanes, magnitude)
    square = lanes.mul(rest.high, rest.high)
    return rest.n, _sine(lanes, rest, square), _cosine(lanes, rest, square)


def _reduced_double(lanes: LaneArithmetic, magnitude: Value) -> ReducedArgument:
    fast = cody_waite(lanes, magnitude)
    huge = lanes.compare("oge", magnitude, HUGE)
    n, high, low = replace_rare_lanes(lanes, huge, fast.values, lambda: payne_hanek(lanes, magnitude).values)
    return ReducedArgument(n, high, low)


def _reduced_single(lanes: LaneArithmetic, magnitude: Value) -> ReducedArgument:
    b = lanes.b
    doubles = LaneArithmetic(b, lanes.count, DOUBLE)
    wide = b.cast("fpext", magnitude, doubles.floats)
    fast = cody_waite_single(doubles, wide)
    huge = lanes.compare("oge", magnitude, HUGE)
    n, high = replace_rare_lanes(lanes, huge, fast.values, lambda: payne_hanek_single(doubles, wide).values)
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


def _finite_only(lanes: LaneArithmetic, x: Value, magnitude: Value, result: Value) -> Value:
    """The result, and NaN of infinity and of NaN."""
    return lanes.choose(lanes.compare("olt", magnitude, float("inf")), result, lanes.sub(x, x))
