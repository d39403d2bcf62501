"""Values of a dataflow function, and what is known of them before the program runs.

What is known decides what may be done with a value, so that every program has one meaning:

- sums of floats need integers that are small enough to be added in any order without rounding;
- a value that is only right to some units in the last place is moved, multiplied and stored, but not compared;
- conversions to integers need numbers that fit, `nsw` needs sums that do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.fuzz.arrays import EXACT
from tlx.fuzz.writer import Token, Vector
from tlx.ir.types import I1, FloatType, IntType, Type
from tlx.types import TensorType

_MOST_ULPS: Final = 64


@dataclass(frozen=True)
class Facts:
    """What is known of the elements of a vector.

    Attributes:
        low: No element is smaller (integers: signed; floats: where `integral`).
        high: No element is larger.
        integral: Floats: all are integers of that range, no infinity or NaN among them.
        ulps: Floats: units in the last place by which results may differ.
        zeros: Floats: whether the signs of zeros are determined.
        moderate: Floats: whether relative errors stay small in products with it: it is neither tiny nor huge.
    """

    low: int = 0
    high: int = 0
    integral: bool = False
    ulps: float = 0.0
    zeros: bool = True
    moderate: bool = False

    @property
    def bound(self) -> int:
        """No magnitude is larger."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_exact(self) -> bool:
        """Whether results may not differ at all."""
        return not self.ulps

    @property
    def is_moderate(self) -> bool:
        """Whether it is moderate, or small integers."""
        return self.moderate or (self.integral and self.bound <= 4096)

    def with_zero(self) -> Facts:
        """The same with zeros among the elements."""
        return replace(self, low=min(self.low, 0), high=max(self.high, 0))

    def joined(self, other: Facts) -> Facts:
        """What is known where an element is of one or the other."""
        return Facts(
            min(self.low, other.low),
            max(self.high, other.high),
            self.integral and other.integral,
            max(self.ulps, other.ulps),
            self.zeros and other.zeros,
            self.moderate and other.moderate,
        )


def unknown(type_: Type) -> Facts:
    """Any number of a type."""
    if isinstance(type_, IntType):
        half = 1 << (type_.bits - 1)
        return Facts(-half, half - 1)
    return Facts()


def ranged(type_: Type, low: int, high: int, *, zeros: bool = True) -> Facts:
    """Integers of a range where they fit the type (floats: where all of them are numbers of it); else any number."""
    if isinstance(type_, FloatType):
        if max(abs(low), abs(high)) > EXACT[type_]:
            return Facts(zeros=zeros)
        return Facts(low, high, integral=True, zeros=zeros)
    whole = unknown(type_)
    return Facts(low, high) if whole.low <= low and high <= whole.high else whole


def range_of(name: str, x: Facts, y: Facts) -> tuple[int, int]:
    """Least and largest result of `add`, `sub` or `mul`."""
    if name == "add":
        return x.low + y.low, x.high + y.high
    if name == "sub":
        return x.low - y.high, x.high - y.low
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return min(corners), max(corners)


@dataclass(frozen=True)
class Flow:
    """A flattened vector of the program and what is known of it."""

    vector: Vector
    facts: Facts
    token: Token | None = None

    @property
    def type(self) -> TensorType:
        """What its elements mean."""
        return self.vector.type

    @property
    def element(self) -> Type:
        """Type of its elements."""
        return self.vector.type.element

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return isinstance(self.element, FloatType)

    @property
    def is_mask(self) -> bool:
        """Whether its elements are of i1."""
        return self.element == I1

    @property
    def is_loose(self) -> bool:
        """Whether it can take no more errors."""
        return self.facts.ulps >= _MOST_ULPS
