"""The memory planner: one block of memory for the temporaries of a function; those with disjoint live ranges overlap.

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

Temporaries are the buffers of `tlx.lower.memory.allocation`: what stage 1 computes and copies, and what stage 2 packs
for several products. The scratch memory of a kernel becomes a temporary of its callers, if these have others; it is
live during the call only. Until the planner runs, each temporary has a block of its own, so that alias analysis tells
them apart.

Buffers on the stack are placed in the same way in one alloca, if that saves a page:

      %a.buf = alloca [4096 x float], align 64, !tlx.buffer !{}    %stack = alloca [16384 x i8], align 64
      %b.buf = alloca [4000 x float], align 64, !tlx.buffer !{}    (and %stack stands for %a.buf and %b.buf)

Offsets are assigned greedily, the largest temporary first, each at the lowest address that is free in all of its live
range (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, "greedy by size"). Those of
one size are placed in the order in which their live ranges begin, which is optimal where all have one size.

One block is also faster than several: glibc gives memory back to the system where more of it is free than twice the
largest block freed so far, and then each page is touched for the first time again in each call.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from tlx.ir.analysis.control_flow import ControlFlow
from tlx.ir.analysis.loops import FunctionLoops, has_independent_loops
from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.transform.rewrite import set_operand
from tlx.ir.types import I8, I64, VOID, ArrayType, FunctionType, bytes_of
from tlx.ir.values import ConstInt, Global, Local, Value, const_int
from tlx.lower.context import LoweringContext, is_kernel, is_nest
from tlx.lower.memory.allocation import (
    CACHE_LINE,
    buffer_metadata,
    buffer_scope,
    emit_allocation,
    frame_content,
    is_buffer,
    is_frame,
    remove_mark,
    use_arena,
)
from tlx.lower.memory.lifetimes import Lifetimes, LiveInterval, intervals_overlap
from tlx.lower.memory.workspace import (
    add_arena,
    add_workspace_parameter,
    may_take_workspace,
    note_workspace_size,
)

_LEAST_SAVED: Final = 4 << 10
"""Bytes of stack, a page, that sharing must save: LLVM keeps small buffers in registers if each has an alloca."""


def plan_memory(module: Module, context: LoweringContext, *, threads: bool) -> None:
    """Give each function one block of memory for all its temporaries and the scratch memory of its kernels.

    Args:
        module: Where the functions are.
        context: Its options say who allocates; its remarks tell which memory malloc gives all the same.
        threads: Whether the iterations of loops that are marked as independent may run at the same time.
    """
    buffers = {function.name: _buffers(function) for function in module.functions}
    if any(found.on_heap or found.on_stack for found in buffers.values()):
        _share_blocks(module, buffers, threads=threads, is_callers=context.options.workspace == "argument")
    _allocate_what_is_left(module, context)


def _share_blocks(module: Module, buffers: Mapping[str, _Buffers], *, threads: bool, is_callers: bool) -> None:
    """Replace the buffers of each function by parts of one block, which may be its caller's."""
    used = _users(module)
    takers = {f.name for f in module.functions if is_callers and _takes_workspace(module, f, used)}
    scratch: dict[str, list[_Temporary]] = {}
    for kernel in module.functions:
        if not is_kernel(module, kernel) or len(buffers[kernel.name].on_heap) != 1:
            continue
        callers = used.get(kernel.name, [])
        if callers and all(_can_provide(module, call, kernel, buffers, takers, threads=threads) for call in callers):
            own = buffers[kernel.name].on_heap.pop()
            _take_workspace_parameter(module, kernel, own)
            for place in callers:
                scratch.setdefault(place.function.name, []).append(_Temporary(place, _size(own.instruction)))
    for function in module.functions:
        found, works = buffers[function.name], scratch.get(function.name, [])
        if found.on_heap or works or len(found.on_stack) > 1:
            _FunctionPlan(module, function, found, works, is_callers=function.name in takers).run()


def _takes_workspace(module: Module, function: Function, used: Mapping[str, object]) -> bool:
    """Whether a function's caller passes its memory."""
    is_own = is_kernel(module, function) or is_nest(module, function) or function.name.startswith("tlx.")
    return not is_own and function.name not in used and may_take_workspace(module, function)


def _can_provide(
    module: Module,
    call: _InstructionPlace,
    kernel: Function,
    buffers: Mapping[str, _Buffers],
    takers: Container[str],
    *,
    threads: bool,
) -> bool:
    """Whether a caller has a block of memory that the scratch memory of a kernel can be part of."""
    if call.instruction.callee != kernel.name or _is_concurrent(module, call, threads):
        return False
    return bool(buffers[call.function.name].on_heap) or call.function.name in takers


