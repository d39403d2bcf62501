"""The grid that a team cuts a product by, and the jobs of each thread's rectangle of it.

    thread 1, columns 3 to 6 in two cache blocks          a job: some of the units, which are counted like this

         3   4 | 5                                            0   3
       +-------+---+                                          1   4
    0  |       |   |                                          2   5
    1  |       |   |
    2  |       |   |
       +-------+---+

A unit is a row tile by a cache block of columns, whose panels of B stay near from one job to the next, packed where
the kernel keeps them; or some panels by all rows, where each call of the kernel packs the panels that it reads, and
reads A anew. Threads are counted down the grid's columns: neighbours read the same panels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.threads import cut
from tlx.ir.types import I64
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.branches import where
from tlx.lower.to_tiles.work import Work

_FEWEST: Final = 16
"""Units that a rectangle is cut into at least, where there are as many."""
_FEWEST_PACKED: Final = 4
"""The same where panels are packed: those that are packed one after the other have A read again for each."""

Rectangle = Callable[[Builder, list[Value]], None]
"""Emits a kernel's call: for row tiles from a first one to in front of a last one, and panels."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid of a team, and what is in a thread's rectangle of it: blocks of columns, row tiles in each.

    Attributes:
        work: What is cut.
        down, across: How many threads there are in a column and in a row of the grid.
    """

    work: Work
    down: Value
    across: Value

    @classmethod
    def of(cls, b: Builder, work: Work, team: Value) -> Grid:
        """The grid for a team."""
        down = _rows_of_grid(b, work, team)
        return cls(work, down, b.binary("udiv", team, down) if work.columns > 1 else const_int(I64, 1))

    def units(self, b: Builder, owner: Value) -> Value:
        """Units of a thread's rectangle; none of threads that the grid leaves over."""
        rows, columns = self._rectangle(b, owner)
        inside = b.icmp("ult", owner, b.mul(self.down, self.across))
        height, width = b.sub(rows[1], rows[0]), b.sub(columns[1], columns[0])
        if self._packs_anew:
            total = b.divided_up(width, self._step(b, width))
        else:
            total = b.mul(self._blocks(b, height, width), height)
        return b.select(inside, total, const_int(I64, 0))

    def run(self, b: Builder, kernel: Rectangle, owner: Value, job: tuple[Value, Value]) -> None:
        """Do some units of a rectangle: the end of a block, whole ones, the beginning of one."""
        rows, columns = self._rectangle(b, owner)
        height, width = b.sub(rows[1], rows[0]), b.sub(columns[1], columns[0])
        if self._packs_anew:
            step = self._step(b, width)
            kernel(b, [*rows, *(b.umin(b.add(columns[0], b.mul(n, step)), columns[1]) for n in job)])
            return
        blocks = self._blocks(b, height, width)
        if self.work.keeps:
            self._run_blocks(b, kernel, (rows[0], columns[0]), (height, width, blocks), job)
            return

        def rectangle(first: Value, last: Value, block: Value, behind: Value) -> None:
            down = [b.add(rows[0], row) for row in (first, last)]
            across = [b.add(columns[0], cut(b, width, number, blocks)[0]) for number in (block, behind)]
            kernel(b, [*down, *across])

        whole, last = b.divided_up(job[0], height), b.binary("udiv", job[1], height)
        start, end, nothing = b.mul(whole, height), b.mul(last, height), const_int(I64, 0)
        before = b.sub(whole, 1)
        with where(b, b.icmp("ult", job[0], start), "head"):
            above = b.mul(before, height)
            rectangle(b.sub(job[0], above), b.sub(b.umin(start, job[1]), above), before, whole)
        with where(b, b.icmp("ult", whole, last), "middle"):
            rectangle(nothing, height, whole, last)
        below = b.select(b.icmp("ule", whole, last), b.sub(job[1], end), nothing)
        with where(b, b.icmp("ne", below, 0), "tail"):
            rectangle(nothing, below, last, b.add(last, 1))

    def _run_blocks(
        self,
        b: Builder,
        kernel: Rectangle,
        start: tuple[Value, Value],
        extents: tuple[Value, Value, Value],
        job: tuple[Value, Value],
    ) -> None:
        """Do some units, block by block, in a rectangle of so many row tiles, panels and blocks of these."""
        height, width, blocks = extents
        behind = b.divided_up(job[1], height)
        with b.loop(b.binary("udiv", job[0], height), behind, name="block", runs=True) as loop:
            before = b.mul(loop.index, height)
            skipped = b.sub(job[0], before)
            first = b.select(b.icmp("ult", before, job[0]), skipped, const_int(I64, 0))
            last = b.sub(b.umin(job[1], b.add(before, height)), before)
            panels = cut(b, width, loop.index, blocks)
            kernel(b, [*(b.add(start[0], row) for row in (first, last)), *(b.add(start[1], p) for p in panels)])

    @property
    def _packs_anew(self) -> bool:
        """Whether each call of the kernel packs."""
        return self.work.packs and not self.work.keeps

    def _step(self, b: Builder, width: Value) -> Value:
        """Panels that a call packs and multiplies all rows by: half a cache block, or a quarter of the columns."""
        quarter = b.add(b.binary("lshr", width, const_int(I64, 2)), 1)
        return b.umin(quarter, max(1, self.work.panels // 2))

    def _blocks(self, b: Builder, height: Value, width: Value) -> Value:
        """Blocks of columns: those that the cache holds, or more where there are few rows.

        They are the same in all rectangles of a column of the grid, where threads keep their panels.
        """
        cached = b.divided_up(width, self.work.panels)
        height = b.divided_up(const_int(I64, self.work.rows), self.down) if self.work.keeps else height
        fewest = _FEWEST_PACKED if self.work.keeps else _FEWEST
        enough = b.umin(width, b.divided_up(const_int(I64, fewest), height))
        return b.select(b.icmp("ult", cached, enough), enough, cached)

    def _rectangle(self, b: Builder, owner: Value) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
        """First row and the one behind the last, and columns, of a thread's rectangle."""
        work = self.work
        row = b.binary("urem", owner, self.down)
        column = b.umin(b.binary("udiv", owner, self.down), b.sub(self.across, 1))
        rows = cut(b, const_int(I64, work.rows), row, self.down)
        return rows, cut(b, const_int(I64, work.columns), column, self.across)


def _rows_of_grid(b: Builder, work: Work, team: Value) -> Value:
    """Rows of the grid of threads: those for which the busiest thread has the least to do.

    for down = 1 .. team:  across = team / down
        cycles = ceil(rows / down) * ceil(columns / across) * tile
               + ceil(rows / down) * (row, and cut if across > 1) + ceil(columns / across) * column
    """
    if work.columns == 1:
        return b.umin(team, work.rows)
    if work.rows == 1:
        return const_int(I64, 1)
    unit = max(work.cycles / (1 << 40), 1.0)
    costs = work.tile, work.row, work.row + work.cut, work.column
    tile, row, cut_row, column = (const_int(I64, round(cost / unit)) for cost in costs)
    start: list[Value] = [const_int(I64, 1), const_int(I64, (1 << 63) - 1)]
    last = b.add(b.umin(team, work.rows), 1)
    with b.loop(1, last, carry=start, name="down", runs=True) as loop:
        height = b.divided_up(const_int(I64, work.rows), loop.index)
        across = b.binary("udiv", team, loop.index)
        width = b.divided_up(const_int(I64, work.columns), across)
        reading = b.mul(height, b.select(b.icmp("ugt", across, 1), cut_row, row)) if work.cut else b.mul(height, row)
        cycles = b.add(b.mul(b.mul(height, width), tile), b.add(reading, b.mul(width, column)))
        better = b.icmp("ult", cycles, loop.carried[1])
        loop.next(b.select(better, loop.index, loop.carried[0]), b.select(better, cycles, loop.carried[1]))
    return loop.results[0]
