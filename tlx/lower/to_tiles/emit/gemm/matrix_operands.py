"""The operands of a matrix unit's kernel: packed into panels, and loaded as tiles from these or in place."""

from __future__ import annotations

from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.module import STREAMING
from tlx.ir.types import I64, VectorType, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.copy import blocked_loop
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction
from tlx.lower.to_tiles.emit.gemm.operands import Operands
from tlx.lower.to_tiles.emit.kernel import Scratch
from tlx.lower.to_tiles.emit.tiles import tile
from tlx.lower.to_tiles.pack.panels import column_sums, load_vnni
from tlx.lower.to_tiles.select.recipe import EqualTiles, round_up
from tlx.lower.to_tiles.select.recipe_cost import packs_by_steps

_ROWS_AT_ONCE: Final = 16
"""Rows of B whose runs are packed together.

The hardware prefetcher follows reads and writes in 32 pages at most. Time of products that pack 16 rows at a time,
divided by that with 32: 64x3072x768 bfloats .88, 128x3072x768 .92, 64x2048x2048 .95, 64x768x3072 .98, 64x1000x2048 1.01
(Xeon 6/167/1, alternated calls, 2026-11-30); .91, .95, .98, .99, 1.01 (Xeon 6/207/2).
"""
_MANY_TILES: Final = 4
"""Least number of row tiles with which the products of the first tile hide too little of the packing."""


