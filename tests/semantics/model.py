"""What random programs mean, in numpy: their arrays, and one step for each line that they are made of.

Steps know nothing of TLX's own evaluator: they read and write plain numpy arrays by the rules of shape, layout,
padding and pitch, and compute by the meaning that the table of intrinsics gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tlx.intrinsics import Intrinsic
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, FloatType, Type
from tlx.numpy_types import Array, dtype_of
from tlx.types import TensorType

POISON: Final[dict[Type, int]] = {
    HALF: 0x7E5A,
    BFLOAT: 0x7FDA,
    FLOAT: 0x7FC0BEEF,
    DOUBLE: 0x7FF80000DEADBEEF,
}
"""Bits of the NaN that lies wherever a program has no data."""
EXACT: Final[dict[Type, int]] = {HALF: 1 << 11, BFLOAT: 1 << 8, FLOAT: 1 << 24, DOUBLE: 1 << 53}
"""Up to here every integer is a number of the type."""
LEVELS: Final = ((8, 1.0), (3, 1.0), (2, 0.7), (1, 1.0), (1, 0.5), (1, 0.2), (1, 0.08), (1, 0.02))
"""(largest magnitude, share of numbers that are not zero) of floating-point data, ever smaller."""


class InexactError(Exception):
    """Sums of floating-point data could be rounded: their order would matter."""


@dataclass(eq=False)
class Buffer:
    """An array that a function takes.

    Attributes:
        name: Its parameter, without `%`.
        element: Type of its elements.
        count: Number of elements.
        data: Which elements are data; the others are poisoned.
    """

    name: str
    element: Type
    count: int
    data: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.data = np.zeros(self.count, np.bool_)

    def fill(self, generator: np.random.Generator, level: int, *, specials: bool = False) -> Array:
        """Contents before a call: small integers in floats, any bits in integers; poison where no data is."""
        values = _floats(generator, self, level, specials=specials) if self.is_float else _bits(generator, self)
        values[~self.data] = self.poison(generator)[~self.data]
        return values

    def poison(self, generator: np.random.Generator) -> Array:
        """Contents that must not matter."""
        if not self.is_float:
            return _bits(generator, self)
        dtype = dtype_of(self.element)
        return np.full(self.count, POISON[self.element], f"u{dtype.itemsize}").view(dtype)

    @property
    def is_float(self) -> bool:
        return isinstance(self.element, FloatType)


def _bits(generator: np.random.Generator, buffer: Buffer) -> Array:
    """Integers of any value; extremes are frequent."""
    dtype = dtype_of(buffer.element)
    info = np.iinfo(dtype)
    values = generator.integers(info.min, info.max, buffer.count, dtype, endpoint=True)
    extreme = generator.random(buffer.count)
    values[extreme < 0.1] = info.min
    values[extreme > 0.9] = info.max
    return values


def _floats(generator: np.random.Generator, buffer: Buffer, level: int, *, specials: bool) -> Array:
    magnitude, density = LEVELS[level]
    numbers = generator.integers(-magnitude, magnitude + 1, buffer.count) * (generator.random(buffer.count) < density)
    values = numbers.astype(dtype_of(buffer.element))
    if specials:
        place = generator.random(buffer.count)
        values[place < 0.02] = np.inf
        values[place > 0.98] = -np.inf
        values[np.abs(place - 0.5) < 0.01] = np.nan
    return values


@dataclass(eq=False)
class State:
    """What a run of a function knows: arrays by buffer, vectors and tensors by name, the innermost loop's index."""

    arrays: dict[str, Array]
    vectors: dict[str, Array] = field(default_factory=dict[str, Array])
    tensors: dict[str, Array] = field(default_factory=dict[str, Array])
    index: int = 0


Step = Callable[[State], None]


@dataclass(frozen=True)
class Place:
    """An address: `start + step * index` elements into a buffer."""

    buffer: Buffer
    start: int = 0
    step: int = 0

    def of(self, state: State) -> Array:
        """The buffer's elements from there on."""
        return state.arrays[self.buffer.name][self.start + self.step * state.index :]


def strides(type_: TensorType, pitches: Sequence[int]) -> list[int]:
    """Elements between neighbours along each memory dimension."""
    positions = [pitch or size for pitch, size in zip(pitches, type_.shape, strict=True)]
    return [math.prod(positions[k + 1 :]) for k in range(type_.rank)]


def reach(type_: TensorType, pitches: Sequence[int]) -> int:
    """Elements from the first to the last that holds data."""
    extents = [size - pad for size, pad in zip(type_.shape, type_.padding, strict=True)]
    return 1 + sum((extent - 1) * stride for extent, stride in zip(extents, strides(type_, pitches), strict=True))


def window(array: NDArray[Any], type_: TensorType, pitches: Sequence[int]) -> NDArray[Any]:
    """The tensor at the start of an array: a view whose dimensions are the logical ones."""
    steps = strides(type_, pitches)
    order = [type_.layout.index(d) for d in range(type_.rank)]
    assert reach(type_, pitches) <= array.size
    return np.lib.stride_tricks.as_strided(
        array,
        [type_.shape[k] - type_.padding[k] for k in order],
        [steps[k] * array.itemsize for k in order],
    )


def tensor_of(vector: Array, type_: TensorType) -> Array:
    """The logical array of a flattened vector."""
    return window(vector, type_, [0] * type_.rank).copy()


def vector_of(tensor: Array, type_: TensorType) -> Array:
    """The flattened vector of a logical array; padding is zero."""
    vector = np.zeros(math.prod(type_.shape), dtype_of(type_.element))
    window(vector, type_, [0] * type_.rank)[...] = tensor
    return vector


def compute(row: Intrinsic, operands: Sequence[Array], dims: Sequence[tuple[int, ...]], element: Type) -> Array:
    """The logical result of an operation.

    Raises:
        InexactError: A sum of floats might be rounded.
    """
    if isinstance(element, FloatType) and len(operands) > 1:
        _check_exact(operands, element)
    return row.meaning(operands, dims, [], dtype_of(element))


def _check_exact(operands: Sequence[Array], element: Type) -> None:
    """`|acc| + |lhs| @ |rhs|` is below what the type holds exactly, and so is every partial sum in any order."""
    *acc, lhs, rhs = (np.abs(np.nan_to_num(x.astype(np.float64), posinf=0.0, neginf=0.0)) for x in operands)
    largest = np.max(lhs @ rhs + (acc[0] if acc else 0.0))
    if largest > EXACT[element]:
        message = f"sums up to {largest} in {element}"
        raise InexactError(message)


def difference(got: Array, expected: Array, element: Type) -> str | None:
    """How two arrays differ; None if they are the same.

    Poison keeps its bits. Other NaNs are alike, and so are zeros: the sign of a sum of zeros depends on the order.
    """
    bits = f"u{got.dtype.itemsize}"
    same = got.view(bits) == expected.view(bits)
    if element in POISON:
        poisoned = expected.view(bits) == POISON[element]
        alike = (got == expected) | (np.isnan(got.astype(np.float64)) & np.isnan(expected.astype(np.float64)))
        same |= alike & ~poisoned
    if np.all(same):
        return None
    wrong = np.flatnonzero(~same)
    at = int(wrong[0])
    return f"{wrong.size} of {got.size} elements differ; element {at} is {got[at]}, expected {expected[at]}"
