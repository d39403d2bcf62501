"""Memory of values of run-time size: slots, which are null or hold the address of an allocation.

Rewrite:
    %sum = ...                          ->  %sum.slot = alloca ptr                  entry block; null is stored to it
                                            call void @tlx.dynamic.allocate(ptr %sum.slot, i64 %bytes)
                                            %memory = load ptr, ptr %sum.slot
                                            %sum = %memory, aligned up to a cache line
    ret                                 ->  call void @free(the pointer in %sum.slot)   every ret and resume

A value that a loop computes anew replaces the one of the previous iteration (`tlx.dynamic.reallocate`).

Allocations of straight-line code are merged into the first one. Its memory is divided into segments, each for values
whose live ranges are disjoint and as large as the largest of them:

    call allocate(%x.slot, %x.size)                        all later sizes, computed here
    %x.memory = load %x.slot                               call allocate(%x.slot, max(%x.size, %z.size) + %y.size)
    %x = ...                                               %x.memory = load %x.slot
    call allocate(%y.slot, %y.size)                        %x = ...
    %y.memory = load %y.slot                         ->    %y.memory = getelementptr %x.memory, max(%x.size, %z.size)
    %y = f(%x)                                             %y = f(%x)
    call allocate(%z.slot, %z.size)                        %z = f(%y), in %x.memory
    %z.memory = load %z.slot
    %z = f(%y)

glibc returns memory to the system when more than twice the largest block freed so far is free, and then each call has
page faults again; a single block never exceeds that limit.

A size that moves up is computed before it is checked. A size larger than that of any tensor becomes `_MAX_BYTES`, which
malloc refuses: the program stops there instead of at the check. No size moves across a call of the program's own
functions, which need not return.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.control_flow import ControlFlow
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, definitions, set_operand
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I8, Type, bytes_of
from tlx.ir.values import ConstInt, Keyword, Local, Value
from tlx.lower.dynamic.helpers import HelperFunctions, NoAliasPointer, i64_parameters
from tlx.lower.dynamic.views import i64
from tlx.lower.memory.allocation import (
    CACHE_LINE,
    emit_allocation,
    emit_release,
    exit_index,
    frame_metadata,
    require_allocator,
    trap_if_null,
)
from tlx.lower.memory.lifetimes import Lifetimes, LiveInterval, add_interval, intervals_overlap

_MAX_BYTES: Final = 1 << 52
"""Bytes: more than any tensor of checked extents has, and more than malloc allocates; sums of it do not overflow."""
_MAX_GROUP: Final = 256
"""Largest number of allocations that are merged."""
_PURE: Final = frozenset(
    "add sub mul and or xor shl icmp select sext zext trunc freeze insertelement extractelement shufflevector".split()
)
_ARITHMETIC: Final = frozenset({"add", "sub", "mul", "and", "sext", "zext", "insertelement", "extractelement"})
_RETURNING: Final = ("tlx.dynamic.", "llvm.")
"""Prefixes of functions that return."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """Memory for a value that is defined once.

    Attributes:
        slot: Its slot.
        call: The call that fills the slot.
        load: The only instruction that reads the memory's address from it.
    """

    slot: Local
    call: Instruction
    load: Instruction

    @property
    def size(self) -> Value:
        """Bytes."""
        return self.call.args[1]


def merge_allocations(module: Module, function: Function, allocations: Sequence[Allocation]) -> set[str]:
    """Merge allocations; returns the names of the slots that are no longer needed."""
    by_call = {id(allocation.call): allocation for allocation in allocations}
    groups = [(block, group) for block in function.blocks for group in _mergeable_groups(block, by_call)]
    if not groups:
        return set()
    planner = _SegmentPlanner(function)
    planned = [(Builder(module, function, block), planner.segments(block, group)) for block, group in groups]
    for b, segments in planned:  # after all live ranges are known: this moves instructions
        _merge_group(b, segments, planner.lifetimes.uses)
    unused = {allocation.slot.name for _, group in groups for allocation in group[1:]}
    _remove_allocas(function.entry, unused)
    return unused


def _mergeable_groups(block: Block, by_call: dict[int, Allocation]) -> Iterator[list[Allocation]]:
    """Consecutive allocations, two or more, whose sizes can all be computed before the first one."""
    group: list[Allocation] = []
    fixed: set[str] = set()  # values defined after the first one that cannot move before it
    for instruction in block.instructions:
        allocation = by_call.get(id(instruction))
        if allocation is not None and 0 < len(group) < _MAX_GROUP and _name(allocation.size) not in fixed:
            group.append(allocation)
        elif allocation is not None or _may_not_return(instruction):
            yield from [group] if len(group) > 1 else []
            group, fixed = [allocation] if allocation is not None else [], set()
        elif group and instruction.result is not None and not _can_move(instruction, fixed):
            fixed.add(instruction.result)
    yield from [group] if len(group) > 1 else []


def _can_move(instruction: Instruction, fixed: set[str]) -> bool:
    return instruction.opcode in _PURE and not any(_name(operand) in fixed for operand in instruction.operands)


def _may_not_return(instruction: Instruction) -> bool:
    callee = (instruction.callee or "").strip('"')
    return instruction.is_call and not callee.startswith(_RETURNING)


def _name(value: Value) -> str:
    return value.name if isinstance(value, Local) else ""


@dataclass(eq=False)
class _Segment:
    """A part of a group's memory, which holds one value at a time.

    Attributes:
        members: The values' allocations.
        sizes: One allocation of each size, by the size's value number.
        live: The union of the values' live ranges.
    """

    members: list[Allocation] = field(default_factory=list[Allocation])
    sizes: dict[Hashable, Allocation] = field(default_factory=dict[Hashable, Allocation])
    live: list[LiveInterval] = field(default_factory=list[LiveInterval])


class _SegmentPlanner:
    """Divides groups of allocations into segments, as interval graphs are coloured: greedily, in program order.

    The sizes cannot be compared before run time. A value takes a free segment that holds values of its size, so that
    tensors of one shape waste no memory, or else the first free segment.
    """

    def __init__(self, function: Function) -> None:
        self.lifetimes = Lifetimes(ControlFlow(function))
        self._definitions = definitions(function)
        self._numbers: dict[Hashable, Hashable] = {}

    def segments(self, block: Block, group: Sequence[Allocation]) -> list[_Segment]:
        """The segments of a group; the first allocation is in the first one."""
        segments: list[_Segment] = []
        for allocation in group:
            live = self.lifetimes.of_memory(allocation.load.value, block.name)
            size = self._value_number(allocation.size)
            free = [segment for segment in segments if not intervals_overlap(segment.live, live)]
            segment = min(free, key=lambda segment: size not in segment.sizes, default=None)
            if segment is None:
                segment = _Segment()
                segments.append(segment)
            segment.members.append(allocation)
            segment.sizes.setdefault(size, allocation)
            for interval in live:
                add_interval(segment.live, interval)
        return segments

    def _value_number(self, value: Value) -> Hashable:
        """Equal for values that are computed in the same way, such as the sizes of tensors of one shape."""
        definition = self._definitions.get(_name(value))
        if definition is None or definition.opcode not in _ARITHMETIC:
            return value
        if value not in self._numbers:
            key = definition.opcode, definition.type, *map(self._value_number, definition.operands)
            self._numbers[value] = self._numbers.setdefault(key, len(self._numbers))
        return self._numbers[value]


def _merge_group(b: Builder, segments: Sequence[_Segment], uses: Mapping[str, Sequence[Use]]) -> None:
    """Place the segments after one another, in the memory of the first allocation."""
    first = segments[0].members[0]
    _move_before(b.block, first.call, [a.size for segment in segments for a in segment.members if a is not first])
    b.index = b.block.instructions.index(first.call)
    total: Value | None = None
    starts: list[Value | None] = []
    for segment in segments:
        starts.append(total)
        sizes = [a.size if a is first else _bounded(b, a.size) for a in segment.sizes.values()]
        size = reduce(lambda one, other: b.select(b.icmp("ugt", one, other), one, other, "bytes"), sizes)
        total = size if total is None else b.add(total, size, "bytes")
    assert total is not None
    set_operand(first.call, first.call.operands.index(first.size), total)
    for segment, start in zip(segments, starts, strict=True):
        for allocation in segment.members:
            if allocation is not first:
                _move_to(b, allocation, first.load.value, start, uses)


def _move_to(
    b: Builder, allocation: Allocation, memory: Value, start: Value | None, uses: Mapping[str, Sequence[Use]]
) -> None:
    """Replace an allocation by an address in the memory of another: `memory`, or `start` bytes after it."""
    b.block.instructions.remove(allocation.call)
    b.index = b.block.instructions.index(allocation.load)
    del b.block.instructions[b.index]
    name = str(allocation.load.result)
    if start is not None:
        b.function.names.taken.discard(name)
        b.gep(I8, memory, start, name)
        return
    for use in uses.get(name, ()):
        set_operand(use.instruction, use.index, memory)


def _bounded(b: Builder, size: Value) -> Value:
    """The minimum of a size and `_MAX_BYTES`."""
    if isinstance(size, ConstInt):
        return size
    return b.select(b.icmp("ult", size, i64(_MAX_BYTES), "fits"), size, i64(_MAX_BYTES), "bytes")


def _move_before(block: Block, place: Instruction, sizes: Iterable[Value]) -> None:
    """Move the computation of sizes before an instruction."""
    start = block.instructions.index(place)
    later = {str(i.result): i for i in block.instructions[start:] if i.result is not None}
    moving: set[int] = set()
    pending = list(sizes)
    while pending:
        instruction = later.get(_name(pending.pop()))
        if instruction is not None and id(instruction) not in moving:
            moving.add(id(instruction))
            pending.extend(instruction.operands)
    moved = [i for i in block.instructions if id(i) in moving]
    rest = [i for i in block.instructions if id(i) not in moving]
    at = rest.index(place)
    block.instructions[:] = [*rest[:at], *moved, *rest[at:]]


def _remove_allocas(entry: Block, names: set[str]) -> None:
    entry.instructions[:] = [i for i in entry.instructions if i.opcode != "alloca" or i.result not in names]


@dataclass(eq=False)
class Heap:
    """The slots of one function.

    A slot that is filled at most once in a call holds a frame, which the thread's arena may provide. A slot in a loop,
    or of a phi, is refilled while later memory is still in use, so malloc allocates its memory.

    Attributes:
        b: The builder of the function.
        helpers: The module's helpers.
        flow: The function's control flow, before anything was changed.
        block: Name of the block that is being rewritten; empty for code on an edge.
    """

    b: TensorBuilder
    helpers: HelperFunctions
    flow: ControlFlow
    block: str = ""
    _slots: dict[str, Local] = field(default_factory=dict[str, Local])
    _stems: dict[str, str] = field(default_factory=dict[str, str])
    _frames: set[str] = field(default_factory=set[str])
    _allocations: list[Allocation] = field(default_factory=list[Allocation])

    def allocate(self, count: Value, element: Type, stem: str) -> Value:
        """New memory for `count` elements."""
        slot = self.slot(stem)
        if self.block in self.flow.dominators and not self.flow.is_cyclic(self.block):
            self._frames.add(slot.name)
        call = self._fill(slot, count, element)
        load = self._load(slot)
        self._allocations.append(Allocation(slot, call, load))
        return self._start(load.value, element)

    def slot(self, stem: str) -> Local:
        """A new slot."""
        require_allocator(self.b.module, "tensors of run-time size need", self.b.function.span)
        slot = self.b.alloca(self.b.pointer(I8), f"{stem}.slot", 8)
        self._slots[slot.name] = slot
        self._stems[slot.name] = stem
        return slot

    def allocate_in(self, slot: Local, count: Value, element: Type) -> Value:
        """New memory for `count` elements in a slot, whose previous memory is freed."""
        self._fill(slot, count, element)
        return self.memory_of(slot, element)

    def memory_of(self, slot: Local, element: Type) -> Value:
        """The first cache line in the memory of a slot."""
        return self._start(self._load(slot).value, element)

    def _fill(self, slot: Local, count: Value, element: Type) -> Instruction:
        b = self.b
        size = b.add(b.mul(count, bytes_of(element), "bytes"), CACHE_LINE - 1)
        name, build = ("allocate", _allocate) if slot.name in self._frames else ("reallocate", _reallocate)
        self.helpers.call(
            b, name, [("slot", NoAliasPointer(b.pointer(I8))), *i64_parameters("size")], [slot, size], build
        )
        return b.block.instructions[b.index - 1]

    def _load(self, slot: Local) -> Instruction:
        self.b.load(self.b.pointer(I8), slot, 8, "memory")
        return self.b.block.instructions[self.b.index - 1]

    def _start(self, memory: Value, element: Type) -> Value:
        return self.b.retype(self.b.align_up(memory, CACHE_LINE), element)

    def finish(self) -> None:
        """Clear the slots at the head of the function, and free their memory at every exit."""
        b = self.b
        for name in merge_allocations(b.module, b.function, self._allocations):
            del self._slots[name]
        if not self._slots:
            return
        entry = b.function.entry
        b.block, b.index = entry, next(i for i, inst in enumerate(entry.instructions) if inst.opcode != "alloca")
        for slot in self._slots.values():
            b.store(Keyword(b.pointer(I8), "null"), slot, 8)
        for block in b.function.blocks:
            index = exit_index(block)
            if index is None:
                continue
            b.block, b.index = block, index
            for slot in self._slots.values():
                metadata = frame_metadata() if slot.name in self._frames else ""
                emit_release(b, b.load(b.pointer(I8), slot, 8, "released"), metadata)
        self._remark()

    def _remark(self) -> None:
        """Name the values whose memory comes from malloc despite `--workspace`."""
        options, remarks = self.helpers.context.options, self.helpers.context.remarks
        if options.workspace == "malloc":
            return
        covered = self._frames if options.workspace == "arena" else set[str]()
        names = dict.fromkeys(f"%{stem}" for name, stem in self._stems.items() if name not in covered)
        if names:
            why = "changes in a loop" if options.workspace == "arena" else "is known only at run time"
            message = f"malloc allocates memory despite --workspace={options.workspace}, because its size {why}: "
            remarks.add("missed", "to-2d", message + ", ".join(names), self.b.function.span)


def _allocate(b: TensorBuilder, parameters: dict[str, Local]) -> None:
    """`*slot = malloc(size); if (!*slot) trap();`."""
    memory = emit_allocation(b, parameters["size"], "memory", frame_metadata())
    b.store(memory, parameters["slot"], 8)
    trap_if_null(b, [memory])


def _reallocate(b: TensorBuilder, parameters: dict[str, Local]) -> None:
    """`free(*slot); *slot = malloc(size); if (!*slot) trap();`."""
    slot = parameters["slot"]
    emit_release(b, b.load(b.pointer(I8), slot, 8, "old"))
    memory = emit_allocation(b, parameters["size"], "memory")
    b.store(memory, slot, 8)
    trap_if_null(b, [memory])
