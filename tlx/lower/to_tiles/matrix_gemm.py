"""The kernel of a matrix product on a matrix unit.

pack A, where its tiles cannot be read where they lie
for columns in panels of B, nc at a time          jc    what stays in the second-level cache
  for each panel                                  jr
    pack it, multiply the first row tile          packing fills the pipeline's gaps between tile products
  for each further row tile, for each panel       t; ir, jr where no sums wait
    acc = 0 | Acc
    for k: acc += A[tile, k] @ B[k, panel]        two loads of A, two of B, four products
    C[tile, panel] = f(acc)

All tiles have one shape. The function configures the unit once and calls nothing in between. No loop that carries sums
lies directly in another one: LLVM's code generation at -O0 dies of a phi of tiles that comes from a phi.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range
from tlx.lower.to_tiles.epilogue import needs_scratch
from tlx.lower.to_tiles.gemm import GemmKernel
from tlx.lower.to_tiles.gemm_tile import Block, Pass
from tlx.lower.to_tiles.map import may_be_leaf
from tlx.lower.to_tiles.matrix_pack import TilePacking, over_k, pack_panel
from tlx.lower.to_tiles.matrix_recipe import FAR_ROWS
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe, up
from tlx.lower.to_tiles.scratch import Scratch
from tlx.lower.to_tiles.share import blocks_of
from tlx.lower.to_tiles.tiles import tile
from tlx.target import Target

_ROWS_A_STEP: Final = 8
"""Rows of an epilogue computed with a step of K at most; with too few steps for that, they have a loop of their own."""


class MatrixKernel(GemmKernel):
    """Emits one kernel for a matrix unit.

    Attributes:
        packing: How operands become tiles.
        term_depth: Positions of K of a product of the sum: whole steps.
        depth: Positions of K in a panel: those of all products of the sum.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        super().__init__(b, gemm, recipe, target)
        assert target.matrix is not None
        self.term_depth = up(gemm.k, recipe.kstep)
        self.depth = self.term_depth * self.terms.count
        self.packing = TilePacking(b, recipe.operand_a, target.matrix.rows, recipe.kstep, recipe.width)
        self.whole = Pass(const_int(I64, 0), gemm.k, first=True)

    def make_buffers(self, scratch: Scratch) -> None:
        """Reserve and make the panels and the tile that the kernel needs."""
        recipe = self.recipe
        if recipe.pack_b and not recipe.shared_b:
            width = max(self._at_a_time(c) * c.size for c in self.columns)
            scratch.reserve(recipe.operand_b, self.depth * width)
        if recipe.pack_a:
            scratch.reserve(recipe.operand_a, self.depth * self._height_of_a())
        if self.epilogue is not None and needs_scratch(self.epilogue.expression, recipe):
            scratch.reserve(recipe.accumulator, recipe.mr * recipe.nr)
        if self.partial:
            self.partial.reserve(scratch)
        made = iter(scratch.allocate(self.b))
        if recipe.pack_b and not recipe.shared_b:
            self.panel_b = next(made)
        if recipe.pack_a:
            self.panel_a = next(made)
        if self.epilogue is not None and needs_scratch(self.epilogue.expression, recipe):
            self.epilogue.tile = next(made)
        if self.partial:
            self.partial.memory = next(made)

    @property
    def _packs_all_of_a(self) -> bool:
        return self.recipe.mc >= self.gemm.m

    def _height_of_a(self) -> int:
        return sum(r.count * r.size for r in self.rows) if self._packs_all_of_a else self.recipe.mr

    def _at_a_time(self, columns: Range) -> int:
        """Panels of a range that are held packed; one where each is used by one row tile only."""
        if sum(rows.count for rows in self.rows) == 1 and not self.recipe.shared_b:
            return 1
        return min(columns.count, self.panels(columns))

    # Loops -----------------------------------------------------------------------------------------------------

    def passes(self, parts: Range) -> None:
        """All of K at once."""
        del parts
        if self.recipe.pack_a and self._packs_all_of_a:
            self._pack_all_of_a()
        for columns in self.columns:
            self.column_blocks(columns, self.whole)

    def column_blocks(self, columns: Range, part: Pass) -> None:
        """Some panels at a time: pack them while the first row tile is multiplied, then the other row tiles."""
        b, step = self.b, self._at_a_time(columns)
        with blocks_of(b, self.share.columns.of(b, self.columns, columns), step, "jc") as (first, panels):
            column = b.add(b.mul(first, columns.size), columns.start)
            ahead = self._is_shared or (step > 1 and self._has_far_rows)
            packs = self.recipe.pack_b and not self.recipe.shared_b
            if packs and self._has_far_rows and ahead:
                self._pack_across(columns, column, panels)
            elif packs and ahead:
                with b.loop(0, panels, name="jp", runs=True) as j:
                    self._pack_panel(columns, column, j.index)
            for number, rows in enumerate(self.rows):
                block = Block(part, columns, column, panels, rows, const_int(I64, rows.start), const_int(I64, 1))
                self._rows(block, packs=number == 0 and not ahead and not self.recipe.shared_b)

    @property
    def _has_far_rows(self) -> bool:
        """Whether B is packed and its rows are so far apart that reading a panel's part of each takes a page each."""
        view, size = self.gemm.b, bytes_of(self.gemm.b.element)
        by_rows = view.is_row_major or view.group > 1
        return self.recipe.pack_b and by_rows and view.row_stride * view.group * size >= FAR_ROWS

    @property
    def _is_shared(self) -> bool:
        """Whether a call works on some of the row tiles."""
        return self.share.rows.first is not None

    def _rows(self, block: Block, *, packs: bool) -> None:
        """All row tiles of one height; the first packs the panels, if they are not packed yet."""
        b, none = self.b, const_int(I64, 0)
        first, last = self.share.rows.of(b, self.rows, block.rows)
        waiting = self._first_sums(block, none) if self._defers_rows(block) else []
        if packs:
            waiting = self._row(block, none, waiting, packs=True)
            first = 1
        if waiting:
            self._store_sums(block, self._tiles(block, int(packs), waiting))
        elif isinstance(last, Value) or last > int(packs):
            with b.loop(first, last, name="ir") as i:
                self._row(block, i.index, [], packs=False)

    def _row(self, block: Block, i: Value, waiting: list[Value], *, packs: bool) -> list[Value]:
        """One row tile by all panels of the block; gives the sums that are not stored yet."""
        if self.recipe.pack_a and not self._packs_all_of_a:
            self._pack_row_of_a(block.rows, i, const_int(I64, 0))
        alone = self._defers(block) and not waiting
        if alone:
            waiting = self._first_sums(block, i)
        with self.b.loop(0, block.panels, name="jr", runs=True, carry=waiting) as j:
            if packs and self.recipe.pack_b:
                self._pack_panel(block.columns, block.column, j.index)
            if waiting:
                j.next(*self._deferred_tile(block, i, j.index, j.carried))
            else:
                self.tile(block, i, j.index)
        if alone:
            self._store_sums(block, j.results)
        return [] if alone else j.results

    def _tiles(self, block: Block, first: int, waiting: list[Value]) -> list[Value]:
        """All tiles from row tile `first` on, in one loop; gives the sums that are not stored yet."""
        b = self.b
        if first == block.rows.count:
            return waiting
        begin, end = (b.mul(block.panels, number) for number in (first, block.rows.count))
        with b.loop(begin, end, name="t", runs=True, carry=waiting) as loop:
            i = b.binary("udiv", loop.index, block.panels)
            j = b.sub(loop.index, b.mul(block.panels, i))
            loop.next(*self._deferred_tile(block, i, j, loop.carried))
        return loop.results

    # Sums that are stored while the next ones start ------------------------------------------------------------

    def _defers(self, block: Block) -> bool:
        """Whether several tiles follow each other, and it does no harm to store something at the first one's place."""
        several = block.rows.count > 1 or block.columns.count > 1
        direct = self.epilogue is None and self.gemm.c.element == self.recipe.accumulator
        return several and (direct or self._overlaps) and not block.rows.padding and not block.columns.padding

    def _defers_rows(self, block: Block) -> bool:
        """Whether the sums of a row tile are stored by the next one: nothing is packed in between."""
        return self._defers(block) and not self._is_shared and (self._packs_all_of_a or not self.recipe.pack_a)

    def _first_sums(self, block: Block, i: Value) -> list[Value]:
        """What is stored while the first sums of row tile `i` start: at their place, what they start from."""
        row = self.b.add(block.row, self.b.mul(i, block.rows.size))
        return [self.start(block, (i, i), (row, block.column)), *self._place(row, block.column)]

    @property
    def _overlaps(self) -> bool:
        """Whether a tile's epilogue is computed row by row while the next tile is multiplied."""
        gemm = self.gemm
        apart = gemm.epilogue is not None and gemm.acc is None and not may_be_leaf(gemm.epilogue, gemm.c)
        return apart and self.epilogue is not None and self.partial is None

    def _place(self, row: Value, column: Value) -> list[Value]:
        """How the place of sums is remembered while they wait."""
        return [row, column] if self._overlaps else [self._offset(row, column)]

    def _offset(self, row: Value, column: Value) -> Value:
        return self.b.add(self.b.mul(row, self.gemm.c.row_stride), self.b.mul(column, self.gemm.c.col_stride))

    def _store_sums(self, block: Block, waiting: list[Value]) -> None:
        b, c = self.b, self.gemm.c
        if self.epilogue is not None:
            self.epilogue.finish(waiting[0], block.rows, block.columns, (waiting[1], waiting[2]))
            return
        token = b.typeinfo(waiting[0], tile(c.element, block.rows.size, block.columns.size), "c")
        b.tensor_store(b.gep(c.element, self.c, waiting[1]), token, (0, c.row_stride))

    def _deferred_tile(self, block: Block, i: Value, j: Value, waiting: list[Value]) -> list[Value]:
        """One register tile; its sums are stored by the next one."""
        b = self.b
        row = b.add(block.row, b.mul(i, block.rows.size), "row")
        column = b.add(block.column, b.mul(j, block.columns.size), "col")
        a, rhs = self.a_address(block, i, row), self.b_address(block, j, column)
        if self.epilogue is not None:
            self.epilogue.keep(waiting[0], block.rows, block.columns)
        else:
            self._store_sums(block, waiting)
        sums = self._step(block, self.start(block, (i, j), (row, column)), (a, rhs), const_int(I64, 0))
        begin = 1
        if self.epilogue is not None:
            begin, sums = self._finish_rows(block, sums, (a, rhs), waiting)
        return [self._steps(block, sums, (a, rhs), begin), *self._place(row, column)]

    def total(self, block: Block, start: Value, a: Value, rhs: Value) -> Value:
        """`start` and all products of the sum, in one loop."""
        return self._steps(block, start, (a, rhs), 0)

    def _steps(self, block: Block, sums: Value, operands: tuple[Value, Value], first: int) -> Value:
        """The sums after step `first` of all products and those behind it."""
        steps = self.depth // self.recipe.kstep
        if first == steps:
            return sums
        with self.b.loop(first, steps, carry=[sums], name="k") as loop:
            loop.next(self._step(block, loop.carried[0], operands, loop.index))
        return loop.results[0]

    def _finish_rows(
        self, block: Block, sums: Value, operands: tuple[Value, Value], waiting: list[Value]
    ) -> tuple[int, Value]:
        """Rows of the last tile's epilogue, some with each step of K; gives the first step that is left, and sums."""
        b, height, steps = self.b, block.rows.size, self.depth // self.recipe.kstep - 1
        assert self.epilogue is not None
        place = waiting[1], waiting[2]
        each = next((d for d in range(1, _ROWS_A_STEP + 1) if height % d == 0 and height // d <= steps), 0)
        with b.loop(0, height // (each or 1), carry=[sums] if each else [], name="ke") as loop:
            if each:
                loop.next(self._step(block, loop.carried[0], operands, b.add(loop.index, 1)))
            for number in range(each or 1):
                self.epilogue.row(b.add(b.mul(loop.index, each or 1), number), block.columns, place)
        return (1 + height // each, loop.results[0]) if each else (1, sums)

    def _step(self, block: Block, sums: Value, operands: tuple[Value, Value], number: Value) -> Value:
        """The sums after step `number` of all products."""
        b, recipe = self.b, self.recipe
        if self.terms.count > 1 and not (recipe.pack_a and recipe.pack_b):
            steps = const_int(I64, self.term_depth // recipe.kstep)
            term = b.binary("udiv", number, steps)
            operands = self.term_addresses(block, term, *operands)
            number = b.sub(number, b.mul(steps, term))
        k = b.mul(number, recipe.kstep)
        type_ = tile(self.recipe.accumulator, block.rows.size, block.columns.size)
        lhs, rhs = self.load_a(block, operands[0], k), self.load_b(block, operands[1], k)
        return b.mma(self.recipe.mma, b.typeinfo(sums, type_, "acc"), lhs, rhs, type_)

    # Packing ---------------------------------------------------------------------------------------------------

    def _pack_panel(self, columns: Range, start: Value, j: Value) -> None:
        """Panel `j` of those from column `start` on."""
        b, view = self.b, self.gemm.b
        column = b.add(start, b.mul(j, columns.size))
        source = b.gep(view.element, self.b_in, b.mul(column, view.col_stride))
        panel = self._panel(columns, j)

        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(1, term.index))
            there = b.gep(self.recipe.operand_b, panel, b.mul(term.index, self.term_depth * columns.size))
            pack_panel(self.packing, view, (here, there), columns, self.gemm.k)

    def _pack_across(self, columns: Range, start: Value, panels: Value) -> None:
        """All panels of a block from column `start` on, step of K by step of K: long parts of B's rows are read."""
        b, view, recipe = self.b, self.gemm.b, self.recipe
        source = b.gep(view.element, self.b_in, b.mul(start, view.col_stride))
        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(1, term.index))
            behind = b.mul(term.index, self.term_depth * columns.size)

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
        row = b.add(b.mul(i, rows.size), rows.start)
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
        beyond = b.mul(index, depth * block.columns.size) if recipe.pack_b else self.terms.offset(1, index)
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
        if not self.recipe.pack_b:
            return self.b.gep(self.gemm.b.element, self.b_in, self.b.mul(column, self.gemm.b.col_stride))
        if self.shared is None:
            return self._panel(block.columns, j)
        assert self.panel_b is not None
        return self.b.gep(self.recipe.operand_b, self.panel_b, self.place_of_panel(self.shared, block, column))

    def _panel(self, columns: Range, j: Value) -> Value:
        assert self.panel_b is not None
        return self.b.gep(self.recipe.operand_b, self.panel_b, self.b.mul(j, self.depth * columns.size))

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
            return self.packing.read_b(view, self.b.gep(view.element, base, self.b.mul(k, view.row_stride)), size)
        return self.packing.load_b(self.b.gep(self.recipe.operand_b, base, self.b.mul(k, size)), size)
