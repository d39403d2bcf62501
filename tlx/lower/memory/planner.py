"""The memory planner: one block of memory for the temporaries of a function; those of disjoint lifetimes overlap.

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

Temporaries are calls of malloc with `BUFFER_METADATA`, at the head of the function and freed at every way out of it:
what stage 1 computes and copies, and what stage 2 packs for several products. What a kernel works in is a temporary of
its callers, where these have others; it lives for the length of the call. The stages before the planner know
temporaries apart, each by a block of its own.

Offsets are assigned greedily, the largest temporary first, each at the lowest address that is free in all of its
lifetime (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, "greedy by size").

One block is also faster than several: glibc gives memory back to the system where more of it is free than twice the
largest block freed so far, and then each page is touched for the first time again in each call.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.analysis.control_flow import ControlFlow, natural_loops
from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.functions import Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Block, Instruction
from tlx.ir.module import Module
from tlx.ir.transform.rewrite import set_operand, uses
from tlx.ir.types import I8, I64, VOID, FunctionType
from tlx.ir.values import ConstInt, Global, Local, Value, const_int
from tlx.lower.context import BUFFER_METADATA, INDEPENDENT_METADATA, buffer_metadata, is_kernel, is_nest
from tlx.lower.memory.aliases import Position
from tlx.lower.memory.allocators import Workspace
from tlx.lower.memory.lifetimes import Lifetimes, LiveInterval, intervals_overlap
from tlx.lower.memory.workspace import (
    ACQUIRE,
    RELEASE,
    add_arena,
    add_workspace_parameter,
    may_take_workspace,
    note_workspace_size,
)

_LINE: Final = 64
"""Bytes of a line of the caches, which temporaries begin at."""
_DERIVES: Final = BINARY_OPCODES | CAST_OPCODES | {"getelementptr", "phi", "select", "freeze"}
_NO_ACCESS: Final = frozenset({"icmp", "#dbg"})
_OURS: Final = ("tlx.", "llvm.")


def plan_memory(module: Module, *, threads: bool, workspace: Workspace = "malloc") -> None:
    """Give each function one block of memory for all its temporaries, and for what its kernels work in.

    Args:
        module: Where the functions are.
        threads: Whether the iterations of loops that are marked as independent may run at the same time.
        workspace: Who allocates.
    """
    buffers = {function.name: _buffers(function) for function in module.functions}
    if not any(buffers.values()):
        return
    used = _users(module)
    given = {f.name for f in module.functions if workspace == "argument" and _is_given(module, f, used)}
    scratch: dict[str, list[_Temporary]] = {}
    for kernel in module.functions:
        if not is_kernel(module, kernel) or len(buffers[kernel.name]) != 1:
            continue
        callers = used.get(kernel.name, [])
        if callers and all(_can_provide(module, call, kernel, buffers, given, threads=threads) for call in callers):
            (own,) = buffers.pop(kernel.name)
            _take_workspace_parameter(module, kernel, own)
            for place in callers:
                scratch.setdefault(place.function.name, []).append(_Temporary(place, _size(own.instruction)))
    for function in module.functions:
        found, works = buffers.get(function.name, []), scratch.get(function.name, [])
        if found or works:
            _FunctionPlan(module, function, found, works, is_given=function.name in given).run()
    _allocate_what_is_left(module, workspace)


def _is_given(module: Module, function: Function, used: Mapping[str, object]) -> bool:
    """Whether the caller of a function hands over its memory."""
    is_own = is_kernel(module, function) or is_nest(module, function) or function.name.startswith("tlx.")
    return not is_own and function.name not in used and may_take_workspace(module, function)


def _can_provide(
    module: Module,
    call: _InstructionPlace,
    kernel: Function,
    buffers: Mapping[str, Sequence[_InstructionPlace]],
    given: Container[str],
    *,
    threads: bool,
) -> bool:
    """Whether a caller has memory for what a kernel works in."""
    if call.instruction.callee != kernel.name or _is_concurrent(module, call, threads):
        return False
    return bool(buffers.get(call.function.name)) or call.function.name in given


def _allocate_what_is_left(module: Module, workspace: Workspace) -> None:
    """Have malloc, or the arena of each thread, give each block of memory that is still marked."""
    left = [place for function in module.functions for place in _buffers(function)]
    if left and workspace == "arena":
        add_arena(module)
    for place in left:
        _forget_mark(place.instruction)
    if workspace != "arena":
        return
    for function in {place.function.name: place.function for place in left}.values():
        names = {str(place.instruction.result) for place in left if place.function is function}
        for instruction in function.instructions():
            if instruction.result in names:
                _call_instead(instruction, ACQUIRE)
            elif instruction.callee == "free" and _is_in(instruction.args[0], names):
                _call_instead(instruction, RELEASE)


def _call_instead(call: Instruction, name: str) -> None:
    set_operand(call, 0, Global(call.operands[0].type, name))


@dataclass(frozen=True, eq=False, slots=True)
class _InstructionPlace:
    """An instruction and where it stands."""

    function: Function
    block: Block
    instruction: Instruction


@dataclass(eq=False, slots=True)
class _Temporary:
    """Memory to place.

    Attributes:
        place: The call of malloc that would give it, or of the kernel that works in it.
        size: Bytes.
        lifetime: When it is needed.
        offset: Where it lies in the block of its function.
    """

    place: _InstructionPlace
    size: int
    lifetime: Sequence[LiveInterval] = ()
    offset: int = 0

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.offset + self.size


def assign_offsets(temporaries: Iterable[_Temporary]) -> int:
    """Place temporaries so that those that live at the same time do not overlap; gives the bytes that all need."""
    placed: list[_Temporary] = []
    for temporary in sorted(temporaries, key=lambda t: -t.size):
        taken = [other for other in placed if intervals_overlap(other.lifetime, temporary.lifetime)]
        for other in sorted(taken, key=lambda t: t.offset):
            if temporary.end <= other.offset:
                break
            temporary.offset = max(temporary.offset, -(-other.end // _LINE) * _LINE)
        placed.append(temporary)
    return max((temporary.end for temporary in placed), default=0)


@dataclass(eq=False)
class _FunctionPlan:
    """Places the temporaries of one function.

    Attributes:
        buffers: The calls of malloc.
        scratch: The calls of kernels that are given what they work in.
        is_given: Whether the function's caller hands over the memory.
    """

    module: Module
    function: Function
    buffers: Sequence[_InstructionPlace]
    scratch: Sequence[_Temporary]
    is_given: bool
    _positions: dict[int, Position] = field(init=False)

    def __post_init__(self) -> None:
        self.lifetimes = Lifetimes(ControlFlow(self.function))
        self.uses = uses(self.function)
        self._positions = {
            id(instruction): (block.name, index)
            for block in self.function.blocks
            for index, instruction in enumerate(block.instructions)
        }

    def run(self) -> None:
        """Assign offsets and rewrite the function."""
        temporaries = [_Temporary(p, _size(p.instruction), self._lifetime(p.instruction)) for p in self.buffers]
        for temporary in self.scratch:
            temporary.lifetime = self.lifetimes.of([self._positions[id(temporary.place.instruction)]])
        size = assign_offsets([*temporaries, *self.scratch])
        self._allocate(temporaries, size)

    # Lifetimes -------------------------------------------------------------------------------------------------

    def _lifetime(self, allocation: Instruction) -> Sequence[LiveInterval]:
        """When a buffer is needed: from the first access to the last one; always, where its address is stored."""
        accesses: list[Position] = []
        pending = [str(allocation.result)]
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            for use in self.uses.get(name, ()) if name not in seen else ():
                instruction = use.instruction
                if instruction.opcode in _NO_ACCESS or instruction.callee == "free":
                    continue
                if instruction.opcode in _DERIVES:
                    pending.append(str(instruction.result))
                elif _may_keep(instruction, use.index):
                    return self.lifetimes.always
                else:
                    accesses.append(self._positions[id(instruction)])
            seen.add(name)
        mark = BUFFER_METADATA.search(allocation.text)
        return self.lifetimes.of(accesses, str(mark[1]) if mark else "")

    # Rewriting -------------------------------------------------------------------------------------------------

    def _allocate(self, temporaries: Sequence[_Temporary], size: int) -> None:
        """Have one block of memory hold all temporaries."""
        base: Value
        if self.is_given:
            base = add_workspace_parameter(self.module, self.function)
            note_workspace_size(self.module, self.function, size)
        elif len(temporaries) + len(self.scratch) == 1:
            return
        else:
            base = self._call_malloc(size)
        _check_once(self.function, self._names, base)
        _free_once(self.function, self._names, None if self.is_given else base)
        for temporary in temporaries:
            self._place(temporary, base)
        for temporary in self.scratch:
            _pass_workspace(self.module, temporary.place, base, temporary.offset)

    def _call_malloc(self, size: int) -> Value:
        """The block of memory, where the first temporary is allocated."""
        block, first = self.buffers[0].block, self.buffers[0].instruction
        b = Builder(self.module, self.function, block, block.instructions.index(first))
        call = b.call_named("malloc", first.type, [const_int(I64, size)], "workspace")
        call.text = call.text.replace("= call ", "= call noalias ", 1) + buffer_metadata()
        call.trailer = buffer_metadata()
        return call.value

    @property
    def _names(self) -> frozenset[str]:
        """Names of what the calls of malloc give."""
        return frozenset(str(place.instruction.result) for place in self.buffers)

    def _place(self, temporary: _Temporary, base: Value) -> None:
        """Replace a call of malloc by an address in the block of memory."""
        allocation, block = temporary.place.instruction, temporary.place.block
        name = str(allocation.result)
        b = Builder(self.module, self.function, block, block.instructions.index(allocation))
        del block.instructions[b.index]
        self.function.names.taken.discard(name)
        address = b.gep(I8, base, temporary.offset, name)
        for use in self.uses.get(name, ()) if address == base else ():
            set_operand(use.instruction, use.index, base)


def _forget_mark(call: Instruction) -> None:
    call.text, call.trailer = (BUFFER_METADATA.sub("", text) for text in (call.text, call.trailer))


def _check_once(function: Function, names: AbstractSet[str], base: Value) -> None:
    """Replace the checks of what malloc gave for each temporary by one check of the block they lie in."""
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
    """Replace what frees temporaries at each way out by what frees the block they lie in, if it is the function's."""
    for block in function.blocks:
        frees = [i for i in block.instructions if i.callee == "free" and _is_in(i.args[0], names)]
        if base is not None and frees:
            set_operand(frees.pop(0), 1, base)
        gone = {id(i) for i in frees}
        block.instructions = [i for i in block.instructions if id(i) not in gone] if gone else block.instructions


