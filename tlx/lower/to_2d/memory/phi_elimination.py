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

An incoming value shares the phi's buffer where that is safe (`memory.coalescing`); otherwise it is copied on its edge.
The copies of an edge are parallel: a cycle of them is broken by a second buffer. Critical edges are split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import heappop, heappush

from tlx.diagnostics import LoweringError
from tlx.ir.instructions import Block, Instruction
from tlx.ir.parser.instructions import parse_instruction_text
from tlx.ir.rewrite import set_operand
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import LABEL, Type, VectorType, bytes_of
from tlx.ir.values import Keyword, Local, Value, is_undefined
from tlx.lower.memory.aliases import Position
from tlx.lower.memory.views import Storage
from tlx.lower.to_2d.analysis.facts import Facts, FlatVectors
from tlx.lower.to_2d.memory.copies import copy_bytes, to_storage_type
from tlx.lower.to_2d.memory.operand_views import OperandViews

_SPLITTABLE = frozenset({"br", "switch"})


def memory_phis(vectors: FlatVectors, block: Block) -> list[Instruction]:
    """The phis of a block that become buffers."""
    return [i for i in block.phis if vectors.kind(i.value) == "phi" and not vectors.is_renaming(i)]


def live_phis(vectors: FlatVectors, live: AbstractSet[str], block: Block) -> list[Instruction]:
    """The live phis of a block that become buffers."""
    return [i for i in memory_phis(vectors, block) if i.result in live]


# Reads on edges ------------------------------------------------------------------------------------------------------


def edge_reads(facts: Facts, live: AbstractSet[str]) -> Iterator[tuple[Value, Position]]:
    """The incoming vectors of phis, each with the position where it is read: the end of the predecessor.

    Raises:
        LoweringError: A critical edge cannot be split.
    """
    vectors = facts.vectors
    for block in facts.function.blocks:
        for phi in live_phis(vectors, live, block):
            for value, name in phi.incoming:
                predecessor = facts.flow.blocks[name]
                _check_edge(phi, predecessor)
                root = vectors.root(value)
                if root != phi.value and vectors.kind(root) not in ("register", "constant"):
                    yield root, (name, len(predecessor.instructions))


def _check_edge(phi: Instruction, predecessor: Block) -> None:
    last = predecessor.terminator
    if len(set(last.successors)) > 1 and last.opcode not in _SPLITTABLE:
        message = f"a phi of {phi.type} at a critical edge of {last.opcode} is not lowered yet"
        raise LoweringError(message, phi.span)


# Copies on edges -----------------------------------------------------------------------------------------------------


def emit_edge_copies(
    operands: OperandViews, live: AbstractSet[str], allocate: Callable[[Type, int, str], Storage], b: TensorBuilder
) -> None:
    """Write the copies of every edge and remove the phis.

    Args:
        operands: The memory of vectors.
        live: Names of the live phis.
        allocate: Reserves a buffer, to break a cycle of copies.
        b: The builder.
    """
    function = b.function
    blocks = {block.name: block for block in function.blocks}
    edge_blocks: dict[str, list[Block]] = {}
    for block in function.blocks:
        phis = memory_phis(operands.facts.vectors, block)
        if not phis:
            continue
        split: dict[str, str] = {}
        for name, values in _incoming([phi for phi in phis if phi.result in live]).items():
            predecessor = blocks[name]
            copies = _copies(operands, values)
            if copies and len(set(predecessor.terminator.successors)) > 1:
                predecessor = _split_edge(b, predecessor, block)
                split[name] = predecessor.name
                edge_blocks.setdefault(name, []).insert(0, predecessor)
            b.block, b.index, b.debug = predecessor, len(predecessor.instructions) - 1, ""
            _emit_copies(operands, allocate, b, copies)
        dead = {id(phi) for phi in phis}
        block.instructions = [i for i in block.instructions if id(i) not in dead]
        if split:
            _redirect_phis(block, split)
    function.blocks = [block for old in function.blocks for block in (old, *edge_blocks.get(old.name, ()))]


def _incoming(phis: list[Instruction]) -> dict[str, list[tuple[Instruction, Value]]]:
    """The incoming value of each phi from each predecessor."""
    incoming: dict[str, dict[str, tuple[Instruction, Value]]] = {}
    for phi in phis:
        for value, name in phi.incoming:
            incoming.setdefault(name, {}).setdefault(str(phi.result), (phi, value))
    return {name: list(values.values()) for name, values in incoming.items()}


