"""tanh, and the sigmoid, which is tanh in another place: sigmoid(x) = (1 + tanh(x / 2)) / 2.

Neither is computed from the other, as the sum would cancel where the sigmoid is small. With E = e^-|x|,

    sigmoid(x) = 1 / (1 + E)        x >= 0
               = E / (1 + E)        x < 0: relatively exact down to the denormals

and with M = e^(2|x|) - 1,

    tanh |x| = M / (M + 2)          M = (2^n - 1) + 2^n (e^r - 1)

where e^r - 1 is relatively exact, so that M is, too: for n = 0 it is e^r - 1 itself, for n >= 1 the sum is at least
0.41 and loses at most one bit.

That does for floats: 2.1 ulp for the sigmoid, 2.6 for tanh. Where elements of a table are picked by an instruction,
tanh is a polynomial of its own in each of 32 intervals (`tables.py`), off by 2.3 ulp, in half as many instructions.

For doubles each of E, M and the denominators is kept with its rounding error, and q = a / d of the rounded a and d is
corrected by the errors a' and d':

    (a + a') / (d + d') = q + (a' - q d') / d       to the first order

where 1/d is q or 1 - q for the sigmoid, (1 - q) / 2 for tanh. Left are the roundings of the quotient and of the last
sum, and what r lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.values import Value
from tlx.lower.legalize.math.exponential import less_one, less_one_and_r, of_rest, parameters, reduced, short_exp
from tlx.lower.legalize.math.lanes import Lanes
from tlx.lower.legalize.math.pieces import exact_sum, fast_sum, nearest, power_of_two, scaled
from tlx.lower.legalize.math.tables import FULL, ROUGH
from tlx.target import FloatHelpers


@dataclass(frozen=True, slots=True)
class Precise:
    """A number and what it lacks."""

    high: Value
    low: Value


def sigmoid(lanes: Lanes, x: Value) -> Value:
    """1 / (1 + e^-x)."""
    if lanes.single:
        return _short_sigmoid(lanes, x)
    power = _exp_of_negative(lanes, lanes.negative_magnitude(x))
    total, lost = fast_sum(lanes, 1.0, power.high)
    below = Precise(total, lanes.add(lost, power.low))
    is_negative = lanes.compare("olt", x, 0.0)
    above = Precise(lanes.choose(is_negative, power.high, 1.0), lanes.choose(is_negative, power.low, 0.0))
    quotient = lanes.div(above.high, below.high)
    inverse = lanes.choose(is_negative, lanes.sub(1.0, quotient), quotient)
    return _corrected(lanes, quotient, above, below, inverse)


def _short_sigmoid(lanes: Lanes, x: Value) -> Value:
    """The sigmoid of floats."""
    if lanes.short and lanes.helpers is not None:
        power = short_exp(lanes, lanes.negative_magnitude(x))
        above = lanes.choose(lanes.compare("olt", x, 0.0), power, 1.0)
        return lanes.mul(above, lanes.helpers.reciprocal(lanes.b, lanes.add(power, 1.0)))
    n, r = reduced(lanes, lanes.at_least(lanes.negative_magnitude(x), parameters(lanes).lowest))
    power = scaled(lanes, of_rest(lanes, r), n)
    above = lanes.choose(lanes.compare("olt", x, 0.0), power, 1.0)
    return lanes.ratio(above, lanes.add(power, 1.0))


def tanh(lanes: Lanes, x: Value) -> Value:
    """The hyperbolic tangent; of zero, the zero itself."""
    if lanes.single:
        return _short_tanh(lanes, x)
    size = lanes.at_most(lanes.magnitude(x), 20.0)
    above = _exp_less_one(lanes, lanes.add(size, size))
    total, lost = exact_sum(lanes, above.high, 2.0)
    below = Precise(total, lanes.add(lost, above.low))
    quotient = lanes.div(above.high, below.high)
    inverse = lanes.multiply_add(quotient, -0.5, 0.5)
    return lanes.with_sign_of(_corrected(lanes, quotient, above, below, inverse), x)


def _short_tanh(lanes: Lanes, x: Value) -> Value:
    """The hyperbolic tangent of floats."""
    if lanes.helpers is not None:
        return _tanh_by_table(lanes, lanes.helpers, x)
    size = lanes.at_most(lanes.magnitude(x), 10.0)
    n, r = reduced(lanes, lanes.add(size, size))
    power = power_of_two(lanes, n.word)
    above = lanes.multiply_add(power, less_one(lanes, r), lanes.sub(power, 1.0))
    return lanes.with_sign_of(lanes.ratio(above, lanes.add(above, 2.0)), x)


def _tanh_by_table(lanes: Lanes, helpers: FloatHelpers, x: Value) -> Value:
    """The hyperbolic tangent by the polynomial of the interval that |x| is in."""
    table = ROUGH if lanes.short else FULL
    size = lanes.at_most(lanes.magnitude(x), table.highest)
    n = nearest(lanes, size, 1 / table.step)
    v = lanes.multiply_add(n.number, -table.step, size)
    *lower, result = [helpers.pick(lanes.b, c, n.ending) for c in table.coefficients]
    for coefficient in reversed(lower):
        result = lanes.multiply_add(result, v, coefficient)
    return lanes.with_sign_of(result, x)


def _corrected(lanes: Lanes, quotient: Value, above: Precise, below: Precise, inverse: Value) -> Value:
    error = lanes.sub(above.low, lanes.mul(quotient, below.low))
    return lanes.multiply_add(error, inverse, quotient)


def _exp_of_negative(lanes: Lanes, x: Value) -> Precise:
    """e^x for x <= 0."""
    n, r = reduced(lanes, lanes.at_least(x, parameters(lanes).lowest))
    high, low = fast_sum(lanes, 1.0, less_one(lanes, r))
    return Precise(scaled(lanes, high, n), scaled(lanes, low, n))


def _exp_less_one(lanes: Lanes, x: Value) -> Precise:
    """e^x - 1 for 0 <= x <= 40."""
    n, r = reduced(lanes, x)
    fraction, lost = fast_sum(lanes, r, less_one_and_r(lanes, r))
    power = power_of_two(lanes, n.word)
    high, low = fast_sum(lanes, lanes.sub(power, 1.0), lanes.mul(power, fraction))
    return Precise(high, lanes.multiply_add(power, lost, low))
