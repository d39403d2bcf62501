"""Columns of several dimensions, a register's worth at a time.

14 x 14 columns, 16 at a time: whole registers, though they begin and end anywhere in a row; 12 of them, and the rest

    row 0    0 1 2 3 4 5 6 7 8 9 a b c d | 0 1        register 0: all of row 0, two of row 1
    row 1    2 3 4 5 6 7 8 9 a b c d | 0 1 2 3        register 1: the rest of row 1, four of row 2

What 28 x 28 columns need begins anew after 7 registers, 4 rows: these are written out, and there is a loop around them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.lower.to_2d.loops import Walk
from tlx.lower.to_2d.views import Dim

_WRITTEN: Final = 16
"""Registers that are written out at most; else whole rows, or parts of them, fill registers as far as they do."""


@dataclass(frozen=True)
class Chunk:
    """Columns that are copied by the same shuffle, as many as a register of each holds.

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


def chunks_of(columns: Sequence[Dim], lanes: int) -> list[Chunk]:
    """All columns, in whole registers where these can be written out; else by whole rows, or parts of one."""
    outer, places = list(columns), (0,)
    while outer and len(places) % lanes:
        dim = outer.pop()
        some = lanes // math.gcd(len(places), lanes)
        taken = some if dim.extent % some == 0 else dim.extent
        if len(places) * taken > _WRITTEN * lanes:
            return _chunks_of_rows(columns, lanes)
        places = _repeated(places, Dim(taken, dim.stride))
        if taken < dim.extent:
            outer.append(Dim(dim.extent // taken, dim.stride * taken))
    around = _around(outer, len(places))
    return [Chunk(around, (0, at), places[at : at + lanes]) for at in range(0, len(places), lanes)]


def are_whole(chunks: Sequence[Chunk], lanes: int) -> bool:
    """Whether each register holds the columns from a multiple of `lanes` on."""
    steps = [chunk.start[1] for chunk in chunks]
    steps += [step for chunk in chunks for _, (_, step) in chunk.around]
    return all(step % lanes == 0 for step in steps)


def _around(outer: Sequence[Dim], step: int) -> tuple[Walk, ...]:
    """Loops over dimensions, with columns from a position to the next; the last one's are `step` apart."""
    walks = list[Walk]()
    for dim in reversed(outer):
        walks.insert(0, (dim.extent, (dim.stride, step)))
        step *= dim.extent
    return tuple(walks)


def _chunks_of_rows(columns: Sequence[Dim], lanes: int) -> list[Chunk]:
    """Columns, `lanes` at most at a time: whole dimensions, the inner ones first, and some positions of another."""
    outer, places = list(columns), (0,)
    while outer[-1].extent * len(places) <= lanes:
        places = _repeated(places, outer.pop())
    each, (extent, stride) = len(places), outer.pop()
    around, some = _around(outer, extent * each), lanes // each
    full, rest = divmod(extent, some)
    chunks = [Chunk((*around, (full, (some * stride, some * each))), (0, 0), _repeated(places, Dim(some, stride)))]
    if rest:
        start = full * some * stride, full * some * each
        chunks.append(Chunk(around, start, _repeated(places, Dim(rest, stride))))
    return chunks


def _repeated(places: tuple[int, ...], dim: Dim) -> tuple[int, ...]:
    """Places, again for each position of a dimension around them."""
    return tuple(index * dim.stride + place for index in range(dim.extent) for place in places)
