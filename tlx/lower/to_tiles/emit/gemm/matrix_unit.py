"""The kernel of a product on a matrix unit, whose tiles are loaded from panels, or from operands in place.

pack A, where its tiles cannot be read in place
for columns in panels of B, nc at a time          jc    a block that stays in the second-level cache
  for each panel                                  jr
    pack it, multiply the first row tile          packing fills the pipeline's gaps between tile products
  for each further row tile, for each panel       t; ir, jr where no sums wait
    acc = 0 | Acc
    for k: acc += A[tile, k] @ B[k, panel]        two loads of A, two of B, four products
    C[tile, panel] = f(acc)

Where only one row tile uses B, each step of it is packed right before it is multiplied, always to the same lines of L1:
16x1024x1024 of bytes takes 0.78 of the time (Emerald Rapids).

All tiles have one shape. The function configures the unit once and makes no call in between. No loop that carries sums
is directly inside another one: LLVM's code generation at -O0 crashes on a phi of tiles whose operand is a phi.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.module import STREAMING
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.to_tiles.emit.copy import in_chunks
from tlx.lower.to_tiles.emit.gemm.k_loop import CacheBlock, KPass
from tlx.lower.to_tiles.emit.gemm.loop_nest import GemmKernel
from tlx.lower.to_tiles.emit.gemm.register_tile import epilogue_needs_scratch
from tlx.lower.to_tiles.emit.kernel import Scratch, if_block, may_alias_leaf, tile
from tlx.lower.to_tiles.pack.panels import load_vnni, load_vnni_tiles
from tlx.lower.to_tiles.parallel.tile_range import loop_over_blocks
from tlx.lower.to_tiles.prefetch.policy import L2_LOCALITY
from tlx.lower.to_tiles.prefetch.streams import PrefetchStream
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.cost import packs_by_steps
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, padded_tiles, round_up
from tlx.target.target import Target

_ROWS_A_STEP: Final = 8
"""Most rows of an epilogue that a step of K computes; with too few steps for that, they have a loop of their own."""

_ROWS_PAST: Final = 4
"""Rows of a tile of sums that non-temporal stores write at a time."""


class MatrixUnitPanels(GemmKernel):
    """The part of a matrix unit's kernel that packs, and computes the addresses of tiles.

    Attributes:
        term_depth: Positions of K in a product of the sum, rounded up to whole steps.
        depth: Positions of K in a panel, over all products of the sum.
        steps: Steps of K; crossed products share theirs.
        passing: A buffer for a tile of sums, from which non-temporal stores copy them.
        by_steps: Whether a step of B is packed right before it is multiplied, into the same place each time.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        super().__init__(b, gemm, recipe, target)
        assert target.matrix is not None
        self.term_depth = round_up(gemm.k, recipe.tile.kstep)
        self.depth = self.term_depth * self.terms.count
        self.steps = self.depth // gemm.products_per_operand // recipe.tile.kstep
        self._near_bytes, self._far_pitch = target.caches.l1, target.caches.far_pitch
        self.passing: Value | None = None
        self.by_steps = packs_by_steps(gemm, recipe)
        self._mark_of_b = STREAMING if recipe.prefetch.b_bypasses_l1 else ""

    def make_buffers(self, scratch: Scratch) -> None:
        """Reserve and make the panels and the tile that the kernel needs."""
        recipe = self.recipe
        if recipe.packing.b and not recipe.packing.prepacked_b:
            step = recipe.tile.kstep * recipe.tile.nr
            panels = self.held * self.depth
            scratch.reserve(recipe.mma.operand_b, step if self.by_steps else panels)
        if recipe.packing.a:
            scratch.reserve(recipe.mma.operand_a, self.depth * self._height_of_a())
        through = self.epilogue is not None and epilogue_needs_scratch(self.epilogue.expression, recipe)
        if through or recipe.stores.nontemporal:
            scratch.reserve(recipe.mma.accumulator, recipe.tile.mr * recipe.tile.nr)
        if self.partial:
            self.partial.reserve(scratch)
        made = iter(scratch.allocate(self.b))
        if recipe.packing.b and not recipe.packing.prepacked_b:
            self.panel_b = next(made)
        if recipe.packing.a:
            self.panel_a = next(made)
        if self.epilogue is not None and through:
            self.epilogue.tile = next(made)
        elif recipe.stores.nontemporal:
            self.passing = next(made)
        if self.partial:
            self.partial.memory = next(made)

    @property
    def _packs_all_of_a(self) -> bool:
        return self.recipe.blocks.mc >= self.gemm.m

    def _height_of_a(self) -> int:
        return sum(r.count * r.size for r in self.rows) if self._packs_all_of_a else self.recipe.tile.mr

    def at_a_time(self, columns: EqualTiles) -> int:
        """Panels of a range that a block has, all held packed unless `by_steps`."""
        return columns.count if self.by_steps else super().at_a_time(columns)

    def size_of_panels(self, columns: int) -> int:
        """Elements of the panels of so many columns."""
        return self.depth * columns

    @property
    def _b_misses_l1(self) -> bool:
        """Whether B is packed from rows that do not stay in L1, or that are in a page each.

        Few row tiles hide the packing of a panel better behind their products, if the panel, the cache lines that it is
        packed from (twice as many bytes) and A stay in L1.
        """
        view = self.gemm.b
        size = bytes_of(view.element)
        by_rows = self.recipe.packing.b and (view.is_row_major or view.interleave > 1)
        hidden = self._row_tiles < _MANY_TILES and 4 * self.depth * self.recipe.tile.nr * size <= self._near_bytes
        far = view.row_stride * view.interleave * size >= self._far_pitch
        return by_rows and (far or (view.bytes_moved > self._near_bytes and not hidden))

    @property
    def _row_tiles(self) -> int:
        """Row tiles of all heights."""
        return sum(rows.count for rows in self.rows)

    # Packing ---------------------------------------------------------------------------------------------------

    def _pack_panel(self, columns: EqualTiles, start: Value, j: Value) -> None:
        """Pack panel `j`, counted from column `start`."""
        b, view = self.b, self.gemm.b
        column = b.add(start, b.mul(j, columns.size))
        source = b.gep(view.element, self.b_in, b.mul(column, view.col_stride))
        panel = self._panel(columns, j)

        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(1, term.index))
            there = b.gep(self.recipe.mma.operand_b, panel, b.mul(term.index, self._term_of_b(columns)))
            self.packer_b.pack_b(here, there, columns, self.gemm.k)

    def _pack_across(self, columns: EqualTiles, start: Value, panels: Value) -> None:
        """Pack all panels of a block from column `start` on, one step of K at a time, in long runs of B's rows."""
        b, view, recipe = self.b, self.gemm.b, self.recipe
        source = b.gep(view.element, self.b_in, b.mul(start, view.col_stride))
        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(1, term.index))
            behind = b.mul(term.index, self._term_of_b(columns))

            def step(k: Value, depth: int) -> None:
                rows = b.gep(view.element, here, b.mul(k, recipe.tile.kstep * view.row_stride))
                with b.loop(0, panels, name="jp", runs=True) as j:
                    at = b.gep(view.element, rows, b.mul(j.index, columns.size * view.col_stride))
                    to = b.gep(recipe.mma.operand_b, self._panel(columns, j.index), behind)
                    to = b.gep(recipe.mma.operand_b, to, b.mul(k, recipe.tile.kstep * columns.size))
                    self.packer_b.pack_block_of_b(at, to, columns, depth)

            in_chunks(b, self.gemm.k, recipe.tile.kstep, "kp", step)

    def _pack_all_of_a(self) -> None:
        """Pack all row tiles, one after the other."""
        for rows in self.rows:
            with self.b.loop(*self.share.rows.of(self.b, self.rows, rows), name="ip") as i:
                self._pack_row_of_a(rows, i.index, self._panel_number(rows, i.index))

    def _pack_row_of_a(self, rows: EqualTiles, i: Value, number: Value) -> None:
        """Pack one row tile to the place of row tile `number`."""
        b, view = self.b, self.gemm.a
        row = rows.start_of(b, i)
        source = b.gep(view.element, self.a, b.mul(row, view.row_stride))
        assert self.panel_a is not None
        panel = b.gep(self.recipe.mma.operand_a, self.panel_a, b.mul(number, self.recipe.tile.mr * self.depth))

        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(0, term.index))
            there = b.gep(self.recipe.mma.operand_a, panel, b.mul(term.index, self.term_depth * rows.size))
            self.packer_a.pack_a(here, there, rows, self.gemm.k)

    def _panel_number(self, rows: EqualTiles, i: Value) -> Value:
        """How many row tiles precede a row tile in the packed A."""
        if not self._packs_all_of_a:
            return const_int(I64, 0)
        return i if rows is self.rows[0] else const_int(I64, self.rows[0].count)

    def term_addresses(self, block: CacheBlock, index: Value, a: Value, rhs: Value) -> tuple[Value, Value]:
        """Addresses of the operands of a product of the sum, given those of the first product."""
        b, recipe, depth = self.b, self.recipe, self.term_depth
        packed = b.mul(index, depth * block.rows.size)
        a = b.gep(recipe.mma.operand_a, a, packed if recipe.packing.a else self.terms.offset(0, index))
        held = recipe.packing.b and not self.by_steps
        beyond = b.mul(index, self._term_of_b(block.columns)) if held else self.terms.offset(1, index)
        return a, b.gep(recipe.mma.operand_b, rhs, beyond)

    # One register tile -----------------------------------------------------------------------------------------

    def a_address(self, block: CacheBlock, i: Value, row: Value) -> Value:
        """Address of row tile `i`, packed or not."""
        if not self.recipe.packing.a:
            return self.at(self.gemm.a, self.a, row, block.part.start)
        assert self.panel_a is not None
        offset = self.b.mul(self._panel_number(block.rows, i), self.recipe.tile.mr * self.depth)
        return self.b.gep(self.recipe.mma.operand_a, self.panel_a, offset)

    def b_address(self, block: CacheBlock, j: Value, column: Value) -> Value:
        """Address of panel `j` of the block, packed or not."""
        if not self.recipe.packing.b or self.by_steps:
            return self.b.gep(self.gemm.b.element, self.b_in, self.b.mul(column, self.gemm.b.col_stride))
        if self.shared is None:
            return self._panel(block.columns, j)
        assert self.panel_b is not None
        return self.b.gep(self.recipe.mma.operand_b, self.panel_b, self.place_of_panel(self.shared, block, column))

    def _panel(self, columns: EqualTiles, j: Value) -> Value:
        assert self.panel_b is not None
        return self.b.gep(self.recipe.mma.operand_b, self.panel_b, self.b.mul(j, self.depth * columns.size))

    def _term_of_b(self, columns: EqualTiles) -> int:
        """Elements between the packed Bs of consecutive products of the sum."""
        return self.term_depth * columns.size

    def load_a(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The tile's rows of A at position `k`."""
        b, size = self.b, block.rows.size
        if self.recipe.packing.a:
            panel = b.gep(self.recipe.mma.operand_a, base, b.mul(k, size))
            return b.tensor_load(panel, tile(self.recipe.mma.operand_a, size, self.recipe.tile.kstep), None, "a")
        address = b.gep(self.recipe.mma.operand_a, base, k)
        type_ = tile(self.recipe.mma.operand_a, size, self.recipe.tile.kstep)
        return b.tensor_load(address, type_, (0, self.gemm.a.row_stride), "a")

    def load_b(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The panel's columns of B at position `k`."""
        size, view = block.columns.size, self.gemm.b
        if not self.recipe.packing.b:
            place = self.b.gep(view.element, base, self.b.mul(k, view.row_stride))
            return self._load_b_in_place(place, size)
        return self._load_packed_b(self.b.gep(self.recipe.mma.operand_b, base, self.b.mul(k, size)), size)

    def _load_packed_b(self, address: Value, size: int) -> Value:
        """One step of K, and `size` columns, of a panel of B."""
        return self._load_tiles_of_b(address, size, 0)

    def _load_b_in_place(self, address: Value, size: int) -> Value:
        """One step of K, and `size` columns, of interleaved rows of B in place."""
        view, mma = self.gemm.b, self.recipe.mma
        if view.in_strips:
            return self._load_tiles_of_b(address, size, view.rows // mma.width)
        shape = self.recipe.tile.kstep, size, mma.width
        return load_vnni(self.b, mma.operand_b, address, shape, columns=view.row_stride, mark=self._mark_of_b)

    def _load_tiles_of_b(self, address: Value, size: int, lines: int) -> Value:
        mma, shape = self.recipe.mma, (self.recipe.tile.kstep, size, self.recipe.mma.width)
        return load_vnni_tiles(self.b, mma.operand_b, address, shape, self.packing_b.tile, lines, self._mark_of_b)

    def packed_step(self, block: CacheBlock, base: Value, k: Value, depth: int) -> Value:
        """The panel's columns of B at `depth` positions from `k` on, packed immediately before."""
        view = self.gemm.b
        assert self.panel_b is not None
        rows = self.b.gep(view.element, base, self.b.mul(k, view.row_stride))
        self.packer_b.pack_block_of_b(rows, self.panel_b, block.columns, depth)
        return self._load_packed_b(self.panel_b, block.columns.size)


class MatrixUnitKernel(MatrixUnitPanels):
    """Emits one kernel for a matrix unit."""

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        super().__init__(b, gemm, recipe, target)
        self.whole = KPass(const_int(I64, 0), gemm.k, first=True)

    # Loops -----------------------------------------------------------------------------------------------------

    def passes(self, parts: EqualTiles) -> None:
        """All of K at once."""
        del parts
        if self.recipe.packing.a and self._packs_all_of_a:
            self._pack_all_of_a()
        if self._goes_by_rows:
            self._row_by_row()
            return
        for columns in self.columns:
            self.column_blocks(columns, self.whole)

    @property
    def _goes_by_rows(self) -> bool:
        """Whether each row tile is multiplied by all panels before the next one: A is read once, B stays in cache."""
        recipe = self.recipe
        in_place = not recipe.packing.b and not recipe.packing.prepacked_b and recipe.blocks.nc >= self.gemm.n
        return in_place and len(self.columns) > 1 and not self._is_shared

    def _panels_by_row_tile(self) -> int:
        """How many panels a row tile is multiplied by before the next row tile."""
        counts = [self.at_a_time(columns) for columns in self.columns]
        return sum(counts) if self._goes_by_rows else max(counts)

    def _row_by_row(self) -> None:
        """All row tiles, each by the panels of all widths."""
        b, none = self.b, const_int(I64, 0)
        for rows in self.rows:
            with b.loop(0, rows.count, name="ir") as i:
                self._pack_row(rows, i.index)
                for columns in self.columns:
                    place = const_int(I64, columns.start), const_int(I64, columns.count)
                    block = CacheBlock(self.whole, columns, *place, rows, const_int(I64, rows.start), none)
                    self._panels(block, i.index, [], packs=False)

    def column_blocks(self, columns: EqualTiles, part: KPass) -> None:
        """Some panels at a time: pack them during the products of the first row tile, then multiply the others."""
        b, step = self.b, self.at_a_time(columns)
        with loop_over_blocks(b, self.share.columns.of(b, self.columns, columns), step, "jc") as (first, panels):
            column = columns.start_of(b, first)
            ahead = self._is_shared or (step > 1 and self._b_misses_l1)
            packs = self.recipe.packing.b and not self.recipe.packing.prepacked_b and not self.by_steps
            if packs and ahead:
                self.find_panels(columns)
                with self.unless_packed():
                    self._pack_ahead(columns, column, panels)
            for number, rows in enumerate(self.rows):
                block = CacheBlock(part, columns, column, panels, rows, const_int(I64, rows.start), const_int(I64, 1))
                self._rows(block, packs=number == 0 and packs and not ahead)

    def _pack_ahead(self, columns: EqualTiles, column: Value, panels: Value) -> None:
        """Pack the panels of a block from a column on before anything is multiplied."""
        if self._b_misses_l1:
            self._pack_across(columns, column, panels)
            return
        with self.b.loop(0, panels, name="jp", runs=True) as j:
            self._pack_panel(columns, column, j.index)

    @property
    def _is_shared(self) -> bool:
        """Whether a call works on some of the row tiles."""
        return self.share.rows.first is not None

    def _rows(self, block: CacheBlock, *, packs: bool) -> None:
        """All row tiles of one height; the first packs the panels, if they are not packed yet."""
        b, none = self.b, const_int(I64, 0)
        first, last = self.share.rows.of(b, self.rows, block.rows)
        if isinstance(first, Value) and isinstance(last, Value) and self._defers_rows(block):
            self._some_rows(block, first, last)
            return
        apart = not packs and (block.rows.count > 1 or _several(block.panels))
        waiting, begin = self._begin(block, none, apart=apart) if self._defers_rows(block) else ([], none)
        if packs:
            waiting = self._row(block, none, waiting, packs=True)
            first, begin = 1, block.panels
        if waiting:
            done = packs and block.rows.count == 1
            rows = none, const_int(I64, block.rows.count)
            self._store_sums(block, waiting if done else self._tiles(block, rows, begin, waiting))
        elif isinstance(last, Value) or last > int(packs):
            with b.loop(first, last, name="ir") as i:
                self._row(block, i.index, [], packs=False)

    def _some_rows(self, block: CacheBlock, first: Value, last: Value) -> None:
        """The row tiles of a half-open range, which may be empty, by panels that are packed."""
        b = self.b
        with if_block(b, b.icmp("slt", first, last), "rows"):
            waiting, begin = self._begin(block, first, apart=False)
            self._store_sums(block, self._tiles(block, (first, b.sub(last, first)), begin, waiting))

    def _row(self, block: CacheBlock, i: Value, waiting: list[Value], *, packs: bool) -> list[Value]:
        """One row tile, packed if it must be, by all panels of the block; returns the sums that are not stored yet."""
        self._pack_row(block.rows, i)
        return self._panels(block, i, waiting, packs=packs)

    def _pack_row(self, rows: EqualTiles, i: Value) -> None:
        """Pack a row tile of A, if it must be and is not yet."""
        if self.recipe.packing.a and not self._packs_all_of_a:
            self._pack_row_of_a(rows, i, const_int(I64, 0))

    def _panels(self, block: CacheBlock, i: Value, waiting: list[Value], *, packs: bool) -> list[Value]:
        """One row tile by all panels of the block."""
        alone, begin = self._defers(block) and block.columns.count > 1 and not waiting, const_int(I64, 0)
        if alone:
            waiting, begin = self._begin(block, i, apart=not packs and _several(block.panels))
        with self.b.loop(begin, block.panels, name="jr", runs=True, carry=waiting) as j:
            if packs:
                self._pack_panel(block.columns, block.column, j.index)
            if waiting:
                j.next(*self._deferred_tile(block, i, j.index, j.carried))
            else:
                self.tile(block, i, j.index)
        if alone:
            self._store_sums(block, j.results)
        return [] if alone else j.results

    def _tiles(self, block: CacheBlock, rows: tuple[Value, Value], begin: Value, waiting: list[Value]) -> list[Value]:
        """All tiles from number `begin` on of a range of row tiles, in one loop; returns the sums that still wait."""
        b, (first, count) = self.b, rows
        with b.loop(begin, b.mul(block.panels, count), name="t", runs=True, carry=waiting) as loop:
            row = b.binary("udiv", loop.index, block.panels)
            j = b.sub(loop.index, b.mul(block.panels, row))
            loop.next(*self._deferred_tile(block, b.add(first, row), j, loop.carried))
        return loop.results

    # Sums that are stored while the next ones start ------------------------------------------------------------

    def _defers(self, block: CacheBlock) -> bool:
        """Whether several tiles follow each other, and storing initial sums at the first one's place does no harm."""
        several = (block.rows.count > 1 or block.columns.count > 1) and not self.recipe.stores.nontemporal
        direct = self.epilogue is None and self.gemm.c.element == self.recipe.mma.accumulator
        return several and (direct or self._overlaps) and not block.rows.padding and not block.columns.padding

    def _defers_rows(self, block: CacheBlock) -> bool:
        """Whether the sums of a row tile are stored by the next one: nothing is packed in between."""
        return self._defers(block) and (self._packs_all_of_a or not self.recipe.packing.a)

    def _begin(self, block: CacheBlock, i: Value, *, apart: bool) -> tuple[list[Value], Value]:
        """The sums that wait before the loop over the tiles from row tile `i` on, and the loop's first tile.

        The first tile is peeled off the loop where nothing is packed and it is known not to be the last one (`apart`);
        else its initial sums wait, and are stored at its place, which its own sums overwrite later.
        """
        none = const_int(I64, 0)
        if apart and not self.by_steps:
            return self._deferred_tile(block, i, none, []), const_int(I64, 1)
        row = self.b.add(block.row, self.b.mul(i, block.rows.size))
        return [self.start(block, (i, i), (row, block.column)), *self._place(row, block.column)], none

    @property
    def _overlaps(self) -> bool:
        """Whether a tile's epilogue is computed row by row while the next tile is multiplied.

        The first epilogue is then computed on zeros, and its results are overwritten; so no sum may be a divisor.
        """
        gemm = self.gemm
        apart = gemm.epilogue is not None and gemm.acc is None and not may_alias_leaf(gemm.epilogue, gemm.c)
        computes = self.epilogue is not None and not self.epilogue.expression.may_trap
        return apart and computes and self.partial is None

    def _place(self, row: Value, column: Value) -> list[Value]:
        """The values that carry the place of sums while they wait."""
        return [row, column] if self._overlaps else [self._offset(row, column)]

    def _offset(self, row: Value, column: Value) -> Value:
        return self.b.add(self.b.mul(row, self.gemm.c.row_stride), self.b.mul(column, self.gemm.c.col_stride))

    def _store_sums(self, block: CacheBlock, waiting: list[Value]) -> None:
        b, c = self.b, self.gemm.c
        if self.epilogue is not None:
            self.epilogue.finish(waiting[0], block.rows, block.columns, (waiting[1], waiting[2]))
            return
        token = b.typeinfo(waiting[0], tile(c.element, block.rows.size, block.columns.size), "c")
        b.tensor_store(b.gep(c.element, self.c, waiting[1]), token, (0, c.row_stride))

    def _deferred_tile(self, block: CacheBlock, i: Value, j: Value, waiting: list[Value]) -> list[Value]:
        """One register tile; its sums are stored by the next one, and those that wait, if any, by this one."""
        b = self.b
        row = b.add(block.row, b.mul(i, block.rows.size), "row")
        column = b.add(block.column, b.mul(j, block.columns.size), "col")
        a, rhs = self.a_address(block, i, row), self.b_address(block, j, column)
        self.prefetcher.begin_tile(block.rows.count, block.columns.count if waiting else 0, (i, j))
        if self.recipe.prefetch.operands or self.recipe.stores.prefetches_lines:
            self._look_ahead(block, (i, j), (row, column), a)
        if waiting and self.epilogue is not None:
            self.epilogue.keep(waiting[0], block.rows, block.columns)
        elif waiting:
            self._store_sums(block, waiting)
        sums = self._step(block, self.start(block, (i, j), (row, column)), (a, rhs), const_int(I64, 0))
        begin = 1
        if waiting and self.epilogue is not None:
            begin, sums = self._finish_rows(block, sums, (a, rhs), waiting)
        return [self._steps(block, sums, (a, rhs), begin), *self._place(row, column)]

    def finish(self, block: CacheBlock, total: Value, row: Value, column: Value) -> None:
        """Store or finish complete sums. Tile stores are never non-temporal: vector stores of a copy are."""
        if self.passing is None:
            super().finish(block, total, row, column)
            return
        b, c, columns = self.b, self.gemm.c, block.columns
        b.tensor_store(self.passing, b.typeinfo(total, tile(c.element, block.rows.size, columns.size), "sums"))
        for rows in padded_tiles(block.rows.valid, _ROWS_PAST, 1):
            part = tile(c.element, rows.size, columns.size, (rows.padding, columns.padding))
            with b.loop(0, rows.count, name="past") as loop:
                at = rows.start_of(b, loop.index)
                copied = b.gep(c.element, self.passing, b.mul(at, columns.size))
                token = b.tensor_load(copied, part, (0, columns.size), "sums")
                self.stores.store(self.at(c, self.c, b.add(row, at), column), token, c.row_stride)

    def _look_ahead(self, block: CacheBlock, ij: tuple[Value, Value], place: tuple[Value, Value], a: Value) -> None:
        """Set what a tile prefetches: its cache lines of C, and a share of the rows of the next row tile of A."""
        b, gemm, recipe, streams = self.b, self.gemm, self.recipe, list[PrefetchStream]()
        if recipe.stores.prefetches_lines:
            size, each = bytes_of(gemm.c.element), -(-block.rows.valid // self.steps)
            pitch, length = gemm.c.row_stride * size, block.columns.valid * size
            address, none = self.at(gemm.c, self.c, *place), const_int(I64, 0)
            last = (block.rows.valid - each) * pitch
            streams.append(PrefetchStream(address, none, length, each * pitch, last, each, pitch, write=True))
        if recipe.prefetch.operands:
            size, each = bytes_of(gemm.a.element), -(-recipe.tile.mr // self._panels_by_row_tile())
            before = [columns.count for columns in self.columns if columns.start < block.columns.start]
            panel, pitch = b.add(ij[1], sum(before) if self._goes_by_rows else 0), gemm.a.row_stride * size
            offset = b.mul(b.add(b.mul(panel, each), recipe.tile.mr), pitch)
            step = recipe.tile.kstep * size
            streams.append(PrefetchStream(a, offset, 1, step, rows=each, pitch=pitch, locality=L2_LOCALITY))
        self.prefetcher.streams += streams

    def total(self, block: CacheBlock, start: Value, a: Value, rhs: Value) -> Value:
        """`start` and all products of the sum, in one loop."""
        return self._steps(block, start, (a, rhs), 0)

    def _steps(self, block: CacheBlock, sums: Value, operands: tuple[Value, Value], first: int) -> Value:
        """The sums after step `first` of all products and all later steps."""
        alike = self._alike
        if first < alike:
            with self.b.loop(first, alike, carry=[sums], name="k") as loop:
                loop.next(self._step(block, loop.carried[0], operands, loop.index))
            sums = loop.results[0]
        return sums if max(first, alike) == self.steps else self._step(block, sums, operands, const_int(I64, alike))

    @property
    def _alike(self) -> int:
        """Steps of K that the loop covers: all but a partial last one that is packed as it is multiplied."""
        return self.steps - (self.by_steps and self.gemm.k % self.recipe.tile.kstep > 0)

    def _finish_rows(
        self, block: CacheBlock, sums: Value, operands: tuple[Value, Value], waiting: list[Value]
    ) -> tuple[int, Value]:
        """Compute rows of the last tile's epilogue with each step of K; returns the first step left, and the sums."""
        b, height, steps = self.b, block.rows.size, self._alike - 1
        assert self.epilogue is not None
        place = waiting[1], waiting[2]
        each = next((d for d in range(1, _ROWS_A_STEP + 1) if height % d == 0 and height // d <= steps), 0)
        with b.loop(0, height // (each or 1), carry=[sums] if each else [], name="ke") as loop:
            if each:
                loop.next(self._step(block, loop.carried[0], operands, b.add(loop.index, 1)))
            for number in range(each or 1):
                self.epilogue.row(b.add(b.mul(loop.index, each or 1), number), block.columns, place)
        return (1 + height // each, loop.results[0]) if each else (1, sums)

    def _step(self, block: CacheBlock, sums: Value, operands: tuple[Value, Value], number: Value) -> Value:
        """The sums after step `number` of all products; of crossed ones, after that of each."""
        if not self.gemm.all_pairs:
            return self._product(block, sums, operands, number)
        parts = [self.term_addresses(block, const_int(I64, part), *operands) for part in range(self.terms.count)]
        for index, (lhs, _) in enumerate(parts):
            for _, rhs in parts if index % 2 == 0 else reversed(parts):
                sums = self._product(block, sums, (lhs, rhs), number)
        return sums

    def _product(self, block: CacheBlock, sums: Value, operands: tuple[Value, Value], number: Value) -> Value:
        """The sums after a step of a product."""
        b, recipe, step = self.b, self.recipe, number
        if (
            not self.gemm.all_pairs
            and self.terms.count > 1
            and not (recipe.packing.a and recipe.packing.b and not self.by_steps)
        ):
            steps = const_int(I64, self.term_depth // recipe.tile.kstep)
            term = b.binary("udiv", number, steps)
            operands = self.term_addresses(block, term, *operands)
            number = b.sub(number, b.mul(steps, term))
        k = b.mul(number, recipe.tile.kstep)
        type_ = tile(self.recipe.mma.accumulator, block.rows.size, block.columns.size)
        lhs = self.load_a(block, operands[0], k)
        if self.by_steps:
            rest = isinstance(number, ConstInt) and number.value == self._alike
            kstep = recipe.tile.kstep
            rhs = self.packed_step(block, operands[1], k, self.gemm.k % kstep if rest else kstep)
        else:
            rhs = self.load_b(block, operands[1], k)
        if recipe.stores.prefetches_lines:  # among the tile products, not after them
            self.prefetcher.step(step)
        following = b.mma(self.recipe.mma.name, b.typeinfo(sums, type_, "acc"), lhs, rhs, type_)
        if not recipe.stores.prefetches_lines:
            self.prefetcher.step(step)
        return following


def _several(panels: Value) -> bool:
    """Whether a block is known to have more than one panel."""
    return isinstance(panels, ConstInt) and panels.value > 1


_MANY_TILES: Final = 4  # row tiles, of which the first can hide little of the packing
