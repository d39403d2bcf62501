"""Loop-carried tensors: a phi of a large flattened vector becomes a buffer that every incoming edge writes.

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

What a phi takes shares its buffer where that is safe (`coalescing`). Otherwise the edge copies. Copies of one edge
happen at once: one that reads what another writes goes through a second buffer. Edges that leave a block with several
ways out get a block of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tlx.diagnostics import LoweringError
from tlx.ir.module import Block, Instruction
from tlx.ir.rewriter import rename_incoming, set_operand
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import LABEL, VectorType, bytes_of
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.to_2d.copies import as_stored, copy_bytes
from tlx.lower.to_2d.views import Place

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


def note_edges(plan: Plan) -> None:
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


def emit_edges(plan: Plan, b: TensorBuilder) -> None:
    """Write the copies of every edge, then take the phis away."""
    for block in list(plan.function.blocks):
        phis = live_phis(plan, block)
        for predecessor in dict.fromkeys(name for phi in phis[:1] for _, name in phi.incoming):
            _emit_edge(plan, b, block, phis, predecessor)
        dead = memory_phis(plan, block)
        block.instructions = [i for i in block.instructions if i not in dead]


def _emit_edge(plan: Plan, b: TensorBuilder, block: Block, phis: list[Instruction], predecessor: str) -> None:
    pairs: list[tuple[Place, Value]] = []
    for phi in phis:
        value = next(v for v, name in phi.incoming if name == predecessor)
        root = plan.flats.root(value)
        place = plan.place_of(phi.value)
        if plan.flats.kind(root) == "register":
            pairs.append((place, value))
        elif isinstance(root, Keyword):
            pairs.extend([] if is_undefined(root) else [(place, root)])
        elif plan.place_of(root) is not place:
            pairs.append((place, root))
    if not pairs:
        return
    origin = _edge_block(plan, plan.function.block(predecessor), block)
    b.block, b.index, b.debug = origin, len(origin.instructions) - 1, ""
    _emit_copies(plan, b, [_Copy(place, value, _source(plan, value)) for place, value in pairs])


@dataclass
class _Copy:
    """One of the copies of an edge: `value`, which lies at `source` if it is no register or constant, to `target`."""

    target: Place
    value: Value
    source: Place | None


def _source(plan: Plan, value: Value) -> Place | None:
    return None if plan.flats.kind(value) in ("register", "constant") else plan.place_of(value)


def _emit_copies(plan: Plan, b: TensorBuilder, pending: list[_Copy]) -> None:
    """Copies that happen at once, in an order in which none overwrites what another still reads."""
    while pending:
        free = next((c for c in pending if not any(c.target is o.source for o in pending if o is not c)), None)
        if free is None:
            pending[0].source = _set_aside(plan, b, pending[0])
            continue
        _write(plan, b, free)
        pending.remove(free)


def _set_aside(plan: Plan, b: TensorBuilder, copy: _Copy) -> Place:
    type_ = copy.value.type
    assert isinstance(type_, VectorType)
    assert copy.source is not None
    place = plan.new_place(type_.element, type_.count, "swap")
    copy_bytes(b, copy.source.pointer, place.pointer, _bytes(place))
    return place


def _write(plan: Plan, b: TensorBuilder, copy: _Copy) -> None:
    target = copy.target
    if copy.source is not None:
        copy_bytes(b, copy.source.pointer, target.pointer, _bytes(target))
    elif isinstance(copy.value, Keyword):
        b.memset(target.pointer, 0, _bytes(target))
    elif plan.flats.kind(copy.value) == "constant":
        copy_bytes(b, plan.place_of(copy.value).pointer, target.pointer, _bytes(target))
    else:
        assert target.buffer is not None
        b.store(as_stored(b, copy.value), target.pointer, target.buffer.align)


def _bytes(place: Place) -> int:
    assert place.buffer is not None
    return place.buffer.count * bytes_of(place.buffer.element)


def is_undefined(value: Value) -> bool:
    """Whether a vector is a constant of which any elements will do."""
    return isinstance(value, Keyword) and value.word in ("undef", "poison")


def _edge_block(plan: Plan, predecessor: Block, block: Block) -> Block:
    """The block where copies of an edge go: the predecessor, or a new one on the edge if it has other ways out."""
    last = predecessor.terminator
    if len(set(last.targets)) == 1:
        return predecessor
    name = plan.function.names.fresh(f"{block.name}.edge" if not block.name.isdecimal() else "edge")
    middle = Block(name, f"\n\n{name}:")
    plan.function.blocks.insert(plan.function.blocks.index(predecessor) + 1, middle)
    TensorBuilder(plan.module, plan.function, middle).branch(block)
    for index, operand in enumerate(last.operands):
        if isinstance(operand, Local) and operand == block.value:
            set_operand(last, index, middle.value)
    rename_incoming(plan.function, [block.name], predecessor.name, name)
    for phi in block.phis:
        _take_once(phi, name)
    return middle


def _take_once(phi: Instruction, block: str) -> None:
    """Several cases of a `switch` that went to a phi's block come on one edge now: one entry is left of theirs."""
    pairs = phi.incoming
    first = next((i for i, (_, name) in enumerate(pairs) if name == block), None)
    kept = [pair for i, pair in enumerate(pairs) if pair[1] != block or i == first]
    if len(kept) == len(pairs):
        return
    at = phi.text.index(str(phi.type), phi.text.index("phi ")) + len(str(phi.type))
    tail = phi.text[phi.text.rindex("]") + 1 :]
    phi.text = f"{phi.text[:at]} {', '.join(f'[ {value}, %{name} ]' for value, name in kept)}{tail}"
    phi.operands = [operand for value, name in kept for operand in (value, Local(LABEL, name))]
    phi.spans = None
