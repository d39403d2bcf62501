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
    %destination = select i1 %overlap, ptr %temporary.buf, ptr %c
    ... the product, written to %destination
    br i1 %overlap, label %overlaps, label %overlap.end
  overlaps:
    ... %temporary.buf copied to %c

Where `%c` is read as well (`%c = %a @ %b + %c`), there are two products, one into the buffer and one in place::

    br i1 %overlap, label %overlaps, label %in.place

Rewrite of a concatenation whose operands nothing else reads, and which overlaps no memory that they read::

    %a = fmul <16 x float> %x, %x                          nothing
    %b = fadd <8 x float> %y, %y                           nothing
    %u = concat(%a, %b)                              ->    nothing
    store %u, ptr %c                                       the map, written to %c, and the other one, to %c + 16
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from tlx.diagnostics import size_text
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.rewrite import only_user, split_block
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import I64, PointerType, Type, bytes_of
from tlx.ir.values import Local, Value
from tlx.lower.memory.aliases import MemoryLocation, quoted_instruction
from tlx.lower.memory.views import Storage, TensorView, has_dense_rows, reshaped_strides, storage_type, tensor_bytes
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.reads import OperandRead, operand_reads
from tlx.lower.to_2d.analysis.tensor_operations import STAGE, operation_title
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.fusion import is_product
from tlx.lower.to_2d.memory.copies import copy, copy_bytes
from tlx.lower.to_2d.memory.derived_views import PERMUTATIONS, Part, has_elements_of, place_in, unpermuted_view
from tlx.lower.to_2d.memory.operand_views import OperandViews
from tlx.lower.to_2d.memory.schedule import SunkStore, SunkStores


def sink_stores(operands: OperandViews, live: AbstractSet[str], remarks: Remarks) -> SunkStores:
    """The operations that can run where their result is stored; remarks explain why others cannot.

    Args:
        operands: The operands of all operations.
        live: Names of the results that are needed in memory.
        remarks: Receives the remarks.
    """
    by_store, by_op, explained = dict[int, SunkStore](), dict[int, SunkStore](), set[int]()
    buffered = live - operands.views
    permuted: set[str] = set()
    for op in operands.facts.tensors.ops:
        name = str(op.instruction.result)
        is_candidate = op.result is not None and name in buffered and name not in permuted
        sunk = _only_store(operands, op) if is_candidate else None
        if sunk is None:
            continue
        checked = _with_overlap_checks(operands, sunk)
        if isinstance(checked, SunkStore):
            by_store[id(checked.store)] = by_op[id(op.instruction)] = checked
            permuted |= {str(permute.instruction.result) for permute in checked.permutations}
        else:
            explained.add(id(op.instruction))
            remark_temporary(remarks, op, checked)
    parts: dict[int, Part] = {}
    for store, sunk in by_store.items():
        if not sunk.possible_overlaps:
            by_store[store] = _with_parts(operands, sunk, sunk.range, buffered - permuted, parts)
            by_op |= dict(_by_op(by_store[store]))
    return SunkStores(by_store, by_op, explained, permuted, parts)


def _by_op(sunk: SunkStore) -> Iterator[tuple[int, SunkStore]]:
    yield id(sunk.op.instruction), sunk
    for part in sunk.parts:
        yield from _by_op(part)


def _with_parts(
    operands: OperandViews, sunk: SunkStore, stored: MemoryLocation, buffered: AbstractSet[str], parts: dict[int, Part]
) -> SunkStore:
    """The store of a concatenation with the operands that can be computed there, too.

    Args:
        operands: The operands of all operations.
        sunk: The store, or the part of a store.
        stored: The bytes that the whole store writes: other parts of it may be written before an operand is read.
        buffered: Names of the results that need memory.
        parts: Receives the operands.
    """
    if sunk.op.intrinsic.name != "concat" or sunk.writes_padding:
        return sunk
    found: list[SunkStore] = []
    for number, tensor in enumerate(sunk.op.tensors):
        op = _only_operand(operands, sunk.op, tensor)
        if op is None or str(op.instruction.result) not in buffered or id(op.instruction) in parts:
            continue
        part = Part(op, sunk.op, number)
        place = place_in(sunk.destination, part)
        if place is None or not (is_product(operands.groups, op) or has_dense_rows(place.dims)):
            continue
        candidate = SunkStore(op, sunk.store, place, writes_padding=False)
        reads = _read_in_place(operands.facts, op, operand_reads(operands, op))
        is_apart = all(operands.facts.aliases.disjoint(MemoryLocation.of(read.view), stored) for read in reads)
        if is_apart and _obstacle(operands.facts, candidate, reads) is None:
            parts[id(op.instruction)] = replace(part, sunk=place)
            found.append(_with_parts(operands, candidate, stored, buffered, parts))
    return replace(sunk, parts=tuple(found))


