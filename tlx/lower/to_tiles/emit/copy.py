"""The kernels of copies: straight, transposing, deinterleaving, stride-2; and of shuffles of lines.

The kernel of a 2-D copy, straight or transposing, in tiles; a large one is written past the caches.

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

Copies of columns an odd number of elements apart, next to each other: whole registers are merged, not transposed.

a, in memory, 3 elements apart, registers of 4        what each register holds of each column, in place

    a0 b0 c0 a1 | b1 c1 a2 b2 | c2 a3 b3 c3           a  0 - - 1 | - - 2 - | - 3 - -      merged: 0 3 2 1
                                                      b  - 0 - - | 1 - - 2 | - - 3 -      merged: 1 0 3 2
                                                      c  - - 0 - | - 1 - - | 2 - - 3      merged: 2 1 0 3

As the distance is odd, no two elements of a column have the same place in their registers: merging as many registers as
there are columns, each under a mask, gives all of a column, and one permutation its order.

Measured on one core of a Xeon with AMX, 2026-11-22, in the second cache: 16384 x 9 bfloats 25 -> 11 us.

Copies of every second element of a row: whole lines are loaded, and one shuffle picks from two of them.

14 elements, registers of 8        lines                                        picked

    0, 2, 4, 6, ... 14             0 1 2 3 4 5 6 7      8 9 10 ... 15           even places of both
    12, 14, 16, ... 26             12 13 14 ... 19      19 20 21 ... 26         even ones, then odd ones

The last register overlaps the one before, and its lines end with the last element: nothing behind it is read.

Measured on one thread of a Xeon with AMX-FP16, 2026-11-22: 7168 rows of 28 floats, 112 apart, 0.47 -> 0.11 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.metadata import nontemporal_metadata
from tlx.ir.module import Module
from tlx.ir.types import I64, VectorType, bits_of, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.memory.views import is_deinterleaved
from tlx.lower.to_tiles.emit.kernel import elements_to_boundary, new_kernel, tile
from tlx.lower.to_tiles.problem.problems import Copy, LineShuffle
from tlx.lower.to_tiles.select.elementwise import ColumnSpan, aligned_spans, plain_spans, store_alignment, tile_runs
from tlx.lower.to_tiles.select.recipe import EqualTiles, padded_tiles
from tlx.target.target import Target

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
    picked = StrideTwoCopy.of(b, copy, target)
    if picked is not None:
        picked.emit(pointers[1], pointers[0])
        b.ret()
        return function
    boundary = store_alignment(copy, target)
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
    comb = None if boundary else Deinterleave.of(b, copy, target)
    if comb is not None:
        spans = [ColumnSpan(columns) for columns in _deinterleaved(comb, inner, pointers, width)]
    tiles = _Tiles(b, copy, pointers, to_stride, strides, boundary, straight, interleaved)
    for rows in padded_tiles(outer, height, _whole(outer % height) if narrow else 1):
        if straight:
            tiles.emit_rows(rows, spans)
        else:
            tiles.emit_columns(rows, spans)
    if boundary:
        b.fence()
    b.ret()
    return function


def _deinterleaved(comb: Deinterleave, inner: int, pointers: tuple[Value, Value], width: int) -> list[EqualTiles]:
    """Comb whole registers of columns of `inner` elements; gives the tiles of what is left."""
    b, element, count = comb.b, comb.copy.source.element, inner // comb.lanes
    with b.loop(0, count, name="c") as loop:
        start = b.mul(loop.index, comb.lanes)
        comb.emit(b.gep(element, pointers[1], b.mul(start, comb.pitch)), b.gep(element, pointers[0], start))
    done = count * comb.lanes
    return [EqualTiles(done + r.start, r.count, r.size, r.padding) for r in padded_tiles(inner - done, width, 1)]


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

    def emit_rows(self, rows: EqualTiles, spans: list[ColumnSpan]) -> None:
        """Row by row."""
        b = self.b
        for span in spans:
            with b.loop(0, rows.count, name="i") as i:
                row = rows.begin(self.b, i.index)
                start = self._start(span, row)
                with b.loop(0, span.columns.count, name="j") as j:
                    self._emit(rows, row, span, b.add(b.mul(j.index, span.columns.size), start))

    def emit_columns(self, rows: EqualTiles, spans: list[ColumnSpan]) -> None:
        """Column by column of a few rows of tiles."""
        b = self.b
        for run in tile_runs(rows, past_caches=self.boundary > 0):
            with b.loop(0, run.count, name="r") as r:
                first = run.begin(b, r.index)
                for span in spans:
                    start = self._start(span, const_int(I64, 0))
                    with b.loop(0, span.columns.count, name="j") as j:
                        column = b.add(b.mul(j.index, span.columns.size), start)
                        with b.loop(0, run.size, name="i") as i:
                            self._emit(rows, rows.begin(self.b, b.add(first, i.index)), span, column)

    def _start(self, span: ColumnSpan, row: Value) -> Value:
        """The first column of a row's tiles."""
        if not span.past_caches:
            return const_int(I64, span.columns.start)
        b, element = self.b, self.copy.source.element
        first = b.gep(element, self.pointers[0], b.mul(row, self.to_stride))
        return elements_to_boundary(b, first, bytes_of(element), self.boundary)

    def _emit(self, rows: EqualTiles, row: Value, span: ColumnSpan, column: Value) -> None:
        mark = nontemporal_metadata(self.b.module) if span.past_caches else ""
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


