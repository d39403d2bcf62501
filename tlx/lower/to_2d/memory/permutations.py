"""Permutations: the operand of a `reshape.permute` as its result, and its result as the operand.

2 x 3 x 4, dense, permuted by <1, 0, 2> to 3 x 8

    the operand's memory as the result    3 x 2 x 4, strides 4, 12, 1      as 3 x 8: none, so that a result is a copy
    the result's memory as the operand    2 x 3 x 4, strides 4, 8, 1       the operand may be written there
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import StridedDim, TensorView, reshaped_strides

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
