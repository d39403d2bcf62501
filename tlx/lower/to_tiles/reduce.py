"""The kernel of a reduction of an expression: its rows to a column, or its columns to a row.

rows to a column                                        columns to a row
  for rows                                                for columns, a few registers at a time
    acc = identity                                          acc = identity
    for columns: acc = acc op tile                          for rows: acc = acc op tile
    store acc folded to one number                          store acc

The code for a short row is no loop. Then some rows are worked on at a time, and what is left of them, a register each,
is folded together (`legalize/folds.py`): each step folds two of them, and all are stored at once.

A tile is a few registers: of one row where it is long, of several rows where it is short or all share another row (a
matrix times a vector), so that there are several sums at a time. Elements of an edge that hold no data become the
identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.module import Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import BFLOAT, FLOAT, I64, bits_of, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.columns import Strips, is_large
from tlx.lower.to_tiles.combine import Combine, Running
from tlx.lower.to_tiles.evaluate import Evaluator, Place, address_of, store_vector
from tlx.lower.to_tiles.expression import Expression, Leaf, Product
from tlx.lower.to_tiles.map import (
    COSTLY,
    Ahead,
    Shape,
    as_row,
    ask,
    expression_parameters,
    is_mergeable,
    is_turned,
    may_be_leaf,
    square,
)
from tlx.lower.to_tiles.problem import Reduction
from tlx.lower.to_tiles.tiles import column_tile, new_kernel, tile
from tlx.lower.to_tiles.view import View
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
    if problem.axis == 0 and not is_turned(problem.value) and is_large(evaluator, target):
        Strips(b, evaluator, combine, problem.destination, base, shape.lanes, target).emit()
        return
    kernel = _Kernel(b, evaluator, combine, problem.destination, base, shape, target, problem.products)
    if problem.finish is not None:
        kernel.finish = Evaluator(b, problem.finish, pointers, scalars)
    kernel.ahead = _next_rows(problem, shape, pointers, target) if problem.products else ()
    if problem.excess is not None:
        excess = Evaluator(b, problem.excess, pointers, scalars)
        kernel.excess = replace(kernel, evaluator=excess, ahead=()).first_line()
    if problem.axis == 1:
        kernel.rows_to_column()
    else:
        kernel.columns_to_row()


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Tiles of one height: their rows, their columns, and what all of a width share."""

    rows: Range
    columns: list[Range]
    parts: list[Place]
    known: list[dict[int, Value]]


