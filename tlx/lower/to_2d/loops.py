"""Loop nests over strided dimensions: which are collapsed, which become loops, which a 2-D tree takes.

Loops over outer dimensions, with the offset of each operand.

    extents 2, 3, strides (12, 4), (0, 5)      offsets of two operands: 12*i + 4*j and 5*j

Neighbouring dimensions that every operand walks through as if they were one become one loop.

Neighbouring dimensions that are walked through as one.

Which two dimensions of a tensor a 2-D tree takes at once, and which become loops around it.

extents and strides (source, destination)      plane

    2   (1000, 1000)                           loop
    3   (1, 40)                                rows: the source has neighbours here
    40  (8, 1)                                 columns: the destination has neighbours here
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from tlx.ir.builder.instructions import Builder
from tlx.ir.types import I64
from tlx.ir.values import ConstInt, Value
from tlx.lower.context import INDEPENDENT_METADATA

LoopDim = tuple[int, tuple[int, ...]]
"""One dimension: its extent, and its stride in each operand."""

INDEX_LIMIT: Final = 1 << 31


def collapse_dims(walks: Sequence[LoopDim]) -> list[LoopDim]:
    """The dimensions, outermost first, without those of extent 1 and with neighbours merged where possible."""
    result: list[LoopDim] = []
    for extent, strides in walks:
        if extent == 1:
            continue
        if result and _continues(result[-1], extent, strides):
            result[-1] = (result[-1][0] * extent, strides)
        else:
            result.append((extent, strides))
    return result


def _continues(outer: LoopDim, extent: int, strides: tuple[int, ...]) -> bool:
    pairs = zip(outer[1], strides, strict=True)
    return outer[0] * extent < INDEX_LIMIT and all(far == near * extent for far, near in pairs)


@contextmanager
def loop_nest(
    b: Builder, walks: Sequence[LoopDim], operands: int, name: str = "i", *, independent: bool = True
) -> Generator[list[Value]]:
    """Loops over dimensions, the first outermost; gives the element offset of each operand.

    No iteration reads what another one writes, and the loops say so (`INDEPENDENT_METADATA`), unless they are not
    `independent`.
    """
    offsets: list[Value] = [ConstInt(I64, 0)] * operands
    with ExitStack() as stack:
        for extent, strides in walks:
            loop = stack.enter_context(b.loop(0, extent, name=name))
            loop.mark, index = INDEPENDENT_METADATA if independent else "", loop.index
            offsets = [
                b.add(offset, b.mul(index, stride, f"{name}.offset"), f"{name}.offset")
                for offset, stride in zip(offsets, strides, strict=True)
            ]
        yield offsets


@dataclass(frozen=True, eq=False)
class CollapsedDims:
    """Neighbouring dimensions that are walked through as one; the last of them is the innermost."""

    parts: tuple[LoopDim, ...]

    @cached_property
    def extent(self) -> int:
        """Positions."""
        return math.prod(extent for extent, _ in self.parts)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The strides of its steps, in the operands that are not copied."""
        return self.parts[-1][1]


def collapse_for_operands(walks: Sequence[LoopDim], packed: frozenset[int]) -> list[CollapsedDims]:
    """The dimensions as runs, neighbours merged where every operand walks through them as one.

    Operands that are copied get the order that is needed.
    """
    runs: list[CollapsedDims] = []
    for walk in walks:
        if runs and _continues_run(runs[-1], walk, packed):
            runs[-1] = CollapsedDims((*runs[-1].parts, walk))
        else:
            runs.append(CollapsedDims((walk,)))
    return runs


def _continues_run(run: CollapsedDims, walk: LoopDim, packed: frozenset[int]) -> bool:
    extent, strides = walk
    if run.extent * extent >= INDEX_LIMIT:
        return False
    return all(
        bool(far) == bool(near) if column in packed else far == near * extent
        for column, (far, near) in enumerate(zip(run.strides, strides, strict=True))
    )


class Plane(NamedTuple):
    """A choice of dimensions.

    Attributes:
        rows: Of extent 1 where a tree takes a single row.
        cols: Of extent 1 where a tree takes a single column.
        rest: The loops around, outermost first.
    """

    rows: LoopDim
    cols: LoopDim
    rest: list[LoopDim]


def ordered_by_stride(walks: Sequence[LoopDim]) -> list[LoopDim]:
    """Dimensions from the largest stride in the last operand to the smallest, merged where they are one."""
    return collapse_dims(sorted(walks, key=lambda w: w[1][::-1], reverse=True))


def without_dims(walks: Sequence[LoopDim], *taken: LoopDim | None) -> list[LoopDim]:
    """The other dimensions."""
    return [w for w in walks if not any(w is t for t in taken)]


def longest_dim(walks: Sequence[LoopDim]) -> LoopDim | None:
    """The longest dimension whose strides a pitch can say."""
    return max((w for w in walks if max(w[1]) < INDEX_LIMIT), key=lambda w: w[0], default=None)


def choose_plane(walks: Sequence[LoopDim]) -> Plane:
    """A plane in which every operand is a leaf of a tree; the destination, which is the last one, is row-major.

    Args:
        walks: The dimensions, `ordered_by_stride`.
    """
    one: LoopDim = (1, (0,) * (len(walks[0][1]) if walks else 0))
    usable = [w for w in walks if max(w[1]) < INDEX_LIMIT]
    cols = next((w for w in usable if w[1][-1] == 1), None)
    if cols is not None:
        rows = next((w for w in reversed(usable) if w is not cols and _is_block(w, cols)), None)
        if rows is not None or max(cols[1]) == 1:
            return Plane(rows or one, cols, without_dims(walks, rows, cols))
    column = longest_dim(usable)
    return Plane(column or one, one, without_dims(walks, column))


def _is_block(rows: LoopDim, cols: LoopDim) -> bool:
    """Whether each operand is dense along a dimension, or repeats along the columns."""
    pairs = list(zip(rows[1], cols[1], strict=True))
    return pairs[-1][0] >= cols[0] and all(right in (0, 1) or down == 1 for down, right in pairs)
