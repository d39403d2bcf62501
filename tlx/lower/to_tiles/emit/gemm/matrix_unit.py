"""The kernel of a product on a matrix unit, whose tiles are loaded from panels or from operands in place.

pack A, where its tiles cannot be read in place
for columns in panels of B, nc at a time          jc    a block that stays in the second-level cache
  for each panel                                  jr
    pack it, multiply the first row tile          packing fills the pipeline's gaps between tile products
  for each further row tile, for each panel       t; ir, jr where no sums are pending
    acc = 0 | Acc
    for k: acc += A[tile, k] @ B[k, panel]        two loads of A, two of B, four products
    C[tile, panel] = f(acc)

Where B was packed before all calls, blocks of it pass through the second-level cache instead, and a block of rows of A
stays there:

for rows of A, mc at a time                       ic    a block that stays in the second-level cache
  for columns in panels of B, nc at a time        jc    the next block is prefetched while this one is multiplied
    for each row tile, for each panel             t

Where only one row tile uses B, each step of B is packed right before it is multiplied, always to the same lines of L1:
16x1024x1024 of bytes takes 0.78 of the time (Emerald Rapids).

The sums of a tile may be stored while the next tile starts; until then they are pending. Where a product has an
epilogue, each step of K of the next tile computes some rows of the pending epilogue.

All tiles have one shape. The function configures the unit once and makes no call in between. No loop that carries sums
is directly inside another one: LLVM's code generation at -O0 crashes on a phi of tiles whose operand is a phi.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.module import STREAMING
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I64, VectorType, bytes_of
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.to_tiles.emit.copy import blocked_loop
from tlx.lower.to_tiles.emit.gemm.epilogue import TileEpilogue
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction, KPass
from tlx.lower.to_tiles.emit.gemm.operands import Operands
from tlx.lower.to_tiles.emit.gemm.register_tile import RegisterTile
from tlx.lower.to_tiles.emit.kernel import AxisBounds, Scratch, loop_over_blocks
from tlx.lower.to_tiles.emit.tiles import tile
from tlx.lower.to_tiles.expression import may_alias_leaf
from tlx.lower.to_tiles.pack.panels import column_sums, load_vnni
from tlx.lower.to_tiles.prefetch import L2_LOCALITY, Prefetcher, PrefetchStream
from tlx.lower.to_tiles.select.recipe import EqualTiles, round_up
from tlx.lower.to_tiles.select.recipe_cost import packs_by_steps

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
        far = view.row_stride * view.interleave * size >= caches.far_pitch
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
        """Pack all panels of a block from column `start` on, a step of K at a time, to read long runs of B's rows."""
        b, view, recipe = self.b, self.gemm.b, self.recipe
        source = b.gep(view.element, self.function.rhs, b.mul(start, view.col_stride))
        with self.terms.loop() as term:
            here = b.gep(view.element, source, self.terms.offset(1, term.index))
            offset = b.mul(term.index, self.term_depth * columns.size)

            def step(k: Value, depth: int) -> None:
                rows = b.gep(view.element, here, b.mul(k, recipe.tile.kstep * view.row_stride))
                with b.loop(0, panels, name="jp", nonempty=True) as j:
                    at = b.gep(view.element, rows, b.mul(j.index, columns.size * view.col_stride))
                    to = b.gep(recipe.mma.operand_b, self._panel(columns, j.index), offset)
                    to = b.gep(recipe.mma.operand_b, to, b.mul(k, recipe.tile.kstep * columns.size))
                    self.packer_b.pack_block_of_b(at, to, columns, depth)

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
            return self.function.at(self.gemm.a, self.function.a, row, block.part.start)
        offset = self.b.mul(self._panel_number(block.rows, i), self.recipe.tile.mr * self.depth)
        return self.b.gep(self.recipe.mma.operand_a, self.panel_a.pointer, offset)

    def b_address(self, block: CacheBlock, j: Value, column: Value) -> Value:
        """Address of panel `j` of the block, packed or not."""
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
            place = self.b.gep(view.element, base, self.b.mul(k, view.row_stride))
            return self._load_b_in_place(place, size)
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


