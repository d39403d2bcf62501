"""Tiles of matrices in memory: their types, addresses, alignment, loads, stores, and conversions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I1, I8, I64, FloatType, IntType, Type, VectorType, bits_of
from tlx.ir.values import ConstInt, Value, const_int, const_ints, const_vector
from tlx.lower.to_tiles.expression import MatrixView
from tlx.target.instructions.dots import Sign

SWAPPED_AXES: Final = (0, 1, 3, 2, 4)
"""A permutation of rows x blocks x a x b x c that swaps a and b."""


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


def tile_address(b: TensorBuilder, view: MatrixView, base: Value, result_tile: ResultTile) -> Value:
    """Address of a tile of a matrix."""
    at = (
        b.gep(view.element, base, b.mul(result_tile.row, view.row_stride))
        if result_tile.row and view.rows > 1
        else base
    )
    if result_tile.column is None or view.cols == 1:
        return at
    return b.gep(view.element, at, b.mul(result_tile.column, view.col_stride))


def load_tile_vector(
    b: TensorBuilder, view: MatrixView, address: Value, result_tile: ResultTile, metadata: str = ""
) -> Value:
    """A tile of a matrix as a row-major flattened vector."""
    token = load_tile(b, view, address, result_tile, metadata)
    if _is_transposed(view, result_tile):
        return b.transpose(token, (0, 1), VectorType(result_tile.count, view.element), "x.rows")
    return b.tovector(token, result_tile.type(view.element), "x")


def load_tile(b: TensorBuilder, view: MatrixView, address: Value, result_tile: ResultTile, metadata: str = "") -> Value:
    """A token for a tile of a matrix, column-major where its rows are not contiguous."""
    if _is_transposed(view, result_tile):
        type_ = column_tile(view.element, result_tile.rows, result_tile.cols, (0, result_tile.padding))
        return b.tensor_load(address, type_, (0, view.col_stride), "x", metadata)
    pitch = max(view.row_stride, 1) if result_tile.rows > 1 else result_tile.cols
    return b.tensor_load(address, result_tile.type(view.element), (0, pitch), "x", metadata)


def _is_transposed(view: MatrixView, result_tile: ResultTile) -> bool:
    """Whether the elements of a tile's row are not contiguous."""
    return view.col_stride != 1 and result_tile.cols > 1


def store_tile_vector(
    b: TensorBuilder, view: MatrixView, address: Value, result_tile: ResultTile, value: Value, metadata: str = ""
) -> None:
    """Write a row-major flattened tile to a matrix."""
    if _is_transposed(view, result_tile):
        type_ = column_tile(view.element, result_tile.rows, result_tile.cols, (0, result_tile.padding))
        columns = b.transpose(b.typeinfo(value, result_tile.type(view.element), "out"), (1, 0), type_, "out.columns")
        b.tensor_store(address, b.typeinfo(columns, type_, "out"), (0, view.col_stride), metadata=metadata)
        return
    pitch = max(view.row_stride, 1) if result_tile.rows > 1 else 0
    b.tensor_store(address, b.typeinfo(value, result_tile.type(view.element), "out"), (0, pitch), metadata=metadata)


def data_mask(result_tile: ResultTile) -> Value:
    """Which elements of a tile hold data."""
    row = [ConstInt(I1, int(column < result_tile.cols - result_tile.padding)) for column in range(result_tile.cols)]
    return const_vector(row * result_tile.rows)


def tile(element: Type, rows: int, cols: int, padding: tuple[int, int] = (0, 0)) -> TensorType:
    """A row-major tile."""
    return TensorType(element, (rows, cols), (0, 1), padding)


def column_tile(element: Type, rows: int, cols: int, padding: tuple[int, int] = (0, 0)) -> TensorType:
    """A column-major tile of `rows` x `cols` (its shape is listed in memory order: columns first)."""
    return TensorType(element, (cols, rows), (1, 0), (padding[1], padding[0]))


def convert_tile(b: TensorBuilder, value: Value, element: Type, sign: Sign) -> Value:
    """A flattened tile with its elements converted; integers are widened by `sign`."""
    type_ = value.type
    if not isinstance(type_, VectorType) or type_.element == element:
        return value
    to = VectorType(type_.count, element)
    source = type_.element
    narrower = bits_of(element) < bits_of(source)
    if isinstance(source, FloatType) and isinstance(element, FloatType):
        return b.cast("fptrunc" if narrower else "fpext", value, to)
    if isinstance(source, IntType) and isinstance(element, IntType):
        widen = "zext" if sign == "u" else "sext"
        return b.cast("trunc" if narrower else widen, value, to)
    message = f"no conversion from {source} to {element}"
    raise TypeError(message)


def flip_sign_bit(b: TensorBuilder, value: Value) -> Value:
    """Bytes xor 0x80: s8 as u8 plus 128, and u8 as s8 minus 128."""
    type_ = value.type
    if not isinstance(type_, VectorType):
        message = f"{type_} is not a vector"
        raise TypeError(message)
    return b.binary("xor", value, const_ints(I8, [-128] * type_.count))


def elements_to_boundary(b: TensorBuilder, address: Value, element: int, boundary: int) -> Value:
    """Elements of `element` bytes from an address to the next one that is aligned to `boundary` elements."""
    negated = b.sub(const_int(I64, 0), b.cast("ptrtoint", address, I64))
    gap = b.binary("and", negated, const_int(I64, boundary * element - 1))
    return b.binary("lshr", gap, const_int(I64, element.bit_length() - 1))
