"""Store sinking: an operation runs where its result is stored and writes there, so that no temporary is needed.

Rewrite::

    %m = call <E x T> @llvm.tensor.matmul(token %a, token %b)        nothing
    ...                                                       ->     ...
    store <E x T> %m, ptr %c                                         the product, written to %c

The store must be the only use, in the same block; operands must not change before the store, and must not overlap the
destination. An accumulator may be the destination itself. Possible overlaps are checked at run time.

Rewrite of a product `%c = %a @ %b` where `%c` may overlap `%a`::

    %from = ptrtoint ptr %a to i64                    %to = ptrtoint ptr %c to i64
    %overlap = and i1 (%from < %to + size of C), (%to < %from + size of A)
    %place = select i1 %overlap, ptr %apart.buf, ptr %c
    ... the product, written to %place
    br i1 %overlap, label %overlaps, label %apart
  overlaps:
    ... %apart.buf copied to %c

Where `%c` is read as well (`%c = %a @ %b + %c`), there are two products, one into the buffer and one in place::

    br i1 %overlap, label %overlaps, label %in.place
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.transform.rewrite import only_user, split_block
from tlx.ir.types import I64, PointerType, Type, bytes_of
from tlx.ir.values import Value
from tlx.lower.memory.aliases import MemoryLocation, quoted_instruction
from tlx.lower.memory.buffers import size_text
from tlx.lower.memory.views import Storage, TensorView, reshaped_strides, storage_type, tensor_bytes
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.reads import OperandRead, operand_reads
from tlx.lower.to_2d.analysis.tensor_operations import PRODUCTS, STAGE, operation_title
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.fusion.groups import OperandViews, StoreSink, StoreSinks
from tlx.lower.to_2d.memory.copies import copy, copy_bytes


def find_sinks(operands: OperandViews, live: AbstractSet[str], remarks: Remarks) -> StoreSinks:
    """The operations that can run where their result is stored; remarks explain why others cannot.

    Args:
        operands: What operations read.
        live: Names of the results that are needed in memory.
        remarks: Where remarks go.
    """
    by_store, by_op, explained = dict[int, StoreSink](), dict[int, StoreSink](), set[int]()
    stored = live - operands.views
    for op in operands.facts.tensors.ops:
        name = str(op.instruction.result)
        sink = _only_store(operands, op) if op.result is not None and name in stored else None
        if sink is None:
            continue
        found = _checked(operands, sink)
        if isinstance(found, StoreSink):
            by_store[id(found.store)] = by_op[id(op.instruction)] = found
        else:
            explained.add(id(op.instruction))
            remark_temporary(remarks, op, found)
    return StoreSinks(by_store, by_op, explained)


def remark_temporary(remarks: Remarks, op: TensorOp, reason: str) -> None:
    """Add a remark that says why the result of an operation needs a temporary."""
    assert op.result is not None
    message = f"temporary of {size_text(tensor_bytes(op.result))} for {operation_title(op)}, because {reason}"
    remarks.add("missed", STAGE, message, op.instruction.span)


def _checked(operands: OperandViews, sink: StoreSink) -> StoreSink | str:
    """A sink with the overlaps that have to be checked at run time, or the reason why it is impossible."""
    facts = operands.facts
    reads = operand_reads(operands, sink.op)
    in_place = _read_in_place(facts, sink.op, reads)
    reason = _obstacle(facts, sink, in_place)
    if reason is not None:
        return reason
    overlaps = _possible_overlaps(facts, sink, in_place)
    if not overlaps:
        return sink
    if not _is_default(sink.target.storage.pointer.type):
        return "an overlap can be checked at run time only for pointers of the default address space"
    overwritten = any(read.may_be_overwritten_by(sink.target) for read in reads)
    return replace(sink, possible_overlaps=overlaps, in_place=overwritten)


def _only_store(operands: OperandViews, op: TensorOp) -> StoreSink | None:
    """The store that is the only use of a result, if it is in the operation's block and of the same shape."""
    assert op.result is not None
    facts = operands.facts
    block = facts.positions[id(op.instruction)][0]
    user = only_user(facts.vectors.uses, op.instruction, block)
    if user is None:
        return None
    token = facts.tensors.tokens.get(user.result or "")
    if token is None:
        if not facts.vectors.is_memory_store(user):
            return None
        return StoreSink(op, user, TensorView.of(Storage(user.operands[1]), op.result), op.result.is_padded)
    reader = only_user(facts.vectors.uses, user, block)
    used = facts.tensors.op_of(reader) if reader is not None else None
    if used is None:
        return None
    if used.pointer is None:
        return _behind_transpose(operands, op, token, used)
    target = _sunk_view(op.result, token.type, Storage(used.pointer), used.pitches)
    return None if target is None else StoreSink(op, used.instruction, target, writes_padding=False)


