"""Copies of right operands whose rows are interleaved in groups, as a matrix unit reads them (VNNI).

rows of an image's windows, in memory          copy, two rows a group

c  i  j                                        x, y        0 0   0 0   0 1   0 1 ...
0  0  0    0 1 2 ...                           group 0     r0    r1    r0    r1
0  0  1    1 2 3 ...                           group 1     r2    r3    r2    r3
...                                            ...
1  0  0    100 101 102 ...                     group 4     r8    r9    r8    r9        the last window of a channel, and
1  0  1    101 102 103 ...                                                             the first of the next one

Rows of a group lie at any distance, which differs from group to group: as many groups are written out as it takes for
distances to be the same again. Four rows at different distances are interleaved by twos, then twos of these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import IntType, bytes_of
from tlx.lower.to_2d.contraction import Memory
from tlx.lower.to_2d.copies import copy_transposed
from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk, nest
from tlx.lower.to_2d.planes import ordered
from tlx.lower.to_2d.views import Dim, Place

INTERLEAVED: Final = 10
"""Cycles to interleave as many words as a row of a tile has."""
_MOST: Final = 64
"""Rows that are written out at most."""


@dataclass(frozen=True)
class Groups:
    """Rows of an operand in groups.

    Attributes:
        width: Rows of a group.
        around: Loops around the rows that are written out: extent, and stride in the operand.
        offsets: Elements from the first of these rows to each: some groups, behind each other.
    """

    width: int
    around: tuple[Dim, ...]
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, rows: Sequence[Dim], width: int) -> Groups | None:
        """The groups of the rows that some dimensions are; None if 2-D loads cannot say them, or are too many."""
        around, inner, count = list(rows), list[Dim](), 1
        while count % width:
            if not around:
                return None
            extent, stride = around.pop()
            some = width // math.gcd(count, width)
            taken = some if extent % some == 0 else extent
            around.append(Dim(extent // taken, stride * taken))
            inner.insert(0, Dim(taken, stride))
            count *= taken
            if taken == extent:
                around.pop()
        if count > _MOST:
            return None
        offsets = tuple(sum(places) for places in product(*(range(0, d.extent * d.stride, d.stride) for d in inner)))
        found = cls(width, tuple(around), offsets)
        return found if all(0 < step < INDEX_LIMIT for group in found._steps for step in group) else None

    @property
    def _steps(self) -> list[list[int]]:
        """For each group how far its rows are from the one before."""
        starts = range(0, len(self.offsets), self.width)
        return [[b - a for a, b in pairwise(self.offsets[i : i + self.width])] for i in starts]

    @property
    def is_direct(self) -> bool:
        """Whether the rows of each group are equally far apart, so that one copy interleaves them."""
        return all(len(set(steps)) == 1 for steps in self._steps)

    def cycles(self, rows: int, columns: Sequence[int], lanes: int) -> float:
        """About how many cycles it takes to copy `rows` rows of columns of these extents."""
        registers = math.prod(columns[:-1]) * -(-columns[-1] // lanes)
        return rows / self.width * registers * INTERLEAVED * (1 if self.is_direct else 2)


@dataclass(frozen=True)
class Grouped:
    """A copy.

    Attributes:
        b: Where it is written.
        source: The operand.
        groups: Its rows.
        outer: Loops around the matrices that are copied: extent, strides in the operand and in the copy.
        columns: Dimensions of a row in the operand, the last one dense.
        pitch: Columns of a row of the copy: room behind its last one is left as it is.
    """

    b: TensorBuilder
    source: Memory
    groups: Groups
    outer: tuple[Walk, ...]
    columns: tuple[Dim, ...]
    pitch: int

    def write(self, target: Place, between: Place | None) -> None:
        """Write the copy; where rows of a group lie at different distances, by way of as much memory between."""
        if between is None:
            self._interleave(target, self.groups.width)
            return
        self._interleave(between, 2)
        self._join(between, target)

    @property
    def _rows(self) -> tuple[Walk, ...]:
        """Loops around the rows that are written out, in the operand and in the copy."""
        walks, step = list[Walk](), len(self.groups.offsets) * self.pitch
        for extent, stride in reversed(self.groups.around):
            walks.insert(0, (extent, (stride, step)))
            step *= extent
        return tuple(walks)

    def _interleave(self, target: Place, width: int) -> None:
        """Rows `width` at a time, which are equally far apart."""
        b, (pointer, element, *_), offsets = self.b, self.source, self.groups.offsets
        *around, columns = self._columns(width)
        with nest(b, [*self.outer, *self._rows], 2, "groups") as (start, there):
            base, out = b.gep(element, pointer, start, "from"), b.gep(element, target.pointer, there, "to")
            for first in range(0, len(offsets), width):
                rows = width, (offsets[first + 1] - offsets[first], 1)
                places = b.gep(element, base, offsets[first]), b.gep(element, out, first * self.pitch)
                copy_transposed(b, places, element, (rows, columns), around)

    def _columns(self, step: int) -> list[Walk]:
        """Loops along a row in the operand, and in the copy, where columns are `step` apart."""
        walks = list[Walk]()
        for extent, stride in reversed(self.columns):
            walks.insert(0, (extent, (stride, step)))
            step *= extent
        return walks

    def _join(self, pairs: Place, target: Place) -> None:
        """Pairs of rows that are interleaved, two and two of them."""
        b, element, pitch = self.b, self.source.element, self.pitch
        word = IntType(16 * bytes_of(element))
        columns = math.prod(dim.extent for dim in self.columns)
        groups = len(self.groups.offsets) // 4
        dims = (2, (pitch, 1)), (columns, (1, 2))
        loops = [(extent, (out // 2, out // 2)) for extent, (_, out) in (*self.outer, *self._rows)]
        loops.append((groups, (2 * pitch, 2 * pitch)))
        places = b.retype(pairs.pointer, word), b.retype(target.pointer, word)
        copy_transposed(b, places, word, dims, ordered(loops))