def _only_operand(operands: OperandViews, whole: TensorOp, tensor: Tensor) -> TensorOp | None:
    """The operation in the same block whose result only one operand of a concatenation reads; None if there is none."""
    facts = operands.facts
    root = facts.vectors.root(tensor.source) if tensor.kind == "value" else None
    if not isinstance(root, Local) or facts.vectors.kind(root) != "op":
        return None
    op, block = facts.op_of(root), facts.positions[id(whole.instruction)][0]
    user = only_user(facts.vectors.uses, op.instruction, block)
    if user is None or user is not tensor.definition or facts.positions[id(op.instruction)][0] != block:
        return None
    is_alone = only_user(facts.vectors.uses, user, block) is whole.instruction
    fits = op.result is not None and not op.result.is_padded and has_elements_of(tensor.type, op.result)
    return op if is_alone and fits else None


def remark_temporary(remarks: Remarks, op: TensorOp, reason: str) -> None:
    """Add a remark that says why the result of an operation needs a temporary."""
    assert op.result is not None
    message = f"temporary of {size_text(tensor_bytes(op.result))} for {operation_title(op)}, because {reason}"
    remarks.add("missed", STAGE, message, op.instruction.span)


def _with_overlap_checks(operands: OperandViews, sunk: SunkStore) -> SunkStore | str:
    """The sunk store with the overlaps to check at run time, or the reason why the operation cannot be sunk."""
    facts = operands.facts
    reads = operand_reads(operands, sunk.op)
    in_place = _read_in_place(facts, sunk.op, reads)
    reason = _obstacle(facts, sunk, in_place)
    if reason is not None:
        return reason
    overlaps = _possible_overlaps(facts, sunk, in_place)
    if not overlaps:
        return sunk
    if not _is_default_space(sunk.destination.storage.pointer.type):
        return "an overlap can be checked at run time only for pointers of the default address space"
    overwritten = any(read.may_be_overwritten_by(sunk.destination) for read in reads)
    return replace(sunk, possible_overlaps=overlaps, in_place=overwritten)


def _only_store(operands: OperandViews, op: TensorOp) -> SunkStore | None:
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
        return SunkStore(op, user, TensorView.of(Storage(user.operands[1]), op.result), op.result.is_padded)
    reader = only_user(facts.vectors.uses, user, block)
    use = facts.tensors.op_of(reader) if reader is not None else None
    if use is None:
        return None
    if use.pointer is None:
        return _store_of_permutation(operands, op, token, use)
    destination = _sunk_view(op.result, token.type, Storage(use.pointer), use.pitches)
    return None if destination is None else SunkStore(op, use.instruction, destination, writes_padding=False)


def _store_of_permutation(operands: OperandViews, op: TensorOp, token: Tensor, permute: TensorOp) -> SunkStore | None:
    """The store of a permuted result, if that is the only use: the result is written with permuted strides."""
    type_, result = op.result, permute.result
    if permute.intrinsic.name not in PERMUTATIONS or type_ is None or result is None:
        return None
    if type_.is_padded or result.is_padded or token.type.is_padded or token.type.shape != type_.shape:
        return None
    sunk = _only_store(operands, permute)
    destination = unpermuted_view(sunk.destination, permute) if sunk is not None else None
    if sunk is None or destination is None:
        return None
    if not is_product(operands.groups, op) and not has_dense_rows(destination.dims):
        return None
    destination = destination.reordered(token.type.layout, type_)
    return replace(sunk, op=op, destination=destination, permutations=(*sunk.permutations, permute))


def _sunk_view(
    result: TensorType, stored: TensorType, place: Storage, pitches: Sequence[int] | None
) -> TensorView | None:
    """The memory that a result is stored to as a tensor of another type, as a view of the result's shape."""
    if (stored.shape, stored.padding) == (result.shape, result.padding):
        return TensorView.of(place, result, pitches)
    if stored.is_padded or result.is_padded:
        return None
    steps = reshaped_strides(stored.shape, stored.strides(pitches), result.shape)
    if steps is None:
        return None
    return TensorView(place, storage_type(result.element), result.shape, result.shape, steps, result.layout)


def _obstacle(facts: Facts, sunk: SunkStore, read: Sequence[OperandRead]) -> str | None:
    """Why an operation cannot run where its result is stored, or cannot write there; None if it can."""
    here, there = facts.positions[id(sunk.op.instruction)], facts.positions[id(sunk.store)]
    for reading in read:
        writer = facts.aliases.clobbering_instruction(MemoryLocation.of(reading.view), here, there)
        if writer is not None:
            return f"'{quoted_instruction(writer)}' may change an operand before the result is stored"
        if reading.view.storage.pointer == sunk.destination.storage.pointer and not _may_overwrite(sunk, reading):
            return f"{sunk.destination.storage.pointer} is read as well"
    return None


