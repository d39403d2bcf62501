"""The part of its tiles that a call of a kernel works on: all of them, or those that its last parameters tell.

define internal void @K.part(args, i64 %row, i64 %row.end, i64 %column, i64 %column.end)

A kernel that packs B may be given the memory that it packs into, too, and whether the panels are in there already,
packed by an earlier call:

define internal void @K.part(args, i64 %row, i64 %row.end, i64 %column, i64 %column.end, ptr %memory, i64 %packed)
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.module import Function, Module
from tlx.ir.threads import cut
from tlx.ir.types import I8, I64, Type
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range

PART: Final = ".part"
BOUNDS: Final[list[tuple[str, Type]]] = [(name, I64) for name in ("row", "row.end", "column", "column.end")]
"""Parameters of a kernel that works on a part of the tiles."""
KEEPING: Final = ("memory", "packed")
"""Parameters behind them of a kernel whose panels stay from one call to the next."""


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
class Kept:
    """Where a kernel's panels stay from one call to the next, and whether (i64) those of a call are there already."""

    memory: Value
    packed: Value


@dataclass(frozen=True, slots=True)
class Share:
    """Which tiles a call of a kernel works on, and where it packs if not in memory of its own."""

    rows: Part = Part()
    columns: Part = Part()
    kept: Kept | None = None


WHOLE: Final = Share()


def arguments_of(function: Function) -> tuple[list[Value], Share]:
    """A kernel's arguments without the bounds of its share, and the share."""
    values: list[Value] = [argument.value for argument in function.arguments]
    names, kept = [argument.name for argument in function.arguments], None
    if tuple(names[-len(KEEPING) :]) == KEEPING:
        *values, memory, packed = values
        names, kept = names[: -len(KEEPING)], Kept(memory, packed)
    if names[-len(BOUNDS) :] != [name for name, _ in BOUNDS]:
        return values, WHOLE
    *values, row, row_end, column, column_end = values
    return values, Share(Part(row, row_end), Part(column, column_end), kept)


def share_parameters(module: Module, *, keeps: bool) -> list[tuple[str, Type]]:
    """Name and type of the parameters of a kernel that works on a part of its tiles."""
    memory, packed = KEEPING
    return [*BOUNDS, (memory, module.pointer_to(I8)), (packed, I64)] if keeps else BOUNDS


@contextmanager
def blocks_of(
    b: Builder, bounds: tuple[int | Value, int | Value], most: int, name: str
) -> Generator[tuple[Value, Value]]:
    """A loop over blocks of up to `most` neighbouring tiles; gives a block's first tile and how many it has.

    Of a share known only when the program runs, blocks differ by at most one tile: 57 by 14 are 11, 11, 12, 11, 12, and
    never 14, 14, 14, 14, 1, whose last would read all of the other operand for a single tile.
    """
    first, last = bounds
    if isinstance(first, int) or most == 1:
        with b.loop(first, last, most, name=name) as loop:
            yield loop.index, b.umin(b.sub(as_index(last), loop.index), most) if most > 1 else const_int(I64, 1)
        return
    total = b.sub(as_index(last), first)
    count = b.binary("sdiv", b.add(total, most - 1), const_int(I64, most))
    with b.loop(0, count, name=name) as loop:
        begin, end = cut(b, total, loop.index, count)
        yield b.add(first, begin), b.sub(end, begin)


def as_index(number: int | Value) -> Value:
    """A bound of a loop as a value."""
    return const_int(I64, number) if isinstance(number, int) else number


def _clamped(b: Builder, value: Value, most: int) -> Value:
    """A number (signed) moved to between 0 and `most`."""
    limit, zero = const_int(I64, most), const_int(I64, 0)
    below = b.select(b.icmp("slt", value, limit), value, limit)
    return b.select(b.icmp("sgt", below, zero), below, zero)
