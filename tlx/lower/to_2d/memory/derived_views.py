"""Derived views: the memory of one tensor as that of another, through permutations, concatenations and padding.

2 x 3 x 4, dense, permuted by <1, 0, 2> to 3 x 8

    the operand's memory as the result    3 x 2 x 4, strides 4, 12, 1      as 3 x 8: none, so that a result is a copy
    the result's memory as the operand    2 x 3 x 4, strides 4, 8, 1       the operand may be written there

A part is an operand's memory in that of the result:

    a a a b b b b b      %u = concat(%a, %b) along axis 1, of 2 x 3 and 2 x 5
    a a a b b b b b      %a at element 0 of %u, %b at element 3, rows 8 apart

`memory.copy_elision` and `memory.store_sinking` choose the operations that write their results there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import StridedDim, TensorView, reshaped_strides
from tlx.lower.to_2d.memory.padding import padded_dims, spread_dims

PERMUTATIONS: Final = frozenset({"transpose", "reshape.permute"})
"""Operations that only permute dimensions, and may reshape them."""


def permuted_view(view: TensorView, permute: TensorOp) -> TensorView | None:
    """The memory of an operand as the result of a `reshape.permute`; None if it has no such strides."""
    assert permute.result is not None
    dims = view.dims
    permuted = TensorView.strided(view.storage, view.element, [dims[d] for d in permute.dims[0]])
    return replace(permuted, offset=view.offset).reshaped(permute.result)


def unpermuted_view(destination: TensorView, permute: TensorOp) -> TensorView | None:
    """The memory of the result of a `reshape.permute` or `transpose` as its operand; None if it has no such strides."""
    if permute.intrinsic.name == "transpose":
        return destination.row_major  # dimensions have the same order, but another one in memory
    order, extents = permute.dims[0], permute.tensors[0].type.extents
    dims = destination.dims
    permuted = [extents[d] for d in order]
    strides = reshaped_strides([dim.extent for dim in dims], [dim.stride for dim in dims], permuted)
    if strides is None:
        return None
    by_dim = dict(zip(order, map(StridedDim, permuted, strides), strict=True))
    view = TensorView.strided(destination.storage, destination.element, [by_dim[d] for d in range(len(extents))])
    return replace(view, offset=destination.offset)


@dataclass(frozen=True, eq=False)
class Part:
    """The place of a result in the result of a concatenation, padding or permutation.

    Attributes:
        op: The operation that writes its result there.
        whole: The concatenation, padding or permutation.
        operand: The number of its operand that is written in place.
        sunk: The place in memory, if that is where the program stores the whole.
    """

    op: TensorOp
    whole: TensorOp
    operand: int
    sunk: TensorView | None = None


def place_in(destination: TensorView, part: Part) -> TensorView | None:
    """The memory of a part in that of the whole, in the shape of its result; None if it has no strides there."""
    result, view = part.op.result, part_view(part.whole, part.operand, destination)
    assert result is not None
    if view is None or [dim.extent for dim in view.dims] == list(result.extents):
        return None if view is None else view.reordered(result.layout, result)
    return view.reshaped(result)


def part_view(whole: TensorOp, operand: int, destination: TensorView) -> TensorView | None:
    """The part of `destination`, the result of an operation that moves elements, to which one of its operands is moved.

    Returns:
        The part with its dimensions in logical order; None if a permuted operand has no strides in the result.
    """
    if whole.intrinsic.name in PERMUTATIONS:
        return unpermuted_view(destination, whole)
    if whole.intrinsic.name == "pad":
        dims, offset = spread_dims(destination, padded_dims(whole))
    else:
        ((axis,),) = whole.dims
        offset = sum(tensor.type.extents[axis] for tensor in whole.tensors[:operand]) * destination.dims[axis].stride
        extents = whole.tensors[operand].type.extents
        dims = [StridedDim(extent, dim.stride) for extent, dim in zip(extents, destination.dims, strict=True)]
    return replace(
        TensorView.strided(destination.storage, destination.element, dims), offset=destination.offset + offset
    )


def has_elements_of(token: TensorType, result: TensorType) -> bool:
    """Whether a token is a result, or has its elements in the same order in other dimensions."""
    return token == result or (token.is_row_major and result.is_row_major and not token.is_padded)
