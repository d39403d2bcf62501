"""Elements of large vectors: `shufflevector` and `insertelement`.

`shufflevector` of large vectors: strided copies of a few blocks of their elements, or by a table.

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

Elements that may have any value are written as it comes, or not at all; nothing outside of the operands is read.

`insertelement` into a large vector: the vector copied, and the element stored over its own.

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
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import I32, I64, IntType, PointerType, Type, VectorType, bits_of, bytes_of
from tlx.ir.values import ConstInt, Value, const_vector, is_undefined
from tlx.lower.memory.views import Storage, TensorView, storage_type
from tlx.lower.to_2d.analysis.shuffles import LaneTable, VectorShuffle, strided_blocks_of
from tlx.lower.to_2d.loops import LoopDim, loop_nest
from tlx.lower.to_2d.memory.block_access import constant_array
from tlx.lower.to_2d.memory.copies import copy, fill, fill_zero, restrided_view, to_storage_type
from tlx.lower.to_2d.plan import Plan

_REGISTER: Final = 64
_REVERSED: Final = (-1, 1)


def lower_shuffle(plan: Plan, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the elements that a shuffle takes to `target`."""
    shuffle = VectorShuffle.of(op.instruction)
    scalars = [plan.groups.scalar(tensor) for tensor in op.tensors]
    for scalar, first, behind in zip(scalars, shuffle.bounds, shuffle.bounds[1:], strict=False):
        if scalar is not None:
            shuffle.lanes[(shuffle.lanes >= first) & (shuffle.lanes < behind)] = first
    found = strided_blocks_of(shuffle)
    if isinstance(found, LaneTable):
        pointers = [_memory(plan, b, t, scalar) for t, scalar in zip(op.tensors, scalars, strict=True)]
        _gather(plan, b, pointers, shuffle.bounds, found, target)
        return
    for block in found:
        scalar = scalars[block.operand]
        if scalar is not None:
            fill(b, scalar, restrided_view(b, target, [(extent, to) for extent, (_, to) in block.dims], block.at))
            continue
        source = plan.view(op.tensors[block.operand])
        start = b.gep(source.element, source.place.pointer, block.start, "part")
        to = b.gep(target.element, target.place.pointer, block.at, "part")
        _copy(b, start, to, target.element, block.dims)


def _memory(plan: Plan, b: TensorBuilder, tensor: Tensor, scalar: Value | None) -> Value:
    """Where the elements of an operand lie; of one that is a scalar everywhere its first element."""
    if scalar is None:
        return b.retype(_in_default_space(plan, b, plan.view(tensor)), storage_type(tensor.type.element))
    value = to_storage_type(b, scalar)
    pointer = b.retype(plan.new_place(scalar.type, 1, "scalar").pointer, value.type)
    b.store(value, pointer, bytes_of(value.type))
    return pointer


def _in_default_space(plan: Plan, b: TensorBuilder, view: TensorView) -> Value:
    """Where an operand lies; of one in another address space a copy, as pointers are chosen between."""
    type_ = view.place.pointer.type
    if not isinstance(type_, PointerType) or not type_.addrspace:
        return view.place.pointer
    near = replace(view, place=plan.new_place(view.element, view.sizes[0], "near"))
    copy(b, view, near)
    return near.place.pointer


def _copy(b: TensorBuilder, source: Value, target: Value, element: Type, dims: Sequence[LoopDim]) -> None:
    """Copy a block; its strides in the source may be negative."""
    turned = next((walk for walk in dims if walk[1] == _REVERSED), None)
    if turned is not None:
        with loop_nest(b, [walk for walk in dims if walk is not turned], 2) as (here, there):
            _reverse(b, b.gep(element, source, here, "from"), b.gep(element, target, there, "to"), element, turned[0])
        return
    with loop_nest(b, [walk for walk in dims if walk[1][0] < 0], 2) as (here, there):
        forward = [walk for walk in dims if walk[1][0] >= 0]
        start, to = b.gep(element, source, here, "from"), b.gep(element, target, there, "to")
        copy(b, _view(start, element, forward, 0), _view(to, element, forward, 1))


