"""Operations that move elements: broadcast, transpose, pad, concat, and reshapes."""

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

    Without `new_layout` the last two memory dimensions are swapped. A `typeinfo` of the result with a row-major
    layout turns it into the mathematical transpose.
    """
    return same_array(arrays, dims, scalars, dtype)


def _broadcast_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    check_same_element(tensor, element)
    if not dims:
        return [tensor]
    shape, positions = dims
    rank = len(shape)
    if min(shape) < 1:
        raise RuleError(f"out_shape {vector_text(shape)} must be at least 1 in every dimension", "out_shape")
    if len(positions) != tensor.rank:
        message = f"dims {vector_text(positions)} must have {tensor.rank} entries, the rank of x"
        raise RuleError(message, "dims")
    if len(set(positions)) != len(positions) or not all(0 <= d < rank for d in positions):
        message = f"dims {vector_text(positions)} must be distinct dimensions of the result, 0 to {rank - 1}"
        raise RuleError(message, "dims")
    paddings = [0] * rank
    for dimension, (position, extent) in enumerate(zip(positions, tensor.extents, strict=True)):
        if extent not in (1, shape[position]):
            message = (
                f"dimension {dimension} of x has extent {extent} and becomes dimension {position} of "
                f"{extents_text(shape)}, extent {shape[position]}: extents must agree or be 1"
            )
            raise RuleError(message, "x")
        paddings[position] = logical_paddings(tensor)[dimension] if extent == shape[position] else 0
    return row_major_results(element, shape, paddings)


def _broadcast(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """With a scalar: a tensor of the type of `like` whose every data element is `scalar`.

    With `out_shape` and `dims`: dimension `i` of `x` becomes dimension `dims[i]` of the result; extents of 1 and the
    other dimensions of the result are repeated (XLA's BroadcastInDim).
    """
    import numpy as np

    (x,) = arrays
    if scalars:
        return np.full(x.shape, scalars[0], dtype)
    shape, positions = dims
    aligned = [1] * len(shape)
    for position, extent in zip(positions, x.shape, strict=True):
        aligned[position] = extent
    order = sorted(range(len(positions)), key=positions.__getitem__)
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
            Operand("like", OperandKind.TENSOR, "tensor that determines the type of the result"),
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


def _pad_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (x,) = tensors
    check_same_element(x, element)
    for name, numbers in zip(("low", "high", "interior"), dims, strict=False):
        if len(numbers) != x.rank:
            message = f"{name} {vector_text(numbers)} must have {x.rank} entries, the rank of x"
            raise RuleError(message, name)
    low, high, interior = _borders(x.rank, dims)
    if min(interior) < 0:
        raise RuleError(f"interior {vector_text(interior)} must not be negative", "interior")
    inner = [extent + (extent - 1) * between for extent, between in zip(x.extents, interior, strict=True)]
    for dimension, (below, extent, above) in enumerate(zip(low, inner, high, strict=True)):
        _check_crop(dimension, below, extent, above)
    extents = [below + extent + above for below, extent, above in zip(low, inner, high, strict=True)]
    are_changed = [any(numbers) for numbers in zip(low, high, interior, strict=True)]
    result_paddings = [
        0 if is_changed else padding for is_changed, padding in zip(are_changed, logical_paddings(x), strict=True)
    ]
    return row_major_results(element, extents, result_paddings)


def _check_crop(dimension: int, low: int, extent: int, high: int) -> None:
    """Check that cropping leaves at least one position of a dimension."""
    cropped = -min(low, 0) - min(high, 0)
    if cropped >= extent:
        message = f"low {low} and high {high} crop {cropped} of the {extent} positions of dimension {dimension}: "
        raise RuleError(f"{message}at least one must remain", "low" if low < 0 else "high")


def _borders(rank: int, dims: Dims) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The operands low, high and interior."""
    return dims[0], dims[1], dims[2] if len(dims) == 3 else (0,) * rank


def _pad(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Adds `low` elements equal to `value` before `x` and `high` after it, along each dimension.

    Negative numbers crop. First, `interior` elements of `value` are inserted between neighbours (XLA's pad). All of
    them are data of the result, unlike the padding of a token.
    """
    import numpy as np

    (x,) = arrays
    low, high, interior = _borders(x.ndim, dims)
    spread = np.full([e + (e - 1) * i for e, i in zip(x.shape, interior, strict=True)], scalars[0], dtype)
    spread[tuple(slice(None, None, i + 1) for i in interior)] = x
    borders = list(zip(low, high, strict=True))
    added = [(max(below, 0), max(above, 0)) for below, above in borders]
    full = np.pad(spread, added, constant_values=scalars[0])
    bounds = zip(borders, full.shape, strict=True)
    return full[tuple(slice(max(-below, 0), extent + min(above, 0)) for (below, above), extent in bounds)]


def _concat_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    first = tensors[0]
    ((axis,),) = dims
    if not 0 <= axis < first.rank:
        raise RuleError(f"axis {axis} is not a dimension of x[0], 0 to {first.rank - 1}", "axis")
    for number, tensor in enumerate(tensors):
        if tensor.element != element:
            message = f"x[{number}] has elements of type {tensor.element} and the result of type {element}: "
            raise RuleError(f"{message}they must agree", "x", number)
        _check_joint(first, tensor, axis, number)
    extents = [sum(t.extents[d] for t in tensors) if d == axis else first.extents[d] for d in range(first.rank)]
    paddings = [max(logical_paddings(t)[d] for t in tensors) if d != axis else 0 for d in range(first.rank)]
    return row_major_results(element, extents, paddings)


def _check_joint(first: TensorType, tensor: TensorType, axis: int, number: int) -> None:
    """Check that a tensor has the extents of the first one, except along the axis."""
    if tensor.rank != first.rank:
        message = f"x[0] has rank {first.rank} and x[{number}] has rank {tensor.rank}: ranks must agree"
        raise RuleError(message, "x", number)
    for d, (extent, other) in enumerate(zip(first.extents, tensor.extents, strict=True)):
        if d != axis and extent != other:
            message = (
                f"x[0] is {extents_text(first.extents)} and x[{number}] is {extents_text(tensor.extents)}: "
                f"extents {extent} and {other} of dimension {d} differ, but only those of dimension {axis} may"
            )
            raise RuleError(message, "x", number)


def _concat(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    """Concatenates the tensors along logical dimension `axis`; a single tensor is copied."""
    import numpy as np

    ((axis,),) = dims
    return np.concatenate(list(arrays), axis)


_X: Final = Operand("x", OperandKind.TENSOR, "the tensor")
_LOW: Final = Operand("low", OperandKind.DIMS, "elements to add before each logical dimension; negative numbers crop")
_HIGH: Final = Operand("high", OperandKind.DIMS, "elements to add after each logical dimension", like_previous=True)
_VALUE: Final = Operand("value", OperandKind.SCALAR, "value of the added elements")
_INTERIOR: Final = Operand("interior", OperandKind.DIMS, "elements to add between neighbours in each logical dimension")

JOINS: Final = (
    Intrinsic(
        "pad",
        (_X, _LOW, _HIGH, _VALUE),
        "vector",
        "Surrounds a tensor with a value, or crops it.",
        _pad_type,
        _pad,
        """\
%t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
; a row of zeros above, the last column cropped: 4 x 3
%u = call <12 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 -1>, float 0.0)
; a column of zeros between neighbours: 3 x 7
%w = call <21 x float> @llvm.tensor.pad(token %t, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer, float 0.0,
                                        <2 x i32> <i32 0, i32 1>)""",
        variants=((_X, _LOW, _HIGH, _VALUE, _INTERIOR),),
    ),
    Intrinsic(
        "concat",
        (
            Operand("x", OperandKind.TENSOR, "the tensors, one or more", repeated=True),
            Operand("axis", OperandKind.INDEX, "logical dimension along which they are joined"),
        ),
        "vector",
        "Joins tensors along a dimension.",
        _concat_type,
        _concat,
        """\
%t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
; 6 x 4 and 3 x 12
%rows = call <24 x float> @llvm.tensor.concat(token %t, token %t, i32 0)
%columns = call <36 x float> @llvm.tensor.concat(token %t, token %t, token %t, i32 1)""",
    ),
)


def _block_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    blocked, sizes = dims
    check_same_element(tensor, element)
    if not all(0 <= dimension < tensor.rank for dimension in blocked):
        message = f"dims {vector_text(blocked)} must be dimensions of x, 0 to {tensor.rank - 1}"
        raise RuleError(message, "dims")
    if len(blocked) != len(sizes):
        message = f"dims {vector_text(blocked)} and sizes {vector_text(sizes)} must have the same number of entries"
        raise RuleError(message, "sizes")
    if min(sizes) < 1:
        message = f"sizes {vector_text(sizes)} must be at least 1"
        raise RuleError(message, "sizes")
    outer = [
        -(-extent // math.prod(size for dimension, size in zip(blocked, sizes, strict=True) if dimension == d))
        for d, extent in enumerate(tensor.extents)
    ]
    result_paddings = [0 if d in blocked else padding for d, padding in enumerate(logical_paddings(tensor))]
    return row_major_results(element, (*outer, *sizes), [*result_paddings, *(0 for _ in sizes)])


def _block(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    """Blocked storage: splits each listed dimension into blocks of the given size.

    The blocks are new innermost dimensions, in list order; if a dimension is listed more than once, its later block is
    the inner one (`dims <1, 0, 1>`, `sizes <4, 16, 4>` is `OI4i16o4i`). Extents are rounded up; the added elements are
    zero, and data of the result.
    """
    import numpy as np

    (x,) = arrays
    rank = x.ndim
    for dimension, size in reversed(list(zip(*dims, strict=True))):
        fill = [(0, -x.shape[d] % size if d == dimension else 0) for d in range(x.ndim)]
        x = np.pad(x, fill)
        blocked = x.reshape(*x.shape[:dimension], x.shape[dimension] // size, size, *x.shape[dimension + 1 :])
        x = np.moveaxis(blocked, dimension + 1, rank)
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
        "Splits dimensions into blocks, for example to pack an operand of a kernel.",
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
