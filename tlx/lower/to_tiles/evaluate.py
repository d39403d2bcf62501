"""Computing an expression for one tile: loads of its leaves, then its nodes, as tile operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlx.ir.builder import Builder
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import BFLOAT, HALF, I1, I16, FloatType, Type, VectorType
from tlx.ir.values import ConstInt, Keyword, Value, const_float, const_vector
from tlx.lower.ordinary import DIVISIONS
from tlx.lower.to_tiles.expression import Expression, Fill, Leaf, Node, Ordinary, Product, Scalar, Unary
from tlx.lower.to_tiles.tiles import column_tile, tile
from tlx.lower.to_tiles.view import View
from tlx.types import TensorType

Values = dict[int, Value]


@dataclass(frozen=True, slots=True)
class Place:
    """A tile of the result: `rows` x `cols` from (`row`, `column`) on; its last `padding` columns hold no data.

    `row` and `column` may be left out where nothing depends on them.
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


class Evaluator:
    """Emits the nodes of an expression for tiles.

    Args:
        b: Where to emit.
        expression: What to compute.
        pointers: First elements of the leaves, by their number.
        scalars: The scalar parameters, by their number; bfloat and half as i16.
        product: The product's tile at a place, for expressions that have a product.
    """

    def __init__(
        self,
        b: TensorBuilder,
        expression: Expression,
        pointers: Sequence[Value],
        scalars: Sequence[Value],
        product: Callable[[Place], Value] | None = None,
    ) -> None:
        self.b = b
        self.expression = expression
        self.pointers = pointers
        self.scalars = scalars
        self.product = product

    def compute(self, place: Place, level: int = 2, known: Values | None = None) -> Values:
        """The nodes that change no more often than `level` says, as flattened tiles.

        Args:
            place: The tile.
            level: 0: what all tiles of a size share; 1: what tiles of the same rows share; 2: everything.
            known: What was computed before, for this size of tile.
        """
        values = dict(known or {})
        needed = self._needed(level)
        for number, node in enumerate(self.expression.nodes):
            if number not in values and number in needed:
                values[number] = self._node(node, place, values)
        return values

    def result(self, place: Place, known: Values | None = None) -> Value:
        """The result for a tile."""
        return self.compute(place, 2, known)[len(self.expression.nodes) - 1]

    def _needed(self, level: int) -> set[int]:
        return {n for n, changes in enumerate(self.expression.levels) if changes <= level}

    def _node(self, node: Node, place: Place, values: Values) -> Value:
        if isinstance(node, Leaf):
            return self._leaf(node, place)
        if isinstance(node, Scalar):
            return self._scalar(node, place)
        if isinstance(node, Fill):
            return _filled(node.value, place.count)
        if isinstance(node, Product):
            assert self.product is not None
            return self.product(place)
        operands = [values[n] for n in node.operands]
        if isinstance(node, Unary):
            token = self.b.typeinfo(operands[0], place.type(node.element), node.name)
            return self.b.unary(node.name, token, place.type(node.element))
        return self._ordinary(node, place, operands)

    def _ordinary(self, node: Ordinary, place: Place, operands: list[Value]) -> Value:
        if node.operation.opcode in DIVISIONS and place.padding:
            operands[1] = self.b.select(data_mask(place), operands[1], _ones(operands[1].type))
        type_ = VectorType(place.count, node.element)
        return node.operation.emit(self.b, type_, [*operands, *node.immediates], node.operation.opcode)

    # Leaves ----------------------------------------------------------------------------------------------------

    def _leaf(self, leaf: Leaf, place: Place) -> Value:
        view = leaf.view
        stretched = self.expression.rows > 1 == view.rows, self.expression.cols > 1 == view.cols
        rows = 1 if stretched[0] else place.rows
        cols, padding = (1, 0) if stretched[1] else (place.cols, place.padding)
        part = Place(rows, cols, padding, place.row, place.column)
        if (rows, cols) == (place.rows, place.cols):
            return load_vector(self.b, view, self._address(leaf, part), part)
        token = _load(self.b, view, self._address(leaf, part), part)
        shape = (place.rows, place.cols - padding)
        return self.b.broadcast(token, shape, (0, 1), tile(leaf.element, place.rows, place.cols, (0, padding)))

    def _address(self, leaf: Leaf, place: Place) -> Value:
        return address_of(self.b, leaf.view, self.pointers[leaf.pointer], place)

    def _scalar(self, scalar: Scalar, place: Place) -> Value:
        b = self.b
        given = self.scalars[scalar.number]
        one = b.insert_element(Keyword(VectorType(1, given.type), "undef"), given, 0, "scalar")
        held = b.cast("bitcast", one, VectorType(1, scalar.element))
        token = b.typeinfo(held, tile(scalar.element, 1, 1), "scalar")
        return b.broadcast(token, (place.rows, place.cols), (0, 1), tile(scalar.element, place.rows, place.cols))


def passed_as(element: Type) -> Type:
    """The type that a scalar parameter of a kernel has: bits for the types that not every LLVM can pass."""
    return I16 if element in (BFLOAT, HALF) else element


def passed(b: Builder, scalar: Value) -> Value:
    """A scalar as a kernel takes it."""
    if passed_as(scalar.type) == scalar.type:
        return scalar
    one = VectorType(1, scalar.type)
    vector = b.insert_element(Keyword(one, "undef"), scalar, 0)
    return b.extract_element(b.cast("bitcast", vector, VectorType(1, I16)), 0)


def address_of(b: TensorBuilder, view: View, base: Value, place: Place) -> Value:
    """Where a tile of a matrix starts."""
    at = b.gep(view.element, base, b.mul(place.row, view.row_stride)) if place.row and view.rows > 1 else base
    if place.column is None or view.cols == 1:
        return at
    return b.gep(view.element, at, b.mul(place.column, view.col_stride))


def load_vector(b: TensorBuilder, view: View, address: Value, place: Place, metadata: str = "") -> Value:
    """A tile of a matrix as a row-major flattened vector."""
    token = _load(b, view, address, place, metadata)
    if _is_turned(view, place):
        return b.transpose(token, (0, 1), VectorType(place.count, view.element), "x.rows")
    return b.tovector(token, place.type(view.element), "x")


def _load(b: TensorBuilder, view: View, address: Value, place: Place, metadata: str = "") -> Value:
    if _is_turned(view, place):
        type_ = column_tile(view.element, place.rows, place.cols, (0, place.padding))
        return b.tensor_load(address, type_, (0, view.col_stride), "x", metadata)
    pitch = max(view.row_stride, 1) if place.rows > 1 else place.cols
    return b.tensor_load(address, place.type(view.element), (0, pitch), "x", metadata)


def _is_turned(view: View, place: Place) -> bool:
    """Whether the elements of a tile's row lie apart."""
    return view.col_stride != 1 and place.cols > 1


def store_vector(b: TensorBuilder, view: View, address: Value, place: Place, value: Value, metadata: str = "") -> None:
    """Write a row-major flattened tile to a row-major matrix."""
    pitch = max(view.row_stride, 1) if place.rows > 1 else 0
    b.tensor_store(address, b.typeinfo(value, place.type(view.element), "out"), (0, pitch), metadata=metadata)


def data_mask(place: Place) -> Value:
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
