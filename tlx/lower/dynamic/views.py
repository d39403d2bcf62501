"""Where tensors of run-time size lie: dense memory of a handle, or any memory with extents and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlx.ir.builder import Builder
from tlx.ir.types import Type
from tlx.ir.values import ConstInt, Value
from tlx.lower.dynamic.numbers import number, product


@dataclass(frozen=True)
class Flat:
    """A handle: its elements one behind the other.

    Attributes:
        pointer: The first.
        count: How many, i64.
        element: Their type in memory: i8 for those of i1.
    """

    pointer: Value
    count: Value
    element: Type


@dataclass(frozen=True)
class Dim:
    """A dimension: its extent without padding, and elements between neighbours."""

    extent: Value
    step: Value


@dataclass(frozen=True)
class RunView:
    """A tensor in memory.

    Attributes:
        pointer: Its first element.
        element: Type of its elements.
        dims: Its *memory* dimensions, outermost first.
        shape: Positions of each memory dimension, padding included.
        layout: Logical dimension at each memory position.
        is_dense: Whether its elements surely lie one behind the other, without padding.
    """

    pointer: Value
    element: Type
    dims: tuple[Dim, ...]
    shape: tuple[Value, ...]
    layout: tuple[int, ...]
    is_dense: bool = False

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def logical(self) -> list[Dim]:
        """Its logical dimensions."""
        return [self.dims[self.layout.index(d)] for d in range(self.rank)]

    @property
    def extents(self) -> list[Value]:
        """Extents of the logical dimensions."""
        return [dim.extent for dim in self.logical]

    @property
    def is_padded(self) -> bool:
        """Whether it may have padding."""
        return any(dim.extent != size for dim, size in zip(self.dims, self.shape, strict=True))


def steps_of(b: Builder, sizes: Sequence[Value]) -> list[Value]:
    """Elements between neighbours along each dimension of a dense array."""
    steps: list[Value] = [number(1)]
    for size in reversed(sizes[1:]):
        steps.append(b.mul(steps[-1], size, "step"))
    return steps[::-1]


def count_of(b: Builder, view: RunView) -> Value:
    """Elements of the flattened tensor, padding included."""
    return product(b, view.shape)


def is_one(value: Value) -> bool:
    """Whether a value is the constant 1."""
    return isinstance(value, ConstInt) and value.value == 1
