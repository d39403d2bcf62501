"""Memory of values of run-time size: slots for what malloc gave, and allocations merged into one call of malloc.

Values of a stretch of code in one block of memory: one call of malloc in place of one for each.

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

Memory of values of run-time size, in slots that are null or hold what malloc gave.

%sum.slot = alloca ptr                     entry block; then: store ptr null, ptr %sum.slot
call void @tlx.dynamic.allocate(ptr %sum.slot, i64 %bytes)
%memory = load ptr, ptr %sum.slot          a value defined again (in a loop) takes the place of the one before
%sum = %memory, moved on to a line of the caches
...
call void @free(what %sum.slot holds)      before every ret and resume

Values that follow one another share a slot: see `joined`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.transform.rewrite import set_operand
from tlx.ir.types import I8, I64, VOID, FunctionType, Type, bytes_of
from tlx.ir.values import ConstInt, Keyword, Local, Value
from tlx.lower.dynamic.extents import emit_trap, i64
from tlx.lower.dynamic.helpers import HelperFunctions, NoAliasPointer, i64_parameters
from tlx.lower.memory.buffers import exit_index

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


def merge_allocations(module: Module, function: Function, found: Sequence[Allocation]) -> set[str]:
    """Join allocations; the names of the slots that are needed no more."""
    by_call = {id(allocation.call): allocation for allocation in found}
    gone: set[str] = set()
    for block in function.blocks:
        for group in list(_mergeable_groups(block, by_call)):  # joining changes the block
            _merge_group(Builder(module, function, block), group)
            gone.update(allocation.slot.name for allocation in group[1:])
    _remove_allocas(function.entry, gone)
    return gone


def _mergeable_groups(block: Block, by_call: dict[int, Allocation]) -> Iterator[list[Allocation]]:
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


def _merge_group(b: Builder, group: Sequence[Allocation]) -> None:
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
    return b.select(b.icmp("ult", size, i64(_MOST), "possible"), size, i64(_MOST), "bytes")


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


CACHE_LINE: Final = 64
"""Bytes of a line of the caches; malloc aligns to 16."""


@dataclass(eq=False)
class Heap:
    """The slots of one function.

    Attributes:
        b: The builder of the function.
        helpers: The module's helpers.
    """

    b: TensorBuilder
    helpers: HelperFunctions
    _slots: list[Local] = field(default_factory=list[Local])
    _allocations: list[Allocation] = field(default_factory=list[Allocation])

    def allocate(self, count: Value, element: Type, stem: str) -> Value:
        """Memory for `count` elements, which belongs to nothing else."""
        slot = self.slot(stem)
        call = self._fill(slot, count, element)
        load = self._load(slot)
        self._allocations.append(Allocation(slot, call, load))
        return self._start(load.value, element)

    def slot(self, stem: str) -> Local:
        """A new slot."""
        self._check_libc()
        slot = self.b.alloca(self.b.pointer(I8), f"{stem}.slot", 8)
        self._slots.append(slot)
        return slot

    def allocate_in(self, slot: Local, count: Value, element: Type) -> Value:
        """Memory for `count` elements in place of what a slot holds."""
        self._fill(slot, count, element)
        return self.memory_of(slot, element)

    def memory_of(self, slot: Local, element: Type) -> Value:
        """Where the elements are for which a slot holds memory."""
        return self._start(self._load(slot).value, element)

    def _fill(self, slot: Local, count: Value, element: Type) -> Instruction:
        b = self.b
        size = b.add(b.mul(count, bytes_of(element), "bytes"), CACHE_LINE - 1)
        self.helpers.call(
            b, "allocate", [("slot", NoAliasPointer(b.pointer(I8))), *i64_parameters("size")], [slot, size], _allocate
        )
        return b.block.instructions[b.index - 1]

    def _load(self, slot: Local) -> Instruction:
        self.b.load(self.b.pointer(I8), slot, 8, "memory")
        return self.b.block.instructions[self.b.index - 1]

    def _start(self, memory: Value, element: Type) -> Value:
        return self.b.retype(self.b.at_boundary(memory, CACHE_LINE), element)

    def finish(self) -> None:
        """Clear the slots at the head of the function, and free what is in them at every way out."""
        b = self.b
        gone = merge_allocations(b.module, b.function, self._allocations)
        self._slots = [slot for slot in self._slots if slot.name not in gone]
        if not self._slots:
            return
        entry = b.function.entry
        b.block, b.index = entry, next(i for i, inst in enumerate(entry.instructions) if inst.opcode != "alloca")
        for slot in self._slots:
            b.store(Keyword(b.pointer(I8), "null"), slot, 8)
        for block in b.function.blocks:
            index = exit_index(block)
            if index is None:
                continue
            b.block, b.index = block, index
            for slot in self._slots:
                pointer = b.pointer(I8)
                b.call_named("free", VOID, [b.load(pointer, slot, 8, "used")])

    def _check_libc(self) -> None:
        module = self.b.module
        pointer = module.pointer_to(I8)
        wanted = {"malloc": FunctionType(pointer, (I64,)), "free": FunctionType(VOID, (pointer,))}
        for name, type_ in wanted.items():
            declared = module.declarations.get(name)
            if declared is not None and declared.signature.type != type_:
                message = f"tensors of run-time size need @{name} as {type_}; here it is {declared.signature.type}"
                raise LoweringError(message, self.b.function.span)
            if declared is None and re.search(rf"(?m)^@{name} *=", module.raw_text()):
                message = f"tensors of run-time size need @{name}, which is no function in this module"
                raise LoweringError(message, self.b.function.span)


def _allocate(b: TensorBuilder, parameters: dict[str, Local]) -> None:
    """`free(*slot); *slot = malloc(size); if (!*slot) trap();`."""
    pointer = b.pointer(I8)
    slot = parameters["slot"]
    b.call_named("free", VOID, [b.load(pointer, slot, 8, "old")])
    memory = b.call_named("malloc", pointer, [parameters["size"]], "memory").value
    b.store(memory, slot, 8)
    stop = b.new_block("out.of.memory")
    end = b.new_block("end", stop)
    b.branch_if(b.icmp("eq", memory, Keyword(pointer, "null"), "none"), stop, end)
    emit_trap(b, stop)
    b.at_end(end)
