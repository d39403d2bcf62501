"""The loop nest of a product: cache blocks, packing, register tiles.

for each pass over K                              pc
  pack all of A, if the recipe says so
  interleave the N tail of B, if it is summed in pairs
  for columns in panels of B, nc at a time        jc
    pack B's panels
    for rows of A, mc at a time                   ic
      pack A's rows, if needed
      for each panel, for each row tile           jr, ir
        one register tile (register_tile.py)
"""

from __future__ import annotations

from tlx.ir.builder.instructions import as_value
from tlx.ir.types import I64
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction, KPass
from tlx.lower.to_tiles.emit.gemm.k_loop import KLoop
from tlx.lower.to_tiles.emit.gemm.n_tail import DotProductColumns
from tlx.lower.to_tiles.emit.gemm.next_tile import NextTilePrefetch
from tlx.lower.to_tiles.emit.gemm.operands import Operands
from tlx.lower.to_tiles.emit.gemm.register_tile import RegisterTile
from tlx.lower.to_tiles.emit.scratch import Scratch
from tlx.lower.to_tiles.parallel.tile_range import loop_over_blocks
from tlx.lower.to_tiles.prefetch.streams import Prefetcher
from tlx.lower.to_tiles.select.recipe import EqualTiles, k_passes


class LoopNest:
    """Emits the loops around the register tiles of a kernel on vectors.

    Attributes:
        function: The kernel's function.
        operands: Packs the operands.
        prefetcher: Emits the prefetches.
        tile: Emits the register tiles.
        dots: Emits an N tail of sums along K, if there is one.
    """

    def __init__(self, function: GemmFunction) -> None:
        self.function = function
        self.b, self.gemm, self.recipe = function.b, function.gemm, function.recipe
        self.operands = Operands(function)
        self.prefetcher = Prefetcher(
            function.b, function.arguments, function.gemm, function.recipe, function.target.caches.line
        )
        k_loop = KLoop(function, self.operands, self.prefetcher)
        following = NextTilePrefetch(function, self.operands, self.prefetcher)
        self.tile = RegisterTile(function, self.operands, k_loop.total, self.prefetcher, following.begin_tile)
        dots = function.recipe.tile.dot_columns
        self.dots = DotProductColumns(function, self.operands.pitch_of_a) if dots else None

    def reserve(self, scratch: Scratch) -> None:
        """Reserve the buffers that the kernel needs."""
        self.operands.reserve(scratch)
        self.tile.reserve(scratch)
        if self.dots:
            self.dots.reserve(scratch)
        if self.tile.pairs:
            self.tile.pairs.reserve(scratch)

    def emit(self) -> None:
        """Emit the passes over K."""
        b = self.b
        if self.dots:
            self.dots.copy(self.function.rhs)
        for parts in k_passes(self.gemm, self.recipe):
            first = parts.start == 0
            if first:
                self._emit_pass(KPass(const_int(I64, 0), parts.size, True))
            if parts.count > first:
                with b.loop(int(first), parts.count, name="pc") as loop:
                    self._emit_pass(KPass(parts.start_of(b, loop.index), parts.valid, False))

    def _emit_pass(self, part: KPass) -> None:
        """All tiles for one pass over K."""
        function, pairs = self.function, self.tile.pairs
        self.prefetcher.begin_pass(function.rhs, part.start, part.size)
        if self.recipe.packing.whole_a:
            for rows in function.rows:
                first, last = (as_value(bound, I64) for bound in function.share.rows.of(self.b, function.rows, rows))
                row = rows.start_of(self.b, first)
                self.operands.pack_a(part, rows, row, self.b.sub(last, first))
        if pairs and part.first:
            pairs.pack(function.rhs)
        for columns in function.columns:
            self._column_blocks(columns, part)

    def _column_blocks(self, columns: EqualTiles, part: KPass) -> None:
        """`nc` columns at a time: pack them, then go over the rows."""
        b, operands, share = self.b, self.operands, self.function.share
        bounds, step = share.columns.of(b, self.function.columns, columns), operands.panels_per_block(columns)
        with loop_over_blocks(b, bounds, step, "jc") as (first, panels):
            column = columns.start_of(b, first)
            if operands.packs_b:
                with operands.if_not_packed(columns):
                    operands.pack_b(columns, part, column, panels)
            for rows in self.function.rows:
                self.row_blocks(rows, part, columns, column, panels)

    def row_blocks(self, rows: EqualTiles, part: KPass, columns: EqualTiles, column: Value, panels: Value) -> None:
        """`mc` rows at a time: pack them, then go over the tiles."""
        b, operands, share = self.b, self.operands, self.function.share
        bounds, step = share.rows.of(b, self.function.rows, rows), operands.row_tiles_per_block(rows)
        with loop_over_blocks(b, bounds, step, "ic") as (first, tiles):
            row = rows.start_of(b, first)
            block = CacheBlock(part, columns, column, panels, rows, row, tiles)
            if self.recipe.packing.a and not self.recipe.packing.whole_a:
                operands.pack_a(part, rows, row, tiles)
            with b.loop(0, panels, name="jr", runs=True) as j, b.loop(0, tiles, name="ir", runs=True) as i:
                self.tile.emit(block, i.index, j.index)
            if self.dots and columns is self.function.columns[0]:
                self._last_columns(self.dots, block)

    def _last_columns(self, dots: DotProductColumns, block: CacheBlock) -> None:
        """The N tail of a block's rows, in the first block of columns, while the rows are in the caches."""
        b, part, nothing = self.b, block.part, const_int(I64, 0)
        at_first = b.select(b.icmp("eq", block.column, nothing), block.tiles, nothing)
        with b.loop(0, at_first, name="dr") as loop:
            row = b.add(block.row, b.mul(loop.index, block.rows.size))
            c = self.function.at(self.gemm.c, self.function.c, row, nothing)
            a = self.operands.a_address(block, loop.index, row)
            dots.tiles((c, a), block.rows.size, (part.start, part.size), first=part.first)
