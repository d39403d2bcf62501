"""The loop nests of a product: cache blocks, packing, register tiles; and of a product of few rows, which streams B.

for each pass over K                              pc
  pack all of A, if the recipe says so
  interleave the N tail of B, if it is summed in pairs
  for columns in panels of B, nc at a time        jc
    pack B's panels
    for rows of A, mc at a time                   ic
      pack A's rows, if needed
      for each panel, for each row tile           jr, ir
        one register tile (register_tile.py)

A product of few rows reads B once, in memory order:

for columns, a strip whose sums fill half of L1       sums: [tiles of nr columns][M][nr]
  sums = 0
  for `streams` rows of B                             as many streams, each as long as the strip
    for tiles of the strip: sums += A[:, k] @ B[k, :]
  for tiles of the strip: C = f(sums + Acc + correction)

Where an instruction multiplies pairs or quadruples of rows, or widens every other element, neighbouring columns go to
different registers. The sums stay permuted until the strip is finished; `order` (d, r) distributes runs of r columns
over d registers:

    columns  0 1 2 3 | 4 5 6 7 | 8 ...                 order (2, 4): pairs of bfloat rows, as VPUNPCKLWD leaves them
    permuted 0 1 2 3 | 8 9 10 11 | 16 ...  then  4 5 6 7 | 12 ...
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.types import I64, Type
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_tiles.emit.gemm.k_loop import CacheBlock, KPass
from tlx.lower.to_tiles.emit.gemm.n_tail import DotProductColumns
from tlx.lower.to_tiles.emit.gemm.register_tile import RegisterTile, epilogue_needs_scratch
from tlx.lower.to_tiles.emit.kernel import Scratch, expression_parameters, if_block, may_alias_leaf, new_kernel, tile
from tlx.lower.to_tiles.pack.panels import column_sums, row_sums
from tlx.lower.to_tiles.parallel.tile_range import as_i64, loop_over_blocks
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, k_passes, padded_tiles
from tlx.target.target import Target

_COLUMNS: Final = 4
"""Columns of a column-major A that are packed together, for all row tiles: their cache lines stay in L1.

