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
from tlx.lower.to_2d.contraction import Memory
from tlx.lower.to_2d.loops import Walk, nest
from tlx.lower.to_2d.picks import Pick
from tlx.lower.to_2d.views import Dim

INTERLEAVED: Final = 8
"""Cycles to interleave as many words as a row of a tile has."""
_MOST: Final = 64
"""Rows that are written out at most."""
_WRITTEN: Final = 16
"""Registers of a group that are written out at most."""
_LINE: Final = 64
"""Bytes of a register."""


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


def group_cycles(rows: float, columns: Sequence[int], lanes: int) -> float:
    """About how many cycles it takes to copy `rows` groups of columns of these extents."""
    return rows * sum(part.count for part in _parts([Dim(extent, 0) for extent in columns], lanes)) * INTERLEAVED


@dataclass(frozen=True)
class _Part:
    """Columns that are copied register by register.

    Attributes:
        around: Loops around the registers: extent, stride in the operand, columns from one to the next.
        start: The first one's place in the operand, and its column.
        places: Elements from the first column of a register to each.
    """

    around: tuple[Walk, ...]
    start: tuple[int, int]
    places: tuple[int, ...]

    @property
    def count(self) -> int:
        """Registers."""
        return math.prod(extent for extent, _ in self.around)


def _parts(columns: Sequence[Dim], lanes: int) -> list[_Part]:
    """All columns, in whole registers where these can be written out; else by whole rows, or parts of one."""
    outer, places = list(columns), (0,)
    while outer and len(places) % lanes:
        dim = outer.pop()
        some = lanes // math.gcd(len(places), lanes)
        taken = some if dim.extent % some == 0 else dim.extent
        places = _repeated(places, Dim(taken, dim.stride))
        if taken < dim.extent:
            outer.append(Dim(dim.extent // taken, dim.stride * taken))
    if len(places) > _WRITTEN * lanes:
        return _parts_of_rows(columns, lanes)
    around = _around(outer, len(places))
    chunks = (places[at : at + lanes] for at in range(0, len(places), lanes))
    return [_Part(around, (0, at), chunk) for at, chunk in zip(range(0, len(places), lanes), chunks, strict=True)]


def _around(outer: Sequence[Dim], step: int) -> tuple[Walk, ...]:
    """Loops over dimensions, with columns from a position to the next; the last one's are `step` apart."""
    walks = list[Walk]()
    for dim in reversed(outer):
        walks.insert(0, (dim.extent, (dim.stride, step)))
        step *= dim.extent
    return tuple(walks)


def _parts_of_rows(columns: Sequence[Dim], lanes: int) -> list[_Part]:
    """Columns, `lanes` at most at a time: whole dimensions, the inner ones first, and some positions of another."""
    outer, places = list(columns), (0,)
    while outer[-1].extent * len(places) <= lanes:
        places = _repeated(places, outer.pop())
    each, (extent, stride) = len(places), outer.pop()
    around, some = _around(outer, extent * each), lanes // each
    full, rest = divmod(extent, some)
    parts = [_Part((*around, (full, (some * stride, some * each))), (0, 0), _repeated(places, Dim(some, stride)))]
    if rest:
        start = full * some * stride, full * some * each
        parts.append(_Part(around, start, _repeated(places, Dim(rest, stride))))
    return parts


def _repeated(places: tuple[int, ...], dim: Dim) -> tuple[int, ...]:
    """Places, again for each position of a dimension around them."""
    return tuple(index * dim.stride + place for index in range(dim.extent) for place in places)


@dataclass(frozen=True)
class Grouped:
    """A copy.

    Attributes:
        b: Where it is written.
        source: The operand.
        groups: Its rows.
        outer: Loops around the matrices that are copied: extent, strides in the operand and in the copy.
        columns: Dimensions of a row in the operand.
        pitch: Columns of a row of the copy: room behind its last one is left as it is.
    """

    b: TensorBuilder
    source: Memory
    groups: Groups
    outer: tuple[Walk, ...]
    columns: tuple[Dim, ...]
    pitch: int

    def write(self, target: Value) -> None:
        """Write the copy."""
        b, (pointer, element, *_) = self.b, self.source
        lanes = _LINE // bytes_of(element)
        width = self.groups.width
        with nest(b, [*self.outer, *self._rows], 2, "groups") as (start, there):
            base, out = b.gep(element, pointer, start, "from"), b.gep(element, target, there, "to")
            for part in _parts(self.columns, lanes // width):
                around = [(extent, (here, column * width)) for extent, (here, column) in part.around]
                with nest(b, around, 2, "column") as (along, to):
                    for first in range(0, len(self.groups.offsets), width):
                        rows = self.groups.offsets[first : first + width]
                        nearest = min(rows)
                        pick = Pick.of(tuple(p + row - nearest for p in part.places for row in rows), lanes)
                        here = b.gep(element, base, b.add(along, part.start[0] + nearest), "row")
                        place = b.add(to, part.start[1] * width + first * self.pitch)
                        pick.emit(b, element, here, b.gep(element, out, place, "group"), len(part.places) * width)

    @property
    def _rows(self) -> tuple[Walk, ...]:
        """Loops around the rows that are written out, in the operand and in the copy."""
        walks, step = list[Walk](), len(self.groups.offsets) * self.pitch
        for extent, stride in reversed(self.groups.around):
            walks.insert(0, (extent, (stride, step)))
            step *= extent
        return tuple(walks)
