"""2-D blocks in memory: loads, splats, stores, and constants.

The ends of 2-D trees: strided blocks and scalars as row-major vectors, and the store of one.

A row-major block whose rows lie `p` elements apart, and its transpose::

    %t = call token @llvm.tensor.load(ptr %x, <R, C>, <0, 1>, ..., <0, p>)
    %v = call <R*C x float> @llvm.tensor.tovector(token %t)

    %t = call token @llvm.tensor.load(ptr %x, <C, R>, <1, 0>, ..., <0, p>)
    %v = call <R*C x float> @llvm.tensor.transpose(token %t, <2 x i32> <i32 0, i32 1>)

A row for every row, a column for every column, one element everywhere, and a scalar::

    %t = call token @llvm.tensor.load(ptr %x, <1, C> | <R, 1> | <1, 1>, ...)
    %v = call <R*C x float> @llvm.tensor.broadcast(token %t, <2 x i32> <i32 R, i32 C>, <2 x i32> <i32 0, i32 1>)

    %s = insertelement <1 x float> undef, float %scalar, i32 0
    %t = call token @llvm.tensor.typeinfo(<1 x float> %s, <1, 1>, <0, 1>, ...)
    %v = call <R*C x float> @llvm.tensor.broadcast(token %t, <2 x i32> <i32 R, i32 C>, <2 x i32> <i32 0, i32 1>)
"""

from __future__ import annotations

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.module import Module, Raw
from tlx.ir.types import I1, I8, ArrayType, Type, VectorType
from tlx.ir.values import Aggregate, Constant, ConstInt, Global, Keyword, Local, Splat, Value, const_vector
from tlx.lower.memory.views import storage_type


def load_block(
    b: TensorBuilder, pointer: Value, element: Type, rows: int, cols: int, row_stride: int, col_stride: int
) -> Local:
    """The row-major vector of a block in memory; a stride of 0 repeats, that of a single row or column does not matter.

    Args:
        b: Where.
        pointer: The block's first element.
        element: Type of its elements.
        rows: Its rows.
        cols: Its columns.
        row_stride: Elements from a row to the next.
        col_stride: Elements from a column to the next.

    Raises:
        ValueError: Neither stride is 0 or 1.
    """
    down, right = row_stride if rows > 1 else 0, col_stride if cols > 1 else 0
    if right == 1 and (down or rows == 1):
        return b.tovector(b.tensor_load(pointer, TensorType.dense(element, (rows, cols)), (0, down or cols), "rows"))
    if right > 1 and (down == 1 or rows == 1):
        type_ = TensorType(element, (cols, rows), (1, 0), (0, 0))
        return b.transpose(b.tensor_load(pointer, type_, (0, right), "columns"), (0, 1))
    if right > 1 or (down and right):
        msg = f"no 2-D load reads {rows} x {cols} elements with strides {row_stride} and {col_stride}"
        raise ValueError(msg)
    return _load_repeated(b, pointer, element, (rows, cols), (down, right))


def _load_repeated(
    b: TensorBuilder, pointer: Value, element: Type, extents: tuple[int, int], strides: tuple[int, int]
) -> Local:
    """A row, a column or one element, repeated along the dimensions whose stride is 0."""
    rows, cols = (extent if stride else 1 for extent, stride in zip(extents, strides, strict=True))
    token = b.tensor_load(pointer, TensorType.dense(element, (rows, cols)), (0, strides[0] or cols), "part")
    return b.tovector(token) if (rows, cols) == extents else b.broadcast(token, extents, (0, 1))


def splat_block(b: TensorBuilder, scalar: Value, rows: int, cols: int) -> Local:
    """A block every element of which is a scalar."""
    one: Value = (
        const_vector([scalar])
        if isinstance(scalar, Constant)
        else b.insert_element(Keyword(VectorType(1, scalar.type), "undef"), scalar, 0, "scalar")
    )
    token = b.typeinfo(one, TensorType.dense(scalar.type, (1, 1)), "scalar")
    return b.broadcast(token, (rows, cols), (0, 1))


def store_block(
    b: TensorBuilder, vector: Value, pointer: Value, element: Type, rows: int, cols: int, pitch: int
) -> None:
    """The root of a tree: write a row-major vector as a block whose rows lie `pitch` elements apart."""
    token = b.typeinfo(vector, TensorType.dense(element, (rows, cols)), "block")
    b.tensor_store(pointer, token, (0, pitch if rows > 1 else cols))


def constant_array(module: Module, value: Value) -> Global:
    """A constant vector as an array: LLVM aligns vectors to their size, which linkers refuse where it is large."""
    name = module.global_names.fresh("tensor.constant")
    type_ = value.type
    assert isinstance(type_, VectorType)
    if isinstance(value, (Aggregate, Splat)):
        elements = value.elements if isinstance(value, Aggregate) else (value.element,) * type_.count
        if type_.element == I1:
            elements = tuple(ConstInt(I8, int(str(e) in ("1", "-1", "true"))) for e in elements)
        value = Aggregate(ArrayType(type_.count, storage_type(type_.element)), elements, "[")
    text = f"\n\n@{name} = private unnamed_addr constant {value.typed}, align 64"
    module.append(Raw(text))
    return Global(module.pointer_to(value.type), name)