class MatrixUnitOperands(Operands):
    """The operands of a matrix unit's kernel, whose tiles are loaded from panels or in place.

    Attributes:
        term_depth: Positions of K in a product of the sum, rounded up to whole steps.
        depth: Positions of K in a panel, over all products of the sum.
        steps: Steps of K; all pairs of a sum's operands share a step.
        packs_all_of_a: Whether all of A is packed before anything is multiplied.
        packs_by_steps: Whether each step of B is packed right before it is multiplied, always into the same memory.
    """

    def __init__(self, function: GemmFunction) -> None:
        super().__init__(function)
        gemm, recipe = function.gemm, function.recipe
        self.term_depth = round_up(gemm.k, recipe.tile.kstep)
        self.depth = self.term_depth * self.terms.count
        self.steps = self.depth // gemm.products_per_operand // recipe.tile.kstep
        self.packs_all_of_a = recipe.packing.a and recipe.blocks.mc >= gemm.m
        self.packs_by_steps = packs_by_steps(gemm, recipe)
        self._mark_of_b = STREAMING if recipe.prefetch.b_bypasses_l1 else ""

    def reserve(self, scratch: Scratch) -> None:
        """Reserve memory for the panels."""
        recipe = self.recipe
        if self.packs_b:
            step = recipe.tile.kstep * recipe.tile.nr
            panels = self.packed_columns * self.depth
            self.panel_b = scratch.reserve(recipe.mma.operand_b, step if self.packs_by_steps else panels)
        if recipe.packing.a:
            height = sum(r.count * r.size for r in self.function.rows) if self.packs_all_of_a else recipe.tile.mr
            self.panel_a = scratch.reserve(recipe.mma.operand_a, self.depth * height)
        if recipe.mma.correction == "columns" and self.packs_b:
            self.sums = scratch.reserve(recipe.mma.accumulator, self.packed_columns)
        self._all_panels = self.panel_b, self.sums

    def at_a_time(self, columns: EqualTiles) -> int:
        """Panels of a range that are packed at a time: all of them if they are packed step by step."""
        return columns.count if self.packs_by_steps else super().at_a_time(columns)

    def size_of_panels(self, columns: int) -> int:
        """Elements of `columns` packed columns."""
        return self.depth * columns

    @property
    def b_misses_l1(self) -> bool:
        """Whether B is packed from rows that do not stay in L1, or that lie in different pages.

        With few row tiles, packing overlaps with the products of the first tile instead, provided that L1 holds the
        panel, the cache lines that it is packed from (twice as many bytes) and A.
        """
        view, caches = self.gemm.b, self.function.target.caches
        size = bytes_of(view.element)
        by_rows = self.recipe.packing.b and (view.is_row_major or view.interleave > 1)
        tiles = sum(rows.count for rows in self.function.rows)
        hidden = tiles < _MANY_TILES and 4 * self.depth * self.recipe.tile.nr * size <= caches.l1
        far = view.row_stride * view.interleave * size >= caches.two_set_pitch
        return by_rows and (far or (view.bytes_moved > caches.l1 and not hidden))

    # Packing ---------------------------------------------------------------------------------------------------

    def pack_block(self, columns: EqualTiles, column: Value, panels: Value) -> None:
        """Pack the panels of a block from a column on before anything is multiplied."""
        if self.b_misses_l1:
            self._pack_across(columns, column, panels)
            return
        with self.b.loop(0, panels, name="jp", nonempty=True) as j:
            self.pack_panel(columns, column, j.index)

    def pack_panel(self, columns: EqualTiles, start: Value, j: Value, condition: bool | Value = True) -> None:
        """Pack panel `j`, counted from column `start`, if a condition holds."""
        b, view = self.b, self.gemm.b
        if isinstance(condition, Value):
            with b.if_block(condition, "pack"):
                self.pack_panel(columns, start, j)
        if condition is not True:
            return
        column = b.add(start, b.mul(j, columns.size))
        source = b.gep(view.element, self.function.rhs, b.mul(column, view.col_stride))
        panel = self._panel(columns, j)

        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(1, term.index))
            there = b.gep(self.recipe.mma.operand_b, panel, b.mul(term.index, self.term_depth * columns.size))
            self.packer_b.pack_b(here, there, columns, self.gemm.k)
        self._sum_columns(columns, j)

    def _sum_columns(self, columns: EqualTiles, j: Value) -> None:
        """Sum the columns of packed panel `j`, if they correct the result."""
        if self.sums is None:
            return
        out = self.b.gep(self.recipe.mma.accumulator, self.sums.pointer, self.b.mul(j, columns.size))
        column_sums(self.b, self._panel(columns, j), out, columns.size, self.depth, self.recipe)

    def _pack_across(self, columns: EqualTiles, start: Value, panels: Value) -> None:
        """Pack all panels of a block from column `start` on, some rows at a time, to read long runs of B's rows."""
        b, view, recipe = self.b, self.gemm.b, self.recipe
        source = b.gep(view.element, self.function.rhs, b.mul(start, view.col_stride))
        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(1, term.index))
            offset = b.mul(term.index, self.term_depth * columns.size)

            def rows_of_step(k: Value, row: Value, count: int, depth: int) -> None:
                rows = b.gep(view.element, here, b.mul(b.add(b.mul(k, recipe.tile.kstep), row), view.row_stride))
                with b.loop(0, panels, name="jp", nonempty=True) as j:
                    at = b.gep(view.element, rows, b.mul(j.index, columns.size * view.col_stride))
                    to = b.gep(recipe.mma.operand_b, self._panel(columns, j.index), offset)
                    to = b.gep(recipe.mma.operand_b, to, b.mul(k, recipe.tile.kstep * columns.size))
                    to = b.gep(recipe.mma.operand_b, to, b.mul(row, self.packing_b.tile))
                    self.packer_b.pack_block_of_b(at, to, columns, count, depth)

            def step(k: Value, depth: int) -> None:
                if not view.is_row_major or depth < recipe.tile.kstep or depth % _ROWS_AT_ONCE:
                    rows_of_step(k, const_int(I64, 0), depth, 0)
                    return
                with b.loop(0, depth // _ROWS_AT_ONCE, name="rp", nonempty=True) as part:
                    rows_of_step(k, b.mul(part.index, _ROWS_AT_ONCE), _ROWS_AT_ONCE, recipe.tile.kstep)

            blocked_loop(b, self.gemm.k, recipe.tile.kstep, "kp", step)
        if self.sums is not None:
            with b.loop(0, panels, name="jp", nonempty=True) as j:
                self._sum_columns(columns, j.index)

    def pack_all_of_a(self) -> None:
        """Pack all row tiles, one after the other."""
        for rows in self.function.rows:
            with self.b.loop(*self.function.share.rows.of(self.b, self.function.rows, rows), name="ip") as i:
                self.pack_row_of_a(rows, i.index, self._panel_number(rows, i.index))

    def pack_row_of_a(self, rows: EqualTiles, i: Value, number: Value) -> None:
        """Pack row tile `i` of a range, as number `number` of the packed row tiles."""
        b, view = self.b, self.gemm.a
        row = rows.start_of(b, i)
        source = b.gep(view.element, self.function.a, b.mul(row, view.row_stride))
        panel = b.gep(self.recipe.mma.operand_a, self.panel_a.pointer, b.mul(number, self.recipe.tile.mr * self.depth))

        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(0, term.index))
            there = b.gep(self.recipe.mma.operand_a, panel, b.mul(term.index, self.term_depth * rows.size))
            pack = self.packer_a.pack_b if self.recipe.packing.a_in_groups else self.packer_a.pack_a
            pack(here, there, rows, self.gemm.k)

    def _panel_number(self, rows: EqualTiles, i: Value) -> Value:
        """How many packed row tiles precede row tile `i` of a range."""
        if not self.packs_all_of_a:
            return const_int(I64, 0)
        return i if rows is self.function.rows[0] else const_int(I64, self.function.rows[0].count)

    def term_addresses(self, block: CacheBlock, index: Value, a: Value, rhs: Value) -> tuple[Value, Value]:
        """The addresses of a term's operands, from those of the first term."""
        b, recipe, depth = self.b, self.recipe, self.term_depth
        packed = b.mul(index, depth * block.rows.size)
        a = b.gep(recipe.mma.operand_a, a, packed if recipe.packing.a else self.terms.offset(0, index))
        has_panels = recipe.packing.b and not self.packs_by_steps
        b_offset = b.mul(index, self.term_depth * block.columns.size) if has_panels else self.terms.offset(1, index)
        return a, b.gep(recipe.mma.operand_b, rhs, b_offset)

    # One register tile -----------------------------------------------------------------------------------------

    def a_address(self, block: CacheBlock, i: Value, row: Value) -> Value:
        """Address of row tile `i`, packed or not."""
        if not self.recipe.packing.a:
            return self.function.at(self.gemm.a, self.function.a, row, block.k_pass.start)
        offset = self.b.mul(self._panel_number(block.rows, i), self.recipe.tile.mr * self.depth)
        return self.b.gep(self.recipe.mma.operand_a, self.panel_a.pointer, offset)

    def b_address(self, block: CacheBlock, j: Value, column: Value) -> Value:
        """The address of panel `j` of the block, packed or not."""
        if not self.recipe.packing.b or self.packs_by_steps:
            return self.b.gep(self.gemm.b.element, self.function.rhs, self.b.mul(column, self.gemm.b.col_stride))
        if self.prepacked is None:
            return self._panel(block.columns, j)
        return self.prepacked_panel(self.prepacked, block, column)

    def _panel(self, columns: EqualTiles, j: Value) -> Value:
        return self.b.gep(self.recipe.mma.operand_b, self.panel_b.pointer, self.b.mul(j, self.depth * columns.size))

    def load_a(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The tile's rows of A at position `k`."""
        b, size = self.b, block.rows.size
        if self.recipe.packing.a_in_groups:
            return self._load_groups_of_a(b.gep(self.recipe.mma.operand_a, base, b.mul(k, size)), size)
        if self.recipe.packing.a:
            panel = b.gep(self.recipe.mma.operand_a, base, b.mul(k, size))
            return b.tensor_load(panel, tile(self.recipe.mma.operand_a, size, self.recipe.tile.kstep), None, "a")
        address = b.gep(self.recipe.mma.operand_a, base, k)
        type_ = tile(self.recipe.mma.operand_a, size, self.recipe.tile.kstep)
        return b.tensor_load(address, type_, (0, self.gemm.a.row_stride), "a")

    def _load_groups_of_a(self, address: Value, size: int) -> Value:
        """One step of K, and `size` rows, of A in adjacent tiles of groups.

        Rewrite:
            load <tiles, k/width, rows, width>  ->  reshape.permute <0, 2, 1, 3> to <m, k>  ->  typeinfo
        """
        b, mma, tile_, k = self.b, self.recipe.mma, self.recipe.tile, self.recipe.tile.kstep
        type_ = TensorType.dense(mma.operand_a, (size // tile_.unit_rows, k // mma.width, tile_.unit_rows, mma.width))
        packed = b.tensor_load(address, type_, None, "a.groups")
        flat = b.reshape_permute(packed, (0, 2, 1, 3), (size, k), VectorType(size * k, mma.operand_a), "a.flat")
        return b.typeinfo(flat, tile(mma.operand_a, size, k), "a")

    def load_b(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The panel's columns of B at position `k`."""
        size, view = block.columns.size, self.gemm.b
        if not self.recipe.packing.b:
            address = self.b.gep(view.element, base, self.b.mul(k, view.row_stride))
            return self._load_b_in_place(address, size)
        return self._load_tiles_of_b(self.b.gep(self.recipe.mma.operand_b, base, self.b.mul(k, size)), size)

    def _load_b_in_place(self, address: Value, size: int) -> Value:
        """One step of K, and `size` columns, of interleaved rows of B in place."""
        view, mma = self.gemm.b, self.recipe.mma
        if view.in_strips:
            return self._load_tiles_of_b(address, size, view.rows // mma.width)
        if self.recipe.tile.kstep == mma.width:
            return self._load_tiles_of_b(address, size)  # one line: the tiles are adjacent
        shape = self.recipe.tile.kstep, size, mma.width
        return load_vnni(self.b, mma.operand_b, address, shape, columns=view.row_stride, mark=self._mark_of_b)

    def _load_tiles_of_b(self, address: Value, size: int, lines: int = 0) -> Value:
        """One step of K, and `size` columns, of B in tiles that begin `lines` groups of rows apart, or are adjacent.

        Rewrite:
            load <tiles, k/width, columns, width>  ->  reshape.permute <1, 3, 0, 2> to <k, n>  ->  typeinfo
        """
        b, element, width, columns = self.b, self.recipe.mma.operand_b, self.recipe.mma.width, self.packing_b.tile
        k = self.recipe.tile.kstep
        type_ = TensorType.dense(element, (size // columns, k // width, columns, width))
        pitches = (0, lines, columns, width) if lines > k // width else None
        packed = b.tensor_load(address, type_, pitches, "b.vnni", self._mark_of_b)
        flat = b.reshape_permute(packed, (1, 3, 0, 2), (k, size), VectorType(k * size, element), "b.flat")
        return b.typeinfo(flat, tile(element, k, size), "b")

    def packed_step(self, block: CacheBlock, base: Value, k: Value, depth: int) -> Value:
        """The panel's columns of B at `depth` positions from `k` on, packed right before they are loaded."""
        view = self.gemm.b
        rows = self.b.gep(view.element, base, self.b.mul(k, view.row_stride))
        self.packer_b.pack_block_of_b(rows, self.panel_b.pointer, block.columns, depth)
        return self._load_tiles_of_b(self.panel_b.pointer, block.columns.size)
