"""Emits an expression for one tile: loads of its leaves, then its nodes, as tile operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I1, FloatType, Type, VectorType
from tlx.ir.values import ConstInt, Keyword, Value, const_float, const_vector
from tlx.lower.operations import DIVISIONS
from tlx.lower.to_tiles.emit.kernel import column_tile, tile
from tlx.lower.to_tiles.problem.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    MatrixView,
    Node,
    ProductLeaf,
    ScalarLeaf,
    SplatLeaf,
    UnaryNode,
)

NodeValues = dict[int, Value]


@dataclass(frozen=True, slots=True)
class ResultTile:
    """A tile of the result: `rows` x `cols` from (`row`, `column`) on; its last `padding` columns hold no data.

    `row` and `column` may be None where nothing depends on them.
    """

    rows: int
    cols: int
    padding: int
    row: Value | None = None
    column: Value | None = None

    @property
    def count(self) -> int:
        """Elements, padding included."""
        return self.rows * self.cols

    def type(self, element: Type) -> TensorType:
        """The tile's type."""
        return tile(element, self.rows, self.cols, (0, self.padding))


class ExpressionEmitter:
    """Emits the nodes of an expression for tiles.

    Args:
        b: Where to emit.
        expression: What to compute.
        pointers: Addresses of the leaves, by their number.
        scalars: The scalar parameters, by their number; bfloat and half as i16.
        product: Gives the product's tile at a place, for expressions with a product.
    """

    def __init__(
        self,
        b: TensorBuilder,
        expression: Expression,
        pointers: Sequence[Value],
        scalars: Sequence[Value],
        product: Callable[[ResultTile], Value] | None = None,
    ) -> None:
        self.b = b
        self.expression = expression
        self.pointers = pointers
        self.scalars = scalars
        self.product = product

    def compute(self, place: ResultTile, level: int = 2, known: NodeValues | None = None) -> NodeValues:
        """The nodes up to a level of change, as flattened tiles.

        Args:
            place: The tile.
            level: 0: nodes that are the same in all tiles of a size; 1: nodes that depend on the row; 2: all nodes.
            known: Nodes that are already computed for this size of tile.
        """
        values = dict(known or {})
        for number, (node, changes) in enumerate(zip(self.expression.nodes, self.expression.levels, strict=True)):
            if number not in values and changes <= level:
                values[number] = self._node(node, place, values)
        return values

    def result(self, place: ResultTile, known: NodeValues | None = None) -> Value:
        """The result for a tile."""
        return self.compute(place, 2, known)[len(self.expression.nodes) - 1]

    def _node(self, node: Node, place: ResultTile, values: NodeValues) -> Value:
        if isinstance(node, MatrixLeaf):
            return self._leaf(node, place)
        if isinstance(node, ScalarLeaf):
            return self._scalar(node, place)
        if isinstance(node, SplatLeaf):
            return _filled(node.value, place.count)
        if isinstance(node, ProductLeaf):
            assert self.product is not None
            return self.product(place)
        operands = [values[n] for n in node.operands]
        if isinstance(node, UnaryNode):
            token = self.b.typeinfo(operands[0], place.type(node.element), node.name)
            return self.b.unary(node.name, token, place.type(node.element))
        return self._ordinary(node, place, operands)

    def _ordinary(self, node: InstructionNode, place: ResultTile, operands: list[Value]) -> Value:
        if node.operation.opcode in DIVISIONS and place.padding:
            operands[1] = self.b.select(data_mask(place), operands[1], _ones(operands[1].type))
        type_ = VectorType(place.count, node.element)
        return node.operation.emit(self.b, type_, [*operands, *node.immediates], node.operation.opcode)

    # Leaves ----------------------------------------------------------------------------------------------------

    def _leaf(self, leaf: MatrixLeaf, place: ResultTile) -> Value:
        view = leaf.view
        stretched = self.expression.rows > 1 == view.rows, self.expression.cols > 1 == view.cols
        rows = 1 if stretched[0] else place.rows
        cols, padding = (1, 0) if stretched[1] else (place.cols, place.padding)
        part = ResultTile(rows, cols, padding, place.row, place.column)
        if (rows, cols) == (place.rows, place.cols):
            return load_tile_vector(self.b, view, self._address(leaf, part), part)
        token = _load(self.b, view, self._address(leaf, part), part)
        shape = (place.rows, place.cols - padding)
        return self.b.broadcast(token, shape, (0, 1), tile(leaf.element, place.rows, place.cols, (0, padding)))

    def _address(self, leaf: MatrixLeaf, place: ResultTile) -> Value:
        return tile_address(self.b, leaf.view, self.pointers[leaf.pointer], place)

    def _scalar(self, scalar: ScalarLeaf, place: ResultTile) -> Value:
        b = self.b
        given = self.scalars[scalar.number]
        one = b.insert_element(Keyword(VectorType(1, given.type), "undef"), given, 0, "scalar")
        held = b.cast("bitcast", one, VectorType(1, scalar.element))
        token = b.typeinfo(held, tile(scalar.element, 1, 1), "scalar")
        return b.broadcast(token, (place.rows, place.cols), (0, 1), tile(scalar.element, place.rows, place.cols))


