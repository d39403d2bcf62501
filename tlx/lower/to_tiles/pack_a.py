"""Copying a row tile of A into a panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, VectorType, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range
from tlx.lower.to_tiles.memory import LINE
from tlx.lower.to_tiles.packing import Packing
from tlx.lower.to_tiles.tiles import column_tile, tile
from tlx.types import TensorType

_AT_ONCE: Final = 8
"""Registers of A that are read before the first of them is stored."""


@dataclass(frozen=True, slots=True)
class RowTileOfA:
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
    packing: Packing
    source: Value
    panel: Value
    rows: Range
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
