"""What random programs mean, in numpy: their arrays, and one step for each line that they are made of.

Steps know nothing of TLX's own evaluator: they read and write plain numpy arrays by the rules of shape, layout,
padding and pitch, and compute by the meaning that the table of intrinsics gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx.fuzz.arrays import EXACT, Buffer
from tlx.intrinsics import Intrinsic
from tlx.ir.types import FloatType, Type
from tlx.numpy_types import Array, dtype_of
from tlx.types import TensorType


class InexactError(Exception):
    """Sums of floating-point data could be rounded: their order would matter."""


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
    """An address: `start + step * index` elements into a buffer; `pointer` is what points there, if anything does."""

    buffer: Buffer
    start: int = 0
    step: int = 0
    pointer: str = ""

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
