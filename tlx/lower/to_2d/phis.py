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

An operation shares the buffer of the phi that takes its result where no other value of the buffer is needed after it.
Otherwise the edge copies. Copies of one edge happen at once: one that reads what another writes goes through a second
buffer. Edges that leave a block with several ways out get a block of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tlx.diagnostics import LoweringError
from tlx.ir.module import Block, Instruction
from tlx.ir.rewriter import rename_incoming, set_operand
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import LABEL, VectorType, bytes_of
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.to_2d.copies import as_stored, copy_bytes
from tlx.lower.to_2d.readings import readings_of
from tlx.lower.to_2d.safety import Position
from tlx.lower.to_2d.views import Place, View

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


# Sharing -------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Group:
    """Values that share a phi's buffer.

    Attributes:
        phi: The phi.
        members: Where each value is defined, by name.
    """

    phi: Instruction
    members: dict[str, Position] = field(default_factory=dict[str, Position])


def share_buffers(plan: Plan) -> None:
    """Give results that a phi takes the phi's buffer, where that is safe."""
    for block in plan.function.blocks:
        for phi in live_phis(plan, block):
            group = _Group(phi, {str(phi.result): plan.positions[id(phi)]})
            for value, _ in phi.incoming:
                _join(plan, group, block, value)


def _join(plan: Plan, group: _Group, block: Block, value: Value) -> None:
    if not isinstance(value, Local) or plan.flats.kind(value) != "op" or value.name in group.members:
        return
    if value.name in plan.shared:
        return
    op = plan.op_of(value)
    if value.name in plan.lazy or op.result is None or op.result.is_padded or plan.is_sunk(op):
        return
    grown = _Group(group.phi, {**group.members, value.name: plan.position_of(op)})
    if _can_share(plan, grown, block) and _operands_fit(plan, grown, value):
        group.members = grown.members
        _share(plan, group.phi, value)


def _share(plan: Plan, phi: Instruction, value: Local) -> None:
    """One buffer for both; the one reserved for the result is not needed."""
    old = plan.place_of(value)
    plan.share(value, plan.place_of(phi.value))
    if old.buffer is not None:
        plan.buffers.made = [b for b in plan.buffers.made if b is not old.buffer]


def _can_share(plan: Plan, group: _Group, block: Block) -> bool:
    """No value of the group is needed after another one was written."""
    phi = str(group.phi.result)
    writes = [(phi, (block.name, -1))] if _has_copies(group) else []
    writes += [(name, at) for name, at in group.members.items() if name != phi]
    for written, start in writes:
        for name, defined in group.members.items():
            if name != written and _live_after(plan, start, plan.reads_of(_value(plan, name)), defined):
                return False
    return True


def _has_copies(group: _Group) -> bool:
    return any(not (isinstance(v, Local) and v.name in group.members) for v, _ in group.phi.incoming)


def _operands_fit(plan: Plan, group: _Group, value: Local) -> bool:
    """An operation may read the buffer it writes element by element only: as an accumulator, or pointwise."""
    op = plan.op_of(value)
    assert op.result is not None
    home = plan.place_of(group.phi.value)
    shared = {plan.place_of(_value(plan, name)) for name in group.members}
    target = View.of(home, op.result)
    return all(reading.view.place not in shared or reading.allows(target) for reading in readings_of(plan, op))


def _value(plan: Plan, name: str) -> Local:
    return plan.flats.definitions[name].value


def _live_after(plan: Plan, start: Position, reads: list[Position], defined: Position) -> bool:
    """Whether a value is read after a position and before it is defined again."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        block, index = pending.pop()
        stop = defined[1] if defined[0] == block and defined[1] > index else None
        for name, at in reads:
            if name == block and at > index and (stop is None or at <= stop):
                return True
        if stop is not None:
            continue
        for successor in plan.flow.blocks[block].terminator.targets:
            if successor not in seen:
                seen.add(successor)
                pending.append((successor, -1))
    return False


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
            pairs.extend([] if _is_undefined(root) else [(place, root)])
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


def _is_undefined(value: Value) -> bool:
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
