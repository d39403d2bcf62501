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
from tlx.lower.to_tiles.stealing import Portion
from tlx.lower.to_tiles.work import Work

_FEWEST: Final = 16
"""Units that a rectangle is cut into at least, where there are as many."""
_FEWEST_PACKED: Final = 4
"""The same where panels are packed: those that are packed one after the other have A read again for each."""

Kernel = Callable[[Builder, list[Value]], None]
"""Emits a kernel's call: for row tiles from a first one to in front of a last one, and panels."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid of a team.

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

    def portion(self, b: Builder, kernel: Kernel, owner: Value) -> Portion:
        """A thread's rectangle; nothing of threads that the grid leaves over."""
        work, none = self.work, const_int(I64, 0)
        row = b.binary("urem", owner, self.down)
        column = b.umin(b.binary("udiv", owner, self.down), b.sub(self.across, 1))
        rows = cut(b, const_int(I64, work.rows), row, self.down)
        columns = cut(b, const_int(I64, work.columns), column, self.across)
        height, width = b.sub(rows[1], rows[0]), b.sub(columns[1], columns[0])
        inside = b.icmp("ult", owner, b.mul(self.down, self.across))
        if work.packs and not work.keeps:
            step = self._step(b, width)
            units, rectangle = b.divided_up(width, step), _Rectangle(kernel, rows[0], columns[0], height, width, step)
            return Portion(b.select(inside, units, none), rectangle.run_anew)
        blocks = self._blocks(b, height, width)
        rectangle = _Rectangle(kernel, rows[0], columns[0], height, width, blocks)
        run = rectangle.run_blocks if work.keeps else rectangle.run_whole
        return Portion(b.select(inside, b.mul(blocks, height), none), run)

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


@dataclass(frozen=True, slots=True)
class _Rectangle:
    """A thread's rectangle of tiles, and what does jobs of it.

    Attributes:
        kernel: Emits calls.
        row, column: Its first row tile, and panel.
        height, width: Row tiles, and panels.
        blocks: Cache blocks of columns; where each call packs, panels that it does.
    """

    kernel: Kernel
    row: Value
    column: Value
    height: Value
    width: Value
    blocks: Value

    def run_anew(self, b: Builder, first: Value, last: Value) -> None:
        """All rows by some panels, which the call packs."""
        behind = b.add(self.column, self.width)
        rows = self.row, b.add(self.row, self.height)
        self.kernel(b, [*rows, *(b.umin(b.add(self.column, b.mul(n, self.blocks)), behind) for n in (first, last))])

    def run_whole(self, b: Builder, first: Value, last: Value) -> None:
        """Some units by three calls: the end of a block, whole ones, the beginning of one."""
        height, nothing = self.height, const_int(I64, 0)
        whole, behind = b.divided_up(first, height), b.binary("udiv", last, height)
        start, end = b.mul(whole, height), b.mul(behind, height)
        before = b.sub(whole, 1)
        with where(b, b.icmp("ult", first, start), "head"):
            above = b.mul(before, height)
            self._call(b, (b.sub(first, above), b.sub(b.umin(start, last), above)), before, whole)
        with where(b, b.icmp("ult", whole, behind), "middle"):
            self._call(b, (nothing, height), whole, behind)
        below = b.select(b.icmp("ule", whole, behind), b.sub(last, end), nothing)
        with where(b, b.icmp("ne", below, 0), "tail"):
            self._call(b, (nothing, below), behind, b.add(behind, 1))

    def run_blocks(self, b: Builder, first: Value, last: Value) -> None:
        """Some units, block by block."""
        height = self.height
        with b.loop(b.binary("udiv", first, height), b.divided_up(last, height), name="block", runs=True) as loop:
            before = b.mul(loop.index, height)
            top = b.select(b.icmp("ult", before, first), b.sub(first, before), const_int(I64, 0))
            rows = top, b.sub(b.umin(last, b.add(before, height)), before)
            self._call(b, rows, loop.index, b.add(loop.index, 1))

    def _call(self, b: Builder, rows: tuple[Value, Value], block: Value, behind: Value) -> None:
        """Some of the row tiles by all panels from a block to in front of another."""
        panels = (cut(b, self.width, number, self.blocks)[0] for number in (block, behind))
        self.kernel(b, [*(b.add(self.row, row) for row in rows), *(b.add(self.column, panel) for panel in panels)])


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
