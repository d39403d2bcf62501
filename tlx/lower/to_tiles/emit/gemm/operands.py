"""The operands of a register tile: where they lie, packed or not, and how they are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I8, I64, bytes_of
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.to_tiles.emit.gemm.sum_terms import SumTerms
from tlx.lower.to_tiles.emit.kernel import convert_tile, tile
from tlx.lower.to_tiles.pack.panels import PanelLayout, PanelPacker, load_vnni
from tlx.lower.to_tiles.pack.prepacked import PackedPanels
from tlx.lower.to_tiles.parallel.tile_range import arguments_and_tile_range
from tlx.lower.to_tiles.prefetch.streams import PrefetchStream
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe
from tlx.target.target import Target

_PAYS: Final = 2
"""Multiply-adds above which an address of their own is less than an index in each."""


@dataclass(frozen=True, slots=True)
class KPass:
    """A part of K: from `start` on, `size` positions; the first pass starts the sums, others go on with C."""

    start: Value
    size: int
    first: bool


@dataclass(frozen=True, slots=True)
class CacheBlock:
    """What the inner loops work on: a part of K, some panels from column `column` on, some row tiles from `row` on."""

    part: KPass
    columns: EqualTiles
    column: Value
    panels: Value
    rows: EqualTiles
    row: Value
    tiles: Value


class Operands:
    """Emits addresses and loads of a kernel's operands.

    Attributes:
        b: Where code is emitted.
        gemm, recipe, target: What the kernel computes, how, and on which machine.
        c, a, b_in: Addresses of the matrices.
        packing_a, packing_b: Layout of the panels that operands are packed into.
        packer_a, packer_b: What packs them.
        terms: The products that are added up.
        takes_turns: Whether they are, position of K by position.
        panel_a, panel_b, sums: Packed operands, and sums for corrections, where they are needed.
        shared: The panels of B that the kernel is given.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        self.b = b
        self.gemm = gemm
        self.recipe = recipe
        self.target = target
        self.c, self.a, self.b_in = arguments_and_tile_range(b.function)[0][:3]
        if recipe.packing.b_panel_offset is not None:
            place = b.gep(I8, b.retype(self.b_in, I8), recipe.packing.b_panel_offset)
            self.b_in = b.retype(place, recipe.mma.operand_b if recipe.packing.prepacked_b else gemm.b.element)
        self.packing_a, self.packing_b = PanelLayout.of_a(gemm, recipe), PanelLayout.of_b(gemm, recipe)
        self.packer_a, self.packer_b = PanelPacker(b, self.packing_a), PanelPacker(b, self.packing_b)
        self.terms = SumTerms(b, gemm.term_offsets)
        packed = recipe.packing.a or recipe.packing.b
        self.takes_turns = recipe.mma.unit == "fma" and not packed and gemm.is_interleaved
        self.panel_a: Value | None = None
        self.panel_b: Value | None = None
        self.sums: Value | None = None
        self.shared: PackedPanels | None = None
        if recipe.packing.prepacked_b:
            self._take_panels()

    def _take_panels(self) -> None:
        """B is packed, with what the sums have to be corrected by."""
        b, recipe = self.b, self.recipe
        self.panel_b = self.b_in
        self.shared = PackedPanels.of(self.gemm, recipe)
        if recipe.mma.correction == "columns":
            behind = b.gep(I8, self.b_in, self.shared.sums_at)
            self.sums = b.retype(behind, recipe.mma.accumulator)

    def term_addresses(self, block: CacheBlock, index: Value, a: Value, rhs: Value) -> tuple[Value, Value]:
        """Where a product of the sum finds its operands, given where the first one does."""
        b, recipe = self.b, self.recipe
        if recipe.packing.a:
            a_offset = b.mul(index, block.rows.size * self.packing_a.depth(block.part.size))
        else:
            a_offset = self.terms.offset(0, index)
        if recipe.packing.b:
            part = self.gemm.k if recipe.packing.prepacked_b else block.part.size
            b_offset = b.mul(index, block.columns.size * self.packing_b.depth(part))
        else:
            b_offset = self.terms.offset(1, index)
        return b.gep(recipe.mma.operand_a, a, a_offset), b.gep(recipe.mma.operand_b, rhs, b_offset)

    def at(self, view: MatrixView, base: Value, row: Value, column: Value) -> Value:
        """Address of an element of a matrix."""
        b = self.b
        return b.gep(view.element, base, b.add(b.mul(row, view.row_stride), b.mul(column, view.col_stride)))

    def a_address(self, block: CacheBlock, i: Value, row: Value) -> Value:
        """Where row tile `i` of the block begins, packed or not."""
        if not self.recipe.packing.a:
            return self.at(self.gemm.a, self.a, row, block.part.start)
        if self.recipe.packing.whole_a:
            return self.panel_of_a(block.part, row, const_int(I64, 0))
        return self.panel_of_a(block.part, const_int(I64, 0), self.b.mul(i, block.rows.size))

    @property
    def pitch_of_a(self) -> int:
        """Elements from a row of A to the next, packed or as they lie; of packed ones in a first pass."""
        if not self.recipe.packing.a:
            return self.gemm.a.row_stride
        return self.packing_a.depth(min(self.recipe.blocks.kc, self.gemm.k))

    def rows_of_a(self, part: KPass) -> tuple[Value, int, Value]:
        """Where the rows of A begin, packed or as they lie, elements from one to the next, and to the pass's part."""
        if not self.recipe.packing.a:
            return self.a, self.gemm.a.row_stride, part.start
        assert self.panel_a is not None
        return self.panel_a, self.packing_a.depth(part.size), const_int(I64, 0)

    def panel_of_a(self, part: KPass, row: Value, behind: Value) -> Value:
        """Where the packed row tile begins that is so many rows behind a packed row."""
        b = self.b
        assert self.panel_a is not None
        depth = self.packing_a.depth(part.size) * self.terms.count
        return b.gep(self.recipe.mma.operand_a, self.panel_a, b.mul(b.add(row, behind), depth))

    def b_address(self, block: CacheBlock, j: Value, column: Value) -> Value:
        """Where panel `j` of the block begins, packed or not."""
        if not self.recipe.packing.b:
            return self.at(self.gemm.b, self.b_in, block.part.start, column)
        assert self.panel_b is not None
        if self.shared is not None:
            return self.b.gep(self.recipe.mma.operand_b, self.panel_b, self.place_of_panel(self.shared, block, column))
        depth = self.packing_b.depth(block.part.size) * self.terms.count
        return self.b.gep(self.recipe.mma.operand_b, self.panel_b, self.b.mul(j, depth * block.columns.size))

    def place_of_panel(self, shared: PackedPanels, block: CacheBlock, column: Value) -> Value:
        """Elements from the first of the panels that the kernel is given to the one of a column, at the pass's K."""
        b = self.b
        panel = b.mul(shared.place(b, block.columns, column), shared.depth)
        return b.add(panel, b.mul(block.part.start, block.columns.size))

    def load_a(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The tile's rows of A at position `k`."""
        b, recipe, view = self.b, self.recipe, self.gemm.a
        type_ = tile(recipe.mma.operand_a, block.rows.size, recipe.tile.kstep)
        if recipe.packing.a and self.packing_a.by_columns:
            return b.tensor_load(self.a_at(block, base, b.mul(k, block.rows.size)), type_, (0, 1), "a")
        if recipe.packing.a:
            depth = self.packing_a.depth(block.part.size)
            return b.tensor_load(self.a_at(block, base, k), type_, (0, depth), "a")
        return b.tensor_load(self.a_at(block, base, b.mul(k, view.col_stride)), type_, (0, view.row_stride), "a")

    def a_at(self, block: CacheBlock, base: Value, offset: Value) -> Value:
        """Address of elements of A behind others."""
        address = self.b.gep(self.recipe.mma.operand_a, base, offset)
        return address if isinstance(offset, ConstInt) else self.plain(block, address)

    def plain(self, block: CacheBlock, address: Value) -> Value:
        """An address of A, in a register of its own where each element is read by one multiply-add."""
        recipe = self.recipe
        once = block.columns.size <= recipe.tile.lanes and block.rows.size > _PAYS and recipe.mma.unit != "matrix"
        return self.b.plain(address, "a.at") if once and self.target.broadcasts else address

    def prefetch_b(self, block: CacheBlock, base: Value, k: Value) -> None:
        """Prefetch the columns of B that are multiplied some steps later."""
        b, recipe, size = self.b, self.recipe, block.columns.size
        stride, element = size if recipe.packing.b else self.gemm.b.row_stride, bytes_of(recipe.mma.operand_b)
        start = b.gep(recipe.mma.operand_b, base, b.mul(k, stride))
        step = stride // self.terms.count if self.takes_turns else stride
        ahead = const_int(I64, recipe.prefetch.b_steps * recipe.tile.kstep * step * element)
        PrefetchStream(start, ahead, size * recipe.tile.kstep * element).emit(b)

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
        """Whether multiply-adds read B as it lies, in narrower elements than they multiply."""
        mma = self.recipe.mma
        return mma.unit == "fma" and not self.recipe.packing.b and mma.operand_b != mma.accumulator

    def widened_b(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The panel's columns of B at position `k`, as the elements that are multiplied."""
        b, mma, size = self.b, self.recipe.mma, block.columns.size
        token = self.load_b(block, base, k)
        narrow, wide = (tile(t, 1, size, (0, block.columns.padding)) for t in (mma.operand_b, mma.accumulator))
        return b.typeinfo(convert_tile(b, b.tovector(token, narrow, "b.row"), mma.accumulator, "f"), wide, "b.row")
