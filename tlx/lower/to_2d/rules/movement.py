"""Data movement: `llvm.tensor.broadcast`, `concat`, `pad`, `reshape.*`, `transpose`, `tovector`.

`llvm.tensor.broadcast`: fills, and copies from operands with stride 0 along some dimensions.

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

`llvm.tensor.concat`: a copy of each operand into its part of the result.

Rewrite along the columns::

    %u = call <24 x float> @llvm.tensor.concat(token %a, token %b, i32 1)              ; 3 x 2 and 3 x 6
    ->
    %rows = call token @llvm.tensor.load(ptr %a.ptr, <3, 2>, <0, 1>, <0, 0>, <0, 2>)
    call void @llvm.tensor.store(ptr %u.buf, token %rows, <0, 8>)
    %to = getelementptr inbounds float, ptr %u.buf, i64 2
    %rows.1 = call token @llvm.tensor.load(ptr %b.ptr, <3, 6>, <0, 1>, <0, 0>, <0, 6>)
    call void @llvm.tensor.store(ptr %to, token %rows.1, <0, 8>)

`llvm.tensor.pad`: a copy into a part of the result, and fills of the border.

Rewrite of a row above and a column to the right::

    %u = call <20 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 1>, float %s)
    ->
    %one = insertelement <1 x float> undef, float %s, i32 0                             ; %t is 3 x 4, %u 4 x 5
    ...
    store(%u.buf, broadcast(typeinfo(%one)))             1 x 5
    store(%u.buf + 9, broadcast(typeinfo(%one)))         3 x 1
    store(%u.buf + 5, load %t)                           3 x 4

If padding goes between neighbours, the whole result is filled first.

`llvm.tensor.reshape.block` and `llvm.tensor.reshape.permute`: copies between views with split or joined dimensions.

Rewrite of `reshape.block` of 5 columns into blocks of 4: full blocks, the remainder, and zeroes in the last block::

    %u = call <24 x float> @llvm.tensor.reshape.block(token %t, <1 x i32> <i32 1>, <1 x i32> <i32 4>)   ; 3x5 -> 3x2x4
    ->
    store(%u.buf, load %t)                               3 x 1 x 4: columns 0 to 3 of 3 rows
    store(%u.buf + 4, load %t + 4)                       3 x 1 x 1: column 4
    zeroes at %u.buf + 5                                 3 x 1 x 3

Rewrite of `reshape.permute`, with the result in the shape of the permuted operand::

    %b = call <256 x bfloat> @llvm.tensor.reshape.permute(token %t, <0, 2, 1>, <16, 16>)                ; t: 8 x 16 x 2
    ->
    i.loop:                                              ; 8 planes
      store(%b.buf, transpose(load %t))                  16 x 2 -> 2 x 16

`llvm.tensor.transpose` and `llvm.tensor.tovector`: copies into the order of the result.

Rewrite of a transpose to <2, 0, 1> whose result is needed in memory::

    %v = call <240 x float> @llvm.tensor.transpose(token %x, <3 x i32> <i32 2, i32 0, i32 1>)
    ->
    loops around 2-D copies, those that transpose among them (`memory.copies`)

There is no copy if only tensor operations with the same dimensions use the result: they read the operand's memory with
permuted strides.

`shufflevector` becomes copies of a few strided blocks of elements, or a gather by a table.

Rewrite of a rotation, and of a reversal::

    %s = shufflevector <400 x float> %v, <400 x float> poison, <400 x i32> <i32 390, ..., i32 399, i32 0, ..., i32 389>
    ->
    call void @llvm.memcpy(ptr %s.buf, ptr (%v.buf + 390), ...)                 ; 10 elements
    call void @llvm.memcpy(ptr (%s.buf + 10), ptr %v.buf, ...)                  ; 390

    %s = call <400 x float> @llvm.vector.reverse.v400f32(<400 x float> %v)
    ->
    loop over i < 25
      %r = load <16 x i32>, ptr (%v.buf + 384 - 16 * %i)
      %x = shufflevector <16 x i32> %r, <16 x i32> undef, <16 x i32> <i32 15, ..., i32 0>
      store <16 x i32> %x, ptr (%s.buf + 16 * %i)

Rewrite of lanes in an irregular order::

    @lanes = private unnamed_addr constant [400 x i32] [i32 271, i32 3, ...]
    loop over i < 400
      %lane = load i32, ptr (@lanes + %i)
      %x = load float, ptr (%v.buf + %lane)
      store float %x, ptr (%s.buf + %i)

Undefined elements are written with any value, or not at all; nothing outside of the operands is read.

`insertelement` becomes a copy of the vector and a store of the element. There is no copy if both vectors share a buffer
(`memory.coalescing`), or the vector is undefined. Rewrite::

    %w = insertelement <6400 x float> %v, float %x, i64 %i
    ->
    call void @llvm.memcpy(ptr %w.buf, ptr %v.buf, ...)
    %in = icmp ult i64 %i, 6400                         ; the result is poison if not
    %at = select i1 %in, i64 %i, i64 0
    store float %x, ptr (%w.buf + %at)

A `select` between a vector and the same vector with elements inserted becomes a `select` of these elements::

    %w = insertelement <6400 x float> %v, float %x, i64 %i
    %r = select i1 %c, <6400 x float> %w, <6400 x float> %v
    ->
    %e = extractelement <6400 x float> %v, i64 %i
    %y = select i1 %c, float %x, float %e
    %r = insertelement <6400 x float> %v, float %y, i64 %i
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import I32, I64, IntType, PointerType, bits_of, bytes_of
from tlx.ir.values import ConstInt, Value, const_vector, is_undefined
from tlx.lower.memory.views import StridedDim, TensorView, reshaped_strides, storage_type
from tlx.lower.to_2d.analysis.shuffles import LaneTable, VectorShuffle, strided_blocks_of
from tlx.lower.to_2d.emission import RuleContext
from tlx.lower.to_2d.loop_nests import LoopDim, loop_nest
from tlx.lower.to_2d.memory.copies import (
    constant_array,
    copy,
    copy_block,
    fill,
    fill_zero,
    restrided_view,
    slice_view,
    to_storage_type,
)
from tlx.lower.to_2d.memory.derived_views import part_view
from tlx.lower.to_2d.memory.padding import fill_border, padded_dims, spread


def lower_broadcast(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write the scalar, or the repeated operand, to `destination`."""
    if op.scalars:
        fill(b, op.scalars[0], destination)
        return
    assert op.result is not None
    copy(b, context.memory.view(op.tensors[0]).broadcast(op.result, op.dims[1]), destination)


