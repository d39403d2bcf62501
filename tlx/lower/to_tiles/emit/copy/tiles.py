"""Copying tiles of a matrix to another layout and element type: what packing and the kernels of copies are made of.

A tile of 4 x 2, read from memory by rows or by columns, is written in one of two orders:

    by rows                      in groups of two rows, interleaved (VNNI)
    00 01 | 10 11 | 20 21 ...    00 10 01 11 | 20 30 21 31
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I64, Type, VectorType, bits_of
from tlx.ir.values import Local, Value, const_int, zero
from tlx.lower.to_tiles.emit.kernel import column_tile, tile
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.caches import LINE

Extents = tuple[int, int]
"""Rows and columns."""
NOTHING: Final[Extents] = (0, 0)


@dataclass(frozen=True, slots=True)
class TileCopy:
    """Copies tiles of a matrix.

    Attributes:
        b: Where to emit.
        element: Elements of the matrix.
        pitch: Elements from a row to the next, or from a column to the next; 0 where they follow each other.
        by_rows: Whether rows lie in one piece; else columns do.
        to_element: Elements of the copy.
        convert: Converts a flattened tile.
        name: Stem of names of values.
    """

    b: TensorBuilder
    element: Type
    pitch: int
    by_rows: bool
    to_element: Type
    convert: Callable[[Value], Value] = lambda vector: vector
    name: str = "x"

    @classmethod
    def of_view(
        cls, b: TensorBuilder, view: MatrixView, to_element: Type, convert: Callable[[Value], Value], name: str
    ) -> TileCopy:
        """Copies tiles of a view; interleaved rows are copied as they lie: as rows of whole groups."""
        if view.interleave > 1:
            return cls(b, view.element, max(1, view.interleave * view.row_stride), True, to_element, convert, name)
        pitch = view.row_stride if view.is_row_major else view.col_stride
        return cls(b, view.element, max(1, pitch), view.is_row_major, to_element, convert, name)

    def load(
        self, address: Value, size: Extents, missing: Extents = NOTHING, *, group: int = 1, kept: Extents = NOTHING
    ) -> Local:
        """A token for the copy of a tile: its rows, or groups of so many rows, whose elements are interleaved.

        Rewrite:
            load <rows, cols>, by rows or by columns  ->  reshape.block by the group
            load <rows, cols>                         ->  tovector
            load <rows, cols> by columns              ->  transpose

        Args:
            address: The first element.
            size: Rows and columns.
            missing: How many of them, the last ones, are not read but zero.
            group: Rows that are interleaved.
            kept: How many of the last rows and columns of the copy are not written.
        """
        b, name, flat = self.b, self.name, VectorType(size[0] * size[1], self.element)
        type_ = (tile if self.by_rows else column_tile)(self.element, *size, missing)
        token = b.tensor_load(address, type_, (0, self.pitch) if self.pitch else None, name)
        if group > 1:
            vector = b.reshape_block(token, (0,), (group,), flat, f"{name}.vnni")
        elif self.by_rows:
            vector = b.tovector(token, type_, f"{name}.rows")
        else:
            vector = b.transpose(token, (0, 1), flat, f"{name}.rows")
        type_ = tile(self.to_element, size[0] // group, size[1] * group, kept)
        return b.typeinfo(self.convert(vector), type_, f"{name}.packed")

    def store(self, copy: Local, to: Value, pitch: int = 0, metadata: str = "") -> None:
        """Write a copy, so many elements from row to row; 0 where rows follow each other."""
        self.b.tensor_store(to, copy, (0, pitch) if pitch else None, metadata=metadata)


def clear(b: TensorBuilder, element: Type, to: Value, count: int) -> None:
    """Write `count` zeros, a cache line at a time."""

    def write(start: Value, size: int) -> None:
        zeros = b.typeinfo(zero(VectorType(size, element)), tile(element, 1, size), "zeros")
        b.tensor_store(b.gep(element, to, start), zeros)

    chunk = min(count, LINE * 8 // bits_of(element))
    in_chunks(b, count, chunk, "z", lambda number, size: write(b.mul(number, chunk), size))


def in_chunks(b: TensorBuilder, count: int, chunk: int, name: str, emit: Callable[[Value, int], None]) -> None:
    """A loop over whole chunks, and the rest behind it; `emit` is given the number of a chunk, and its size."""
    full, rest = divmod(count, chunk)
    if full:
        with b.loop(0, full, name=name) as loop:
            emit(loop.index, chunk)
    if rest:
        emit(const_int(I64, full), rest)


def deinterleave(b: TensorBuilder, registers: list[Value], pitch: int, columns: int) -> Iterator[Value]:
    """The columns of a few rows in registers: `pitch` elements from row to row, as many rows as a register has lanes.

    a, 3 elements apart, registers of 4                   what each register holds of each column, in place

        a0 b0 c0 a1 | b1 c1 a2 b2 | c2 a3 b3 c3           a  0 - - 1 | - - 2 - | - 3 - -      merged: 0 3 2 1
                                                          b  - 0 - - | 1 - - 2 | - - 3 -      merged: 1 0 3 2
                                                          c  - - 0 - | - 1 - - | 2 - - 3      merged: 2 1 0 3

    As the pitch is odd, no two elements of a column have the same place in their registers: merging all registers,
    each under a mask, gives all of a column, and one permutation its order.
    """
    type_ = registers[0].type
    assert isinstance(type_, VectorType)
    lanes = type_.count
    places = [[divmod(column + row * pitch, lanes) for row in range(lanes)] for column in range(columns)]
    found: list[Value] = []
    for column in places:
        register_of = {lane: register for register, lane in column}
        merged = registers[0]
        for number, register in enumerate(registers[1:], 1):
            mask = [lanes + lane if register_of[lane] == number else lane for lane in range(lanes)]
            merged = b.shuffle(merged, register, mask, "merged")
        found.append(merged)
    for column, merged in zip(places, found, strict=True):
        yield b.shuffle(merged, None, [lane for _, lane in column], "column")


def every_second(b: TensorBuilder, line: Value, other: Value, apart: int) -> Value:
    """Every second element of two registers whose memory begins `apart` elements apart, as one register.

    apart = 8    0 1 2 3 4 5 6 7   8 9 10 ... 15      even places of both
    apart = 7    12 13 14 ... 19   19 20 21 ... 26    even ones, then odd ones
    """
    type_ = line.type
    assert isinstance(type_, VectorType)
    lanes = type_.count
    places = [2 * i if 2 * i < lanes else 2 * i + lanes - apart for i in range(lanes)]
    return b.shuffle(line, other, places, "picked")
