"""Where a matrix unit's kernel finds the tiles of its operands: in panels that it packs, or where they lie."""

from __future__ import annotations

from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range
from tlx.lower.to_tiles.epilogue import needs_scratch
from tlx.lower.to_tiles.gemm import GemmKernel
from tlx.lower.to_tiles.matrix_pack import TilePacking, over_k, pack_panel
from tlx.lower.to_tiles.matrix_recipe import FAR_ROWS
from tlx.lower.to_tiles.operands import Block
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe, up
from tlx.lower.to_tiles.scratch import Scratch
from tlx.lower.to_tiles.tiles import tile
from tlx.lower.to_tiles.units import packs_by_steps
from tlx.target import Target

_MANY_TILES: Final = 4  # row tiles, of which the first can hide little of the packing


class MatrixPanels(GemmKernel):
    """The part of a matrix unit's kernel that packs, and knows where tiles lie.

    Attributes:
        packing: How operands become tiles.
        term_depth: Positions of K of a product of the sum: whole steps.
        depth: Positions of K in a panel: those of all operands of the sum.
        steps: Steps of K: crossed products take theirs together.
        passing: A tile of sums in memory, on their way past the caches.
        by_steps: Whether a step of B is packed right before it is multiplied, into the same place each time.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        super().__init__(b, gemm, recipe, target)
        assert target.matrix is not None
        self.term_depth = up(gemm.k, recipe.kstep)
        self.depth = self.term_depth * self.terms.count
        self.steps = self.depth // gemm.uses // recipe.kstep
        self._near_bytes = target.caches.l1
        self.passing: Value | None = None
        self.by_steps = packs_by_steps(gemm, recipe)
        self.packing = TilePacking(
            b, recipe.operand_a, target.matrix.rows, recipe.kstep, recipe.width, recipe.passing_b
        )

    def make_buffers(self, scratch: Scratch) -> None:
        """Reserve and make the panels and the tile that the kernel needs."""
        recipe = self.recipe
        if recipe.pack_b and not recipe.shared_b:
            step = recipe.kstep * recipe.nr
            panels = self.held * self.depth
            scratch.reserve(recipe.operand_b, step if self.by_steps else panels)
        if recipe.pack_a:
            scratch.reserve(recipe.operand_a, self.depth * self._height_of_a())
        through = self.epilogue is not None and needs_scratch(self.epilogue.expression, recipe)
        if through or recipe.past_caches:
            scratch.reserve(recipe.accumulator, recipe.mr * recipe.nr)
        if self.partial:
            self.partial.reserve(scratch)
        made = iter(scratch.allocate(self.b))
        if recipe.pack_b and not recipe.shared_b:
            self.panel_b = next(made)
        if recipe.pack_a:
            self.panel_a = next(made)
        if self.epilogue is not None and through:
            self.epilogue.tile = next(made)
        elif recipe.past_caches:
            self.passing = next(made)
        if self.partial:
            self.partial.memory = next(made)

    @property
    def _packs_all_of_a(self) -> bool:
        return self.recipe.mc >= self.gemm.m

    def _height_of_a(self) -> int:
        return sum(r.count * r.size for r in self.rows) if self._packs_all_of_a else self.recipe.mr

    def at_a_time(self, columns: Range) -> int:
        """Panels of a range that are worked on, and held packed unless `by_steps`."""
        return columns.count if self.by_steps else super().at_a_time(columns)

    def size_of_panels(self, columns: int) -> int:
        """Elements from the first panel to the one behind so many columns."""
        return self.depth * columns

    @property
    def _comes_from_afar(self) -> bool:
        """Whether B is packed from rows that do not stay in the first cache, or lie in pages of their own.

        Few row tiles hide the packing of a panel better behind their products, if it, the lines that it is cut from
        (twice as long) and A stay in the first cache.
        """
        view = self.gemm.b
        size = bytes_of(view.element)
        by_rows = self.recipe.pack_b and (view.is_row_major or view.group > 1)
        hidden = self._row_tiles < _MANY_TILES and 4 * self.depth * self.recipe.nr * size <= self._near_bytes
        far = view.row_stride * view.group * size >= FAR_ROWS
        return by_rows and (far or (view.moves > self._near_bytes and not hidden))

    @property
    def _row_tiles(self) -> int:
        """Row tiles of all heights."""
        return sum(rows.count for rows in self.rows)

    # Packing ---------------------------------------------------------------------------------------------------

    def _pack_panel(self, columns: Range, start: Value, j: Value) -> None:
        """Panel `j` of those from column `start` on."""
        b, view = self.b, self.gemm.b
        column = b.add(start, b.mul(j, columns.size))
        source = b.gep(view.element, self.b_in, b.mul(column, view.col_stride))
        panel = self._panel(columns, j)

        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(1, term.index))
            there = b.gep(self.recipe.operand_b, panel, b.mul(term.index, self._term_of_b(columns)))
            pack_panel(self.packing, view, (here, there), columns, self.gemm.k)

    def _pack_across(self, columns: Range, start: Value, panels: Value) -> None:
        """All panels of a block from column `start` on, step of K by step of K: long parts of B's rows are read."""
        b, view, recipe = self.b, self.gemm.b, self.recipe
        source = b.gep(view.element, self.b_in, b.mul(start, view.col_stride))
        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(1, term.index))
            behind = b.mul(term.index, self._term_of_b(columns))

            def step(k: Value, depth: int) -> None:
                rows = b.gep(view.element, here, b.mul(k, recipe.kstep * view.row_stride))
                with b.loop(0, panels, name="jp", runs=True) as j:
                    at = b.gep(view.element, rows, b.mul(j.index, columns.size * view.col_stride))
                    to = b.gep(recipe.operand_b, self._panel(columns, j.index), behind)
                    to = b.gep(recipe.operand_b, to, b.mul(k, recipe.kstep * columns.size))
                    self.packing.pack_b_step(view, at, to, columns, depth)

            over_k(b, self.gemm.k, recipe.kstep, step)

    def _pack_all_of_a(self) -> None:
        """All row tiles, behind each other."""
        for rows in self.rows:
            with self.b.loop(*self.share.rows.of(self.b, self.rows, rows), name="ip") as i:
                self._pack_row_of_a(rows, i.index, self._panel_number(rows, i.index))

    def _pack_row_of_a(self, rows: Range, i: Value, number: Value) -> None:
        """One row tile, to the place of row tile `number`."""
        b, view = self.b, self.gemm.a
        row = rows.begin(b, i)
        source = b.gep(view.element, self.a, b.mul(row, view.row_stride))
        assert self.panel_a is not None
        panel = b.gep(self.recipe.operand_a, self.panel_a, b.mul(number, self.recipe.mr * self.depth))

        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(0, term.index))
            there = b.gep(self.recipe.operand_a, panel, b.mul(term.index, self.term_depth * rows.size))

            def step(k: Value, depth: int) -> None:
                at = b.gep(view.element, here, b.mul(k, self.recipe.kstep * view.col_stride))
                to = b.gep(self.recipe.operand_a, there, b.mul(k, self.recipe.kstep * rows.size))
                self.packing.pack_a_step(view, at, to, rows, depth)

            over_k(b, self.gemm.k, self.recipe.kstep, step)

    def _panel_number(self, rows: Range, i: Value) -> Value:
        """How many whole row tiles lie before a row tile in the packed A."""
        if not self._packs_all_of_a:
            return const_int(I64, 0)
        return i if rows is self.rows[0] else const_int(I64, self.rows[0].count)

    def term_addresses(self, block: Block, index: Value, a: Value, rhs: Value) -> tuple[Value, Value]:
        """Where a product of the sum finds its operands, given where the first one does."""
        b, recipe, depth = self.b, self.recipe, self.term_depth
        packed = b.mul(index, depth * block.rows.size)
        a = b.gep(recipe.operand_a, a, packed if recipe.pack_a else self.terms.offset(0, index))
        held = recipe.pack_b and not self.by_steps
        beyond = b.mul(index, self._term_of_b(block.columns)) if held else self.terms.offset(1, index)
        return a, b.gep(recipe.operand_b, rhs, beyond)

    # One register tile -----------------------------------------------------------------------------------------

    def a_address(self, block: Block, i: Value, row: Value) -> Value:
        """Where row tile `i` begins, packed or not."""
        if not self.recipe.pack_a:
            return self.at(self.gemm.a, self.a, row, block.part.start)
        assert self.panel_a is not None
        offset = self.b.mul(self._panel_number(block.rows, i), self.recipe.mr * self.depth)
        return self.b.gep(self.recipe.operand_a, self.panel_a, offset)

    def b_address(self, block: Block, j: Value, column: Value) -> Value:
        """Where panel `j` of the block begins, packed or not."""
        if not self.recipe.pack_b or self.by_steps:
            return self.b.gep(self.gemm.b.element, self.b_in, self.b.mul(column, self.gemm.b.col_stride))
        if self.shared is None:
            return self._panel(block.columns, j)
        assert self.panel_b is not None
        return self.b.gep(self.recipe.operand_b, self.panel_b, self.place_of_panel(self.shared, block, column))

    def _panel(self, columns: Range, j: Value) -> Value:
        assert self.panel_b is not None
        return self.b.gep(self.recipe.operand_b, self.panel_b, self.b.mul(j, self.depth * columns.size))

    def _term_of_b(self, columns: Range) -> int:
        """Elements from the packed B of a product of the sum to that of the next one."""
        return self.term_depth * columns.size

    def load_a(self, block: Block, base: Value, k: Value) -> Value:
        """The tile's rows of A at position `k`."""
        b, size = self.b, block.rows.size
        if self.recipe.pack_a:
            return self.packing.load_a(b.gep(self.recipe.operand_a, base, b.mul(k, size)), size)
        address = b.gep(self.recipe.operand_a, base, k)
        type_ = tile(self.recipe.operand_a, size, self.recipe.kstep)
        return b.tensor_load(address, type_, (0, self.gemm.a.row_stride), "a")

    def load_b(self, block: Block, base: Value, k: Value) -> Value:
        """The panel's columns of B at position `k`."""
        size, view = block.columns.size, self.gemm.b
        if not self.recipe.pack_b:
            place = self.b.gep(view.element, base, self.b.mul(k, view.row_stride))
            return self.packing.read_b(place, size, view)
        return self.packing.load_b(self.b.gep(self.recipe.operand_b, base, self.b.mul(k, size)), size)

    def packed_step(self, block: Block, base: Value, k: Value, depth: int) -> Value:
        """The panel's columns of B at `depth` positions from `k` on, packed just now."""
        view = self.gemm.b
        assert self.panel_b is not None
        rows = self.b.gep(view.element, base, self.b.mul(k, view.row_stride))
        self.packing.pack_b_step(view, rows, self.panel_b, block.columns, depth)
        return self.packing.load_b(self.panel_b, block.columns.size)
