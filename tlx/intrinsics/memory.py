"""Tokens of flattened vectors, and loads and stores of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.core import Intrinsic, Operand, OperandKind, own_type, same_array
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims
    from tlx.intrinsics.numpy_types import Array


def _described_type(_tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    shape, layout, padding = dims[:3]
    return [TensorType(element, shape, layout, padding)]


def _nothing(_tensors: Sequence[TensorType], _dims: Dims, _element: Type) -> list[TensorType]:
    return []


def _typeinfo(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """The tensor in a flattened vector, outermost memory dimension first.

    Memory dimension `k` has `shape[k]` positions, holds logical dimension `layout[k]`, and its last `padding[k]`
    positions hold no data. If the operand is a pointer, the flattened vector is read from that address.
    """
    return same_array(arrays, dims, scalars, dtype)


def _load(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """The tensor whose element `(x_0 ... x_{n-1})` is at element offset `((x_0*p_1 + x_1)*p_2 + ...) + x_{n-1}`.

    `p_k`, the pitch of memory dimension `k`, is `strides[k]`, or `shape[k]` if that is 0; `strides[0]` is ignored.
    Padding is not read. A pitch may be smaller than the shape: windows may overlap.
    """
    return same_array(arrays, dims, scalars, dtype)


def _store(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Write element `(x_0 ... x_{n-1})` to element offset `((x_0*p_1 + x_1)*p_2 + ...) + x_{n-1}`.

    `p_k` is `strides[k]`, or the tensor's `shape[k]` if that is 0; `strides[0]` is ignored. Padding is not written.
    A pitch smaller than the shape is an error.
    """
    return same_array(arrays, dims, scalars, dtype)


def _tovector(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """The flattened vector of a token: the same tensor in the same layout; padding positions are zero."""
    return same_array(arrays, dims, scalars, dtype)


_SHAPE: Final = Operand(
    "shape", OperandKind.DIMS, "positions of each memory dimension, outermost first, padding included"
)
_LAYOUT: Final = Operand(
    "layout", OperandKind.DIMS, "logical dimension stored at each memory position", like_previous=True
)
_PADDING: Final = Operand(
    "padding", OperandKind.DIMS, "positions at the end of each memory dimension that hold no data", like_previous=True
)
_LOAD_STRIDES: Final = Operand(
    "strides", OperandKind.DIMS, "pitch of each dimension in the enclosing array, 0 for dense", like_previous=True
)
_STORE_STRIDES: Final = Operand(
    "strides", OperandKind.DIMS, "pitch of each dimension in the enclosing array, 0 for dense"
)
_POINTER: Final = Operand("pointer", OperandKind.POINTER, "address of the first element")
_STORED: Final = Operand("tensor", OperandKind.TENSOR, "the tensor to write")

MEMORY: Final = (
    Intrinsic(
        "typeinfo",
        (
            Operand("tensor", OperandKind.FLAT, "the flattened vector, or a pointer to it (`byval` or `elementtype`)"),
            _SHAPE,
            _LAYOUT,
            _PADDING,
        ),
        "token",
        "Declares the shape, layout and padding of a flattened vector.",
        _described_type,
        _typeinfo,
        """\
%t = call token @llvm.tensor.typeinfo(<240 x float> %v, <3 x i32> <i32 16, i32 5, i32 3>,
                                      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 3, i32 2, i32 1>)
%u = call <240 x float> @llvm.tensor.tovector(token %t)""",
        effects="typeinfo",
    ),
    Intrinsic(
        "totensor",
        (Operand("vector", OperandKind.FLAT, "the flattened vector"), _SHAPE, _LAYOUT, _PADDING),
        "token",
        "Makes a token of a flattened vector; another name for `llvm.tensor.typeinfo`.",
        _described_type,
        _typeinfo,
        """\
%t = call token @llvm.vector.totensor(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
%u = call <12 x float> @llvm.tensor.tovector(token %t)""",
        effects="typeinfo",
        prefix="llvm.vector.",
    ),
    Intrinsic(
        "load",
        (_POINTER, _SHAPE, _LAYOUT, _PADDING, _LOAD_STRIDES),
        "token",
        "Loads a tensor, or a part of a larger one, from memory.",
        _described_type,
        _load,
        """\
; a 16 x 6 x 4 part of an array whose rows are 8 elements apart
%t = call token @llvm.tensor.load(ptr elementtype(float) %p, <3 x i32> <i32 16, i32 6, i32 4>,
                                  <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer,
                                  <3 x i32> <i32 0, i32 0, i32 8>)
call void @llvm.tensor.store(ptr %q, token %t, <3 x i32> zeroinitializer)""",
        effects="read",
    ),
    Intrinsic(
        "store",
        (_POINTER, _STORED, _STORE_STRIDES),
        "void",
        "Stores a tensor to memory, or into a part of a larger one.",
        _nothing,
        _store,
        """\
%t = call token @llvm.tensor.typeinfo(<384 x float> %v, <3 x i32> <i32 16, i32 6, i32 4>,
                                      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
; rows 10 elements apart, in planes of 12 rows
call void @llvm.tensor.store(ptr %p, token %t, <3 x i32> <i32 0, i32 12, i32 10>)""",
        effects="write",
        variants=((_POINTER, _STORE_STRIDES, _STORED),),
    ),
    Intrinsic(
        "tovector",
        (Operand("x", OperandKind.TENSOR, "the tensor"),),
        "vector",
        "Returns the flattened vector of a token.",
        own_type,
        _tovector,
        """\
%t = call token @llvm.tensor.load(ptr %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>,
                                  <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
%v = call <12 x float> @llvm.tensor.tovector(token %t)""",
    ),
)
