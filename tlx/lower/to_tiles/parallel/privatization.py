"""Privatization: temporaries that only one loop accesses become private to each thread that runs its iterations.

Rewrite, where the loop is independent and threads are to share it:
    define void @f(...) {
      %s.heap = call ptr @malloc(i64 x), !tlx.buffer !{}
      for (i = 0; i < 12; i++) { call @K(%s.buf, ...); call @J(%out + i * 64, %s.buf) }
      call void @free(ptr %s.heap)
    }
        ->
    define void @f(...) { call void @tlx.nest.f(...) }
    define internal void @tlx.nest.f(...) {
      %s.heap = call ptr @malloc(i64 x), !tlx.buffer !{}
      for (i = 0; i < 12; i++) { call @K(%s.buf, ...); call @J(%out + i * 64, %s.buf) }
      call void @free(ptr %s.heap)
    }

No iteration of an independent loop reads what another one writes, so a temporary that nothing else accesses holds no
value from one iteration to the next. The memory planner runs afterwards, and `worksharing` divides the loop: each
thread then runs `@tlx.nest.f` for a range of iterations, with memory of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.control_flow import Loop
from tlx.ir.functions import Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, remove_dead, set_operand, uses
from tlx.ir.transform import LoopRegion, outline_region
from tlx.ir.types import I8, ArrayType
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.memory.allocation import CACHE_LINE, is_buffer
from tlx.lower.memory.buffers import PrivateBuffers

_DERIVES: Final = BINARY_OPCODES | CAST_OPCODES | {"getelementptr", "phi", "select", "freeze"}


@dataclass(frozen=True, eq=False)
class LoopTemporary:
    """A buffer that only one loop accesses.

    Attributes:
        allocation: The instruction that allocates it.
        addresses: Names of the values that are computed from its address, inside and outside of the loop.
        outside: The instructions outside of the loop that use these values.
    """

    allocation: Instruction
    addresses: frozenset[str]
    outside: tuple[Use, ...]

    @property
    def start(self) -> str:
        """Name of the address of its first element: on the heap, the first aligned one."""
        derived = [use.instruction for use in self.outside if use.instruction.opcode == "getelementptr"]
        return str(derived[0].result if derived and self.allocation.is_call else self.allocation.result)


@dataclass(eq=False)
class BufferUses:
    """Where the buffers of a function are used.

    Attributes:
        function: The function.
    """

    function: Function

    @cached_property
    def uses(self) -> dict[str, list[Use]]:
        """The uses of each local."""
        return uses(self.function)

    @cached_property
    def _buffers(self) -> list[tuple[Instruction, frozenset[str], list[Use]]]:
        """Each buffer, the values computed from its address, and the uses of these."""
        return [(i, *self._closure(str(i.result))) for i in self.function.instructions() if is_buffer(i)]

    def _closure(self, name: str) -> tuple[frozenset[str], list[Use]]:
        names, found, pending = {name}, list[Use](), [name]
        while pending:
            for use in self.uses.get(pending.pop(), ()):
                found.append(use)
                result = use.instruction.result
                if use.instruction.opcode in _DERIVES and result is not None and result not in names:
                    names.add(result)
                    pending.append(result)
        return frozenset(names), found

    def temporaries(self, loop: Loop) -> list[LoopTemporary]:
        """The buffers that only a loop accesses; elsewhere they are only allocated and freed."""
        found: list[LoopTemporary] = []
        for allocation, names, all_uses in self._buffers:
            outside = tuple(use for use in all_uses if use.block.name not in loop.blocks)
            if len(outside) < len(all_uses) and all(_is_bookkeeping(use, allocation, names) for use in outside):
                found.append(LoopTemporary(allocation, names, outside))
        return found


def _is_bookkeeping(use: Use, allocation: Instruction, names: Container[str]) -> bool:
    """Whether a use belongs to the allocation, the alignment, the check or the release of a buffer."""
    instruction = use.instruction
    if not allocation.is_call:
        return False
    if instruction.opcode == "icmp" or instruction.callee == "free":
        return True
    return instruction.opcode in _DERIVES - {"phi", "select"} and all(
        isinstance(operand, ConstInt) or (isinstance(operand, Local) and operand.name in names)
        for operand in instruction.operands
    )


def outline_with_temporaries(
    module: Module, function: Function, region: LoopRegion, temporaries: Collection[LoopTemporary], attributes: str
) -> Function:
    """Move a loop to a new function that allocates the temporaries, which only the loop accesses.

    Returns:
        The new function.
    """
    private = frozenset[str]().union(*(temporary.addresses for temporary in temporaries))
    region = replace(region, captured=[value for value in region.captured if value.name not in private])
    name = module.global_names.fresh(f"tlx.nest.{function.name}")
    outlined = outline_region(module, function, region, name, attributes)
    buffers = PrivateBuffers(module, outlined)
    inside, places = uses(outlined), list[tuple[str, Local]]()
    for temporary in temporaries:
        allocation = temporary.allocation
        array = allocation.source_type
        if isinstance(array, ArrayType):
            buffer = buffers.new(array.element, array.count, "private")
        else:
            (size,) = allocation.args
            assert isinstance(size, ConstInt)
            buffer = buffers.new(I8, size.value - CACHE_LINE, "private")
        places.append((temporary.start, buffer.pointer))
    buffers.emit()
    entries = [block for block in outlined.blocks if region.header.name in block.terminator.successors]
    entry = next(block for block in entries if block not in region.blocks)
    b = Builder(module, outlined, entry, len(entry.instructions) - 1)
    for start, pointer in places:
        for use in inside.get(start, ()):
            type_ = use.instruction.operands[use.index].type
            address = pointer if pointer.type == type_ else b.cast("bitcast", pointer, type_)
            set_operand(use.instruction, use.index, address)
    _drop_allocations(function, temporaries)
    return outlined


def _drop_allocations(function: Function, temporaries: Collection[LoopTemporary]) -> None:
    """Remove the allocations, checks and releases of temporaries."""
    allocations = {id(temporary.allocation) for temporary in temporaries}
    outside = [use for temporary in temporaries for use in temporary.outside]
    frees = {id(use.instruction) for use in outside if use.instruction.callee == "free"}
    for check in [use.instruction for use in outside if use.instruction.opcode == "icmp"]:
        _drop_check(function, check)
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if id(i) not in frees]
    remove_dead(function, [use.instruction for use in outside if use.instruction.result is not None])
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if id(i) not in allocations]


def _drop_check(function: Function, check: Instruction) -> None:
    """Remove a comparison with null from a disjunction of several, or with the branch that depends on it alone."""
    result: Value = check.value
    (use,) = uses(function)[str(check.result)]
    block, instruction = use.block, use.instruction
    block.instructions.remove(check)
    if instruction.opcode == "or":
        other = instruction.operands[1 - use.index]
        for outer in uses(function)[str(instruction.result)]:
            set_operand(outer.instruction, outer.index, other)
        block.instructions.remove(instruction)
        return
    assert instruction.operands[0] == result
    _, trap, tail = instruction.operands
    _branch_always(block, tail)
    function.blocks = [other for other in function.blocks if other.name != str(trap).removeprefix("%")]


def _branch_always(block: Block, successor: Value) -> None:
    block.instructions[-1] = Instruction("br", block.terminator.type, [successor], f"br label {successor}")
