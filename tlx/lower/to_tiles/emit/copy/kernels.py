"""The kernels of copies, and of shuffles of lines.

A 2-D copy goes in tiles; a large one uses non-temporal stores.

A transposing copy reads a few lines of its source's rows at a time, as memory is fetched, and goes on with the rows
below: some rows of tiles of the destination are written together,

    1 5 9             1 to 4: neighbouring lines in each of the source's rows
    2 6 10
    3 7 11
    4 8 12

With non-temporal stores all rows of tiles are, since what is written need not stay near until its neighbours come.

Measured on one core of an Emerald Rapids, 2026-11-22, in GB/s, by 1, 4, 8, and 16 tiles: 1024 x 1024 floats 12.5, 19,
20 and 18 (a straight copy 23), 1536 x 1536 6.6, 7.5, 15 and 17 (a straight copy 17). 4096 x 4096: 4 with ordinary
stores, 17.5 with non-temporal ones (a straight copy 19).

Neighbouring columns of a few elements, an odd number of elements apart, are deinterleaved: whole registers are merged
and permuted. Measured on one core of a Xeon with AMX, 2026-11-22, in the second-level cache: 16384 x 9 bfloats take 11
us so, 25 as a transpose.

Of rows with stride 2, whole lines are loaded, and one shuffle picks from two of them. The last register overlaps the
one before, and its lines end with the last element: nothing behind it is read. Measured on one thread of a Xeon with
AMX-FP16, 2026-11-22: 7168 rows of 28 floats, 112 apart, take 0.11 ms so, 0.47 element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.module import Module, nontemporal_metadata
from tlx.ir.types import I64, Type, bits_of, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.memory.views import is_deinterleaved
from tlx.lower.to_tiles.emit.copy.tiles import TileCopy, deinterleave, every_second
from tlx.lower.to_tiles.emit.kernel import elements_to_boundary, new_kernel, tile
from tlx.lower.to_tiles.problem.problems import Copy, LineShuffle
from tlx.lower.to_tiles.select.elementwise import ColumnSpan, aligned_spans, plain_spans, store_alignment, tile_runs
from tlx.lower.to_tiles.select.recipe import EqualTiles, padded_tiles
from tlx.target.target import Target

_ROW_VECTORS: Final = 4
_WORD: Final = 32
_GROUPS: Final = (2, 4)
"""Rows of narrow elements that are interleaved, as those of a group are for dot products."""


def copy_kernel(module: Module, copy: Copy, target: Target) -> Function:
    """Add the kernel for a copy to the module: a function of pointers to the destination and the source.

    Destination and source are seen in the destination's memory order: `outer` x `inner`, inner with stride 1.
    """
    element = copy.source.element
    function = new_kernel(module, target, copy.kernel_name, [("to", element, ""), ("from", element, "")])
    b = TensorBuilder(module, function)
    pointers = function.arguments[0].value, function.arguments[1].value
    if _has_stride_two(copy):
        _emit_stride_two(b, copy, pointers, target)
    else:
        _emit_tiles(b, copy, pointers, target)
    b.ret()
    return function


def _emit_tiles(b: TensorBuilder, copy: Copy, pointers: tuple[Value, Value], target: Target) -> None:
    """Emit a copy tile by tile, with what can be deinterleaved before it."""
    element, to, source = copy.source.element, copy.destination, copy.source
    lanes = max(1, target.vector_bytes * 8 // max(8, bits_of(element)))
    outer, inner = (to.rows, to.cols) if to.is_row_major else (to.cols, to.rows)
    to_stride = to.row_stride if to.is_row_major else to.col_stride
    across, along = source.row_stride, source.col_stride
    strides = (across, along) if to.is_row_major else (along, across)
    overlaps = strides == (1, 1) and outer > inner  # rows of the source do: it is a matrix of long columns, too
    straight = inner == 1 or (strides[1] == 1 and not overlaps)
    height, width = (1, lanes * _ROW_VECTORS) if straight else (min(lanes, 16), min(lanes, 16))
    boundary = store_alignment(copy, target)
    if not straight and (boundary != width or to_stride % boundary):
        boundary = 0  # only some of a tile's rows would be whole lines
    if straight and boundary and to_stride == strides[0] == inner:
        outer, inner, strides = 1, outer * inner, (0, 1)
    spans = aligned_spans(inner, width, 1, boundary) if boundary else plain_spans(inner, width, 1)
    masked = bits_of(element) < _WORD and bits_of(element) in target.masked_bits
    narrow = masked and not straight and not boundary
    interleaved = narrow and to_stride == inner in _GROUPS
    if interleaved:
        height = max(1, lanes // inner)
    if not boundary and _can_deinterleave(strides, (outer, inner), element, target):
        done = _emit_deinterleaved(b, copy, pointers, (outer, inner), (to_stride, strides[1]), target)
        rest = padded_tiles(inner - done, width, 1)
        spans = [ColumnSpan(EqualTiles(done + r.start, r.count, r.size, r.padding)) for r in rest]
    tiles = _Tiles(b, copy, pointers, to_stride, strides, boundary, straight, interleaved)
    for rows in padded_tiles(outer, height, _whole(outer % height) if narrow else 1):
        if straight:
            tiles.emit_rows(rows, spans)
        else:
            tiles.emit_columns(rows, spans)
    if boundary:
        b.fence()


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
        boundary: Elements that non-temporal stores are aligned to; 0 where there are none.
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

    def emit_rows(self, rows: EqualTiles, spans: list[ColumnSpan]) -> None:
        """Row by row."""
        b = self.b
        for span in spans:
            with b.loop(0, rows.count, name="i") as i:
                row = rows.start_of(self.b, i.index)
                start = self._start(span, row)
                with b.loop(0, span.columns.count, name="j") as j:
                    self._tile(rows, row, span, b.add(b.mul(j.index, span.columns.size), start))

    def emit_columns(self, rows: EqualTiles, spans: list[ColumnSpan]) -> None:
        """Column by column of a few rows of tiles."""
        b = self.b
        for run in tile_runs(rows, past_caches=self.boundary > 0):
            with b.loop(0, run.count, name="r") as r:
                first = run.start_of(b, r.index)
                for span in spans:
                    start = self._start(span, const_int(I64, 0))
                    with b.loop(0, span.columns.count, name="j") as j:
                        column = b.add(b.mul(j.index, span.columns.size), start)
                        with b.loop(0, run.size, name="i") as i:
                            self._tile(rows, rows.start_of(self.b, b.add(first, i.index)), span, column)

    def _start(self, span: ColumnSpan, row: Value) -> Value:
        """The first column of a row's tiles."""
        if not span.past_caches:
            return const_int(I64, span.columns.start)
        b, element = self.b, self.copy.source.element
        first = b.gep(element, self.pointers[0], b.mul(row, self.to_stride))
        return elements_to_boundary(b, first, bytes_of(element), self.boundary)

    def _tile(self, rows: EqualTiles, row: Value, span: ColumnSpan, column: Value) -> None:
        """One tile."""
        b, element = self.b, self.copy.source.element
        mark = nontemporal_metadata(b.module) if span.past_caches else ""
        source = b.gep(element, self.pointers[1], b.add(b.mul(row, self.strides[0]), b.mul(column, self.strides[1])))
        height, width, missing = rows.size, span.columns.size, rows.padding
        by_rows = self.straight or width == 1
        if self.interleaved:
            copy, pitch = TileCopy(b, element, max(1, self.strides[1]), True, element), 0
            token = copy.load(source, (width, height), (0, missing), group=width, kept=(0, missing * width))
        else:
            copy = TileCopy(b, element, max(1, self.strides[0 if by_rows else 1]), by_rows, element)
            pitch = max(1, self.to_stride)
            token = copy.load(source, (height, width), (missing, 0), kept=(missing, 0))
        to = b.gep(element, self.pointers[0], b.add(b.mul(row, self.to_stride), column))
        copy.store(token, to, pitch, mark)


