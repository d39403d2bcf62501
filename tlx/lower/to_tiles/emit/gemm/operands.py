"""The operands of a product's kernel, packed into panels or in place: packing, addresses, and loads."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tlx.ir.types import I8, I64, bytes_of
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.to_tiles.emit.copy import blocked_loop
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction, KPass, SumTerms
from tlx.lower.to_tiles.emit.kernel import Scratch, ScratchBuffer
from tlx.lower.to_tiles.emit.tiles import convert_tile, tile
from tlx.lower.to_tiles.pack.panels import PackedPanels, PanelLayout, PanelPacker, column_sums, load_vnni, row_sums
from tlx.lower.to_tiles.prefetch import PrefetchStream
from tlx.lower.to_tiles.select.recipe import EqualTiles

_MAX_INDEXED: Final = 2
"""Rows of a tile up to which indexed memory operands are as cheap as an address in a register."""
_COLUMNS_AT_ONCE: Final = 4
"""Columns of a column-major A that are packed together for all row tiles, so that their cache lines stay in L1.

Columns that are pages apart share a set of L1 with the panel. Packing 1024 x 1024 floats takes 345 us by 4 columns,
380 by 8, 440 by 16 (Emerald Rapids; no difference on a newer Xeon).
"""


class Operands:
    """Packs a kernel's operands, and emits their addresses and loads.

    Attributes:
        function: The kernel's function.
        packing_a, packing_b: Layouts of packed operands.
        packer_a, packer_b: Emit the packing.
        terms: The terms of the sum.
        interleaves_terms: Whether the terms are interleaved along K.
        packs_b: Whether this kernel packs B.
        panel_a, panel_b: Packed operands.
        sums: Sums for corrections; None where nothing is corrected.
        prepacked: The panels of B if the kernel is passed B packed.
    """

    def __init__(self, function: GemmFunction) -> None:
        self.function = function
        self.b, self.gemm, self.recipe = function.b, function.gemm, function.recipe
        b, gemm, recipe = self.b, self.gemm, self.recipe
        self.packing_a, self.packing_b = PanelLayout.of_a(gemm, recipe), PanelLayout.of_b(gemm, recipe)
        self.packer_a, self.packer_b = PanelPacker(b, self.packing_a), PanelPacker(b, self.packing_b)
        self.terms = SumTerms(b, gemm.term_offsets)
        packed = recipe.packing.a or recipe.packing.b
        self.interleaves_terms = recipe.mma.unit == "fma" and not packed and gemm.is_interleaved
        self.packs_b = recipe.packing.b and not recipe.packing.prepacked_b
        self.panel_a, self.panel_b = ScratchBuffer(), ScratchBuffer()
        self.sums: ScratchBuffer | None = None
        self.prepacked: PackedPanels | None = None
        if recipe.packing.prepacked_b:
            self.panel_b = ScratchBuffer(function.rhs)
            self.prepacked = PackedPanels.of(gemm, recipe)
            if recipe.mma.correction == "columns":
                sums = b.gep(I8, function.rhs, self.prepacked.sums_at)
                self.sums = ScratchBuffer(b.retype(sums, recipe.mma.accumulator))
        self._all_panels = self.panel_b, self.sums

    # Panels ----------------------------------------------------------------------------------------------------

    def reserve(self, scratch: Scratch) -> None:
        """Reserve memory for the panels, and for sums for corrections."""
        recipe, rows = self.recipe, self.function.rows
        height = max(min(self.row_tiles_per_block(r), r.count) * r.size for r in rows)
        if recipe.packing.whole_a:
            height = rows[-1].start + rows[-1].count * rows[-1].size
        if self.packs_b:
            self.panel_b = scratch.reserve(recipe.mma.operand_b, self.size_of_panels(self.packed_columns))
        if recipe.packing.a:
            depth = self.packing_a.depth(min(recipe.blocks.kc, self.gemm.k)) * self.terms.count
            self.panel_a = scratch.reserve(recipe.mma.operand_a, depth * height)
        if recipe.mma.correction == "rows" or (recipe.mma.correction == "columns" and not recipe.packing.prepacked_b):
            count = self.packed_columns if recipe.mma.correction == "columns" else height
            self.sums = scratch.reserve(recipe.mma.accumulator, count)
        self._all_panels = self.panel_b, self.sums

    def row_tiles_per_block(self, rows: EqualTiles) -> int:
        """Row tiles of a range that fit a cache block."""
        return max(1, self.recipe.blocks.mc // rows.size)

    def panels_per_block(self, columns: EqualTiles) -> int:
        """Panels of a range that fit a cache block."""
        return max(1, self.recipe.blocks.nc // columns.size)

    def at_a_time(self, columns: EqualTiles) -> int:
        """Panels of a range that are packed at a time."""
        return min(columns.count, self.panels_per_block(columns))

    @property
    def packed_columns(self) -> int:
        """Columns that are packed at a time: of one range, or of all ranges if panels are cached across calls."""
        widths = [self.at_a_time(columns) * columns.size for columns in self.function.columns]
        return sum(widths) if self.function.share.cached_panels else max(widths)

    def size_of_panels(self, columns: int) -> int:
        """Elements of `columns` packed columns."""
        return self.packing_b.depth(min(self.recipe.blocks.kc, self.gemm.k)) * self.terms.count * columns

    @contextmanager
    def if_not_packed(self, columns: EqualTiles) -> Generator[None]:
        """A conditional block that packs the panels of a range unless an earlier call has packed them."""
        cached = self.function.share.cached_panels
        if cached is None:
            yield
            return
        self._find_cached_panels(columns)
        with self.b.if_block(self.b.icmp("eq", cached.packed, const_int(I64, 0)), "pack"):
            yield

    def _find_cached_panels(self, columns: EqualTiles) -> None:
        """Set the panels of a range, which follow those of earlier ranges in the panel cache."""
        b, recipe, (panels, sums), ranges = self.b, self.recipe, self._all_panels, self.function.columns
        before = sum(self.at_a_time(other) * other.size for other in ranges[: ranges.index(columns)])
        self.panel_b = ScratchBuffer(b.gep(recipe.mma.operand_b, panels.pointer, self.size_of_panels(before)))
        if sums is not None and recipe.mma.correction == "columns":
            self.sums = ScratchBuffer(b.gep(recipe.mma.accumulator, sums.pointer, before))

    def pack_b(self, columns: EqualTiles, k_pass: KPass, column: Value, panels: Value) -> None:
        """Pack a block's panels of B."""
        b, recipe, view = self.b, self.recipe, self.gemm.b
        depth = self.packing_b.depth(k_pass.size)
        with b.loop(0, panels, name="jp", nonempty=True) as loop:
            at = b.mul(b.add(column, b.mul(loop.index, columns.size)), view.col_stride)
            source = b.gep(view.element, self.function.rhs, b.add(at, b.mul(k_pass.start, view.row_stride)))
            whole = depth * self.terms.count
            panel = b.gep(recipe.mma.operand_b, self.panel_b.pointer, b.mul(loop.index, whole * columns.size))
            with self.terms.loop() as term:
                there = b.gep(recipe.mma.operand_b, panel, b.mul(term.index, depth * columns.size))
                here = b.gep(view.element, source, self.terms.offset(1, term.index))
                self.packer_b.pack_b(here, there, columns, k_pass.size)
            if recipe.mma.correction == "columns":
                assert self.sums is not None
                out = b.gep(recipe.mma.accumulator, self.sums.pointer, b.mul(loop.index, columns.size))
                column_sums(b, panel, out, columns.size, whole, recipe)
        b.keep_in_memory(self.panel_b.pointer)

    def pack_a(self, k_pass: KPass, rows: EqualTiles, row: Value, tiles: Value) -> None:
        """Pack row tiles of A from a row on, a few columns at a time: the next tile reuses their cache lines."""
        b = self.b
        width = min(k_pass.size, _COLUMNS_AT_ONCE) if self.packing_a.by_columns else k_pass.size

        def pack_columns(number: Value, count: int) -> None:
            self._pack_columns_of_a(k_pass, rows, row, tiles, (b.mul(number, width), count))

        blocked_loop(b, k_pass.size, width, "kp", pack_columns)
        b.keep_in_memory(self.panel_a.pointer)

    def _pack_columns_of_a(
        self, k_pass: KPass, rows: EqualTiles, row: Value, tiles: Value, columns: tuple[Value, int]
    ) -> None:
        """Pack a range of columns of row tiles of A."""
        b, recipe, view = self.b, self.recipe, self.gemm.a
        depth = self.packing_a.depth(k_pass.size)
        column, count = columns
        with b.loop(0, tiles, name="ip") as loop:
            here = b.mul(loop.index, rows.size)
            at = b.mul(b.add(row, here), view.row_stride)
            at = b.add(at, b.mul(b.add(k_pass.start, column), view.col_stride))
            size = rows.size * depth
            panel = self._panel_of_a(k_pass, b.add(row if recipe.packing.whole_a else const_int(I64, 0), here))
            source = b.gep(view.element, self.function.a, at)
            with self.terms.loop() as term:
                there = b.gep(recipe.mma.operand_a, panel, b.add(b.mul(term.index, size), b.mul(column, rows.size)))
                tile = b.gep(view.element, source, self.terms.offset(0, term.index))
                self.packer_a.pack_a(tile, there, rows, count)
            if recipe.mma.correction == "rows":
                assert self.sums is not None
                out = b.gep(recipe.mma.accumulator, self.sums.pointer, here)
                row_sums(b, panel, out, (self.terms.count, rows.size, depth), recipe)

    # Addresses -------------------------------------------------------------------------------------------------

    def term_addresses(self, block: CacheBlock, index: Value, a: Value, rhs: Value) -> tuple[Value, Value]:
        """The addresses of a term's operands, from those of the first term."""
        b, recipe = self.b, self.recipe
        if recipe.packing.a:
            a_offset = b.mul(index, block.rows.size * self.packing_a.depth(block.k_pass.size))
        else:
            a_offset = self.terms.offset(0, index)
        if recipe.packing.b:
            part = self.gemm.k if recipe.packing.prepacked_b else block.k_pass.size
            b_offset = b.mul(index, block.columns.size * self.packing_b.depth(part))
        else:
            b_offset = self.terms.offset(1, index)
        return b.gep(recipe.mma.operand_a, a, a_offset), b.gep(recipe.mma.operand_b, rhs, b_offset)

    def a_address(self, block: CacheBlock, i: Value, row: Value) -> Value:
        """Address of row tile `i` of the block, packed or not."""
        if not self.recipe.packing.a:
            return self.function.at(self.gemm.a, self.function.a, row, block.k_pass.start)
        return self._panel_of_a(block.k_pass, row if self.recipe.packing.whole_a else self.b.mul(i, block.rows.size))

    @property
    def pitch_of_a(self) -> int:
        """Row stride of A, packed (in the first pass) or not."""
        if not self.recipe.packing.a:
            return self.gemm.a.row_stride
        return self.packing_a.depth(min(self.recipe.blocks.kc, self.gemm.k))

    def rows_of_a(self, k_pass: KPass) -> tuple[Value, int, Value]:
        """Address of A, packed or not, its row stride, and the offset of the pass in a row."""
        if not self.recipe.packing.a:
            return self.function.a, self.gemm.a.row_stride, k_pass.start
        return self.panel_a.pointer, self.packing_a.depth(k_pass.size), const_int(I64, 0)

    def _panel_of_a(self, k_pass: KPass, row: Value) -> Value:
        """Address of the packed row tile that begins at a packed row."""
        depth = self.packing_a.depth(k_pass.size) * self.terms.count
        return self.b.gep(self.recipe.mma.operand_a, self.panel_a.pointer, self.b.mul(row, depth))

    def b_address(self, block: CacheBlock, j: Value, column: Value) -> Value:
        """The address of panel `j` of the block, packed or not."""
        if not self.recipe.packing.b:
            return self.function.at(self.gemm.b, self.function.rhs, block.k_pass.start, column)
        if self.prepacked is not None:
            return self.prepacked_panel(self.prepacked, block, column)
        depth = self.packing_b.depth(block.k_pass.size) * self.terms.count
        offset = self.b.mul(j, depth * block.columns.size)
        return self.b.gep(self.recipe.mma.operand_b, self.panel_b.pointer, offset)

    def prepacked_panel(self, prepacked: PackedPanels, block: CacheBlock, column: Value) -> Value:
        """Address of the panel of a packed B that begins at a column, at the pass's position of K."""
        b = self.b
        panel = b.mul(prepacked.place(b, block.columns, column), prepacked.depth)
        offset = b.add(panel, b.mul(block.k_pass.start, block.columns.size))
        return b.gep(self.recipe.mma.operand_b, self.panel_b.pointer, offset)

    # Loads -----------------------------------------------------------------------------------------------------

    def load_a(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The tile's rows of A at position `k`."""
        b, recipe, view = self.b, self.recipe, self.gemm.a
        type_ = tile(recipe.mma.operand_a, block.rows.size, recipe.tile.kstep)
        if recipe.packing.a and self.packing_a.by_columns:
            return b.tensor_load(self.a_at(block, base, b.mul(k, block.rows.size)), type_, (0, 1), "a")
        if recipe.packing.a:
            depth = self.packing_a.depth(block.k_pass.size)
            return b.tensor_load(self.a_at(block, base, k), type_, (0, depth), "a")
        return b.tensor_load(self.a_at(block, base, b.mul(k, view.col_stride)), type_, (0, view.row_stride), "a")

    def a_at(self, block: CacheBlock, base: Value, offset: Value) -> Value:
        """Address of elements of A at an offset."""
        address = self.b.gep(self.recipe.mma.operand_a, base, offset)
        return address if isinstance(offset, ConstInt) else self.in_a_register(block, address)

    def in_a_register(self, block: CacheBlock, address: Value) -> Value:
        """An address of A, put into a register if each element is read by only one multiply-add."""
        recipe, is_tall = self.recipe, block.rows.size > _MAX_INDEXED
        once = block.columns.size <= recipe.tile.lanes and is_tall and recipe.mma.unit != "matrix"
        return (
            self.b.opaque_address(address, "a.at")
            if once and self.function.target.instructions.fma_broadcasts
            else address
        )

    def prefetch_b(self, block: CacheBlock, base: Value, k: Value, steps: int = 1) -> None:
        """Prefetch the columns of B that are multiplied some steps later, for as many steps at once."""
        b, recipe, size = self.b, self.recipe, block.columns.size
        stride, element = size if recipe.packing.b else self.gemm.b.row_stride, bytes_of(recipe.mma.operand_b)
        start = b.gep(recipe.mma.operand_b, base, b.mul(k, stride))
        step = stride // self.terms.count if self.interleaves_terms else stride
        ahead = const_int(I64, recipe.prefetch.b_steps * recipe.tile.kstep * step * element)
        PrefetchStream(start, ahead, steps * size * recipe.tile.kstep * element).emit(
            b, self.function.target.caches.line_bytes
        )

    def load_b(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The panel's columns of B at position `k`."""
        b, recipe, size = self.b, self.recipe, block.columns.size
        if not recipe.packing.b:
            address = b.gep(recipe.mma.operand_b, base, b.mul(k, self.gemm.b.row_stride))
            if self.gemm.b.interleave > 1:
                return load_vnni(b, recipe.mma.operand_b, address, (recipe.tile.kstep, size, recipe.mma.width))
            return b.tensor_load(address, tile(recipe.mma.operand_b, 1, size, (0, block.columns.padding)), None, "b")
        address = b.gep(recipe.mma.operand_b, base, b.mul(k, size))
        if recipe.mma.width == 1:
            return b.tensor_load(address, tile(recipe.mma.operand_b, recipe.tile.kstep, size), None, "b")
        return load_vnni(b, recipe.mma.operand_b, address, (recipe.tile.kstep, size, recipe.mma.width))

    @property
    def widens_b(self) -> bool:
        """Whether multiply-adds read an unpacked B of narrower elements."""
        mma = self.recipe.mma
        return mma.unit == "fma" and not self.recipe.packing.b and mma.operand_b != mma.accumulator

    def widened_b(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The panel's columns of B at position `k`, converted to the accumulator's type."""
        b, mma, size = self.b, self.recipe.mma, block.columns.size
        token = self.load_b(block, base, k)
        narrow, wide = (tile(t, 1, size, (0, block.columns.padding)) for t in (mma.operand_b, mma.accumulator))
        return b.typeinfo(convert_tile(b, b.tovector(token, narrow, "b.row"), mma.accumulator, "f"), wide, "b.row")
