"""tanh, and the sigmoid, which is tanh in another place: sigmoid(x) = (1 + tanh(x / 2)) / 2.

Neither is computed from the other, as the sum would cancel where the sigmoid is small. With E = e^-|x|,

    sigmoid(x) = 1 / (1 + E)        x >= 0
               = E / (1 + E)        x < 0: relatively exact down to the denormals

and with M = e^(2|x|) - 1,

    tanh |x| = M / (M + 2)          M = 2^n (e^r - 1) + (2^n - 1)

where e^r - 1 is relatively exact, so that M is, too: for n = 0 it is e^r - 1 itself, for n >= 1 the sum is at least
0.41 and loses at most one bit.
"""

from __future__ import annotations

from tlx.ir.values import Value
from tlx.lower.legalize.math.exponential import exp_of_negative, reduced_exp
from tlx.lower.legalize.math.lanes import Lanes
from tlx.lower.legalize.math.pieces import power_of_two


def sigmoid(lanes: Lanes, x: Value) -> Value:
    """1 / (1 + e^-x)."""
    power = exp_of_negative(lanes, lanes.negative_magnitude(x))
    above = lanes.choose(lanes.compare("olt", x, 0.0), power, 1.0)
    return lanes.div(above, lanes.add(power, 1.0))


def tanh(lanes: Lanes, x: Value) -> Value:
    """The hyperbolic tangent; of zero, the zero itself."""
    size = lanes.at_most(lanes.magnitude(x), 10.0 if lanes.single else 20.0)
    n, less_one = reduced_exp(lanes, lanes.add(size, size))
    power = power_of_two(lanes, n.word)
    m = lanes.multiply_add(power, less_one, lanes.sub(power, 1.0))
    return lanes.with_sign_of(lanes.div(m, lanes.add(m, 2.0)), x)