def _allocate_what_is_left(module: Module, context: LoweringContext) -> None:
    """Allocate what is still marked by malloc, or from the arena of each thread."""
    workspace = context.options.workspace
    uses_arena = False
    for function in module.functions:
        calls = [i for i in function.instructions() if i.callee in ("malloc", "free") or i.opcode == "alloca"]
        marked = [i for i in calls if is_buffer(i)]
        buffers = [i for i in marked if i.is_call]
        frames = [i for i in calls if is_frame(i)]
        names = {str(buffer.result) for buffer in buffers}
        releases = [i for i in calls if i.callee == "free" and _is_in(i.args[0], names)]
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
    """Say what malloc allocates in spite of `--workspace=argument`."""
    context.remarks.add("missed", "to-tiles", f"malloc, not --workspace=argument, allocates {content}", None)


@dataclass(frozen=True, eq=False, slots=True)
class _InstructionPlace:
    """An instruction and where it stands."""

    function: Function
    block: Block
    instruction: Instruction


@dataclass(frozen=True, eq=False, slots=True)
class _Buffers:
    """The allocations of a function's buffers: calls of malloc, and allocas."""

    on_heap: list[_InstructionPlace]
    on_stack: list[_InstructionPlace]


@dataclass(eq=False, slots=True)
class _Temporary:
    """Memory to place.

    Attributes:
        place: Its allocation, or the call of the kernel whose scratch memory it is.
        size: Bytes.
        lifetime: Where it is live.
        offset: Bytes from the start of the function's block.
    """

    place: _InstructionPlace
    size: int
    lifetime: Sequence[LiveInterval] = ()
    offset: int = 0

    @property
    def end(self) -> int:
        """The offset of the first byte after it."""
        return self.offset + self.size


