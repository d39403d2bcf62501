"""Loop-carried tensors of run-time size: a phi of handles owns memory, and every way to it copies what comes in.

loop:
  %x = phi <vscale x 1 x float> [ %a, %entry ], [ %b, %loop ]
->
entry: copy %a to new memory; free what %x.slot holds; put the new memory there
loop:
  %x.count = phi i64 [ %a's count ], [ %b's count ]
  %x = load ptr, ptr %x.slot, moved on to a line of the caches
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tlx.ir.module import Block, Instruction
from tlx.ir.rewriter import add_incoming, rename_incoming, set_operand
from tlx.ir.types import I1, I8, I64, VOID, Type, VectorType, bytes_of
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.dynamic.views import Flat

if TYPE_CHECKING:
    from tlx.lower.dynamic.rewrite import Expansion


@dataclass(eq=False)
class _Carried:
    """A phi of handles, and what took its place."""

    phi: Instruction
    block: Block
    slot: Local
    count: Instruction
    element: Type


@dataclass(eq=False)
class Phis:
    """The phis of handles of one function."""

    expansion: Expansion
    _carried: list[_Carried] = field(default_factory=list[_Carried])
    _late: list[_Carried] = field(default_factory=list[_Carried])

    def head(self, phi: Instruction) -> None:
        """Put a phi of the count where a phi of handles was."""
        e = self.expansion
        assert isinstance(phi.type, VectorType)
        element = I8 if phi.type.element == I1 else phi.type.element
        slot = e.heap.slot(f"{phi.result}")
        name = e.function.names.fresh(f"{phi.result}.count")
        count = Instruction("phi", I64, [], f"%{name} = phi i64 ", result=name)
        e.b.block.instructions.insert(e.b.index, count)
        e.b.index += 1
        carried = _Carried(phi, e.b.block, slot, count, element)
        self._carried.append(carried)
        self._late.append(carried)

    def emit_late(self) -> None:
        """Behind the phis of a block: where the memory is."""
        for carried in self._late:
            pointer = self.expansion.heap.memory_of(carried.slot, carried.element)
            self.expansion.flats[str(carried.phi.result)] = Flat(pointer, carried.count.value, carried.element)
        self._late = []

    def emit_edges(self) -> None:
        """On every way to a block with phis of handles: copies of all that comes in, then these go to their slots."""
        blocks = {id(c.block): c.block for c in self._carried}
        for block in blocks.values():
            carried = [c for c in self._carried if c.block is block]
            for predecessor in dict.fromkeys(name for _, name in carried[0].phi.incoming):
                self._emit_edge(block, predecessor, carried)

    def _emit_edge(self, block: Block, predecessor: str, carried: list[_Carried]) -> None:
        b = self.expansion.b
        origin = b.function.block(self._renamed(block, predecessor))
        edge = self._edge(origin, block)
        b.block, b.index, b.debug = edge, len(edge.instructions) - 1, edge.terminator.debug_location
        copies = [self._copied(c, next(v for v, name in c.phi.incoming if name == predecessor)) for c in carried]
        pointer = b.pointer(I8)
        for c, (fresh, count) in zip(carried, copies, strict=True):
            b.call_named("free", VOID, [b.load(pointer, c.slot, 8, "old")])
            b.store(b.load(pointer, fresh, 8, "carried"), c.slot, 8)
            b.store(Keyword(pointer, "null"), fresh, 8)
            add_incoming(c.count, count, edge.name)
            c.count.spans = None

    def _renamed(self, block: Block, predecessor: str) -> str:
        """The block that a way comes from now: loops that were built may have split the one it came from."""
        names = {b.name: b for b in self.expansion.function.blocks}
        found = names.get(predecessor)
        if found is not None and block.name in found.terminator.targets:
            return predecessor
        return self.expansion.last_part[predecessor]

    def _copied(self, carried: _Carried, value: Value) -> tuple[Local, Value]:
        """A copy of an incoming value, in a slot for the way."""
        e = self.expansion
        flat = e.flat(value)
        slot = e.heap.slot(f"{carried.phi.result}.next")
        memory = e.heap.allocate_in(slot, flat.count, carried.element)
        e.b.memcpy(memory, flat.pointer, e.b.mul(flat.count, bytes_of(carried.element), "bytes"))
        return slot, flat.count

    def _edge(self, origin: Block, block: Block) -> Block:
        """A block that lies on the way only."""
        targets = origin.terminator.targets
        if set(targets) == {block.name}:
            return origin
        b = self.expansion.b
        edge = b.new_block(f"{block.name}.entry", origin)
        rename_incoming(b.function, [block.name], origin.name, edge.name)
        terminator = origin.terminator
        for index, operand in enumerate(terminator.operands):
            if operand == block.value:
                set_operand(terminator, index, edge.value)
        b.at_end(edge)
        b.branch(block)
        return edge
