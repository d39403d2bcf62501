"""Kernels of products: a block computes a tile of C.

    for stages of K        the tiles of A and B are copied to shared memory, zeros beyond the matrices
      sums += A @ B        each warp, or each thread, its part of the tile
    C = f(sums)            each thread, of its own sums

Where there are few tiles and K is long, several blocks share the positions of K of a tile, and a second kernel adds up
their sums and computes C (split K).

Consecutive blocks are numbered along groups of rows of tiles, so that blocks that run at once share operands in L2:

    0 2 4 6     group of 2 rows, 4 columns of tiles
    1 3 5 7
    8 ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Final

from tlx.diagnostics import LoweringError, Span
from tlx.ir.module import Module
from tlx.ir.types import I8, I32, FloatType, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_blocks.elementwise import Transposition, blocks_of
from tlx.lower.to_blocks.kernel import (
    GridFacts,
    GridKernel,
    Iterations,
    MappedPointer,
    as_index,
    row_tile,
)
from tlx.lower.to_blocks.products.epilogue import Epilogue, ThreadSums
from tlx.lower.to_blocks.products.fragments import FragmentSums
from tlx.lower.to_blocks.products.group_product import GroupSums, MappedGroupSums, MappedOperands
from tlx.lower.to_blocks.products.implicit_gemm import MergedProduct
from tlx.lower.to_blocks.products.k_positions import KPositions, TileSums, terms_of
from tlx.lower.to_blocks.products.plan import (
    ProductPlan,
    block_threads,
    plan_product,
    resident_blocks,
    shared_bytes,
    unit_of,
)
from tlx.lower.to_blocks.products.scalar_product import ScalarSums
from tlx.lower.to_blocks.products.staging import StagedSums
from tlx.lower.to_tiles.emit.tiles import ResultTile, load_tile_vector, store_tile_vector, tile_address
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm, gemm_accumulator_type
from tlx.target.grid_unit import CHUNK_BYTES, FragmentProduct, GridUnit, GroupProduct

_BANDS: Final = 8
"""Blocks that add up the parts of a tile."""


def product_grid_kernels(
    module: Module, grid: GridUnit, gemm: Gemm, iterations: Iterations, name: str, span: Span | None
) -> tuple[GridFacts, ...]:
    """Add the kernel of a product, or two if several blocks share the positions of K.

    Raises:
        LoweringError: The target has no kernel for the product.
    """
    _check(gemm, span)
    unit = unit_of(grid, gemm)
    copies: list[_TransposedOperand] = []
    for is_lhs in (True, False):
        copy = None if unit is None else _TransposedOperand.of(gemm, iterations, unit, grid, is_lhs=is_lhs)
        if copy is not None:
            copies.append(copy)
            gemm, iterations = copy.gemm, copy.iterations
    merged = MergedProduct.of(gemm, iterations)
    plan = plan_product(grid, merged, [copy.number for copy in copies])
    return _ProductKernels(module, grid, merged, plan, name, copies).facts()


@dataclass(frozen=True)
class _TransposedOperand:
    """An operand whose lines follow K, and must not: a kernel transposes it before.

    Attributes:
        number: Position among the kernel's pointers.
        transposition: From the program's matrix to that in the workspace.
        bytes: Bytes of a copy.
        source_iterations: The loops with the program's operand.
        gemm, iterations: The product and the loops with the copy.
    """

    number: int
    transposition: Transposition
    bytes: int
    source_iterations: Iterations
    gemm: Gemm
    iterations: Iterations

    @classmethod
    def of(
        cls, gemm: Gemm, iterations: Iterations, unit: FragmentProduct | GroupProduct, grid: GridUnit, *, is_lhs: bool
    ) -> _TransposedOperand | None:
        """The operand, unless the unit takes it as it is, or it is part of several products."""
        view = gemm.a if is_lhs else gemm.b
        emitter = FragmentSums if isinstance(unit, FragmentProduct) else GroupSums
        size = bytes_of(view.element)
        if view.is_row_major == is_lhs or size in emitter.transposable or len(terms_of(gemm)) > 1:
            return None
        number, per_chunk = (1 if is_lhs else 2), CHUNK_BYTES // size
        pitch = -(-gemm.k // per_chunk) * per_chunk
        strides = (pitch, 1) if is_lhs else (1, pitch)
        after = MatrixView(view.element, view.rows, view.cols, *strides)
        transposition = Transposition.of(view, after, (iterations.alignments[number], CHUNK_BYTES), grid)
        if transposition is None:  # a vector
            return None
        copied = replace(gemm, a=after) if is_lhs else replace(gemm, b=after)
        matrix_bytes = (gemm.m if is_lhs else gemm.n) * pitch * size
        with_copy = iterations.with_dense(number, matrix_bytes)
        return cls(number, transposition, matrix_bytes, iterations, copied, with_copy)

    @property
    def all_bytes(self) -> int:
        """Bytes of the copies for all iterations."""
        return prod(self.source_iterations.moving(self.number).trips) * self.bytes


@dataclass(eq=False)
class _ProductKernels:
    """Emits the kernels of a product."""

    module: Module
    grid: GridUnit
    merged: MergedProduct
    plan: ProductPlan
    name: str
    copies: Sequence[_TransposedOperand]

    def __post_init__(self) -> None:
        shape, self.accumulator = self.plan.shape, gemm_accumulator_type(self.merged.gemm)
        self.threads = shape.warps * (self.grid.warp_threads if self.plan.product is not None else 1)
        self.partial = MatrixView(self.accumulator, shape.rows, shape.columns, shape.columns, 1)
        self.tile_bytes = self.plan.tile * bytes_of(self.accumulator)
        self.mapped: MappedOperands | None = None

    def facts(self) -> tuple[GridFacts, ...]:
        """Emit the kernels."""
        plan, outer, iteration_bytes = self.plan, self.merged.outer, prod(self.plan.tiles) * self.tile_bytes
        parts_bytes = plan.splits * prod(outer.trips) * iteration_bytes if plan.splits > 1 else 0
        self.offsets, workspace = dict[int, int](), parts_bytes
        for copy in self.copies:
            self.offsets[copy.number] = workspace
            workspace += copy.all_bytes
        if plan.is_mapped:
            self.mapped = MappedOperands.of(self.grid, self.merged, plan.shape, self.offsets)
        copies = tuple(self._transposed(copy, workspace) for copy in self.copies)
        if plan.splits == 1:
            kernel = self._sums_kernel(self.name, outer.with_workspace(1, 0) if copies else outer)
            positions = KPositions(self.module, kernel, self.merged.gemm, plan.shape.depth)

            self._emit_sums(kernel, positions, Epilogue(kernel, self.merged, plan.shape).store)
            return *copies, self._finished(kernel, workspace)
        parts = self._sums_kernel(f"{self.name}.parts", outer.with_workspace(plan.splits, iteration_bytes))
        self._emit_part(parts)
        bands = prod(plan.tiles) * _BANDS
        total = self._new(self.name, outer.with_workspace(1, iteration_bytes), bands, self.offsets)
        self._emit_total(total, prod(outer.trips) * iteration_bytes)
        return *copies, self._finished(parts, workspace), total.finish(self.threads, 0, 1, workspace)

    def _transposed(self, copy: _TransposedOperand, workspace: int) -> GridFacts:
        """The kernel that transposes an operand into the workspace."""
        name, iterations = f"{self.name}.{'ab'[copy.number - 1]}", copy.source_iterations.moving(copy.number)
        blocks = blocks_of(copy.transposition, self.grid)
        kernel = self._new(name, iterations.with_workspace(1, copy.bytes), blocks)
        to = kernel.b.gep(I8, kernel.pointers[-1], self.offsets[copy.number])
        copy.transposition.emit(kernel, kernel.pointers[copy.number], to)
        return kernel.finish(self.grid.block_threads, 0, 1, workspace)

    def _sums_kernel(self, name: str, iterations: Iterations) -> GridKernel:
        """A kernel that computes sums of tiles."""
        maps = self.mapped.pointers if self.mapped is not None else ()
        return self._new(name, iterations, prod(self.plan.tiles), self.offsets, maps)

    def _new(
        self,
        name: str,
        iterations: Iterations,
        tiles: int,
        in_workspace: dict[int, int] | None = None,
        maps: Sequence[MappedPointer] = (),
    ) -> GridKernel:
        gemm = self.merged.gemm
        leaves, scalars = gemm.epilogue.parameters() if gemm.epilogue else ({}, {})
        views = [gemm.c, gemm.a, gemm.b, *([gemm.acc] if gemm.acc else [])]
        workspace = [self.accumulator] if len(iterations.steps) > len(self.merged.outer.steps) else []
        pointers = [*(view.element for view in views), *leaves.values(), *workspace]
        numbers = list(scalars.values())
        return GridKernel(self.module, self.grid, name, pointers, numbers, iterations, tiles, in_workspace, maps)

    @property
    def _shared(self) -> int:
        return shared_bytes(self.plan, self.merged.gemm, self.accumulator)

    def _blocks(self, kernel: GridKernel) -> int:
        """Blocks of a kernel that computes sums: as many as run at once, if each can compute several tiles."""
        if self.mapped is None or self.plan.splits > 1:
            return kernel.all_tiles
        at_once = resident_blocks(self.grid, self.plan, self.merged.gemm)
        return min(kernel.all_tiles, at_once * self.grid.multiprocessors)

    def _finished(self, kernel: GridKernel, workspace: int) -> GridFacts:
        threads, resident = block_threads(self.grid, self.plan), self.plan.shape.min_resident_blocks
        return kernel.finish(threads, self._shared, resident, workspace, self._blocks(kernel))

    def _emit_sums(self, kernel: GridKernel, positions: KPositions, use: Callable[[ThreadSums], None]) -> None:
        """Compute the sums of the block's tiles, and use them."""
        plan, shared = self.plan, self.grid.operations.shared(kernel.b)
        emitter: StagedSums | ScalarSums
        tile = TileSums(self.merged, plan.shape, shared, self.accumulator, positions)
        if isinstance(plan.product, GroupProduct) and self.mapped is not None:
            emitter = MappedGroupSums(kernel, tile, plan.product, self.mapped, self._blocks(kernel))
            emitter.emit_tiles(lambda: _place_of_tile(kernel, plan), use)
            return
        origin = _place_of_tile(kernel, plan)
        if isinstance(plan.product, FragmentProduct):
            emitter = FragmentSums(kernel, tile, plan.product)
        elif isinstance(plan.product, GroupProduct):
            emitter = GroupSums(kernel, tile, plan.product)
        else:
            emitter = ScalarSums(kernel, tile)
        use(emitter.emit(*origin))

    def _partial_tile(self, kernel: GridKernel) -> Value:
        """The address of the tile in the workspace of the iteration."""
        return kernel.b.gep(I8, kernel.pointers[-1], kernel.b.mul(as_index(kernel.b, kernel.tile), self.tile_bytes))

    def _emit_part(self, kernel: GridKernel) -> None:
        """Compute the sums of some positions of K into the workspace."""
        b, plan = kernel.b, self.plan
        split, _ = kernel.divided(kernel.iteration, prod(self.merged.outer.trips))
        depth, splits = plan.shape.depth, plan.splits
        positions = KPositions(self.module, kernel, self.merged.gemm, depth, splits, split)
        base = self._partial_tile(kernel)

        def store(thread_sums: ThreadSums) -> None:
            sums = thread_sums.complete()
            for segment in thread_sums.segments:
                first_row, first_column = thread_sums.position
                row, column = b.add(first_row, segment.row), b.add(first_column, segment.column)
                result_tile = row_tile(segment.count, as_index(b, row), as_index(b, column))
                store_tile_vector(
                    b,
                    self.partial,
                    tile_address(b, self.partial, base, result_tile),
                    result_tile,
                    segment.values(b, sums),
                )

        self._emit_sums(kernel, positions, store)

    def _emit_total(self, kernel: GridKernel, distance: int) -> None:
        """Compute C from the sums in the workspace, which are a distance in bytes apart."""
        kernel.tile, band = kernel.divided(kernel.tile, _BANDS)
        b, base = kernel.b, self._partial_tile(kernel)
        opcode = "fadd" if isinstance(self.accumulator, FloatType) else "add"

        epilogue = Epilogue(kernel, self.merged, self.plan.shape)
        columns = min(epilogue.columns, self.plan.shape.columns)
        count, origin = self.plan.tile // columns // _BANDS, _place_of_tile(kernel, self.plan)

        def total(result_tile: ResultTile) -> Value:
            parts = [b.gep(I8, base, number * distance) for number in range(self.plan.splits)]
            values = [
                load_tile_vector(b, self.partial, tile_address(b, self.partial, x, result_tile), result_tile)
                for x in parts
            ]
            return reduce(lambda x, y: b.binary(opcode, x, y), values)

        def body(number: Value) -> None:
            row, vector = kernel.divided(b.add(b.mul(band, count), number), self.plan.shape.columns // columns)
            column = b.mul(vector, columns)
            at = b.add(origin[0], row), b.add(origin[1], column)
            epilogue.store_columns(at, columns, lambda: total(row_tile(columns, as_index(b, row), as_index(b, column))))

        kernel.for_each(count, self.threads, body)


def _check(gemm: Gemm, span: Span | None) -> None:
    if gemm.reduction is not None:
        what = "a product whose rows or columns are reduced"
    elif gemm.a.interleave > 1 or gemm.b.interleave > 1:
        what = "a product of an operand whose rows are interleaved"
    elif gemm.acc is not None and not gemm.acc.is_row_major:
        what = "a product added to a column-major matrix"
    else:
        return
    raise LoweringError(f"{what} ({gemm.title}) is not implemented for GPUs", span)


def _place_of_tile(kernel: GridKernel, plan: ProductPlan) -> tuple[Value, Value]:
    """First row and column (i32) of the block's tile."""
    b, (rows, columns) = kernel.b, plan.tiles
    group = min(kernel.grid.raster_rows, rows)
    number, inner = kernel.divided(kernel.tile, group * columns)
    first = b.mul(number, group)
    if rows % group == 0:
        column, row = kernel.divided(inner, group)
    else:
        size = b.umin(b.sub(const_int(I32, rows), first), group)
        column, row = b.binary("udiv", inner, size), b.binary("urem", inner, size)
    return b.mul(b.add(first, row), plan.shape.rows), b.mul(column, plan.shape.columns)
