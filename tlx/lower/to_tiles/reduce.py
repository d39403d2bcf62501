"""The kernel of a reduction of an expression: its rows to a column, or its columns to a row.

rows to a column                                        columns to a row
  for rows                                                for columns, a few registers at a time
    acc = identity                                          acc = identity
    for columns: acc = acc op tile                          for rows: acc = acc op tile
    store acc folded to one number                          store acc

A tile is a few registers: of one row where it is long, of several rows where it is short or all share another row (a
matrix times a vector), so that there are several sums at a time. Elements of an edge that hold no data become the
identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.ir.module import Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import bits_of, bytes_of
from tlx.ir.values import Value
from tlx.lower.to_tiles.columns_to_row import ColumnsToRow, Strips, is_large
from tlx.lower.to_tiles.combine import Combine
from tlx.lower.to_tiles.evaluate import Evaluator
from tlx.lower.to_tiles.expression import Expression, Leaf
from tlx.lower.to_tiles.parameters import expression_parameters, may_be_leaf
from tlx.lower.to_tiles.prefetch import Prefetch
from tlx.lower.to_tiles.problem import Reduction
from tlx.lower.to_tiles.rows_to_column import RowsToColumn
from tlx.lower.to_tiles.simplify import in_one_row, simplified
from tlx.lower.to_tiles.tile_shapes import COSTLY, Shape, needs_transpose, square
from tlx.lower.to_tiles.tiles import new_kernel
from tlx.target import Target

_MOST_REGISTERS: Final = 8
_MOST_MASKED: Final = 4
"""Where each register needs a mask: a few more than these are all that AVX-512 has."""


def reduce_kernel(module: Module, problem: Reduction, target: Target) -> Function:
    """Add the kernel for a reduction to the module: a function of the destination, leaves and scalars."""
    parameters, scalars = expression_parameters(problem.value)
    to = ("to", problem.destination.element, "noalias")
    if problem.finish is not None:
        others, scalars = expression_parameters(problem.finish)
        parameters += others
        to = (*to[:2], "" if may_be_leaf(problem.finish, in_one_row(problem.destination)) else "noalias")
    function = new_kernel(module, target, problem.kernel_name, [to, *parameters], scalars)
    b = TensorBuilder(module, function)
    arguments = [argument.value for argument in function.arguments]
    count = 1 + len(parameters)
    emit_reduction(b, problem, arguments[0], arguments[1:count], arguments[count:], target)
    b.ret()
    return function


def emit_reduction(
    b: TensorBuilder,
    problem: Reduction,
    base: Value,
    pointers: Sequence[Value],
    scalars: Sequence[Value],
    target: Target,
) -> None:
    """Emit the loops of a reduction to `base`."""
    problem = simplified(problem)
    evaluator = Evaluator(b, problem.value, pointers, scalars)
    combine = Combine(problem.operation, problem.value.element)
    shape = _tile_shape(problem, combine, target)
    to = problem.destination
    if problem.axis == 0 and is_large(evaluator, target) and not needs_transpose(problem.value):
        Strips(b, evaluator, combine, to, base, shape.lanes, target).emit()
        return
    if problem.axis == 0:
        ColumnsToRow(b, evaluator, combine, to, base, shape).emit()
        return
    kernel = RowsToColumn(b, evaluator, combine, to, base, shape, target, problem.products)
    if problem.products:
        kernel.prefetches = _next_rows(problem, shape, pointers, target)
    if problem.finish is not None:
        kernel.finish = Evaluator(b, problem.finish, pointers, scalars)
    if problem.excess is not None:
        excess = Evaluator(b, problem.excess, pointers, scalars)
        kernel.excess = replace(kernel, evaluator=excess, prefetches=()).first_line()
    kernel.emit()


def _next_rows(problem: Reduction, shape: Shape, pointers: Sequence[Value], target: Target) -> tuple[Prefetch, ...]:
    """The rows of the matrix behind a tile's, where they do not lie in the second cache, and the first holds both.

    The hardware follows rows within a page and starts anew with each tile: 1024x1024 bfloat, at the edge of the second
    cache, are read 1.25 times as fast (Emerald Rapids, one core; 1.4 on a Xeon with AMX-FP16), 16 MB 1.08.
    """
    leaf = next(leaf for leaf in problem.value.leaves() if leaf.view.rows == problem.value.rows)
    distance = shape.rows * leaf.view.row_stride * bytes_of(leaf.element)
    is_far = leaf.view.moves > target.caches.l2 * 3 // 4
    if not is_far or 2 * distance > target.caches.l1 or problem.value.rows == 1:
        return ()
    return (Prefetch(pointers[leaf.pointer], leaf.view, distance),)


def _shares_a_row(value: Expression) -> bool:
    """Whether a row is read again for each of the others: a tile of many rows reads it, and converts it, once."""
    rows = (node for number in value.steady if isinstance(node := value.nodes[number], Leaf))
    return any(leaf.view.cols > 1 for leaf in rows)


def _tile_shape(problem: Reduction, combine: Combine, target: Target) -> Shape:
    """A tile of as many registers as may be added to at a time."""
    value = problem.value
    lanes = max(1, target.vector_bytes * 8 // max(value.bits, bits_of(combine.held)))
    if needs_transpose(value):
        return square(value, lanes, target)
    wide = lanes * max(1, problem.products)
    most = _MOST_MASKED if combine.are_ordered else _MOST_REGISTERS
    registers = max(1, min(most, target.registers // (2 * value.live + 2)))
    if value.cost >= COSTLY:
        registers = 1
    elif problem.axis == 1 and value.rows > 1 and _shares_a_row(value):
        upright = min(_MOST_REGISTERS, max(1, (target.registers - value.live) // 2))
        return Shape(min(value.rows, 1 << (upright.bit_length() - 1)), wide, lanes)
    across = min(registers, -(-value.cols // wide))
    across = 1 << (across.bit_length() - 1)
    return Shape(min(value.rows, max(1, registers // across)), across * wide, lanes)
