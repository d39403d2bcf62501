"""Results larger than the caches, written past them, so that they are not read before they are written.

Such stores have to be aligned, and results need not be. What is computed twice is the same both times, where the result
is no operand:

    | first register |                                        as usual
        | tile, aligned | tile | tile | ... |                 past the caches
                                    | rest of the row |       as usual

Measured on one Sapphire Rapids core, 2026-11-22: a copy moves 19 instead of 15 GB/s from 64 MB on, a sum of two arrays
20 instead of 15; at 32 MB, which are in the last-level cache, 20 instead of 26.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, bits_of, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.memory import kept_for_later
from tlx.lower.to_tiles.problem import Copy, Map
from tlx.target import Target

_LEAST_TILES: Final = 8
"""Of a row: the first register and the rest, which are computed twice, are to count little."""

_RUN: Final = 8
"""Tiles of 64 bytes that are read beside each other (`copy.py` has measurements)."""


@dataclass(frozen=True, slots=True)
class Span:
    """Tiles of a row; those past the caches start at the row's first aligned element, not at its first."""

    columns: Range
    past_caches: bool = False


def streams(problem: Copy | Map, target: Target) -> bool:
    """Whether a result and what it is made of are larger than the caches: of a piece, those of the whole problem."""
    return (problem.whole or problem.moves) > kept_for_later(target)


def boundary_of(problem: Copy | Map, target: Target) -> int:
    """Elements that stores past the caches are aligned to: those of a register; 0 where there are to be none."""
    element = problem.destination.element
    return target.vector_bytes // bytes_of(element) if bits_of(element) > 1 and streams(problem, target) else 0


def plain_spans(cols: int, width: int, lanes: int) -> list[Span]:
    """The tiles of a row: full ones of `width` elements, and one of whole registers, padded."""
    return [Span(columns) for columns in padded(cols, width, lanes)]


def aligned_spans(cols: int, width: int, lanes: int, boundary: int) -> list[Span]:
    """The tiles of a row of which most are aligned to `boundary` elements; no row of fewer than a few tiles is cut.

    The tiles are at least as wide as asked for: whole multiples of the boundary, so that all are aligned as the first.
    """
    width = -(-width // boundary) * boundary
    if cols < _LEAST_TILES * width:
        return plain_spans(cols, width, lanes)
    count = (cols - boundary + 1) // width
    done = count * width
    rest = [Range(done + r.start, r.count, r.size, r.padding) for r in padded(cols - done, width, lanes)]
    head = padded(boundary, width, lanes)
    return [*map(Span, head), Span(Range(0, count, width), True), *map(Span, rest)]


def runs(rows: Range, *, past_caches: bool) -> list[Range]:
    """Tiles below each other of a result whose source lies in the other order, that are written one after the other.

    They read lines beside each other of the source's rows, which is how memory is fetched; past the caches all tiles
    do, as what is written need not stay there until its neighbours come.
    """
    return padded(rows.count, rows.count if past_caches else _RUN, 1)


def to_boundary(b: TensorBuilder, address: Value, element: int, boundary: int) -> Value:
    """Elements of so many bytes from an address to the next one that is aligned to `boundary` elements."""
    bytes_behind = b.sub(const_int(I64, 0), b.cast("ptrtoint", address, I64))
    gap = b.binary("and", bytes_behind, const_int(I64, boundary * element - 1))
    return b.binary("lshr", gap, const_int(I64, element.bit_length() - 1))
