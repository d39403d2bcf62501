"""Panels: the layout that operands are packed into, packing, and corrections for flipped signs.

Vector kernels. B (row-major, K x N), width 2         panel of nr = 4 columns, [K/2][nr][2]

    b00 b01 b02 b03 ...                                   b00 b10 b01 b11 b02 b12 b03 b13
    b10 b11 b12 b13 ...                                   b20 b30 b21 b31 ...
    b20 ...

A (M x K) becomes rows of K rounded up to the step of the inner loop, or columns of a row tile's height.

Matrix units. Each step of K is one block: its tiles are contiguous, row after row.

A, 2 tiles high, bytes of one step of K          B, 2 tiles wide, bfloat: pairs of rows interleaved (VNNI)

    a00 a01 .. a0,31    tile 0, row 0                b00 b10 b01 b11 .. b0,15 b1,15      tile 0, row 0
    ...                                              ...
    a15,0 ..            tile 0, row 15               b30,0 b31,0 ..                      tile 0, row 15
    a16,0 ..            tile 1, row 0                b0,16 b1,16 ..                      tile 1, row 0
    ...                                              ...

Units that multiply groups along K have A in the order of B, with rows in place of columns:

    a00 a01 a10 a11 .. a15,0 a15,1      tile 0, pairs of positions of K

Padding rows, columns and positions of K are zero.

Dot products of bytes whose sign bit is flipped are off by a multiple of a sum of the other operand, which is computed
while that operand is packed:

    A xored with 128, sums of B's columns     (A + 128) @ B = A @ B + 128 * colsum(B)
    B xored with 128, sums of A's rows        A @ (B - 128) = A @ B - 128 * rowsum(A)

B may also be packed as a whole, by a separate kernel: `PackedPanels` has the layout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I8, I64, Type, VectorType, bytes_of
from tlx.ir.values import Value, const_int, const_ints, zero
from tlx.lower.memory.allocation import CACHE_LINE
from tlx.lower.to_tiles.emit.copy import TileCopy, blocked_loop, clear
from tlx.lower.to_tiles.emit.gemm.function import SumTerms
from tlx.lower.to_tiles.emit.kernel import arguments_and_tile_range, new_kernel
from tlx.lower.to_tiles.emit.tiles import convert_tile, flip_sign_bit, tile
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.recipe import PAIR, EqualTiles, Recipe, column_ranges, padded_tiles, round_up
from tlx.target.instructions.dots import Sign
from tlx.target.target import Target

_REGISTERS_AT_ONCE: Final = 8
"""Registers of A that are loaded before the first of them is stored."""
_ROWS_AT_ONCE: Final = 4
"""Rows of tiles that are copied together unchanged."""
_LINES_AT_ONCE: Final = 8
"""Rows of B, across all tiles of a step, that are interleaved together."""


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """How an operand is packed.

    Attributes:
        view: The operand in memory.
        element: Element type of the panels.
        sign: How narrow integers are widened.
        width: VNNI factor.
        step: The inner loop's step along K; panels are zero up to a multiple of it.
        flip: Whether bytes are xored with 0x80.
        lanes: Elements that are transposed together.
        by_columns: Whether panels of A are [k][rows], the order of a column-major A, instead of rows.
        tile: Rows of A, or columns of B, of a matrix unit's tile; 0 for vector kernels.
    """

    view: MatrixView
    element: Type
    sign: Sign
    width: int
    step: int
    flip: bool
    lanes: int
    by_columns: bool = False
    tile: int = 0

    @classmethod
    def of_a(cls, gemm: Gemm, recipe: Recipe) -> PanelLayout:
        """How a product packs A."""
        mma, lanes = recipe.mma, recipe.tile.lanes
        by_columns = mma.unit == "fma" and not gemm.a.is_row_major
        step = PAIR if recipe.tile.paired_columns else recipe.tile.kstep
        flip = mma.correction == "columns"
        if recipe.packing.a_in_groups:
            width, unit = mma.width, recipe.tile.unit_rows
            return cls(gemm.a.transposed, mma.operand_a, gemm.lhs_sign, width, step, flip, lanes, tile=unit)
        return cls(gemm.a, mma.operand_a, gemm.lhs_sign, 1, step, flip, lanes, by_columns, recipe.tile.unit_rows)

    @classmethod
    def of_b(cls, gemm: Gemm, recipe: Recipe) -> PanelLayout:
        """How a product packs B."""
        mma, lanes = recipe.mma, recipe.tile.lanes
        unit, flip = lanes if mma.unit == "matrix" else 0, mma.correction == "rows"
        step = recipe.tile.kstep
        return cls(gemm.b, mma.operand_b, gemm.rhs_sign, mma.width, step, flip, lanes, tile=unit)

    def depth(self, k: int) -> int:
        """Positions of K in a panel of `k` positions of the operand."""
        return round_up(k, self.step)

    def is_run(self, k: int) -> bool:
        """Whether rows of `k` elements are contiguous, both in memory and in panels of A."""
        return self.view.is_row_major and not self.by_columns and self.view.row_stride == k == self.depth(k)

    def finish(self, b: TensorBuilder, vector: Value) -> Value:
        """Convert and flip a tile's elements."""
        vector = convert_tile(b, vector, self.element, self.sign)
        return flip_sign_bit(b, vector) if self.flip else vector


