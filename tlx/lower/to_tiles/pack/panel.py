"""Panels of vector kernels: their layout, copying A and B into them, and corrections for flipped signs.

How an operand lies in the panels that it is copied into, and how the inner loop reads it there.

B (row-major, K x N), width 2        panel of nr = 4 columns, [K/2][nr][2]

    b00 b01 b02 b03 ...                  b00 b10 b01 b11 b02 b12 b03 b13
    b10 b11 b12 b13 ...                  b20 b30 b21 b31 ...
    b20 ...

A (M x K) becomes rows of K rounded up to the step of the inner loop; what is added is zero.

Copying a row tile of A into a panel.

Copying columns of B into a panel.

What dot products of bytes with flipped signs add too much, or too little: sums of the packed operands.

B by columns, where A is xored with 128:  (A + 128) @ B = A @ B + 128 * colsum(B)
A by rows, where B is:                    A @ (B - 128) = A @ B - 128 * rowsum(A)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I8, I64, Type, VectorType, bits_of, bytes_of
from tlx.ir.values import Value, const_int, const_ints, zero
from tlx.lower.to_tiles.emit.kernel import column_tile, convert_tile, flip_sign_bit, tile
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.caches import LINE
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, padded_tiles
from tlx.target.hardware import Sign


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
        by_columns: Whether panels of A are [k][rows], as a column-major A lies, instead of rows.
    """

    view: MatrixView
    element: Type
    sign: Sign
    width: int
    step: int
    flip: bool
    lanes: int
    by_columns: bool = False

    def depth(self, k: int) -> int:
        """Positions along K that a panel has for `k` of the operand."""
        return -(-k // self.step) * self.step

    def is_run(self, k: int) -> bool:
        """Whether rows of `k` elements have nothing between them, neither in memory nor in panels of A."""
        return self.view.is_row_major and not self.by_columns and self.view.row_stride == k == self.depth(k)

    def finish(self, b: TensorBuilder, vector: Value) -> Value:
        """Convert and flip a tile's elements."""
        vector = convert_tile(b, vector, self.element, self.sign)
        return flip_sign_bit(b, vector) if self.flip else vector

    def clear(self, b: TensorBuilder, pointer: Value, count: int) -> None:
        """Write `count` zeros to a panel, in tiles of at most a cache line."""
        chunk = min(count, LINE * 8 // bits_of(self.element))
        full, rest = divmod(count, chunk)
        with b.loop(0, full, name="z") as loop:
            self._clear_tile(b, b.gep(self.element, pointer, b.mul(loop.index, chunk)), chunk)
        if rest:
            self._clear_tile(b, b.gep(self.element, pointer, full * chunk), rest)

    def _clear_tile(self, b: TensorBuilder, pointer: Value, count: int) -> None:
        zeros = b.typeinfo(zero(VectorType(count, self.element)), tile(self.element, 1, count), "zeros")
        b.tensor_store(pointer, zeros)


def load_vnni(b: TensorBuilder, element: Type, address: Value, k: int, n: int, width: int) -> Value:
    """A token of the `k` x `n` matrix that a VNNI panel holds at `address`.

    Rewrite:
        load <k/width, n, width>  ->  reshape.permute <0, 2, 1> to <k, n>  ->  typeinfo
    """
    packed = b.tensor_load(address, TensorType.dense(element, (k // width, n, width)), None, "b.vnni")
    flat = b.reshape_permute(packed, (0, 2, 1), (k, n), VectorType(k * n, element), "b.flat")
    return b.typeinfo(flat, tile(element, k, n), "b")


_AT_ONCE: Final = 8
"""Registers of A that are read before the first of them is stored."""


@dataclass(frozen=True, slots=True)
class PackRowTileOfA:
    """Packs `k` columns of one row tile of A into rows of `packing.depth(k)` elements, or column by column.

    Attributes:
        b: Where to emit.
        packing: How.
        source: Address of the first element.
        panel: Address of the panel.
        rows: Size and padding of the row tile.
        k: Columns, at least 1.
    """

    b: TensorBuilder
    packing: PanelLayout
    source: Value
    panel: Value
    rows: EqualTiles
    k: int

    @property
    def depth(self) -> int:
        """Elements of a row of the panel."""
        return self.packing.depth(self.k)

    def pack(self) -> None:
        """All columns, in the order that suits how A lies."""
        b, packing, rows = self.b, self.packing, self.rows
        if packing.by_columns:
            self._copy_columns()
            return
        if packing.view.is_row_major:
            self._copy_rows()
        else:
            self._transpose_columns()
        if rows.padding:
            packing.clear(b, b.gep(packing.element, self.panel, rows.data * self.depth), rows.padding * self.depth)

    def _copy_rows(self) -> None:
        """Row by row, or all at once where nothing lies between them."""
        b, packing, rows = self.b, self.packing, self.rows
        at_once = rows.data if packing.is_run(self.k) else 1
        with b.loop(0, rows.data // at_once, name="r") as loop:
            here = b.gep(packing.view.element, self.source, b.mul(loop.index, packing.view.row_stride))
            there = b.gep(packing.element, self.panel, b.mul(loop.index, self.depth))
            self._copy_run(here, there, self.k * at_once)

    def _copy_run(self, source: Value, panel: Value, count: int) -> None:
        """Elements that lie side by side, and zeros up to the inner loop's step.

        Some registers at a time, then one at a time, the last one from where it ends: 55 of 16 are 0..47 and 39..54.
        """
        b, packing, view = self.b, self.packing, self.packing.view
        size = packing.depth(count)
        widest = max(bytes_of(view.element), bytes_of(packing.element))
        register = min(LINE // widest, packing.lanes * packing.step)
        full = count // register

        def copy(start: Value, type_: TensorType) -> None:
            token = b.tensor_load(b.gep(view.element, source, start), type_, None, "a")
            vector = packing.finish(b, b.tovector(token, type_, "a.run"))
            packed = b.typeinfo(vector, TensorType.dense(packing.element, type_.shape), "a.packed")
            b.tensor_store(b.gep(packing.element, panel, start), packed)

        if full >= _AT_ONCE:
            with b.loop(0, full // _AT_ONCE, name="k") as loop:
                copy(b.mul(loop.index, _AT_ONCE * register), tile(view.element, _AT_ONCE, register))
        if full % _AT_ONCE:
            done = full // _AT_ONCE * _AT_ONCE * register
            copy(const_int(I64, done), tile(view.element, full % _AT_ONCE, register))
        if full * register < count == size > register:
            copy(const_int(I64, count - register), tile(view.element, 1, register))
        elif full * register < count:
            copy(const_int(I64, full * register), tile(view.element, 1, size - full * register, (0, size - count)))
        elif count < size:
            packing.clear(b, b.gep(packing.element, panel, count), size - count)

    def _copy_columns(self) -> None:
        """A is column-major, and so is the panel: its columns, one behind the other."""
        b, packing, view, rows = self.b, self.packing, self.packing.view, self.rows
        type_ = tile(view.element, 1, rows.size, (0, rows.padding))
        with b.loop(0, self.k, name="k") as loop:
            token = b.tensor_load(self._from(loop.index), type_, None, "a")
            vector = packing.finish(b, b.tovector(token, type_, "a.column"))
            packed = b.typeinfo(vector, tile(packing.element, 1, rows.size), "a.packed")
            b.tensor_store(b.gep(packing.element, self.panel, b.mul(loop.index, rows.size)), packed)

    def _transpose_columns(self) -> None:
        """A is column-major: tiles of `rows.data` x `lanes`, and zeros up to the inner loop's step."""
        b, packing = self.b, self.packing
        full, rest = divmod(self.k, packing.lanes)
        done = full * packing.lanes
        size = self.depth - done
        if full:
            with b.loop(0, full, name="k") as loop:
                self._transpose(b.mul(loop.index, packing.lanes), packing.lanes, 0)
        if rest:
            self._transpose(const_int(I64, done), size, size - rest)
        elif size:
            with b.loop(0, self.rows.data, name="r") as loop:
                at = b.add(b.mul(loop.index, self.depth), done)
                packing.clear(b, b.gep(packing.element, self.panel, at), size)

    def _transpose(self, k: Value, size: int, padding: int) -> None:
        """Transpose `size` columns from column `k` on, of which `padding` are not there."""
        b, packing, view, rows = self.b, self.packing, self.packing.view, self.rows.data
        type_ = column_tile(view.element, rows, size, (0, padding))
        token = b.tensor_load(self._from(k), type_, (0, view.col_stride), "a")
        flat = VectorType(rows * size, view.element)
        vector = packing.finish(b, b.transpose(token, (0, 1), flat, "a.rows"))
        packed = b.typeinfo(vector, tile(packing.element, rows, size), "a.packed")
        b.tensor_store(b.gep(packing.element, self.panel, k), packed, (0, self.depth))

    def _from(self, k: Value) -> Value:
        """Where column `k` of A begins."""
        view = self.packing.view
        return self.b.gep(view.element, self.source, self.b.mul(k, view.col_stride))


@dataclass(frozen=True, slots=True)
class PackPanelOfB:
    """Packs `k` rows of `columns.data` columns of B into one panel.

    Attributes:
        b: Where to emit.
        packing: How.
        source: Address of the first element.
        panel: Address of the panel.
        columns: Size and padding of the panel.
        k: Rows, at least 1.
    """

    b: TensorBuilder
    packing: PanelLayout
    source: Value
    panel: Value
    columns: EqualTiles
    k: int

    def pack(self) -> None:
        """All rows, in the order that suits how B lies."""
        if self.packing.view.group > 1:
            self._copy_groups()
        elif self.packing.width == 1 and not self.packing.view.is_row_major:
            self._transpose_strips()
        else:
            self._pack_groups()

    def _copy_groups(self) -> None:
        """B lies interleaved as the panel has it."""
        b, packing, view = self.b, self.packing, self.packing.view
        size = self.columns.size * packing.width
        type_ = tile(view.element, 1, size, (0, self.columns.padding * packing.width))
        with b.loop(0, self.k // packing.width, name="k") as loop:
            at = b.mul(loop.index, packing.width)
            token = b.tensor_load(self._from(at), type_, None, "b")
            self._write(b.tovector(token, type_, "b.rows"), at, tile(packing.element, 1, size))

    def _transpose_strips(self) -> None:
        """B is column-major: as many columns at a time as are transposed together, from end to end.

        The machine follows so many columns by itself, and their tiles fit the registers.
        """
        b, view, lanes = self.b, self.packing.view, self.packing.lanes
        full, rest = divmod(self.k, lanes)
        for columns in padded_tiles(self.columns.data, lanes, lanes):
            with b.loop(0, columns.count, name="c") as loop:
                column = columns.begin(b, loop.index)
                here = b.gep(view.element, self.source, b.mul(column, view.col_stride))
                there = b.gep(self.packing.element, self.panel, column)
                strip = replace(self, source=here, panel=there)
                if full:
                    with b.loop(0, full, name="k") as steps:
                        strip.transpose(b.mul(steps.index, lanes), lanes, columns.padding)
                if rest:
                    strip.transpose(const_int(I64, full * lanes), rest, columns.padding)

    def transpose(self, k: Value, size: int, missing: int) -> None:
        """Transpose `size` rows of the first `lanes` columns, the last `missing` of which are not there."""
        b, packing, view, lanes = self.b, self.packing, self.packing.view, self.packing.lanes
        type_ = column_tile(view.element, size, lanes, (0, missing))
        token = b.tensor_load(self._from(k), type_, (0, view.col_stride), "b")
        vector = b.transpose(token, (0, 1), VectorType(size * lanes, view.element), "b.rows")
        self._write(vector, k, tile(packing.element, size, lanes), (0, self.columns.size))

    def _pack_groups(self) -> None:
        """Groups of as many rows as are interleaved, or transposed together, and zeros up to the inner loop's step."""
        b, packing, k = self.b, self.packing, self.k
        group = packing.width if packing.view.is_row_major else max(packing.width, packing.lanes)
        full, rest = divmod(k, group)
        size = -(-rest // packing.width) * packing.width
        if full:
            with b.loop(0, full, name="k") as loop:
                self._pack_group(b.mul(loop.index, group), group, 0)
        if rest:
            self._pack_group(const_int(I64, full * group), size, size - rest)
        missing = packing.depth(k) - full * group - size
        if missing:
            behind = b.gep(packing.element, self.panel, (full * group + size) * self.columns.size)
            packing.clear(b, behind, missing * self.columns.size)

    def _pack_group(self, k: Value, size: int, padding: int) -> None:
        """Pack `size` rows, the last `padding` of which are not there."""
        b, packing, view = self.b, self.packing, self.packing.view
        pads = (padding, self.columns.padding)
        address = self._from(k)
        if view.is_row_major:
            type_ = tile(view.element, size, self.columns.size, pads)
            token = b.tensor_load(address, type_, (0, max(view.row_stride, 1)), "b")
        else:
            type_ = column_tile(view.element, size, self.columns.size, pads)
            token = b.tensor_load(address, type_, (0, view.col_stride), "b")
        flat = VectorType(size * self.columns.size, view.element)
        if packing.width > 1:
            vector: Value = b.reshape_block(token, (0,), (packing.width,), flat, "b.vnni")
        else:
            vector = b.tovector(token, type_, "b.rows")
        self._write(vector, k, tile(packing.element, size // packing.width, self.columns.size * packing.width))

    def _from(self, k: Value) -> Value:
        """Where row `k` of B begins."""
        view = self.packing.view
        return self.b.gep(view.element, self.source, self.b.mul(k, view.row_stride))

    def _write(self, vector: Value, k: Value, type_: TensorType, pitches: tuple[int, int] | None = None) -> None:
        """Convert what was read and write it to the panel, from row `k` on."""
        b, packing = self.b, self.packing
        token = b.typeinfo(packing.finish(b, vector), type_, "b.packed")
        b.tensor_store(b.gep(packing.element, self.panel, b.mul(k, self.columns.size)), token, pitches)


def column_sums(
    b: TensorBuilder, panel: Value, out: Value, size: int, groups: int, width: int, accumulator: Type
) -> None:
    """`out[n] = -128 * sum_k panel[k][n]`, by the same dot product the kernel uses: 128 (u8) times B."""
    type_ = VectorType(size, accumulator)
    acc_type = tile(accumulator, 1, size)
    with b.loop(0, groups, carry=[zero(type_)], name="k") as loop:
        acc = b.typeinfo(loop.carried[0], acc_type, "sum")
        ones = b.typeinfo(const_ints(I8, [-128] * width), tile(I8, 1, width), "x128")
        rows = load_vnni(b, I8, b.gep(I8, panel, b.mul(loop.index, size * width)), width, size, width)
        loop.next(b.mma("usmma", acc, ones, rows, acc_type))
    negated = b.binary("sub", zero(type_), loop.results[0])
    b.tensor_store(out, b.typeinfo(negated, acc_type, "colsum"))


def row_sums(b: TensorBuilder, panel: Value, out: Value, shape: tuple[int, int, int], recipe: Recipe) -> None:
    """What B's flipped bytes add too little or too much; `shape` are the extents of the panel of A.

    out[m] =  128 * sum_sk panel[s][m][k]      u8 by B - 128: A times 64, twice
    out[m] = -128 * sum_sk panel[s][m][k]      s8 by B + 128: A times 128 (u8), taken off
    """
    width, lanes, accumulator = recipe.width, recipe.lanes, recipe.accumulator
    type_ = VectorType(lanes, accumulator)
    factor = 64 if recipe.mma == "usmma" else -128
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
                loop.next(b.mma(recipe.mma, acc, bytes_, factors, acc_type))
            term.next(loop.results[0])
        total = term.results[0]
        wanted = b.binary("add", total, total) if recipe.mma == "usmma" else b.binary("sub", zero(type_), total)
        one = b.typeinfo(wanted, tile(accumulator, 1, lanes, (0, lanes - 1)), "rowsum")
        b.tensor_store(b.gep(accumulator, out, row.index), one)
