"""Arguments of sine and cosine, less the multiple of pi/2 next to them: x = n pi/2 + r, |r| <= pi/4, in doubles.

Below 2^20 by Cody and Waite: pi/2 is a sum whose parts have 33 bits each, so that n, of at most 20, times a part is
exact. r is left as a sum of two doubles, as the first subtractions may cancel all but its last bits.

Above, by Payne and Hanek (`huge.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.values import Value
from tlx.lower.legalize.math.lanes import Lanes
from tlx.lower.legalize.math.pieces import exact_sum, fast_sum, nearest
from tlx.lower.legalize.math.polynomial import numbers

HUGE: Final = 2.0**20
TWO_OVER_PI: Final = float.fromhex("0x1.45f306dc9c883p-1")
PARTS: Final = numbers("0x1.921fb54400000p+0 0x1.0b4611a600000p-34 0x1.3198a2e000000p-69 0x1.b839a252049c1p-104")
"""pi/2: three parts of 33 bits, and the rest."""
TWO_PARTS: Final = numbers("0x1.921fb54400000p+0 0x1.0b4611a626331p-34")
"""pi/2: a part of 33 bits, and the rest; enough for what is a float in the end."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """x = n pi/2 + (high + low).

    Attributes:
        n: As an integer; only its last two bits count.
        high, low: The rest; no low where its last bits are not wanted.
    """

    n: Value
    high: Value
    low: Value | None

    @property
    def values(self) -> list[Value]:
        """The registers."""
        return [self.n, self.high] if self.low is None else [self.n, self.high, self.low]


def reduced(lanes: Lanes, x: Value) -> Reduced:
    """Reduce 0 <= x < 2^20, to about 2^-106 of the rest."""
    n = nearest(lanes, x, TWO_OVER_PI)
    high = lanes.multiply_add(n.number, -PARTS[0], x)
    high, second = exact_sum(lanes, high, lanes.mul(n.number, -PARTS[1]))
    high, third = exact_sum(lanes, high, lanes.mul(n.number, -PARTS[2]))
    low = lanes.multiply_add(n.number, -PARTS[3], lanes.add(second, third))
    return Reduced(n.word, *fast_sum(lanes, high, low))


def roughly_reduced(lanes: Lanes, x: Value) -> Reduced:
    """Reduce a float, 0 <= x < 2^20, to 2^-53 of the rest and 2^-66."""
    n = nearest(lanes, x, TWO_OVER_PI)
    high = lanes.multiply_add(n.number, -TWO_PARTS[0], x)
    return Reduced(n.word, lanes.multiply_add(n.number, -TWO_PARTS[1], high), None)
