"""The memory planner: one block of memory for the temporaries of a function; those with disjoint live ranges overlap.

Temporaries are the buffers of `tlx.lower.memory.allocation`: what stage 1 computes and copies, and what stage 2 packs
for several products. Until the planner runs, each has a separate allocation, so that alias analysis tells them apart.
The planner takes five steps:

1. Buffers: the marked allocations of each function, on the heap and on the stack.
2. Scratch memory: the buffer of a kernel becomes a temporary of its callers, if these have others.
3. Lifetimes: where each temporary holds a value that may be read (`tlx.lower.memory.lifetimes`). Scratch memory is live
   during the call to its kernel only.
4. Offsets: where in the block each temporary begins (`_assign_offsets`), and the rewrite of the function.
5. Allocators: malloc, the arena of a thread or the caller provides the block (`--workspace`).

Rewrite:
    define void @f(...) {                                        define void @f(...) {
      %a.heap = call ptr @malloc(i64 x), !tlx.buffer !{}           %workspace = call ptr @malloc(i64 x + max(y, z))
      %b.heap = call ptr @malloc(i64 y), !tlx.buffer !{}           %b.heap = getelementptr i8, ptr %workspace, i64 x
      call void @J(ptr %a.buf, ptr %b.buf)                         call void @J(ptr %a.buf, ptr %b.buf)
      call void @K(ptr %a.buf)                                     %scratch = getelementptr i8, ptr %workspace, i64 x
      call void @free(ptr %a.heap)                           ->    call void @K(ptr %a.buf, ptr %scratch)
      call void @free(ptr %b.heap)                                 call void @free(ptr %workspace)
    }                                                            }
    define internal void @K(ptr %a) {                            define internal void @K(ptr %a, ptr %scratch.heap) {
      %scratch.heap = call ptr @malloc(i64 z), !tlx.buffer !{}
      call void @free(ptr %scratch.heap)
    }                                                            }

Buffers on the stack are placed in the same way in one alloca, if that saves a page:

      %a.buf = alloca [4096 x float], align 64, !tlx.buffer !{}    %stack = alloca [16384 x i8], align 64
      %b.buf = alloca [4000 x float], align 64, !tlx.buffer !{}    (%stack replaces %a.buf and %b.buf)

One block is also faster than several: glibc gives memory back to the system once more of it is free than twice the
largest block freed so far, and then every call has page faults again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate, combinations
from typing import Final

from tlx.diagnostics import Span
from tlx.ir.builder import Builder, new_function
from tlx.ir.control_flow import ControlFlow, FunctionLoops, has_independent_loops
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import set_operand
from tlx.ir.types import I8, I64, VOID, ArrayType, FunctionType, bytes_of
from tlx.ir.values import ConstInt, Global, Local, Value, const_int
from tlx.lower.context import LoweringContext, is_kernel, is_kernel_nest
from tlx.lower.memory.allocation import (
    CACHE_LINE,
    add_arena,
    add_workspace_constant,
    add_workspace_parameter,
    buffer_metadata,
    buffer_scope,
    emit_allocation,
    frame_content,
    is_buffer,
    is_frame,
    may_take_workspace,
    remove_mark,
    use_arena,
)
from tlx.lower.memory.lifetimes import Lifetimes, LiveInterval, intervals_overlap

_MIN_STACK_SAVING: Final = 4 << 10
"""Bytes of stack, a page, that sharing must save: LLVM keeps small buffers in registers if each has an alloca."""

_PLACEMENTS: Final = 8
"""Orders of temporaries that are tried."""


@dataclass(frozen=True, eq=False, slots=True)
class _AllocationSite:
    """An instruction and its position."""

    function: Function
    block: Block
    instruction: Instruction


@dataclass(frozen=True, eq=False, slots=True)
class _Buffers:
    """The allocations of a function's buffers: calls to malloc, and allocas."""

    on_heap: list[_AllocationSite]
    on_stack: list[_AllocationSite]


