"""Store sinking: operations that run where their result is stored and write there, so that no temporary is needed.

Rewrite::

    %m = call <E x T> @llvm.tensor.matmul(token %a, token %b)        nothing
    ...                                                       ->     ...
    store <E x T> %m, ptr %c                                         the product, written to %c

The store must be the only use, in the same block; the operands must still be what they were, and apart from the
destination. An accumulator may be the destination itself. Where only the program's run can tell whether an operand is
apart from the destination, it is asked then::

    %overlap = ...                                          ; of the operands' and the destination's bytes
    %to = select i1 %overlap, ptr %apart.buf, ptr %c
    ... the product, written to %to
    br i1 %overlap, label %overlaps, label %apart           ; overlaps: copy %apart.buf to %c

The overlap check of a product `%c = %a @ %b` where `%c` may overlap `%a`::

    %from = ptrtoint ptr %a to i64                    %to = ptrtoint ptr %c to i64
    %overlap = and i1 (%from < %to + size of C), (%to < %from + size of A)
    %place = select i1 %overlap, ptr %apart.buf, ptr %c
    ... the product, written to %place
    br i1 %overlap, label %overlaps, label %apart
  overlaps:
    ... %apart.buf copied to %c

Where `%c` is read as well (`%c = %a @ %b + %c`), there are two products: one that writes to the buffer, one in place::

    br i1 %overlap, label %overlaps, label %in.place
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.transform.rewrite import split_block
from tlx.ir.types import I64, PointerType, Type, bytes_of
from tlx.ir.values import Value
from tlx.lower.memory.aliases import MemoryLocation, quoted_instruction
from tlx.lower.memory.buffers import size_text
from tlx.lower.memory.views import Storage, TensorView, reshaped_strides, storage_type
from tlx.lower.to_2d.analysis.reads import OperandRead, operand_reads
from tlx.lower.to_2d.analysis.tensor_operations import PRODUCTS
from tlx.lower.to_2d.fusion.groups import StoreSink
from tlx.lower.to_2d.memory.copies import copy, copy_bytes

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan


def find_sink(plan: Plan, op: TensorOp) -> StoreSink | None:
    """Where an operation and what is fused into it can run and write directly; None, with a remark, where they cannot.

    Args:
        plan: What is decided so far: liveness and views.
        op: The operation.
    """
    if op.result is None or not plan.is_live(op) or str(op.instruction.result) in plan.lazy:
        return None
    sink = _only_store(plan, op)
    if sink is None:
        return None
    readings = operand_reads(plan, op)
    read = _read_in_place(plan, op, readings)
    reason = _obstacle(plan, sink, read)
    if reason is not None:
        plan.explain(op, reason)
        return None
    doubts = _possible_overlaps(plan, sink, read)
    if not doubts:
        return sink
    if not _is_default(sink.target.place.pointer.type):
        plan.explain(op, "only pointers of the default address space are compared when the program runs")
        return None
    return replace(sink, doubts=doubts, stays=any(reading.allows(sink.target) for reading in readings))


def _only_store(plan: Plan, op: TensorOp) -> StoreSink | None:
    """The store that is the only use of a result, if it is in the operation's block and of the same shape."""
    assert op.result is not None
    users = plan.flats.uses.get(str(op.instruction.result), [])
    if len(users) != 1:
        return None
    user = users[0].instruction
    token = plan.tensors.tokens.get(user.result or "")
    if token is None:
        if not plan.flats.is_memory_store(user) or not _same_block(plan, op.instruction, user):
            return None
        return StoreSink(op, user, TensorView.of(Storage(user.operands[1]), op.result), op.result.is_padded)
    stores = plan.flats.uses.get(str(user.result), [])
    used = plan.tensors.op_of(stores[0].instruction) if len(stores) == 1 else None
    if used is not None and used.pointer is None:
        return _behind_transpose(plan, op, token, used)
    if used is None or not _same_block(plan, op.instruction, used.instruction):
        return None
    assert used.pointer is not None
    target = _sunk_view(op.result, token.type, Storage(used.pointer), used.pitches)
    return None if target is None else StoreSink(op, used.instruction, target, fills=False)


def _behind_transpose(plan: Plan, op: TensorOp, seen: Tensor, transpose: TensorOp) -> StoreSink | None:
    """The store of a product's transpose, if only that is stored: the product is written in the other order.

    memory of the transpose   0 1 2 3        of the product   order[0] order[1] order[2] order[3]
    """
    type_, result = op.result, transpose.result
    is_product = op.intrinsic.name in PRODUCTS or plan.groups.product_of(op) is not None
    if str(transpose.instruction.result) not in plan.lazy or transpose.intrinsic.name != "transpose" or not is_product:
        return None
    if type_ is None or result is None or type_.is_padded or result.is_padded or seen.type.shape != type_.shape:
        return None
    sink = _only_store(plan, transpose)
    if sink is None or not _same_block(plan, op.instruction, sink.store):
        return None
    steps = [0] * type_.rank
    for dimension, step in zip(result.layout, sink.target.steps, strict=True):
        steps[seen.type.position(dimension)] = step
    target = TensorView(
        sink.target.place, storage_type(type_.element), type_.shape, type_.shape, tuple(steps), type_.layout
    )
    return StoreSink(op, sink.store, target, fills=False)


def _sunk_view(
    result: TensorType, seen: TensorType, place: Storage, pitches: Sequence[int] | None
) -> TensorView | None:
    """A result where it is stored as a tensor of another type: the same positions in memory order."""
    if (seen.shape, seen.padding) == (result.shape, result.padding):
        return TensorView.of(place, result, pitches)
    if seen.is_padded or result.is_padded:
        return None
    steps = reshaped_strides(seen.shape, seen.strides(pitches), result.shape)
    if steps is None:
        return None
    return TensorView(place, storage_type(result.element), result.shape, result.shape, steps, result.layout)