def _view(pointer: Value, element: Type, dims: Sequence[LoopDim], operand: int) -> TensorView:
    """A block in the source, or in the target."""
    extents, steps = tuple(extent for extent, _ in dims), tuple(strides[operand] for _, strides in dims)
    return TensorView(Storage(pointer), element, extents, extents, steps, tuple(range(len(dims))))


def _reverse(b: TensorBuilder, source: Value, target: Value, element: Type, count: int) -> None:
    """Copy elements up to `source` in reverse order, a register at a time; of any type, as integers."""
    word = IntType(8 * bytes_of(element))
    source, target = b.retype(source, word), b.retype(target, word)
    lanes = _REGISTER // bytes_of(element)
    whole, rest = divmod(count, lanes)
    if whole:
        with loop_nest(b, [(whole, (-lanes, lanes))], 2, "register") as (here, there):
            first = b.gep(word, source, b.add(here, 1 - lanes), "from")
            _reverse_register(b, first, b.gep(word, target, there, "to"), VectorType(lanes, word))
    if rest:
        first = b.gep(word, source, 1 - count, "from")
        _reverse_register(b, first, b.gep(word, target, whole * lanes, "to"), VectorType(rest, word))


def _reverse_register(b: TensorBuilder, source: Value, target: Value, type_: VectorType) -> None:
    align = bytes_of(type_.element)
    register = b.load(type_, b.retype(source, type_), align)
    reversed_ = b.shuffle(register, None, range(type_.count)[::-1], "reversed")
    b.store(reversed_, b.retype(target, type_), align)


def _gather(
    plan: Plan, b: TensorBuilder, operands: Sequence[Value], bounds: Sequence[int], table: LaneTable, target: TensorView
) -> None:
    """Copy block after block from where the table says."""
    element, count = target.element, len(table.starts)
    index = I32 if bounds[-1] < 1 << 31 else I64
    constant = constant_array(plan.module, const_vector([ConstInt(index, lane) for lane in table.starts.tolist()]))
    with loop_nest(b, [(count, (1, table.step))], 2, "lane") as (number, there):
        lane: Value = b.load(index, b.gep(index, constant, number), bytes_of(index), "lane")
        if index != I64:
            lane = b.cast("zext", lane, I64)
        source, place = operands[0], lane
        for operand, first in zip(operands[1:], bounds[1:], strict=False):
            behind = b.icmp("uge", lane, first)
            source = b.select(behind, operand, source)
            place = b.select(behind, b.sub(lane, first), place)
        start = b.gep(element, source, place, "from")
        _copy(b, start, b.gep(element, target.place.pointer, there, "to"), element, table.dims)


def lower_insert(plan: Plan, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the operand to `target`, then the element at its position."""
    (source,) = plan.operands(op)
    if source is not None and not source.is_same(target):
        copy(b, source, target)
    elif source is None and not is_undefined(plan.flats.root(op.tensors[0].source)):
        fill_zero(b, target)
    element, index = op.scalars
    address = b.gep(target.element, target.place.pointer, clamped_index(b, index, target.sizes[0]), "position")
    b.store(to_storage_type(b, element), address, bytes_of(target.element))


def clamped_index(b: TensorBuilder, index: Value, count: int) -> Value:
    """The number of a vector's element, which is unsigned; 0 instead of one that the vector does not have."""
    if isinstance(index, ConstInt):
        return ConstInt(I64, index.unsigned if index.unsigned < count else 0)
    assert isinstance(index.type, IntType)
    wide = b.cast("zext" if bits_of(index.type) < bits_of(I64) else "trunc", index, I64)
    return b.select(b.icmp("ult", wide, count), wide, ConstInt(I64, 0), "position")
