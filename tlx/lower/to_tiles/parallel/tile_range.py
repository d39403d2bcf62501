"""The tile range of a call of a kernel: all tiles, or those that its last parameters delimit.

define internal void @K.part(args, i64 %row, i64 %row.end, i64 %column, i64 %column.end)

A kernel that packs B may also be given the memory for its panels, and whether an earlier call has packed them there:

define internal void @K.part(args, i64 %row, i64 %row.end, i64 %column, i64 %column.end, ptr %memory, i64 %packed)
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.instructions import Builder, as_value
from tlx.ir.builder.parallel import partition
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.types import I8, I64, Type
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.select.recipe import EqualTiles

PART_SUFFIX: Final = ".part"
BOUND_PARAMETERS: Final[list[tuple[str, Type]]] = [(name, I64) for name in ("row", "row.end", "column", "column.end")]
"""Parameters of a kernel that works on a part of the tiles."""
PANEL_CACHE_PARAMETERS: Final = ("memory", "packed")
"""The parameters after them of a kernel whose panels stay from one call to the next."""


@dataclass(frozen=True, slots=True)
class AxisBounds:
    """Which tiles of an axis a call works on: all, or those from `first` up to but not including `last`."""

    first: Value | None = None
    last: Value | None = None

    def of(self, b: Builder, ranges: Sequence[EqualTiles], range_: EqualTiles) -> tuple[int | Value, int | Value]:
        """Bounds of a loop over the tiles in one of the ranges that an axis is cut into."""
        if self.first is None or self.last is None:
            return 0, range_.count
        if len(ranges) == 1:
            return self.first, self.last
        before = sum(r.count for r in ranges if r.start < range_.start)
        first, last = (_clamped(b, b.sub(place, before), range_.count) for place in (self.first, self.last))
        return first, last


@dataclass(frozen=True, slots=True)
class CachedPanels:
    """Where a kernel's panels stay from one call to the next, and whether (i64) the call finds them packed."""

    memory: Value
    packed: Value


@dataclass(frozen=True, slots=True)
class TileRange:
    """Which tiles a call of a kernel works on, and where it packs if not to memory of its own."""

    rows: AxisBounds = AxisBounds()
    columns: AxisBounds = AxisBounds()
    cached_panels: CachedPanels | None = None


ALL_TILES: Final = TileRange()


def arguments_and_tile_range(function: Function) -> tuple[list[Value], TileRange]:
    """A kernel's arguments without the bounds of its share, and the share."""
    values: list[Value] = [argument.value for argument in function.arguments]
    names, kept = [argument.name for argument in function.arguments], None
    if tuple(names[-len(PANEL_CACHE_PARAMETERS) :]) == PANEL_CACHE_PARAMETERS:
        *values, memory, packed = values
        names, kept = names[: -len(PANEL_CACHE_PARAMETERS)], CachedPanels(memory, packed)
    if names[-len(BOUND_PARAMETERS) :] != [name for name, _ in BOUND_PARAMETERS]:
        return values, ALL_TILES
    *values, row, row_end, column, column_end = values
    return values, TileRange(AxisBounds(row, row_end), AxisBounds(column, column_end), kept)


def tile_range_parameters(module: Module, *, caches_panels: bool) -> list[tuple[str, Type]]:
    """Name and type of the parameters of a kernel that works on a part of its tiles."""
    memory, packed = PANEL_CACHE_PARAMETERS
    return [*BOUND_PARAMETERS, (memory, module.pointer_to(I8)), (packed, I64)] if caches_panels else BOUND_PARAMETERS


@contextmanager
def loop_over_blocks(
    b: Builder, bounds: tuple[int | Value, int | Value], most: int, name: str
) -> Generator[tuple[Value, Value]]:
    """A loop over blocks of up to `most` adjacent tiles; yields a block's first tile and its number of tiles.

    In a range known only at run time, blocks differ by at most one tile: 57 by 14 are 11, 11, 12, 11, 12 rather than
    14, 14, 14, 14, 1, where the last would read all of the other operand for a single tile.
    """
    first, last = bounds
    if isinstance(first, int) or most == 1:
        with b.loop(first, last, most, name=name) as loop:
            yield loop.index, b.umin(b.sub(as_value(last, I64), loop.index), most) if most > 1 else const_int(I64, 1)
        return
    total = b.sub(as_value(last, I64), first)
    count = b.binary("sdiv", b.add(total, most - 1), const_int(I64, most))
    with b.loop(0, count, name=name) as loop:
        begin, end = partition(b, total, loop.index, count)
        yield b.add(first, begin), b.sub(end, begin)


def _clamped(b: Builder, value: Value, most: int) -> Value:
    """A signed number clamped to the range from 0 to `most`."""
    limit, zero = const_int(I64, most), const_int(I64, 0)
    below = b.select(b.icmp("slt", value, limit), value, limit)
    return b.select(b.icmp("sgt", below, zero), below, zero)
