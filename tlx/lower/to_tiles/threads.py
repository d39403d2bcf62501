"""Kernels on several threads: each works on some of the tiles, a rectangle of a grid.

                 columns                    Rewrite:
           0     3     6     8                define internal void @K(args) { loops over all tiles }
         0 +-----+-----+-----+                  ->
    rows   |  0  |  1  |  2  |                define internal void @K.part(args, row, row.end, column, column.end)
         4 +-----+-----+-----+                define internal void @K.thread(shared) { my part of the grid: @K.part }
           |  3  |  4  |  5  |                define internal void @K(args) {
         8 +-----+-----+-----+                  team of one:      @K.part(args, 0, 8, 0, 8)
                                                team of several:  GOMP_parallel(@K.thread, args, team)
                                              }

Which grid is chosen by the threads themselves, when they know how many they are. An element of the result is computed
by one thread, in the order in which one thread would compute it, so results do not depend on the number of threads.
Inside a parallel region of the program a kernel runs on the thread that calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.module import Block, Function, Module
from tlx.ir.threads import Thread, cut, in_threads, team_size
from tlx.ir.types import I64, VOID, FunctionType, Type
from tlx.ir.values import Global, Value, const_int
from tlx.lower.to_tiles.blocks import Range

PART: Final = ".part"
BOUNDS: Final[list[tuple[str, Type]]] = [(name, I64) for name in ("row", "row.end", "column", "column.end")]
"""Parameters of a kernel that works on a part of the tiles."""
_ATTRIBUTES: Final = "nounwind noinline"


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel does: `rows` x `columns` tiles; the cycles of a tile, and those that a row or column costs once."""

    rows: int
    columns: int
    tile: float
    row: float = 0.0
    column: float = 0.0

    @property
    def cycles(self) -> float:
        """All of it."""
        return self.rows * self.columns * self.tile + self.rows * self.row + self.columns * self.column

    def team(self, least: int) -> int:
        """How many threads are worth having, where each should work for `least` cycles."""
        return min(self.rows * self.columns, int(self.cycles / max(least, 1)))


@dataclass(frozen=True, slots=True)
class Part:
    """Which tiles of an axis a call works on: all, or those from `first` to in front of `last`."""

    first: Value | None = None
    last: Value | None = None

    def of(self, b: Builder, ranges: Sequence[Range], range_: Range) -> tuple[int | Value, int | Value]:
        """Bounds of a loop over the tiles of one of the ranges that an axis is cut into."""
        if self.first is None or self.last is None:
            return 0, range_.count
        if len(ranges) == 1:
            return self.first, self.last
        before = sum(r.count for r in ranges if r.start < range_.start)
        first, last = (_clamped(b, b.sub(place, before), range_.count) for place in (self.first, self.last))
        return first, last


@dataclass(frozen=True, slots=True)
class Share:
    """Which tiles a call of a kernel works on."""

    rows: Part = Part()
    columns: Part = Part()


WHOLE: Final = Share()


def arguments_of(function: Function) -> tuple[list[Value], Share]:
    """A kernel's arguments without the bounds of its share, and the share."""
    values: list[Value] = [argument.value for argument in function.arguments]
    if [a.name for a in function.arguments[-len(BOUNDS) :]] != [name for name, _ in BOUNDS]:
        return values, WHOLE
    *values, row, row_end, column, column_end = values
    return values, Share(Part(row, row_end), Part(column, column_end))


