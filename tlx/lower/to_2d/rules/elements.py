"""Elements of large vectors: `shufflevector` and `insertelement`.

`shufflevector` becomes copies of a few strided blocks of elements, or a gather by a table.

Rewrite of the last elements in front of the first ones, and of a reversal::

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

Rewrite of lanes in no order::

    @lanes = private unnamed_addr constant [400 x i32] [i32 271, i32 3, ...]
    loop over i < 400
      %lane = load i32, ptr (@lanes + %i)
      %x = load float, ptr (%v.buf + %lane)
      store float %x, ptr (%s.buf + %i)

Undefined elements are written with any value, or not at all; nothing outside of the operands is read.

`insertelement` becomes a copy of the vector and a store of the element.

The copy is left out where both share a buffer (`memory.coalescing`), or where the vector is undefined. Rewrite::

    %w = insertelement <6400 x float> %v, float %x, i64 %i
    ->
    call void @llvm.memcpy(ptr %w.buf, ptr %v.buf, ...)
    %in = icmp ult i64 %i, 6400                         ; what is inserted elsewhere makes any vector right
    %at = select i1 %in, i64 %i, i64 0
    store float %x, ptr (%w.buf + %at)

A choice between a vector with elements inserted, and itself, becomes a choice of these elements::

    %w = insertelement <6400 x float> %v, float %x, i64 %i
    %r = select i1 %c, <6400 x float> %w, <6400 x float> %v
    ->
    %e = extractelement <6400 x float> %v, i64 %i
    %y = select i1 %c, float %x, float %e
    %r = insertelement <6400 x float> %v, float %y, i64 %i
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import I32, I64, IntType, PointerType, bits_of, bytes_of
from tlx.ir.values import ConstInt, Value, const_vector, is_undefined
from tlx.lower.memory.views import TensorView, storage_type
from tlx.lower.to_2d.analysis.shuffles import LaneTable, VectorShuffle, strided_blocks_of
from tlx.lower.to_2d.loops import LoopDim, loop_nest
from tlx.lower.to_2d.memory.block_access import constant_array
from tlx.lower.to_2d.memory.copies import copy, copy_block, fill, fill_zero, restrided_view, to_storage_type
from tlx.lower.to_2d.rules.context import RuleContext


def lower_shuffle(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the elements that a shuffle takes to `target`."""
    shuffle = VectorShuffle.of(op.instruction)
    scalars = [context.groups.scalar(tensor) for tensor in op.tensors]
    for scalar, first, behind in zip(scalars, shuffle.bounds, shuffle.bounds[1:], strict=False):
        if scalar is not None:
            shuffle.lanes[(shuffle.lanes >= first) & (shuffle.lanes < behind)] = first
    found = strided_blocks_of(shuffle)
    if isinstance(found, LaneTable):
        pointers = [_memory(context, b, t, scalar) for t, scalar in zip(op.tensors, scalars, strict=True)]
        _gather(b, pointers, shuffle.bounds, found, target)
        return
    for block in found:
        scalar = scalars[block.operand]
        if scalar is not None:
            fill(b, scalar, restrided_view(b, target, [(extent, to) for extent, (_, to) in block.dims], block.at))
            continue
        source = context.view(op.tensors[block.operand])
        start = b.gep(source.element, source.storage.pointer, block.start, "part")
        to = b.gep(target.element, target.storage.pointer, block.at, "part")
        copy_block(b, start, to, target.element, block.dims)


def _memory(context: RuleContext, b: TensorBuilder, tensor: Tensor, scalar: Value | None) -> Value:
    """Where the elements of an operand lie; of one that is a scalar everywhere its first element."""
    if scalar is None:
        return b.retype(_in_default_space(context, b, context.view(tensor)), storage_type(tensor.type.element))
    value = to_storage_type(b, scalar)
    pointer = b.retype(context.allocate(scalar.type, 1, "scalar").pointer, value.type)
    b.store(value, pointer, bytes_of(value.type))
    return pointer


def _in_default_space(context: RuleContext, b: TensorBuilder, view: TensorView) -> Value:
    """Where an operand lies; of one in another address space a copy, as pointers are chosen between."""
    type_ = view.storage.pointer.type
    if not isinstance(type_, PointerType) or not type_.addrspace:
        return view.storage.pointer
    near = replace(view, storage=context.allocate(view.element, view.shape[0], "near"))
    copy(b, view, near)
    return near.storage.pointer


def _gather(
    b: TensorBuilder, operands: Sequence[Value], bounds: Sequence[int], table: LaneTable, target: TensorView
) -> None:
    """Copy block after block from where the table says."""
    element, count = target.element, len(table.starts)
    index = I32 if bounds[-1] < 1 << 31 else I64
    constant = constant_array(b.module, const_vector([ConstInt(index, lane) for lane in table.starts.tolist()]))
    with loop_nest(b, [LoopDim(count, (1, table.step))], 2, "lane") as (number, there):
        lane: Value = b.load(index, b.gep(index, constant, number), bytes_of(index), "lane")
        if index != I64:
            lane = b.cast("zext", lane, I64)
        source, place = operands[0], lane
        for operand, first in zip(operands[1:], bounds[1:], strict=False):
            behind = b.icmp("uge", lane, first)
            source = b.select(behind, operand, source)
            place = b.select(behind, b.sub(lane, first), place)
        start = b.gep(element, source, place, "from")
        copy_block(b, start, b.gep(element, target.storage.pointer, there, "to"), element, table.dims)


def lower_insert(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the operand to `target`, then the element at its position."""
    (source,) = context.operands(op)
    if source is not None and not source.aliases_exactly(target):
        copy(b, source, target)
    elif source is None and not is_undefined(context.memory.facts.vectors.root(op.tensors[0].source)):
        fill_zero(b, target)
    element, index = op.scalars
    address = b.gep(target.element, target.storage.pointer, clamped_index(b, index, target.shape[0]), "position")
    b.store(to_storage_type(b, element), address, bytes_of(target.element))


def clamped_index(b: TensorBuilder, index: Value, count: int) -> Value:
    """The number of a vector's element, which is unsigned; 0 instead of one that the vector does not have."""
    if isinstance(index, ConstInt):
        return ConstInt(I64, index.unsigned if index.unsigned < count else 0)
    assert isinstance(index.type, IntType)
    wide = b.cast("zext" if bits_of(index.type) < bits_of(I64) else "trunc", index, I64)
    return b.select(b.icmp("ult", wide, count), wide, ConstInt(I64, 0), "position")
