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

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Final

from tlx.diagnostics import LoweringError, Span
from tlx.ir.module import Module
from tlx.ir.types import I8, I32, FloatType, Type, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_blocks.elementwise import Transposition, blocks_of
from tlx.lower.to_blocks.epilogue import Epilogue, HeldSums, ResultPart
from tlx.lower.to_blocks.fragments import FragmentSums
from tlx.lower.to_blocks.group_product import GroupSums, MappedGroupSums, MappedMemory, MappedOperands
from tlx.lower.to_blocks.implicit_gemm import MergedProduct
from tlx.lower.to_blocks.kernel import (
    GridFacts,
    GridKernel,
    Iterations,
    MappedPointer,
    as_index,
    row_tile,
)
from tlx.lower.to_blocks.positions import Positions, TileSums, terms_of
from tlx.lower.to_blocks.scalar_product import ScalarSums, operand_bytes
from tlx.lower.to_blocks.staging import CHUNK, StagedSums
from tlx.lower.to_tiles.emit.tiles import ResultTile, load_tile_vector, store_tile_vector, tile_address
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm, gemm_accumulator_type
from tlx.target.grid_unit import BlockShape, FragmentProduct, GridUnit, GroupProduct

_BANDS: Final = 8
"""Blocks that add up the parts of a tile."""
_MOST_SPLITS: Final = 16
_OTHER_REGISTERS: Final = 40
"""Registers of a thread besides those of its sums and operands: addresses, numbers of stages and the like."""
_REGISTER_BYTES: Final = 4
"""Bytes of a register."""
_SERIAL: Final = 0.25
"""The share of a block's start that takes time besides the other blocks of the multiprocessor."""
_GAIN: Final = 1.1
"""How much faster a product must be expected to be for several blocks to share its positions of K."""
_OVERLAP: Final = 0.25
"""The share of the faster of copies and products that takes time besides the other."""
_OVERLAP_AT_ONCE: Final = 0.35
"""That share where the copies of all stages start before the first one is multiplied."""
_OVERLAP_OF_MAPPED: Final = 0.1
"""That share where a thread of its own copies by tensor maps."""


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """How a product is computed.

    Attributes:
        shape: The block's tile.
        product: The product of fragments or of groups; None if each thread multiplies numbers.
        tiles: Rows and columns of tiles.
        splits: How many blocks share a tile's positions of K.
        is_mapped: Whether the operands are copied by tensor maps.
    """

    shape: BlockShape
    product: FragmentProduct | GroupProduct | None
    tiles: tuple[int, int]
    splits: int = 1
    is_mapped: bool = False

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return self.shape.rows * self.shape.columns