@dataclass(eq=False, slots=True)
class _Temporary:
    """Memory to place in the block of a function.

    Attributes:
        site: Its allocation, or the call to the kernel whose scratch memory it is.
        size: Bytes.
        lifetime: The points at which it is live.
        offset: Bytes from the start of the block.
    """

    site: _AllocationSite
    size: int
    lifetime: Sequence[LiveInterval] = ()
    offset: int = 0

    @property
    def end(self) -> int:
        """The offset in bytes of the first byte after it."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class PlannedTemporary:
    """A temporary and its place in a block of memory.

    Attributes:
        name: Its name; for the scratch memory of a kernel, that of the kernel.
        offset: Bytes from the start of the block.
        size: Bytes.
        lifetime: The points of the function at which it is live.
    """

    name: str
    offset: int
    size: int
    lifetime: Sequence[LiveInterval]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The blocks of memory of a function, for reports on the lowering; among the `facts` of the function.

    Attributes:
        heap: The temporaries in the block on the heap.
        stack: Those on the stack, one after the other where sharing a block would save too little.
        points: How many points the function has.
        marks: The points of calls, with the user's code from which they are lowered.
    """

    heap: Sequence[PlannedTemporary]
    stack: Sequence[PlannedTemporary]
    points: int
    marks: Sequence[tuple[int, Span]]


def plan_memory(module: Module, context: LoweringContext, *, threads: bool) -> None:
    """Give each function one block of memory for all its temporaries and the scratch memory of its kernels.

    Args:
        module: The module.
        context: Its options say who allocates; its remarks name the memory that comes from malloc nevertheless.
        threads: Whether the iterations of loops that are marked as independent may run at the same time.
    """
    buffers = {function.name: _find_buffers(function) for function in module.functions}
    if any(own.on_heap or own.on_stack for own in buffers.values()):
        _plan_blocks(module, buffers, threads=threads, caller_allocates=context.options.workspace == "argument")
    choose_allocators(module, context)


def _plan_blocks(module: Module, buffers: Mapping[str, _Buffers], *, threads: bool, caller_allocates: bool) -> None:
    """Replace the buffers of each function by parts of one block, which the function's caller may provide."""
    users = _users(module)
    with_workspace = {f.name for f in module.functions if caller_allocates and _takes_workspace(module, f, users)}
    scratch = _move_scratch_to_callers(module, buffers, users, with_workspace, threads=threads)
    for function in module.functions:
        own, kernels = buffers[function.name], scratch.get(function.name, [])
        if own.on_heap or own.on_stack or kernels:
            _FunctionPlan(module, function, own, kernels, has_workspace=function.name in with_workspace).run()


# Buffers -------------------------------------------------------------------------------------------------------------


def _find_buffers(function: Function) -> _Buffers:
    buffers = _Buffers([], [])
    for block in function.blocks:
        for instruction in block.instructions:
            if is_buffer(instruction):
                site = _AllocationSite(function, block, instruction)
                (buffers.on_heap if instruction.is_call else buffers.on_stack).append(site)
    return buffers


def _size(allocation: Instruction) -> int:
    """Bytes that an allocation reserves."""
    if isinstance(allocation.source_type, ArrayType):
        return allocation.source_type.count * bytes_of(allocation.source_type.element)
    (size,) = allocation.args
    assert isinstance(size, ConstInt)
    return size.value


def _users(module: Module) -> dict[str, list[_AllocationSite]]:
    """The instructions that use each function or global, by its name."""
    users: dict[str, list[_AllocationSite]] = {}
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                for name in {operand.name for operand in instruction.operands if isinstance(operand, Global)}:
                    users.setdefault(name, []).append(_AllocationSite(function, block, instruction))
    return users


def _takes_workspace(module: Module, function: Function, users: Mapping[str, object]) -> bool:
    """Whether the caller of a function can pass its memory: it is the program's, and not called in this module."""
    is_generated = is_kernel(module, function) or is_kernel_nest(module, function) or function.name.startswith("tlx.")
    return not is_generated and function.name not in users and may_take_workspace(module, function)


# Scratch memory of kernels -------------------------------------------------------------------------------------------


def _move_scratch_to_callers(
    module: Module,
    buffers: Mapping[str, _Buffers],
    users: Mapping[str, Sequence[_AllocationSite]],
    with_workspace: Container[str],
    *,
    threads: bool,
) -> dict[str, list[_Temporary]]:
    """Give kernels a parameter for their scratch memory where all callers can provide it.

    Returns:
        The scratch memory that each function provides, by the function's name.
    """
    scratch: dict[str, list[_Temporary]] = {}
    for kernel in module.functions:
        if not is_kernel(module, kernel) or len(buffers[kernel.name].on_heap) != 1:
            continue
        calls = users.get(kernel.name, [])
        if calls and all(
            _can_provide(module, call, kernel, buffers, with_workspace, threads=threads) for call in calls
        ):
            allocation = buffers[kernel.name].on_heap.pop()
            _add_scratch_parameter(module, kernel, allocation)
            for call in calls:
                scratch.setdefault(call.function.name, []).append(_Temporary(call, _size(allocation.instruction)))
    return scratch