@dataclass(frozen=True, slots=True)
class Deinterleave:
    """The copy of a part of some columns.

    Attributes:
        b: Where it is emitted.
        copy: What is copied.
        pitch: Elements from one of a column to the next.
        columns: How many there are.
        to_pitch: Elements from a column to the next one in the copy.
        lanes: Elements of a register.
    """

    b: TensorBuilder
    copy: Copy
    pitch: int
    columns: int
    to_pitch: int
    lanes: int

    @classmethod
    def of(cls, b: TensorBuilder, copy: Copy, target: Target) -> Deinterleave | None:
        """How a copy is combed; None where that is not possible, or does not pay."""
        source, to = copy.source, copy.destination
        turned = (source.row_stride, source.col_stride, to.row_stride, to.col_stride)
        along, across, to_pitch, to_along = turned if to.is_row_major else (turned[1], turned[0], turned[3], turned[2])
        columns, length = (to.rows, to.cols) if to.is_row_major else (to.cols, to.rows)
        bits = bits_of(source.element)
        lanes = target.vector_bytes * 8 // bits
        fits = along == to_along == 1 and is_deinterleaved(across, columns)
        if not fits or length < lanes or not target.can_permute(bits) or bits not in target.masked_bits:
            return None
        return cls(b, copy, across, columns, to_pitch, lanes)

    def emit(self, source: Value, to: Value) -> None:
        """Copy a register of each column.

        Args:
            source: The first element of the first column.
            to: Where it goes.
        """
        b, element, lanes = self.b, self.copy.source.element, self.lanes
        behind = (lanes - 1) * self.pitch + self.columns
        registers: list[Value] = []
        for start in range(0, behind, lanes):
            type_ = tile(element, 1, lanes, (0, max(0, start + lanes - behind)))
            token = b.tensor_load(b.gep(element, source, start), type_, (0, lanes), "x")
            registers.append(b.tovector(token, type_, "x.line"))
        for column, merged in enumerate(self._merged(registers)):
            order = [(column + i * self.pitch) % lanes for i in range(lanes)]
            token = b.typeinfo(b.shuffle(merged, None, order, "column"), tile(element, 1, lanes), "column")
            b.tensor_store(b.gep(element, to, column * self.to_pitch), token, (0, lanes))

    def _merged(self, registers: list[Value]) -> list[Value]:
        """For each column all of its elements, in place: one mask after the other, as few of them fit registers."""
        lanes, pitch = self.lanes, self.pitch
        columns = list[Value]()
        for column in range(self.columns):
            of_lane = [0] * lanes
            for i in range(lanes):
                register, lane = divmod(column + i * pitch, lanes)
                of_lane[lane] = register
            merged = registers[0]
            for number, register in enumerate(registers[1:], 1):
                mask = [lanes + lane if of_lane[lane] == number else lane for lane in range(lanes)]
                merged = self.b.shuffle(merged, register, mask, "merged")
            columns.append(merged)
        return columns


_STEP: Final = 2


@dataclass(frozen=True, slots=True)
class StrideTwoCopy:
    """The copy of a row.

    Attributes:
        b: Where it is emitted.
        copy: What is copied.
        count: Elements of the row.
        lanes: Elements of a register.
    """

    b: TensorBuilder
    copy: Copy
    count: int
    lanes: int

    @classmethod
    def of(cls, b: TensorBuilder, copy: Copy, target: Target) -> StrideTwoCopy | None:
        """How elements of a copy are picked; None where it is not one of every second element."""
        source, to = copy.source, copy.destination
        is_row = to.cols == 1 < to.rows and to.row_stride == 1 and source.row_stride == _STEP
        bits = bits_of(source.element)
        if not is_row or bits < 8:
            return None
        lanes = target.vector_bytes * 8 // bits
        return cls(b, copy, to.rows, min(lanes, 1 << to.rows.bit_length() - 1))

    def emit(self, source: Value, to: Value) -> None:
        """Copy the row.

        Args:
            source: Its first element.
            to: Where that goes.
        """
        b = self.b
        whole = (self.count - 1) // self.lanes
        if whole:
            with b.loop(0, whole, name="i") as loop:
                self._register(source, to, b.mul(loop.index, self.lanes), self.lanes)
        self._register(source, to, const_int(I64, self.count - self.lanes), self.lanes - 1)

    def _register(self, source: Value, to: Value, first: Value, apart: int) -> None:
        """Copy a register's worth from an element on; its two lines begin so many elements apart."""
        b, element, lanes = self.b, self.copy.source.element, self.lanes
        type_ = tile(element, 1, lanes)
        start = b.gep(element, source, b.mul(first, _STEP))
        tokens = (b.tensor_load(b.gep(element, start, place), type_, (0, lanes), "x") for place in (0, apart))
        line, other = (b.tovector(token, type_, "x.line") for token in tokens)
        behind = lanes - apart
        places = [i * _STEP if i * _STEP < lanes else i * _STEP + behind for i in range(lanes)]
        picked = b.typeinfo(b.shuffle(line, other, places, "picked"), type_, "picked")
        b.tensor_store(b.gep(element, to, first), picked, (0, lanes))


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
