"""Data movement: `llvm.tensor.broadcast`, `concat`, `pad`, `reshape.*`, `transpose`, `tovector`.

`llvm.tensor.broadcast`: fills, and copies of what repeats along some dimensions.

Rewrite of a bias as each of R rows::

    %v = call <R*C x float> @llvm.tensor.broadcast(token %bias, <2 x i32> <i32 R, i32 C>, <1 x i32> <i32 1>)
    ->
    %part = call token @llvm.tensor.load(ptr %bias.ptr, <1, C>, <0, 1>, <0, 0>, <0, C>)
    %rows = call <R*C x float> @llvm.tensor.broadcast(token %part, <2 x i32> <i32 R, i32 C>, <2 x i32> <i32 0, i32 1>)
    %block = call token @llvm.tensor.typeinfo(<R*C x float> %rows, <R, C>, <0, 1>, <0, 0>)
    call void @llvm.tensor.store(ptr %v.buf, token %block, <0, C>)

and of the form with a scalar::

    %v = call <C x float> @llvm.tensor.broadcast(token %like, float %s)
    ->
    %one = insertelement <1 x float> undef, float %s, i32 0
    %scalar = call token @llvm.tensor.typeinfo(<1 x float> %one, <1, 1>, <0, 1>, <0, 0>)
    %all = call <C x float> @llvm.tensor.broadcast(token %scalar, <2 x i32> <i32 1, i32 C>, <2 x i32> <i32 0, i32 1>)
    ...

`llvm.tensor.concat`: one copy for each operand, into its part of the result.

Rewrite along the columns::

    %u = call <24 x float> @llvm.tensor.concat(token %a, token %b, i32 1)              ; 3 x 2 and 3 x 6
    ->
    %rows = call token @llvm.tensor.load(ptr %a.ptr, <3, 2>, <0, 1>, <0, 0>, <0, 2>)
    call void @llvm.tensor.store(ptr %u.buf, token %rows, <0, 8>)
    %to = getelementptr inbounds float, ptr %u.buf, i64 2
    %rows.1 = call token @llvm.tensor.load(ptr %b.ptr, <3, 6>, <0, 1>, <0, 0>, <0, 6>)
    call void @llvm.tensor.store(ptr %to, token %rows.1, <0, 8>)

`llvm.tensor.pad`: a copy into a part of the result, and the value around it.

Rewrite of a row above and a column behind::

    %u = call <20 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 1>, float %s)
    ->
    %one = insertelement <1 x float> undef, float %s, i32 0                             ; %t is 3 x 4, %u 4 x 5
    ...
    store(%u.buf, broadcast(typeinfo(%one)))             1 x 5
    store(%u.buf + 9, broadcast(typeinfo(%one)))         3 x 1
    store(%u.buf + 5, load %t)                           3 x 4

Where elements are added between neighbours the whole result is filled first.

`llvm.tensor.reshape.block` and `llvm.tensor.reshape.permute`: copies between views with split or joined dimensions.

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

`llvm.tensor.transpose` and `llvm.tensor.tovector`: copies into the order of the result.

Rewrite of a transpose to <2, 0, 1> whose result is needed in memory::

    %v = call <240 x float> @llvm.tensor.transpose(token %x, <3 x i32> <i32 2, i32 0, i32 1>)
    ->
    loops around 2-D copies, those that transpose among them (`memory.copies`)

Where only tensor operations use the result, and see its dimensions as they are, there is no copy at all: they read the
operand's memory with its strides in the new order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import StridedDim, TensorView, reshaped_strides
from tlx.lower.to_2d.memory.copies import copy, fill, fill_zero, restrided_view, slice_view
from tlx.lower.to_2d.rules.context import RuleContext


def lower_broadcast(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the scalar, or the operand as often as it repeats, to `target`."""
    if op.scalars:
        fill(b, op.scalars[0], target)
        return
    assert op.result is not None
    copy(b, context.view(op.tensors[0]).broadcast(op.result, op.dims[1]), target)


