"""Values of a stretch of code in one block of memory: one call of malloc in place of one for each.

    call allocate(%x.slot, %x.size)                        all later sizes, computed here
    %x.memory = load %x.slot                               call allocate(%x.slot, %x.size + %y.size)
    ... work on x ...                                      %x.memory = load %x.slot
    call allocate(%y.slot, %y.size)                  ->    ... work on x ...
    %y.memory = load %y.slot                               %y.memory = getelementptr %x.memory, %x.size
    ... work on y ...                                      ... work on y ...

glibc gives memory back to the system where more of it is free than twice the largest block freed so far, and then each
page is touched for the first time again in each call; one block never is that much.

A size that is computed sooner is computed before it was checked: what is larger than any tensor becomes `_MOST`, which
malloc refuses, so that the program stops there in place of at the check. Nothing moves over a call of the program's
own, which need not return.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import set_operand
from tlx.ir.types import I8
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.dynamic.numbers import number

_MOST: Final = 1 << 52
"""Bytes: more than a tensor has whose number of elements was checked, and than malloc gives; sums do not overflow."""
_LARGEST_GROUP: Final = 256
_PURE: Final = frozenset(
    "add sub mul and or xor shl icmp select sext zext trunc freeze insertelement extractelement shufflevector".split()
)
_OURS: Final = ("tlx.dynamic.", "llvm.")


@dataclass(frozen=True, eq=False)
class Allocation:
    """Memory for a value that is defined once.

    Attributes:
        slot: Its slot.
        call: What fills the slot.
        load: What reads the memory's address from it, the only one.
    """

    slot: Local
    call: Instruction
    load: Instruction

    @property
    def size(self) -> Value:
        """Bytes."""
        return self.call.args[1]


def join(module: Module, function: Function, found: Sequence[Allocation]) -> set[str]:
    """Join allocations; the names of the slots that are needed no more."""
    by_call = {id(allocation.call): allocation for allocation in found}
    gone: set[str] = set()
    for block in function.blocks:
        for group in list(_groups(block, by_call)):  # joining changes the block
            _join(Builder(module, function, block), group)
            gone.update(allocation.slot.name for allocation in group[1:])
    _remove_allocas(function.entry, gone)
    return gone


def _groups(block: Block, by_call: dict[int, Allocation]) -> Iterator[list[Allocation]]:
    """Allocations behind one another whose sizes can all be computed where the first one is."""
    group: list[Allocation] = []
    fixed: set[str] = set()  # what is defined behind the first one, and cannot be before it
    for instruction in block.instructions:
        allocation = by_call.get(id(instruction))
        if allocation is not None and 0 < len(group) < _LARGEST_GROUP and _name(allocation.size) not in fixed:
            group.append(allocation)
        elif allocation is not None or _may_not_return(instruction):
            yield from _several(group)
            group, fixed = [allocation] if allocation is not None else [], set()
        elif group and instruction.result is not None and not _can_move(instruction, fixed):
            fixed.add(instruction.result)
    yield from _several(group)


def _several(group: list[Allocation]) -> Iterator[list[Allocation]]:
    if len(group) > 1:
        yield group


def _can_move(instruction: Instruction, fixed: set[str]) -> bool:
    return instruction.opcode in _PURE and not any(_name(operand) in fixed for operand in instruction.operands)


def _may_not_return(instruction: Instruction) -> bool:
    callee = (instruction.callee or "").strip('"')
    return instruction.is_call and not callee.startswith(_OURS)


def _name(value: Value) -> str:
    return value.name if isinstance(value, Local) else ""


def _join(b: Builder, group: Sequence[Allocation]) -> None:
    """Have the first allocation's block hold the others, one behind the other."""
    first, *others = group
    _move_in_front(b.block, first.call, [allocation.size for allocation in others])
    b.index = b.block.instructions.index(first.call)
    total, starts = first.size, list[Value]()
    for allocation in others:
        starts.append(total)
        total = b.add(total, _bounded(b, allocation.size), "bytes")
    set_operand(first.call, first.call.operands.index(first.size), total)
    for allocation, start in zip(others, starts, strict=True):
        b.block.instructions.remove(allocation.call)
        b.index = b.block.instructions.index(allocation.load)
        del b.block.instructions[b.index]
        name = str(allocation.load.result)
        b.function.names.taken.discard(name)
        b.gep(I8, first.load.value, start, name)


def _bounded(b: Builder, size: Value) -> Value:
    """A size, or `_MOST` where it is more."""
    if isinstance(size, ConstInt):
        return size
    return b.select(b.icmp("ult", size, number(_MOST), "possible"), size, number(_MOST), "bytes")


def _move_in_front(block: Block, place: Instruction, sizes: Iterable[Value]) -> None:
    """Move what sizes are computed by in front of an instruction."""
    start = block.instructions.index(place)
    later = {str(i.result): i for i in block.instructions[start:] if i.result is not None}
    wanted: set[int] = set()
    todo = list(sizes)
    while todo:
        instruction = later.get(_name(todo.pop()))
        if instruction is not None and id(instruction) not in wanted:
            wanted.add(id(instruction))
            todo.extend(instruction.operands)
    moved = [i for i in block.instructions if id(i) in wanted]
    rest = [i for i in block.instructions if id(i) not in wanted]
    at = rest.index(place)
    block.instructions[:] = [*rest[:at], *moved, *rest[at:]]


def _remove_allocas(entry: Block, names: set[str]) -> None:
    entry.instructions[:] = [i for i in entry.instructions if i.opcode != "alloca" or i.result not in names]