def _can_provide(
    module: Module,
    call: _AllocationSite,
    kernel: Function,
    buffers: Mapping[str, _Buffers],
    with_workspace: Container[str],
    *,
    threads: bool,
) -> bool:
    """Whether a caller has a block of memory that can hold the scratch memory of a kernel."""
    if call.instruction.callee != kernel.name or _is_concurrent(module, call, threads):
        return False
    return bool(buffers[call.function.name].on_heap) or call.function.name in with_workspace


def _is_concurrent(module: Module, call: _AllocationSite, threads: bool) -> bool:
    """Whether several threads may execute a call at the same time, within one call of the program's function."""
    if is_kernel(module, call.function) or is_kernel_nest(module, call.function):
        return True
    is_parallel = threads and has_independent_loops(call.function)
    return is_parallel and bool(FunctionLoops(call.function).enclosing_independent_loops(call.block))


def _add_scratch_parameter(module: Module, kernel: Function, allocation: _AllocationSite) -> None:
    """Replace the allocation and release of a kernel's scratch memory by a parameter."""
    call = allocation.instruction
    name = str(call.result)
    parameters = [(a.type, a.attributes, a.name) for a in kernel.arguments]
    module.remove(kernel)
    parameter = (call.value.type, "noalias nonnull", name)
    replacement = new_function(module, kernel.name, [*parameters, parameter], kernel.signature.attributes)
    allocation.block.instructions.remove(call)
    for block in kernel.blocks:
        block.instructions = [i for i in block.instructions if i.callee != "free" or not _is_one_of(i.args[0], {name})]
    replacement.blocks, replacement.names, replacement.facts = kernel.blocks, kernel.names, kernel.facts


def _pass_scratch(module: Module, call: _AllocationSite, base: Value, offset: int) -> None:
    """Pass a kernel its scratch memory: an address and an offset in bytes."""
    index = call.block.instructions.index(call.instruction)
    del call.block.instructions[index]
    b = Builder(module, call.function, call.block, index)
    args = [*call.instruction.args, b.gep(I8, base, offset, "scratch")]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(module.pointer_to(type_), str(call.instruction.callee)), type_, args)


# Lifetimes and offsets -----------------------------------------------------------------------------------------------


def _assign_offsets(temporaries: Iterable[_Temporary]) -> int:
    """Place temporaries so that those that are live at the same time do not overlap.

    Greedy: the largest temporary first, each at the lowest offset that is free in all of its live range (Pisarchyk and
    Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, "greedy by size"). Temporaries of one size
    are placed in the order in which their live ranges begin, which is optimal where all have the same size. While the
    block is larger than what is live at once, there is a hole below its last temporaries: they are placed first then.

    Returns:
        Bytes of the block.
    """
    order = sorted(temporaries, key=lambda t: (-t.size, t.lifetime[:1]))
    neighbours: dict[int, list[_Temporary]] = {id(temporary): [] for temporary in order}
    for one, other in combinations(order, 2):
        if intervals_overlap(other.lifetime, one.lifetime):
            neighbours[id(one)].append(other)
            neighbours[id(other)].append(one)
    least, sizes, placed, best = _most_live_bytes(order), list[int](), order, list[int]()
    for _ in range(_PLACEMENTS):
        sizes.append(_place(order, neighbours))
        if sizes[-1] == min(sizes):
            best = [temporary.offset for temporary in order]
            placed = order
        last = [temporary for temporary in order if temporary.end == sizes[-1]]
        if min(sizes) <= least or order[: len(last)] == last:
            break
        order = [*last, *(temporary for temporary in order if temporary.end < sizes[-1])]
    for temporary, offset in zip(placed, best, strict=True):
        temporary.offset = offset
    return min(sizes)


def _place(order: Sequence[_Temporary], neighbours: Mapping[int, Sequence[_Temporary]]) -> int:
    """Place temporaries in an order, each at the lowest free offset; `neighbours` are live when it is.

    Returns:
        Bytes of the block.
    """
    placed: set[int] = set()
    for temporary in order:
        temporary.offset = 0
        for other in sorted((t for t in neighbours[id(temporary)] if id(t) in placed), key=lambda t: t.offset):
            if temporary.end <= other.offset:
                break
            temporary.offset = max(temporary.offset, _whole_lines(other.end))
        placed.add(id(temporary))
    return max((temporary.end for temporary in order), default=0)


