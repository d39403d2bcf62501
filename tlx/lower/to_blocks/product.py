"""Kernels of products: a block computes a tile of C, whose sums pass through shared memory to the epilogue.

    for stages of K        the tiles of A and B are copied to shared memory, zeros beyond the matrices
      sums += A @ B        each warp, or each thread, its part of the tile
    sums -> shared memory
    C = f(sums)            like an elementwise kernel, which reads the product from shared memory

Consecutive blocks are numbered along groups of rows of tiles, so that blocks that run at once share operands in L2:

    0 2 4 6     group of 2 rows, 4 columns of tiles
    1 3 5 7
    8 ...
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from tlx.diagnostics import LoweringError, Span
from tlx.ir.module import Module
from tlx.ir.types import I32, FloatType, Type, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_blocks.fragments import FragmentSums
from tlx.lower.to_blocks.group_product import GroupSums
from tlx.lower.to_blocks.kernel import GridFacts, GridKernel, Iterations, all_of, as_index, row_tile, vector_columns
from tlx.lower.to_blocks.merging import MergedProduct
from tlx.lower.to_blocks.positions import Positions
from tlx.lower.to_blocks.scalar_product import ScalarSums, operand_bytes
from tlx.lower.to_blocks.staging import StagedSums
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter
from tlx.lower.to_tiles.emit.tiles import (
    ResultTile,
    convert_tile,
    load_tile_vector,
    store_tile_vector,
    tile_address,
)
from tlx.lower.to_tiles.expression import Expression, MatrixView, ProductLeaf
from tlx.lower.to_tiles.problem import Gemm, gemm_accumulator_type
from tlx.target.grid_unit import BlockShape, FragmentProduct, GridUnit, GroupProduct

_PADDING: Final = 8
"""Columns after each row of sums in shared memory: rows of a fragment are then in different banks."""
_BUSY: Final = 0.9
"""The share of the multiprocessors that must have a block: 2048 x 2048 are 128 tiles of 128 x 256 for 132 of them."""
_MOST_WASTE: Final = 1.5
"""How much more than others the tiles may cover: larger ones share more operands."""


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """How a product is computed.

    Attributes:
        shape: The block's tile.
        product: The product of fragments or of groups; None if each thread multiplies numbers.
        tiles: Rows and columns of tiles.
    """

    shape: BlockShape
    product: FragmentProduct | GroupProduct | None
    tiles: tuple[int, int]

    @property
    def area(self) -> int:
        """Elements of all tiles."""
        return prod(self.tiles) * self.shape.rows * self.shape.columns


def plan_product(grid: GridUnit, product: MergedProduct) -> ProductPlan:
    """Choose the product of fragments and the tile.

    It is the first that gives most multiprocessors a block, else the last, of those with little beyond the matrix.
    """
    gemm = product.gemm
    accumulator = gemm_accumulator_type(gemm)
    choices: list[tuple[FragmentProduct | GroupProduct | None, BlockShape]] = [
        (unit, shape) for unit in grid.products if _fits(unit, gemm) for shape in unit.shapes
    ]
    choices = choices or [(None, shape) for shape in grid.scalar_shapes]
    plans = [
        ProductPlan(shape, unit, (-(-product.rows // shape.rows), -(-product.columns // shape.columns)))
        for unit, shape in choices
    ]
    plans = [plan for plan in plans if _shared_bytes(plan, gemm, accumulator) <= grid.shared_bytes]
    least = min(plan.area for plan in plans)
    plans = [plan for plan in plans if plan.area <= _MOST_WASTE * least]
    trips = prod(product.outer.trips)
    return next((plan for plan in plans if prod(plan.tiles) * trips >= _BUSY * grid.multiprocessors), plans[-1])


def _fits(product: FragmentProduct | GroupProduct, gemm: Gemm) -> bool:
    operands = (str(gemm.a.element), gemm.lhs_sign), (str(gemm.b.element), gemm.rhs_sign)
    return operands == (product.lhs, product.rhs) and str(gemm_accumulator_type(gemm)) == product.accumulator


def _shared_bytes(plan: ProductPlan, gemm: Gemm, accumulator: Type) -> int:
    shape = plan.shape
    if plan.product is None:
        operands = operand_bytes(shape, accumulator)
    else:
        operands = (shape.rows + shape.columns) * shape.depth * bytes_of(gemm.a.element) * shape.stages
    return max(operands, shape.rows * (shape.columns + _PADDING) * bytes_of(accumulator))


def product_grid_kernel(
    module: Module, grid: GridUnit, gemm: Gemm, iterations: Iterations, name: str, span: Span | None
) -> GridFacts:
    """Add the kernel of a product.

    Raises:
        LoweringError: The target has no kernel for the product.
    """
    _check(gemm, span)
    merged = MergedProduct.of(gemm, iterations)
    plan = plan_product(grid, merged)
    shape, accumulator = plan.shape, gemm_accumulator_type(gemm)
    threads = shape.warps * (grid.warp if plan.product is not None else 1)
    leaves, scalars = gemm.epilogue.parameters() if gemm.epilogue else ({}, {})
    operands = [gemm.c, gemm.a, gemm.b, *([gemm.acc] if gemm.acc else [])]
    kernel = GridKernel(
        module,
        grid,
        name,
        [*(view.element for view in operands), *leaves.values()],
        list(scalars.values()),
        merged.outer,
        prod(plan.tiles),
    )
    row, column = _place_of_tile(kernel, plan)
    shared = grid.operations.shared(kernel.b)
    sums = MatrixView(accumulator, shape.rows, shape.columns, shape.columns + _PADDING, 1)
    positions = Positions(module, kernel, gemm, shape.depth)
    emitter: StagedSums | ScalarSums
    if isinstance(plan.product, FragmentProduct):
        emitter = FragmentSums(kernel, merged, shape, shared, accumulator, positions, plan.product)
    elif isinstance(plan.product, GroupProduct):
        emitter = GroupSums(kernel, merged, shape, shared, accumulator, positions, plan.product)
    else:
        emitter = ScalarSums(kernel, merged, shape, shared, accumulator, positions)
    emitter.emit(row, column, sums)
    grid.operations.barrier(kernel.b)
    _emit_epilogue(kernel, merged, plan, sums, shared, (row, column), threads)
    return kernel.finish(threads, _shared_bytes(plan, gemm, accumulator), shape.resident)


def _check(gemm: Gemm, span: Span | None) -> None:
    if gemm.reduction is not None:
        what = "a product whose rows or columns are reduced"
    elif gemm.a.interleave > 1 or gemm.b.interleave > 1:
        what = "a product of an operand whose rows are interleaved"
    elif gemm.acc is not None and not gemm.acc.is_row_major:
        what = "a product added to a column-major matrix"
    else:
        return
    raise LoweringError(f"{what} ({gemm.title}) is not implemented for targets with grids", span)


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


def _emit_epilogue(
    kernel: GridKernel,
    merged: MergedProduct,
    plan: ProductPlan,
    sums: MatrixView,
    shared: Value,
    origin: tuple[Value, Value],
    threads: int,
) -> None:
    """Compute C from the sums in shared memory."""
    b, shape, gemm = kernel.b, plan.shape, merged.gemm
    leading = 4 if gemm.acc is not None else 3
    value = gemm.epilogue or Expression(gemm.m, gemm.n, (ProductLeaf(gemm.c.element),))
    by_rows = gemm.c.is_row_major
    columns = min(vector_columns(gemm.n, gemm.c.element), shape.columns) if by_rows else 1

    def body(number: Value) -> None:
        outer, inner = kernel.divided(number, shape.columns // columns if by_rows else shape.rows)
        row, column = (outer, b.mul(inner, columns)) if by_rows else (inner, outer)
        at = b.add(origin[0], row), b.add(origin[1], column)
        within = row_tile(columns, as_index(b, row), as_index(b, column))
        checks: list[Value] = [b.icmp("ult", at[0], merged.rows)] if merged.rows % shape.rows else []
        checks += [b.icmp("ult", at[1], merged.columns)] if merged.columns % shape.columns else []
        condition = all_of(b, checks)
        if condition is None:
            element_vector(at, within)
            return
        with b.if_block(condition, "in.matrix"):
            element_vector(at, within)

    def element_vector(element: tuple[Value, Value], within: ResultTile) -> None:
        """Compute elements of C, by their place in it and in the tile."""
        iteration, *found = merged.found(kernel, *element)
        place = row_tile(columns, *(as_index(b, number) for number in found))
        pointers = [merged.moved(kernel, p, number, iteration) for number, p in enumerate(kernel.pointers)]

        def product(at: ResultTile) -> Value:
            total = load_tile_vector(b, sums, tile_address(b, sums, shared, within), at)
            if gemm.acc is not None:
                added = load_tile_vector(b, gemm.acc, tile_address(b, gemm.acc, pointers[3], at), at)
                opcode = "fadd" if isinstance(sums.element, FloatType) else "add"
                total = b.binary(opcode, total, convert_tile(b, added, sums.element, gemm.lhs_sign))
            return convert_tile(b, total, gemm.result, "s")

        emitter = ExpressionEmitter(b, value, pointers[leading:], kernel.scalars, product)
        result = convert_tile(b, emitter.result(place), gemm.c.element, "s")
        store_tile_vector(b, gemm.c, tile_address(b, gemm.c, pointers[0], place), place, result)

    kernel.for_each(shape.rows * shape.columns // columns, threads, body)