def lower_concat(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write the operands to `destination`, one after the other along the axis."""
    for number, tensor in enumerate(op.tensors):
        if not context.is_in_place(op, number):
            part = part_view(op, number, destination)
            assert part is not None
            copy(b, context.memory.view(tensor), context.memory.storage.addressed(part))


def lower_pad(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write the value, and the elements of the operand that are not cropped, to `destination`."""
    dims = padded_dims(op)
    if any(dim.is_spread for dim in dims):
        fill(b, op.scalars[0], destination)
    else:
        fill_border(b, destination, dims, op.scalars[0])
    if all(dim.count for dim in dims) and not context.is_in_place(op, 0):
        source = context.memory.view(op.tensors[0])
        copy(b, slice_view(b, source, [(dim.first, dim.count) for dim in dims]), spread(b, destination, dims))


Ranges = list[tuple[int, int]]
"""First index and extent along each dimension of a box."""


# Blocks ----------------------------------------------------------------------------------------------------------


def lower_block(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write the operand to `destination`, whose last dimensions are the blocks; pad partial blocks with zeros."""
    source = context.memory.view(op.tensors[0])
    dims, sizes = op.dims
    places = [[k for k, d in enumerate(dims) if d == dimension] for dimension in range(len(source.dims))]
    radices = [[sizes[k] for k in ks] for ks in places]
    split = restrided_view(
        b, source, _in_order([_digits(d, r) for d, r in zip(source.dims, radices, strict=True)], places)
    )
    whole = [[(0, out.extent), *((0, s) for s in r)] for out, r in zip(destination.dims, radices, strict=False)]
    data = [index_boxes(0, dim.extent, r) for dim, r in zip(source.dims, radices, strict=True)]
    added = [
        index_boxes(dim.extent, math.prod(extent for _, extent in all_), r)
        for dim, all_, r in zip(source.dims, whole, radices, strict=True)
    ]
    for digits in itertools.product(*data):
        ranges = _in_order(digits, places)
        copy(b, slice_view(b, split, ranges), slice_view(b, destination, ranges))
    for d, missing in enumerate(added):
        for digits in itertools.product(*data[:d], missing, *([w] for w in whole[d + 1 :])):
            fill_zero(b, slice_view(b, destination, _in_order(digits, places)))


def index_boxes(low: int, high: int, radices: Sequence[int]) -> list[Ranges]:
    """The numbers of [low, high) as boxes of their digits in a mixed radix; the first digit is unbounded.

    [2, 9) with radix (4,) are the digits (0, 2..3), (1, 0..3) and (2, 0).
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


def _digits(dim: StridedDim[int], radices: Sequence[int]) -> list[tuple[int, int]]:
    """A dimension as digits, each with its stride."""
    return [(1, dim.stride * math.prod(radices[k:])) for k in range(len(radices) + 1)]


def _in_order(digits: Sequence[Sequence[tuple[int, int]]], places: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The digits of each dimension in the order of the result: the first digits, then the blocks."""
    blocks = {k: d for own, ks in zip(digits, places, strict=True) for k, d in zip(ks, own[1:], strict=True)}
    return [*(own[0] for own in digits), *(blocks[k] for k in sorted(blocks))]


# Permutations ----------------------------------------------------------------------------------------------------


def lower_permute(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write the operand with permuted dimensions to `destination`, which may have another shape."""
    if context.is_in_place(op, 0):
        return
    source = context.memory.view(op.tensors[0])
    permuted = restrided_view(b, source, [source.dims[d] for d in op.dims[0]])
    reshaped = _reshaped_like(b, destination, permuted)
    if reshaped is not None:
        copy(b, permuted, reshaped)
        return
    reshaped = _reshaped_like(b, permuted, destination)
    if reshaped is None:
        type_ = TensorType.dense(source.element, [dim.extent for dim in permuted.dims])
        dense = TensorView.of(context.allocate_copy(op, source.element, type_.count, "x"), type_)
        copy(b, permuted, dense)
        reshaped = _reshaped_like(b, dense, destination)
        assert reshaped is not None
    copy(b, reshaped, destination)


def _reshaped_like(b: TensorBuilder, view: TensorView, other: TensorView) -> TensorView | None:
    """A view reshaped to the extents of another one; None if its memory has no such strides."""
    extents = [dim.extent for dim in other.dims]
    strides = reshaped_strides([dim.extent for dim in view.dims], [dim.stride for dim in view.dims], extents)
    return None if strides is None else restrided_view(b, view, list(zip(extents, strides, strict=True)))


def lower_transpose(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write the operand to `destination`, which has the same logical dimensions."""
    if not context.is_in_place(op, 0):
        copy(b, context.memory.view(op.tensors[0]), destination)


def lower_shuffle(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write the elements that a shuffle selects to `destination`."""
    shuffle = VectorShuffle.of(op.instruction)
    scalars = [context.memory.groups.scalar(tensor) for tensor in op.tensors]
    for scalar, first, end in zip(scalars, shuffle.bounds, shuffle.bounds[1:], strict=False):
        if scalar is not None:
            shuffle.mask[(shuffle.mask >= first) & (shuffle.mask < end)] = first
    blocks = strided_blocks_of(shuffle)
    if isinstance(blocks, LaneTable):
        pointers = [_memory(context, b, t, scalar) for t, scalar in zip(op.tensors, scalars, strict=True)]
        _gather(b, pointers, shuffle.bounds, blocks, destination)
        return
    for block in blocks:
        scalar = scalars[block.operand]
        if scalar is not None:
            fill(b, scalar, restrided_view(b, destination, [(extent, to) for extent, (_, to) in block.dims], block.at))
            continue
        source = context.memory.view(op.tensors[block.operand])
        start = b.gep(source.element, source.storage.pointer, block.start, "part")
        to = b.gep(destination.element, destination.storage.pointer, block.at, "part")
        copy_block(b, start, to, destination.element, block.dims)


def _memory(context: RuleContext, b: TensorBuilder, tensor: Tensor, scalar: Value | None) -> Value:
    """The address of an operand's elements; of a splat, the address of a copy of its scalar."""
    if scalar is None:
        return b.retype(_in_default_space(context, b, context.memory.view(tensor)), storage_type(tensor.type.element))
    value = to_storage_type(b, scalar)
    pointer = b.retype(context.allocate(scalar.type, 1, "scalar").pointer, value.type)
    b.store(value, pointer, bytes_of(value.type))
    return pointer


def _in_default_space(context: RuleContext, b: TensorBuilder, view: TensorView) -> Value:
    """The address of an operand, or of a copy in the default address space: `select` takes pointers of one type."""
    type_ = view.storage.pointer.type
    if not isinstance(type_, PointerType) or not type_.addrspace:
        return view.storage.pointer
    near = replace(view, storage=context.allocate(view.element, view.shape[0], "copy"))
    copy(b, view, near)
    return near.storage.pointer


def _gather(
    b: TensorBuilder, operands: Sequence[Value], bounds: Sequence[int], table: LaneTable, destination: TensorView
) -> None:
    """Copy block after block from the lanes in the table."""
    element, count = destination.element, len(table.starts)
    index = I32 if bounds[-1] < 1 << 31 else I64
    constant = constant_array(b.module, const_vector([ConstInt(index, lane) for lane in table.starts.tolist()]))
    with loop_nest(b, [LoopDim(count, (1, table.step))], 2, "lane") as (number, there):
        lane: Value = b.load(index, b.gep(index, constant, number), bytes_of(index), "lane")
        if index != I64:
            lane = b.cast("zext", lane, I64)
        source, place = operands[0], lane
        for operand, first in zip(operands[1:], bounds[1:], strict=False):
            in_operand = b.icmp("uge", lane, first)
            source = b.select(in_operand, operand, source)
            place = b.select(in_operand, b.sub(lane, first), place)
        start = b.gep(element, source, place, "from")
        copy_block(b, start, b.gep(element, destination.storage.pointer, there, "to"), element, table.dims)


def lower_insert(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write the operand to `destination`, then the element at its position."""
    (source,) = context.memory.operands(op)
    if source is not None and not source.aliases_exactly(destination):
        copy(b, source, destination)
    elif source is None and not is_undefined(context.memory.facts.vectors.root(op.tensors[0].source)):
        fill_zero(b, destination)
    element, index = op.scalars
    position = b.mul(clamped_index(b, index, destination.shape[0]), destination.strides[0])
    address = b.gep(destination.element, destination.storage.pointer, position, "position")
    b.store(to_storage_type(b, element), address, bytes_of(destination.element))


def clamped_index(b: TensorBuilder, index: Value, count: int) -> Value:
    """An unsigned index of a vector's element; 0 if it is out of bounds."""
    if isinstance(index, ConstInt):
        return ConstInt(I64, index.unsigned if index.unsigned < count else 0)
    assert isinstance(index.type, IntType)
    wide = b.cast("zext" if bits_of(index.type) < bits_of(I64) else "trunc", index, I64)
    return b.select(b.icmp("ult", wide, count), wide, ConstInt(I64, 0), "position")
