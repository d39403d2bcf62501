"""Reductions: the threads that share a result accumulate parts of it, and combine them in shared memory, by halves.

along a row       threads side by side, each some adjacent elements every so many     one row per warp or block
along a column    threads below each other                                            16 bytes of columns per thread
"""

from __future__ import annotations

from typing import Final

from tlx.ir.module import Module
from tlx.ir.types import I32, I64, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_blocks.kernel import GridFacts, GridKernel, Iterations, as_index, row_tile, vector_columns
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter
from tlx.lower.to_tiles.emit.reduction_operation import ReductionOperation
from tlx.lower.to_tiles.emit.tiles import load_tile_vector, store_tile_vector, tile_address
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Reduction, canonical_reduction
from tlx.target.grid_unit import GridUnit

_LONG_ROW: Final = 8
"""A row is reduced by a block if each thread of a warp would read more vectors than this, else by a warp."""


def reduction_grid_kernel(
    module: Module, grid: GridUnit, problem: Reduction, iterations: Iterations, name: str
) -> GridFacts:
    """Add the kernel of a reduction."""
    elements = {leaf.pointer: leaf.element for leaf in problem.value.leaves()}
    scalars = {scalar.number: scalar.element for scalar in problem.value.scalars()}
    problem = canonical_reduction(problem)
    value, to = problem.value, problem.destination
    along_row = problem.axis == 1
    columns = vector_columns(value.cols, value.element)
    vectors = value.cols // columns
    if along_row:
        share = grid.threads if vectors > grid.warp * _LONG_ROW else grid.warp  # threads of a result
        results, length = value.rows, vectors
    else:
        results, length = vectors, value.rows
        share = next(n for n in (8, 16, 32, 64, 128, 256) if n == grid.threads or results * n >= 32 * grid.threads)
    per_block = grid.threads // share
    kernel = GridKernel(
        module,
        grid,
        name,
        [to.element, *(elements[number] for number in sorted(elements))],
        [scalars[number] for number in sorted(scalars)],
        iterations,
        -(-results // per_block),
    )
    b, operation = kernel.b, ReductionOperation(problem.operation, value.element)
    partial = operation.partial_element
    emitter = ExpressionEmitter(b, value, kernel.pointers[1:], kernel.scalars)
    local, member = kernel.divided(kernel.thread, share)
    if not along_row:  # adjacent threads have adjacent columns
        member, local = kernel.divided(kernel.thread, per_block)
    result = b.add(b.mul(kernel.tile, per_block), local)
    shared = grid.operations.shared(b)
    parts = MatrixView(partial, grid.threads, columns, columns, 1)
    origin = const_int(I64, 0)
    own = row_tile(columns, as_index(b, b.add(b.mul(member, per_block), local)), origin)
    own_address = tile_address(b, parts, shared, own)
    valid = b.icmp("ult", result, const_int(I32, results))
    clamped = b.select(valid, result, const_int(I32, 0))

    def widened(at: Value) -> Value:
        """The elements at a position along the reduced axis (i32)."""
        row, vector = (clamped, at) if along_row else (at, clamped)
        place = row_tile(columns, as_index(b, row), as_index(b, b.mul(vector, columns)))
        return operation.widened(b, emitter.result(place))

    start: Value = operation.identity(columns)
    if length >= share:
        with b.loop(0, length // share, carry=[start], name="round") as loop:
            at = b.add(b.mul(b.cast("trunc", loop.index, I32), share), member)
            loop.next(operation.apply(b, loop.carried[0], widened(at)))
        start = loop.results[0]
    store_tile_vector(b, parts, own_address, own, start)
    if length % share:
        with b.if_block(b.icmp("ult", member, length % share), "rest"):
            before = load_tile_vector(b, parts, own_address, own)
            rest = operation.apply(b, before, widened(b.add(member, length - length % share)))
            store_tile_vector(b, parts, own_address, own, rest)
    distance = share // 2
    while distance:
        grid.operations.barrier(b)
        with b.if_block(b.icmp("ult", member, distance), "combine"):
            other = row_tile(columns, as_index(b, b.add(b.mul(b.add(member, distance), per_block), local)), origin)
            x = load_tile_vector(b, parts, own_address, own)
            y = load_tile_vector(b, parts, tile_address(b, parts, shared, other), other)
            store_tile_vector(b, parts, own_address, own, operation.apply(b, x, y))
        distance //= 2
    first = b.binary("and", b.icmp("eq", member, 0), valid)
    with b.if_block(first, "result"):
        total = load_tile_vector(b, parts, own_address, own)
        if along_row:
            total = operation.reduce_row(b, total, columns)
            place = row_tile(1, as_index(b, result), origin)
        else:
            place = row_tile(columns, origin, as_index(b, b.mul(result, columns)))
        narrowed = operation.narrowed(b, total)
        store_tile_vector(b, to, tile_address(b, to, kernel.pointers[0], place), place, narrowed)
    return kernel.finish(grid.threads, grid.threads * columns * bytes_of(partial))
