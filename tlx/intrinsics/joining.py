"""Borders and joints: padding a tensor with a value, and joining tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.core import (
    Intrinsic,
    Operand,
    OperandKind,
    RuleError,
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


def _pad_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (x,) = tensors
    check_same_element(x, element)
    for name, numbers in zip(("low", "high", "interior"), dims, strict=False):
        if len(numbers) != x.rank:
            message = f"{name} {vector_text(numbers)} has {len(numbers)} entries and x has rank {x.rank}"
            raise RuleError(message, name)
    low, high, interior = _borders(x.rank, dims)
    if min(interior) < 0:
        raise RuleError(f"interior {vector_text(interior)} must not be negative", "interior")
    inner = [extent + (extent - 1) * between for extent, between in zip(x.extents, interior, strict=True)]
    for dimension, (below, extent, above) in enumerate(zip(low, inner, high, strict=True)):
        _check_crop(dimension, below, extent, above)
    extents = [below + extent + above for below, extent, above in zip(low, inner, high, strict=True)]
    changed = [any(numbers) for numbers in zip(low, high, interior, strict=True)]
    kept = [0 if moved else padding for moved, padding in zip(changed, logical_paddings(x), strict=True)]
    return row_major_results(element, extents, kept)


def _check_crop(dimension: int, low: int, extent: int, high: int) -> None:
    """What is cropped must leave something of a dimension."""
    cropped = -min(low, 0) - min(high, 0)
    if cropped >= extent:
        message = f"low {low} and high {high} crop {cropped} of the {extent} positions of dimension {dimension}: "
        raise RuleError(f"{message}at least one must be left", "low" if low < 0 else "high")


def _borders(rank: int, dims: Dims) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The operands low, high and interior."""
    return dims[0], dims[1], dims[2] if len(dims) == 3 else (0,) * rank


def _pad(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Along each dimension `low` elements before `x` and `high` behind it, all equal to `value`.

    Negative numbers crop instead. `interior` elements of `value` first come between neighbours (XLA's pad). What is
    added is data of the result, unlike the padding of a token.
    """
    import numpy as np

    (x,) = arrays
    low, high, interior = _borders(x.ndim, dims)
    spread = np.full([e + (e - 1) * i for e, i in zip(x.shape, interior, strict=True)], scalars[0], dtype)
    spread[tuple(slice(None, None, i + 1) for i in interior)] = x
    borders = list(zip(low, high, strict=True))
    added = [(max(below, 0), max(above, 0)) for below, above in borders]
    full = np.pad(spread, added, constant_values=scalars[0])
    kept = zip(borders, full.shape, strict=True)
    return full[tuple(slice(max(-below, 0), extent + min(above, 0)) for (below, above), extent in kept)]


def _concat_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    first = tensors[0]
    ((axis,),) = dims
    if not 0 <= axis < first.rank:
        raise RuleError(f"axis {axis} is no dimension of x[0], 0 to {first.rank - 1}", "axis")
    for number, tensor in enumerate(tensors):
        if tensor.element != element:
            message = f"x[{number}] has elements of type {tensor.element} and the result of type {element}: "
            raise RuleError(f"{message}they must agree", "x", number)
        _check_joint(first, tensor, axis, number)
    extents = [sum(t.extents[d] for t in tensors) if d == axis else first.extents[d] for d in range(first.rank)]
    paddings = [max(logical_paddings(t)[d] for t in tensors) if d != axis else 0 for d in range(first.rank)]
    return row_major_results(element, extents, paddings)


def _check_joint(first: TensorType, tensor: TensorType, axis: int, number: int) -> None:
    """A tensor must be like the first but along the axis."""
    if tensor.rank != first.rank:
        message = f"x[0] has rank {first.rank} and x[{number}] has rank {tensor.rank}: ranks must agree"
        raise RuleError(message, "x", number)
    for d, (extent, other) in enumerate(zip(first.extents, tensor.extents, strict=True)):
        if d != axis and extent != other:
            message = (
                f"x[0] is {extents_text(first.extents)} and x[{number}] is {extents_text(tensor.extents)}: "
                f"extents {extent} and {other} of dimension {d} differ, only those of dimension {axis} may"
            )
            raise RuleError(message, "x", number)


def _concat(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    """The tensors one after the other along logical dimension `axis`; one tensor alone is copied."""
    import numpy as np

    ((axis,),) = dims
    return np.concatenate(list(arrays), axis)


_X: Final = Operand("x", OperandKind.TENSOR, "the tensor")
_LOW: Final = Operand("low", OperandKind.DIMS, "elements to add before each logical dimension, to crop where negative")
_HIGH: Final = Operand("high", OperandKind.DIMS, "elements to add behind each logical dimension", like_previous=True)
_VALUE: Final = Operand("value", OperandKind.SCALAR, "value of what is added")
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
