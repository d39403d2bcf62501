"""Moving elements about: layouts, and repeating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.core import (
    Intrinsic,
    Operand,
    OperandKind,
    RuleError,
    check_permutation,
    check_same_element,
    extents_text,
    logical_paddings,
    row_major_results,
    same_array,
)
from tlx.intrinsics.tensor_type import TensorType, vector_text
from tlx.ir.types import Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims
    from tlx.intrinsics.numpy_types import Array


def _transpose_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    check_same_element(tensor, element)
    if dims:
        check_permutation("new_layout", dims[0], tensor.rank)
        return [tensor.transposed(dims[0])]
    if tensor.rank < 2:
        message = f"x has rank {tensor.rank}: the form without new_layout swaps the last two of at least 2 dimensions"
        raise RuleError(message, "x")
    *outer, row, column = tensor.layout
    return [tensor.transposed((*outer, column, row))]


def _transpose(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """The same logical tensor, stored in `new_layout` order: its shape, layout and padding follow.

    Without `new_layout` the last two memory dimensions are swapped. Giving the result another `typeinfo` with a
    row-major layout makes it the mathematical transpose.
    """
    return same_array(arrays, dims, scalars, dtype)


def _broadcast_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    check_same_element(tensor, element)
    if not dims:
        return [tensor]
    shape, places = dims
    rank = len(shape)
    if min(shape) < 1:
        raise RuleError(f"out_shape {vector_text(shape)} must be at least 1 in every dimension", "out_shape")
    if len(places) != tensor.rank:
        message = f"dims {vector_text(places)} has {len(places)} entries and x has rank {tensor.rank}"
        raise RuleError(message, "dims")
    if len(set(places)) != len(places) or not all(0 <= place < rank for place in places):
        message = f"dims {vector_text(places)} must be distinct dimensions of the result, 0 to {rank - 1}"
        raise RuleError(message, "dims")
    paddings = [0] * rank
    for dimension, (place, extent) in enumerate(zip(places, tensor.extents, strict=True)):
        if extent not in (1, shape[place]):
            message = (
                f"dimension {dimension} of x has extent {extent} and becomes dimension {place} of "
                f"{extents_text(shape)}, extent {shape[place]}: extents must agree or be 1"
            )
            raise RuleError(message, "x")
        paddings[place] = logical_paddings(tensor)[dimension] if extent == shape[place] else 0
    return row_major_results(element, shape, paddings)


def _broadcast(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """With a scalar: a tensor of the type of `like` whose every data element is `scalar`.

    With `out_shape` and `dims`: dimension `i` of `x` becomes dimension `dims[i]` of the result, extents 1 stretch, and
    the result does not depend on its other dimensions (XLA's BroadcastInDim).
    """
    import numpy as np

    (x,) = arrays
    if scalars:
        return np.full(x.shape, scalars[0], dtype)
    shape, places = dims
    aligned = [1] * len(shape)
    for place, extent in zip(places, x.shape, strict=True):
        aligned[place] = extent
    order = sorted(range(len(places)), key=places.__getitem__)
    return np.broadcast_to(np.transpose(x, order).reshape(aligned), shape)


MOVES: Final = (
    Intrinsic(
        "transpose",
        (
            Operand("x", OperandKind.TENSOR, "the tensor"),
            Operand("new_layout", OperandKind.DIMS, "logical dimension to store at each memory position"),
        ),
        "vector",
        "Stores a tensor in another layout.",
        _transpose_type,
        _transpose,
        """\
%t = call token @llvm.tensor.typeinfo(<240 x float> %v, <3 x i32> <i32 16, i32 5, i32 3>,
                                      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 3, i32 2, i32 1>)
%u = call <240 x float> @llvm.tensor.transpose(token %t, <3 x i32> <i32 2, i32 0, i32 1>)
; the result's shape is <3, 16, 5>, its padding <1, 3, 2>
%w = call token @llvm.tensor.typeinfo(<240 x float> %u, <3 x i32> <i32 3, i32 16, i32 5>,
                                      <3 x i32> <i32 2, i32 0, i32 1>, <3 x i32> <i32 1, i32 3, i32 2>)""",
        variants=((Operand("x", OperandKind.TENSOR, "the tensor"),),),
    ),
    Intrinsic(
        "broadcast",
        (
            Operand("like", OperandKind.TENSOR, "tensor whose type the result has"),
            Operand("scalar", OperandKind.SCALAR, "value of every element"),
        ),
        "vector",
        "Fills a tensor with a scalar, or repeats a tensor along further dimensions.",
        _broadcast_type,
        _broadcast,
        """\
%bias = call token @llvm.tensor.typeinfo(<4 x float> %v, <1 x i32> <i32 4>, <1 x i32> zeroinitializer,
                                         <1 x i32> zeroinitializer)
; the bias as each of three rows
%rows = call <12 x float> @llvm.tensor.broadcast(token %bias, <2 x i32> <i32 3, i32 4>, <1 x i32> <i32 1>)
%twos = call <4 x float> @llvm.tensor.broadcast(token %bias, float 2.0)""",
        variants=(
            (
                Operand("x", OperandKind.TENSOR, "the tensor to repeat"),
                Operand("out_shape", OperandKind.DIMS, "extents of the result"),
                Operand("dims", OperandKind.DIMS, "dimension of the result that each dimension of `x` becomes"),
            ),
        ),
    ),
)
