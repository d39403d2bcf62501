"""The kernel of a product: its function, buffers, and loops over cache blocks and register tiles.

for each pass over K                              pc    all but the last one store partial sums
  pack all of A, if the recipe says so
  interleave the N tail of B, if it is summed in pairs
  for columns in panels of B, nc at a time        jc
    pack B's panels
    for rows of A, mc at a time                   ic
      pack A's rows, if needed
      for each panel, for each row tile           jr, ir
        one register tile (register_tile.py)

The kernel of a product of few rows reads B once, in memory order:

for columns, a strip whose sums fill half of L1       sums: [tiles of nr columns][M][nr]
  sums = 0
  for `streamed_rows` rows of B                       as many streams, each as long as the strip
    for tiles of the strip: sums += A[:, k] @ B[k, :]   prefetching the next rows, if B exceeds half of L2
  for tiles of the strip: C = f(sums + Acc + correction)

Where an instruction multiplies pairs or quadruples of rows, or widens every second element, neighbouring columns end up
in different registers. The sums stay permuted until the strip is finished; `column_permutation` (d, r) distributes
groups of r columns over d registers:

    columns  0 1 2 3 | 4 5 6 7 | 8 ...                 (2, 4): pairs of bfloat rows, as VPUNPCKLWD leaves them
    permuted 0 1 2 3 | 8 9 10 11 | 16 ...  then  4 5 6 7 | 12 ...
"""

from __future__ import annotations

from dataclasses import replace

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import as_value
from tlx.ir.control_flow import ControlFlow, natural_loops
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.transform import extract_region, loop_region, remove_regions
from tlx.ir.types import I64, Type, bytes_of
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_tiles.emit.gemm.epilogue import EPILOGUE_LOOP
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction, KPass
from tlx.lower.to_tiles.emit.gemm.k_loop import KLoop
from tlx.lower.to_tiles.emit.gemm.matrix_unit import MatrixUnitLoopNest
from tlx.lower.to_tiles.emit.gemm.n_tail import DotProductColumns
from tlx.lower.to_tiles.emit.gemm.operands import Operands
from tlx.lower.to_tiles.emit.gemm.register_tile import RegisterTile
from tlx.lower.to_tiles.emit.gemm.tile_prefetch import VectorTilePrefetch
from tlx.lower.to_tiles.emit.kernel import (
    Scratch,
    ScratchBuffer,
    expression_parameters,
    loop_over_blocks,
    new_kernel,
)
from tlx.lower.to_tiles.emit.tiles import SWAPPED_AXES, tile
from tlx.lower.to_tiles.expression import may_alias_leaf
from tlx.lower.to_tiles.prefetch import L2_LOCALITY, Prefetcher, PrefetchStream
from tlx.lower.to_tiles.problem import Gemm, c_holds_sums
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, k_passes, padded_tiles
from tlx.target.target import Target


def gemm_kernel(
    module: Module,
    gemm: Gemm,
    recipe: Recipe,
    target: Target,
    *,
    parts: bool = False,
    panel_cache: Scratch | None = None,
) -> Function:
    """Add the kernel for a product to the module.

    Its parameters are pointers to C, A, B and, if there is one, Acc, then the epilogue's leaves and scalars and, with
    `parts`, the bounds of its row tiles and panels. If panels of B are cached across calls, their memory is reserved in
    `panel_cache`.
    """
    own_panels = recipe.packing.prepacked_b and recipe.packing.b_panel_offset is None
    reads_c = gemm.acc or (gemm.epilogue and may_alias_leaf(gemm.epilogue, gemm.c))
    parameters: list[tuple[str, Type, str]] = [
        ("c", gemm.c.element, "" if reads_c else "noalias"),
        ("a", gemm.a.element, ""),
        ("b", recipe.mma.operand_b if own_panels else gemm.b.element, ""),
    ]
    if gemm.acc:
        parameters.append(("acc", gemm.acc.element, ""))
    leaves, scalars = expression_parameters(gemm.epilogue) if gemm.epilogue else ([], [])
    caches_panels = panel_cache is not None
    kernel = new_kernel(
        module, target, gemm.kernel_name, [*parameters, *leaves], scalars, parts=parts, caches_panels=caches_panels
    )
    function, scratch = GemmFunction.of(TensorBuilder(module, kernel), gemm, recipe, target), panel_cache or Scratch()
    b, cached = function.b, function.share.cached_panels
    if recipe.mma.unit == "matrix":
        nest = MatrixUnitLoopNest(function)
    else:
        nest = StreamingLoopNest(function) if recipe.tile.streamed_rows else LoopNest(function)
    scratch.provided = cached.memory if cached else None
    nest.reserve(scratch)
    scratch.allocate(b)
    partial = nest.tile.partial
    if partial is not None:
        partial.start()
    nest.emit()
    if partial is not None:
        partial.finish()
    scratch.release(b)
    b.ret()
    if nest.tile.epilogue is not None and nest.tile.epilogue.has_own_function:
        _outline_epilogues(module, kernel)
    return kernel


