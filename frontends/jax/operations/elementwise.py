"""Elementwise operations: arithmetic, comparisons, functions, conversions, selection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tlx.frontends.jax.erfc import ERFC
from tlx.frontends.jax.translation import OperationContext, Results, TranslationRule
from tlx.graph import Graph, Value
from tlx.graph.value import splat_value
from tlx.intrinsics.numpy_types import is_float

_ATANF: Final = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)  # Cephes, atanf
_ATAN: Final = (  # Cephes, atan: numerator and denominator
    (
        -8.750608600031904122785e-1,
        -1.615753718733365076637e1,
        -7.500855792314704667340e1,
        -1.228866684490136173410e2,
        -6.485021904942025371773e1,
    ),
    (
        1.0,
        2.485846490142306297962e1,
        1.650270098316988542046e2,
        4.328810604912902668951e2,
        4.853903996359136964868e2,
        1.945506571482613964425e2,
    ),
)
_UNSIGNED_MASKS: Final = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)


def _unary(name: str) -> TranslationRule:
    return TranslationRule(lambda c: [c.graph.unary(name, c.operands[0])], f'`unary("{name}", x)`')


def _binary(name: str) -> TranslationRule:
    return TranslationRule(lambda c: [c.graph.binary(name, *c.operands)], f'`binary("{name}", x, y)`')


def _maximum(c: OperationContext) -> Results:
    """The maximum. That of x and -infinity, which softmax contains, is x."""
    x, y = c.operands
    for operand, other in ((x, y), (y, x)):
        if is_float(operand.dtype) and splat_value(operand) == -math.inf:
            return [other]
    return [c.graph.maximum(x, y)]


def _composite_function(function: Callable[[Graph, Value], Value], text: str) -> TranslationRule:
    """A rule for a function of floats composed of others; half and bfloat are computed in float."""

    def translate(c: OperationContext) -> Results:
        (x,) = c.operands
        wide = c.graph.convert(x, "float32") if x.dtype.itemsize == 2 else x
        return [c.graph.convert(function(c.graph, wide), x.dtype)]

    return TranslationRule(translate, text)


def _logical(name: str, arithmetic: str) -> TranslationRule:
    """An arithmetic operation; on booleans, a logical one."""

    def translate(c: OperationContext) -> Results:
        return [c.graph.binary(name if c.type.dtype == np.bool_ else arithmetic, *c.operands)]

    return TranslationRule(translate, f'`binary("{arithmetic}", x, y)`, of booleans `{name}`')


def _shift_right(kind: str) -> TranslationRule:
    def translate(c: OperationContext) -> Results:
        g, (x, y) = c.graph, c.operands
        same = np.dtype(f"{kind}{x.dtype.itemsize}")
        return [g.convert(g.binary("shift_right", g.convert(x, same), g.convert(y, same)), x.dtype)]

    return TranslationRule(translate, f'`binary("shift_right", x, y)` of {"" if kind == "i" else "un"}signed integers')


def _compare(c: OperationContext) -> Results:
    x, y = c.operands
    if c.attribute("compare_type") == "TOTALORDER" and is_float(x.dtype):
        x, y = (_ordered_bits(c.graph, v) for v in (x, y))
    return [c.graph.compare(c.attribute("comparison_direction").lower(), x, y)]


def _ordered_bits(g: Graph, x: Value) -> Value:
    """Integers in the total order of floats: the bits, all but the sign inverted where it is set."""
    signed, bits = f"int{8 * x.dtype.itemsize}", 8 * x.dtype.itemsize
    n = g.bitcast(x, signed)
    return n ^ (n >> bits - 1 & (1 << bits - 1) - 1)


def _clamp(c: OperationContext) -> Results:
    low, x, high = c.operands
    return [c.graph.clamp(low, x, high)]


def _convert(c: OperationContext) -> Results:
    return [c.graph.convert(c.operands[0], c.type.dtype or np.dtype(np.float32))]


def _exponential_minus_one(g: Graph, x: Value) -> Value:
    """`2 t / (1 - t)` with `t = tanh(x / 2)` near 0, where `exp(x) - 1` cancels."""
    t = g.tanh(x * 0.5)
    near = (t + t) / (1 - t)
    return g.where(g.unary("abs", x) < 0.5, near, g.exp(x) - 1)


def _log_plus_one(g: Graph, x: Value) -> Value:
    """`log(u) * x / (u - 1)` with `u = 1 + x` near 0: the error of `u` cancels (Goldberg, 1991, theorem 4)."""
    u = x + 1
    difference = u - 1
    is_zero = g.equal(difference, 0)
    near = g.log(u) * x / g.where(is_zero, 1, difference)
    return g.where(g.unary("abs", x) < 1, g.where(is_zero, x, near), g.log(u))


def _cbrt(g: Graph, x: Value) -> Value:
    """`exp2(log2(|x|) / 3)` and a step of Newton's method."""
    magnitude = g.unary("abs", x)
    is_plain = g.binary("and", magnitude > 0, g.unary("is_finite", magnitude))
    a = g.where(is_plain, magnitude, 1)
    y = g.unary("exp2", g.unary("log2", a) / 3)
    y = y - (y - a / (y * y)) / 3
    return g.where(is_plain, g.where(x < 0, -y, y), x)