def in_team(module: Module, part: Function, work: Work, most: int) -> Function:
    """Add the function that runs a kernel with bounds on a team of at most `most` threads."""
    stem = part.name.strip('"').removesuffix(PART)
    taken = part.arguments[: -len(BOUNDS)]
    parameters = [(a.type, a.attributes, a.name) for a in taken]
    function = new_function(module, module.global_names.fresh(stem), parameters, _ATTRIBUTES)
    thread = module.global_names.fresh(f"{stem}.thread")
    b = Builder(module, function)
    values: list[Value] = [argument.value for argument in function.arguments]
    size = team_size(b, most)
    several, alone = _branches(b, b.icmp("ugt", size, 1), ("several", "alone"))

    def share(inner: Builder, own: list[Value], thread: Thread) -> None:
        _share(inner, part, own, work, thread)

    b.at_end(several)
    in_threads(b, thread, values, share, _ATTRIBUTES, size)
    b.ret()
    b.at_end(alone)
    _call(b, part, [*values, *(const_int(I64, n) for n in (0, work.rows, 0, work.columns))])
    b.ret()
    return function


def _branches(b: Builder, condition: Value, names: tuple[str, str]) -> tuple[Block, Block]:
    """Blocks for a condition that holds, and for one that does not."""
    before = b.block
    then = b.new_block(names[0])
    otherwise = b.new_block(names[1], then)
    b.at_end(before)
    b.branch_if(condition, then, otherwise)
    return then, otherwise


def _share(b: Builder, part: Function, values: list[Value], work: Work, thread: Thread) -> None:
    """Call the kernel for the thread's part of the grid; there is none for threads that the grid leaves over."""
    down = _grid(b, work, thread.team)
    across = b.binary("udiv", thread.team, down) if work.columns > 1 else const_int(I64, 1)
    row = b.binary("udiv", thread.number, across) if work.columns > 1 else thread.number
    column = b.binary("urem", thread.number, across) if work.columns > 1 else const_int(I64, 0)
    inside, done = _branches(b, b.icmp("ult", row, down), ("share", "done"))
    b.at_end(inside)
    rows = cut(b, const_int(I64, work.rows), row, down)
    columns = cut(b, const_int(I64, work.columns), column, across)
    _call(b, part, [*values, *rows, *columns])
    b.branch(done)
    b.at_end(done)


def _grid(b: Builder, work: Work, team: Value) -> Value:
    """Rows of the grid of threads: those for which the busiest thread has the least to do.

    for down = 1 .. team:  across = team / down
        cycles = ceil(rows / down) * ceil(columns / across) * tile
               + ceil(rows / down) * row + ceil(columns / across) * column
    """
    if work.columns == 1:
        return b.umin(team, work.rows)
    if work.rows == 1:
        return const_int(I64, 1)
    unit = max(work.cycles / (1 << 40), 1.0)
    tile, row, column = (const_int(I64, round(cost / unit)) for cost in (work.tile, work.row, work.column))
    start: list[Value] = [const_int(I64, 1), const_int(I64, (1 << 63) - 1)]
    last = b.add(b.umin(team, work.rows), 1)
    with b.loop(1, last, carry=start, name="down", runs=True) as loop:
        height = _divided_up(b, work.rows, loop.index)
        width = _divided_up(b, work.columns, b.binary("udiv", team, loop.index))
        cycles = b.add(b.mul(b.mul(height, width), tile), b.add(b.mul(height, row), b.mul(width, column)))
        better = b.icmp("ult", cycles, loop.carried[1])
        loop.next(b.select(better, loop.index, loop.carried[0]), b.select(better, cycles, loop.carried[1]))
    return loop.results[0]


def _divided_up(b: Builder, total: int, parts: Value) -> Value:
    """`ceil(total / parts)`."""
    return b.binary("udiv", b.add(b.sub(parts, 1), total), parts)


def as_index(number: int | Value) -> Value:
    """A bound of a loop as a value."""
    return const_int(I64, number) if isinstance(number, int) else number


def _clamped(b: Builder, value: Value, most: int) -> Value:
    """A number (signed) moved to between 0 and `most`."""
    limit, zero = const_int(I64, most), const_int(I64, 0)
    below = b.select(b.icmp("slt", value, limit), value, limit)
    return b.select(b.icmp("sgt", below, zero), below, zero)


def _call(b: Builder, callee: Function, args: Sequence[Value]) -> None:
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), callee.name), type_, args)