def _may_keep(instruction: Instruction, index: int) -> bool:
    """Whether an instruction may keep an address, its operand of that index, for later."""
    if instruction.opcode == "store":
        return index == 0
    return instruction.opcode != "load" and not str(instruction.callee).startswith(_OURS)


# Kernels -------------------------------------------------------------------------------------------------------------


def _is_concurrent(module: Module, call: _InstructionPlace, threads: bool) -> bool:
    """Whether several threads may make a call at the same time, within one run of the user's function."""
    if is_kernel(module, call.function) or is_nest(module, call.function):
        return True
    if not threads or not any(INDEPENDENT_METADATA in block.terminator.text for block in call.function.blocks):
        return False
    flow = ControlFlow(call.function)
    return any(
        call.block.name in loop.blocks
        and any(INDEPENDENT_METADATA in flow.blocks[name].terminator.text for name in loop.blocks)
        for loop in natural_loops(flow)
    )


def _buffers(function: Function) -> list[_InstructionPlace]:
    places = (_InstructionPlace(function, block, i) for block in function.blocks for i in block.instructions)
    return [
        place
        for place in places
        if place.instruction.callee == "malloc" and BUFFER_METADATA.search(place.instruction.text)
    ]


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
    """Have a kernel be given what it works in."""
    call = own.instruction
    parameters = [(a.type, a.attributes, a.name) for a in kernel.arguments]
    module.remove(kernel)
    given = (call.value.type, "noalias nonnull", str(call.result))
    made = new_function(module, kernel.name, [*parameters, given], kernel.signature.attributes)
    own.block.instructions.remove(call)
    name = str(call.result)
    for block in kernel.blocks:
        block.instructions = [i for i in block.instructions if i.callee != "free" or not _is_in(i.args[0], {name})]
    made.blocks, made.names = kernel.blocks, kernel.names


def _pass_workspace(module: Module, place: _InstructionPlace, base: Value, offset: int) -> None:
    """Call a kernel with what it works in, so many bytes behind an address."""
    index = place.block.instructions.index(place.instruction)
    del place.block.instructions[index]
    b = Builder(module, place.function, place.block, index)
    args = [*place.instruction.args, b.gep(I8, base, offset, "scratch")]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(module.pointer_to(type_), str(place.instruction.callee)), type_, args)


def _size(call: Instruction) -> int:
    (size,) = call.args
    assert isinstance(size, ConstInt)
    return size.value
