"""The kernel of several problems on the same rows: softmax, and what else goes over its rows more than once.

    for blocks of rows that fit in half of the L1 cache, or one row
      max = reduce.max of the block's rows
      e = exp(x - max)                           e is one block, used again for the next one
      sum = reduce.add of e
      y = e / sum

Each line is what the kernel of the problem alone would do, for as many rows as the block has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlx.ir.module import Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import bytes_of
from tlx.ir.values import Value
from tlx.lower.to_tiles.blocks import padded
from tlx.lower.to_tiles.evaluate import Evaluator
from tlx.lower.to_tiles.expression import Expression, Leaf
from tlx.lower.to_tiles.map import emit_map, past_caches
from tlx.lower.to_tiles.prefetch import Prefetch
from tlx.lower.to_tiles.problem import Map, Part, Reduction, Rows
from tlx.lower.to_tiles.reduce import emit_reduction
from tlx.lower.to_tiles.simplify import merged
from tlx.lower.to_tiles.tile_shapes import tile_shape
from tlx.lower.to_tiles.tiles import new_kernel
from tlx.lower.to_tiles.view import View
from tlx.target import Target

_GRANULE = 8
"""Rows that the tiles of short rows have at most."""


def rows_kernel(module: Module, problem: Rows, target: Target) -> Function:
    """Add the kernel to the module: a function of all pointers, then all scalars."""
    pointers = [(f"x{number}", element, "") for number, element in enumerate(problem.pointers)]
    scalars = [(f"s{number}", type_) for number, type_ in enumerate(problem.scalars)]
    function = new_kernel(module, target, problem.kernel_name, pointers, scalars)
    b = TensorBuilder(module, function)
    arguments = [argument.value for argument in function.arguments]
    given, numbers = arguments[: len(pointers)], arguments[len(pointers) :]
    prefetching = _prefetching(problem, target)
    boundaries = [_boundary(part, target) for part in problem.parts]
    for block in padded(problem.rows, block_rows(problem, target), 1):
        with b.loop(0, block.count, name="r") as loop:
            row = block.begin(b, loop.index)
            for part, boundary in zip(problem.parts, boundaries, strict=True):
                kept = [given[number] for number in part.pointers]
                moved = [
                    base if number in problem.private else _at_row(b, base, view, row, problem.rows)
                    for base, number, view in zip(kept, part.pointers, views_of(part.problem), strict=True)
                ]
                prefetches = _read_next(b, problem, given, row, block.size) if part is prefetching else []
                scalars = [numbers[n] for n in part.scalars]
                _emit(b, cut_rows(part.problem, block.size), moved, scalars, boundary, prefetches, target)
    if any(boundaries):
        b.fence()
    b.ret()
    return function


def _prefetching(problem: Rows, target: Target) -> Part | None:
    """The part that prefetches the next block's rows, the one that computes longest; none where L1 has all of them."""
    maps = [part for part in problem.parts if isinstance(part.problem, Map)]
    read = sum(view.rows * view.cols * bytes_of(view.element) for view in _inputs(problem).values())
    if not maps or read <= target.caches.l1:
        return None
    return max(maps, key=lambda part: part.problem.value.cost)


def _inputs(problem: Rows) -> dict[int, View]:
    """What is read of memory that nothing here writes, by the numbers of the pointers."""
    written = {part.pointers[0] for part in problem.parts}
    return {
        number: view
        for part in problem.parts
        for number, view in zip(part.pointers, views_of(part.problem), strict=True)
        if number not in written and view.rows == problem.rows and view.col_stride == 1 < view.cols
    }


def _read_next(b: TensorBuilder, problem: Rows, given: Sequence[Value], row: Value, rows: int) -> list[Prefetch]:
    """What the next block of so many rows reads."""
    return [
        Prefetch(
            _at_row(b, given[number], view, row, problem.rows),
            replace(view, rows=rows),
            rows * view.row_stride * bytes_of(view.element),
        )
        for number, view in _inputs(problem).items()
    ]


def block_rows(problem: Rows, target: Target) -> int:
    """Rows of a block: what is read and written of them fills half of the L1 cache."""
    widths: dict[int, int] = {}
    for part in problem.parts:
        for number, view in zip(part.pointers, views_of(part.problem), strict=True):
            if view.rows == problem.rows:
                widths[number] = max(widths.get(number, 0), view.cols * bytes_of(view.element))
    rows = max(1, target.caches.l1 // 2 // sum(widths.values()))
    return min(problem.rows, rows - rows % _GRANULE if rows > _GRANULE else rows)


def views_of(problem: Map | Reduction) -> list[View]:
    """What the pointers of a problem point to: the result, then the leaves, each pointer's first one."""
    views = {leaf.pointer: leaf.view for leaf in reversed(list(problem.value.leaves()))}
    return [problem.destination, *(views[number] for number in sorted(views))]


def _boundary(part: Part, target: Target) -> int:
    """Elements that stores past the caches are aligned to, as of the problem with all its rows; or 0."""
    return past_caches(part.problem, target) if part.is_apart and isinstance(part.problem, Map) else 0


def _at_row(b: TensorBuilder, base: Value, view: View, row: Value, rows: int) -> Value:
    return b.gep(view.element, base, b.mul(row, view.row_stride)) if view.rows == rows else base


def cut_rows(problem: Map | Reduction, rows: int) -> Map | Reduction:
    """The problem with so many of its rows."""
    all_rows = problem.value.rows

    def cut(view: View) -> View:
        return replace(view, rows=rows).repeated() if view.rows == all_rows else view

    nodes = tuple(replace(n, view=cut(n.view)) if isinstance(n, Leaf) else n for n in problem.value.nodes)
    value = Expression(rows, problem.value.cols, nodes)
    to = replace(problem.destination, rows=rows)
    if isinstance(problem, Map):
        return Map(to, value, problem.whole or problem.moves)
    return Reduction(to, value, problem.operation, 1)


def _emit(
    b: TensorBuilder,
    problem: Map | Reduction,
    pointers: Sequence[Value],
    scalars: Sequence[Value],
    boundary: int,
    prefetches: Sequence[Prefetch],
    target: Target,
) -> None:
    if isinstance(problem, Reduction):
        emit_reduction(b, problem, pointers[0], pointers[1:], scalars, target)
        return
    one_row = merged(problem)
    evaluator = Evaluator(b, one_row.value, pointers[1:], scalars)
    shape = tile_shape(one_row.value, target)
    prefetches = prefetches if one_row.value.rows == problem.value.rows else []
    emit_map(b, evaluator, one_row.destination, pointers[0], shape, boundary, prefetches)
