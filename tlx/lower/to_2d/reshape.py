"""`llvm.tensor.reshape.block` and `llvm.tensor.reshape.permute`: copies between views with split or joined dimensions.

Rewrite of `reshape.block` of 5 columns into blocks of 4: full blocks, the remainder, and zeroes for what is added::

    %u = call <24 x float> @llvm.tensor.reshape.block(token %t, <1 x i32> <i32 1>, <1 x i32> <i32 4>)   ; 3x5 -> 3x2x4
    ->
    store(%u.buf, load %t)                               3 x 1 x 4: columns 0 to 3 of 3 rows
    store(%u.buf + 4, load %t + 4)                       3 x 1 x 1: column 4
    zeroes at %u.buf + 5                                 3 x 1 x 3

Rewrite of `reshape.permute`, where the result is seen with the permuted extents::

    %b = call <256 x bfloat> @llvm.tensor.reshape.permute(token %t, <0, 2, 1>, <16, 16>)                ; t: 8 x 16 x 2
    ->
    i.loop:                                              ; 8 planes
      store(%b.buf, transpose(load %t))                  16 x 2 -> 2 x 16
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.copies import box, copy, fill_zero, part
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.strides import strides_in
from tlx.lower.to_2d.views import Dim, View
from tlx.types import TensorType

Ranges = list[tuple[int, int]]
"""First index and extent along each of some dimensions."""


# Blocks ----------------------------------------------------------------------------------------------------------


def lower_block(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write the operand to `target`, whose last dimensions are the blocks, and zeroes where blocks are not full."""
    source = plan.view(op.tensors[0])
    dims, sizes = op.dims
    places = [[k for k, d in enumerate(dims) if d == dimension] for dimension in range(len(source.dims))]
    radices = [[sizes[k] for k in ks] for ks in places]
    split = part(b, source, _in_order([_digits(d, r) for d, r in zip(source.dims, radices, strict=True)], places))
    whole = [[(0, out.extent), *((0, s) for s in r)] for out, r in zip(target.dims, radices, strict=False)]
    data = [boxes(0, dim.extent, r) for dim, r in zip(source.dims, radices, strict=True)]
    added = [
        boxes(dim.extent, math.prod(extent for _, extent in all_), r)
        for dim, all_, r in zip(source.dims, whole, radices, strict=True)
    ]
    for chosen in itertools.product(*data):
        ranges = _in_order(chosen, places)
        copy(b, box(b, split, ranges), box(b, target, ranges))
    for d, missing in enumerate(added):
        for chosen in itertools.product(*data[:d], missing, *([w] for w in whole[d + 1 :])):
            fill_zero(b, box(b, target, _in_order(chosen, places)))


def boxes(low: int, high: int, radices: Sequence[int]) -> list[Ranges]:
    """The numbers from `low` to below `high` as ranges of their digits, the first of which is not bounded.

    2 to below 9 with radix (4,) is the digits (0, 2..3), (1, 0..3) and (2, 0).
    """
    if low >= high:
        return []
    if not radices:
        return [[(low, high - low)]]
    block, inner = math.prod(radices), radices[1:]
    first, last = -(-low // block), high // block
    if first > last:
        return _within(low // block, low % block, high - last * block, inner)
    head = _within(low // block, low % block, block, inner) if low % block else []
    full: list[Ranges] = [[(first, last - first), *((0, r) for r in radices)]] if first < last else []
    return [*head, *full, *_within(last, 0, high % block, inner)]


def _within(digit: int, low: int, high: int, radices: Sequence[int]) -> list[Ranges]:
    return [[(digit, 1), *rest] for rest in boxes(low, high, radices)]


def _digits(dim: Dim, radices: Sequence[int]) -> list[tuple[int, int]]:
    """A dimension seen as digits: how far apart neighbours along each are."""
    return [(1, dim.stride * math.prod(radices[k:])) for k in range(len(radices) + 1)]


def _in_order(digits: Sequence[Sequence[tuple[int, int]]], places: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """What belongs to the digits of each dimension in the order of the result: first digits, then blocks."""
    blocks = {k: d for own, ks in zip(digits, places, strict=True) for k, d in zip(ks, own[1:], strict=True)}
    return [*(own[0] for own in digits), *(blocks[k] for k in sorted(blocks))]


# Permutations ----------------------------------------------------------------------------------------------------


def lower_permute(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write the operand, its dimensions permuted, to `target`, seen in the same shape."""
    source = plan.view(op.tensors[0])
    permuted = part(b, source, [source.dims[d] for d in op.dims[0]])
    seen = _seen(b, target, permuted)
    if seen is not None:
        copy(b, permuted, seen)
        return
    seen = _seen(b, permuted, target)
    if seen is None:
        type_ = TensorType.dense(source.element, [dim.extent for dim in permuted.dims])
        dense = View.of(plan.dense_operand(op)(source.element, type_.count, "x"), type_)
        copy(b, permuted, dense)
        seen = _seen(b, dense, target)
        assert seen is not None
    copy(b, seen, target)


def _seen(b: TensorBuilder, view: View, other: View) -> View | None:
    """A view with the extents of another, if its memory allows."""
    extents = [dim.extent for dim in other.dims]
    strides = strides_in([dim.extent for dim in view.dims], [dim.stride for dim in view.dims], extents)
    return None if strides is None else part(b, view, list(zip(extents, strides, strict=True)))
