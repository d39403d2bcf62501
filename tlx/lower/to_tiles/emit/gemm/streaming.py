"""The kernel of a product of few rows, which reads B once, in memory order.

for columns, a strip whose sums fill half of L1       sums: [tiles of nr columns][M][nr]
  sums = 0
  for `streamed_rows` rows of B                       as many streams, each as long as the strip
    for tiles of the strip: sums += A[:, k] @ B[k, :]
  for tiles of the strip: C = f(sums + Acc + correction)

Where an instruction multiplies pairs or quadruples of rows, or widens every other element, neighbouring columns go to
different registers. The sums stay permuted until the strip is finished; `column_permutation` (d, r) distributes runs of
r columns over d registers:

    columns  0 1 2 3 | 4 5 6 7 | 8 ...                 (2, 4): pairs of bfloat rows, as VPUNPCKLWD leaves them
    permuted 0 1 2 3 | 8 9 10 11 | 16 ...  then  4 5 6 7 | 12 ...
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import I64
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, KPass
from tlx.lower.to_tiles.emit.gemm.loop_nest import LoopNest
from tlx.lower.to_tiles.emit.scratch import Buffer, Scratch
from tlx.lower.to_tiles.emit.tiles import tile
from tlx.lower.to_tiles.select.recipe import EqualTiles, padded_tiles

_PERMUTED_AXES: Final = (0, 1, 3, 2, 4)


class StreamingLoopNest(LoopNest):
    """Emits the loops of a product of few rows, which streams B.

    Attributes:
        strip: The sums of a strip.
    """

    strip: Buffer

    def reserve(self, scratch: Scratch) -> None:
        """Reserve the sums of a strip and other buffers."""
        self.strip = scratch.reserve(self.recipe.mma.accumulator, self.gemm.m * self.operands.packed_columns)
        super().reserve(scratch)

    def row_blocks(self, rows: EqualTiles, part: KPass, columns: EqualTiles, column: Value, panels: Value) -> None:
        """One strip: all rows of A by `panels` tiles from a column on."""
        b = self.b
        nothing = const_int(I64, 0)
        block = CacheBlock(part, columns, column, panels, rows, nothing, const_int(I64, 1))
        if self.recipe.packing.a and not self.recipe.packing.whole_a:
            self.operands.pack_a(part, rows, nothing, block.tiles)
        with b.loop(0, panels, name="clear", runs=True) as j:
            self._keep(block, j.index, zero(self._sums_type(block).vector))
        for steps in padded_tiles(part.size, self.recipe.tile.streamed_rows, self.recipe.mma.width):
            with b.loop(0, steps.count, name="k") as k:
                row = steps.start_of(b, k.index)
                with b.loop(0, panels, name="j", runs=True) as j:
                    self._add_rows(block, steps, row, j.index)
        with b.loop(0, panels, name="done", runs=True) as j:
            at = b.add(column, b.mul(j.index, columns.size))
            self.tile.finish(block, self._total(block, j.index, at), nothing, at)

    # Sums ------------------------------------------------------------------------------------------------------

    def _sums_type(self, block: CacheBlock) -> TensorType:
        return tile(self.recipe.mma.accumulator, self.gemm.m, block.columns.size)

    def _sums_at(self, block: CacheBlock, j: Value) -> Value:
        return self.b.gep(self.recipe.mma.accumulator, self.strip.pointer, self.b.mul(j, self._sums_type(block).count))

    def _keep(self, block: CacheBlock, j: Value, sums: Value) -> None:
        self.b.tensor_store(self._sums_at(block, j), self.b.typeinfo(sums, self._sums_type(block), "sums"))

    def _total(self, block: CacheBlock, j: Value, column: Value) -> Value:
        """The sums of a tile with its columns in order, and what they start from."""
        b, type_ = self.b, self._sums_type(block)
        if self.recipe.tile.column_permutation[0] == 1:
            total: Value = b.tovector(b.tensor_load(self._sums_at(block, j), type_, None, "sums"), type_, "sums")
        else:
            permuted = b.tensor_load(self._sums_at(block, j), self._permuted_type(type_, in_order=False), None, "dealt")
            total = b.reshape_permute(permuted, _PERMUTED_AXES, type_.shape, type_.vector, "sums")
        nothing = const_int(I64, 0)
        start = self.tile.start(block, (nothing, j), (nothing, column))
        if start == zero(start.type):
            return total
        return b.binary("fadd" if self.gemm.is_float else "add", total, start)

    def _permuted_type(self, type_: TensorType, *, in_order: bool) -> TensorType:
        """A tile as rows x blocks x runs x registers x columns of a run; permuted sums swap runs and registers."""
        rows, cols = type_.shape
        registers, run = self.recipe.tile.column_permutation
        runs = self.recipe.tile.lanes // run
        inner = (runs, registers, run) if in_order else (registers, runs, run)
        return TensorType.dense(type_.element, (rows, cols // (registers * self.recipe.tile.lanes), *inner))

    # Products --------------------------------------------------------------------------------------------------

    def _add_rows(self, block: CacheBlock, steps: EqualTiles, row: Value, j: Value) -> None:
        """Add some rows of B to the sums of a tile."""
        b, recipe = self.b, self.recipe
        type_ = self._sums_type(block)
        sums: Value = b.tovector(b.tensor_load(self._sums_at(block, j), type_, None, "sums"), type_, "sums")
        column = b.add(block.column, b.mul(j, block.columns.size))
        lhs = self.operands.a_address(block, const_int(I64, 0), const_int(I64, 0))
        for group in range(0, steps.size, recipe.mma.width):
            k = b.add(row, group)
            missing = max(0, group + recipe.mma.width - steps.valid)
            left = self.operands.load_a(block, lhs, k)
            right, padding = self._rows_of_b(block, k, column, missing)
            summed = replace(type_, padding=(0, padding))
            acc = b.typeinfo(sums, summed, "acc")
            sums = b.mma(recipe.mma.name, acc, left, right, summed)
        self._keep(block, j, sums)

    def _rows_of_b(self, block: CacheBlock, k: Value, column: Value, missing: int) -> tuple[Value, int]:
        """A group of rows of a tile of B, and its columns of padding: none if the columns are permuted."""
        b, recipe, view, packing = self.b, self.recipe, self.gemm.b, self.operands.packing_b
        size = block.columns.size
        type_ = tile(view.element, recipe.mma.width, size, (missing, block.columns.padding))
        token = b.tensor_load(
            self.function.at(view, self.function.rhs, k, column), type_, (0, max(view.row_stride, 1)), "b"
        )
        if recipe.tile.column_permutation[0] == 1:
            return token, block.columns.padding
        rows = packing.finish(b, b.tovector(token, type_, "b.rows"))
        plain = tile(recipe.mma.operand_b, recipe.mma.width, size)
        permuted = b.typeinfo(rows, self._permuted_type(plain, in_order=True), "b.rows")
        return b.typeinfo(
            b.reshape_permute(permuted, _PERMUTED_AXES, plain.shape, plain.vector, "b.dealt"), plain, "b"
        ), 0
