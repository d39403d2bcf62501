"""Phi elimination: a phi of a large flattened vector becomes a buffer that every incoming edge writes.

Rewrite::

    loop:
      %acc = phi <4096 x float> [ zeroinitializer, %entry ], [ %next, %loop ]
      %t = call token @llvm.tensor.typeinfo(<4096 x float> %acc, ...)
      %next = call <4096 x float> @llvm.tensor.smma(token %t, token %a, token %b)
    ->
    entry:
      call void @llvm.memset(ptr %acc.buf, ...)
    loop:                                             ; %next shares the buffer: smma works in place
      %acc.in = call token @llvm.tensor.load(ptr %acc.buf, ...)
      %sum = call <4096 x float> @llvm.tensor.smma(token %acc.in, token %a, token %b)
      ...
      call void @llvm.tensor.store(ptr %acc.buf, ...)

What a phi takes shares its buffer where that is safe (`memory.coalescing`). Otherwise the edge copies. Copies of one
edge happen at once: one that reads what another writes goes through a second buffer. Edges that leave a block with
several ways out get a block of their own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from tlx.diagnostics import LoweringError
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.instructions import Block, Instruction
from tlx.ir.parser.instructions import parse_instruction_text
from tlx.ir.transform.rewrite import set_operand
from tlx.ir.types import LABEL, VectorType, bytes_of
from tlx.ir.values import Keyword, Local, Value, is_undefined
from tlx.lower.memory.views import Storage
from tlx.lower.to_2d.memory.copies import copy_bytes, to_storage_type

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

_SPLITTABLE = frozenset({"br", "switch"})


def memory_phis(plan: Plan, block: Block) -> list[Instruction]:
    """The phis of a block that become buffers."""
    return [i for i in block.phis if plan.flats.kind(i.value) == "phi" and not plan.flats.is_renaming(i)]


def live_phis(plan: Plan, block: Block) -> list[Instruction]:
    """Those of them that something needs."""
    return [i for i in memory_phis(plan, block) if i.result in plan.live]


# Reads on edges ------------------------------------------------------------------------------------------------------


def record_edge_reads(plan: Plan) -> None:
    """Note that the end of each predecessor reads what a phi takes from it.

    Raises:
        LoweringError: An edge cannot get a block of its own.
    """
    for block in plan.function.blocks:
        for phi in live_phis(plan, block):
            for value, name in phi.incoming:
                predecessor = plan.flow.blocks[name]
                _check_edge(phi, predecessor)
                root = plan.flats.root(value)
                if root != phi.value and plan.flats.kind(root) not in ("register", "constant"):
                    plan.note_read(plan.place_of(root), (name, len(predecessor.instructions)))


def _check_edge(phi: Instruction, predecessor: Block) -> None:
    last = predecessor.terminator
    if len(set(last.targets)) > 1 and last.opcode not in _SPLITTABLE:
        message = f"a {phi.type} that is carried along such an edge of {last.opcode} is not lowered yet"
        raise LoweringError(message, phi.span)


# Copies on edges -----------------------------------------------------------------------------------------------------


def emit_edge_copies(plan: Plan, b: TensorBuilder) -> None:
    """Write the copies of every edge, then take the phis away."""
    function = plan.function
    blocks = {block.name: block for block in function.blocks}
    behind: dict[str, list[Block]] = {}
    for block in function.blocks:
        phis = memory_phis(plan, block)
        if not phis:
            continue
        split: dict[str, str] = {}
        for name, values in _incoming([phi for phi in phis if phi.result in plan.live]).items():
            predecessor = blocks[name]
            copies = _copies(plan, values)
            if copies and len(set(predecessor.terminator.targets)) > 1:
                predecessor = _split_edge(plan, predecessor, block)
                split[name] = predecessor.name
                behind.setdefault(name, []).insert(0, predecessor)
            b.block, b.index, b.debug = predecessor, len(predecessor.instructions) - 1, ""
            _emit_copies(plan, b, copies)
        dead = {id(phi) for phi in phis}
        block.instructions = [i for i in block.instructions if id(i) not in dead]
        if split:
            _redirect_phis(block, split)
    function.blocks = [block for old in function.blocks for block in (old, *behind.get(old.name, ()))]


def _incoming(phis: list[Instruction]) -> dict[str, list[tuple[Instruction, Value]]]:
    """What each of some phis takes from each predecessor."""
    found: dict[str, dict[str, tuple[Instruction, Value]]] = {}
    for phi in phis:
        for value, name in phi.incoming:
            found.setdefault(name, {}).setdefault(str(phi.result), (phi, value))
    return {name: list(values.values()) for name, values in found.items()}


def _copies(plan: Plan, values: list[tuple[Instruction, Value]]) -> list[_Copy]:
    """The copies of one edge, on which phis take values."""
    found: list[_Copy] = []
    for phi, value in values:
        root = plan.flats.root(value)
        target = plan.place_of(phi.value)
        if plan.flats.kind(root) == "register":
            found.append(_Copy(target, value, _source(plan, value)))
        elif not is_undefined(root) and (isinstance(root, Keyword) or plan.place_of(root) is not target):
            found.append(_Copy(target, root, _source(plan, root)))
    return found


@dataclass
class _Copy:
    """One of the copies of an edge: `value`, which lies at `source` if it is no register or constant, to `target`."""

    target: Storage
    value: Value
    source: Storage | None


def _source(plan: Plan, value: Value) -> Storage | None:
    return None if plan.flats.kind(value) in ("register", "constant") else plan.place_of(value)


def _emit_copies(plan: Plan, b: TensorBuilder, copies: list[_Copy]) -> None:
    """Copies that happen at once, in an order in which none overwrites what another still reads."""
    readers = Counter(copy.source for copy in copies if copy.source is not None)
    onto = {copy.target: number for number, copy in enumerate(copies)}
    free = [number for number, copy in enumerate(copies) if not readers[copy.target]]
    pending = dict.fromkeys(range(len(copies)))
    while pending:
        if not free:  # a cycle
            copy = copies[next(iter(pending))]
            freed, copy.source = copy.source, _save_source(plan, b, copy)
        else:
            number = heappop(free)
            del pending[number]
            _emit_copy(plan, b, copies[number])
            freed = copies[number].source
        if freed is not None and freed in readers:
            readers[freed] -= 1
            if not readers[freed] and freed in onto:
                heappush(free, onto[freed])


def _save_source(plan: Plan, b: TensorBuilder, copy: _Copy) -> Storage:
    type_ = copy.value.type
    assert isinstance(type_, VectorType)
    assert copy.source is not None
    place = plan.new_place(type_.element, type_.count, "swap")
    copy_bytes(b, copy.source.pointer, place.pointer, _bytes(place))
    return place


def _emit_copy(plan: Plan, b: TensorBuilder, copy: _Copy) -> None:
    target = copy.target
    if copy.source is not None:
        copy_bytes(b, copy.source.pointer, target.pointer, _bytes(target))
    elif isinstance(copy.value, Keyword):
        b.memset(target.pointer, 0, _bytes(target))
    elif plan.flats.kind(copy.value) == "constant":
        copy_bytes(b, plan.place_of(copy.value).pointer, target.pointer, _bytes(target))
    else:
        assert target.buffer is not None
        b.store(to_storage_type(b, copy.value), target.pointer, target.buffer.align)


def _bytes(place: Storage) -> int:
    assert place.buffer is not None
    return place.buffer.count * bytes_of(place.buffer.element)


def _split_edge(plan: Plan, predecessor: Block, block: Block) -> Block:
    """A new block on the way from a block with other ways out."""
    name = plan.function.names.fresh(f"{block.name}.edge" if not block.name.isdecimal() else "edge")
    middle = Block(name, f"\n\n{name}:")
    TensorBuilder(plan.module, plan.function, middle).branch(block)
    last = predecessor.terminator
    for index, operand in enumerate(last.operands):
        if isinstance(operand, Local) and operand == block.value:
            set_operand(last, index, middle.value)
    return middle


def _redirect_phis(block: Block, split: dict[str, str]) -> None:
    """Have the other phis of a block name those that edges come from now, by the blocks they came from before.

    Several cases of a `switch` come on one edge now: one entry is left of theirs.
    """
    for phi in block.phis:
        pairs = phi.incoming
        seen: set[str] = set()
        kept: list[tuple[Value, str]] = []
        for value, name in pairs:
            if name not in split:
                kept.append((value, name))
            elif name not in seen:
                seen.add(name)
                kept.append((value, split[name]))
        spans = phi.spans or parse_instruction_text(phi.text).spans or []
        start, end = phi.text.rindex("[", 0, spans[0][0]), phi.text.index("]", spans[-1][1]) + 1
        ways = ", ".join(f"[ {value}, %{name} ]" for value, name in kept)
        phi.text = phi.text[:start] + ways + phi.text[end:]
        phi.operands = [operand for value, name in kept for operand in (value, Local(LABEL, name))]
        phi.spans = None
