"""The part of its tiles that a call of a kernel works on: all of them, or those that its last parameters tell.

define internal void @K.part(args, i64 %row, i64 %row.end, i64 %column, i64 %column.end)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.module import Function
from tlx.ir.types import I64, Type
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range

PART: Final = ".part"
BOUNDS: Final[list[tuple[str, Type]]] = [(name, I64) for name in ("row", "row.end", "column", "column.end")]
"""Parameters of a kernel that works on a part of the tiles."""


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


def as_index(number: int | Value) -> Value:
    """A bound of a loop as a value."""
    return const_int(I64, number) if isinstance(number, int) else number


def _clamped(b: Builder, value: Value, most: int) -> Value:
    """A number (signed) moved to between 0 and `most`."""
    limit, zero = const_int(I64, most), const_int(I64, 0)
    below = b.select(b.icmp("slt", value, limit), value, limit)
    return b.select(b.icmp("sgt", below, zero), below, zero)
