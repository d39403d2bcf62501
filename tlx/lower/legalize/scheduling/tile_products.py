"""Loads and products of tiles, scheduled among the vector code of an epilogue.

    t0 t1 t2 t3 v0 v1 v2 v3 v4 v5 v6 v7     ->     t0 v0 v1 t1 v2 v3 t2 v4 v5 t3 v6 v7

A processor executes vector code in the gaps between tile products, but only what its scheduler holds: about a hundred
instructions that wait. Where a step of K is followed by rows of a long epilogue, it would load the tiles of the next
step late. The product of 1024x3072x768 bfloats with GELU takes 1.02 times as long as without instead of 1.17
(Xeon 6/167/1, medians of alternating calls, 2026-11-30).

Tile loads only move after stores to another object: those of an epilogue's results, which no product reads, but not
those that pack the operands of a later step into the same memory.

LLVM's instruction scheduler would undo this, as arithmetic does not depend on tiles. So after each load or product of a
tile, the latest vectors pass through empty assembly, which stays in order with other instructions that have side
effects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES
from tlx.ir.rewrite import definitions, set_operand, underlying_object
from tlx.ir.types import FLOAT, I32, PointerType, Type, VectorType
from tlx.ir.values import Local, Value
from tlx.lower.memory.allocation import ALLOCATORS

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.functions import Function
    from tlx.ir.instructions import Block, Instruction
    from tlx.target.target import Target

_MEMORY_OPCODES: Final = ("load", "store", "call")
_READERS: Final = ("llvm.prefetch", "llvm.masked.load")
_LEAST_GAP: Final = 3
"""Instructions between two loads or products of tiles from which on moving them pays off."""
_PINNED: Final = 4
"""Vectors that are pinned at a time: those that are computed side by side."""
_ADDRESS_OPCODES: Final = BINARY_OPCODES | CAST_OPCODES | {"getelementptr", "icmp", "select"}


def spread_evenly(b: Builder, block: Block, moving: Sequence[Instruction], target: Target) -> None:
    """Spread the loads and products of tiles evenly over the vector code that follows them in a block.

    Nothing moves if a sum is used in the block, if the block may write what the products read, or if it has little
    vector code.

    Args:
        b: The builder.
        block: The block.
        moving: Instructions of products, in order; they write no memory.
        target: The target, which has a constraint for vector registers.
    """
    units = _split_after_calls(moving)
    names, ids = {i.result for i in moving}, {id(i) for i in moving}
    others = [i for i in block.instructions if id(i) not in ids]
    users = (i for i in others if i.opcode != "phi" and not i.is_terminator)
    if not units or any(isinstance(v, Local) and v.name in names for i in users for v in i.operands):
        return
    start = next(n for n, i in enumerate(block.instructions) if id(i) in ids)
    objects = _Objects(b.function)
    read, written = (objects.of(each) for each in (moving, filter(_may_write, others[start:])))
    if written and not (read.isdisjoint(written) and "" not in read | written):
        return
    vectors = [n for n, i in enumerate(others) if n >= start and _is_vector_code(i)]
    if len(vectors) < _LEAST_GAP * len(units):
        return
    schedule = _InstructionOrder(others, target.vector_bytes)
    b.block, block.instructions = block, schedule.instructions
    schedule.advance(start)
    for i, unit in enumerate(units):
        schedule.advance(vectors[i * len(vectors) // len(units)] if i else start)
        schedule.place(unit)
        schedule.pin(b, target.instructions.opaque_constraint)
    schedule.advance(len(others))


class _Objects:
    """The arguments and allocations of a function."""

    def __init__(self, function: Function) -> None:
        self._definitions = definitions(function)
        self._arguments = {argument.name for argument in function.arguments}

    def of(self, instructions: Iterable[Instruction]) -> set[str]:
        """Names of those that the pointers of instructions point into; empty for an unknown one."""
        objects: set[str] = set()
        for instruction in instructions:
            if instruction.opcode in _MEMORY_OPCODES:
                operands = instruction.args if instruction.is_call else instruction.operands
                objects.update(self._name(v) for v in operands if isinstance(v.type, PointerType))
        return objects

    def _name(self, pointer: Value) -> str:
        base = underlying_object(pointer, self._definitions, ("getelementptr", "bitcast"))
        if not isinstance(base, Local):
            return ""
        definition = self._definitions.get(base.name)
        if definition is None:
            return base.name if base.name in self._arguments else ""
        is_allocation = definition.opcode == "alloca" or (definition.callee or "").strip('"') in ALLOCATORS
        return base.name if is_allocation else ""


def _may_write(instruction: Instruction) -> bool:
    """Whether an instruction may write to memory that its operands point to."""
    reads = (instruction.callee or "").startswith(_READERS)
    return instruction.opcode == "store" or (instruction.is_call and not reads)


def _is_vector_code(instruction: Instruction) -> bool:
    """Whether an instruction becomes one on vectors."""
    if instruction.opcode == "store":
        return isinstance(instruction.operands[0].type, VectorType)
    return isinstance(instruction.type, VectorType) and instruction.opcode not in ("phi", "bitcast")


def _fills_register(type_: Type, size: int) -> bool:
    return isinstance(type_, VectorType) and type_.element in (FLOAT, I32) and 4 * type_.count == size


class _InstructionOrder:
    """A new order of a block's instructions, under construction.

    Attributes:
        waiting: Instructions that are placed in their order, unless addresses are needed earlier.
        vector_bytes: Bytes of a vector register.
        instructions: The new order.
    """

    def __init__(self, waiting: Sequence[Instruction], vector_bytes: int) -> None:
        self.waiting, self.vector_bytes = waiting, vector_bytes
        self.instructions: list[Instruction] = []
        self._place_of = {i.result: n for n, i in enumerate(waiting) if i.result is not None}
        self._done = [False] * len(waiting)
        self._advanced = 0  # how many have been placed in their order
        self._uses: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for position, instruction in enumerate(waiting):
            for index, value in enumerate(instruction.operands):
                if isinstance(value, Local):
                    self._uses[value.name].append((position, index))

    def advance(self, end: int) -> None:
        """Place the waiting instructions before a position."""
        for position in range(self._advanced, end):
            self._place(position)
        self._advanced = max(self._advanced, end)

    def place(self, unit: Sequence[Instruction]) -> None:
        """Place other instructions, after the waiting ones that they depend on."""
        needed = self._needed(unit)
        if not all(self.waiting[position].opcode in _ADDRESS_OPCODES for position in needed):
            self.advance(max(needed) + 1)
        for position in sorted(needed):
            self._place(position)
        self.instructions += unit

    def pin(self, b: Builder, constraint: str) -> None:
        """Keep the instructions that use the latest vectors after the last one that has been placed."""
        latest: list[Local] = []
        for instruction in reversed(self.instructions):
            if len(latest) == _PINNED:
                break
            if (
                _fills_register(instruction.type, self.vector_bytes)
                and self._waiting_uses(instruction.value.name)
                and not self._joins_use(instruction)
            ):
                latest.append(instruction.value)
        for value in latest:
            uses = self._waiting_uses(value.name)
            b.index = len(self.instructions)
            pinned = b.in_place(value, constraint)
            for position, index in uses:
                set_operand(self.waiting[position], index, pinned)
            self._uses[pinned.name] = uses

    def _waiting_uses(self, name: str) -> list[tuple[int, int]]:
        """The positions of waiting instructions that use a value, with the indices of their operands."""
        return [(position, index) for position, index in self._uses[name] if not self._done[position]]

    def _joins_use(self, instruction: Instruction) -> bool:
        """Whether an instruction and a waiting one may become one: a sum of a product, a maximum, a negative factor.

        LLVM does not find them across an instruction that pins the value between them.
        """
        users = [self.waiting[position] for position, _ in self._waiting_uses(instruction.value.name)]
        if instruction.opcode == "fmul" and "contract" in instruction.flags:
            return any(user.opcode in ("fadd", "fsub") and "contract" in user.flags for user in users)
        return instruction.opcode == "fneg" or any(
            user.opcode == "select" and self._is_placed(user.operands[0]) for user in users
        )

    def _is_placed(self, value: Value) -> bool:
        """Whether one of the block's instructions computes a value, and is placed."""
        return isinstance(value, Local) and value.name in self._place_of and self._done[self._place_of[value.name]]

    def _place(self, position: int) -> None:
        if not self._done[position]:
            self._done[position] = True
            self.instructions.append(self.waiting[position])

    def _needed(self, unit: Sequence[Instruction]) -> set[int]:
        """Numbers of the waiting instructions that others depend on."""
        needed: set[int] = set()
        pending = list(unit)
        while pending:
            for value in pending.pop().operands:
                position = self._place_of.get(value.name) if isinstance(value, Local) else None
                if position is not None and not self._done[position] and position not in needed:
                    needed.add(position)
                    pending.append(self.waiting[position])
        return needed


def _split_after_calls(instructions: Sequence[Instruction]) -> list[list[Instruction]]:
    """Loads and products of tiles, each with the instructions of its address before it."""
    units: list[list[Instruction]] = [[]]
    for instruction in instructions:
        units[-1].append(instruction)
        if instruction.is_call:
            units.append([])
    return [unit for unit in units if unit]
