"""The kernels of fused rows: softmax, and other chains of elementwise expressions and reductions over the same rows.

for blocks of rows that fit half of the L1 cache, or single rows
      max = reduce.max of the block's rows
      e = exp(x - max)                           one block of e, reused for the next rows
      sum = reduce.add of e
      y = e / sum

Each line is the code of that problem's kernel, for the rows of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import bytes_of
from tlx.ir.values import Value
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter, emit_elementwise_loops
from tlx.lower.to_tiles.emit.kernel import new_kernel
from tlx.lower.to_tiles.emit.reduction import emit_reduction
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.prefetch import RowPrefetch
from tlx.lower.to_tiles.problem import (
    Elementwise,
    Reduction,
    RowFusion,
    RowFusionPart,
    as_long_row,
    pointer_views,
    take_rows,
)
from tlx.lower.to_tiles.select.elementwise import elementwise_store_alignment, fused_block_rows, tile_shape
from tlx.lower.to_tiles.select.recipe import padded_tiles
from tlx.target.target import Target


def row_fusion_kernel(module: Module, problem: RowFusion, target: Target) -> Function:
    """Add the kernel to the module: a function of all pointers, then all scalars."""
    pointers = [(f"x{number}", element, "") for number, element in enumerate(problem.pointers)]
    scalars = [(f"s{number}", type_) for number, type_ in enumerate(problem.scalars)]
    function = new_kernel(module, target, problem.kernel_name, pointers, scalars)
    b = TensorBuilder(module, function)
    arguments = [argument.value for argument in function.arguments]
    bases, scalars_of_kernel = arguments[: len(pointers)], arguments[len(pointers) :]
    prefetching = _prefetching_part(problem, target)
    boundaries = [_store_alignment(part, target) for part in problem.parts]
    for block in padded_tiles(problem.rows, fused_block_rows(problem, target.caches), 1):
        with b.loop(0, block.count, name="r") as loop:
            row = block.start_of(b, loop.index)
            for part, boundary in zip(problem.parts, boundaries, strict=True):
                addresses = [
                    bases[number]
                    if number in problem.scratch_pointers
                    else _at_row(b, bases[number], view, row, problem.rows)
                    for number, view in zip(part.pointers, pointer_views(part.problem), strict=True)
                ]
                prefetches: list[RowPrefetch] = []
                if part is prefetching:
                    prefetches = _next_block_prefetches(b, problem, bases, row, block.size, target.caches.line_bytes)
                part_scalars = [scalars_of_kernel[n] for n in part.scalars]
                _emit(b, take_rows(part.problem, block.size), addresses, part_scalars, boundary, prefetches, target)
    if any(boundaries):
        b.fence()
    b.ret()
    return function


def _prefetching_part(problem: RowFusion, target: Target) -> RowFusionPart | None:
    """The part that prefetches the next block's rows: the most expensive one; None if L1 holds all rows."""
    maps = [part for part in problem.parts if isinstance(part.problem, Elementwise)]
    read = sum(view.rows * view.cols * bytes_of(view.element) for view in _inputs(problem).values())
    if not maps or read <= target.caches.l1:
        return None
    return max(maps, key=lambda part: part.problem.value.cost(target))


def _inputs(problem: RowFusion) -> dict[int, MatrixView]:
    """The views that are only read, by their pointers' numbers."""
    written = {part.pointers[0] for part in problem.parts}
    return {
        number: view
        for part in problem.parts
        for number, view in zip(part.pointers, pointer_views(part.problem), strict=True)
        if number not in written and view.rows == problem.rows and view.col_stride == 1 < view.cols
    }


def _next_block_prefetches(
    b: TensorBuilder, problem: RowFusion, bases: Sequence[Value], row: Value, rows: int, line: int
) -> list[RowPrefetch]:
    """Prefetches of the next block's inputs, in cache lines of `line` bytes."""
    return [
        RowPrefetch(
            _at_row(b, bases[number], view, row, problem.rows),
            replace(view, rows=rows),
            rows * view.row_stride * bytes_of(view.element),
            line,
        )
        for number, view in _inputs(problem).items()
    ]


def _store_alignment(part: RowFusionPart, target: Target) -> int:
    """Elements that non-temporal stores are aligned to, as for the problem with all its rows; 0 for ordinary stores."""
    return (
        elementwise_store_alignment(part.problem, target)
        if part.is_disjoint and isinstance(part.problem, Elementwise)
        else 0
    )


def _at_row(b: TensorBuilder, base: Value, view: MatrixView, row: Value, rows: int) -> Value:
    return b.gep(view.element, base, b.mul(row, view.row_stride)) if view.rows == rows else base


def _emit(
    b: TensorBuilder,
    problem: Elementwise | Reduction,
    pointers: Sequence[Value],
    scalars: Sequence[Value],
    boundary: int,
    prefetches: Sequence[RowPrefetch],
    target: Target,
) -> None:
    if isinstance(problem, Reduction):
        emit_reduction(b, problem, pointers[0], pointers[1:], scalars, target)
        return
    one_row = as_long_row(problem)
    evaluator = ExpressionEmitter(b, one_row.value, pointers[1:], scalars)
    shape = tile_shape(one_row.value, target)
    prefetches = prefetches if one_row.value.rows == problem.value.rows else []
    emit_elementwise_loops(b, evaluator, one_row.destination, pointers[0], shape, boundary, prefetches)
