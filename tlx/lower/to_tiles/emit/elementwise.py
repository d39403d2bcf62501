"""Elementwise expressions: the code of an expression for one tile, and the kernels that loop over tiles.

for rows, for columns        tiles of one row x 4 registers; several rows where a row is short
  x = load ...               leaves; nodes that do not depend on the column are computed outside the inner loop
  y = ordinary instructions, unary operations
  store y

If every leaf is dense, the matrix is one long row. With a column-major leaf, tiles are square, to be transposed, and a
few rows of tiles are computed together, as in transposing copies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tlx.ir.functions import Function
from tlx.ir.module import Module, nontemporal_metadata
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I64, FloatType, Type, VectorType, bytes_of
from tlx.ir.values import ConstInt, Keyword, Value, const_float, const_int, const_vector
from tlx.lower.operations import DIVISIONS
from tlx.lower.to_tiles.emit.kernel import expression_parameters, loop_over_blocks, new_kernel
from tlx.lower.to_tiles.emit.tiles import (
    ResultTile,
    data_mask,
    elements_to_boundary,
    load_tile,
    load_tile_vector,
    store_tile_vector,
    tile,
    tile_address,
)
from tlx.lower.to_tiles.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    MatrixView,
    Node,
    ProductLeaf,
    ScalarLeaf,
    SplatLeaf,
    UnaryNode,
    in_place_leaves,
    may_alias_leaf,
)
from tlx.lower.to_tiles.prefetch import RowPrefetch, prefetch_rows
from tlx.lower.to_tiles.problem import Elementwise, as_long_row
from tlx.lower.to_tiles.select.elementwise import (
    COSTLY,
    ColumnSpan,
    TileShape,
    aligned_spans,
    elementwise_store_alignment,
    elementwise_tile,
    needs_transpose,
    plain_spans,
    tiles_per_run,
)
from tlx.lower.to_tiles.select.recipe import EqualTiles, padded_tiles
from tlx.target.target import Target

NodeValues = dict[int, Value]


class ExpressionEmitter:
    """Emits the nodes of an expression for tiles.

    Args:
        b: Where to emit.
        expression: What to compute.
        pointers: Addresses of the leaves, by their number.
        scalars: The scalar parameters, by their number; bfloat and half as i16.
        product: Returns the product's tile at a place, for expressions with a product.
        origins: Addresses of the leaves that places are relative to, if not their first elements.
    """

    def __init__(
        self,
        b: TensorBuilder,
        expression: Expression,
        pointers: Sequence[Value],
        scalars: Sequence[Value],
        product: Callable[[ResultTile], Value] | None = None,
        origins: Mapping[MatrixLeaf, Value] | None = None,
    ) -> None:
        self.b = b
        self.expression = expression
        self.pointers = pointers
        self.scalars = scalars
        self.product = product
        self.origins = origins or {}

    def compute(
        self,
        result_tile: ResultTile,
        level: int = 2,
        known: NodeValues | None = None,
        nodes: Collection[int] | None = None,
    ) -> NodeValues:
        """The nodes up to a level of change, as flattened tiles.

        Args:
            result_tile: The tile.
            level: 0: nodes that are the same in all tiles of a size; 1: nodes that depend on the row; 2: all nodes.
            known: Nodes that are already computed for this size of tile.
            nodes: The nodes to compute, if not all.
        """
        values = dict(known or {})
        for number, (node, changes) in enumerate(zip(self.expression.nodes, self.expression.levels, strict=True)):
            if number not in values and changes <= level and (nodes is None or number in nodes):
                values[number] = self._node(node, result_tile, values)
        return values

    def row_invariants(self, result_tile: ResultTile) -> NodeValues:
        """The nodes that do not depend on the row."""
        values: NodeValues = {}
        for number in sorted(self.expression.row_invariant):
            values[number] = self._node(self.expression.nodes[number], result_tile, values)
        return values

    def result(self, result_tile: ResultTile, known: NodeValues | None = None) -> Value:
        """The result for a tile."""
        return self.compute(result_tile, 2, known)[len(self.expression.nodes) - 1]

    def _node(self, node: Node, result_tile: ResultTile, values: NodeValues) -> Value:
        if isinstance(node, MatrixLeaf):
            return self._leaf(node, result_tile)
        if isinstance(node, ScalarLeaf):
            return self._scalar(node, result_tile)
        if isinstance(node, SplatLeaf):
            return _splat(node.value, result_tile.count)
        if isinstance(node, ProductLeaf):
            assert self.product is not None
            return self.product(result_tile)
        operands = [values[n] for n in node.operands]
        if isinstance(node, UnaryNode):
            token = self.b.typeinfo(operands[0], result_tile.type(node.element), node.name)
            return self.b.unary(node.name, token, result_tile.type(node.element), metadata=node.accuracy.metadata)
        return self._elementwise(node, result_tile, operands)

    def _elementwise(self, node: InstructionNode, result_tile: ResultTile, operands: list[Value]) -> Value:
        if node.operation.opcode in DIVISIONS and result_tile.padding:
            operands[1] = self.b.select(data_mask(result_tile), operands[1], _ones(operands[1].type))
        type_ = VectorType(result_tile.count, node.element)
        return node.operation.emit(self.b, type_, [*operands, *node.immediates], node.operation.opcode)

    # Leaves ----------------------------------------------------------------------------------------------------

    def _leaf(self, leaf: MatrixLeaf, result_tile: ResultTile) -> Value:
        view = leaf.view
        rows = 1 if self.expression.rows > 1 == view.rows else result_tile.rows
        is_column = self.expression.cols > 1 == view.cols
        cols, padding = (1, 0) if is_column else (result_tile.cols, result_tile.padding)
        part = ResultTile(rows, cols, padding, result_tile.row, result_tile.column)
        if (rows, cols) == (result_tile.rows, result_tile.cols):
            return load_tile_vector(self.b, view, self.address(leaf, part), part)
        token = load_tile(self.b, view, self.address(leaf, part), part)
        shape = (result_tile.rows, result_tile.cols - padding)
        return self.b.broadcast(
            token, shape, (0, 1), tile(leaf.element, result_tile.rows, result_tile.cols, (0, padding))
        )

    def address(self, leaf: MatrixLeaf, result_tile: ResultTile) -> Value:
        """The address of a leaf's tile."""
        origin = self.origins.get(leaf, self.pointers[leaf.pointer])
        return tile_address(self.b, leaf.view, origin, result_tile)

    def _scalar(self, scalar: ScalarLeaf, result_tile: ResultTile) -> Value:
        b = self.b
        value = self.scalars[scalar.number]
        one = b.insert_element(Keyword(VectorType(1, value.type), "undef"), value, 0, "scalar")
        converted = b.cast("bitcast", one, VectorType(1, scalar.element))
        token = b.typeinfo(converted, tile(scalar.element, 1, 1), "scalar")
        return b.broadcast(
            token,
            (result_tile.rows, result_tile.cols),
            (0, 1),
            tile(scalar.element, result_tile.rows, result_tile.cols),
        )


