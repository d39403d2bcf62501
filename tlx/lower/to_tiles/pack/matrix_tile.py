"""Packing for a matrix unit: panels whose tiles lie in one piece, row behind row.

A, 2 tiles high, bytes of one step of K          B, 2 tiles wide, bfloat: pairs of rows interleaved (VNNI)

    a00 a01 .. a0,31    tile 0, row 0                b00 b10 b01 b11 .. b0,15 b1,15      tile 0, row 0
    ...                                              ...
    a15,0 ..            tile 0, row 15               b30,0 b31,0 ..                      tile 0, row 15
    a16,0 ..            tile 1, row 0                b0,16 b1,16 ..                      tile 1, row 0
    ...                                              ...

Rows and columns that are not there are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.metadata import STREAMING
from tlx.ir.types import I64, Type, VectorType
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_tiles.emit.kernel import column_tile, tile
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.recipe import EqualTiles

_ROWS_AT_ONCE: Final = 4
_LINES_AT_ONCE: Final = 8  # rows of tiles of B, of all tiles of a panel


@dataclass(frozen=True, slots=True)
class TilePacking:
    """How operands become tiles.

    Attributes:
        b: Where to emit.
        element: Element type.
        rows: Rows of a tile of A, columns of one of B.
        kstep: Positions of K in a tile: columns of A.
        width: VNNI factor: positions of K side by side in a row of B.
        passing: Whether tiles of B leave the first cache before they are read again.
    """

    b: TensorBuilder
    element: Type
    rows: int
    kstep: int
    width: int
    passing: bool = False

    @property
    def tile_size(self) -> int:
        """Elements of a tile of either."""
        return self.rows * self.kstep

    @property
    def columns(self) -> int:
        """Columns of a tile of B."""
        return self.rows

    @property
    def line(self) -> int:
        """Elements of a row of a tile of B."""
        return self.columns * self.width

    @property
    def lines(self) -> int:
        """Rows of a tile of B."""
        return self.kstep // self.width

    def pack_b_step(self, view: MatrixView, source: Value, panel: Value, columns: EqualTiles, depth: int) -> None:
        """One step of K: `depth` rows of B of `columns.data` columns, as tiles behind each other."""
        if view.is_row_major and view.group == 1:
            self._pack_b_rows(view, (source, panel), columns, depth)
            return
        for number, missing in enumerate(self._missing(columns)):
            at = self.b.gep(view.element, source, number * self.columns * view.col_stride)
            to = self.b.gep(self.element, panel, number * self.tile_size)
            if missing >= self.columns:
                self._clear_behind(to, 0)
            elif view.group > 1:
                self._copy_groups(view, at, to, missing, depth)
            else:
                self._pack_b_columns(view, at, to, missing, depth)

    def _missing(self, columns: EqualTiles) -> list[int]:
        """How many columns of each tile are not there."""
        starts = range(0, columns.size, self.columns)
        return [max(0, start + self.columns - columns.data) for start in starts]

    def _pack_b_rows(self, view: MatrixView, place: tuple[Value, Value], columns: EqualTiles, depth: int) -> None:
        """Tiles of row-major B: `width` rows at a time are interleaved, for all tiles, so that lines are read once."""
        b, (source, panel) = self.b, place
        tiles = self._missing(columns)
        some = [(number, missing) for number, missing in enumerate(tiles) if missing < self.columns]
        groups = max(1, _LINES_AT_ONCE // len(some))

        def interleave(line: Value, rows: int) -> None:
            for number, missing in some:
                at = b.gep(view.element, source, number * self.columns)
                to = b.gep(self.element, panel, number * self.tile_size)
                self._interleave(view, at, to, line, (rows, missing))

        full, rest = divmod(depth, groups * self.width)
        if full:
            with b.loop(0, full, name="r") as loop:
                interleave(b.mul(loop.index, groups), groups * self.width)
        if rest:
            interleave(const_int(I64, full * groups), rest)
        for number, missing in enumerate(tiles):
            to = b.gep(self.element, panel, number * self.tile_size)
            self._clear_behind(to, 0 if missing >= self.columns else -(-depth // self.width))

    def _interleave(self, view: MatrixView, source: Value, to: Value, row: Value, part: tuple[int, int]) -> None:
        """A few rows of a tile, of `part[0]` rows of B, `part[1]` of whose columns are not there."""
        b, line = self.b, self.line
        count = -(-part[0] // self.width)
        type_ = tile(view.element, count * self.width, self.columns, (count * self.width - part[0], part[1]))
        address = b.gep(view.element, source, b.mul(row, self.width * view.row_stride))
        token = b.tensor_load(address, type_, (0, max(view.row_stride, 1)), "b")
        vector = b.reshape_block(token, (0,), (self.width,), VectorType(count * line, self.element), "b.vnni")
        self._write(vector, b.gep(self.element, to, b.mul(row, line)), count, line)

    def _copy_groups(self, view: MatrixView, source: Value, to: Value, missing: int, depth: int) -> None:
        """A tile of B whose rows are interleaved already."""
        full, rest = divmod(depth // self.width, _ROWS_AT_ONCE)
        pitch, padding = self.width * view.row_stride, self.width * missing

        def rows(start: Value, count: int) -> None:
            type_ = tile(view.element, count, self.line, (0, padding))
            address = self.b.gep(view.element, source, self.b.mul(start, pitch))
            vector = self.b.tovector(self.b.tensor_load(address, type_, (0, pitch), "b"), type_, "b.rows")
            place = self.b.gep(self.element, to, self.b.mul(start, self.line))
            self._write(vector, place, count, self.line)

        if full:
            with self.b.loop(0, full, name="r") as loop:
                rows(self.b.mul(loop.index, _ROWS_AT_ONCE), _ROWS_AT_ONCE)
        if rest:
            rows(const_int(I64, full * _ROWS_AT_ONCE), rest)
        self._clear_behind(to, depth // self.width)

    def _pack_b_columns(self, view: MatrixView, source: Value, to: Value, missing: int, depth: int) -> None:
        """A tile of column-major B: `width` neighbours along K move as one word."""
        b = self.b
        count = -(-depth // self.width)
        type_ = column_tile(view.element, count * self.width, self.columns, (count * self.width - depth, missing))
        token = b.tensor_load(source, type_, (0, view.col_stride), "b")
        flat = VectorType(count * self.line, self.element)
        self._write(b.reshape_block(token, (0,), (self.width,), flat, "b.vnni"), to, count, self.line)
        self._clear_behind(to, count)

    def pack_a_step(self, view: MatrixView, source: Value, panel: Value, rows: EqualTiles, depth: int) -> None:
        """One step of K: `depth` columns of A of `rows.data` rows, as tiles behind each other."""
        if view.is_row_major:
            self._pack_a_rows(view, source, panel, rows, depth)
        else:
            self._pack_a_columns(view, source, panel, rows, depth)

    def _pack_a_rows(self, view: MatrixView, source: Value, panel: Value, rows: EqualTiles, depth: int) -> None:
        full, rest = divmod(rows.data, _ROWS_AT_ONCE)
        if full:
            with self.b.loop(0, full, name="r") as loop:
                self._copy_rows(view, source, panel, self.b.mul(loop.index, _ROWS_AT_ONCE), (_ROWS_AT_ONCE, depth))
        if rest:
            self._copy_rows(view, source, panel, const_int(I64, full * _ROWS_AT_ONCE), (rest, depth))
        if rows.padding:
            missing = self.b.gep(self.element, panel, rows.data * self.kstep)
            self._clear(missing, rows.padding, self.kstep)

    def _copy_rows(self, view: MatrixView, source: Value, panel: Value, row: Value, extents: tuple[int, int]) -> None:
        """Some rows of A, filled up with zeros along K."""
        b = self.b
        count, depth = extents
        type_ = tile(view.element, count, self.kstep, (0, self.kstep - depth))
        address = b.gep(view.element, source, b.mul(row, view.row_stride))
        vector = b.tovector(b.tensor_load(address, type_, (0, max(view.row_stride, 1)), "a"), type_, "a.rows")
        self._write(vector, b.gep(self.element, panel, b.mul(row, self.kstep)), count, self.kstep)

    def _pack_a_columns(self, view: MatrixView, source: Value, panel: Value, rows: EqualTiles, depth: int) -> None:
        """Tiles of column-major A are transposed."""
        b = self.b
        for start in range(0, rows.size, self.rows):
            to = b.gep(self.element, panel, start * self.kstep)
            missing = max(0, start + self.rows - rows.data)
            if missing >= self.rows:
                self._clear(to, self.rows, self.kstep)
                continue
            type_ = column_tile(view.element, self.rows, self.kstep, (missing, self.kstep - depth))
            token = b.tensor_load(b.gep(view.element, source, start), type_, (0, view.col_stride), "a")
            vector = b.transpose(token, (0, 1), VectorType(self.tile_size, self.element), "a.rows")
            self._write(vector, to, self.rows, self.kstep)

    def load_a(self, panel: Value, size: int) -> Value:
        """A token of `size` rows and one step of K of a panel of A."""
        return self.b.tensor_load(panel, tile(self.element, size, self.kstep), None, "a")

    def load_b(self, panel: Value, size: int) -> Value:
        """A token of one step of K and `size` columns of a panel of B.

        Rewrite:
            load <tiles, rows, columns, width>  ->  reshape.permute <1, 3, 0, 2> to <kstep, size>  ->  typeinfo
        """
        return self._read_tiles(panel, size, self.lines)

    def _read_tiles(self, address: Value, size: int, lines: int) -> Value:
        """A step of tiles of which each begins `lines` of its rows behind the one before."""
        b, element, line = self.b, self.element, (self.columns, self.width)
        type_ = TensorType.dense(element, (size // self.columns, self.lines, *line))
        pitches = (0, lines, *line) if lines > self.lines else None
        packed = b.tensor_load(address, type_, pitches, "b.vnni", self._mark)
        vector = VectorType(self.kstep * size, element)
        flat = b.reshape_permute(packed, (1, 3, 0, 2), (self.kstep, size), vector, "b.flat")
        return b.typeinfo(flat, tile(element, self.kstep, size), "b")

    def read_b(self, address: Value, size: int, view: MatrixView) -> Value:
        """A token of one step of K and `size` columns of interleaved rows of B where it lies.

        Rewrite:
            load <rows, size, width>  ->  reshape.permute <0, 2, 1> to <kstep, size>  ->  typeinfo
        """
        if view.in_strips:
            return self._read_tiles(address, size, view.rows // self.width)
        return self._read_lines(address, size, view.row_stride)

    def _read_lines(self, address: Value, size: int, room: int) -> Value:
        """A step of rows that are `room` columns long."""
        b, shape = self.b, (self.lines, size, self.width)
        type_ = TensorType.dense(self.element, shape)
        packed = b.tensor_load(address, type_, (0, room, self.width), "b.vnni", self._mark)
        flat = b.reshape_permute(packed, (0, 2, 1), (self.kstep, size), VectorType(self.kstep * size, self.element))
        return b.typeinfo(flat, tile(self.element, self.kstep, size), "b")

    @property
    def _mark(self) -> str:
        return STREAMING if self.passing else ""

    def _clear_behind(self, to: Value, done: int) -> None:
        """Write zeros to the rows of a tile of B from row `done` on."""
        if done < self.lines:
            behind = self.b.gep(self.element, to, done * self.line)
            self._clear(behind, self.lines - done, self.line)

    def _clear(self, to: Value, count: int, size: int) -> None:
        """Write zeros to `count` rows of `size` elements."""
        b = self.b
        with b.loop(0, count, name="z") as loop:
            row = zero(VectorType(size, self.element))
            self._write(row, b.gep(self.element, to, b.mul(loop.index, size)), 1, size)

    def _write(self, vector: Value, to: Value, rows: int, cols: int) -> None:
        self.b.tensor_store(to, self.b.typeinfo(vector, tile(self.element, rows, cols), "packed"))


def pack_panel(packing: TilePacking, view: MatrixView, place: tuple[Value, Value], columns: EqualTiles, k: int) -> None:
    """Pack `k` rows of some columns of B from one place to another."""
    b, (source, panel) = packing.b, place

    def step(number: Value, depth: int) -> None:
        at = b.gep(view.element, source, b.mul(number, packing.kstep * view.row_stride))
        to = b.gep(packing.element, panel, b.mul(number, packing.kstep * columns.size))
        packing.pack_b_step(view, at, to, columns, depth)

    k_steps(b, k, packing.kstep, step)


def k_steps(b: TensorBuilder, k: int, kstep: int, step: Callable[[Value, int], None]) -> None:
    """Whole steps of K, and one for the rest."""
    full, rest = divmod(k, kstep)
    if full:
        with b.loop(0, full, name="kp") as loop:
            step(loop.index, kstep)
    if rest:
        step(const_int(I64, full), rest)
