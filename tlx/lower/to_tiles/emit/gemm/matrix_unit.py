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

from dataclasses import dataclass
from typing import Final

from tlx.ir.types import I64
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.to_tiles.emit.gemm.epilogue import TileEpilogue
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction, KPass
from tlx.lower.to_tiles.emit.gemm.matrix_operands import MatrixUnitOperands
from tlx.lower.to_tiles.emit.gemm.register_tile import RegisterTile
from tlx.lower.to_tiles.emit.gemm.tile_prefetch import MatrixTilePrefetch, RowBlock
from tlx.lower.to_tiles.emit.kernel import Scratch, loop_over_blocks
from tlx.lower.to_tiles.emit.tiles import tile
from tlx.lower.to_tiles.expression import may_alias_leaf
from tlx.lower.to_tiles.prefetch import Prefetcher
from tlx.lower.to_tiles.select.recipe import EqualTiles

_MOST_TIME_PER_STEP: Final = 7.0
"""Longest time of the rows of an epilogue that a step of K computes, in steps of K, so that little code is unrolled.

With too few steps, the rows have a loop behind them: 512x512x64 bfloats take 0.94 of the time they take with a loop
before the last step, and 0.88 with that step among all rows (Xeon 6/167/1; 0.83 to 0.86 on a Xeon 6/207/2; medians of
alternated calls, 2026-11-30).
"""

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
        self.prefetcher.step(step)  # among the tile products, not after them
        return b.mma(recipe.mma.name, b.typeinfo(sums, type_, "acc"), lhs, rhs, type_)


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
        position = register_tile.place(block, i, j)
        operands = self.k_loop.operands
        bases = operands.a_address(block, i, position[0]), operands.b_address(block, j, position[1])
        register_tile.begin_prefetches(block, (i, j), position, bases[0], block.columns.count if pending else 0)
        if self.overlaps and epilogue is not None:
            register_tile.prefetcher.streams += epilogue.prefetches(block.rows, block.columns, position, operands.steps)
        if pending and epilogue is not None:
            epilogue.store_sums(pending[0], block.rows, block.columns)
        elif pending:
            self.store(block, pending)
        sums = self.k_loop.step(block, register_tile.start(block, (i, j), position), bases, none)
        first = 1
        if pending and epilogue is not None:
            first, sums = self._finish_rows(epilogue, block, sums, bases, pending)
        return [self.k_loop.total(block, sums, bases, first), *self._place(*position)]

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
        if not shares[0].steps:  # a tile's sums are ready when the next one stores them
            step, sums = self.k_loop.operands.steps, self.k_loop.total(block, sums, bases, step)
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
        instructions = epilogue.expression.cost(target) * rows * -(-tile.nr // epilogue.lanes)
        return instructions / target.core.fmas_per_cycle / (products * kind.cycles)


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


_LONG_GROUP: Final = 0.5
"""Time of a group of rows, in steps of K, from which on several steps hide it better than one.

The product of 1024x768x3072 with GELU takes 1.02 times as long as without GELU where a group has five steps, 1.06 times
with two; with exact GELU 1.03 instead of 1.09 (Xeon 6/167/1, medians of alternated calls, 2026-11-30). On a Xeon
6/207/2, it takes 1.03 to 1.05 times as long with either.
"""

_MOST_STEPS_PER_GROUP: Final = 6
"""Most steps of K over which a long group of rows is spread: each of them is code of its own."""


def epilogue_shares(groups: int, steps: int, cost: float) -> list[EpilogueShare]:
    """The loops that compute an epilogue's groups of rows among the steps of K: as evenly as two loops can.

        16 groups, 23 steps     short      16 x (1 step, 1 group), and 7 steps without
                                long        7 x (3 steps, 2 groups), 2 x (1 step, 1 group)
        16 groups, 26 steps     long        6 x (3 steps, 2 groups), 4 x (2 steps, 1 group)
        16 groups, 95 steps     long       16 x (5 steps, 1 group), and 15 steps without
        16 groups, 11 steps     short       5 x (1 step, 2 groups), 6 x (1 step, 1 group)
                                long       11 x (1 step, 1 group), and 5 groups without
        16 groups, 1 step       short            1 step, 16 groups
                                long       16 groups without

    Args:
        groups: Groups of rows.
        steps: Steps of K beside which they may be computed.
        cost: Time of a group, in steps of K.

    Returns:
        The loops; one without steps, behind all of them, if there are too few.
    """
    if not steps or groups * cost > steps * _MOST_TIME_PER_STEP:
        return [EpilogueShare(0, 1, groups)]
    if steps < groups:
        each, more = divmod(groups, steps)
        shares = [EpilogueShare(1, each + 1, more), EpilogueShare(1, each, steps - more)]
        if cost * each > 1:  # the groups take longer than all steps, so that some may do without: less code
            shares = [EpilogueShare(1, each, steps), EpilogueShare(0, 1, more)]
    elif cost <= _LONG_GROUP:
        shares = [EpilogueShare(1, 1, groups)]
    elif steps >= 2 * groups:
        shares = [EpilogueShare(min(steps // groups, _MOST_STEPS_PER_GROUP), 1, groups)]
    else:
        spare = steps - groups
        paired = min(spare, groups - spare)
        doubled = spare - paired
        shares = [
            EpilogueShare(3, 2, paired),
            EpilogueShare(2, 1, doubled),
            EpilogueShare(1, 1, groups - 2 * paired - doubled),
        ]
    return [share for share in shares if share.count]


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
        ahead = MatrixTilePrefetch(function, self.operands, self.prefetcher, self.row_block, by_rows=self.by_rows)
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
        whole = KPass(const_int(I64, 0), self.gemm.k, is_first=True, is_last=True)
        if self.by_rows:
            self._row_by_row(whole)
            return
        with self.row_block.loop(self.b):
            for columns in self.function.columns:
                self._column_blocks(columns, whole)

    def _row_by_row(self, k_pass: KPass) -> None:
        """All row tiles, each by the panels of all widths."""
        b, none = self.b, const_int(I64, 0)
        for rows in self.function.rows:
            with b.loop(0, rows.count, name="ir") as i:
                self._pack_row(rows, i.index)
                for columns in self.function.columns:
                    place = const_int(I64, columns.start), const_int(I64, columns.count)
                    block = CacheBlock(k_pass, columns, *place, rows, const_int(I64, rows.start), none)
                    self._panels(block, i.index, packs=False)

    def _column_blocks(self, columns: EqualTiles, k_pass: KPass) -> None:
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
                block = CacheBlock(k_pass, columns, column, panels, rows, const_int(I64, rows.start), const_int(I64, 1))
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
