"""Blocks of static size out of matrices of run-time size, padded with zeros.

A matrix of P x K (K is the dimension that a product sums over, P the other one) becomes blocks that lie one behind the
other. Blocks of K are 256 or 32 positions deep; those of P have the sizes that the caller names, the larger first:

          k0 = 0 .. 255     256 .. 511    512 .. 543   (K = 520: two deep blocks, and a shallow one half empty)
    p0=0  [ block          ][ block      ][ block   ]
    p0=64 ...

Block (p0, k0) is p0 * kr + k0 * (its size along P) elements behind the first, where kr is K rounded up to 32.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from tlx.ir.builder import Builder
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import IntType, bytes_of
from tlx.ir.values import Value
from tlx.lower.dynamic.copies import copy_row
from tlx.lower.dynamic.numbers import number

DEPTHS: Final = (256, 32)
Unit = Literal["p", "k"]
"""The dimension whose neighbours are next to each other in a block: the rows of the block are along it."""


def round_up(b: Builder, value: Value, step: int) -> Value:
    """The next multiple of a power of two."""
    return b.binary("and", b.add(value, step - 1), number(-step), "rounded")


@dataclass(frozen=True)
class Segment:
    """Blocks of one size: those that begin at `first`, `first + size`, ... below `last`."""

    size: int
    first: Value
    last: Value
    is_full: bool


def segments(b: Builder, extent: Value, sizes: Sequence[int]) -> list[Segment]:
    """An extent in blocks of a large size as far as they are full, and of smaller ones for the rest."""
    first: Value = number(0)
    found: list[Segment] = []
    for size in sizes:
        is_last = size == sizes[-1]
        last = round_up(b, extent, size) if is_last else b.binary("and", extent, number(-size), "full")
        found.append(Segment(size, first, last, not is_last))
        first = last
    return found


@contextmanager
def each_block(b: Builder, segment: Segment, extent: Value, name: str) -> Generator[tuple[Value, Value]]:
    """A loop over the blocks of a segment; gives where a block begins, and how many of its positions hold data."""
    with b.loop(segment.first, segment.last, segment.size, name=name) as loop:
        start = loop.index
        if segment.is_full:
            yield start, number(segment.size)
        else:
            yield start, b.umin(b.sub(extent, start, "left"), segment.size, "valid")


@dataclass(frozen=True)
class Source:
    """A matrix of P x K: its first element, extents, and elements between neighbours."""

    pointer: Value
    p: Value
    k: Value
    p_step: Value
    k_step: Value


def emit_pack(b: TensorBuilder, to: Value, source: Source, element: IntType, sizes: Sequence[int], unit: Unit) -> None:
    """Write all blocks of a matrix to memory."""
    depth = round_up(b, source.k, DEPTHS[-1])
    for p_segment in segments(b, source.p, sizes):
        with each_block(b, p_segment, source.p, "p") as (p0, p_valid):
            row = b.gep(element, source.pointer, b.mul(p0, source.p_step, "offset"), "from")
            panel = b.gep(element, to, b.mul(p0, depth, "offset"), "to")
            for k_segment in segments(b, source.k, DEPTHS):
                with each_block(b, k_segment, source.k, "k") as (k0, k_valid):
                    start = b.gep(element, row, b.mul(k0, source.k_step, "offset"), "from")
                    block = b.gep(element, panel, b.mul(k0, p_segment.size, "offset"), "to")
                    p_side = _Side(p_segment, p_valid, source.p_step)
                    k_side = _Side(k_segment, k_valid, source.k_step)
                    outer, inner = (p_side, k_side) if unit == "k" else (k_side, p_side)
                    _emit_block(b, block, start, element, outer, inner)


@dataclass(frozen=True)
class _Side:
    segment: Segment
    valid: Value
    step: Value


def _emit_block(b: TensorBuilder, to: Value, source: Value, element: IntType, outer: _Side, inner: _Side) -> None:
    """Rows of a block: what holds data is copied, the rest is zero."""
    size = bytes_of(element)
    if not (outer.segment.is_full and inner.segment.is_full):
        b.memset(to, 0, outer.segment.size * inner.segment.size * size)
    with b.loop(0, outer.valid, name="row") as loop:
        row = b.gep(element, to, b.mul(loop.index, inner.segment.size, "offset"), "to")
        start = b.gep(element, source, b.mul(loop.index, outer.step, "offset"), "from")
        copy_row(b, element, (row, number(1)), (start, inner.step), inner.valid)