def _tan(g: Graph, x: Value) -> Value:
    return g.unary("sin", x) / g.unary("cos", x)


def _round_away(g: Graph, x: Value) -> Value:
    whole = g.unary("truncate", x)
    return g.where(g.unary("abs", x - whole) >= 0.5, whole + g.unary("sign", x), whole)


def _atan2(c: OperationContext) -> Results:
    """`atan(y / x)` in the quadrant of `(x, y)`, of half and bfloat in float."""
    g = c.graph
    dtype = c.operands[0].dtype
    y, x = (g.convert(v, "float32" if dtype.itemsize < 8 else "float64") for v in c.operands)
    a, b = g.unary("abs", y), g.unary("abs", x)
    low, high = g.minimum(a, b), g.maximum(a, b)
    is_one = g.equal(low, high)  # infinities too
    ratio = g.where(is_one, g.where(g.equal(high, 0), 0, g.full((), 1, x.dtype)), low / g.where(is_one, 1, high))
    angle = _arctangent(g, ratio)
    angle = g.where(a > b, np.pi / 2 - angle, angle)
    is_left = g.where(g.equal(x, 0), 1 / x, x) < 0
    angle = g.where(is_left, np.pi - angle, angle)
    is_down = g.where(g.equal(y, 0), 1 / y, y) < 0
    return [g.convert(g.where(is_down, -angle, angle), dtype)]


def _arctangent(g: Graph, ratio: Value) -> Value:
    """The angle of a ratio in [0, 1], in float by a polynomial, in double by a quotient of two.

    Above tan(pi / 8), it is that of `(ratio - 1) / (ratio + 1)` and pi / 4.
    """
    is_upper = ratio > 0.4142135623730950
    t = g.where(is_upper, (ratio - 1) / (ratio + 1), ratio)
    square = t * t
    if ratio.dtype.itemsize < 8:
        series = _polynomial(square, _ATANF)
    else:
        numerator, denominator = _ATAN
        series = _polynomial(square, numerator) / _polynomial(square, denominator)
    angle = series * square * t + t
    return g.where(is_upper, angle + np.pi / 4, angle)


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """A polynomial, the coefficient of the highest power first."""
    first, second, *others = coefficients
    result = x * first + second
    for coefficient in others:
        result = result * x + coefficient
    return result


def _population_count(g: Graph, x: Value) -> Value:
    """The number of bits that are set, by sums of neighbouring fields."""
    bits = 8 * x.dtype.itemsize
    pairs, fours, eights, ones = (mask & ((1 << bits) - 1) for mask in _UNSIGNED_MASKS)
    n = g.convert(x, f"uint{bits}")
    n = n - (n >> 1 & pairs)
    n = (n & fours) + (n >> 2 & fours)
    n = n + (n >> 4) & eights
    return g.convert(n * ones >> bits - 8, x.dtype)


def _leading_zeros(g: Graph, x: Value) -> Value:
    """The number of zeros above the highest set bit: all bits below it are set, and the zeros are counted."""
    bits = 8 * x.dtype.itemsize
    n = g.convert(x, f"uint{bits}")
    step = 1
    while step < bits:
        n = n | n >> step
        step *= 2
    return g.convert(_population_count(g, ~n), x.dtype)


def _counted(function: Callable[[Graph, Value], Value], text: str) -> TranslationRule:
    return TranslationRule(lambda c: [function(c.graph, c.operands[0])], text)