def _splat(value: Value, count: int) -> Value:
    if isinstance(value, Keyword):
        return Keyword(VectorType(count, value.type), value.word)
    return const_vector([value] * count)


def _ones(type_: Type) -> Value:
    assert isinstance(type_, VectorType)
    one = const_float(type_.element, 1.0) if isinstance(type_.element, FloatType) else ConstInt(type_.element, 1)
    return const_vector([one] * type_.count)


def elementwise_kernel(module: Module, problem: Elementwise, target: Target) -> Function:
    """Add the kernel for an expression to the module: a function of the destination, leaves and scalars."""
    parameters, scalars = expression_parameters(problem.value)
    to = ("to", problem.destination.element, "" if may_alias_leaf(problem.value, problem.destination) else "noalias")
    function = new_kernel(module, target, problem.kernel_name, [to, *parameters], scalars)
    b = TensorBuilder(module, function)
    arguments = [argument.value for argument in function.arguments]
    pointers = arguments[1 : 1 + len(parameters)]
    problem = as_long_row(problem)
    evaluator = ExpressionEmitter(b, problem.value, pointers, arguments[1 + len(parameters) :])
    shape, boundary = elementwise_tile(problem, target), elementwise_store_alignment(problem, target)
    if boundary:
        _return_if_in_place(b, evaluator, problem, arguments[0], shape)
    emit_elementwise_loops(
        b, evaluator, problem.destination, arguments[0], shape, boundary, _prefetched(problem, pointers, target)
    )
    if boundary:
        b.fence()
    b.ret()
    return function


def _prefetched(problem: Elementwise, pointers: Sequence[Value], target: Target) -> list[RowPrefetch]:
    """The prefetches of a costly expression on one long row: of its leaves, if they exceed L2."""
    value = problem.value
    moved = problem.total_bytes or problem.bytes_moved
    if value.cost(target) < COSTLY or value.rows > 1 or moved <= target.caches.l2:
        return []
    leaves = {leaf.pointer: leaf.view for leaf in value.leaves() if leaf.view.cols == value.cols}
    numbers = sorted({leaf.pointer for leaf in value.leaves()})
    distance, line = target.memory.prefetch_distance, target.caches.line_bytes
    return [RowPrefetch(pointers[numbers.index(n)], view, distance, line) for n, view in leaves.items()]


def _return_if_in_place(
    b: TensorBuilder, evaluator: ExpressionEmitter, problem: Elementwise, base: Value, shape: TileShape
) -> None:
    """If a leaf is the destination, whose lines are read anyway, compute with ordinary stores and return."""
    numbers = dict.fromkeys(leaf.pointer for leaf in in_place_leaves(problem.value, problem.destination))
    if not numbers:
        return
    leaves = [b.retype(evaluator.pointers[number], problem.destination.element) for number in numbers]
    same = reduce(lambda x, y: b.binary("or", x, y), [b.icmp("eq", base, leaf) for leaf in leaves])
    within = b.new_block("in.place", b.block)
    disjoint = b.new_block("disjoint", within)
    b.branch_if(same, within, disjoint)
    b.at_end(within)
    emit_elementwise_loops(b, evaluator, problem.destination, base, shape)
    b.ret()
    b.at_end(disjoint)


