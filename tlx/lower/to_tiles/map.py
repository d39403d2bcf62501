"""The kernel of an expression on 2-D views, in tiles of a few registers.

for rows, for columns        tiles of one row x 4 registers; several rows where a row is short
  x = load ...               leaves; what does not depend on the column is computed outside of the inner loop
  y = ordinary instructions, unary operations
  store y

Where every leaf is dense, the matrix is one long row. A column-major leaf makes tiles square, to be transposed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.module import Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import Type, bits_of
from tlx.ir.values import Value
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.evaluate import Evaluator, Place, address_of, passed_as, store_vector
from tlx.lower.to_tiles.expression import Expression, Leaf
from tlx.lower.to_tiles.problem import Map
from tlx.lower.to_tiles.tiles import new_kernel
from tlx.lower.to_tiles.view import View
from tlx.target import Target

_MOST_REGISTERS: Final = 4
_SQUARE: Final = 16
COSTLY: Final = 20


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows and columns of a tile; edges along columns are padded to a multiple of `lanes`."""

    rows: int
    cols: int
    lanes: int


def map_kernel(module: Module, problem: Map, target: Target) -> Function:
    """Add the kernel for an expression to the module: a function of the destination, leaves and scalars."""
    parameters, scalars = expression_parameters(problem.value)
    to = ("to", problem.destination.element, "" if may_be_leaf(problem.value, problem.destination) else "noalias")
    function = new_kernel(module, target, problem.kernel_name, [to, *parameters], scalars)
    b = TensorBuilder(module, function)
    arguments = [argument.value for argument in function.arguments]
    pointers = arguments[1 : 1 + len(parameters)]
    problem = merged(problem)
    evaluator = Evaluator(b, problem.value, pointers, arguments[1 + len(parameters) :])
    emit_map(b, evaluator, problem.destination, arguments[0], tile_shape(problem.value, target))
    b.ret()
    return function


def expression_parameters(value: Expression) -> tuple[list[tuple[str, Type, str]], list[tuple[str, Type]]]:
    """Parameters of a kernel for the leaves and for the scalars of an expression."""
    elements = {leaf.pointer: leaf.element for leaf in value.leaves()}
    pointers = [(f"x{number}", elements[number], "") for number in sorted(elements)]
    kinds = {scalar.number: scalar.element for scalar in value.scalars()}
    return pointers, [(f"s{number}", passed_as(kinds[number])) for number in sorted(kinds)]


def emit_map(b: TensorBuilder, evaluator: Evaluator, to: View, base: Value, shape: Shape) -> None:
    """Emit the loops over all tiles of the destination."""
    value = evaluator.expression
    for rows in padded(value.rows, shape.rows, 1):
        for columns in padded(value.cols, shape.cols, shape.lanes):
            _emit_part(b, evaluator, to, base, rows, columns)


def _emit_part(b: TensorBuilder, evaluator: Evaluator, to: View, base: Value, rows: Range, columns: Range) -> None:
    """The tiles of one size."""
    place = Place(rows.size, columns.size, columns.padding)
    shared = evaluator.compute(place, 0)
    with b.loop(0, rows.count, name="i") as i:
        place = replace(place, row=b.add(b.mul(i.index, rows.size), rows.start))
        known = evaluator.compute(place, 1, shared)
        with b.loop(0, columns.count, name="j") as j:
            place = replace(place, column=b.add(b.mul(j.index, columns.size), columns.start))
            result = evaluator.result(place, known)
            store_vector(b, to, address_of(b, to, base, place), place, result)


def merged(problem: Map) -> Map:
    """The problem on one long row, where every matrix in it is dense."""
    value, to = problem.value, problem.destination
    if not to.is_dense or not all(is_mergeable(leaf, value) for leaf in value.leaves()):
        return problem
    return Map(to.as_row(), as_row(value))


def is_mergeable(leaf: Leaf, value: Expression) -> bool:
    """Whether a leaf is dense or one number."""
    return (leaf.view.is_dense and value.is_full(leaf.view)) or leaf.view.rows * leaf.view.cols == 1


def as_row(value: Expression) -> Expression:
    """The expression on dense leaves as one on long rows."""
    nodes = tuple(replace(n, view=n.view.as_row()) if isinstance(n, Leaf) else n for n in value.nodes)
    return Expression(1, value.rows * value.cols, nodes)


def tile_shape(value: Expression, target: Target) -> Shape:
    """The tile that keeps a few registers of each live value at once."""
    lanes = max(1, target.vector_bytes * 8 // value.bits)
    if is_turned(value):
        return square(value, lanes, target)
    registers = max(1, min(_MOST_REGISTERS, target.registers // (2 * value.live + 1)))
    if value.cost >= COSTLY:
        registers = 1
    across = min(registers, -(-value.cols // lanes))
    return Shape(min(value.rows, max(1, registers // across)), across * lanes, lanes)


def is_turned(value: Expression) -> bool:
    """Whether tiles of a leaf have to be transposed."""
    return any(leaf.view.col_stride != 1 and leaf.view.cols > 1 for leaf in value.leaves())


def square(value: Expression, lanes: int, target: Target) -> Shape:
    """The tile to transpose; it has fewer rows where that is needed to keep all live values in registers."""
    side = min(lanes, _SQUARE)
    rows = side
    while rows > 4 and rows * (value.live + 1) > target.registers:
        rows //= 2
    return Shape(min(rows, value.rows), side, side)


def may_be_leaf(value: Expression, destination: View) -> bool:
    """Whether a leaf may lie where the destination does: it has the same elements at the same places."""
    to = destination.repeated()
    views = [leaf.view for leaf in value.leaves() if bits_of(leaf.element) == bits_of(to.element)]
    return any(
        (v.rows, v.cols, v.row_stride, v.col_stride) == (to.rows, to.cols, to.row_stride, to.col_stride) for v in views
    )
