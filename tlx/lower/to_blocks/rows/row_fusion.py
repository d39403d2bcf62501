"""Fused rows: a block computes a row of several trees, such as a softmax, with intermediate rows in shared memory.

Rows that fit are in registers: see `tlx.lower.to_blocks.rows.register_rows`. For others:

max of x     barrier     e = exp(x - max)     barrier     sum of e     barrier     y = e / sum
"""

from __future__ import annotations

from typing import Final

from tlx.ir.module import Module
from tlx.ir.types import I8, I32, bytes_of, next_power_of_two
from tlx.ir.values import Value, const_int
from tlx.lower.to_blocks.kernel import GridFacts, GridKernel, Iterations, as_index, row_tile, vector_columns
from tlx.lower.to_blocks.rows.reduction import ResultThreads, emit_reduction, reduction_bytes
from tlx.lower.to_blocks.rows.register_rows import RegisterPlan, register_rows_kernel
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter
from tlx.lower.to_tiles.emit.tiles import store_tile_vector, tile_address
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.problem import Reduction, RowFusion
from tlx.target.grid_unit import CHUNK_BYTES, GridUnit

_VECTORS_PER_THREAD: Final = 4


def private_rows(match: Match, grid: GridUnit) -> dict[int, int]:
    """The pointers to intermediate rows that are in registers or shared memory, each with its offset there in bytes.

    Args:
        match: The trees.
        grid: The grid.
    """
    fusion = match.problem
    assert isinstance(fusion, RowFusion)
    if RegisterPlan.of(fusion, grid) is not None:
        return dict.fromkeys(sorted(fusion.scratch_pointers), 0)
    reductions = [part.problem for part in fusion.parts if isinstance(part.problem, Reduction)]
    offset = max((reduction_bytes(reduction, grid.block_threads) for reduction in reductions), default=0)
    places: dict[int, int] = {}
    for number in sorted(fusion.scratch_pointers):
        view = match.pointers[number][1]
        size = -(-view.cols * bytes_of(view.element) // CHUNK_BYTES) * CHUNK_BYTES
        if offset + size <= grid.max_shared_bytes // 2:
            places[number] = offset
            offset += size
    return places


def has_one_stride(match: Match) -> bool:
    """Whether all trees move each pointer equally far from row to row."""
    fusion = match.problem
    assert isinstance(fusion, RowFusion)
    views: dict[int, set[tuple[int, int]]] = {}
    for part in fusion.parts:
        views.setdefault(part.pointers[0], set()).add(_stride(part.problem.destination))
        for leaf in part.problem.value.leaves():
            views.setdefault(part.pointers[1 + leaf.pointer], set()).add(_stride(leaf.view))
    return all(len(strides) == 1 for strides in views.values())


def _stride(view: MatrixView) -> tuple[int, int]:
    return view.rows, view.row_stride


def row_fusion_grid_kernel(
    module: Module, grid: GridUnit, match: Match, private: dict[int, int], iterations: Iterations, name: str
) -> GridFacts:
    """Add the kernel of fused rows.

    Args:
        module: The module.
        grid: The grid.
        match: The trees, with the pointers of all; those of private rows are no parameters.
        private: See `private_rows`.
        iterations: The loops around them, for the other pointers.
        name: Stem of the kernel's name.
    """
    fusion = match.problem
    assert isinstance(fusion, RowFusion)
    plan = RegisterPlan.of(fusion, grid)
    if plan is not None:
        return register_rows_kernel(module, grid, match, plan, private, iterations, name)
    widest = max(part.problem.value.cols for part in fusion.parts)
    vectors = widest // vector_columns(widest, fusion.parts[-1].problem.destination.element)
    threads = min(grid.block_threads, max(grid.warp_threads, next_power_of_two(-(-vectors // _VECTORS_PER_THREAD))))
    passed = [number for number in range(len(match.pointers)) if number not in private]
    kernel = GridKernel(
        module, grid, name, [fusion.pointers[n] for n in passed], list(fusion.scalars), iterations, fusion.rows
    )
    b, shared = kernel.b, grid.operations.shared(kernel.b)
    bases: dict[int, Value] = {}
    for number, pointer in zip(passed, kernel.pointers, strict=True):
        view = match.pointers[number][1]
        step = b.mul(as_index(b, kernel.tile), view.row_stride) if view.rows > 1 else 0
        bases[number] = b.gep(view.element, pointer, step)
    bases |= {number: b.gep(I8, shared, offset) for number, offset in private.items()}
    first_row = const_int(I32, 0)
    for number, part in enumerate(fusion.parts):
        if number:
            grid.operations.barrier(b)
        problem, address, scalars = part.problem, bases[part.pointers[0]], [kernel.scalars[s] for s in part.scalars]
        emitter = ExpressionEmitter(b, problem.value, [bases[n] for n in part.pointers[1:]], scalars)
        if isinstance(problem, Reduction):
            sharers = ResultThreads(threads, 1, kernel.thread, const_int(I32, 0), first_row, None)
            emit_reduction(kernel, problem, emitter, address, shared, sharers)
            continue
        columns = vector_columns(problem.value.cols, problem.destination.element)

        def body(
            vector: Value,
            emitter: ExpressionEmitter = emitter,
            columns: int = columns,
            view: MatrixView = problem.destination,
            destination: Value = address,
        ) -> None:
            result_tile = row_tile(columns, as_index(b, first_row), as_index(b, b.mul(vector, columns)))
            store_tile_vector(
                b, view, tile_address(b, view, destination, result_tile), result_tile, emitter.result(result_tile)
            )

        kernel.for_each(problem.value.cols // columns, threads, body)
    sizes = [
        offset + match.pointers[n][1].cols * bytes_of(match.pointers[n][1].element) for n, offset in private.items()
    ]
    parts = [reduction_bytes(p.problem, threads) for p in fusion.parts if isinstance(p.problem, Reduction)]
    return kernel.finish(threads, max([*sizes, *parts], default=0))