def assign_offsets(temporaries: Iterable[_Temporary]) -> int:
    """Place temporaries so that those that are live at the same time do not overlap; returns the bytes of the block."""
    placed: list[_Temporary] = []
    for temporary in sorted(temporaries, key=lambda t: (-t.size, t.lifetime[:1])):
        taken = [other for other in placed if intervals_overlap(other.lifetime, temporary.lifetime)]
        for other in sorted(taken, key=lambda t: t.offset):
            if temporary.end <= other.offset:
                break
            temporary.offset = max(temporary.offset, -(-other.end // CACHE_LINE) * CACHE_LINE)
        placed.append(temporary)
    return max((temporary.end for temporary in placed), default=0)


@dataclass(eq=False)
class _FunctionPlan:
    """Places the temporaries of one function.

    Attributes:
        buffers: The allocations of its buffers.
        scratch: The scratch memory of kernels, each with the kernel's call.
        is_callers: Whether the function's caller passes the block.
    """

    module: Module
    function: Function
    buffers: _Buffers
    scratch: Sequence[_Temporary]
    is_callers: bool

    def __post_init__(self) -> None:
        self.lifetimes = Lifetimes(ControlFlow(self.function))

    def run(self) -> None:
        """Assign offsets and rewrite the function."""
        on_heap, on_stack = self._temporaries(self.buffers.on_heap), self._temporaries(self.buffers.on_stack)
        for temporary in self.scratch:
            call = self.lifetimes.positions[id(temporary.place.instruction)]
            temporary.lifetime = self.lifetimes.of([call], call[0])
        self._share_stack(on_stack)
        if on_heap or self.scratch:
            self._share_heap(on_heap)

    def _temporaries(self, allocations: Iterable[_InstructionPlace]) -> list[_Temporary]:
        return [
            _Temporary(place, _size(call), self.lifetimes.of_memory(call.value, buffer_scope(call)))
            for place in allocations
            for call in (place.instruction,)
        ]

    def _share_heap(self, temporaries: Sequence[_Temporary]) -> None:
        """Have one block of memory hold the temporaries on the heap, and the scratch memory of kernels."""
        size = assign_offsets([*temporaries, *self.scratch])
        base: Value
        if self.is_callers:
            base = add_workspace_parameter(self.module, self.function)
            note_workspace_size(self.module, self.function, size)
        elif len(temporaries) + len(self.scratch) == 1:
            return
        else:
            block, first = temporaries[0].place.block, temporaries[0].place.instruction
            b = Builder(self.module, self.function, block, block.instructions.index(first))
            base = emit_allocation(b, const_int(I64, size), "workspace", buffer_metadata())
        names = {str(temporary.place.instruction.result) for temporary in temporaries}
        _check_once(self.function, names, base)
        _free_once(self.function, names, None if self.is_callers else base)
        for temporary in temporaries:
            allocation, block = temporary.place.instruction, temporary.place.block
            b = Builder(self.module, self.function, block, block.instructions.index(allocation))
            del block.instructions[b.index]
            self._place(b, temporary, base)
        for temporary in self.scratch:
            _pass_workspace(self.module, temporary.place, base, temporary.offset)

    def _share_stack(self, temporaries: Sequence[_Temporary]) -> None:
        """Have one alloca hold the temporaries on the stack, if that saves enough."""
        if assign_offsets(temporaries) + _LEAST_SAVED > sum(temporary.size for temporary in temporaries):
            return
        entry = self.function.entry
        gone = {id(temporary.place.instruction) for temporary in temporaries}
        entry.instructions[:] = [i for i in entry.instructions if id(i) not in gone]
        start = next(index for index, i in enumerate(entry.instructions) if i.opcode != "alloca")
        b = Builder(self.module, self.function, entry, start)
        size = max(temporary.end for temporary in temporaries)
        base = b.retype(b.alloca(ArrayType(size, I8), "stack", CACHE_LINE), I8)
        for temporary in temporaries:
            self._place(b, temporary, base)

    def _place(self, b: Builder, temporary: _Temporary, base: Value) -> None:
        """Have the name of a temporary, whose allocation is gone, stand for an address in the block of memory."""
        allocation = temporary.place.instruction
        name = str(allocation.result)
        self.function.names.taken.discard(name)
        address = b.gep(I8, base, temporary.offset, name)
        if isinstance(allocation.source_type, ArrayType):
            address = b.retype(address, allocation.source_type)
        for use in self.lifetimes.uses.get(name, ()) if address != allocation.value else ():
            set_operand(use.instruction, use.index, address)


def _check_once(function: Function, names: AbstractSet[str], base: Value) -> None:
    """Replace the null checks of all temporaries by one of their block."""
    for block in function.blocks:
        same: dict[str, Value] = {}
        kept: list[Instruction] = []
        for instruction in block.instructions:
            name = str(instruction.result)
            if instruction.opcode == "icmp" and _is_in(instruction.operands[0], names):
                set_operand(instruction, 0, base)
                if same:
                    same[name] = next(iter(same.values()))
                    continue
                same[name] = instruction.value
            elif same and instruction.opcode in ("or", "br") and _is_in(instruction.operands[0], same):
                known = same[str(instruction.operands[0]).removeprefix("%")]
                if instruction.opcode == "or" and _is_in(instruction.operands[1], same):
                    same[name] = known
                    continue
                set_operand(instruction, 0, known)
            kept.append(instruction)
        block.instructions = kept


def _is_in(value: Value, names: Container[str]) -> bool:
    return isinstance(value, Local) and value.name in names


def _free_once(function: Function, names: AbstractSet[str], base: Value | None) -> None:
    """Replace the frees of temporaries at each exit by one of their block, or by none if the caller owns it."""
    for block in function.blocks:
        frees = [i for i in block.instructions if i.callee == "free" and _is_in(i.args[0], names)]
        if base is not None and frees:
            set_operand(frees.pop(0), 1, base)
        gone = {id(i) for i in frees}
        block.instructions = [i for i in block.instructions if id(i) not in gone] if gone else block.instructions


# Kernels -------------------------------------------------------------------------------------------------------------


def _is_concurrent(module: Module, call: _InstructionPlace, threads: bool) -> bool:
    """Whether several threads may execute a call at the same time, within one call of the user's function."""
    if is_kernel(module, call.function) or is_nest(module, call.function):
        return True
    is_shared = threads and has_independent_loops(call.function)
    return is_shared and bool(FunctionLoops(call.function).around(call.block))


def _buffers(function: Function) -> _Buffers:
    found = _Buffers([], [])
    for block in function.blocks:
        for i in block.instructions:
            if is_buffer(i):
                (found.on_heap if i.is_call else found.on_stack).append(_InstructionPlace(function, block, i))
    return found


def _users(module: Module) -> dict[str, list[_InstructionPlace]]:
    """The instructions that use each function or global."""
    found: dict[str, list[_InstructionPlace]] = {}
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                for name in {operand.name for operand in instruction.operands if isinstance(operand, Global)}:
                    found.setdefault(name, []).append(_InstructionPlace(function, block, instruction))
    return found


def _take_workspace_parameter(module: Module, kernel: Function, own: _InstructionPlace) -> None:
    """Give a kernel a parameter for its scratch memory."""
    call = own.instruction
    parameters = [(a.type, a.attributes, a.name) for a in kernel.arguments]
    module.remove(kernel)
    parameter = (call.value.type, "noalias nonnull", str(call.result))
    made = new_function(module, kernel.name, [*parameters, parameter], kernel.signature.attributes)
    own.block.instructions.remove(call)
    name = str(call.result)
    for block in kernel.blocks:
        block.instructions = [i for i in block.instructions if i.callee != "free" or not _is_in(i.args[0], {name})]
    made.blocks, made.names = kernel.blocks, kernel.names


def _pass_workspace(module: Module, place: _InstructionPlace, base: Value, offset: int) -> None:
    """Pass a kernel its scratch memory: an address and an offset in bytes."""
    index = place.block.instructions.index(place.instruction)
    del place.block.instructions[index]
    b = Builder(module, place.function, place.block, index)
    args = [*place.instruction.args, b.gep(I8, base, offset, "scratch")]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(module.pointer_to(type_), str(place.instruction.callee)), type_, args)


def _size(allocation: Instruction) -> int:
    """Bytes that an allocation reserves."""
    if isinstance(allocation.source_type, ArrayType):
        return allocation.source_type.count * bytes_of(allocation.source_type.element)
    (size,) = allocation.args
    assert isinstance(size, ConstInt)
    return size.value