def _reduce_precision(c: OperationContext) -> Results:
    g, (x,) = c.graph, c.operands
    narrow = {(8, 7): "bfloat16", (5, 10): "float16", (8, 23): "float32", (11, 52): "float64"}
    bits: tuple[int, int] = c.attribute("exponent_bits"), c.attribute("mantissa_bits")
    if bits not in narrow:
        c.refuse(f"no float has {bits[0]} bits of exponent and {bits[1]} of mantissa: use those of bfloat16 or float16")
    return [g.convert(g.convert(x, narrow[bits]), x.dtype)]


def _same(c: OperationContext) -> Sequence[Value]:
    return c.operands


RULES: Final[dict[str, TranslationRule]] = {
    ERFC: TranslationRule(
        lambda c: [c.graph.erfc(c.operands[0])], "`erfc(x)`, also of what StableHLO expands it to in float"
    ),
    "sdy.sharding_constraint": TranslationRule(_same, "its operand"),
    "stablehlo.abs": _unary("abs"),
    "stablehlo.add": _logical("or", "add"),
    "stablehlo.and": _binary("and"),
    "stablehlo.atan2": TranslationRule(_atan2, "a quotient and a polynomial, in double a quotient of two"),
    "stablehlo.bitcast_convert": TranslationRule(
        lambda c: [c.graph.bitcast(c.operands[0], c.type.dtype or np.dtype(np.float32))], "`bitcast(x, dtype)`"
    ),
    "stablehlo.cbrt": _composite_function(_cbrt, "`exp2(log2(x) / 3)` and a step of Newton's method"),
    "stablehlo.ceil": _unary("ceil"),
    "stablehlo.clamp": TranslationRule(_clamp, "`clamp(low, x, high)`"),
    "stablehlo.compare": TranslationRule(_compare, "`compare(relation, x, y)`"),
    "stablehlo.convert": TranslationRule(_convert, "`convert(x, dtype)`"),
    "stablehlo.cosine": _unary("cos"),
    "stablehlo.count_leading_zeros": _counted(_leading_zeros, "shifts and sums of bits"),
    "stablehlo.divide": _binary("divide"),
    "stablehlo.exponential": _unary("exp"),
    "stablehlo.exponential_minus_one": _composite_function(_exponential_minus_one, "`exp` and `tanh`"),
    "stablehlo.floor": _unary("floor"),
    "stablehlo.is_finite": _unary("is_finite"),
    "stablehlo.log": _unary("log"),
    "stablehlo.log_plus_one": _composite_function(_log_plus_one, "`log` and a quotient"),
    "stablehlo.logistic": _unary("sigmoid"),
    "stablehlo.maximum": TranslationRule(_maximum, '`binary("maximum", x, y)`'),
    "stablehlo.minimum": _binary("minimum"),
    "stablehlo.multiply": _logical("and", "multiply"),
    "stablehlo.negate": _unary("negative"),
    "stablehlo.not": _unary("invert"),
    "stablehlo.optimization_barrier": TranslationRule(_same, "its operands"),
    "stablehlo.or": _binary("or"),
    "stablehlo.popcnt": _counted(_population_count, "shifts and sums of bits"),
    "stablehlo.power": _binary("power"),
    "stablehlo.reduce_precision": TranslationRule(_reduce_precision, "`convert` to bfloat16 or float16, and back"),
    "stablehlo.remainder": _binary("remainder"),
    "stablehlo.round_nearest_afz": _composite_function(_round_away, "`truncate` and a comparison"),
    "stablehlo.round_nearest_even": _unary("round"),
    "stablehlo.rsqrt": _unary("rsqrt"),
    "stablehlo.select": TranslationRule(lambda c: [c.graph.where(*c.operands)], "`where(condition, x, y)`"),
    "stablehlo.shift_left": _binary("shift_left"),
    "stablehlo.shift_right_arithmetic": _shift_right("i"),
    "stablehlo.shift_right_logical": _shift_right("u"),
    "stablehlo.sign": _unary("sign"),
    "stablehlo.sine": _unary("sin"),
    "stablehlo.sqrt": _unary("sqrt"),
    "stablehlo.subtract": _binary("subtract"),
    "stablehlo.tan": _composite_function(_tan, "`sin(x) / cos(x)`"),
    "stablehlo.tanh": _unary("tanh"),
    "stablehlo.xor": _binary("xor"),
}