def _is_default_space(pointer: Type) -> bool:
    return isinstance(pointer, PointerType) and not pointer.addrspace


def _possible_overlaps(facts: Facts, sunk: SunkStore, read: Sequence[OperandRead]) -> tuple[TensorView, ...]:
    """The operands that may overlap the destination."""
    views = [reading.view for reading in read if not _may_overwrite(sunk, reading)]
    overlapping = [v for v in views if not facts.aliases.disjoint(MemoryLocation.of(v), sunk.range)]
    return tuple({MemoryLocation.of(v): v for v in overlapping}.values())


def _read_in_place(facts: Facts, op: TensorOp, readings: Sequence[OperandRead]) -> list[OperandRead]:
    """The reads of user memory that is unchanged since its load, so that no snapshot is needed."""
    here = facts.positions[id(op.instruction)]
    in_place: list[OperandRead] = []
    for read in readings:
        load, location = read.view.storage.load, MemoryLocation.of(read.view)
        if load is not None and facts.aliases.clobbering_instruction(location, facts.positions[id(load)], here) is None:
            in_place.append(read)
    return in_place


def _may_overwrite(sunk: SunkStore, reading: OperandRead) -> bool:
    """Whether the result may overwrite an operand, element by element."""
    return not sunk.writes_padding and reading.may_be_overwritten_by(sunk.destination)


def write_with_overlap_check(
    context: EmitContext, b: TensorBuilder, sunk: SunkStore, emit: Callable[[TensorView], None]
) -> None:
    """Write a sunk operation to its destination, through a temporary if that overlaps an operand at run time.

    Args:
        context: Temporaries and remarks.
        b: The builder.
        sunk: The operation and its destination.
        emit: Writes the operation to a view. It is called twice if the result may overwrite an operand in place, once
            with a temporary and once with the destination.
    """
    if not sunk.possible_overlaps:
        emit(sunk.destination)
        return
    destination, size = sunk.destination, sunk.range.size
    assert size is not None
    _remark_overlap_check(context.remarks, sunk, size)
    overlap = _emit_overlap_test(b, [MemoryLocation.of(view) for view in sunk.possible_overlaps], sunk.range)
    buffer = context.allocate(destination.element, -(-size // bytes_of(destination.element)), "temporary")
    temporary = b.retype(buffer.pointer, destination.element)
    address = b.retype(destination.storage.pointer, destination.element)

    def copy_to_destination() -> None:
        if sunk.writes_padding:
            copy_bytes(b, temporary, address, size)
        else:
            copy(b, replace(destination, storage=Storage(temporary)), destination)

    if not sunk.in_place:
        emit(replace(destination, storage=Storage(b.select(overlap, temporary, address, "destination"))))
        with _emit_if(b, overlap):
            copy_to_destination()
        return
    with _emit_if(b, overlap) as otherwise:
        emit(replace(destination, storage=Storage(temporary)))
        copy_to_destination()
        otherwise()
        emit(destination)


def _remark_overlap_check(remarks: Remarks, sunk: SunkStore, size: int) -> None:
    operands = " and ".join(str(view.storage.pointer) for view in sunk.possible_overlaps)
    message = (
        f"{sunk.destination.storage.pointer} may alias {operands}: checked at run time; "
        f"a temporary of {size_text(size)} is used if they overlap"
    )
    remarks.add("applied", STAGE, message, sunk.store.span)


def _emit_overlap_test(b: TensorBuilder, operands: list[MemoryLocation], destination: MemoryLocation) -> Value:
    """Whether any operand shares a byte with the destination."""
    to, to_end = _bounds(b, destination)
    overlaps: list[Value] = []
    for operand in operands:
        start, end = _bounds(b, operand)
        overlaps.append(b.binary("and", b.icmp("ult", start, to_end), b.icmp("ult", to, end), "overlap"))
    return reduce(lambda x, y: b.binary("or", x, y, "overlap"), overlaps)


def _bounds(b: TensorBuilder, bytes_: MemoryLocation) -> tuple[Value, Value]:
    assert bytes_.size is not None
    start = b.cast("ptrtoint", bytes_.pointer, I64, "address")
    return start, b.add(start, bytes_.size, "end")


@contextmanager
def _emit_if(b: TensorBuilder, condition: Value) -> Generator[Callable[[], None]]:
    """Emit a branch: the body runs if a condition holds; code after a call of the yielded function, if it does not."""
    head = b.block
    tail = split_block(b.function, head, b.index, "overlap.end")
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