@dataclass(eq=False)
class _Kernel:
    b: TensorBuilder
    evaluator: Evaluator
    combine: Combine
    to: View
    base: Value
    shape: Shape
    target: Target
    products: int
    excess: Value | None = None
    ahead: Sequence[Ahead] = ()
    finish: Evaluator | None = None

    def rows_to_column(self) -> None:
        """All rows, a few at a time, folded together where their results are neighbours."""
        value, shape = self.evaluator.expression, self.shape
        together = most_lines(shape.lanes, self.target) if self._are_neighbours() and value.rows > 1 else 1
        height, size = shape.rows, shape.rows
        if together > 1 and self._is_short():
            height, size = min(height, together), max(height, together)
        for group in padded(value.rows, size, 1):
            tiles = [self._tiles(rows) for rows in padded(group.size, height, 1)]
            with self.b.loop(0, group.count, name="i") as i:
                row = self._index(group, i.index)
                lines = [line for tile in tiles for line in self._lines(tile, row)]
                if together == 1 or len(lines) == 1:
                    self._store_folded(lines, row)
                    continue
                for start in range(0, len(lines), together):
                    self._store_together(lines[start : start + together], self.b.add(row, start))

    def _are_neighbours(self) -> bool:
        """Whether results lie side by side, and what they are finished with."""
        others = self.finish.expression.leaves() if self.finish is not None else ()
        return self.to.row_stride == 1 and all(leaf.view.col_stride == 1 for leaf in others)

    def _is_short(self) -> bool:
        """Whether a row's code is no loop."""
        columns = padded(self.evaluator.expression.cols, self.shape.cols, self.shape.cols)
        return all(c.count == 1 for c in columns)

    def first_line(self) -> Value:
        """A register that adds up to what the first row does."""
        return self._lines_of_tile(self._tiles(Range(0, 1, 1)), None)[0]

    def _tiles(self, rows: Range) -> _Tiles:
        cols = self.shape.cols
        columns = padded(self.evaluator.expression.cols, cols, cols)
        parts = [Place(rows.size, c.size, c.padding) for c in columns]
        return _Tiles(rows, columns, parts, [self.evaluator.compute(part, 0) for part in parts])

    def _lines(self, tiles: _Tiles, first: Value) -> list[Value]:
        """The rows' lines."""
        return [
            line
            for i in range(tiles.rows.count)
            for line in self._lines_of_tile(tiles, self.b.add(first, tiles.rows.start + i * tiles.rows.size))
        ]

    def _lines_of_tile(self, tiles: _Tiles, row: Value | None) -> list[Value]:
        whole = tiles.parts[0]
        if self.products:
            whole = replace(whole, cols=whole.cols // self.products)
        running = Running.along_columns(self.combine, whole, self.shape.lanes)
        state: list[Value] = []
        for columns, part, shared in zip(tiles.columns, tiles.parts, tiles.known, strict=True):
            place = replace(part, row=row)
            known = self.evaluator.compute(place, 1, shared)
            if columns.count == len(tiles.parts) == 1 and not self.products:
                return running.only(self.b, self._tile(replace(place, column=const_int(I64, columns.start)), known))
            state = self._along_columns(running, columns, place, known, state)
        lines = running.lines(self.b, state)
        return lines if self.excess is None else [self.b.binary("sub", line, self.excess) for line in lines]

    def _along_columns(
        self, running: Running, columns: Range, place: Place, known: dict[int, Value], state: list[Value]
    ) -> list[Value]:
        b = self.b
        if columns.count == 1:
            tile = self._tile(replace(place, column=const_int(I64, columns.start)), known)
            state = state or (running.start() if self.products else [])
            return running.add(b, state, tile) if state else running.first(b, tile)
        with b.loop(0, columns.count, carry=state or running.start(), name="j") as j:
            at = replace(place, column=self._index(columns, j.index))
            ask(b, self.ahead, at)
            j.next(*running.add(b, j.carried, self._tile(at, known)))
        return j.results

    def _tile(self, place: Place, known: dict[int, Value]) -> Value:
        value = self.evaluator.result(place, known)
        if self.products:
            return self._neighbours(value, place)
        if self._are_pairs(place):
            return self.combine.widened_pairs(self.b, value, place.rows, self.shape.lanes)
        return self.combine.masked(self.b, self.combine.widened(self.b, value), place)

    def _neighbours(self, value: Value, place: Place) -> Value:
        """Sums of neighbours, where an instruction has them; what holds no data has been multiplied as zero."""
        token = self.b.typeinfo(value, tile(self.combine.held, place.rows, place.cols), "products")
        return self.b.reduce("add", token, (1, self.products), (1, self.products))

    def _are_pairs(self, place: Place) -> bool:
        """Whether a row's elements, in whole registers of bfloat, may be added in any order."""
        if (
            self.combine.element != BFLOAT
            or self.combine.held != FLOAT
            or self.evaluator.expression.bits > bits_of(BFLOAT)
        ):
            return False
        return not place.padding and place.cols % (2 * self.shape.lanes) == 0

    def _store_folded(self, lines: list[Value], row: Value) -> None:
        b = self.b
        for number, line in enumerate(lines):
            at = Place(1, 1, 0, b.add(row, number))
            one = self._finished(self.combine.folded(b, line, self.shape.lanes), 1, b.add(row, number))
            store_vector(b, self.to, address_of(b, self.to, self.base, at), at, one)

    def _store_together(self, lines: list[Value], row: Value) -> None:
        b, held, lanes = self.b, self.combine.held, self.shape.lanes
        lines = [self.combine.in_signed_order(b, line) for line in lines]
        tokens = [b.typeinfo(line, tile(held, 1, lanes), "line") for line in lines]
        joined = b.concat(tokens, 0, tile(held, len(lines), lanes), "lines") if len(lines) > 1 else lines[0]
        token = b.typeinfo(joined, column_tile(held, lanes, len(lines)), "columns")
        folded = b.reduce(self.combine.in_order, token, (lanes, 1), None, tile(held, 1, len(lines)))
        results = self._finished(self.combine.in_signed_order(b, folded), len(lines), row)
        start = address_of(b, self.to, self.base, Place(1, 1, 0, row))
        store_vector(b, self.to.as_row(), start, Place(1, len(lines), 0), results)

    def _finished(self, results: Value, count: int, first: Value) -> Value:
        """What is stored of some neighbouring results."""
        results = self.combine.narrowed(self.b, results)
        if self.finish is None:
            return results
        known = {n: results for n, node in enumerate(self.finish.expression.nodes) if isinstance(node, Product)}
        return self.finish.result(Place(1, count, 0, None, first), known)

    def columns_to_row(self) -> None:
        value, shape = self.evaluator.expression, self.shape
        for columns in padded(value.cols, shape.cols, shape.lanes):
            with self.b.loop(0, columns.count, name="j") as j:
                column = self._index(columns, j.index)
                place = Place(1, columns.size, columns.padding, None, column)
                parts = padded(value.rows, shape.rows, 1)
                lines = [self._along_rows(rows, replace(place, rows=rows.size)) for rows in parts]
                result = self.combine.narrowed(self.b, self.combine.all_of(self.b, lines))
                store_vector(self.b, self.to, address_of(self.b, self.to, self.base, place), place, result)

    def _along_rows(self, rows: Range, place: Place) -> Value:
        """The row that rows of one tile height become."""
        b = self.b
        known = self.evaluator.compute(place, 0)
        running = Running.along_rows(self.combine, place)
        if rows.count == 1:
            place = replace(place, row=const_int(I64, rows.start))
            tile = self.combine.widened(b, self.evaluator.result(place, known))
            return running.lines(b, running.first(b, tile))[0]
        with b.loop(0, rows.count, carry=running.start(), name="i") as i:
            at = replace(place, row=self._index(rows, i.index))
            value = self.combine.widened(b, self.evaluator.result(at, known))
            i.next(*running.add(b, i.carried, value))
        return running.lines(b, i.results)[0]

    def _index(self, range_: Range, index: Value) -> Value:
        return self.b.add(self.b.mul(index, range_.size), range_.start)


def simplified(problem: Reduction) -> Reduction:
    """The problem on one long row where it may be, or turned where all matrices in it are column-major."""
    value = problem.value
    if problem.destination.rows == problem.destination.cols == 1 and all(
        is_mergeable(x, value) for x in value.leaves()
    ):
        return replace(problem, value=as_row(value), axis=1)
    turned = _turned(value)
    if turned is None or not problem.destination.is_dense:
        return problem
    to = problem.destination
    return replace(problem, destination=View(to.element, to.cols, to.rows, 1, 1), value=turned, axis=1 - problem.axis)


def _turned(value: Expression) -> Expression | None:
    """The transposed expression, where every full matrix in it is column-major."""
    views = [leaf.view for leaf in value.leaves() if value.is_full(leaf.view) and min(value.rows, value.cols) > 1]
    rest = [leaf.view for leaf in value.leaves() if not value.is_full(leaf.view)]
    if not views or not all(view.row_stride == 1 and view.col_stride > 1 for view in views):
        return None
    if not all(view.rows == 1 or view.row_stride == 1 for view in rest):
        return None
    nodes = tuple(replace(n, view=_turned_view(n.view)) if isinstance(n, Leaf) else n for n in value.nodes)
    return Expression(value.cols, value.rows, nodes)


def in_one_row(view: View) -> View:
    """A column, or what is a row already, as a row."""
    return _turned_view(view) if view.rows > 1 else view.repeated()


def _turned_view(view: View) -> View:
    return View(view.element, view.cols, view.rows, view.col_stride, view.row_stride).repeated()


def _next_rows(problem: Reduction, shape: Shape, pointers: Sequence[Value], target: Target) -> tuple[Ahead, ...]:
    """The rows of the matrix behind a tile's, where they do not lie in the second cache, and the first holds both.

    The hardware follows rows within a page and starts anew with each tile: 1024x1024 bfloat, at the edge of the second
    cache, are read 1.25 times as fast (Emerald Rapids, one core; 1.4 on a Xeon with AMX-FP16), 16 MB 1.08.
    """
    leaf = next(leaf for leaf in problem.value.leaves() if leaf.view.rows == problem.value.rows)
    distance = shape.rows * leaf.view.row_stride * bytes_of(leaf.element)
    is_far = leaf.view.moves > target.caches.l2 * 3 // 4
    if not is_far or 2 * distance > target.caches.l1 or problem.value.rows == 1:
        return ()
    return (Ahead(pointers[leaf.pointer], leaf.view, distance),)


def most_lines(lanes: int, target: Target) -> int:
    """Lines of so many lanes that are folded together: they are in a quarter of the registers, and become one."""
    return max(1, min(lanes, target.registers // 4))


def _shares_a_row(value: Expression) -> bool:
    """Whether a row is read again for each of the others: a tile of many rows reads it, and converts it, once."""
    rows = (node for number in value.steady if isinstance(node := value.nodes[number], Leaf))
    return any(leaf.view.cols > 1 for leaf in rows)


def _tile_shape(problem: Reduction, combine: Combine, target: Target) -> Shape:
    """A tile of as many registers as may be added to at a time."""
    value = problem.value
    lanes = max(1, target.vector_bytes * 8 // max(value.bits, bits_of(combine.held)))
    if is_turned(value):
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