def _outline_epilogues(module: Module, kernel: Function) -> None:
    """Move the loops over the rows of tiles in memory to functions of their own.

    Those of tiles of other heights, and often of other kernels, become one function (`tlx.lower.to_tiles.sharing`).
    LLVM keeps constants of loops in registers around them, too: those of an epilogue would take registers from the sums
    in the K loop, which would go through memory in each step.
    """
    flow = ControlFlow(kernel)
    loops = [loop for loop in natural_loops(flow) if loop.header.startswith(EPILOGUE_LOOP)]
    regions = [region for loop in loops if (region := loop_region(flow, loop, lambda _: True)) is not None]
    for region in regions:
        name = module.global_names.fresh(f"{kernel.name}.epilogue")
        extract_region(module, kernel, region, name, kernel.signature.attributes)
    remove_regions(kernel, regions)


# Loop nests ----------------------------------------------------------------------------------------------------------


class LoopNest:
    """Emits the loops around the register tiles of a kernel on vectors.

    Attributes:
        function: The kernel's function.
        operands: Packs the operands.
        prefetcher: Emits the prefetches.
        tile: Emits the register tiles.
        dots: Emits an N tail of dot products along K, if there is one.
    """

    def __init__(self, function: GemmFunction) -> None:
        self.function = function
        self.b, self.gemm, self.recipe = function.b, function.gemm, function.recipe
        self.operands = Operands(function)
        self.prefetcher = Prefetcher(function)
        k_loop = KLoop(function, self.operands, self.prefetcher)
        following = VectorTilePrefetch(function, self.operands, self.prefetcher)
        self.tile = RegisterTile(function, self.operands, k_loop.total, self.prefetcher, following.begin_tile)
        following.epilogue = self.tile.epilogue
        dots = function.recipe.tile.dot_columns
        self.dots = DotProductColumns(function, self.operands.pitch_of_a, self.tile.epilogue) if dots else None

    def reserve(self, scratch: Scratch) -> None:
        """Reserve the buffers that the kernel needs."""
        self.operands.reserve(scratch)
        self.tile.reserve(scratch)
        if self.dots:
            self.dots.reserve(scratch)
        if self.tile.pairs:
            self.tile.pairs.reserve(scratch)

    def emit(self) -> None:
        """Emit the passes over K: the first one, the last one where it differs, and a loop over those between."""
        b = self.b
        if self.dots:
            self.dots.copy(self.function.rhs)
        # A last pass that stores the sums to C, too, is like the others.
        is_alike = self.gemm.epilogue is None and c_holds_sums(self.gemm, self.recipe.mma.accumulator)
        passes = k_passes(self.gemm, self.recipe)
        for parts in passes:
            first = parts.start == 0
            final = not is_alike and parts is passes[-1]
            if first:
                self._emit_pass(KPass(const_int(I64, 0), parts.size, True, is_alike or (final and parts.count == 1)))
            between = parts.count - final
            if between > first:
                with b.loop(int(first), between, name="pc") as loop:
                    self._emit_pass(KPass(parts.start_of(b, loop.index), parts.valid, False, is_alike))
            if final and parts.count > first:
                start = parts.start_of(b, const_int(I64, between))
                self._emit_pass(KPass(start, parts.valid, False, True))

    def _emit_pass(self, k_pass: KPass) -> None:
        """All tiles for one pass over K."""
        function, pairs = self.function, self.tile.pairs
        self.prefetcher.begin_pass(function.rhs, k_pass.start, k_pass.size)
        if self.recipe.packing.whole_a:
            for rows in function.rows:
                first, last = (as_value(bound, I64) for bound in function.share.rows.of(self.b, function.rows, rows))
                row = rows.start_of(self.b, first)
                self.operands.pack_a(k_pass, rows, row, self.b.sub(last, first))
        if pairs and k_pass.is_first:
            pairs.pack(function.rhs)
        for columns in function.columns:
            self._column_blocks(columns, k_pass)

    def _column_blocks(self, columns: EqualTiles, k_pass: KPass) -> None:
        """`nc` columns at a time: pack them, then go over the rows."""
        b, operands, share = self.b, self.operands, self.function.share
        bounds, step = share.columns.of(b, self.function.columns, columns), operands.panels_per_block(columns)
        with loop_over_blocks(b, bounds, step, "jc") as (first, panels):
            column = columns.start_of(b, first)
            if operands.packs_b:
                with operands.if_not_packed(columns):
                    operands.pack_b(columns, k_pass, column, panels)
            for rows in self.function.rows:
                self.row_blocks(rows, k_pass, columns, column, panels)

    def row_blocks(self, rows: EqualTiles, k_pass: KPass, columns: EqualTiles, column: Value, panels: Value) -> None:
        """`mc` rows at a time: pack them, then go over the tiles."""
        b, operands, share = self.b, self.operands, self.function.share
        bounds, step = share.rows.of(b, self.function.rows, rows), operands.row_tiles_per_block(rows)
        with loop_over_blocks(b, bounds, step, "ic") as (first, tiles):
            row = rows.start_of(b, first)
            block = CacheBlock(k_pass, columns, column, panels, rows, row, tiles)
            if self.recipe.packing.a and not self.recipe.packing.whole_a:
                operands.pack_a(k_pass, rows, row, tiles)
            with b.loop(0, panels, name="jr", nonempty=True) as j, b.loop(0, tiles, name="ir", nonempty=True) as i:
                self.tile.emit(block, i.index, j.index)
            if self.dots and columns is self.function.columns[0]:
                self._last_columns(self.dots, block)

    def _last_columns(self, dots: DotProductColumns, block: CacheBlock) -> None:
        """The N tail of a block's rows, computed in the first block of columns, while the rows are in the caches."""
        b, nothing = self.b, const_int(I64, 0)
        tiles = b.select(b.icmp("eq", block.column, nothing), block.tiles, nothing)
        with b.loop(0, tiles, name="dr") as loop:
            row = b.add(block.row, b.mul(loop.index, block.rows.size))
            dots.tiles(self.operands.a_address(block, loop.index, row), row, block.rows.size, block.k_pass)


