"""The arrays that functions of random programs take: what they hold, and how contents differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tlx.intrinsics.numpy_types import Array, dtype_of
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, FloatType, Type

POISON_BITS: Final[dict[Type, int]] = {
    HALF: 0x7E5A,
    BFLOAT: 0x7FDA,
    FLOAT: 0x7FC0BEEF,
    DOUBLE: 0x7FF80000DEADBEEF,
}
"""Bits of the NaN that lies wherever a program has no data."""
LARGEST_EXACT: Final[dict[Type, int]] = {HALF: 1 << 11, BFLOAT: 1 << 8, FLOAT: 1 << 24, DOUBLE: 1 << 53}
"""Up to here every integer is a number of the type."""
CONTENT_LEVELS: Final = ((8, 1.0), (3, 1.0), (2, 0.7), (1, 1.0), (1, 0.5), (1, 0.2), (1, 0.08), (1, 0.02))
"""(largest magnitude, share of numbers that are not zero) of floating-point data, ever smaller."""
_LARGEST: Final[dict[Type, float]] = {
    HALF: 65504.0,
    BFLOAT: (2 - 2.0**-7) * 2.0**127,
    FLOAT: (2 - 2.0**-23) * 2.0**127,
    DOUBLE: 1.7976931348623157e308,
}
_FRACTION: Final[dict[Type, tuple[int, int]]] = {
    HALF: (10, -14),
    BFLOAT: (7, -126),
    FLOAT: (23, -126),
    DOUBLE: (52, -1022),
}
"""Bits behind the point, and the smallest exponent of a normal number."""


@dataclass(frozen=True)
class Contents:
    """What a buffer holds before a call.

    Attributes:
        low: Smallest of the integers it holds.
        high: Largest of them.
        wild: Any floats: fractions, infinities, NaN, zeros of both signs, subnormals.
    """

    low: int = 0
    high: int = 0
    wild: bool = False


@dataclass(eq=False)
class ArrayParameter:
    """An array that a function takes.

    Attributes:
        name: Its parameter, without `%`.
        element: Type of its elements.
        count: Number of elements.
        contents: What it holds; None for any integers, or for floats that are small integers of whatever size leaves
            sums exact.
        ulps: Units in the last place by which what is written there may differ.
        zeros: Whether the signs of zeros that are written there are determined.
        is_copied: Whether the function gets a copy of it.
        data: Which elements are data; the others are poisoned.
        written: Which elements the function writes.
    """

    name: str
    element: Type
    count: int
    contents: Contents | None = None
    ulps: float = 0.0
    zeros: bool = False
    is_copied: bool = False
    data: NDArray[np.bool_] = field(init=False)
    written: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.data = np.zeros(self.count, np.bool_)
        self.written = np.zeros(self.count, np.bool_)

    def fill(self, generator: np.random.Generator, level: int, *, specials: bool = False) -> Array:
        """Contents before a call: small integers in floats, any bits in integers; poison where no data is."""
        values = self._values(generator, level, specials=specials)
        values[~self.data] = self.poison(generator)[~self.data]
        return values

    def _values(self, generator: np.random.Generator, level: int, *, specials: bool) -> Array:
        if self.contents is None and not self.is_float:
            return _bits(generator, self)
        if self.contents is None:
            return _floats(generator, self, level, specials=specials)
        return _any_floats(generator, self) if self.contents.wild else _integral(generator, self, self.contents)

    def poison(self, generator: np.random.Generator) -> Array:
        """Contents that must not matter."""
        if not self.is_float:
            return _bits(generator, self)
        dtype = dtype_of(self.element)
        return np.full(self.count, POISON_BITS[self.element], f"u{dtype.itemsize}").view(dtype)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return isinstance(self.element, FloatType)


def _bits(generator: np.random.Generator, buffer: ArrayParameter) -> Array:
    """Integers of any value; extremes are frequent."""
    dtype = dtype_of(buffer.element)
    if buffer.element == I1:
        return generator.random(buffer.count) < 0.5
    info = np.iinfo(dtype)
    values = generator.integers(info.min, info.max, buffer.count, dtype, endpoint=True)
    extreme = generator.random(buffer.count)
    values[extreme < 0.1] = info.min
    values[extreme > 0.9] = info.max
    return values


def _floats(generator: np.random.Generator, buffer: ArrayParameter, level: int, *, specials: bool) -> Array:
    magnitude, density = CONTENT_LEVELS[level]
    numbers = generator.integers(-magnitude, magnitude + 1, buffer.count) * (generator.random(buffer.count) < density)
    values = numbers.astype(dtype_of(buffer.element))
    if specials:
        place = generator.random(buffer.count)
        values[place < 0.02] = np.inf
        values[place > 0.98] = -np.inf
        values[np.abs(place - 0.5) < 0.01] = np.nan
    return values


def _integral(generator: np.random.Generator, buffer: ArrayParameter, contents: Contents) -> Array:
    return generator.integers(contents.low, contents.high + 1, buffer.count).astype(dtype_of(buffer.element))


def _any_floats(generator: np.random.Generator, buffer: ArrayParameter) -> Array:
    """Half of them of moderate size; the rest any size, subnormal, zero, infinite or NaN."""
    dtype = dtype_of(buffer.element)
    count = buffer.count
    exponents = generator.uniform(-6, 6, count)
    far = generator.random(count) < 0.3
    _, smallest = _FRACTION[buffer.element]
    exponents[far] = generator.uniform(smallest - 4, -smallest, count)[far]
    numbers = generator.uniform(1, 2, count) * 2.0**exponents * generator.choice([-1.0, 1.0], count)
    with np.errstate(all="ignore"):
        values = numbers.astype(dtype)
    place = generator.integers(0, 60, count)
    for at, special in enumerate((0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0)):
        values[place == at] = special
    return values


def difference(got: Array, expected: Array, buffer: ArrayParameter) -> str | None:
    """How the contents of a buffer differ from what is expected; None if they do not.

    What the function does not write keeps its bits, and so do integers. NaNs are alike, and so are zeros unless their
    sign is determined.
    """
    same = _same_bits(got, expected)
    if buffer.is_float and not np.all(same):
        same |= buffer.written & _equal_values(got, expected, buffer)
    if np.all(same):
        return None
    wrong = np.flatnonzero(~same)
    at = int(wrong[0])
    return f"{wrong.size} of {got.size} elements differ; element {at} is {got[at]!s}, expected {expected[at]!s}"


def _same_bits(got: Array, expected: Array) -> NDArray[np.bool_]:
    bits = f"u{got.dtype.itemsize}"
    return got.view(bits) == expected.view(bits)


def _equal_values(got: Array, expected: Array, buffer: ArrayParameter) -> NDArray[np.bool_]:
    mine, wanted = got.astype(np.float64), expected.astype(np.float64)
    equal = mine == wanted
    if buffer.zeros:
        equal &= (mine != 0) | (np.signbit(mine) == np.signbit(wanted))
    near: NDArray[np.bool_] = equal | (np.isnan(mine) & np.isnan(wanted))
    if buffer.ulps:
        near |= is_within_ulps(mine, wanted, buffer.element, buffer.ulps)
    return near


def is_within_ulps(got: NDArray[Any], expected: NDArray[Any], element: Type, ulps: float) -> NDArray[np.bool_]:
    """Whether numbers are within some units in the last place of others; infinity is what follows the largest."""
    largest = _LARGEST[element]
    fraction, smallest = _FRACTION[element]
    with np.errstate(all="ignore"):
        mine, wanted = (np.clip(array, -largest, largest) for array in (got, expected))
        exponent = np.maximum(np.frexp(wanted)[1] - 1, smallest)
        distance = np.abs(mine - wanted)
        return np.asarray(distance <= ulps * np.ldexp(1.0, exponent - fraction), np.bool_)
