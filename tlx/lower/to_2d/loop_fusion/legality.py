"""Legality: whether the operations of a group can be moved into one loop at the position of the last one.

Memory that the loop reads part by part must not change before the loop; a store that runs in the loop, or after it,
must not be passed by another access of its memory. Instructions in between that depend on a result of the group are
moved after the loop; no operation of the group may depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tlx.ir.instructions import Instruction, may_read, may_write
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.tensors.model import Tensor
from tlx.ir.types import VectorType, bytes_of
from tlx.ir.values import Local
from tlx.lower.memory.aliases import MemoryLocation, no_memory, quoted_instruction
from tlx.lower.memory.views import Storage, TensorView, storage_type, tensor_bytes
from tlx.lower.to_2d.analysis.facts import Facts, store_view
from tlx.lower.to_2d.loop_fusion.groups import LoopGroup
from tlx.lower.to_2d.loop_fusion.splits import operand_splits


class Obstacle(NamedTuple):
    """An instruction of a group that cannot be moved to the loop, and why."""

    instruction: Instruction
    reason: str


@dataclass(eq=False)
class LoopPlacement:
    """Where the loop of a group is, and what it and the instructions around it need.

    Attributes:
        group: The group.
        stores: The ordinary stores of results that run in the loop.
        moved: The instructions in front of the loop that depend on its results, and are moved after it.
        obstacle: What cannot be moved; None if the group can be computed in a loop.
    """

    group: LoopGroup
    stores: list[Instruction] = field(default_factory=list[Instruction])
    moved: list[Instruction] = field(default_factory=list[Instruction])
    obstacle: Obstacle | None = None

    def __post_init__(self) -> None:
        self.facts: Facts = self.group.block.facts
        self.instructions = self.facts.flow.blocks[self.group.block.name].instructions
        self.stores += self._own_stores()
        self.obstacle = self._unmovable_load() or self._unmovable_store() or self._move_dependent()

    @cached_property
    def inside(self) -> dict[int, Instruction]:
        """The instructions that the loop replaces, by id."""
        members = [op.instruction for op in self.group.members]
        return {id(instruction): instruction for instruction in (*members, *self.stores)}

    @cached_property
    def last(self) -> Instruction:
        """The last instruction that the loop replaces, where the loop is."""
        return max(self.inside.values(), key=self._index)

    @property
    def range(self) -> tuple[int, int]:
        """The indices of the first and the last instruction that the loop replaces."""
        indices = [self._index(instruction) for instruction in self.inside.values()]
        return min(indices), max(indices)

    @cached_property
    def results(self) -> list[str]:
        """Names of the results of the group that are read outside of the loop."""
        names = [str(op.instruction.result) for op in self.group.members if op.result is not None]
        return [name for name in names if any(map(self._is_outside, self.group.block.readers(name)))]

    def _is_outside(self, reader: Instruction) -> bool:
        return id(reader) not in self.inside

    def _index(self, instruction: Instruction) -> int:
        return self.group.block.position(instruction)[1]

    # Memory ------------------------------------------------------------------------------------------------------

    @cached_property
    def _loads(self) -> list[tuple[Instruction, MemoryLocation, Instruction]]:
        """The memory of the program that the loop reads part by part: the load, the range, and who reads it."""
        return list(self._find_loads())

    def _find_loads(self) -> Iterator[tuple[Instruction, MemoryLocation, Instruction]]:
        for op in self.group.ops.values():
            splits = operand_splits(op, self.group.split_of(op))
            assert splits is not None
            for tensor, part in zip(op.tensors, splits, strict=True):
                load = _load_of(self.facts, tensor) if part is not None else None
                if load is not None:
                    yield *load, op.instruction

    def _unmovable_load(self) -> Obstacle | None:
        """An operation that reads memory which may change before the loop."""
        end = self.group.block.position(self.last)
        for load, location, reader in self._loads:
            position = self.group.block.position(load)
            writer = self.facts.aliases.clobbering_instruction(location, position, end)
            if writer is not None:
                return Obstacle(reader, f"'{quoted_instruction(writer)}' may change what it reads")
        return None

    def _own_stores(self) -> list[Instruction]:
        """The ordinary stores of results that can run in the loop."""
        last = max(self._index(op.instruction) for op in self.group.members)
        found: list[Instruction] = []
        for name in [str(op.instruction.result) for op in self.group.members if op.result is not None]:
            for reader in self.group.block.readers(name):
                if not self.facts.vectors.is_memory_store(reader):
                    continue
                value = reader.operands[0]
                is_here = self.group.block.position(reader)[0] == self.group.block.name
                if is_here and self.facts.vectors.root(value).type == value.type:
                    end = max(last, self._index(reader))
                    found += [reader] if self._can_delay(reader, end) else []
        last = max([last, *map(self._index, found)])
        return [store for store in found if self._can_delay(store, last)]

    def _unmovable_store(self) -> Obstacle | None:
        """A tensor store of the group that cannot run in the loop."""
        stores = [op.instruction for op in self.group.members if op.pointer is not None]
        end = self._index(self.last)
        unmovable = next((store for store in stores if not self._can_delay(store, end)), None)
        return None if unmovable is None else Obstacle(unmovable, "what it writes may be accessed earlier")

    def _can_delay(self, store: Instruction, end: int) -> bool:
        """Whether a store can run after the instructions up to an index, and in any order with the loop's loads."""
        location = self._written(store)
        if location is None or not all(self.facts.aliases.disjoint(location, read) for _, read, _ in self._loads):
            return False
        between = self.instructions[self._index(store) + 1 : end + 1]
        return not any(self._may_access(instruction, location) for instruction in between)

    def _written(self, store: Instruction) -> MemoryLocation | None:
        """What a store writes; None for other instructions."""
        op = self.facts.tensors.op_of(store)
        if op is not None:
            return MemoryLocation.of(store_view(op)) if op.pointer is not None else None
        if store.opcode != "store" or {"volatile", "atomic"} & set(store.flags):
            return None
        type_ = store.operands[0].type
        size = type_.count * bytes_of(type_.element) if isinstance(type_, VectorType) else None
        return MemoryLocation(store.operands[1], size)

    def _may_access(self, instruction: Instruction, location: MemoryLocation) -> bool:
        """Whether an instruction may read or write a range of memory."""
        aliases = self.facts.aliases
        if aliases.writes(instruction, location):
            return True
        token = self.facts.tensors.tokens.get(instruction.result or "")
        if token is not None and token.kind != "value":
            return not aliases.disjoint(MemoryLocation(token.source, None), location)
        if instruction.opcode == "load":
            return not aliases.disjoint(MemoryLocation(instruction.operands[0], None), location)
        if is_tensor_call(instruction) or instruction.opcode == "store":
            return False
        return (may_read(instruction) or may_write(instruction)) and not no_memory(instruction.callee or "")

    # Order -------------------------------------------------------------------------------------------------------

    def _move_dependent(self) -> Obstacle | None:
        """Collect the instructions to move after the loop; an obstacle if one cannot be, or the loop needs it."""
        origin = {str(op.instruction.result): op.instruction for op in self.group.members if op.result is not None}
        renamed = dict(origin)  # tokens and aliases of results, by name: the loop has its own
        needed_by: dict[str, Instruction] = {}  # what depends on results, by name: the operation it depends on
        end = self._index(self.last)
        for instruction in self.instructions[: end + 1]:
            used = [operand.name for operand in instruction.operands if isinstance(operand, Local)]
            blamed = next((needed_by[name] for name in used if name in needed_by), None)
            if id(instruction) in self.inside:
                if blamed is not None:
                    return Obstacle(instruction, "it depends on others that are not in the loop")
                continue
            source = blamed or next((renamed[name] for name in used if name in renamed), None)
            if source is None:
                continue
            if not self._may_follow(instruction, end):
                return Obstacle(source, f"'{quoted_instruction(instruction)}' cannot be moved after the loop")
            self.moved.append(instruction)
            is_renaming = instruction.result in self.facts.tensors.tokens or self.facts.vectors.is_renaming(instruction)
            if instruction.result is not None:
                (renamed if is_renaming and blamed is None else needed_by)[instruction.result] = source
        return None

    def _may_follow(self, instruction: Instruction, end: int) -> bool:
        """Whether an instruction in front of the loop can run after it."""
        if instruction.opcode in ("phi", "alloca") or instruction.is_terminator:
            return False
        if self._written(instruction) is not None:
            return self._can_delay(instruction, end)
        if self.facts.tensors.op_of(instruction) is not None:
            return True
        token = self.facts.tensors.tokens.get(instruction.result or "")
        if token is not None:
            return token.kind == "value"
        is_pure = not may_write(instruction) and not may_read(instruction)
        return is_pure or (instruction.is_call and no_memory(instruction.callee or ""))


def _load_of(facts: Facts, tensor: Tensor) -> tuple[Instruction, MemoryLocation] | None:
    """The load of an operand in memory, and what it reads."""
    if tensor.kind == "load":
        view = TensorView.of(Storage(tensor.source), tensor.type, tensor.pitches)
        return tensor.definition, MemoryLocation.of(view)
    if tensor.kind == "pointer":
        return tensor.definition, MemoryLocation(tensor.source, tensor_bytes(tensor.type))
    root = facts.vectors.root(tensor.source)
    if not isinstance(root, Local) or facts.vectors.kind(root) != "load":
        return None
    load = facts.vectors.definitions[root.name]
    assert isinstance(load.type, VectorType)
    size = load.type.count * bytes_of(storage_type(load.type.element))
    return load, MemoryLocation(load.operands[0], size)