def _same_block(plan: Plan, first: Instruction, second: Instruction) -> bool:
    return plan.positions[id(first)][0] == plan.positions[id(second)][0]


def _obstacle(plan: Plan, sink: StoreSink, read: Sequence[OperandRead]) -> str | None:
    """Why an operation cannot run where its result is stored, or cannot write there; None if nothing is known."""
    here, there = plan.positions[id(sink.op.instruction)], plan.positions[id(sink.store)]
    for reading in read:
        writer = plan.aliases.clobbered(MemoryLocation.of(reading.view), here, there)
        if writer is not None:
            return f"'{quoted_instruction(writer)}' may change an operand before the result is stored"
        if reading.view.place.pointer == sink.target.place.pointer and not _may_stay(sink, reading):
            return f"{sink.target.place.pointer} is read as well"
    return None


def _is_default(pointer: Type) -> bool:
    return isinstance(pointer, PointerType) and not pointer.addrspace


def _possible_overlaps(plan: Plan, sink: StoreSink, read: Sequence[OperandRead]) -> tuple[TensorView, ...]:
    """The operands that may overlap what is written."""
    views = [reading.view for reading in read if not _may_stay(sink, reading)]
    doubtful = [v for v in views if not plan.aliases.disjoint(MemoryLocation.of(v), sink.range)]
    return tuple({MemoryLocation.of(v): v for v in doubtful}.values())


def _read_in_place(plan: Plan, op: TensorOp, readings: Sequence[OperandRead]) -> list[OperandRead]:
    """The readings of memory of the user's that is not copied when it is loaded."""
    here = plan.positions[id(op.instruction)]
    own = [reading for reading in readings if reading.view.place.reading is not None]
    return [
        r for r in own if plan.aliases.clobbered(MemoryLocation.of(r.view), plan.start_of(r.view.place), here) is None
    ]


def _may_stay(sink: StoreSink, reading: OperandRead) -> bool:
    """Whether an operand may be what is written over, element by element."""
    return not sink.fills and reading.allows(sink.target)


def write_with_overlap_check(plan: Plan, b: TensorBuilder, sink: StoreSink, emit: Callable[[TensorView], None]) -> None:
    """Write a sunk operation to its target, or, while that overlaps an operand, to a buffer that is copied there.

    Args:
        plan: The plan of the function.
        b: Where.
        sink: The operation and its target.
        emit: Writes the operation to a view. It is called twice where the result may be written over an operand that
            is read where it goes: only the one that writes there may rely on it.
    """
    doubts = [view for view in sink.doubts if not view.place.is_private]
    if not doubts:
        emit(sink.target)
        return
    target, size = sink.target, sink.range.size
    assert size is not None
    _remark(plan, sink, doubts, size)
    overlap = _emit_overlap_test(b, [MemoryLocation.of(view) for view in doubts], sink.range)
    buffer = plan.new_place(target.element, -(-size // bytes_of(target.element)), "apart")
    own = b.retype(buffer.pointer, target.element)
    theirs = b.retype(target.place.pointer, target.element)

    def copied() -> None:
        if sink.fills:
            copy_bytes(b, own, theirs, size)
        else:
            copy(b, replace(target, place=Storage(own)), target)

    if not sink.stays:
        emit(replace(target, place=Storage(b.select(overlap, own, theirs, "place"))))
        with _emit_if(b, overlap):
            copied()
        return
    with _emit_if(b, overlap) as otherwise:
        emit(replace(target, place=Storage(own)))
        copied()
        otherwise()
        emit(target)


def _remark(plan: Plan, sink: StoreSink, doubts: list[TensorView], size: int) -> None:
    from tlx.lower.to_2d.analysis.tensor_operations import STAGE

    operands = " and ".join(str(view.place.pointer) for view in doubts)
    message = (
        f"{sink.target.place.pointer} may alias {operands}: checked when the program runs; "
        f"a temporary of {size_text(size)} is used if they overlap"
    )
    plan.context.remarks.add("applied", STAGE, message, sink.store.span)


def _emit_overlap_test(b: TensorBuilder, operands: list[MemoryLocation], target: MemoryLocation) -> Value:
    """Whether any operand shares a byte with the target."""
    to, to_end = _bounds(b, target)
    found: list[Value] = []
    for operand in operands:
        start, end = _bounds(b, operand)
        found.append(b.binary("and", b.icmp("ult", start, to_end), b.icmp("ult", to, end), "overlap"))
    return reduce(lambda x, y: b.binary("or", x, y, "overlap"), found)


def _bounds(b: TensorBuilder, bytes_: MemoryLocation) -> tuple[Value, Value]:
    assert bytes_.size is not None
    start = b.cast("ptrtoint", bytes_.pointer, I64, "address")
    return start, b.add(start, bytes_.size, "end")


@contextmanager
def _emit_if(b: TensorBuilder, condition: Value) -> Generator[Callable[[], None]]:
    """What is built within runs if a condition holds; behind a call of what it gives, if the condition does not."""
    head = b.block
    tail = split_block(b.function, head, b.index, "apart")
    body = b.new_block("overlaps", head)

    def otherwise() -> None:
        nonlocal other
        b.branch(tail)
        other = b.new_block("in.place")
        b.at_end(other)

    other = tail
    b.at_end(body)
    yield otherwise
    b.branch(tail)
    b.at_end(head)
    b.branch_if(condition, body, other)
    b.block, b.index = tail, 0
