"""Loop nests over strided dimensions: which dimensions are collapsed, become loops, or are those of a 2-D tree.

    extents 2, 3, strides (12, 4), (0, 5)      loops i < 2, j < 3; element offsets 12*i + 4*j and 5*j

Neighbouring dimensions are collapsed to one if they are contiguous in every operand. A tree takes two dimensions:

extents and strides (source, destination)      plane

    2   (1000, 1000)                           loop
    3   (1, 40)                                rows: neighbours in the source
    40  (8, 1)                                 columns: neighbours in the destination

The loops say that they are independent by metadata (`INDEPENDENT_METADATA`), which stage 2 reads to share them among
threads and to pack operands in front of them.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from tlx.ir.builder import Builder
from tlx.ir.control_flow import INDEPENDENT_METADATA
from tlx.ir.types import I64
from tlx.ir.values import ConstInt, Value
from tlx.lower.memory.views import StridedDim, collapse_neighbours

INDEX_LIMIT: Final = 1 << 31
"""Upper bound of extents and pitches of 2-D tensors."""
_LONG_COLUMN: Final = 64
"""Elements from which a column counts as long: the loops around it take little of the time."""


class LoopDim(NamedTuple):
    """One dimension of a loop nest.

    Attributes:
        extent: Number of positions.
        strides: Elements between neighbours, in each operand.
    """

    extent: int
    strides: tuple[int, ...]

    def of(self, operand: int) -> StridedDim[int]:
        """The dimension in one operand."""
        return StridedDim(self.extent, self.strides[operand])


@dataclass(frozen=True, eq=False)
class CollapsedDims:
    """Neighbouring dimensions that are traversed as one, the innermost one last."""

    dims: tuple[LoopDim, ...]

    @cached_property
    def extent(self) -> int:
        """Number of positions."""
        return math.prod(dim.extent for dim in self.dims)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Strides in the operands that are not copied: those of the innermost dimension."""
        return self.dims[-1].strides


def collapse_dims(dims: Sequence[LoopDim]) -> list[LoopDim]:
    """The dimensions, outermost first, without those of extent 1, with neighbours merged where possible."""
    groups = collapse_for_operands([dim for dim in dims if dim.extent > 1], frozenset())
    return [LoopDim(group.extent, group.strides) for group in groups]


def collapse_for_operands(dims: Sequence[LoopDim], copied: frozenset[int]) -> list[CollapsedDims]:
    """The dimensions with neighbours merged if they are contiguous in every operand.

    The copy of an operand may have any order, so a copied operand only has to have both dimensions, or neither.
    """
    return list(_collapsed_for_operands(tuple(dims), copied))


@lru_cache(maxsize=1 << 12)
def _collapsed_for_operands(dims: tuple[LoopDim, ...], copied: frozenset[int]) -> tuple[CollapsedDims, ...]:
    """The result of `collapse_for_operands`, which many blockings of a contraction need."""

    def collapsed(outer: CollapsedDims, inner: CollapsedDims) -> CollapsedDims | None:
        is_contiguous = all(
            bool(far) == bool(near) if operand in copied else far == near * inner.extent
            for operand, (far, near) in enumerate(zip(outer.strides, inner.strides, strict=True))
        )
        fits = outer.extent * inner.extent < INDEX_LIMIT
        return CollapsedDims((*outer.dims, *inner.dims)) if fits and is_contiguous else None

    return tuple(collapse_neighbours((CollapsedDims((dim,)) for dim in dims), collapsed))


@contextmanager
def loop_nest(
    b: Builder, dims: Sequence[LoopDim], operands: int, name: str = "i", *, independent: bool = True
) -> Generator[list[Value]]:
    """Emit loops over dimensions, the first one outermost; yields the element offset of each operand.

    The loops are marked as independent unless iterations may read what others write.
    """
    offsets: list[Value] = [ConstInt(I64, 0)] * operands
    with ExitStack() as stack:
        for extent, strides in dims:
            loop = stack.enter_context(b.loop(0, extent, name=name))
            loop.mark, index = INDEPENDENT_METADATA if independent else "", loop.index
            offsets = [
                b.add(offset, b.mul(index, stride, f"{name}.offset"), f"{name}.offset")
                for offset, stride in zip(offsets, strides, strict=True)
            ]
        yield offsets


class Plane(NamedTuple):
    """The dimensions of a 2-D tree and of the loops around it.

    Attributes:
        rows: The tree's rows; of extent 1 if it has a single row.
        cols: The tree's columns; of extent 1 if it has a single column.
        rest: The loops around the tree, outermost first.
    """

    rows: LoopDim
    cols: LoopDim
    rest: list[LoopDim]


def ordered_by_stride(dims: Sequence[LoopDim]) -> list[LoopDim]:
    """Dimensions from the largest stride in the last operand to the smallest, merged where possible."""
    return collapse_dims(sorted(dims, key=lambda dim: dim.strides[::-1], reverse=True))


def without_dims(dims: Sequence[LoopDim], *removed: LoopDim | None) -> list[LoopDim]:
    """The dimensions without some of them."""
    return [dim for dim in dims if not any(dim is other for other in removed)]


def longest_dim(dims: Sequence[LoopDim]) -> LoopDim | None:
    """The longest dimension whose strides are small enough for pitches."""
    return max((dim for dim in dims if max(dim.strides) < INDEX_LIMIT), key=lambda dim: dim.extent, default=None)


def column_dim(dims: Sequence[LoopDim]) -> LoopDim | None:
    """The dimension of columns whose elements are processed one by one, within loops over the others.

    Of the long dimensions, it is the one whose neighbours are nearest, so that a cache line is used while it is cached:
    a copy of every second pixel of 3x416x416 floats to channels last takes 0.4 times as long along the rows of the
    image as along its columns (Xeon 6/167/1, 2026-12-01).
    """
    longest = longest_dim(dims)
    if longest is None:
        return None
    long = [dim for dim in dims if dim.extent >= min(longest.extent, _LONG_COLUMN) and max(dim.strides) < INDEX_LIMIT]
    return min(long, key=lambda dim: sum(map(abs, dim.strides)))


def choose_plane(dims: Sequence[LoopDim]) -> Plane:
    """A plane in which 2-D loads can read every operand, and the destination, the last operand, is row-major.

    Args:
        dims: The dimensions, `ordered_by_stride`.
    """
    one = LoopDim(1, (0,) * (len(dims[0].strides) if dims else 0))
    usable = [dim for dim in dims if max(dim.strides) < INDEX_LIMIT]
    cols = next((dim for dim in usable if dim.strides[-1] == 1), None)
    if cols is not None:
        rows = next((dim for dim in reversed(usable) if dim is not cols and _is_block(dim, cols)), None)
        if rows is not None or max(cols.strides) == 1:
            return Plane(rows or one, cols, without_dims(dims, rows, cols))
    column = column_dim(usable)
    return Plane(column or one, one, without_dims(dims, column))


def _is_block(rows: LoopDim, cols: LoopDim) -> bool:
    """Whether each operand is dense along a dimension, or broadcast along columns; the destination must not overlap."""
    pairs = list(zip(rows.strides, cols.strides, strict=True))
    return pairs[-1][0] >= cols.extent and all(right in (0, 1) or down == 1 for down, right in pairs)