def _behind_transpose(operands: OperandViews, op: TensorOp, seen: Tensor, transpose: TensorOp) -> StoreSink | None:
    """The store of a product's transpose, if that is the only use: the product is written with permuted strides."""
    type_, result = op.result, transpose.result
    is_product = op.intrinsic.name in PRODUCTS or operands.groups.product_of(op) is not None
    if (
        str(transpose.instruction.result) not in operands.views
        or transpose.intrinsic.name != "transpose"
        or not is_product
    ):
        return None
    if type_ is None or result is None or type_.is_padded or result.is_padded or seen.type.shape != type_.shape:
        return None
    sink = _only_store(operands, transpose)
    if sink is None:
        return None
    steps = [0] * type_.rank
    for dimension, step in zip(result.layout, sink.target.strides, strict=True):
        steps[seen.type.position(dimension)] = step
    target = TensorView(
        sink.target.storage, storage_type(type_.element), type_.shape, type_.shape, tuple(steps), type_.layout
    )
    return StoreSink(op, sink.store, target, writes_padding=False)


def _sunk_view(
    result: TensorType, seen: TensorType, place: Storage, pitches: Sequence[int] | None
) -> TensorView | None:
    """The memory that a result is stored to as a tensor of another type, as a view of the result's shape."""
    if (seen.shape, seen.padding) == (result.shape, result.padding):
        return TensorView.of(place, result, pitches)
    if seen.is_padded or result.is_padded:
        return None
    steps = reshaped_strides(seen.shape, seen.strides(pitches), result.shape)
    if steps is None:
        return None
    return TensorView(place, storage_type(result.element), result.shape, result.shape, steps, result.layout)


def _obstacle(facts: Facts, sink: StoreSink, read: Sequence[OperandRead]) -> str | None:
    """Why an operation cannot run where its result is stored, or cannot write there; None if it can."""
    here, there = facts.positions[id(sink.op.instruction)], facts.positions[id(sink.store)]
    for reading in read:
        writer = facts.aliases.clobbering_instruction(MemoryLocation.of(reading.view), here, there)
        if writer is not None:
            return f"'{quoted_instruction(writer)}' may change an operand before the result is stored"
        if reading.view.storage.pointer == sink.target.storage.pointer and not _may_stay(sink, reading):
            return f"{sink.target.storage.pointer} is read as well"
    return None


def _is_default(pointer: Type) -> bool:
    return isinstance(pointer, PointerType) and not pointer.addrspace


def _possible_overlaps(facts: Facts, sink: StoreSink, read: Sequence[OperandRead]) -> tuple[TensorView, ...]:
    """The operands that may overlap the destination."""
    views = [reading.view for reading in read if not _may_stay(sink, reading)]
    overlapping = [v for v in views if not facts.aliases.disjoint(MemoryLocation.of(v), sink.range)]
    return tuple({MemoryLocation.of(v): v for v in overlapping}.values())


def _read_in_place(facts: Facts, op: TensorOp, readings: Sequence[OperandRead]) -> list[OperandRead]:
    """The reads of user memory that needs no snapshot when it is loaded."""
    here = facts.positions[id(op.instruction)]
    found: list[OperandRead] = []
    for read in readings:
        load, location = read.view.storage.load, MemoryLocation.of(read.view)
        if load is not None and facts.aliases.clobbering_instruction(location, facts.positions[id(load)], here) is None:
            found.append(read)
    return found


def _may_stay(sink: StoreSink, reading: OperandRead) -> bool:
    """Whether the result may overwrite an operand, element by element."""
    return not sink.writes_padding and reading.may_be_overwritten_by(sink.target)


def write_with_overlap_check(
    context: EmitContext, b: TensorBuilder, sink: StoreSink, emit: Callable[[TensorView], None]
) -> None:
    """Write a sunk operation to its target, through a temporary if the target overlaps an operand at run time.

    Args:
        context: Temporaries and remarks.
        b: The builder.
        sink: The operation and its target.
        emit: Writes the operation to a view. It is called twice if the result may overwrite an operand in place, once
            with a temporary and once with the target.
    """
    if not sink.possible_overlaps:
        emit(sink.target)
        return
    target, size = sink.target, sink.range.size
    assert size is not None
    _remark(context.remarks, sink, size)
    overlap = _emit_overlap_test(b, [MemoryLocation.of(view) for view in sink.possible_overlaps], sink.range)
    buffer = context.allocate(target.element, -(-size // bytes_of(target.element)), "apart")
    own = b.retype(buffer.pointer, target.element)
    theirs = b.retype(target.storage.pointer, target.element)

    def copied() -> None:
        if sink.writes_padding:
            copy_bytes(b, own, theirs, size)
        else:
            copy(b, replace(target, storage=Storage(own)), target)

    if not sink.in_place:
        emit(replace(target, storage=Storage(b.select(overlap, own, theirs, "place"))))
        with _emit_if(b, overlap):
            copied()
        return
    with _emit_if(b, overlap) as otherwise:
        emit(replace(target, storage=Storage(own)))
        copied()
        otherwise()
        emit(target)


def _remark(remarks: Remarks, sink: StoreSink, size: int) -> None:
    operands = " and ".join(str(view.storage.pointer) for view in sink.possible_overlaps)
    message = (
        f"{sink.target.storage.pointer} may alias {operands}: checked at run time; "
        f"a temporary of {size_text(size)} is used if they overlap"
    )
    remarks.add("applied", STAGE, message, sink.store.span)


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
    """Emit a branch: code within runs if a condition holds, code after a call of the result if it does not."""
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
