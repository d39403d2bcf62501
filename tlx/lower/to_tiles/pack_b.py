"""Copying columns of B into a panel."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, VectorType
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.packing import Packing
from tlx.lower.to_tiles.tiles import column_tile, tile
from tlx.types import TensorType


@dataclass(frozen=True, slots=True)
class PanelOfB:
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
    packing: Packing
    source: Value
    panel: Value
    columns: Range
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
        for columns in padded(self.columns.data, lanes, lanes):
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
