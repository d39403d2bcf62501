"""Reshapes: blocked storage, and permutations followed by a new shape."""

from __future__ import annotations

import math
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
)
from tlx.intrinsics.tensor_type import TensorType, vector_text
from tlx.ir.types import Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims
    from tlx.intrinsics.numpy_types import Array


def _block_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    blocked, sizes = dims
    check_same_element(tensor, element)
    if not all(0 <= dimension < tensor.rank for dimension in blocked):
        message = f"dims {vector_text(blocked)} must be dimensions of x, 0 to {tensor.rank - 1}"
        raise RuleError(message, "dims")
    if len(blocked) != len(sizes):
        message = f"dims {vector_text(blocked)} and sizes {vector_text(sizes)} must have as many entries"
        raise RuleError(message, "sizes")
    if min(sizes) < 1:
        message = f"sizes {vector_text(sizes)} must be at least 1"
        raise RuleError(message, "sizes")
    outer = [
        -(-extent // math.prod(size for dimension, size in zip(blocked, sizes, strict=True) if dimension == d))
        for d, extent in enumerate(tensor.extents)
    ]
    kept = [0 if d in blocked else padding for d, padding in enumerate(logical_paddings(tensor))]
    return row_major_results(element, (*outer, *sizes), [*kept, *(0 for _ in sizes)])


def _block(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    """Blocked storage: from each listed dimension a block of that size is split off.

    The blocks are new innermost dimensions, in list order; where a dimension is listed more than once its later block
    is the inner one (`dims <1, 0, 1>`, `sizes <4, 16, 4>` is `OI4i16o4i`). Extents are rounded up; what is added is
    zero, and data of the result.
    """
    import numpy as np

    (x,) = arrays
    rank = x.ndim
    for dimension, size in reversed(list(zip(*dims, strict=True))):
        fill = [(0, -x.shape[d] % size if d == dimension else 0) for d in range(x.ndim)]
        x = np.pad(x, fill)
        split = x.reshape(*x.shape[:dimension], x.shape[dimension] // size, size, *x.shape[dimension + 1 :])
        x = np.moveaxis(split, dimension + 1, rank)
    return x


def _permute_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    order, shape = dims
    check_same_element(tensor, element)
    check_permutation("perm", order, tensor.rank)
    if min(shape) < 1 or math.prod(shape) != math.prod(tensor.extents):
        message = (
            f"new_shape {extents_text(shape)} has {math.prod(shape)} elements and x, {extents_text(tensor.extents)}, "
            f"has {math.prod(tensor.extents)}"
        )
        raise RuleError(message, "new_shape")
    permuted = tuple(tensor.extents[d] for d in order)
    paddings = [logical_paddings(tensor)[d] for d in order] if permuted == shape else [0] * len(shape)
    return row_major_results(element, shape, paddings)


def _permute(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    """Dimension `i` of the result before reshaping is dimension `perm[i]` of `x`; then it is reshaped, row-major."""
    import numpy as np

    order, shape = dims
    return np.transpose(arrays[0], order).reshape(shape)


RESHAPES: Final = (
    Intrinsic(
        "reshape.block",
        (
            Operand("x", OperandKind.TENSOR, "the tensor"),
            Operand("dims", OperandKind.DIMS, "logical dimensions to split"),
            Operand("sizes", OperandKind.DIMS, "size of each block"),
        ),
        "vector",
        "Splits dimensions into blocks, as packing for a kernel does.",
        _block_type,
        _block,
        """\
%t = call token @llvm.tensor.typeinfo(<15 x float> %v, <2 x i32> <i32 3, i32 5>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
; 3 x 5 -> 3 x 2 x 4, the last three columns zero
%u = call <24 x float> @llvm.tensor.reshape.block(token %t, <1 x i32> <i32 1>, <1 x i32> <i32 4>)""",
    ),
    Intrinsic(
        "reshape.permute",
        (
            Operand("x", OperandKind.TENSOR, "the tensor"),
            Operand("perm", OperandKind.DIMS, "order of the logical dimensions"),
            Operand("new_shape", OperandKind.DIMS, "extents of the result"),
        ),
        "vector",
        "Permutes the logical dimensions, then reshapes.",
        _permute_type,
        _permute,
        """\
; rows k, k+1 of B interleaved -> B
%t = call token @llvm.tensor.load(ptr %p, <3 x i32> <i32 8, i32 16, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>,
                                  <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
%b = call <256 x bfloat> @llvm.tensor.reshape.permute(token %t, <3 x i32> <i32 0, i32 2, i32 1>,
                                                      <2 x i32> <i32 16, i32 16>)""",
    ),
)
