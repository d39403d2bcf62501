"""Reductions: the threads that share a result accumulate parts of it, and combine them in shared memory, by halves.

along a row       threads side by side, each some adjacent elements every so many     one row per warp or block
along a column    threads below each other                                            16 bytes of columns per thread
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class ResultThreads:
    """Which threads of a block share a result.

    Attributes:
        share: How many threads.
        per_block: Results of a block.
        member: The thread's number among those of its result, i32.
        local: The number of its result in the block, i32.
        result: The number of its result, i32; for results beyond the last one, any.
        valid: Whether there is such a result; None if there is for all threads.
    """

    share: int
    per_block: int
    member: Value
    local: Value
    result: Value
    valid: Value | None


def reduction_grid_kernel(
    module: Module, grid: GridUnit, problem: Reduction, iterations: Iterations, name: str
) -> GridFacts:
    """Add the kernel of a reduction."""
    leaves, scalars = problem.value.parameters()
    problem = canonical_reduction(problem)
    value, along_row = problem.value, problem.axis == 1
    columns = vector_columns(value.cols, value.element)
    vectors = value.cols // columns
    if along_row:
        share = grid.block_threads if vectors > grid.warp_threads * _LONG_ROW else grid.warp_threads
        results = value.rows
    else:
        results = vectors
        share = next(
            n for n in (8, 16, 32, 64, 128, 256) if n == grid.block_threads or results * n >= 32 * grid.block_threads
        )
    per_block = grid.block_threads // share
    kernel = GridKernel(
        module,
        grid,
        name,
        [problem.destination.element, *leaves.values()],
        list(scalars.values()),
        iterations,
        -(-results // per_block),
    )
    b = kernel.b
    emitter = ExpressionEmitter(b, value, kernel.pointers[1:], kernel.scalars)
    local, member = kernel.divided(kernel.thread, share)
    if not along_row:  # adjacent threads have adjacent columns
        member, local = kernel.divided(kernel.thread, per_block)
    result = b.add(b.mul(kernel.tile, per_block), local)
    valid = b.icmp("ult", result, const_int(I32, results)) if results % per_block else None
    if valid is not None:
        result = b.select(valid, result, const_int(I32, 0))
    sharers = ResultThreads(share, per_block, member, local, result, valid)
    shared = grid.operations.shared(b)
    emit_reduction(kernel, problem, emitter, kernel.pointers[0], shared, sharers)
    return kernel.finish(grid.block_threads, reduction_bytes(problem, grid.block_threads))


def reduction_bytes(problem: Reduction, threads: int) -> int:
    """Bytes of shared memory of a reduction by a block of some threads."""
    operation = ReductionOperation(problem.operation, problem.value.element, by_intrinsic=True)
    columns = vector_columns(problem.value.cols, problem.value.element)
    return threads * columns * bytes_of(operation.partial_element)


def emit_reduction(
    kernel: GridKernel,
    problem: Reduction,
    emitter: ExpressionEmitter,
    destination: Value,
    shared: Value,
    sharers: ResultThreads,
) -> None:
    """Emit a reduction by all threads of a block.

    Args:
        kernel: The kernel.
        problem: The reduction.
        emitter: Emits what is reduced.
        destination: Address of the first result.
        shared: Shared memory of `reduction_bytes`.
        sharers: Which threads share a result.
    """
    b, grid, value, view = kernel.b, kernel.grid, problem.value, problem.destination
    operation, along_row = ReductionOperation(problem.operation, value.element, by_intrinsic=True), problem.axis == 1
    share, per_block, member, local = sharers.share, sharers.per_block, sharers.member, sharers.local
    columns = vector_columns(value.cols, value.element)
    length = value.cols // columns if along_row else value.rows
    parts = MatrixView(operation.partial_element, share * per_block, columns, columns, 1)
    origin = const_int(I64, 0)
    own = row_tile(columns, as_index(b, b.add(b.mul(member, per_block), local)), origin)
    own_address = tile_address(b, parts, shared, own)

    def widened(at: Value) -> Value:
        """The elements at a position along the reduced axis (i32)."""
        row, vector = (sharers.result, at) if along_row else (at, sharers.result)
        result_tile = row_tile(columns, as_index(b, row), as_index(b, b.mul(vector, columns)))
        return operation.widened(b, emitter.result(result_tile))

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
    first = b.icmp("eq", member, 0)
    with b.if_block(first if sharers.valid is None else b.binary("and", first, sharers.valid), "result"):
        total = load_tile_vector(b, parts, own_address, own)
        if along_row:
            total = operation.reduce_row(b, total, columns)
            result_tile = row_tile(1, as_index(b, sharers.result), origin)
        else:
            result_tile = row_tile(columns, origin, as_index(b, b.mul(sharers.result, columns)))
        narrowed = operation.narrowed(b, total)
        store_tile_vector(b, view, tile_address(b, view, destination, result_tile), result_tile, narrowed)