_MOST_GROUPS_PER_STEP: Final = 4
"""Most groups of rows of an epilogue that a step of K computes; with too few steps, the rows have a separate loop."""

_ROWS_AT_ONCE: Final = 2
"""Rows of an epilogue whose instructions alternate, so that few of them wait for the one before.

A processor looks ahead over about a hundred instructions that wait, less than one row of GELU has. Two rows at once are
1.08 (exact GELU, whose values then do not all fit the registers) to 1.19 times as fast as one, with the product of
512x3072x768 or 1024x3072x768 bfloats (Xeon 6/207/2, best of alternated calls, 2026-11-29).
"""


class MatrixUnitKLoop:
    """Emits the sum over K of a register tile on a matrix unit.

    Attributes:
        function: The kernel's function.
        operands: Packs and loads the operands.
        prefetcher: Emits prefetches among the steps.
        full_steps: Steps of K that the loop covers: all but a partial last one that is packed as it is multiplied.
    """

    def __init__(self, function: GemmFunction, operands: MatrixUnitOperands, prefetcher: Prefetcher) -> None:
        self.function, self.operands, self.prefetcher = function, operands, prefetcher
        self.b, self.gemm, self.recipe = function.b, function.gemm, function.recipe
        partial = operands.packs_by_steps and self.gemm.k % self.recipe.tile.kstep > 0
        self.full_steps = operands.steps - partial

    def total(self, block: CacheBlock, sums: Value, bases: tuple[Value, Value], first: int = 0) -> Value:
        """The sums after all steps from step `first` on, from the addresses of the first term's operands."""
        if first < self.full_steps:
            with self.b.loop(first, self.full_steps, carry=[sums], name="k") as loop:
                loop.next(self.step(block, loop.carried[0], bases, loop.index))
            sums = loop.results[0]
        if max(first, self.full_steps) == self.operands.steps:
            return sums
        return self.step(block, sums, bases, const_int(I64, self.full_steps))

    def step(self, block: CacheBlock, sums: Value, bases: tuple[Value, Value], number: Value) -> Value:
        """The sums after a step of K: of its product or, where all pairs are multiplied, of every product."""
        if not self.gemm.all_pairs:
            return self._product(block, sums, bases, number)
        count = self.operands.terms.count
        terms = [self.operands.term_addresses(block, const_int(I64, term), *bases) for term in range(count)]
        for index, (lhs, _) in enumerate(terms):
            for _, rhs in terms if index % 2 == 0 else reversed(terms):
                sums = self._product(block, sums, (lhs, rhs), number)
        return sums

    def _product(self, block: CacheBlock, sums: Value, bases: tuple[Value, Value], number: Value) -> Value:
        """The sums after a step of a product."""
        b, recipe, operands, step = self.b, self.recipe, self.operands, number
        kstep, by_steps = recipe.tile.kstep, operands.packs_by_steps
        are_adjacent = recipe.packing.a and recipe.packing.b and not by_steps
        if not self.gemm.all_pairs and operands.terms.count > 1 and not are_adjacent:
            steps = const_int(I64, operands.term_depth // kstep)
            term = b.binary("udiv", number, steps)
            bases = operands.term_addresses(block, term, *bases)
            number = b.sub(number, b.mul(steps, term))
        k = b.mul(number, kstep)
        type_ = tile(recipe.mma.accumulator, block.rows.size, block.columns.size)
        lhs = operands.load_a(block, bases[0], k)
        if by_steps:
            is_partial = isinstance(number, ConstInt) and number.value == self.full_steps
            rhs = operands.packed_step(block, bases[1], k, self.gemm.k % kstep if is_partial else kstep)
        else:
            rhs = operands.load_b(block, bases[1], k)
        if recipe.stores.prefetches_lines:  # among the tile products, not after them
            self.prefetcher.step(step)
        following = b.mma(recipe.mma.name, b.typeinfo(sums, type_, "acc"), lhs, rhs, type_)
        if not recipe.stores.prefetches_lines:
            self.prefetcher.step(step)
        return following


class PendingSums:
    """Emits tiles whose sums are stored while the next tile starts, and are pending until then.

    Attributes:
        function: The kernel's function.
        tile: Emits the register tiles.
        k_loop: Emits their sums over K.
        overlaps: Whether a tile's epilogue is computed row by row while the next tile is multiplied.
        peels: Whether the first tile is always peeled off the loop over the tiles. Otherwise the first epilogue may be
            computed on zeros, and its results are overwritten; so no sum may be a divisor, and C no operand.
    """

    def __init__(self, function: GemmFunction, tile: RegisterTile, k_loop: MatrixUnitKLoop) -> None:
        self.function, self.tile, self.k_loop = function, tile, k_loop
        self.b, gemm = function.b, function.gemm
        expression = tile.epilogue.expression if tile.epilogue is not None else None
        self.overlaps = expression is not None and gemm.acc is None and tile.partial is None
        self.peels = expression is not None and (may_alias_leaf(expression, gemm.c) or expression.may_trap)

    def is_profitable(self, block: CacheBlock) -> bool:
        """Whether there are several tiles, and the initial sums of the first may be stored before its final sums."""
        gemm, recipe = self.function.gemm, self.function.recipe
        several = (block.rows.count > 1 or block.columns.count > 1) and not recipe.stores.nontemporal
        direct = self.tile.epilogue is None and gemm.c.element == recipe.mma.accumulator
        starts = not (self.peels and self.k_loop.operands.packs_by_steps)
        return several and (direct or self.overlaps) and starts and not block.rows.padding and not block.columns.padding

    def begin(self, block: CacheBlock, i: Value, *, packs: bool | Value, follows: bool) -> tuple[list[Value], Value]:
        """The pending sums before the loop over the tiles from row tile `i` on, and the number of its first tile.

        The first tile is peeled off the loop if it must be (`peels`), or if other tiles follow and storing its initial
        sums does not pay off: nothing is packed, or they are a tensor's elements, which would only be copied. Otherwise
        its initial sums are pending: they are stored to C, and its final sums overwrite them later.

        Args:
            block: The block.
            i: The row tile.
            packs: Whether the row tile packs the panels; a value if that is known at run time.
            follows: Whether the first tile is known not to be the only one.
        """
        none = const_int(I64, 0)
        accumulates = self.function.gemm.acc is not None and isinstance(block.panels, ConstInt)
        by_steps = self.k_loop.operands.packs_by_steps
        if self.peels or (follows and (packs is not True or accumulates) and not by_steps):
            self.k_loop.operands.pack_panel(block.columns, block.column, none, packs)
            return self.emit_tile(block, i, none, []), const_int(I64, 1)
        row = self.b.add(block.row, self.b.mul(i, block.rows.size))
        start = self.tile.uncorrected_start(block, (row, block.column))
        return [start, *self._place(row, block.column)], none

    def _place(self, row: Value, column: Value) -> list[Value]:
        """The place of pending sums, as loops carry it: row and column for an epilogue, else an offset in C."""
        if self.overlaps:
            return [row, column]
        b, c = self.b, self.function.gemm.c
        return [b.add(b.mul(row, c.row_stride), b.mul(column, c.col_stride))]

    def store(self, block: CacheBlock, pending: list[Value]) -> None:
        """Store what is pending."""
        b, c, epilogue = self.b, self.function.gemm.c, self.tile.epilogue
        if epilogue is not None:
            epilogue.finish(pending[0], block.rows, block.columns, (pending[1], pending[2]))
            return
        token = b.typeinfo(pending[0], tile(c.element, block.rows.size, block.columns.size), "c")
        b.tensor_store(b.gep(c.element, self.function.c, pending[1]), token, (0, c.row_stride))

    def emit_tile(self, block: CacheBlock, i: Value, j: Value, pending: list[Value]) -> list[Value]:
        """Emit one register tile, which first stores the pending sums, if any; returns its own sums and their place."""
        register_tile, epilogue, none = self.tile, self.tile.epilogue, const_int(I64, 0)
        place = register_tile.place(block, i, j)
        operands = self.k_loop.operands
        bases = operands.a_address(block, i, place[0]), operands.b_address(block, j, place[1])
        register_tile.begin_prefetches(block, (i, j), place, bases[0], block.columns.count if pending else 0)
        if self.overlaps and epilogue is not None:
            register_tile.prefetcher.streams += epilogue.prefetches(block.rows, block.columns, place, operands.steps)
        if pending and epilogue is not None:
            epilogue.store_sums(pending[0], block.rows, block.columns)
        elif pending:
            self.store(block, pending)
        sums = self.k_loop.step(block, register_tile.start(block, (i, j), place), bases, none)
        first = 1
        if pending and epilogue is not None:
            first, sums = self._finish_rows(epilogue, block, sums, bases, pending)
        return [self.k_loop.total(block, sums, bases, first), *self._place(*place)]

    def _finish_rows(
        self, epilogue: TileEpilogue, block: CacheBlock, sums: Value, bases: tuple[Value, Value], pending: list[Value]
    ) -> tuple[int, Value]:
        """Compute rows of the previous tile's epilogue among steps of K; returns the next step, and the sums."""
        b, height = self.b, block.rows.size
        together = _ROWS_AT_ONCE if height % _ROWS_AT_ONCE == 0 else 1
        shares = epilogue_shares(
            height // together, self.k_loop.full_steps - 1, self._relative_cost(epilogue, together)
        )
        known = epilogue.row_invariants(together, block.columns, (pending[1], pending[2]))
        done, step = 0, 1
        for share in shares:
            with b.loop(0, share.count, name="ke", carry=[sums] if share.steps else []) as loop:
                total = loop.carried[0] if share.steps else sums
                for index in range(max(share.steps, share.groups)):
                    if index < share.steps:
                        number = b.add(b.mul(loop.index, share.steps), step + index)
                        total = self.k_loop.step(block, total, bases, number)
                    if index < share.groups:
                        group = b.add(b.mul(loop.index, share.groups), done + index)
                        epilogue.compute_rows(
                            b.mul(group, together), together, block.columns, (pending[1], pending[2]), known
                        )
                if share.steps:
                    loop.next(total)
            sums = loop.results[0] if share.steps else sums
            done, step = done + share.count * share.groups, step + share.count * share.steps
        return step, sums

    def _relative_cost(self, epilogue: TileEpilogue, rows: int) -> float:
        """Cycles of the epilogue of some rows divided by those of a step of K, if nothing waits."""
        mma, target, tile = self.function.recipe.mma, self.function.target, self.function.recipe.tile
        matrix = target.matrix
        assert matrix is not None
        kind = matrix.kind_for(str(mma.operand_a), str(mma.accumulator))
        products = (tile.mr // tile.unit_rows) * (tile.nr // kind.columns)
        instructions = epilogue.expression.cost * rows * -(-tile.nr // epilogue.lanes)
        return instructions / target.core.products / (products * kind.cycles)


@dataclass(frozen=True, slots=True)
class EpilogueShare:
    """A loop that computes rows of an epilogue among steps of K.

    Attributes:
        steps: Steps of K in an iteration.
        groups: Groups of rows in an iteration.
        count: Iterations.
    """

    steps: int
    groups: int
    count: int


_LONG: Final = 0.5
"""Time of a group of rows, in steps of K, from which on more steps hide it better than one."""


def epilogue_shares(groups: int, steps: int, cost: float) -> list[EpilogueShare]:
    """The loops that compute an epilogue's groups of rows among the steps of K: as evenly as two loops can.

        16 groups, 23 steps     short      16 x (1 step, 1 group), and 7 steps without
                                long        7 x (3 steps, 2 groups), 2 x (1 step, 1 group)
        16 groups, 26 steps     long        6 x (3 steps, 2 groups), 4 x (2 steps, 1 group)
        16 groups, 11 steps     short       5 x (1 step, 2 groups), 6 x (1 step, 1 group)
                                long       11 x (1 step, 1 group), and 5 groups without

    Args:
        groups: Groups of rows.
        steps: Steps of K beside which they may be computed.
        cost: Time of a group, in steps of K.

    Returns:
        The loops; one without steps, if there are too few.
    """
    if groups > steps * _MOST_GROUPS_PER_STEP:
        return [EpilogueShare(0, 1, groups)]
    if steps < groups:
        each, more = divmod(groups, steps)
        shares = [EpilogueShare(1, each + 1, more), EpilogueShare(1, each, steps - more)]
        if cost * each > 1:  # the groups take longer than all steps, so that some may do without: less code
            shares = [EpilogueShare(1, each, steps), EpilogueShare(0, 1, more)]
    else:
        spare = min(groups, steps - groups) if cost > _LONG else 0
        paired = min(spare, groups - spare)
        doubled = spare - paired
        shares = [
            EpilogueShare(3, 2, paired),
            EpilogueShare(2, 1, doubled),
            EpilogueShare(1, 1, groups - 2 * paired - doubled),
        ]
    return [share for share in shares if share.count]


class RowBlock:
    """A block of rows of A, which stays in the second-level cache while all of B is read.

    Attributes:
        total: All row tiles.
        most: Row tiles of a block; all of them unless B is prefetched and A is larger than the cache.
        tiles: Row tiles of the block that is being multiplied.
    """

    def __init__(self, function: GemmFunction) -> None:
        recipe = function.recipe
        self.total = sum(rows.count for rows in function.rows)
        blocked = "B" in recipe.prefetch.operands and recipe.blocks.mc < function.gemm.m
        self.most = recipe.blocks.mc // recipe.tile.mr if blocked else self.total
        self.tiles = function.share.rows

    @contextmanager
    def loop(self, b: TensorBuilder) -> Generator[None]:
        """A loop over the blocks, if there are several."""
        if self.most >= self.total:
            yield
            return
        bounds = self.tiles.first or const_int(I64, 0), self.tiles.last or const_int(I64, self.total)
        with loop_over_blocks(b, bounds, self.most, "ic") as (first, tiles):
            self.tiles = AxisBounds(first, b.add(first, tiles))
            yield


class TilePrefetch:
    """Sets what a tile prefetches: cache lines of C, a share of the next block of B, rows of the next row tile of A.

    Attributes:
        function: The kernel's function.
        operands: Packs the operands.
        prefetcher: Emits the prefetches.
        row_block: The block of rows that the tile is in.
        by_rows: Whether a row tile is multiplied by the panels of all widths before the next one starts.
    """

    def __init__(
        self,
        function: GemmFunction,
        operands: MatrixUnitOperands,
        prefetcher: Prefetcher,
        row_block: RowBlock,
        *,
        by_rows: bool,
    ) -> None:
        self.function, self.operands, self.prefetcher = function, operands, prefetcher
        self.row_block, self.by_rows = row_block, by_rows

    def begin_tile(self, block: CacheBlock, ij: tuple[Value, Value], place: tuple[Value, Value], a: Value) -> None:
        """Begin a tile; arguments as those of `BeginTile`."""
        b, gemm, recipe, ranges = self.function.b, self.function.gemm, self.function.recipe, self.function.columns
        if recipe.stores.prefetches_lines:
            size, each = bytes_of(gemm.c.element), -(-block.rows.valid // self.operands.steps)
            pitch, length = gemm.c.row_stride * size, block.columns.valid * size
            address, none = self.function.at(gemm.c, self.function.c, *place), const_int(I64, 0)
            last = (block.rows.valid - each) * pitch
            lines = PrefetchStream(address, none, length, each * pitch, last, each, pitch, write=True)
            self.prefetcher.streams.append(lines)
        if "B" in recipe.prefetch.operands:
            self.prefetcher.streams.append(self._next_panels(block, ij))
        if "A" in recipe.prefetch.operands:
            counts = [self.operands.at_a_time(columns) for columns in ranges]  # panels between two row tiles
            size, each = bytes_of(gemm.a.element), -(-recipe.tile.mr // (sum(counts) if self.by_rows else max(counts)))
            before = [columns.count for columns in ranges if columns.start < block.columns.start]
            panel, pitch = b.add(ij[1], sum(before) if self.by_rows else 0), gemm.a.row_stride * size
            offset = b.mul(b.add(b.mul(panel, each), recipe.tile.mr), pitch)
            step = recipe.tile.kstep * size
            rows = PrefetchStream(a, offset, 1, step, rows=each, pitch=pitch, locality=L2_LOCALITY)
            self.prefetcher.streams.append(rows)

    def _next_panels(self, block: CacheBlock, ij: tuple[Value, Value]) -> PrefetchStream:
        """What a tile prefetches of the next block of B: all tiles of a block together prefetch as many panels."""
        function, (i, j) = self.function, ij
        b, recipe, steps = function.b, function.recipe, self.operands.steps
        before = sum(rows.count for rows in function.rows if rows.start < block.rows.start)
        step = recipe.tile.kstep * block.columns.size * bytes_of(recipe.mma.operand_b)
        each = step // self.row_block.most
        row = b.sub(b.add(i, before), self.row_block.tiles.first or const_int(I64, 0))
        tile = b.add(b.mul(row, block.panels), j)
        ahead = b.add(b.mul(block.panels, step * steps), b.mul(tile, each * steps))
        first = self.operands.b_address(block, const_int(I64, 0), block.column)
        return PrefetchStream(first, ahead, each, each, locality=L2_LOCALITY)


class MatrixUnitLoopNest:
    """Emits the loops around the register tiles of a kernel on a matrix unit.

    Attributes:
        function: The kernel's function.
        operands: Packs the operands.
        prefetcher: Emits the prefetches.
        tile: Emits the register tiles.
        pending: Emits the tiles whose sums are stored while the next tile starts.
        by_rows: Whether each row tile is multiplied by all panels before the next one: A is read once, and B stays in
            cache.
    """

    def __init__(self, function: GemmFunction) -> None:
        self.function = function
        self.b, self.gemm, self.recipe = function.b, function.gemm, function.recipe
        self.operands = MatrixUnitOperands(function)
        self.prefetcher = Prefetcher(function)
        self._packs_row_tiles = self.recipe.packing.a and not self.operands.packs_all_of_a
        self.row_block = RowBlock(function)
        self._is_part = function.share.rows.first is not None  # a call computes some of the row tiles
        in_place = not self.recipe.packing.b and not self.recipe.packing.prepacked_b
        one_block = self.recipe.blocks.nc >= self.gemm.n and len(function.columns) > 1
        self.by_rows = in_place and one_block and not self._is_part
        k_loop = MatrixUnitKLoop(function, self.operands, self.prefetcher)
        ahead = TilePrefetch(function, self.operands, self.prefetcher, self.row_block, by_rows=self.by_rows)
        self.tile = RegisterTile(function, self.operands, k_loop.total, self.prefetcher, ahead.begin_tile)
        self.pending = PendingSums(function, self.tile, k_loop)

    def reserve(self, scratch: Scratch) -> None:
        """Reserve the buffers that the kernel needs."""
        self.operands.reserve(scratch)
        self.tile.reserve(scratch)

    def emit(self) -> None:
        """Emit all loops, with a single pass over K."""
        if self.operands.packs_all_of_a:
            self.operands.pack_all_of_a()
        whole = KPass(const_int(I64, 0), self.gemm.k, first=True, last=True)
        if self.by_rows:
            self._row_by_row(whole)
            return
        with self.row_block.loop(self.b):
            for columns in self.function.columns:
                self._column_blocks(columns, whole)

    def _row_by_row(self, part: KPass) -> None:
        """All row tiles, each by the panels of all widths."""
        b, none = self.b, const_int(I64, 0)
        for rows in self.function.rows:
            with b.loop(0, rows.count, name="ir") as i:
                self._pack_row(rows, i.index)
                for columns in self.function.columns:
                    place = const_int(I64, columns.start), const_int(I64, columns.count)
                    block = CacheBlock(part, columns, *place, rows, const_int(I64, rows.start), none)
                    self._panels(block, i.index, packs=False)

    def _column_blocks(self, columns: EqualTiles, part: KPass) -> None:
        """Some panels at a time: pack them during the products of the first row tile, then multiply the others."""
        b, operands, function = self.b, self.operands, self.function
        step, bounds = operands.at_a_time(columns), function.share.columns.of(b, function.columns, columns)
        with loop_over_blocks(b, bounds, step, "jc") as (first, panels):
            column = columns.start_of(b, first)
            packs_first = self._is_part or (step > 1 and operands.b_misses_l1)
            packs = operands.packs_b and not operands.packs_by_steps
            if packs and packs_first:
                with operands.if_not_packed(columns):
                    operands.pack_block(columns, column, panels)
            for number, rows in enumerate(function.rows):
                block = CacheBlock(part, columns, column, panels, rows, const_int(I64, rows.start), const_int(I64, 1))
                self._rows(block, packs=number == 0 and packs and not packs_first)

    def _rows(self, block: CacheBlock, *, packs: bool) -> None:
        """All row tiles of one height; the first packs the panels, if they are not packed yet."""
        b, none = self.b, const_int(I64, 0)
        defers = self.pending.is_profitable(block) and not self._packs_row_tiles
        first, last = self.row_block.tiles.of(b, self.function.rows, block.rows)
        if isinstance(first, Value) and isinstance(last, Value) and defers:
            with b.if_block(b.icmp("slt", first, last), "rows"):  # the range may be empty
                pending, begin = self.pending.begin(block, first, packs=False, follows=False)
                self.pending.store(block, self._tiles(block, (first, b.sub(last, first)), begin, pending, packs=False))
            return
        if defers:
            follows = block.rows.count > 1 or _has_several_panels(block.panels)
            pending, begin = self.pending.begin(block, none, packs=packs, follows=follows)
            rows = none, const_int(I64, block.rows.count)
            self.pending.store(block, self._tiles(block, rows, begin, pending, packs=packs))
            return
        if isinstance(last, Value) or last > 0:
            with b.loop(first, last, name="ir") as i:
                self._pack_row(block.rows, i.index)
                self._panels(block, i.index, packs=packs and self._is_first(i.index))

    def _is_first(self, row: Value) -> bool | Value:
        """Whether a row tile is number 0."""
        return row == const_int(I64, 0) or (not isinstance(row, ConstInt) and self.b.icmp("eq", row, const_int(I64, 0)))

    def _pack_row(self, rows: EqualTiles, i: Value) -> None:
        """Pack a row tile of A, if row tiles are packed one at a time."""
        if self._packs_row_tiles:
            self.operands.pack_row_of_a(rows, i, const_int(I64, 0))

    def _panels(self, block: CacheBlock, i: Value, *, packs: bool | Value) -> None:
        """One row tile by the panels of the block, which it packs if `packs`."""
        pending: list[Value] = []
        begin: Value = const_int(I64, 0)
        defers = self.pending.is_profitable(block) and block.columns.count > 1
        if defers:
            pending, begin = self.pending.begin(block, i, packs=packs, follows=_has_several_panels(block.panels))
        if begin != block.panels:
            with self.b.loop(begin, block.panels, name="jr", nonempty=self._runs(begin), carry=pending) as j:
                self.operands.pack_panel(block.columns, block.column, j.index, packs)
                if pending:
                    j.next(*self.pending.emit_tile(block, i, j.index, j.carried))
                else:
                    self.tile.emit(block, i, j.index)
            pending = j.results
        if defers:
            self.pending.store(block, pending)

    def _runs(self, begin: Value) -> bool:
        """Whether a loop over tiles from number `begin` on is known to run: none is peeled off, or others follow."""
        return not self.pending.peels or begin == const_int(I64, 0)

    def _tiles(
        self, block: CacheBlock, rows: tuple[Value, Value], begin: Value, pending: list[Value], *, packs: bool
    ) -> list[Value]:
        """All tiles of some row tiles from number `begin` on, in one loop.

        Args:
            block: The block.
            rows: The first row tile, and how many there are.
            begin: Number of the first tile.
            pending: The pending sums.
            packs: Whether the first row tile packs the panels: in the loop over all tiles, whose code is long.

        Returns:
            The pending sums of the last tile.
        """
        b, (first, count) = self.b, rows
        end = b.mul(block.panels, count)
        if begin == end:
            return pending
        with b.loop(begin, end, name="t", nonempty=self._runs(begin), carry=pending) as loop:
            row = b.binary("udiv", loop.index, block.panels)
            j = b.sub(loop.index, b.mul(block.panels, row))
            self.operands.pack_panel(block.columns, block.column, j, packs and self._is_first(row))
            loop.next(*self.pending.emit_tile(block, b.add(first, row), j, loop.carried))
        return loop.results


def _has_several_panels(panels: Value) -> bool:
    """Whether a block is known to have more than one panel."""
    return isinstance(panels, ConstInt) and panels.value > 1