def _copies(operands: OperandViews, values: list[tuple[Instruction, Value]]) -> list[_PhiCopy]:
    """The copies of one edge to a block with phis."""
    copies: list[_PhiCopy] = []
    for phi, value in values:
        root = operands.facts.vectors.root(value)
        destination = operands.storage_of(phi.value)
        if operands.facts.vectors.kind(root) == "register":
            copies.append(_PhiCopy(destination, value, _source(operands, value)))
        elif not is_undefined(root) and (isinstance(root, Keyword) or operands.storage_of(root) is not destination):
            copies.append(_PhiCopy(destination, root, _source(operands, root)))
    return copies


@dataclass
class _PhiCopy:
    """A copy of `value` to `destination` on an edge; `source` is its memory, None for registers and constants."""

    destination: Storage
    value: Value
    source: Storage | None


def _source(operands: OperandViews, value: Value) -> Storage | None:
    return None if operands.facts.vectors.kind(value) in ("register", "constant") else operands.storage_of(value)


def _emit_copies(
    operands: OperandViews, allocate: Callable[[Type, int, str], Storage], b: TensorBuilder, copies: list[_PhiCopy]
) -> None:
    """Emit parallel copies in an order in which no copy overwrites the source of a later one."""
    readers = Counter(copy.source for copy in copies if copy.source is not None)
    writer_of = {copy.destination: number for number, copy in enumerate(copies)}
    free = [number for number, copy in enumerate(copies) if not readers[copy.destination]]
    pending = dict.fromkeys(range(len(copies)))
    while pending:
        if not free:  # a cycle
            copy = copies[next(iter(pending))]
            freed, copy.source = copy.source, _save_source(allocate, b, copy)
        else:
            number = heappop(free)
            del pending[number]
            _emit_copy(operands, b, copies[number])
            freed = copies[number].source
        if freed is not None and freed in readers:
            readers[freed] -= 1
            if not readers[freed] and freed in writer_of:
                heappush(free, writer_of[freed])


def _save_source(allocate: Callable[[Type, int, str], Storage], b: TensorBuilder, copy: _PhiCopy) -> Storage:
    type_ = copy.value.type
    assert isinstance(type_, VectorType)
    assert copy.source is not None
    place = allocate(type_.element, type_.count, "swap")
    copy_bytes(b, copy.source.pointer, place.pointer, _bytes(place))
    return place


def _emit_copy(operands: OperandViews, b: TensorBuilder, copy: _PhiCopy) -> None:
    destination = copy.destination
    if copy.source is not None:
        copy_bytes(b, copy.source.pointer, destination.pointer, _bytes(destination))
    elif isinstance(copy.value, Keyword):
        b.memset(destination.pointer, 0, _bytes(destination))
    elif operands.facts.vectors.kind(copy.value) == "constant":
        copy_bytes(b, operands.storage_of(copy.value).pointer, destination.pointer, _bytes(destination))
    else:
        assert destination.buffer is not None
        b.store(to_storage_type(b, copy.value), destination.pointer, destination.buffer.align)


def _bytes(place: Storage) -> int:
    assert place.buffer is not None
    return place.buffer.count * bytes_of(place.buffer.element)


def _split_edge(b: TensorBuilder, predecessor: Block, block: Block) -> Block:
    """A new block on a critical edge."""
    name = b.function.names.fresh(f"{block.name}.edge" if not block.name.isdecimal() else "edge")
    middle = Block(name, f"\n\n{name}:")
    TensorBuilder(b.module, b.function, middle).branch(block)
    last = predecessor.terminator
    for index, operand in enumerate(last.operands):
        if isinstance(operand, Local) and operand == block.value:
            set_operand(last, index, middle.value)
    return middle


def _redirect_phis(block: Block, split: dict[str, str]) -> None:
    """Update the other phis of a block; `split` has the new predecessor for each original one.

    Several cases of a `switch` that lead to the block share the new edge: the phi has one entry for all of them.
    """
    for phi in block.phis:
        pairs = phi.incoming
        seen: set[str] = set()
        entries: list[tuple[Value, str]] = []
        for value, name in pairs:
            if name not in split:
                entries.append((value, name))
            elif name not in seen:
                seen.add(name)
                entries.append((value, split[name]))
        spans = phi.spans or parse_instruction_text(phi.text).spans or []
        start, end = phi.text.rindex("[", 0, spans[0][0]), phi.text.index("]", spans[-1][1]) + 1
        incoming = ", ".join(f"[ {value}, %{name} ]" for value, name in entries)
        phi.text = phi.text[:start] + incoming + phi.text[end:]
        phi.operands = [operand for value, name in entries for operand in (value, Local(LABEL, name))]
        phi.spans = None
