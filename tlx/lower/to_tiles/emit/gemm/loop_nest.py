"""The loop nest of a product: cache blocks, packing, register tiles.

for a part of K                                   pc
  pack A, where it needs it and all of it may be
  interleave the last columns of B, where they are summed up in pairs
  for columns in panels of B, nc at a time        jc
    pack B's panels
    for rows of A, mc at a time                   ic
      pack A's rows, where they need it
      for each panel, for each row tile           jr, ir
        one register tile, which register_tile.py emits
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.types import I64, Type
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.gemm.epilogue import epilogue_needs_scratch
from tlx.lower.to_tiles.emit.gemm.n_tail import DotProductColumns
from tlx.lower.to_tiles.emit.gemm.operands import CacheBlock, KPass
from tlx.lower.to_tiles.emit.gemm.register_tile import RegisterTile
from tlx.lower.to_tiles.emit.kernel import expression_parameters, if_block, may_alias_leaf, new_kernel
from tlx.lower.to_tiles.pack.panels import column_sums, row_sums
from tlx.lower.to_tiles.parallel.tile_range import as_i64, loop_over_blocks
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.scratch import Scratch
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, k_passes
from tlx.target.target import Target

_COLUMNS: Final = 4
"""Columns of a column-major A of which all row tiles are packed before the next ones are: so many lines stay near.

They may be pages apart, where they share a set of the first cache with what is written. 1024 x 1024 floats take 345 us
by 4 columns, 380 by 8, 440 by 16 (Emerald Rapids; a newer Xeon does not tell them apart).
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
    """Add the kernel for a product to the module, by an emitter of its own or `GemmKernel`.

    It is a function of pointers to C, A, B and, if it has one, Acc, then of the epilogue's leaves and scalars, and,
    where it works on `parts`, of the first and last row tile and panel. Where panels of B are to be kept from one
    call to the next, `kept` takes what has to be reserved in the memory that the function is given then.
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
    """Emits one kernel: the loops around its register tiles, and packing. A matrix unit overrides them."""

    def emit(self, scratch: Scratch) -> None:
        """The whole function body, which works in `scratch`."""
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
        """Reserve and make the panels, sums and tiles that the kernel needs."""
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
        """Reserve buffers that only this kind of kernel has, for blocks of `width` columns; gives their names."""
        del scratch, width
        return []

    def panels(self, columns: EqualTiles) -> int:
        """Panels of a range that are packed at a time."""
        return max(1, self.recipe.blocks.nc // columns.size)

    def at_a_time(self, columns: EqualTiles) -> int:
        """Panels of a range that are packed at a time, and not more than there are."""
        return min(columns.count, self.panels(columns))

    @property
    def held(self) -> int:
        """Columns that are packed at a time: those of one range, or some of each where they are kept."""
        widths = [self.at_a_time(columns) * columns.size for columns in self.columns]
        return sum(widths) if self.share.kept else max(widths)

    def size_of_panels(self, columns: int) -> int:
        """Elements that so many columns take, packed."""
        return self.packing_b.depth(min(self.recipe.blocks.kc, self.gemm.k)) * self.terms.count * columns

    def find_panels(self, columns: EqualTiles) -> None:
        """Have a range's panels lie behind those of the ranges in front of it, where they are kept."""
        if self.share.kept is None:
            return
        b, recipe, (panels, sums) = self.b, self.recipe, self._first
        before = sum(self.at_a_time(other) * other.size for other in self.columns[: self.columns.index(columns)])
        assert panels is not None
        self.panel_b = b.gep(recipe.mma.operand_b, panels, self.size_of_panels(before))
        self.sums = b.gep(recipe.mma.accumulator, sums, before) if sums and recipe.mma.correction == "columns" else sums

    @contextmanager
    def unless_packed(self) -> Generator[None]:
        """What runs where an earlier call has not packed B."""
        if self.share.kept is None:
            yield
            return
        with if_block(self.b, self.b.icmp("eq", self.share.kept.packed, const_int(I64, 0)), "fresh"):
            yield

    def tiles(self, rows: EqualTiles) -> int:
        """Row tiles of a range that are worked on at a time."""
        return max(1, self.recipe.blocks.mc // rows.size)

    # Loops around the tiles ------------------------------------------------------------------------------------

    def passes(self, parts: EqualTiles) -> None:
        """Some passes over K."""
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
        """All tiles by a part of K."""
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
        """The last columns of a block's rows, in the first block of columns: these rows are near."""
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
        """Pack row tiles of A from a row on, some columns at a time: the rest of their lines is for the next tile."""
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
        """Pack some columns, from one on, of row tiles of A."""
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