def _most_live_bytes(temporaries: Iterable[_Temporary]) -> int:
    """Bytes of the temporaries that are live at one point, each in whole cache lines; the most of all points."""
    changes = [
        change
        for temporary in temporaries
        for start, end in temporary.lifetime
        for change in ((start, _whole_lines(temporary.size)), (end + 1, -_whole_lines(temporary.size)))
    ]
    return max(accumulate(size for _, size in sorted(changes)), default=0)


def _whole_lines(size: int) -> int:
    return -(-size // CACHE_LINE) * CACHE_LINE


@dataclass(eq=False)
class _FunctionPlan:
    """Places the temporaries of one function.

    Attributes:
        buffers: The allocations of its buffers.
        scratch: The scratch memory of kernels, each with the kernel's call.
        has_workspace: Whether the function's caller passes the block.
    """

    module: Module
    function: Function
    buffers: _Buffers
    scratch: Sequence[_Temporary]
    has_workspace: bool

    def __post_init__(self) -> None:
        self.lifetimes = Lifetimes(ControlFlow(self.function))

    def run(self) -> None:
        """Assign offsets and rewrite the function."""
        on_heap, on_stack = self._temporaries(self.buffers.on_heap), self._temporaries(self.buffers.on_stack)
        for temporary in self.scratch:
            call = self.lifetimes.positions[id(temporary.site.instruction)]
            temporary.lifetime = self.lifetimes.of_accesses([call], call[0])
        marks, points = self._marks()
        self._share_stack(on_stack)
        if on_heap or self.scratch:
            self._share_heap(on_heap)
        plan = MemoryPlan(_planned([*on_heap, *self.scratch]), _planned(on_stack), points, marks)
        self.function.facts[MemoryPlan] = plan

    def _marks(self) -> tuple[list[tuple[int, Span]], int]:
        """The points of calls with the user's code, and the number of points."""
        marks: list[tuple[int, Span]] = []
        point = 0
        for name in self.lifetimes.flow.order:
            for instruction in self.lifetimes.flow.blocks[name].instructions:
                if instruction.is_call and instruction.span is not None:
                    marks.append((point, instruction.span))
                point += 2
        return marks, point

    def _temporaries(self, allocations: Iterable[_AllocationSite]) -> list[_Temporary]:
        return [
            _Temporary(site, _size(call), self.lifetimes.of_memory(call.value, buffer_scope(call)))
            for site in allocations
            for call in (site.instruction,)
        ]

    def _share_stack(self, temporaries: Sequence[_Temporary]) -> None:
        """Have one alloca hold the temporaries on the stack, if that saves enough."""
        size = _assign_offsets(temporaries)
        if size + _MIN_STACK_SAVING > sum(temporary.size for temporary in temporaries):
            for temporary, offset in zip(
                temporaries, accumulate((t.size for t in temporaries), initial=0), strict=False
            ):
                temporary.offset = offset
            return
        entry = self.function.entry
        removed = {id(temporary.site.instruction) for temporary in temporaries}
        entry.instructions[:] = [i for i in entry.instructions if id(i) not in removed]
        start = next(index for index, i in enumerate(entry.instructions) if i.opcode != "alloca")
        b = Builder(self.module, self.function, entry, start)
        base = b.retype(b.alloca(ArrayType(size, I8), "stack", CACHE_LINE), I8)
        for temporary in temporaries:
            self._redirect(b, temporary, base)

    def _share_heap(self, temporaries: Sequence[_Temporary]) -> None:
        """Have one block of memory hold the temporaries on the heap, and the scratch memory of kernels."""
        size = _assign_offsets([*temporaries, *self.scratch])
        base: Value
        if self.has_workspace:
            base = add_workspace_parameter(self.module, self.function)
            add_workspace_constant(self.module, self.function, size)
        elif len(temporaries) + len(self.scratch) == 1:
            return
        else:
            block, first = temporaries[0].site.block, temporaries[0].site.instruction
            b = Builder(self.module, self.function, block, block.instructions.index(first))
            base = emit_allocation(b, const_int(I64, size), "workspace", buffer_metadata())
        names = {str(temporary.site.instruction.result) for temporary in temporaries}
        _merge_null_checks(self.function, names, base)
        _merge_releases(self.function, names, None if self.has_workspace else base)
        for temporary in temporaries:
            allocation, block = temporary.site.instruction, temporary.site.block
            b = Builder(self.module, self.function, block, block.instructions.index(allocation))
            del block.instructions[b.index]
            self._redirect(b, temporary, base)
        for temporary in self.scratch:
            _pass_scratch(self.module, temporary.site, base, temporary.offset)

    def _redirect(self, b: Builder, temporary: _Temporary, base: Value) -> None:
        """Define the name of a temporary, whose allocation was removed, as its address in the block of memory."""
        allocation = temporary.site.instruction
        name = str(allocation.result)
        self.function.names.taken.discard(name)
        address = b.gep(I8, base, temporary.offset, name)
        if isinstance(allocation.source_type, ArrayType):
            address = b.retype(address, allocation.source_type)
        for use in self.lifetimes.uses.get(name, ()) if address != allocation.value else ():
            set_operand(use.instruction, use.index, address)


def _planned(temporaries: Iterable[_Temporary]) -> list[PlannedTemporary]:
    return [
        PlannedTemporary(str(site.result or site.callee), temporary.offset, temporary.size, temporary.lifetime)
        for temporary in temporaries
        for site in (temporary.site.instruction,)
    ]


def _merge_null_checks(function: Function, names: AbstractSet[str], base: Value) -> None:
    """Replace the null checks of all temporaries by one of their block."""
    for block in function.blocks:
        checks: dict[str, Value] = {}  # each check, or disjunction of checks, of this block: the one that replaces it
        remaining: list[Instruction] = []
        for instruction in block.instructions:
            name = str(instruction.result)
            if instruction.opcode == "icmp" and _is_one_of(instruction.operands[0], names):
                set_operand(instruction, 0, base)
                if checks:
                    checks[name] = next(iter(checks.values()))
                    continue
                checks[name] = instruction.value
            elif checks and instruction.opcode in ("or", "br") and _is_one_of(instruction.operands[0], checks):
                check = checks[str(instruction.operands[0]).removeprefix("%")]
                if instruction.opcode == "or" and _is_one_of(instruction.operands[1], checks):
                    checks[name] = check
                    continue
                set_operand(instruction, 0, check)
            remaining.append(instruction)
        block.instructions = remaining


def _merge_releases(function: Function, names: AbstractSet[str], base: Value | None) -> None:
    """Replace the frees of temporaries at each exit by one of their block, or by none if the caller owns it."""
    for block in function.blocks:
        frees = [i for i in block.instructions if i.callee == "free" and _is_one_of(i.args[0], names)]
        if base is not None and frees:
            set_operand(frees.pop(0), 1, base)
        removed = {id(i) for i in frees}
        block.instructions = [i for i in block.instructions if id(i) not in removed] if removed else block.instructions


def _is_one_of(value: Value, names: Container[str]) -> bool:
    return isinstance(value, Local) and value.name in names


# Allocators ----------------------------------------------------------------------------------------------------------


def choose_allocators(module: Module, context: LoweringContext) -> None:
    """Have malloc or the arena of a thread provide all memory that is still marked."""
    workspace = context.options.workspace
    uses_arena = False
    for function in module.functions:
        allocations = [i for i in function.instructions() if i.callee in ("malloc", "free") or i.opcode == "alloca"]
        marked = [i for i in allocations if is_buffer(i)]
        buffers = [i for i in marked if i.is_call]
        frames = [i for i in allocations if is_frame(i)]
        names = {str(buffer.result) for buffer in buffers}
        releases = [i for i in allocations if i.callee == "free" and _is_one_of(i.args[0], names)]
        contents = {content for call in frames if (content := frame_content(call))}
        for call in (*marked, *frames):
            remove_mark(call)
        if workspace == "arena":
            for call in (*buffers, *frames, *releases):
                use_arena(call)
            uses_arena = uses_arena or bool(buffers or frames)
        elif workspace == "argument" and is_kernel(module, function) and (buffers or frames):
            _remark_malloc(context, "the panels that threads and versions of a kernel pack")
        elif workspace == "argument" and buffers:
            reason = "it is local to this module, variadic, or used in it"
            message = f"@{function.name} calls malloc and takes no workspace: {reason}"
            context.remarks.add("missed", "to-tiles", message, function.span)
        elif workspace == "argument":
            for content in contents:
                _remark_malloc(context, content)
    if uses_arena:
        add_arena(module)


def _remark_malloc(context: LoweringContext, content: str) -> None:
    """Say what malloc allocates despite `--workspace=argument`."""
    context.remarks.add("missed", "to-tiles", f"malloc allocates {content} despite --workspace=argument", None)