class StreamingLoopNest(LoopNest):
    """Emits the loops of a product of few rows, which streams B.

    Attributes:
        strip: The sums of a strip.
    """

    strip: ScratchBuffer

    def reserve(self, scratch: Scratch) -> None:
        """Reserve the sums of a strip and other buffers."""
        self.strip = scratch.reserve(self.recipe.mma.accumulator, self.gemm.m * self.operands.packed_columns)
        super().reserve(scratch)

    def row_blocks(self, rows: EqualTiles, k_pass: KPass, columns: EqualTiles, column: Value, panels: Value) -> None:
        """One strip: all rows of A by `panels` tiles from a column on."""
        b = self.b
        nothing = const_int(I64, 0)
        block = CacheBlock(k_pass, columns, column, panels, rows, nothing, const_int(I64, 1))
        if self.recipe.packing.a and not self.recipe.packing.whole_a:
            self.operands.pack_a(k_pass, rows, nothing, block.tiles)
        with b.loop(0, panels, name="clear", nonempty=True) as j:
            self._store_sums(block, j.index, zero(self._sums_type(block).vector))
        for steps in padded_tiles(k_pass.size, self.recipe.tile.streamed_rows, self.recipe.mma.width):
            with b.loop(0, steps.count, name="k") as k:
                row = steps.start_of(b, k.index)
                with b.loop(0, panels, name="j", nonempty=True) as j:
                    self._add_rows(block, steps, row, j.index)
        with b.loop(0, panels, name="finish", nonempty=True) as j:
            at = b.add(column, b.mul(j.index, columns.size))
            self.tile.finish(block, self._total(block, j.index, at), nothing, at)

    # Sums ------------------------------------------------------------------------------------------------------

    def _sums_type(self, block: CacheBlock) -> TensorType:
        return tile(self.recipe.mma.accumulator, self.gemm.m, block.columns.size)

    def _sums_at(self, block: CacheBlock, j: Value) -> Value:
        return self.b.gep(self.recipe.mma.accumulator, self.strip.pointer, self.b.mul(j, self._sums_type(block).count))

    def _store_sums(self, block: CacheBlock, j: Value, sums: Value) -> None:
        self.b.tensor_store(self._sums_at(block, j), self.b.typeinfo(sums, self._sums_type(block), "sums"))

    def _total(self, block: CacheBlock, j: Value, column: Value) -> Value:
        """The sums of a tile, with its columns in order, plus the initial sums."""
        b, type_ = self.b, self._sums_type(block)
        if self.recipe.tile.column_permutation[0] == 1:
            total: Value = b.tovector(b.tensor_load(self._sums_at(block, j), type_, None, "sums"), type_, "sums")
        else:
            permuted = b.tensor_load(
                self._sums_at(block, j), self._permuted_type(type_, in_order=False), None, "sums.permuted"
            )
            total = b.reshape_permute(permuted, SWAPPED_AXES, type_.shape, type_.vector, "sums")
        nothing = const_int(I64, 0)
        start = self.tile.start(block, (nothing, j), (nothing, column))
        if start == zero(start.type):
            return total
        return b.binary("fadd" if self.gemm.is_float else "add", total, start)

    def _permuted_type(self, type_: TensorType, *, in_order: bool) -> TensorType:
        """A tile as rows x blocks x groups x registers x columns; permuted sums swap groups and registers."""
        rows, cols = type_.shape
        registers, width = self.recipe.tile.column_permutation
        groups = self.recipe.tile.lanes // width
        inner = (groups, registers, width) if in_order else (registers, groups, width)
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
            if self.recipe.prefetch.operands:
                self._prefetch_rows(block, b.add(k, steps.size), column)
            summed = replace(type_, padding=(0, padding))
            acc = b.typeinfo(sums, summed, "acc")
            sums = b.mma(recipe.mma.name, acc, left, right, summed)
        self._store_sums(block, j, sums)

    def _prefetch_rows(self, block: CacheBlock, k: Value, column: Value) -> None:
        """Prefetch a group of rows of B at the columns of a tile."""
        view, size = self.gemm.b, bytes_of(self.gemm.b.element)
        offset = self.b.mul(self.b.add(self.b.mul(k, view.row_stride), column), size)
        width, pitch = self.recipe.mma.width, view.row_stride * size
        rows = PrefetchStream(
            self.function.rhs, offset, block.columns.valid * size, rows=width, pitch=pitch, locality=L2_LOCALITY
        )
        rows.emit(self.b, self.function.target.caches.line_bytes)

    def _rows_of_b(self, block: CacheBlock, k: Value, column: Value, missing: int) -> tuple[Value, int]:
        """A group of rows of a tile of B, and its number of padding columns: 0 if the columns are permuted."""
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
            b.reshape_permute(permuted, SWAPPED_AXES, plain.shape, plain.vector, "b.permuted"), plain, "b"
        ), 0