def lower_concat(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the operands to `target`, one after the other along the axis."""
    ((axis,),) = op.dims
    first = 0
    for tensor in op.tensors:
        source = context.view(tensor)
        ranges = [(first if d == axis else 0, dim.extent) for d, dim in enumerate(source.dims)]
        copy(b, source, slice_view(b, target, ranges))
        first += source.dims[axis].extent


@dataclass(frozen=True)
class _Border:
    """One dimension: which elements of the operand are kept, and where they go.

    Attributes:
        first: The first element of the operand that is kept.
        count: How many are.
        at: Where the first goes.
        step: How far apart they go.
        extent: Extent of the result.
    """

    first: int
    count: int
    at: int
    step: int
    extent: int

    @classmethod
    def of(cls, extent: int, low: int, interior: int, result: int) -> _Border:
        step = interior + 1
        first = max(0, -(low // step))
        last = min(extent - 1, (result - 1 - low) // step)
        return cls(first, max(0, last - first + 1), low + first * step, step, result)

    @property
    def outside(self) -> list[tuple[int, int]]:
        """What lies before and behind the elements."""
        end = self.at + (self.count - 1) * self.step + 1
        return [(first, count) for first, count in ((0, self.at), (end, self.extent - end)) if count > 0]


def lower_pad(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the value, and what is kept of the operand, to `target`."""
    source = context.view(op.tensors[0])
    low, interior = op.dims[0], op.dims[2] if len(op.dims) == 3 else (0,) * len(source.dims)
    numbers = zip(source.dims, low, interior, target.dims, strict=True)
    borders = [_Border.of(dim.extent, below, between, out.extent) for dim, below, between, out in numbers]
    kept = all(border.count > 0 for border in borders)
    if not kept or any(border.step > 1 and border.count > 1 for border in borders):
        fill(b, op.scalars[0], target)
    else:
        for ranges in _border_slabs(borders):
            fill(b, op.scalars[0], slice_view(b, target, ranges))
    if kept:
        copy(
            b, slice_view(b, source, [(border.first, border.count) for border in borders]), _spread(b, target, borders)
        )


def _border_slabs(borders: Sequence[_Border]) -> list[list[tuple[int, int]]]:
    """What surrounds the elements, the outermost dimensions first, as boxes that do not overlap."""
    return [
        [
            *((border.at, border.count) for border in borders[:dimension]),
            outside,
            *((0, border.extent) for border in borders[dimension + 1 :]),
        ]
        for dimension in range(len(borders))
        for outside in borders[dimension].outside
    ]


def _spread(b: TensorBuilder, target: TensorView, borders: Sequence[_Border]) -> TensorView:
    """Where the elements go."""
    pairs = list(zip(borders, target.dims, strict=True))
    dims = [(border.count, dim.stride * border.step) for border, dim in pairs]
    return restrided_view(b, target, dims, sum(border.at * dim.stride for border, dim in pairs))


Ranges = list[tuple[int, int]]
"""First index and extent along each of some dimensions."""


# Blocks ----------------------------------------------------------------------------------------------------------


def lower_block(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the operand to `target`, whose last dimensions are the blocks, and zeroes where blocks are not full."""
    source = context.view(op.tensors[0])
    dims, sizes = op.dims
    places = [[k for k, d in enumerate(dims) if d == dimension] for dimension in range(len(source.dims))]
    radices = [[sizes[k] for k in ks] for ks in places]
    split = restrided_view(
        b, source, _in_order([_digits(d, r) for d, r in zip(source.dims, radices, strict=True)], places)
    )
    whole = [[(0, out.extent), *((0, s) for s in r)] for out, r in zip(target.dims, radices, strict=False)]
    data = [index_boxes(0, dim.extent, r) for dim, r in zip(source.dims, radices, strict=True)]
    added = [
        index_boxes(dim.extent, math.prod(extent for _, extent in all_), r)
        for dim, all_, r in zip(source.dims, whole, radices, strict=True)
    ]
    for chosen in itertools.product(*data):
        ranges = _in_order(chosen, places)
        copy(b, slice_view(b, split, ranges), slice_view(b, target, ranges))
    for d, missing in enumerate(added):
        for chosen in itertools.product(*data[:d], missing, *([w] for w in whole[d + 1 :])):
            fill_zero(b, slice_view(b, target, _in_order(chosen, places)))


def index_boxes(low: int, high: int, radices: Sequence[int]) -> list[Ranges]:
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
    return [[(digit, 1), *rest] for rest in index_boxes(low, high, radices)]


def _digits(dim: StridedDim, radices: Sequence[int]) -> list[tuple[int, int]]:
    """A dimension seen as digits: how far apart neighbours along each are."""
    return [(1, dim.stride * math.prod(radices[k:])) for k in range(len(radices) + 1)]


def _in_order(digits: Sequence[Sequence[tuple[int, int]]], places: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """What belongs to the digits of each dimension in the order of the result: first digits, then blocks."""
    blocks = {k: d for own, ks in zip(digits, places, strict=True) for k, d in zip(ks, own[1:], strict=True)}
    return [*(own[0] for own in digits), *(blocks[k] for k in sorted(blocks))]


# Permutations ----------------------------------------------------------------------------------------------------


def lower_permute(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the operand, its dimensions permuted, to `target`, seen in the same shape."""
    source = context.view(op.tensors[0])
    permuted = restrided_view(b, source, [source.dims[d] for d in op.dims[0]])
    seen = _seen_as(b, target, permuted)
    if seen is not None:
        copy(b, permuted, seen)
        return
    seen = _seen_as(b, permuted, target)
    if seen is None:
        type_ = TensorType.dense(source.element, [dim.extent for dim in permuted.dims])
        dense = TensorView.of(context.allocate_copy(op, source.element, type_.count, "x"), type_)
        copy(b, permuted, dense)
        seen = _seen_as(b, dense, target)
        assert seen is not None
    copy(b, seen, target)


def _seen_as(b: TensorBuilder, view: TensorView, other: TensorView) -> TensorView | None:
    """A view with the extents of another, if its memory allows."""
    extents = [dim.extent for dim in other.dims]
    strides = reshaped_strides([dim.extent for dim in view.dims], [dim.stride for dim in view.dims], extents)
    return None if strides is None else restrided_view(b, view, list(zip(extents, strides, strict=True)))


def lower_transpose(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the operand to `target`, which has the same logical dimensions."""
    copy(b, context.view(op.tensors[0]), target)
