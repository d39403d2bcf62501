"""The kernel of a 2-D copy, straight or transposing, in tiles; a large one is written past the caches.

A transposing one reads its source's rows some lines at a time, which is how memory is fetched, and goes on with the
rows below: some rows of tiles of the destination are written at a time,

    1 5 9             1 to 4: lines beside each other in each of the source's rows
    2 6 10
    3 7 11
    4 8 12

Past the caches all rows of tiles are, as what is written need not stay there until its neighbours come.

Measured on one core of an Emerald Rapids, 2026-11-22, in GB/s, by 1, 4, 8, and 16 tiles: 1024 x 1024 floats 12.5, 19,
20 and 18 (a copy 23), 1536 x 1536 6.6, 7.5, 15 and 17 (a copy 17). 4096 x 4096: 4 before, 17.5 past the caches (a copy
19).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.metadata import nontemporal
from tlx.ir.module import Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, VectorType, bits_of, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.combed import Comb
from tlx.lower.to_tiles.every_second import EverySecond
from tlx.lower.to_tiles.problem import Copy
from tlx.lower.to_tiles.stream import Span, aligned_spans, boundary_of, plain_spans, runs, to_boundary
from tlx.lower.to_tiles.tiles import new_kernel
from tlx.target import Target
from tlx.types import TensorType

_ROW_VECTORS: Final = 4
_WORD: Final = 32
_FEW: Final = (2, 4)
"""Rows of narrow elements that are interleaved, as those of a group are for dot products."""


def copy_kernel(module: Module, copy: Copy, target: Target) -> Function:
    """Add the kernel for a copy to the module: a function of pointers to the destination and the source.

    Destination and source are seen in the destination's memory order: `outer` x `inner`, inner with stride 1.
    """
    element = copy.source.element
    function = new_kernel(module, target, copy.kernel_name, [("to", element, ""), ("from", element, "")])
    b = TensorBuilder(module, function)
    lanes = max(1, target.vector_bytes * 8 // max(8, bits_of(element)))
    to, source = copy.destination, copy.source
    outer, inner = (to.rows, to.cols) if to.is_row_major else (to.cols, to.rows)
    to_stride = to.row_stride if to.is_row_major else to.col_stride
    across, along = source.row_stride, source.col_stride
    strides = (across, along) if to.is_row_major else (along, across)
    overlaps = strides == (1, 1) and outer > inner  # rows of the source do: it is a matrix of long columns, too
    straight = inner == 1 or (strides[1] == 1 and not overlaps)
    height, width = (1, lanes * _ROW_VECTORS) if straight else (min(lanes, 16), min(lanes, 16))
    pointers = function.arguments[0].value, function.arguments[1].value
    picked = EverySecond.of(b, copy, target)
    if picked is not None:
        picked.emit(pointers[1], pointers[0])
        b.ret()
        return function
    boundary = boundary_of(copy, target)
    if not straight and (boundary != width or to_stride % boundary):
        boundary = 0  # only some of a tile's rows would be whole lines
    if straight and boundary and to_stride == strides[0] == inner:
        outer, inner, strides = 1, outer * inner, (0, 1)
    spans = aligned_spans(inner, width, 1, boundary) if boundary else plain_spans(inner, width, 1)
    masked = bits_of(element) < _WORD and bits_of(element) in target.masked_bits
    narrow = masked and not straight and not boundary
    interleaved = narrow and to_stride == inner in _FEW
    if interleaved:
        height = max(1, lanes // inner)
    comb = None if boundary else Comb.of(b, copy, target)
    if comb is not None:
        spans = [Span(columns) for columns in _combed(comb, inner, pointers, width)]
    tiles = _Tiles(b, copy, pointers, to_stride, strides, boundary, straight, interleaved)
    for rows in padded(outer, height, _whole(outer % height) if narrow else 1):
        if straight:
            tiles.emit_rows(rows, spans)
        else:
            tiles.emit_columns(rows, spans)
    if boundary:
        b.fence()
    b.ret()
    return function


def _combed(comb: Comb, inner: int, pointers: tuple[Value, Value], width: int) -> list[Range]:
    """Comb whole registers of columns of `inner` elements; gives the tiles of what is left."""
    b, element, count = comb.b, comb.copy.source.element, inner // comb.lanes
    with b.loop(0, count, name="c") as loop:
        start = b.mul(loop.index, comb.lanes)
        comb.emit(b.gep(element, pointers[1], b.mul(start, comb.pitch)), b.gep(element, pointers[0], start))
    done = count * comb.lanes
    return [Range(done + r.start, r.count, r.size, r.padding) for r in padded(inner - done, width, 1)]


def _whole(count: int) -> int:
    """The power of two that holds so many elements: LLVM loads and stores odd numbers of narrow ones one by one."""
    return 1 << max(0, count - 1).bit_length()


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Emits the loops over tiles of one size.

    Attributes:
        b: Where.
        copy: What is copied.
        pointers: The destination, the source.
        to_stride: Elements from row to row of the destination.
        strides: Elements from row to row of the source, and from column to column.
        boundary: Elements that stores past the caches are aligned to; 0 where there are none.
        straight: Whether rows are copied as they lie in the source, not its columns.
        interleaved: Whether a few rows of the source are, to lines of the destination that lie next to each other.
    """

    b: TensorBuilder
    copy: Copy
    pointers: tuple[Value, Value]
    to_stride: int
    strides: tuple[int, int]
    boundary: int
    straight: bool
    interleaved: bool

    def emit_rows(self, rows: Range, spans: list[Span]) -> None:
        """Row by row."""
        b = self.b
        for span in spans:
            with b.loop(0, rows.count, name="i") as i:
                row = rows.begin(self.b, i.index)
                start = self._start(span, row)
                with b.loop(0, span.columns.count, name="j") as j:
                    self._emit(rows, row, span, b.add(b.mul(j.index, span.columns.size), start))

    def emit_columns(self, rows: Range, spans: list[Span]) -> None:
        """Column by column of a few rows of tiles."""
        b = self.b
        for run in runs(rows, past_caches=self.boundary > 0):
            with b.loop(0, run.count, name="r") as r:
                first = run.begin(b, r.index)
                for span in spans:
                    start = self._start(span, const_int(I64, 0))
                    with b.loop(0, span.columns.count, name="j") as j:
                        column = b.add(b.mul(j.index, span.columns.size), start)
                        with b.loop(0, run.size, name="i") as i:
                            self._emit(rows, rows.begin(self.b, b.add(first, i.index)), span, column)

    def _start(self, span: Span, row: Value) -> Value:
        """The first column of a row's tiles."""
        if not span.past_caches:
            return const_int(I64, span.columns.start)
        b, element = self.b, self.copy.source.element
        first = b.gep(element, self.pointers[0], b.mul(row, self.to_stride))
        return to_boundary(b, first, bytes_of(element), self.boundary)

    def _emit(self, rows: Range, row: Value, span: Span, column: Value) -> None:
        mark = nontemporal(self.b.module) if span.past_caches else ""
        self._tile(row, column, (rows.size, span.columns.size), rows.padding, mark)

    def _tile(self, row: Value, column: Value, size: tuple[int, int], missing: int, mark: str) -> None:
        """One tile; the last `missing` of its rows, if any, are not there."""
        b, element = self.b, self.copy.source.element
        at = b.add(b.mul(row, self.strides[0]), b.mul(column, self.strides[1]))
        vector = self._loaded(b.gep(element, self.pointers[1], at), size, missing)
        place = b.gep(element, self.pointers[0], b.add(b.mul(row, self.to_stride), column))
        type_, pitch = TensorType(element, size, (0, 1), (missing, 0)), max(self.to_stride, 1)
        if self.interleaved:
            pitch = size[0] * size[1]
            type_ = TensorType(element, (1, pitch), (0, 1), (0, missing * size[1]))
        b.tensor_store(place, b.typeinfo(vector, type_, "rows"), (0, pitch), metadata=mark)

    def _loaded(self, address: Value, size: tuple[int, int], missing: int) -> Value:
        """A tile of the source as a row-major flattened vector."""
        b, element = self.b, self.copy.source.element
        if self.straight or size[1] == 1:
            type_ = TensorType(element, size, (0, 1), (missing, 0))
            return b.tovector(b.tensor_load(address, type_, (0, max(self.strides[0], 1)), "x"), type_, "x.rows")
        if self.interleaved:
            type_ = TensorType(element, (size[1], size[0]), (0, 1), (0, missing))
            token = b.tensor_load(address, type_, (0, self.strides[1]), "x")
            return b.reshape_block(token, (0,), (size[1],), VectorType(size[0] * size[1], element), "x.lines")
        type_ = TensorType(element, (size[1], size[0]), (1, 0), (0, missing))
        token = b.tensor_load(address, type_, (0, self.strides[1]), "x")
        return b.transpose(token, (0, 1), VectorType(size[0] * size[1], element), "x.rows")
