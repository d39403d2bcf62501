"""Emits an expression for one tile: loads of its leaves, then its nodes, as tile operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import FloatType, Type, VectorType
from tlx.ir.values import ConstInt, Keyword, Value, const_float, const_vector
from tlx.lower.operations import DIVISIONS
from tlx.lower.to_tiles.emit.tiles import ResultTile, data_mask, load_tile, load_tile_vector, tile, tile_address
from tlx.lower.to_tiles.problem.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    Node,
    ProductLeaf,
    ScalarLeaf,
    SplatLeaf,
    UnaryNode,
)

NodeValues = dict[int, Value]


class ExpressionEmitter:
    """Emits the nodes of an expression for tiles.

    Args:
        b: Where to emit.
        expression: What to compute.
        pointers: Addresses of the leaves, by their number.
        scalars: The scalar parameters, by their number; bfloat and half as i16.
        product: Returns the product's tile at a place, for expressions with a product.
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
        token = load_tile(self.b, view, self._address(leaf, part), part)
        shape = (place.rows, place.cols - padding)
        return self.b.broadcast(token, shape, (0, 1), tile(leaf.element, place.rows, place.cols, (0, padding)))

    def _address(self, leaf: MatrixLeaf, place: ResultTile) -> Value:
        return tile_address(self.b, leaf.view, self.pointers[leaf.pointer], place)

    def _scalar(self, scalar: ScalarLeaf, place: ResultTile) -> Value:
        b = self.b
        value = self.scalars[scalar.number]
        one = b.insert_element(Keyword(VectorType(1, value.type), "undef"), value, 0, "scalar")
        converted = b.cast("bitcast", one, VectorType(1, scalar.element))
        token = b.typeinfo(converted, tile(scalar.element, 1, 1), "scalar")
        return b.broadcast(token, (place.rows, place.cols), (0, 1), tile(scalar.element, place.rows, place.cols))


def _filled(value: Value, count: int) -> Value:
    if isinstance(value, Keyword):
        return Keyword(VectorType(count, value.type), value.word)
    return const_vector([value] * count)


def _ones(type_: Type) -> Value:
    assert isinstance(type_, VectorType)
    one = const_float(type_.element, 1.0) if isinstance(type_.element, FloatType) else ConstInt(type_.element, 1)
    return const_vector([one] * type_.count)