They may be pages apart, and then share a set of L1 with the panel. 1024 x 1024 floats take 345 us by 4 columns, 380 by
8, 440 by 16 (Emerald Rapids; no difference on a newer Xeon).
"""


def gemm_kernel(
    module: Module,
    gemm: Gemm,
    recipe: Recipe,
    target: Target,
    *,
    parts: bool = False,
    kept: Scratch | None = None,
    emitter: type[GemmKernel] | None = None,
) -> Function:
    """Add the kernel for a product to the module, by `emitter` or else `GemmKernel`.

    Its parameters are pointers to C, A, B and, if there is one, Acc, then the epilogue's leaves and scalars, and, if it
    works on `parts`, the first and last row tile and panel. If panels of B are cached across calls, the size of the
    cache is reserved in `kept`.
    """
    own_panels = recipe.packing.prepacked_b and recipe.packing.b_panel_offset is None
    parameters: list[tuple[str, Type, str]] = [
        (
            "c",
            gemm.c.element,
            "" if gemm.acc or (gemm.epilogue and may_alias_leaf(gemm.epilogue, gemm.c)) else "noalias",
        ),
        ("a", gemm.a.element, ""),
        ("b", recipe.mma.operand_b if own_panels else gemm.b.element, ""),
    ]
    if gemm.acc:
        parameters.append(("acc", gemm.acc.element, ""))
    leaves, scalars = expression_parameters(gemm.epilogue) if gemm.epilogue else ([], [])
    function = new_kernel(
        module, target, gemm.kernel_name, [*parameters, *leaves], scalars, parts=parts, keeps=kept is not None
    )
    (emitter or GemmKernel)(TensorBuilder(module, function), gemm, recipe, target).emit(kept or Scratch())
    return function


class GemmKernel(RegisterTile):
    """Emits one kernel: the loops around its register tiles, and packing; matrix units override parts of it."""

    def emit(self, scratch: Scratch) -> None:
        """Emit the function's body, with its buffers in `scratch`."""
        kept = self.share.kept
        scratch.given = kept.memory if kept else None
        self.make_buffers(scratch)
        self._first = self.panel_b, self.sums
        if self.partial:
            self.partial.start()
        if self.dots:
            self.dots.copy(self.b_in)
        for parts in k_passes(self.gemm, self.recipe):
            self.passes(parts)
        if self.partial:
            self.partial.finish()
        scratch.release(self.b)
        self.b.ret()

    def make_buffers(self, scratch: Scratch) -> None:
        """Reserve and allocate the panels, sums and tiles that the kernel needs."""
        recipe = self.recipe
        width = self.held
        height = max(min(self.tiles(r), r.count) * r.size for r in self.rows)
        names = self.reserve_own(scratch, width)
        height = self.rows[-1].start + self.rows[-1].count * self.rows[-1].size if recipe.packing.whole_a else height
        if recipe.packing.b and not recipe.packing.prepacked_b:
            scratch.reserve(recipe.mma.operand_b, self.size_of_panels(width))
            names.append("panel_b")
        if recipe.packing.a:
            scratch.reserve(
                recipe.mma.operand_a,
                self.packing_a.depth(min(recipe.blocks.kc, self.gemm.k)) * self.terms.count * height,
            )
            names.append("panel_a")
        if recipe.mma.correction == "rows" or (recipe.mma.correction == "columns" and not recipe.packing.prepacked_b):
            scratch.reserve(recipe.mma.accumulator, width if recipe.mma.correction == "columns" else height)
            names.append("sums")
        if self.epilogue is not None and epilogue_needs_scratch(self.epilogue.expression, recipe):
            rows, columns = max(r.size for r in self.rows), max(c.size for c in self.columns)
            scratch.reserve(recipe.mma.accumulator, rows * columns)
            names.append("tile")
        if self.partial:
            self.partial.reserve(scratch)
            names.append("memory")
        if self.dots:
            scratch.reserve(recipe.mma.accumulator, self.dots.depth * self.dots.count)
            names.append("rows_of_b")
        if self.pairs and not self.pairs.are_few:
            scratch.reserve(recipe.mma.accumulator, self.pairs.steps * self.pairs.lanes)
            names.append("panel")
        holders = {"tile": self.epilogue, "memory": self.partial, "rows_of_b": self.dots, "panel": self.pairs}
        for name, pointer in zip(names, scratch.allocate(self.b), strict=True):
            setattr(holders.get(name, self), name, pointer)

    def reserve_own(self, scratch: Scratch, width: int) -> list[str]:
        """Reserve the buffers of a subclass, for blocks of `width` columns; returns the attributes that hold them."""
        del scratch, width
        return []

    def panels(self, columns: EqualTiles) -> int:
        """Panels of a range that fit a cache block."""
        return max(1, self.recipe.blocks.nc // columns.size)

    def at_a_time(self, columns: EqualTiles) -> int:
        """Panels of a range that are packed at a time."""
        return min(columns.count, self.panels(columns))

    @property
    def held(self) -> int:
        """Columns that are packed at a time: of one range, or of all ranges if panels are cached across calls."""
        widths = [self.at_a_time(columns) * columns.size for columns in self.columns]
        return sum(widths) if self.share.kept else max(widths)

    def size_of_panels(self, columns: int) -> int:
        """Elements of `columns` packed columns."""
        return self.packing_b.depth(min(self.recipe.blocks.kc, self.gemm.k)) * self.terms.count * columns

    def find_panels(self, columns: EqualTiles) -> None:
        """Set the panels of a range, which follow those of earlier ranges if they are cached across calls."""
        if self.share.kept is None:
            return
        b, recipe, (panels, sums) = self.b, self.recipe, self._first
        before = sum(self.at_a_time(other) * other.size for other in self.columns[: self.columns.index(columns)])
        assert panels is not None
        self.panel_b = b.gep(recipe.mma.operand_b, panels, self.size_of_panels(before))
        self.sums = b.gep(recipe.mma.accumulator, sums, before) if sums and recipe.mma.correction == "columns" else sums

    @contextmanager
    def unless_packed(self) -> Generator[None]:
        """A block that runs unless an earlier call has packed B."""
        if self.share.kept is None:
            yield
            return
        with if_block(self.b, self.b.icmp("eq", self.share.kept.packed, const_int(I64, 0)), "fresh"):
            yield

    def tiles(self, rows: EqualTiles) -> int:
        """Row tiles of a range that fit a cache block."""
        return max(1, self.recipe.blocks.mc // rows.size)

    # Loops around the tiles ------------------------------------------------------------------------------------

    def passes(self, parts: EqualTiles) -> None:
        """The passes over K of one size."""
        b = self.b
        first = parts.start == 0
        if first:
            self.one_pass(KPass(const_int(I64, 0), parts.size, True))
        count = parts.count - first
        if count:
            with b.loop(int(first), parts.count, name="pc") as loop:
                start = parts.start_of(b, loop.index)
                self.one_pass(KPass(start, parts.valid, False))

    def one_pass(self, part: KPass) -> None:
        """All tiles for one pass over K."""
        self.prefetcher.begin_pass(self.b_in, part.start, part.size)
        if self.recipe.packing.whole_a:
            for rows in self.rows:
                first, last = (as_i64(bound) for bound in self.share.rows.of(self.b, self.rows, rows))
                row = rows.start_of(self.b, first)
                self.pack_a(part, rows, row, self.b.sub(last, first))
        if self.pairs and part.first:
            self.pairs.pack(self.b_in)
        for columns in self.columns:
            self.column_blocks(columns, part)

    def column_blocks(self, columns: EqualTiles, part: KPass) -> None:
        """`nc` columns at a time: pack them, then go over the rows."""
        b = self.b
        step = self.panels(columns)
        with loop_over_blocks(b, self.share.columns.of(b, self.columns, columns), step, "jc") as (first, panels):
            column = columns.start_of(b, first)
            if self.recipe.packing.b and not self.recipe.packing.prepacked_b:
                self.find_panels(columns)
                with self.unless_packed():
                    self.pack_b(columns, part, column, panels)
            for rows in self.rows:
                self.row_blocks(rows, part, columns, column, panels)

    def row_blocks(self, rows: EqualTiles, part: KPass, columns: EqualTiles, column: Value, panels: Value) -> None:
        """`mc` rows at a time: pack them, then go over the tiles."""
        b = self.b
        step = self.tiles(rows)
        with loop_over_blocks(b, self.share.rows.of(b, self.rows, rows), step, "ic") as (first, tiles):
            row = rows.start_of(b, first)
            block = CacheBlock(part, columns, column, panels, rows, row, tiles)
            if self.recipe.packing.a and not self.recipe.packing.whole_a:
                self.pack_a(part, rows, row, tiles)
            self.tile_loops(block)
            if self.dots and columns is self.columns[0]:
                self.last_columns(self.dots, block)

    def last_columns(self, dots: DotProductColumns, block: CacheBlock) -> None:
        """The N tail of a block's rows, in the first block of columns, while the rows are in the caches."""
        b, part = self.b, block.part
        at_first = b.select(b.icmp("eq", block.column, const_int(I64, 0)), block.tiles, const_int(I64, 0))
        with b.loop(0, at_first, name="dr") as loop:
            row = b.add(block.row, b.mul(loop.index, block.rows.size))
            pointers = self.at(self.gemm.c, self.c, row, const_int(I64, 0)), self.a_address(block, loop.index, row)
            dots.tiles(pointers, block.rows.size, (part.start, part.size), first=part.first)

    def tile_loops(self, block: CacheBlock) -> None:
        """The tiles of a block."""
        b = self.b
        with b.loop(0, block.panels, name="jr", runs=True) as j, b.loop(0, block.tiles, name="ir", runs=True) as i:
            self.tile(block, i.index, j.index)

    # Packing ---------------------------------------------------------------------------------------------------

    def pack_b(self, columns: EqualTiles, part: KPass, column: Value, panels: Value) -> None:
        """Pack a block's panels of B."""
        b, recipe, view = self.b, self.recipe, self.gemm.b
        depth = self.packing_b.depth(part.size)
        with b.loop(0, panels, name="jp", runs=True) as loop:
            at = b.mul(b.add(column, b.mul(loop.index, columns.size)), view.col_stride)
            source = b.gep(view.element, self.b_in, b.add(at, b.mul(part.start, view.row_stride)))
            assert self.panel_b is not None
            whole = depth * self.terms.count
            panel = b.gep(recipe.mma.operand_b, self.panel_b, b.mul(loop.index, whole * columns.size))
            with self.terms.loop() as term:
                there = b.gep(recipe.mma.operand_b, panel, b.mul(term.index, depth * columns.size))
                here = b.gep(view.element, source, self.terms.offset(1, term.index))
                self.packer_b.pack_b(here, there, columns, part.size)
            if recipe.mma.correction == "columns":
                assert self.sums is not None
                out = b.gep(recipe.mma.accumulator, self.sums, b.mul(loop.index, columns.size))
                groups = whole // recipe.mma.width
                column_sums(b, panel, out, columns.size, groups, recipe.mma.width, recipe.mma.accumulator)
        assert self.panel_b is not None
        b.keep(self.panel_b)

    def pack_a(self, part: KPass, rows: EqualTiles, row: Value, tiles: Value) -> None:
        """Pack row tiles of A from a row on, a few columns at a time: the next tile reuses their cache lines."""
        b, packing = self.b, self.packing_a
        chunk = min(part.size, _COLUMNS) if packing.by_columns else part.size
        full, rest = divmod(part.size, chunk)
        with b.loop(0, full, name="kp") as loop:
            self.pack_a_part(part, rows, row, tiles, (b.mul(loop.index, chunk), chunk))
        if rest:
            self.pack_a_part(part, rows, row, tiles, (const_int(I64, full * chunk), rest))
        assert self.panel_a is not None
        b.keep(self.panel_a)

    def pack_a_part(self, part: KPass, rows: EqualTiles, row: Value, tiles: Value, columns: tuple[Value, int]) -> None:
        """Pack a range of columns of row tiles of A."""
        b, recipe, view = self.b, self.recipe, self.gemm.a
        depth = self.packing_a.depth(part.size)
        column, count = columns
        with b.loop(0, tiles, name="ip") as loop:
            here = b.mul(loop.index, rows.size)
            at = b.mul(b.add(row, here), view.row_stride)
            at = b.add(at, b.mul(b.add(part.start, column), view.col_stride))
            size = rows.size * depth
            panel = self.panel_of_a(part, row if recipe.packing.whole_a else const_int(I64, 0), here)
            source = b.gep(view.element, self.a, at)
            with self.terms.loop() as term:
                there = b.gep(recipe.mma.operand_a, panel, b.add(b.mul(term.index, size), b.mul(column, rows.size)))
                tile = b.gep(view.element, source, self.terms.offset(0, term.index))
                self.packer_a.pack_a(tile, there, rows, count)
            if recipe.mma.correction == "rows":
                assert self.sums is not None
                out = b.gep(recipe.mma.accumulator, self.sums, here)
                shape = self.terms.count, rows.size, depth
                row_sums(b, panel, out, shape, recipe)


_PERMUTED_AXES: Final = (0, 1, 3, 2, 4)


class StreamingKernel(GemmKernel):
    """The kernel of a product of few rows, which streams B.

    Attributes:
        strip: The sums of a strip.
    """

    strip: Value

    def reserve_own(self, scratch: Scratch, width: int) -> list[str]:
        """Reserve the sums of a strip."""
        scratch.reserve(self.recipe.mma.accumulator, self.gemm.m * width)
        return ["strip"]

    def row_blocks(self, rows: EqualTiles, part: KPass, columns: EqualTiles, column: Value, panels: Value) -> None:
        """One strip: all rows of A by `panels` tiles from a column on."""
        b = self.b
        nothing = const_int(I64, 0)
        block = CacheBlock(part, columns, column, panels, rows, nothing, as_i64(1))
        if self.recipe.packing.a and not self.recipe.packing.whole_a:
            self.pack_a(part, rows, nothing, block.tiles)
        with b.loop(0, panels, name="clear", runs=True) as j:
            self._keep(block, j.index, zero(self._sums_type(block).vector))
        for steps in padded_tiles(part.size, self.recipe.tile.streamed_rows, self.recipe.mma.width):
            with b.loop(0, steps.count, name="k") as k:
                row = steps.start_of(b, k.index)
                with b.loop(0, panels, name="j", runs=True) as j:
                    self._add_rows(block, steps, row, j.index)
        with b.loop(0, panels, name="done", runs=True) as j:
            at = b.add(column, b.mul(j.index, columns.size))
            self.finish(block, self._total(block, j.index, at), nothing, at)

    # Sums ------------------------------------------------------------------------------------------------------

    def _sums_type(self, block: CacheBlock) -> TensorType:
        return tile(self.recipe.mma.accumulator, self.gemm.m, block.columns.size)

    def _sums_at(self, block: CacheBlock, j: Value) -> Value:
        return self.b.gep(self.recipe.mma.accumulator, self.strip, self.b.mul(j, self._sums_type(block).count))

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
        start = self.start(block, (nothing, j), (nothing, column))
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
        lhs = self.a_address(block, const_int(I64, 0), const_int(I64, 0))
        for group in range(0, steps.size, recipe.mma.width):
            k = b.add(row, group)
            missing = max(0, group + recipe.mma.width - steps.valid)
            left = self.load_a(block, lhs, k)
            right, padding = self._rows_of_b(block, k, column, missing)
            summed = replace(type_, padding=(0, padding))
            acc = b.typeinfo(sums, summed, "acc")
            sums = b.mma(recipe.mma.name, acc, left, right, summed)
        self._keep(block, j, sums)

    def _rows_of_b(self, block: CacheBlock, k: Value, column: Value, missing: int) -> tuple[Value, int]:
        """A group of rows of a tile of B, and its columns of padding: none if the columns are permuted."""
        b, recipe, view, packing = self.b, self.recipe, self.gemm.b, self.packing_b
        size = block.columns.size
        type_ = tile(view.element, recipe.mma.width, size, (missing, block.columns.padding))
        token = b.tensor_load(self.at(view, self.b_in, k, column), type_, (0, max(view.row_stride, 1)), "b")
        if recipe.tile.column_permutation[0] == 1:
            return token, block.columns.padding
        rows = packing.finish(b, b.tovector(token, type_, "b.rows"))
        plain = tile(recipe.mma.operand_b, recipe.mma.width, size)
        permuted = b.typeinfo(rows, self._permuted_type(plain, in_order=True), "b.rows")
        return b.typeinfo(
            b.reshape_permute(permuted, _PERMUTED_AXES, plain.shape, plain.vector, "b.dealt"), plain, "b"
        ), 0
