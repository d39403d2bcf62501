"""The copy engine: tiles of a matrix copied to another layout and element type; the kernels of copies and shuffles.

A tile of 4 x 2, read from memory by rows or by columns, is written in one of two orders:

    by rows                      in groups of two rows, interleaved (VNNI)
    00 01 | 10 11 | 20 21 ...    00 10 01 11 | 20 30 21 31

A 2-D copy is tiled; a large one uses non-temporal stores. A transposing copy reads a few whole cache lines of a row of
its source before it goes on to the next row, so it writes several rows of tiles of the destination together:

    1 5 9             1 to 4: neighbouring lines in each of the source's rows
    2 6 10
    3 7 11
    4 8 12

With non-temporal stores it writes all rows of tiles together, as written lines need not stay cached.

Measured on one core of an Emerald Rapids, 2026-11-22, in GB/s, by 1, 4, 8, and 16 tiles: 1024 x 1024 floats 12.5, 19,
20 and 18 (a straight copy 23), 1536 x 1536 6.6, 7.5, 15 and 17 (a straight copy 17). 4096 x 4096: 4 with ordinary
stores, 17.5 with non-temporal ones (a straight copy 19).

A few adjacent columns with an odd row stride are deinterleaved: whole registers are merged and permuted. Measured on
one core of a Xeon with AMX, 2026-11-22, in L2: 16384 x 9 bfloats take 11 us, 25 us as a transpose.

A row with stride 2 is copied by one shuffle of two whole registers. The last register overlaps the one before and ends
with the last element, so nothing beyond it is read. Measured on one thread of a Xeon with AMX-FP16, 2026-11-22: 7168
rows of 28 floats, 112 apart, take 0.11 ms, 0.47 ms element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.module import Module, nontemporal_metadata
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import BFLOAT, FLOAT, I64, Type, VectorType, bits_of, bytes_of, next_power_of_two
from tlx.ir.values import Local, Value, const_int, zero
from tlx.lower.memory.allocation import CACHE_LINE
from tlx.lower.memory.views import is_deinterleaved
from tlx.lower.to_tiles.emit.kernel import loop_over_blocks, new_kernel
from tlx.lower.to_tiles.emit.tiles import SWAPPED_AXES, column_tile, elements_to_boundary, tile
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Copy, LineShuffle
from tlx.lower.to_tiles.select.elementwise import ColumnSpan, aligned_spans, plain_spans, store_alignment, tiles_per_run
from tlx.lower.to_tiles.select.recipe import EqualTiles, padded_tiles
from tlx.target.target import Target

Extents = tuple[int, int]
"""Rows and columns."""
NOTHING: Final[Extents] = (0, 0)


@dataclass(frozen=True, slots=True)
class TileCopy:
    """Copies tiles of a matrix.

    Attributes:
        b: Where to emit.
        element: Elements of the matrix.
        pitch: Elements from a row to the next, or from a column to the next; 0 if they are contiguous.
        by_rows: Whether rows are contiguous; else columns are.
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
        """Copies tiles of a view; a group of interleaved rows is copied as one row."""
        if view.interleave > 1:
            return cls(b, view.element, max(1, view.interleave * view.row_stride), True, to_element, convert, name)
        pitch = view.row_stride if view.is_row_major else view.col_stride
        return cls(b, view.element, max(1, pitch), view.is_row_major, to_element, convert, name)

    def load(
        self, address: Value, size: Extents, missing: Extents = NOTHING, *, group: int = 1, unwritten: Extents = NOTHING
    ) -> Local:
        """A token for the copy of a tile: its rows, or groups of interleaved rows.

        Rewrite:
            load <rows, cols>, by rows or by columns  ->  reshape.block by the group
            load <rows, cols>                         ->  tovector
            load <rows, cols> by columns              ->  transpose
            load <2, cols> bfloat, one after another  ->  reshape.permute, for halves of words that become floats

        Args:
            address: The first element.
            size: Rows and columns.
            missing: How many of the last rows and columns are not read but zero.
            group: Number of rows that are interleaved.
            unwritten: How many of the last rows and columns of the copy are not written.
        """
        b, name, flat = self.b, self.name, VectorType(size[0] * size[1], self.element)
        if missing == NOTHING and group == 1 and self._are_halves_of_words(size[0]):
            run = TensorType.dense(self.element, (1, 1, size[1], size[0], 1))
            vector = b.reshape_permute(
                b.tensor_load(address, run, None, name), SWAPPED_AXES, size, flat, f"{name}.rows"
            )
            return b.typeinfo(self.convert(vector), tile(self.to_element, *size, unwritten), f"{name}.packed")
        type_ = (tile if self.by_rows else column_tile)(self.element, *size, missing)
        token = b.tensor_load(address, type_, (0, self.pitch) if self.pitch else None, name)
        if group > 1:
            vector = b.reshape_block(token, (0,), (group,), flat, f"{name}.vnni")
        elif self.by_rows:
            vector = b.tovector(token, type_, f"{name}.rows")
        else:
            vector = b.transpose(token, (0, 1), flat, f"{name}.rows")
        type_ = tile(self.to_element, size[0] // group, size[1] * group, unwritten)
        return b.typeinfo(self.convert(vector), type_, f"{name}.packed")

    def _are_halves_of_words(self, rows: int) -> bool:
        """Whether columns are pairs of bfloat that become floats: by a shift and a mask, without a shuffle."""
        pairs = not self.by_rows and rows == self.pitch == 2
        return pairs and (self.element, self.to_element) == (BFLOAT, FLOAT)


def clear(b: TensorBuilder, element: Type, to: Value, count: int) -> None:
    """Write `count` zeros, a cache line at a time."""
    line = min(count, CACHE_LINE * 8 // bits_of(element))

    def write(number: Value, size: int) -> None:
        start = b.mul(number, line)
        zeros = b.typeinfo(zero(VectorType(size, element)), tile(element, 1, size), "zeros")
        b.tensor_store(b.gep(element, to, start), zeros)

    blocked_loop(b, count, line, "z", write)


def blocked_loop(b: TensorBuilder, count: int, size: int, name: str, emit: Callable[[Value, int], None]) -> None:
    """A loop over blocks of `size`, then the rest; `emit` is called with a block's number and size."""
    full, rest = divmod(count, size)
    if full:
        with b.loop(0, full, name=name) as loop:
            emit(loop.index, size)
    if rest:
        emit(const_int(I64, full), rest)


def deinterleave(b: TensorBuilder, registers: list[Value], pitch: int, columns: int) -> Iterator[Value]:
    """The columns of a matrix in registers: as many rows as a register has lanes, `pitch` elements from row to row.

    pitch 3, registers of 4                               the lanes of each register that hold each column

        a0 b0 c0 a1 | b1 c1 a2 b2 | c2 a3 b3 c3           a  0 - - 1 | - - 2 - | - 3 - -      merged: 0 3 2 1
                                                          b  - 0 - - | 1 - - 2 | - - 3 -      merged: 1 0 3 2
                                                          c  - - 0 - | - 1 - - | 2 - - 3      merged: 2 1 0 3

    As the pitch is odd, no two elements of a column are in the same lane. Merging all registers under masks collects a
    column, and one permutation puts it in order.
    """
    type_ = registers[0].type
    assert isinstance(type_, VectorType)
    lanes = type_.count
    places = [[divmod(column + row * pitch, lanes) for row in range(lanes)] for column in range(columns)]
    unordered: list[Value] = []
    for column in places:
        register_of = {lane: register for register, lane in column}
        merged = registers[0]
        for number, register in enumerate(registers[1:], 1):
            mask = [lanes + lane if register_of[lane] == number else lane for lane in range(lanes)]
            merged = b.shuffle(merged, register, mask, "merged")
        unordered.append(merged)
    for column, merged in zip(places, unordered, strict=True):
        yield b.shuffle(merged, None, [lane for _, lane in column], "column")


def take_stride_two(b: TensorBuilder, line: Value, other: Value, distance: int) -> Value:
    """The elements of stride 2 in two registers that were loaded `distance` elements apart, as one register.

    distance 8    0 1 2 3 4 5 6 7   8 9 10 ... 15      even lanes of both
    distance 7    12 13 14 ... 19   19 20 21 ... 26    even lanes, then odd ones
    """
    type_ = line.type
    assert isinstance(type_, VectorType)
    lanes = type_.count
    places = [2 * i if 2 * i < lanes else 2 * i + lanes - distance for i in range(lanes)]
    return b.shuffle(line, other, places, "stride2")


_ROW_VECTORS: Final = 4
_WORD: Final = 32
_GROUPS: Final = (2, 4)
"""Numbers of rows of narrow elements that are interleaved, as dot products read them."""


def copy_kernel(module: Module, copy: Copy, target: Target) -> Function:
    """Add the kernel for a copy to the module: a function of pointers to the destination and the source.

    Both matrices are traversed in the destination's memory order: `outer` x `inner`, inner with stride 1.
    """
    element = copy.source.element
    function = new_kernel(module, target, copy.kernel_name, [("to", element, ""), ("from", element, "")])
    b = TensorBuilder(module, function)
    pointers = function.arguments[0].value, function.arguments[1].value
    if _has_stride_two(copy):
        _emit_stride_two(b, copy, pointers, target.vector_bytes)
    else:
        _emit_tiles(b, copy, pointers, target)
    b.ret()
    return function


def _emit_tiles(b: TensorBuilder, copy: Copy, pointers: tuple[Value, Value], target: Target) -> None:
    """Emit a copy tile by tile, after the part that can be deinterleaved."""
    element, to, source = copy.source.element, copy.destination, copy.source
    lanes = max(1, target.vector_bytes * 8 // max(8, bits_of(element)))
    outer, inner = (to.rows, to.cols) if to.is_row_major else (to.cols, to.rows)
    to_stride = to.row_stride if to.is_row_major else to.col_stride
    across, along = source.row_stride, source.col_stride
    strides = (across, along) if to.is_row_major else (along, across)
    overlaps = strides == (1, 1) and outer > inner  # the source's rows overlap; its columns are longer
    straight = inner == 1 or (strides[1] == 1 and not overlaps)
    height, width = (1, lanes * _ROW_VECTORS) if straight else (min(lanes, 16), min(lanes, 16))
    boundary = store_alignment(copy, target)
    if not straight and (boundary != width or to_stride % boundary):
        boundary = 0  # only some of a tile's rows would be whole lines
    if straight and boundary and to_stride == strides[0] == inner:
        outer, inner, strides = 1, outer * inner, (0, 1)
    spans = aligned_spans(inner, width, 1, boundary) if boundary else plain_spans(inner, width, 1)
    masked = bits_of(element) < _WORD and bits_of(element) in target.instructions.masked_bits
    narrow = masked and not straight and not boundary
    interleaved = narrow and to_stride == inner in _GROUPS
    if interleaved:
        height = max(1, lanes // inner)
    if not boundary and _can_deinterleave(strides, (outer, inner), element, target):
        done = _emit_deinterleaved(b, copy, pointers, (outer, inner), (to_stride, strides[1]), target.vector_bytes)
        rest = padded_tiles(inner - done, width, 1)
        spans = [ColumnSpan(EqualTiles(done + r.start, r.count, r.size, r.padding)) for r in rest]
    tiles = _Tiles(b, copy, pointers, to_stride, strides, boundary, straight, interleaved)
    # LLVM splits loads and stores of other numbers of narrow elements into single ones.
    for rows in padded_tiles(outer, height, next_power_of_two(outer % height) if narrow else 1):
        if straight:
            tiles.emit_rows(rows, spans)
        else:
            tiles.emit_columns(rows, spans)
    if boundary:
        b.fence()


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Emits the loops over tiles of one size.

    Attributes:
        b: The builder.
        copy: The problem.
        pointers: Addresses of the destination and the source.
        to_stride: Row stride of the destination.
        strides: Row and column stride of the source.
        boundary: Elements that non-temporal stores are aligned to; 0 for ordinary stores.
        straight: Whether rows of the source are copied to rows, not its columns.
        interleaved: Whether a few rows of the source are interleaved into contiguous rows of the destination.
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
        """Column by column, a few rows of tiles at a time."""
        b = self.b
        most = tiles_per_run(rows, nontemporal=self.boundary > 0)
        with loop_over_blocks(b, (0, rows.count), most, "r") as (first, count):
            for span in spans:
                start = self._start(span, const_int(I64, 0))
                with b.loop(0, span.columns.count, name="j") as j:
                    column = b.add(b.mul(j.index, span.columns.size), start)
                    with b.loop(0, count, name="i", nonempty=True) as i:
                        self._tile(rows, rows.start_of(b, b.add(first, i.index)), span, column)

    def _start(self, span: ColumnSpan, row: Value) -> Value:
        """The first column of a row's tiles."""
        if not span.is_nontemporal:
            return const_int(I64, span.columns.start)
        b, element = self.b, self.copy.source.element
        first = b.gep(element, self.pointers[0], b.mul(row, self.to_stride))
        return elements_to_boundary(b, first, bytes_of(element), self.boundary)

    def _tile(self, rows: EqualTiles, row: Value, span: ColumnSpan, column: Value) -> None:
        """One tile."""
        b, element = self.b, self.copy.source.element
        mark = nontemporal_metadata(b.module) if span.is_nontemporal else ""
        source = b.gep(element, self.pointers[1], b.add(b.mul(row, self.strides[0]), b.mul(column, self.strides[1])))
        height, width, missing = rows.size, span.columns.size, rows.padding
        by_rows = self.straight or width == 1
        if self.interleaved:
            copy, pitches = TileCopy(b, element, max(1, self.strides[1]), True, element), None
            token = copy.load(source, (width, height), (0, missing), group=width, unwritten=(0, missing * width))
        else:
            copy = TileCopy(b, element, max(1, self.strides[0 if by_rows else 1]), by_rows, element)
            pitches = 0, max(1, self.to_stride)
            token = copy.load(source, (height, width), (missing, 0), unwritten=(missing, 0))
        to = b.gep(element, self.pointers[0], b.add(b.mul(row, self.to_stride), column))
        b.tensor_store(to, token, pitches, metadata=mark)


def _can_deinterleave(strides: tuple[int, int], extents: tuple[int, int], element: Type, target: Target) -> bool:
    """Whether the source has a few adjacent columns with an odd pitch, and the target can permute registers."""
    (across, along), (rows, length), bits = strides, extents, bits_of(element)
    fits = across == 1 and is_deinterleaved(along, rows) and length >= target.vector_bytes * 8 // bits
    return fits and target.can_permute(bits) and bits in target.instructions.masked_bits


def _emit_deinterleaved(
    b: TensorBuilder,
    copy: Copy,
    pointers: tuple[Value, Value],
    extents: tuple[int, int],
    pitches: tuple[int, int],
    vector_bytes: int,
) -> int:
    """Deinterleave whole registers of each row of the destination; returns how many elements of a row are done.

    Args:
        b: The builder.
        copy: The problem.
        pointers: Addresses of the destination and the source.
        extents: Rows and columns of the destination.
        pitches: Row stride of the destination, element stride of the source.
        vector_bytes: Bytes of a vector register.
    """
    element, (rows, length), (to_pitch, pitch) = copy.source.element, extents, pitches
    lanes = vector_bytes * 8 // bits_of(element)
    extent = (lanes - 1) * pitch + rows
    with b.loop(0, length // lanes, name="c") as loop:
        start = b.mul(loop.index, lanes)
        source, to = b.gep(element, pointers[1], b.mul(start, pitch)), b.gep(element, pointers[0], start)
        registers: list[Value] = []
        for first in range(0, extent, lanes):
            type_ = tile(element, 1, lanes, (0, max(0, first + lanes - extent)))
            token = b.tensor_load(b.gep(element, source, first), type_, (0, lanes), "x")
            registers.append(b.tovector(token, type_, "x.line"))
        for row, line in enumerate(deinterleave(b, registers, pitch, rows)):
            token = b.typeinfo(line, tile(element, 1, lanes), "column")
            b.tensor_store(b.gep(element, to, row * to_pitch), token, (0, lanes))
    return length // lanes * lanes


def _has_stride_two(copy: Copy) -> bool:
    """Whether the source is a row with stride 2."""
    source, to = copy.source, copy.destination
    is_row = to.cols == 1 < to.rows and to.row_stride == 1 and source.row_stride == 2
    return is_row and bits_of(source.element) >= 8


def _emit_stride_two(b: TensorBuilder, copy: Copy, pointers: tuple[Value, Value], vector_bytes: int) -> None:
    """Emit the copy of a row with stride 2, a register at a time."""
    element, count = copy.source.element, copy.destination.rows
    lanes = min(vector_bytes * 8 // bits_of(element), 1 << count.bit_length() - 1)
    type_ = tile(element, 1, lanes)

    def register(first: Value, distance: int) -> None:
        """Copy a register of elements from `first` on; its two sources are loaded `distance` elements apart."""
        start = b.gep(element, pointers[1], b.mul(first, 2))
        tokens = (b.tensor_load(b.gep(element, start, place), type_, (0, lanes), "x") for place in (0, distance))
        line, other = (b.tovector(token, type_, "x.line") for token in tokens)
        even = b.typeinfo(take_stride_two(b, line, other, distance), type_, "stride2")
        b.tensor_store(b.gep(element, pointers[0], first), even, (0, lanes))

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