def _can_deinterleave(strides: tuple[int, int], extents: tuple[int, int], element: Type, target: Target) -> bool:
    """Whether rows of a destination are neighbouring columns of the source, few elements apart, and it pays."""
    (across, along), (rows, length), bits = strides, extents, bits_of(element)
    fits = across == 1 and is_deinterleaved(along, rows) and length >= target.vector_bytes * 8 // bits
    return fits and target.can_permute(bits) and bits in target.masked_bits


def _emit_deinterleaved(
    b: TensorBuilder,
    copy: Copy,
    pointers: tuple[Value, Value],
    extents: tuple[int, int],
    pitches: tuple[int, int],
    target: Target,
) -> int:
    """Deinterleave whole registers of each row of the destination; gives how many elements of a row are done.

    Args:
        b: Where to emit.
        copy: What is copied.
        pointers: The destination, the source.
        extents: Rows of the destination, and elements of a row.
        pitches: Elements from row to row of the destination, and from element to element in the source.
        target: The machine.
    """
    element, (rows, length), (to_pitch, pitch) = copy.source.element, extents, pitches
    lanes = target.vector_bytes * 8 // bits_of(element)
    behind = (lanes - 1) * pitch + rows
    with b.loop(0, length // lanes, name="c") as loop:
        start = b.mul(loop.index, lanes)
        source, to = b.gep(element, pointers[1], b.mul(start, pitch)), b.gep(element, pointers[0], start)
        registers: list[Value] = []
        for first in range(0, behind, lanes):
            type_ = tile(element, 1, lanes, (0, max(0, first + lanes - behind)))
            token = b.tensor_load(b.gep(element, source, first), type_, (0, lanes), "x")
            registers.append(b.tovector(token, type_, "x.line"))
        for row, line in enumerate(deinterleave(b, registers, pitch, rows)):
            token = b.typeinfo(line, tile(element, 1, lanes), "column")
            b.tensor_store(b.gep(element, to, row * to_pitch), token, (0, lanes))
    return length // lanes * lanes


def _has_stride_two(copy: Copy) -> bool:
    """Whether a copy is one of every second element of a row."""
    source, to = copy.source, copy.destination
    is_row = to.cols == 1 < to.rows and to.row_stride == 1 and source.row_stride == 2
    return is_row and bits_of(source.element) >= 8


def _emit_stride_two(b: TensorBuilder, copy: Copy, pointers: tuple[Value, Value], target: Target) -> None:
    """Emit the copy of every second element of a row, a register at a time."""
    element, count = copy.source.element, copy.destination.rows
    lanes = min(target.vector_bytes * 8 // bits_of(element), 1 << count.bit_length() - 1)
    type_ = tile(element, 1, lanes)

    def register(first: Value, apart: int) -> None:
        """Copy a register's worth from an element on; its two lines begin so many elements apart."""
        start = b.gep(element, pointers[1], b.mul(first, 2))
        tokens = (b.tensor_load(b.gep(element, start, place), type_, (0, lanes), "x") for place in (0, apart))
        line, other = (b.tovector(token, type_, "x.line") for token in tokens)
        picked = b.typeinfo(every_second(b, line, other, apart), type_, "picked")
        b.tensor_store(b.gep(element, pointers[0], first), picked, (0, lanes))

    whole = (count - 1) // lanes
    if whole:
        with b.loop(0, whole, name="i") as loop:
            register(b.mul(loop.index, lanes), lanes)
    register(const_int(I64, count - lanes), lanes - 1)


def shuffle_kernel(module: Module, shuffle: LineShuffle, target: Target) -> Function:
    """Add the kernel for a shuffle to the module: a function of pointers to the destination and to each line."""
    element = shuffle.destination.element
    lines = [(f"x{number}", element, "") for number in range(len(shuffle.lines))]
    function = new_kernel(module, target, shuffle.kernel_name, [("to", element, ""), *lines])
    b = TensorBuilder(module, function)
    to, *sources = (argument.value for argument in function.arguments)
    values: list[Value] = []
    for source, type_ in zip(sources, shuffle.lines, strict=True):
        values.append(b.tovector(b.tensor_load(source, type_, None, "x"), type_, "x.line"))
    for first, other, mask in shuffle.steps:
        values.append(b.shuffle(values[first], values[other] if other >= 0 else None, mask, "line"))
    b.tensor_store(to, b.typeinfo(values[-1], shuffle.destination, "line"))
    b.ret()
    return function
