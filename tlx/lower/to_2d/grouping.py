"""Copies of right operands whose rows are interleaved in groups, as a matrix unit reads them (VNNI).

rows of an image's windows, in memory          copy, two rows a group

c  i  j                                        x, y        0 0   0 0   0 1   0 1 ...
0  0  0    0 1 2 ...                           group 0     r0    r1    r0    r1
0  0  1    1 2 3 ...                           group 1     r2    r3    r2    r3
...                                            ...
1  0  0    100 101 102 ...                     group 4     r8    r9    r8    r9        the last window of a channel, and
1  0  1    101 102 103 ...                                                             the first of the next one

Rows of a group lie at any distance, which differs from group to group: as many groups are written out as it takes for
distances to be the same again. What a register of a group holds is picked from these rows (`picks`); columns are
written out, too, until the pattern begins anew, or where that takes too many registers those of a row of pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import bytes_of
from tlx.ir.values import Value
from tlx.lower.to_2d.chunks import Chunk, chunks_of
from tlx.lower.to_2d.contraction import Memory
from tlx.lower.to_2d.loops import Walk, nest
from tlx.lower.to_2d.picks import Pick
from tlx.lower.to_2d.views import Dim

_WRITTEN: Final = 8
"""Cycles to write a register of a copy that does not stay in the first cache."""
_LINE: Final = 2.5
"""Cycles to load a line and to merge it."""
_MOST: Final = 64
"""Rows that are written out at most."""
_REGISTER: Final = 64


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
        """The groups of the rows that some dimensions are; None if there are too many to write out."""
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
        if count > _MOST or any(dim.stride < 0 for dim in rows):
            return None
        offsets = tuple(sum(places) for places in product(*(range(0, d.extent * d.stride, d.stride) for d in inner)))
        return cls(width, tuple(around), offsets)

    def picks(self, chunk: Chunk, lanes: int) -> list[tuple[int, Pick]]:
        """For each group that is written out the first element of a register of its columns, and what that holds."""
        found: list[tuple[int, Pick]] = []
        for first in range(0, len(self.offsets), self.width):
            rows = self.offsets[first : first + self.width]
            places = tuple(place + row - min(rows) for place in chunk.places for row in rows)
            found.append((min(rows), Pick.of(places, lanes)))
        return found

    def cycles(self, rows: float, columns: Sequence[Dim], lanes: int) -> float:
        """About how many cycles it takes to copy `rows` rows of such columns; `lanes` of them fit a register."""
        chunks = chunks_of(columns, lanes)
        lines = max(len(pick.lines) for _, pick in self.picks(chunks[0], lanes * self.width))
        each = max(_WRITTEN, _LINE * lines)
        return rows / self.width * sum(chunk.count for chunk in chunks) * each


@dataclass(frozen=True)
class Grouped:
    """A copy.

    Attributes:
        b: Where it is written.
        source: The operand.
        groups: Its rows.
        outer: Loops around the matrices that are copied: extent, strides in the operand and in the copy.
        columns: Dimensions of a row in the operand.
        pitch: Columns of a row of the copy: what is written behind the last one does not matter.
        strip: Elements from the first `pitch` columns to the next ones in the copy; 0 where there are no others.
    """

    b: TensorBuilder
    source: Memory
    groups: Groups
    outer: tuple[Walk, ...]
    columns: tuple[Dim, ...]
    pitch: int
    strip: int = 0

    def write(self, target: Value) -> None:
        """Write the copy."""
        b, (pointer, element, *_) = self.b, self.source
        lanes = _REGISTER // bytes_of(element)
        width = self.groups.width
        with nest(b, [*self.outer, *self._rows], 2, "groups") as (start, there):
            base, out = b.gep(element, pointer, start, "from"), b.gep(element, target, there, "to")
            for chunk in chunks_of(self.columns, lanes // width):
                around = [(extent, (here, self._place(column))) for extent, (here, column) in chunk.around]
                with nest(b, around, 2, "column") as (along, to):
                    for number, (first, pick) in enumerate(self.groups.picks(chunk, lanes)):
                        here = b.gep(element, base, b.add(along, chunk.start[0] + first), "row")
                        place = b.add(to, self._place(chunk.start[1]) + number * self.pitch * width)
                        pick.emit(b, element, here, b.gep(element, out, place, "group"), self._columns(chunk) * width)

    def _columns(self, chunk: Chunk) -> int:
        """Columns that are written: the last register is whole, if there is room behind the last column."""
        columns = _REGISTER // bytes_of(self.source.element) // self.groups.width
        start = chunk.start[1] % self.pitch if self.strip else chunk.start[1]
        return len(chunk.places) if chunk.around else min(columns, self.pitch - start)

    def _place(self, column: int) -> int:
        """Elements from the first column of a row of the copy to another one."""
        return column // self.pitch * self.strip if self.strip else column * self.groups.width

    @property
    def _rows(self) -> tuple[Walk, ...]:
        """Loops around the rows that are written out, in the operand and in the copy."""
        walks, step = list[Walk](), len(self.groups.offsets) * self.pitch
        for extent, stride in reversed(self.groups.around):
            walks.insert(0, (extent, (stride, step)))
            step *= extent
        return tuple(walks)