def emit_elementwise_loops(
    b: TensorBuilder,
    evaluator: ExpressionEmitter,
    to: MatrixView,
    base: Value,
    shape: TileShape,
    boundary: int = 0,
    prefetches: Sequence[RowPrefetch] = (),
) -> None:
    """Emit the loops over all tiles of the destination.

    Args:
        b: The builder.
        evaluator: Emits the expression.
        to: The view of the result.
        base: Address of its first element.
        shape: The tile.
        boundary: Elements that non-temporal stores are aligned to; 0 for ordinary stores. The caller emits the fence
            after them.
        prefetches: Prefetches of rows of the same extents.
    """
    value = evaluator.expression
    if shape.rows > 1 and boundary and to.row_stride % boundary:
        boundary = 0  # only the first row of a tile would be aligned
    if boundary:
        spans = aligned_spans(value.cols, shape.cols, shape.lanes, boundary)
    else:
        spans = plain_spans(value.cols, shape.cols, shape.lanes)
    for rows in padded_tiles(value.rows, shape.rows, 1):
        tiles = _RowTiles(b, evaluator, to, base, rows, boundary, prefetches)
        if needs_transpose(value):
            tiles.emit_columns(spans)
        else:
            tiles.emit(spans)


@dataclass(eq=False)
class _RowTiles:
    """Emits tiles of one height."""

    b: TensorBuilder
    evaluator: ExpressionEmitter
    to: MatrixView
    base: Value
    rows: EqualTiles
    boundary: int
    prefetches: Sequence[RowPrefetch]

    def emit(self, spans: Sequence[ColumnSpan]) -> None:
        """Emit the loop over rows, and in it those over spans of columns."""
        b = self.b
        places = [ResultTile(self.rows.size, span.columns.size, span.columns.padding) for span in spans]
        shared = [self.evaluator.compute(place, 0) for place in places]
        with b.loop(0, self.rows.count, name="i") as i:
            row = self.rows.start_of(b, i.index)
            for span, place, known in zip(spans, places, shared, strict=True):
                self._span(span, replace(place, row=row), known)

    def emit_columns(self, spans: Sequence[ColumnSpan]) -> None:
        """Emit the loops over groups of rows, over the columns of a group, and over its rows."""
        b = self.b
        places = [ResultTile(self.rows.size, span.columns.size, span.columns.padding) for span in spans]
        shared = [self.evaluator.compute(place, 0) for place in places]
        most = tiles_per_run(self.rows, nontemporal=self.boundary > 0 and self._all_transposed)
        with loop_over_blocks(b, (0, self.rows.count), most, "r") as (first, count):
            for span, place, known in zip(spans, places, shared, strict=True):
                start = self._start(span, replace(place, row=const_int(I64, self.rows.start)))
                with b.loop(0, span.columns.count, name="j") as j:
                    at = replace(place, column=b.add(b.mul(j.index, span.columns.size), start))
                    with b.loop(0, count, name="i", nonempty=True) as i:
                        row = self.rows.start_of(b, b.add(first, i.index))
                        self._tile(span, replace(at, row=row), known)

    @property
    def _all_transposed(self) -> bool:
        """Whether every full matrix is transposed."""
        value = self.evaluator.expression
        return not any(value.is_full(leaf.view) and leaf.view.col_stride == 1 for leaf in value.leaves())

    def _start(self, span: ColumnSpan, result_tile: ResultTile) -> Value:
        """The first column of a span's tiles, in a row."""
        if not span.is_nontemporal:
            return const_int(I64, span.columns.start)
        address = tile_address(self.b, self.to, self.base, result_tile)
        return elements_to_boundary(self.b, address, bytes_of(self.to.element), self.boundary)

    def _tile(self, span: ColumnSpan, at: ResultTile, known: dict[int, Value]) -> None:
        b = self.b
        mark = nontemporal_metadata(b.module) if span.is_nontemporal else ""
        store_tile_vector(
            b, self.to, tile_address(b, self.to, self.base, at), at, self.evaluator.result(at, known), mark
        )

    def _span(self, span: ColumnSpan, result_tile: ResultTile, shared: dict[int, Value]) -> None:
        b, columns = self.b, span.columns
        known = self.evaluator.compute(result_tile, 1, shared)
        start = self._start(span, result_tile)
        with b.loop(0, columns.count, name="j") as j:
            at = replace(result_tile, column=b.add(b.mul(j.index, columns.size), start))
            self._tile(span, at, known)
            prefetch_rows(b, self.prefetches, at)