@dataclass(frozen=True, slots=True)
class PanelPacker:
    """Emits the packing of one operand.

    Attributes:
        b: Where to emit.
        layout: The operand and its panels.
    """

    b: TensorBuilder
    layout: PanelLayout

    def pack_a(self, source: Value, panel: Value, rows: EqualTiles, k: int) -> None:
        """Pack `k` columns of a row tile of A, from the address of the first one to the panel."""
        stride = self.layout.view.col_stride
        self._blocks(source, panel, (stride, rows.size), k, lambda at, to, n: self.pack_block_of_a(at, to, rows, n))

    def pack_b(self, source: Value, panel: Value, columns: EqualTiles, k: int) -> None:
        """Pack `k` rows of the valid columns of B, from the address of the first one to the panel."""
        stride = self.layout.view.row_stride
        self._blocks(
            source, panel, (stride, columns.size), k, lambda at, to, n: self.pack_block_of_b(at, to, columns, n)
        )

    def _blocks(
        self, source: Value, panel: Value, strides: tuple[int, int], k: int, pack: Callable[[Value, Value, int], None]
    ) -> None:
        """Pack K block by block: each step of a matrix unit, or all at once."""
        b, layout = self.b, self.layout

        def block(number: Value, depth: int) -> None:
            at = b.gep(layout.view.element, source, b.mul(number, layout.step * strides[0]))
            pack(at, b.gep(layout.element, panel, b.mul(number, layout.step * strides[1])), depth)

        if layout.tile:
            blocked_loop(b, k, layout.step, "kp", block)
        else:
            pack(source, panel, k)

    def _copy(self, name: str) -> TileCopy:
        layout = self.layout
        return TileCopy.of_view(self.b, layout.view, layout.element, lambda v: layout.finish(self.b, v), name)

    def _clear(self, panel: Value, start: int, count: int) -> None:
        """Write zeros to `count` elements of a panel from `start` on."""
        if count:
            clear(self.b, self.layout.element, self.b.gep(self.layout.element, panel, start), count)

    # A ---------------------------------------------------------------------------------------------------------

    def pack_block_of_a(self, source: Value, panel: Value, rows: EqualTiles, k: int) -> None:
        """Pack a block of `k` columns, in an order that depends on A's layout."""
        layout = self.layout
        if layout.by_columns:
            self._copy_columns(source, panel, rows, k)
            return
        if not layout.view.is_row_major:
            self._transpose_columns(source, panel, rows, k)
        elif layout.tile:
            self._copy_rows(source, panel, rows, k)
        else:
            self._copy_runs(source, panel, rows, k)
        depth = layout.depth(k)
        self._clear(panel, rows.valid * depth, rows.padding * depth)

    def _copy_rows(self, source: Value, panel: Value, rows: EqualTiles, k: int) -> None:
        """Copy a few rows at a time, each padded with zeros."""
        b, layout, copy, depth = self.b, self.layout, self._copy("a"), self.layout.depth(k)

        def copy_rows(number: Value, count: int) -> None:
            row = b.mul(number, _ROWS_AT_ONCE)
            at = b.gep(layout.view.element, source, b.mul(row, layout.view.row_stride))
            token = copy.load(at, (count, depth), (0, depth - k))
            b.tensor_store(b.gep(layout.element, panel, b.mul(row, depth)), token)

        blocked_loop(b, rows.valid, _ROWS_AT_ONCE, "r", copy_rows)

    def _copy_runs(self, source: Value, panel: Value, rows: EqualTiles, k: int) -> None:
        """Copy row by row, or all at once where rows are contiguous."""
        b, layout = self.b, self.layout
        at_once = rows.valid if layout.is_run(k) else 1
        with b.loop(0, rows.valid // at_once, name="r") as loop:
            here = b.gep(layout.view.element, source, b.mul(loop.index, layout.view.row_stride))
            there = b.gep(layout.element, panel, b.mul(loop.index, layout.depth(k)))
            self._copy_run(here, there, k * at_once)

    def _copy_run(self, source: Value, panel: Value, count: int) -> None:
        """Copy contiguous elements, followed by zeros up to a multiple of the inner loop's step.

        Several registers at a time, then single ones, of which the last overlaps: 55 elements by 16 are 0..47, 39..54.
        """
        b, layout, view = self.b, self.layout, self.layout.view
        size = layout.depth(count)
        widest = max(bytes_of(view.element), bytes_of(layout.element))
        register = min(CACHE_LINE // widest, layout.lanes * layout.step)
        run = TileCopy(b, view.element, 0, True, layout.element, lambda v: layout.finish(b, v), "a")

        def copy(start: Value, extents: tuple[int, int], missing: int = 0) -> None:
            token = run.load(b.gep(view.element, source, start), extents, (0, missing))
            b.tensor_store(b.gep(layout.element, panel, start), token)

        full = count // register
        if full >= _REGISTERS_AT_ONCE:
            with b.loop(0, full // _REGISTERS_AT_ONCE, name="k") as loop:
                copy(b.mul(loop.index, _REGISTERS_AT_ONCE * register), (_REGISTERS_AT_ONCE, register))
        if full % _REGISTERS_AT_ONCE:
            done = full // _REGISTERS_AT_ONCE * _REGISTERS_AT_ONCE * register
            copy(const_int(I64, done), (full % _REGISTERS_AT_ONCE, register))
        if full * register < count == size > register:
            copy(const_int(I64, count - register), (1, register))
        elif full * register < count:
            copy(const_int(I64, full * register), (1, size - full * register), size - count)
        else:
            self._clear(panel, count, size - count)

    def _copy_columns(self, source: Value, panel: Value, rows: EqualTiles, k: int) -> None:
        """Copy the columns of a column-major A one after the other, to a column-major panel."""
        b, layout, view = self.b, self.layout, self.layout.view
        column = TileCopy(b, view.element, 0, True, layout.element, lambda v: layout.finish(b, v), "a")
        with b.loop(0, k, name="k") as loop:
            at = b.gep(view.element, source, b.mul(loop.index, view.col_stride))
            token = column.load(at, (1, rows.size), (0, rows.padding))
            b.tensor_store(b.gep(layout.element, panel, b.mul(loop.index, rows.size)), token)

    def _transpose_columns(self, source: Value, panel: Value, rows: EqualTiles, k: int) -> None:
        """Transpose each tile of a column-major A, with zeros up to the inner loop's step."""
        b, layout, depth = self.b, self.layout, self.layout.depth(k)
        for tiles in padded_tiles(rows.valid, layout.tile or rows.valid, 1):
            for first in range(tiles.start, tiles.start + tiles.count * tiles.size, tiles.size):
                here, there = b.gep(layout.view.element, source, first), b.gep(layout.element, panel, first * depth)
                self._transpose_rows(here, there, tiles.size, k)

    def _transpose_rows(self, source: Value, panel: Value, count: int, k: int) -> None:
        """Transpose `k` columns of `count` rows, transpose columns at a time."""
        b, layout, copy, depth = self.b, self.layout, self._copy("a"), self.layout.depth(k)
        width = layout.step if layout.tile else layout.lanes

        def transpose(number: Value, columns: int) -> None:
            column = b.mul(number, width)
            size = width if columns == width else depth - k // width * width
            at = b.gep(layout.view.element, source, b.mul(column, layout.view.col_stride))
            token = copy.load(at, (count, size), (0, size - columns))
            b.tensor_store(b.gep(layout.element, panel, column), token, (0, depth))

        blocked_loop(b, k, width, "k", transpose)
        if k % width == 0 and depth > k:
            with b.loop(0, count, name="r") as loop:
                clear(b, layout.element, b.gep(layout.element, panel, b.add(b.mul(loop.index, depth), k)), depth - k)

    # B ---------------------------------------------------------------------------------------------------------

    def pack_block_of_b(self, source: Value, panel: Value, columns: EqualTiles, k: int, depth: int = 0) -> None:
        """Pack a block of `k` rows, tile by tile, in the order of B's layout.

        Args:
            source: Address of the first row in memory.
            panel: That of its place in the panel.
            columns: The panel's columns.
            k: Rows of B.
            depth: Rows of a tile, of which these are a part; 0: the rows, and padding up to the inner loop's step.
        """
        layout, view = self.layout, self.layout.view
        if layout.width == 1 and not layout.tile and not view.is_row_major and view.interleave == 1:
            self._transpose_strips(source, panel, columns, k)
            return
        written = k if depth else layout.depth(k)
        depth = depth or written
        width = layout.tile or columns.size
        tiles = {start: max(0, start + width - columns.valid) for start in range(0, columns.size, width)}
        present = {start: missing for start, missing in tiles.items() if missing < width}
        if view.is_row_major:
            self._interleave_rows(source, panel, present, width, (k, depth))
        else:
            for start, missing in present.items():
                self._pack_tile(source, panel, start, (width, missing), k)
        for start, missing in tiles.items():
            done = round_up(k, layout.width) if missing < width else 0
            self._clear(panel, start * depth + done * width, (written - done) * width)

    def _interleave_rows(
        self, source: Value, panel: Value, tiles: dict[int, int], width: int, rows: tuple[int, int]
    ) -> None:
        """Interleave a few rows of all tiles before the next rows, so that each cache line of B is read once.

        `rows` are those of B, and those of a tile.
        """
        b, layout, copy = self.b, self.layout, self._copy("b")
        k, depth = rows
        height = layout.width * (max(1, _LINES_AT_ONCE // len(tiles)) if layout.tile else 1)

        def interleave(number: Value, count: int) -> None:
            row, size = b.mul(number, height), round_up(count, layout.width)
            for start, missing in tiles.items():
                at = b.gep(layout.view.element, source, start)
                at = b.gep(layout.view.element, at, b.mul(row, layout.view.row_stride))
                token = copy.load(at, (size, width), (size - count, missing), group=layout.width)
                to = b.gep(layout.element, b.gep(layout.element, panel, start * depth), b.mul(row, width))
                b.tensor_store(to, token)

        blocked_loop(b, k, height, "r" if layout.tile else "k", interleave)

    def _pack_tile(self, source: Value, panel: Value, start: int, columns: tuple[int, int], k: int) -> None:
        """Pack a tile of a column-major or interleaved B, from its column `start` on.

        `columns` are the tile's width, and how many of its last columns are missing.
        """
        b, layout, view, copy = self.b, self.layout, self.layout.view, self._copy("b")
        source = b.gep(view.element, source, start * view.col_stride)
        panel = b.gep(layout.element, panel, start * layout.depth(k))
        width, missing = columns
        if view.interleave > 1:
            height = layout.width * (_ROWS_AT_ONCE if layout.tile else 1)
        else:
            height = layout.step if layout.tile else max(layout.width, layout.lanes)

        def pack_rows(number: Value, count: int) -> None:
            row, size = b.mul(number, height), round_up(count, layout.width)
            at = b.gep(view.element, source, b.mul(row, view.row_stride))
            extents = size // layout.width, width * layout.width
            if view.interleave > 1:
                token = copy.load(at, extents, (0, missing * layout.width))
            else:
                token = copy.load(at, (size, width), (size - count, missing), group=layout.width)
            b.tensor_store(b.gep(layout.element, panel, b.mul(row, width)), token)

        blocked_loop(b, k, height, "r" if layout.tile else "k", pack_rows)

    def _transpose_strips(self, source: Value, panel: Value, columns: EqualTiles, k: int) -> None:
        """Pack a column-major B over all of K, as many columns at a time as are transposed together.

        The hardware prefetcher can follow that many columns, and their tiles fit the registers.
        """
        b, layout, lanes = self.b, self.layout, self.layout.lanes
        for strips in padded_tiles(columns.valid, lanes, lanes):
            with b.loop(0, strips.count, name="c") as loop:
                column = strips.start_of(b, loop.index)
                here = b.gep(layout.view.element, source, b.mul(column, layout.view.col_stride))
                self._transpose_strip(here, b.gep(layout.element, panel, column), strips.padding, columns.size, k)

    def _transpose_strip(self, source: Value, panel: Value, missing: int, pitch: int, k: int) -> None:
        """Transpose `k` rows of as many columns as a register has lanes; the last `missing` columns become zero."""
        b, layout, copy, lanes = self.b, self.layout, self._copy("b"), self.layout.lanes

        def transpose(number: Value, count: int) -> None:
            row = b.mul(number, lanes)
            at = b.gep(layout.view.element, source, b.mul(row, layout.view.row_stride))
            token = copy.load(at, (count, lanes), (0, missing))
            b.tensor_store(b.gep(layout.element, panel, b.mul(row, pitch)), token, (0, pitch))

        blocked_loop(b, k, lanes, "k", transpose)


def load_vnni(
    b: TensorBuilder,
    element: Type,
    address: Value,
    shape: tuple[int, int, int],
    *,
    columns: int = 0,
    mark: str = "",
) -> Value:
    """A token of a K x N matrix whose rows are interleaved in memory.

    Rewrite:
        load <k/width, n, width>  ->  reshape.permute <0, 2, 1> to <k, n>  ->  typeinfo

    Args:
        b: Where to emit.
        element: Its elements.
        address: Address of the first one.
        shape: K, N, and how many rows are interleaved.
        columns: Columns of the matrix in memory; 0 for N.
        mark: Metadata of the load.
    """
    k, n, width = shape
    type_ = TensorType.dense(element, (k // width, n, width))
    packed = b.tensor_load(address, type_, (0, columns, width) if columns else None, "b.vnni", mark)
    flat = b.reshape_permute(packed, (0, 2, 1), (k, n), VectorType(k * n, element), "b.flat")
    return b.typeinfo(flat, tile(element, k, n), "b")


def column_sums(b: TensorBuilder, panel: Value, out: Value, size: int, depth: int, recipe: Recipe) -> None:
    """The correction for the flipped bytes of A: a sum for each of `size` columns of a panel of B of `depth` rows.

    out[n] = -128 * sum_k panel[k][n]      A + 128 (u8) by s8: the dot product of 128 (u8) with B, negated
    out[n] =  128 * sum_k panel[k][n]      A - 128 (s8) by u8: the dot product of -128 (s8) with B, negated

    Rows are summed a group at a time or, on a matrix unit, a step at a time in all tiles.
    """
    mma, on_tiles = recipe.mma, recipe.mma.unit == "matrix"
    width, rows = (recipe.tile.lanes, recipe.tile.kstep) if on_tiles else (size, mma.width)
    none, acc_type = zero(VectorType(width, mma.accumulator)), tile(mma.accumulator, 1, width)
    starts = range(0, size, width)
    with b.loop(0, depth // rows, carry=[none for _ in starts], name="k") as loop:
        sums: list[Value] = []
        for start, carried in zip(starts, loop.carried, strict=True):
            acc = b.typeinfo(carried, acc_type, "sum")
            ones = b.typeinfo(const_ints(I8, [-128] * rows), tile(I8, 1, rows), "x128")
            first = b.gep(I8, panel, start * rows) if start else panel
            block = load_vnni(b, I8, b.gep(I8, first, b.mul(loop.index, size * rows)), (rows, width, mma.width))
            sums.append(b.mma(mma.name, acc, ones, block, acc_type))
        loop.next(*sums)
    for start, total in zip(starts, loop.results, strict=True):
        to = b.gep(mma.accumulator, out, start) if start else out
        b.tensor_store(to, b.typeinfo(b.binary("sub", none, total), acc_type, "colsum"))


def row_sums(b: TensorBuilder, panel: Value, out: Value, shape: tuple[int, int, int], recipe: Recipe) -> None:
    """The correction for the flipped bytes of B: a sum for each row of a panel of A of `shape` terms x rows x depth.

    out[m] =  128 * sum_sk panel[s][m][k]      u8 by B - 128: the dot product of A with 64, doubled
    out[m] = -128 * sum_sk panel[s][m][k]      s8 by B + 128: the dot product of A with 128 (u8), negated
    """
    width, lanes, accumulator = recipe.mma.width, recipe.tile.lanes, recipe.mma.accumulator
    type_ = VectorType(lanes, accumulator)
    factor = 64 if recipe.mma.name == "usmma" else -128
    acc_type = tile(accumulator, 1, lanes)
    terms, rows, depth = shape
    with b.loop(0, rows, name="r") as row:
        with b.loop(0, terms, carry=[zero(type_)], name="s") as term:
            start = b.mul(b.add(b.mul(term.index, rows), row.index), depth)
            with b.loop(0, depth // width, carry=[term.carried[0]], name="k") as loop:
                acc = b.typeinfo(loop.carried[0], acc_type, "sum")
                address = b.gep(I8, panel, b.add(start, b.mul(loop.index, width)))
                bytes_ = b.tensor_load(address, tile(I8, 1, width), None, "a")
                factors = b.typeinfo(const_ints(I8, [factor] * width * lanes), tile(I8, width, lanes), "factor")
                loop.next(b.mma(recipe.mma.name, acc, bytes_, factors, acc_type))
            term.next(loop.results[0])
        total = term.results[0]
        correction = (
            b.binary("add", total, total) if recipe.mma.name == "usmma" else b.binary("sub", zero(type_), total)
        )
        one = b.typeinfo(correction, tile(accumulator, 1, lanes, (0, lanes - 1)), "rowsum")
        b.tensor_store(b.gep(accumulator, out, row.index), one)


# All of B ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PackedPanels:
    """The packed form of B as a whole: its panels one after the other, then the sums of its columns.

    Attributes:
        packing: How B is packed.
        depth: Positions of K in a panel, over all products of the sum.
        width: Columns of all panels.
        ranges: The panels, in ranges; they may overlap in B, but never in the packed form.
    """

    packing: PanelLayout
    depth: int
    width: int
    ranges: tuple[EqualTiles, ...]

    @classmethod
    def of(cls, gemm: Gemm, recipe: Recipe) -> PackedPanels:
        """The panels of a product."""
        packing = PanelLayout.of_b(gemm, recipe)
        ranges = column_ranges(gemm, recipe)
        width = sum(columns.count * columns.size for columns in ranges)
        return cls(packing, packing.depth(gemm.k) * len(gemm.term_offsets), width, tuple(ranges))

    def place(self, b: Builder, columns: EqualTiles, column: Value) -> Value:
        """Number of packed columns before the panel that begins at `column` of B."""
        before = sum(other.count * other.size for other in self.ranges[: self.ranges.index(columns)])
        return b.add(column, before - columns.start)

    @property
    def sums_at(self) -> int:
        """Bytes from the first panel to the sums of columns."""
        return -(-self.depth * self.width * bytes_of(self.packing.element) // CACHE_LINE) * CACHE_LINE

    def size(self, recipe: Recipe) -> int:
        """Bytes of the packed form."""
        sums = self.width * bytes_of(recipe.mma.accumulator) if recipe.mma.correction == "columns" else 0
        return self.sums_at + sums


def packing_kernel(
    module: Module, gemm: Gemm, recipe: Recipe, target: Target, *, parts: bool = False, at: int = 0
) -> Function:
    """Add the kernel that packs B to the module: a function of pointers to the panels and to B.

    With `parts`, the bounds of a tile range follow, as for any kernel; those of rows are ignored. The panels begin `at`
    bytes after the first pointer.
    """
    parameters = [("panels", recipe.mma.operand_b, "noalias"), ("b", gemm.b.element, "")]
    function = new_kernel(module, target, f"{gemm.kernel_name}.pack", parameters, parts=parts)
    b = TensorBuilder(module, function)
    (panels, source), share = arguments_and_tile_range(function)
    if at:
        panels = b.retype(b.gep(I8, panels, at), recipe.mma.operand_b)
    form, terms = PackedPanels.of(gemm, recipe), SumTerms(b, gemm.term_offsets)
    corrected = recipe.mma.correction == "columns"
    sums = b.retype(b.gep(I8, panels, form.sums_at), recipe.mma.accumulator) if corrected else None
    packer = PanelPacker(b, form.packing)
    for columns in form.ranges:
        with b.loop(*share.columns.of(b, form.ranges, columns), name="jp") as loop:
            column = columns.start_of(b, loop.index)
            place = form.place(b, columns, column)
            panel = b.gep(recipe.mma.operand_b, panels, b.mul(place, form.depth))
            first = b.gep(gemm.b.element, source, b.mul(column, gemm.b.col_stride))
            with terms.loop() as term:
                there = b.gep(recipe.mma.operand_b, panel, b.mul(term.index, form.depth // terms.count * columns.size))
                here = b.gep(gemm.b.element, first, terms.offset(1, term.index))
                packer.pack_b(here, there, columns, gemm.k)
            if sums is not None:
                out = b.gep(recipe.mma.accumulator, sums, place)
                column_sums(b, panel, out, columns.size, form.depth, recipe)
    b.ret()
    return function


def copying_kernel(module: Module, gemm: Gemm, recipe: Recipe, target: Target, *, at: int = 0) -> Function:
    """Add a kernel that copies B as it is, for a version that does not pack it: a function as of `packing_kernel`."""
    parameters = [("panels", recipe.mma.operand_b, "noalias"), ("b", gemm.b.element, "")]
    function = new_kernel(module, target, f"{gemm.kernel_name}.copy", parameters)
    b = TensorBuilder(module, function)
    panels, source = (argument.value for argument in function.arguments)
    start, extent = b_range(gemm)
    b.memcpy(b.gep(I8, panels, at), b.gep(I8, source, -start), extent)
    b.ret()
    return function


def b_range(gemm: Gemm) -> tuple[int, int]:
    """Bytes from the first element of B, over all products of a sum, to B of the first product; and to the end.

    The end is that of the last group of interleaved rows.
    """
    view, places = gemm.b, [term[1] for term in gemm.term_offsets]
    one = (view.rows - view.interleave) * view.row_stride + (view.cols - 1) * view.col_stride + view.interleave
    size = bytes_of(view.element)
    return -size * min(places), size * (max(places) - min(places) + one)
