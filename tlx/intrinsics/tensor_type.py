"""TensorType: element type, shape, layout and padding of a flattened vector.

A tensor is stored in memory (or in a flattened vector) outermost dimension first. Memory dimension `k` has `shape[k]`
positions, holds logical dimension `layout[k]`, and its last `padding[k]` positions hold no data:

    shape <4, 3>, layout <1, 0>, padding <1, 0>       a column-major matrix, logically 3 x 3

        memory   x_0=0: c00 c10 c20 | x_0=1: c01 c11 c21 | x_0=2: c02 c12 c22 | x_0=3: padding
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tlx.ir.types import Type, VectorType, vector_of


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type, shape, layout and padding of a tensor, all in memory order.

    Attributes:
        element: Scalar LLVM type.
        shape: Positions of each memory dimension, outermost first, padding included.
        layout: Logical dimension stored at each memory position.
        padding: Positions at the end of each memory dimension that hold no data.

    Raises:
        ValueError: The attributes contradict each other; the message names the broken rule.
    """

    element: Type
    shape: tuple[int, ...]
    layout: tuple[int, ...]
    padding: tuple[int, ...]

    def __post_init__(self) -> None:
        problem = _type_problem(self.shape, self.layout, self.padding)
        if problem:
            raise ValueError(problem)

    @classmethod
    def dense(cls, element: Type, extents: Sequence[int]) -> TensorType:
        """A row-major tensor without padding."""
        rank = len(extents)
        return tensor_type(element, tuple(extents), _logical_order(rank), (0,) * rank)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """Elements of the flattened vector, padding included."""
        return math.prod(self.shape)

    @property
    def vector(self) -> VectorType:
        """The flattened vector's type."""
        return vector_of(self.count, self.element)

    @property
    def data_shape(self) -> tuple[int, ...]:
        """Positions of each memory dimension that hold data."""
        return _data_shape(self.shape, self.padding)

    @property
    def extents(self) -> tuple[int, ...]:
        """Extent of each logical dimension."""
        return _logical(self.data_shape, self.layout)

    def position(self, dimension: int) -> int:
        """Memory dimension that holds a logical dimension."""
        return self.layout.index(dimension)

    @property
    def is_padded(self) -> bool:
        """Whether any dimension has padding."""
        return any(self.padding)

    @property
    def is_row_major(self) -> bool:
        """Whether memory order is logical order."""
        return self.layout == _logical_order(len(self.shape))

    def strides(self, pitches: Sequence[int] | None = None) -> tuple[int, ...]:
        """Distance in elements between neighbours along each *memory* dimension.

        Args:
            pitches: The `strides` operand of a load or store: the number of positions of each dimension in the
                enclosing array, 0 for that of the tensor; the first entry is ignored. None means dense.
        """
        return _strides(self.shape, tuple(pitches or self.shape))

    def logical_strides(self, pitches: Sequence[int] | None) -> tuple[int, ...]:
        """Distance in elements between neighbours along each *logical* dimension."""
        return _logical(self.strides(pitches), self.layout)

    def transposed(self, layout: Sequence[int]) -> TensorType:
        """The same logical tensor stored in another order."""
        order = [self.position(d) for d in layout]
        return TensorType(
            self.element,
            tuple(self.shape[k] for k in order),
            tuple(layout),
            tuple(self.padding[k] for k in order),
        )

    def __str__(self) -> str:
        text = f"{'x'.join(map(str, self.shape))} {self.element}"
        if not self.is_row_major:
            text += f", layout {vector_text(self.layout)}"
        if self.is_padded:
            text += f", padding {vector_text(self.padding)}"
        return text


@lru_cache(maxsize=4096)
def tensor_type(element: Type, shape: tuple[int, ...], layout: tuple[int, ...], padding: tuple[int, ...]) -> TensorType:
    """A tensor type; equal types are one object.

    Raises:
        ValueError: See `TensorType`.
    """
    return TensorType(element, shape, layout, padding)


def vector_text(numbers: Sequence[int]) -> str:
    """A vector of integers as messages show it, such as `<1, 0, 2>`."""
    return f"<{', '.join(map(str, numbers))}>"


def type_problem(shape: Sequence[int], layout: Sequence[int], padding: Sequence[int]) -> str | None:
    """What is wrong with a shape, layout and padding; None if they form a type."""
    return _type_problem(tuple(shape), tuple(layout), tuple(padding))


# A program has few shapes, but their extents and strides are needed again and again.


@lru_cache(maxsize=4096)
def _data_shape(shape: tuple[int, ...], padding: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(s - p for s, p in zip(shape, padding, strict=True))


@lru_cache(maxsize=4096)
def _strides(shape: tuple[int, ...], pitches: tuple[int, ...]) -> tuple[int, ...]:
    sizes = [p or s for p, s in zip(pitches, shape, strict=True)]
    return tuple(math.prod(sizes[k + 1 :]) for k in range(len(shape)))


@lru_cache(maxsize=4096)
def _logical(by_memory: tuple[int, ...], layout: tuple[int, ...]) -> tuple[int, ...]:
    """Reorder numbers from memory dimensions to logical dimensions."""
    return tuple(by_memory[layout.index(d)] for d in range(len(layout)))


@lru_cache(maxsize=4096)
def _logical_order(rank: int) -> tuple[int, ...]:
    return tuple(range(rank))


@lru_cache(maxsize=4096)
def _type_problem(shape: tuple[int, ...], layout: tuple[int, ...], padding: tuple[int, ...]) -> str | None:
    rank = len(shape)
    if rank == 0:
        return "a tensor has at least one dimension"
    if len(layout) != rank or len(padding) != rank:
        return (
            f"shape has {rank} entries, layout {len(layout)} and padding {len(padding)}: "
            "a tensor needs one of each per dimension"
        )
    for k, extent in enumerate(shape):
        if extent <= 0:
            return f"shape {vector_text(shape)} has extent {extent} in dimension {k}: extents are at least 1"
    if math.prod(shape) >= 1 << 63:
        return f"shape {vector_text(shape)} has {math.prod(shape)} elements, which overflows 64 bits"
    if sorted(layout) != list(range(rank)):
        return f"layout {vector_text(layout)} is not a permutation of 0 to {rank - 1}"
    for k, (pad, extent) in enumerate(zip(padding, shape, strict=True)):
        if not 0 <= pad < extent:
            return f"padding {pad} of dimension {k} is outside 0 to {extent - 1} (shape {vector_text(shape)})"
    return None
