"""Promotion of variables in memory to values, as in LLVM's mem2reg, for slots of tokens, shapes and tensors.

    %slot = alloca i32                                    %t = call i32 @tensor_typeinfo(...)
    %t = call i32 @tensor_typeinfo(...)            ->     ...
    store i32 %t, ptr %slot
    %u = load i32, ptr %slot                              (uses of %u use %t)

clang writes such code at -O0, and at every level for vectors that it passes in memory. A slot qualifies if it is only
ever loaded and stored whole. Reading it as another type of the same size, as clang does to pass a shape of 8 bytes as a
double, becomes a bitcast. Values merge at phis, placed on the iterated dominance frontier of the stores where the slot
is live (Cytron et al. 1991).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from tlx.frontends.c_header.placeholders import callee_name
from tlx.ir.control_flow import ControlFlow
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.rewrite import Use, set_operand, uses
from tlx.ir.types import LABEL, PointerType, Type, bits_of
from tlx.ir.values import Keyword, Local, Value

_MARKERS: Final = ("llvm.lifetime.start", "llvm.lifetime.end")
_DEBUG: Final = ("llvm.dbg.declare", "llvm.dbg.value", "llvm.dbg.assign", "llvm.dbg.addr")


@dataclass(eq=False)
class _Slot:
    """A variable that can be a value.

    Attributes:
        alloca: The variable.
        type: Type of its value.
        loads, stores: Its accesses.
        others: Instructions that are removed with it: lifetime markers, casts of its address, debug records.
        live: Blocks at whose start it is live.
        phis: The phi of each block that needs one.
        exits: Cached values at the end of blocks.
    """

    alloca: Instruction
    type: Type
    loads: list[Use] = field(default_factory=list[Use])
    stores: list[Use] = field(default_factory=list[Use])
    others: list[Instruction] = field(default_factory=list[Instruction])
    live: set[str] = field(default_factory=set[str])
    phis: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    exits: dict[str, Value] = field(default_factory=dict[str, Value])


def promote_slots(function: Function) -> None:
    """Turn the variables of a function that are only loaded and stored whole into values."""
    used = uses(function)
    allocas = [i for i in function.instructions() if i.opcode == "alloca"]
    slots = [slot for alloca in allocas if (slot := _slot(alloca, used)) is not None]
    if slots:
        _Promotion(function, slots).run()


def debug_only(instruction: Instruction) -> bool:
    """Whether an instruction is only debug information."""
    return instruction.opcode == "#dbg" or callee_name(instruction) in _DEBUG


# Which slots qualify -----------------------------------------------------------------------------------------------


def _slot(alloca: Instruction, used: dict[str, list[Use]]) -> _Slot | None:
    """The slot of a variable, None if it must stay in memory."""
    if alloca.operands or alloca.result is None or alloca.source_type is None:
        return None
    slot = _Slot(alloca, alloca.source_type, others=[alloca])
    if not _collect(slot, alloca.result, used):
        return None
    accesses = [_accessed(use.instruction) for use in (*slot.loads, *slot.stores)]
    slot.type = accesses[0] if accesses else slot.type
    if any(not _same_bits(type_, slot.type) for type_ in accesses):
        return None
    return slot


def _collect(slot: _Slot, address: str, used: dict[str, list[Use]]) -> bool:
    """Classify the uses of an address; whether all of them allow promotion."""
    for use in used.get(address, []):
        user = use.instruction
        if user.opcode == "load" and not user.flags:
            slot.loads.append(use)
        elif user.opcode == "store" and use.index == 1 and not user.flags:
            slot.stores.append(use)
        elif debug_only(user) or (callee_name(user) or "").startswith(_MARKERS):
            slot.others.append(user)
        elif user.opcode == "bitcast" and user.result is not None:
            slot.others.append(user)
            if not _collect(slot, user.result, used):
                return False
        else:
            return False
    return True


def _accessed(access: Instruction) -> Type:
    return access.type if access.opcode == "load" else access.operands[0].type


def _same_bits(first: Type, second: Type) -> bool:
    """Whether one type can be bitcast to the other."""
    if first == second:
        return True
    if isinstance(first, PointerType) or isinstance(second, PointerType):
        return False
    try:
        return bits_of(first) == bits_of(second)
    except ValueError:
        return False


# Rewriting ---------------------------------------------------------------------------------------------------------


class _Promotion:
    """One run over a function, for all its slots at once."""

    def __init__(self, function: Function, slots: list[_Slot]) -> None:
        self.function = function
        self.flow = ControlFlow(function)
        self.slots = slots
        self.replaced: dict[str, Value] = {}
        self.merging: dict[str, list[_Slot]] = defaultdict(list)
        self.gone = {id(i) for slot in slots for i in slot.others}
        self.gone |= {id(use.instruction) for slot in slots for use in (*slot.loads, *slot.stores)}
        self.by_access = {id(use.instruction): slot for slot in slots for use in (*slot.loads, *slot.stores)}

    def run(self) -> None:
        """Place phis, propagate values through the blocks, and remove dead instructions."""
        frontier = _frontier(self.flow)
        for slot in self.slots:
            slot.live = self._live(slot)
            self._place_phis(slot, frontier)
            for name in slot.phis:
                self.merging[name].append(slot)
        order = [self.flow.blocks[name] for name in self.flow.order]
        unreachable = [block for block in self.function.blocks if block.name not in self.flow.dominators]
        for block in [*order, *unreachable]:
            self._follow(block)
        for slot in self.slots:
            for name, phi in slot.phis.items():
                self._complete(phi, slot, name)
        self._clean()

    def _live(self, slot: _Slot) -> set[str]:
        """Blocks at whose start the slot is live."""
        reads, writes = self._first_accesses(slot)
        live: set[str] = set()
        stack = list(reads)
        while stack:
            name = stack.pop()
            if name in live:
                continue
            live.add(name)
            stack.extend(p for p in self.flow.predecessors[name] if p not in writes)
        return live

    def _first_accesses(self, slot: _Slot) -> tuple[set[str], set[str]]:
        """Blocks that read the slot before any write of their own, and blocks that write it."""
        writes = {use.block.name for use in slot.stores}
        first: dict[str, str] = {}
        blocks = {use.block.name: use.block for use in (*slot.loads, *slot.stores)}
        for name, block in blocks.items():
            first[name] = next(i.opcode for i in block.instructions if self.by_access.get(id(i)) is slot)
        return {name for name, opcode in first.items() if opcode == "load"}, writes

    def _place_phis(self, slot: _Slot, frontier: dict[str, set[str]]) -> None:
        stack = [use.block.name for use in slot.stores]
        seen = set(stack)
        while stack:
            for name in frontier[stack.pop()]:
                if name in slot.phis or name not in slot.live:
                    continue
                phi = Instruction("phi", slot.type, [], "", result=self.function.names.fresh("merged"))
                phi.span = slot.alloca.span
                slot.phis[name] = phi
                if name not in seen:
                    seen.add(name)
                    stack.append(name)

    def _follow(self, block: Block) -> None:
        """Replace loads by the current value of the slot, and record the values at the end of the block."""
        current: dict[int, Value] = {}
        instructions = [slot.phis[block.name] for slot in self.merging[block.name]]
        for instruction in block.instructions:
            slot = self.by_access.get(id(instruction))
            if slot is None:
                instructions.append(instruction)
            elif instruction.opcode == "store":
                stored = self._resolved(instruction.operands[0])
                value = self._converted(stored, slot.type, instruction, instructions)
                current[id(slot)] = slot.exits[block.name] = value
            elif instruction.result is not None:
                known = current.setdefault(id(slot), self._at_start(slot, block.name))
                value = self._converted(known, instruction.type, instruction, instructions)
                self.replaced[instruction.result] = value
        block.instructions = instructions

    def _at_start(self, slot: _Slot, name: str) -> Value:
        phi = slot.phis.get(name)
        if phi is not None:
            return phi.value
        dominator = self.flow.dominators.get(name)
        if dominator is None or dominator == name:
            return Keyword(slot.type, "undef")
        return self._at_end(slot, dominator)

    def _at_end(self, slot: _Slot, name: str) -> Value:
        """The value at the end of a block: its last store's, its phi's, or that of its dominator."""
        path: list[str] = []
        while name not in slot.exits and name not in slot.phis:
            path.append(name)
            dominator = self.flow.dominators.get(name)
            if dominator is None or dominator == name:
                slot.exits[name] = Keyword(slot.type, "undef")
            else:
                name = dominator
        value = slot.exits[name] if name in slot.exits else slot.phis[name].value
        slot.exits.update(dict.fromkeys(path, value))
        return value

    def _resolved(self, value: Value) -> Value:
        return self.replaced.get(value.name, value) if isinstance(value, Local) else value

    def _converted(self, value: Value, type_: Type, access: Instruction, into: list[Instruction]) -> Value:
        """The value as a type of the same size."""
        if value.type == type_:
            return value
        if isinstance(value, Keyword) and value.word == "undef":
            return Keyword(type_, "undef")
        name = self.function.names.fresh("cast")
        text = f"%{name} = bitcast {value.typed} to {type_}{access.debug_location}"
        cast = Instruction("bitcast", type_, [value], text, result=name, span=access.span)
        into.append(cast)
        return cast.value

    def _complete(self, phi: Instruction, slot: _Slot, block: str) -> None:
        """Give a phi its incoming values: one for each edge, of which a switch may have several."""
        pairs: list[str] = []
        for name in self.flow.predecessors[block]:
            value = self._resolved(self._at_end(slot, name))
            for _ in range(self.flow.blocks[name].terminator.successors.count(block)):
                pairs.append(f"[ {value}, %{name} ]")
                phi.operands += [value, Local(LABEL, name)]
        phi.text = f"%{phi.result} = phi {slot.type} {', '.join(pairs)}"

    def _clean(self) -> None:
        for block in self.function.blocks:
            block.instructions = [i for i in block.instructions if id(i) not in self.gone]
            for instruction in block.instructions:
                for index, operand in enumerate(instruction.operands):
                    value = self._final(operand)
                    if value is not operand:
                        set_operand(instruction, index, value)

    def _final(self, value: Value) -> Value:
        """A value after all replacements, which may be chained.

        In unreachable code a value may be stored before it is loaded from the same slot: such a cycle has no value.
        """
        seen: set[str] = set()
        while isinstance(value, Local) and value.name in self.replaced:
            if value.name in seen:
                return Keyword(value.type, "undef")
            seen.add(value.name)
            value = self.replaced[value.name]
        return value


def _frontier(flow: ControlFlow) -> dict[str, set[str]]:
    """Dominance frontiers (Cooper, Harvey and Kennedy)."""
    frontier: dict[str, set[str]] = defaultdict(set)
    for name in flow.order:
        predecessors = [p for p in flow.predecessors[name] if p in flow.dominators]
        if len(predecessors) < 2:
            continue
        for runner in predecessors:
            while runner != flow.dominators[name]:
                frontier[runner].add(name)
                runner = flow.dominators[runner]
    return frontier