def plan_product(grid: GridUnit, product: MergedProduct, copied: Collection[int] = ()) -> ProductPlan:
    """Choose the fastest tile and number of blocks that share its positions of K.

    Args:
        grid: The target's grid.
        product: The product.
        copied: Operands, by their pointers' numbers, that other kernels copy to the workspace before.
    """
    gemm = product.gemm
    accumulator = gemm_accumulator_type(gemm)
    unit = _unit(grid, gemm)
    plans = [
        ProductPlan(shape, unit, (-(-product.rows // shape.rows), -(-product.columns // shape.columns)))
        for shape in (unit.shapes if unit is not None else grid.scalar_shapes)
    ]
    if isinstance(unit, GroupProduct):
        places = dict.fromkeys(copied, 0)
        plans += [
            replace(plan, is_mapped=True)
            for plan in plans
            if MappedOperands.of(grid, product, plan.shape, places) is not None
        ]
    plans = [plan for plan in plans if _shared_bytes(plan, gemm, accumulator) <= grid.shared_bytes]
    candidates = [_with_splits(grid, plan, splits, gemm) for plan in plans for splits in _splits(plan, gemm)]
    return min(candidates, key=lambda plan: _cycles(grid, plan, product))


def _with_splits(grid: GridUnit, plan: ProductPlan, splits: int, gemm: Gemm) -> ProductPlan:
    """The plan with blocks that share a tile's positions of K, which need no more stages than they have.

    Blocks that compute several tiles have more stages, for copies of the next tiles, if that does not reduce the blocks
    that run at once.
    """
    most = plan.shape.stages
    plans = [
        replace(plan, splits=splits, shape=replace(plan.shape, stages=stages))
        for stages in range(min(most, _stages(plan, gemm) // splits), most + 1)
    ]
    if not plan.is_mapped or splits > 1:
        return plans[0]
    return max(plans, key=lambda plan: (_resident_blocks(grid, plan, gemm), plan.shape.stages))


def _unit(grid: GridUnit, gemm: Gemm) -> FragmentProduct | GroupProduct | None:
    """The product of fragments or groups, if there is one."""
    return next((unit for unit in grid.products if _fits(unit, gemm)), None)


def _splits(plan: ProductPlan, gemm: Gemm) -> list[int]:
    """The numbers of blocks that can share a tile's positions of K."""
    stages, least = _stages(plan, gemm), plan.shape.stages
    return [n for n in range(1, _MOST_SPLITS + 1) if stages % n == 0 and (n == 1 or stages // n >= least)]


def _cycles(grid: GridUnit, plan: ProductPlan, product: MergedProduct) -> float:
    """The time of the kernels, if each multiprocessor runs its blocks one after the other, but starts some at once."""
    gemm, shape, costs = product.gemm, plan.shape, grid.costs
    size = bytes_of(gemm.a.element)
    copied = (shape.rows + shape.columns) * shape.depth * size / costs.copied_bytes
    multiplied = plan.tile * shape.depth / _rate(grid, plan, size)
    stages = _stages(plan, gemm) // plan.splits
    stage = max(copied, multiplied) + _overlap(plan, stages) * min(copied, multiplied)
    rounds = -(-prod(plan.tiles) * plan.splits * prod(product.outer.trips) // grid.multiprocessors)
    at_once = _resident_blocks(grid, plan, gemm)
    started = -(-rounds // at_once)
    if plan.is_mapped and at_once == 1:  # the first copies of a tile are those during the epilogue of the one before
        started = (1 + rounds) / 2
    starts = (started + _SERIAL * rounds) * costs.block + (costs.mapping if plan.is_mapped else 0)
    cycles = stages * stage
    if plan.splits == 1:
        return starts + rounds * cycles
    parts = 2 * plan.tile * bytes_of(gemm_accumulator_type(gemm)) / costs.memory_bytes  # written, and read
    return _GAIN * (starts + rounds * (cycles + parts)) + costs.kernel


def _resident_blocks(grid: GridUnit, plan: ProductPlan, gemm: Gemm) -> int:
    """Blocks that a multiprocessor runs at once: as many as it has shared memory and registers for."""
    shared = _shared_bytes(plan, gemm, gemm_accumulator_type(gemm)) + grid.reserved_bytes
    registers = _block_threads(grid, plan) * _registers(grid, plan, gemm)
    by_registers = max(plan.shape.resident, grid.registers // registers)
    return min(by_registers, (grid.shared_bytes + grid.reserved_bytes) // shared)


def _block_threads(grid: GridUnit, plan: ProductPlan) -> int:
    """Threads of a block, those of the warp that copies by tensor maps included."""
    threads = plan.shape.warps * (grid.warp if plan.product is not None else 1)
    return threads + (grid.warp if plan.is_mapped else 0)


def _registers(grid: GridUnit, plan: ProductPlan, gemm: Gemm) -> int:
    """An estimate of a thread's registers: its sums and operands; of fragments two steps, of groups none.

    The operands of groups stay in shared memory.
    """
    shape, unit, size = plan.shape, plan.product, bytes_of(gemm_accumulator_type(gemm))
    area, sides = shape.warp_rows * shape.warp_columns, shape.warp_rows + shape.warp_columns
    if unit is None:
        held_bytes = (area + sides) * size
    elif isinstance(unit, GroupProduct):
        held_bytes = area // grid.warp * size
    else:
        held_bytes = (area * size + 2 * sides * unit.depth * bytes_of(gemm.a.element)) // grid.warp
    return held_bytes // _REGISTER_BYTES + _OTHER_REGISTERS


def _overlap(plan: ProductPlan, stages: int) -> float:
    """The share of the faster of copies and products that takes time besides the other, in a block of some stages."""
    if stages == 1:
        return 1.0
    if plan.is_mapped:
        return _OVERLAP_OF_MAPPED
    return _OVERLAP_AT_ONCE if stages <= plan.shape.stages else _OVERLAP


def _rate(grid: GridUnit, plan: ProductPlan, size: int) -> float:
    """Products in a cycle, of operands of some bytes, which most units load from shared memory."""
    shape, unit = plan.shape, plan.product
    area, sides = shape.warp_rows * shape.warp_columns, shape.warp_rows + shape.warp_columns
    if isinstance(unit, GroupProduct):
        return unit.rate
    if unit is None:  # an instruction for each number that is loaded, too
        return grid.costs.scalar_rate * area / (area + sides)
    return min(unit.rate, grid.costs.shared_bytes / size * area / sides)


def _stages(plan: ProductPlan, gemm: Gemm) -> int:
    return -(-gemm.k * len(terms_of(gemm)) // plan.shape.depth)


def _fits(product: FragmentProduct | GroupProduct, gemm: Gemm) -> bool:
    operands = (str(gemm.a.element), gemm.lhs_sign), (str(gemm.b.element), gemm.rhs_sign)
    return operands == (product.lhs, product.rhs) and str(gemm_accumulator_type(gemm)) == product.accumulator


def _shared_bytes(plan: ProductPlan, gemm: Gemm, accumulator: Type) -> int:
    shape = plan.shape
    if plan.is_mapped:
        return MappedMemory.of(shape, gemm).size
    if plan.product is None:
        return operand_bytes(shape, accumulator)
    operands = (shape.rows + shape.columns) * shape.depth * bytes_of(gemm.a.element) * shape.stages
    rows = GroupSums.rows if isinstance(plan.product, GroupProduct) else plan.product.rows
    return max(operands, shape.warps * ResultPart.of(gemm.c.element, rows, shape.warp_columns).size)


def product_grid_kernels(
    module: Module, grid: GridUnit, gemm: Gemm, iterations: Iterations, name: str, span: Span | None
) -> tuple[GridFacts, ...]:
    """Add the kernel of a product, or two if several blocks share the positions of K.

    Raises:
        LoweringError: The target has no kernel for the product.
    """
    _check(gemm, span)
    unit = _unit(grid, gemm)
    copies: list[_TransposedOperand] = []
    for is_lhs in (True, False):
        copy = None if unit is None else _TransposedOperand.of(gemm, iterations, unit, grid.warp, is_lhs=is_lhs)
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
        given: The loops with the program's operand.
        gemm, iterations: The product and the loops with the copy.
    """

    number: int
    transposition: Transposition
    bytes: int
    given: Iterations
    gemm: Gemm
    iterations: Iterations

    @classmethod
    def of(
        cls, gemm: Gemm, iterations: Iterations, unit: FragmentProduct | GroupProduct, warp: int, *, is_lhs: bool
    ) -> _TransposedOperand | None:
        """The operand, unless the unit takes it as it is, or it is part of several products."""
        view = gemm.a if is_lhs else gemm.b
        emitter = FragmentSums if isinstance(unit, FragmentProduct) else GroupSums
        size = bytes_of(view.element)
        if view.is_row_major == is_lhs or size in emitter.transposable or len(terms_of(gemm)) > 1:
            return None
        number, per_chunk = (1 if is_lhs else 2), CHUNK // size
        pitch = -(-gemm.k // per_chunk) * per_chunk
        strides = (pitch, 1) if is_lhs else (1, pitch)
        after = MatrixView(view.element, view.rows, view.cols, *strides)
        transposition = Transposition.of(view, after, (iterations.alignments[number], CHUNK), warp)
        if transposition is None:  # a vector
            return None
        copied = replace(gemm, a=after) if is_lhs else replace(gemm, b=after)
        matrix_bytes = (gemm.m if is_lhs else gemm.n) * pitch * size
        with_copy = iterations.with_dense(number, matrix_bytes)
        return cls(number, transposition, matrix_bytes, iterations, copied, with_copy)

    @property
    def all_bytes(self) -> int:
        """Bytes of the copies for all iterations."""
        return prod(self.given.moving(self.number).trips) * self.bytes


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
        self.threads = shape.warps * (self.grid.warp if self.plan.product is not None else 1)
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
            positions = Positions(self.module, kernel, self.merged.gemm, plan.shape.depth)

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
        name, iterations = f"{self.name}.{'ab'[copy.number - 1]}", copy.given.moving(copy.number)
        blocks = blocks_of(copy.transposition, self.grid)
        kernel = self._new(name, iterations.with_workspace(1, copy.bytes), blocks)
        to = kernel.b.gep(I8, kernel.pointers[-1], self.offsets[copy.number])
        copy.transposition.emit(kernel, kernel.pointers[copy.number], to)
        return kernel.finish(self.grid.threads, 0, 1, workspace)

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
        return _shared_bytes(self.plan, self.merged.gemm, self.accumulator)

    def _blocks(self, kernel: GridKernel) -> int:
        """Blocks of a kernel that computes sums: as many as run at once, if each can compute several tiles."""
        if self.mapped is None or self.plan.splits > 1:
            return kernel.all_tiles
        at_once = _resident_blocks(self.grid, self.plan, self.merged.gemm)
        return min(kernel.all_tiles, at_once * self.grid.multiprocessors)

    def _finished(self, kernel: GridKernel, workspace: int) -> GridFacts:
        threads, resident = _block_threads(self.grid, self.plan), self.plan.shape.resident
        return kernel.finish(threads, self._shared, resident, workspace, self._blocks(kernel))

    def _emit_sums(self, kernel: GridKernel, positions: Positions, use: Callable[[HeldSums], None]) -> None:
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
        positions = Positions(self.module, kernel, self.merged.gemm, depth, splits, split)
        base = self._partial_tile(kernel)

        def store(held: HeldSums) -> None:
            sums = held.complete()
            for run in held.runs:
                row, column = (
                    b.add(at, distance) for at, distance in zip(held.place, (run.row, run.column), strict=True)
                )
                place = row_tile(run.count, as_index(b, row), as_index(b, column))
                store_tile_vector(
                    b, self.partial, tile_address(b, self.partial, base, place), place, run.values(b, sums)
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

        def total(place: ResultTile) -> Value:
            parts = [b.gep(I8, base, number * distance) for number in range(self.plan.splits)]
            values = [load_tile_vector(b, self.partial, tile_address(b, self.partial, x, place), place) for x in parts]
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
    group = min(kernel.grid.group, rows)
    number, inner = kernel.divided(kernel.tile, group * columns)
    first = b.mul(number, group)
    if rows % group == 0:
        column, row = kernel.divided(inner, group)
    else:
        size = b.umin(b.sub(const_int(I32, rows), first), group)
        column, row = b.binary("udiv", inner, size), b.binary("urem", inner, size)
    return b.mul(b.add(first, row), plan.shape.rows), b.mul(column, plan.shape.columns)