def tile_address(b: TensorBuilder, view: MatrixView, base: Value, place: ResultTile) -> Value:
    """Address of a tile of a matrix."""
    at = b.gep(view.element, base, b.mul(place.row, view.row_stride)) if place.row and view.rows > 1 else base
    if place.column is None or view.cols == 1:
        return at
    return b.gep(view.element, at, b.mul(place.column, view.col_stride))


def load_tile_vector(
    b: TensorBuilder, view: MatrixView, address: Value, place: ResultTile, metadata: str = ""
) -> Value:
    """A tile of a matrix as a row-major flattened vector."""
    token = _load(b, view, address, place, metadata)
    if _is_transposed(view, place):
        return b.transpose(token, (0, 1), VectorType(place.count, view.element), "x.rows")
    return b.tovector(token, place.type(view.element), "x")


def _load(b: TensorBuilder, view: MatrixView, address: Value, place: ResultTile, metadata: str = "") -> Value:
    if _is_transposed(view, place):
        type_ = column_tile(view.element, place.rows, place.cols, (0, place.padding))
        return b.tensor_load(address, type_, (0, view.col_stride), "x", metadata)
    pitch = max(view.row_stride, 1) if place.rows > 1 else place.cols
    return b.tensor_load(address, place.type(view.element), (0, pitch), "x", metadata)


def _is_transposed(view: MatrixView, place: ResultTile) -> bool:
    """Whether the elements of a tile's row are not contiguous."""
    return view.col_stride != 1 and place.cols > 1


def store_tile_vector(
    b: TensorBuilder, view: MatrixView, address: Value, place: ResultTile, value: Value, metadata: str = ""
) -> None:
    """Write a row-major flattened tile to a row-major matrix."""
    pitch = max(view.row_stride, 1) if place.rows > 1 else 0
    b.tensor_store(address, b.typeinfo(value, place.type(view.element), "out"), (0, pitch), metadata=metadata)


def data_mask(place: ResultTile) -> Value:
    """Which elements of a tile hold data."""
    row = [ConstInt(I1, int(column < place.cols - place.padding)) for column in range(place.cols)]
    return const_vector(row * place.rows)


def _filled(value: Value, count: int) -> Value:
    if isinstance(value, Keyword):
        return Keyword(VectorType(count, value.type), value.word)
    return const_vector([value] * count)


def _ones(type_: Type) -> Value:
    assert isinstance(type_, VectorType)
    one = const_float(type_.element, 1.0) if isinstance(type_.element, FloatType) else ConstInt(type_.element, 1)
    return const_vector([one] * type_.count)
