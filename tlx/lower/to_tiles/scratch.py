"""Working memory of kernels, and the merging of the allocations of a function into one.

Working memory of a kernel: one block for all its packed panels, 64-byte aligned, freed at the end.

One block of memory for all that a function takes from malloc, and the kernels that it calls.

Rewrite:
    define void @f(...) {                                        define void @f(...) {
      %a.heap = call ptr @malloc(i64 x), !tlx.buffer !{}           %a.heap = call ptr @malloc(i64 x + y + z)
      %b.heap = call ptr @malloc(i64 y), !tlx.buffer !{}           %b.heap = getelementptr i8, ptr %a.heap, i64 x
      call void @K(...)                                            %s = getelementptr i8, ptr %a.heap, i64 x + y
      call void @free(ptr %a.heap)                           ->    call void @K(..., ptr %s)
      call void @free(ptr %b.heap)                                 call void @free(ptr %a.heap)
    }                                                            }
    define internal void @K(...) {                               define internal void @K(..., ptr %scratch.heap) {
      %scratch.heap = call ptr @malloc(i64 z), !tlx.buffer !{}
      call void @free(ptr %scratch.heap)
    }                                                            }

The buffers of a function are made at its head and freed at every way out of it. glibc gives memory back to the system
where more of it is free than twice the largest block freed so far, and then each page is touched for the first time in
each call again; one block never is that much. The stages before know buffers apart, each by a block of its own.

What a kernel works in may lie behind the buffers of its callers, where these have some, and run on one thread: kernels
work one after the other. Nests around kernels may run on several.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.transform.rewrite import set_operand
from tlx.ir.types import I8, I64, VOID, ArrayType, FunctionType, PointerType, Type, bytes_of
from tlx.ir.values import ConstInt, Global, Keyword, Local, Value, const_int
from tlx.lower.context import BUFFER_METADATA, is_kernel, is_nest
from tlx.lower.to_tiles.select.caches import LINE

STACK_LIMIT: Final = 32 << 10


@dataclass(eq=False)
class Scratch:
    """Asks for buffers first (`reserve`), then makes them (`allocate`); `release` ends their life.

    Attributes:
        size: Bytes reserved so far.
        joins: Whether what comes from the heap may be a part of the one block of its function; see `one_block`.
        given: Memory of somebody else that the buffers are made in, aligned, and as large as `size` says in the end.
    """

    size: int = 0
    joins: bool = True
    given: Value | None = None
    _offsets: list[tuple[int, Type]] = field(default_factory=list[tuple[int, Type]])
    _block: Value | None = None

    def reserve(self, element: Type, count: int) -> int:
        """Note a buffer of `count` elements; returns its number."""
        self._offsets.append((self.size, element))
        self.size += -(-count * bytes_of(element) // LINE) * LINE
        return len(self._offsets) - 1

    def allocate(self, b: Builder) -> list[Value]:
        """Make all reserved buffers; returns a pointer to each."""
        if not self._offsets:
            return []
        if self.given is not None:
            base = self.given
        elif self.size <= STACK_LIMIT:
            base: Value = b.retype(b.alloca(ArrayType(self.size, I8), "scratch", LINE), I8)
        else:
            base = self._from_heap(b)
        return [b.retype(b.gep(I8, base, offset), element) for offset, element in self._offsets]

    def _from_heap(self, b: Builder) -> Value:
        pointer = b.pointer(I8)
        call = b.call_named("malloc", pointer, [const_int(I64, self.size + LINE)], "scratch.heap")
        if self.joins:
            call.text, call.trailer = call.text + BUFFER_METADATA, BUFFER_METADATA
        self._block = call.value
        failed = b.icmp("eq", self._block, Keyword(pointer, "null"))
        before = b.block
        ready = b.new_block("scratch.ready", before)
        trap = b.new_block("scratch.failed", ready)
        b.branch_if(failed, trap, ready)
        b.at_end(trap)
        b.call_named("llvm.trap", VOID, [])
        b.emit("unreachable", VOID, [], "unreachable")
        b.at_end(ready)
        address = b.cast("ptrtoint", self._block, I64)
        return b.gep(I8, self._block, b.binary("and", b.sub(const_int(I64, 0), address), const_int(I64, LINE - 1)))

    def release(self, b: Builder) -> None:
        """Free what came from the heap."""
        if self._block is not None:
            assert isinstance(self._block.type, PointerType)
            b.call_named("free", VOID, [self._block])


_SCRATCH: Final = "scratch"


@dataclass(frozen=True, slots=True)
class _InstructionPlace:
    """An instruction and where it stands."""

    function: Function
    block: Block
    instruction: Instruction


def merge_buffers(module: Module) -> None:
    """Take the buffers of each function, and what its kernels work in, from one block of memory."""
    buffers = {function.name: _buffers(function) for function in module.functions}
    used = _uses(module) if any(buffers.values()) else {}
    behind: dict[str, list[tuple[_InstructionPlace, int]]] = {}
    for kernel in module.functions:
        if is_kernel(module, kernel) and len(buffers[kernel.name]) == 1:
            (own,) = buffers[kernel.name]
            calls = _calls(used.get(kernel.name, []), kernel.name)
            if calls and all(buffers[c.function.name] and not _is_ours(module, c.function) for c in calls):
                _take_workspace_parameter(module, kernel, own)
                buffers[kernel.name] = []
                for call in calls:
                    behind.setdefault(call.function.name, []).append((call, _size(own.instruction)))
    for name, found in buffers.items():
        if found:
            _join(module, found, behind.get(name, ()))


def _is_ours(module: Module, function: Function) -> bool:
    return is_kernel(module, function) or is_nest(module, function)


def _buffers(function: Function) -> list[_InstructionPlace]:
    places = (_InstructionPlace(function, block, i) for block in function.blocks for i in block.instructions)
    return [place for place in places if BUFFER_METADATA in place.instruction.text]


def _uses(module: Module) -> dict[str, list[_InstructionPlace]]:
    """The instructions that use each function or global."""
    found: dict[str, list[_InstructionPlace]] = {}
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                for name in {operand.name for operand in instruction.operands if isinstance(operand, Global)}:
                    found.setdefault(name, []).append(_InstructionPlace(function, block, instruction))
    return found


def _calls(used: list[_InstructionPlace], name: str) -> list[_InstructionPlace]:
    """All calls of a function; none where it is used otherwise, too."""
    return used if all(place.instruction.callee == name for place in used) else []


def _take_workspace_parameter(module: Module, kernel: Function, own: _InstructionPlace) -> None:
    """Have a kernel be given what it works in."""
    call = own.instruction
    parameters = [(a.type, a.attributes, a.name) for a in kernel.arguments]
    module.remove(kernel)
    given = (call.value.type, "noalias nonnull", str(call.result))
    made = new_function(module, kernel.name, [*parameters, given], kernel.signature.attributes)
    own.block.instructions.remove(call)
    _remove_frees(kernel, {str(call.result)})
    made.blocks, made.names = kernel.blocks, kernel.names


def _join(module: Module, found: Sequence[_InstructionPlace], behind: Sequence[tuple[_InstructionPlace, int]]) -> None:
    """Have the first buffer's block hold the others, and behind them what kernels work in, one after the other."""
    first, *others = found
    call, size = first.instruction, _size(first.instruction)
    for other in others:
        function, block = other.function, other.block
        index = block.instructions.index(other.instruction)
        block.instructions.remove(other.instruction)
        name = str(other.instruction.result)
        function.names.taken.discard(name)
        Builder(module, function, block, index).gep(I8, call.value, size, name)
        size += _size(other.instruction)
    _remove_frees(first.function, {str(other.instruction.result) for other in others})
    for place, _ in behind:
        _pass_workspace(module, place, call.value, size)
    set_operand(call, 1, const_int(I64, size + max((own for _, own in behind), default=0)))
    call.text = call.text.replace(BUFFER_METADATA, "")
    call.trailer = call.trailer.replace(BUFFER_METADATA, "")


def _pass_workspace(module: Module, place: _InstructionPlace, memory: Value, offset: int) -> None:
    """Call a kernel with what it works in, so many bytes behind an address."""
    index = place.block.instructions.index(place.instruction)
    del place.block.instructions[index]
    b = Builder(module, place.function, place.block, index)
    args = [*place.instruction.args, b.gep(I8, memory, offset, _SCRATCH)]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(module.pointer_to(type_), str(place.instruction.callee)), type_, args)


def _remove_frees(function: Function, buffers: AbstractSet[str]) -> None:
    """Take out what frees buffers of these names."""
    if not buffers:
        return
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i.callee != "free" or not _frees(i, buffers)]


def _frees(call: Instruction, buffers: AbstractSet[str]) -> bool:
    return any(isinstance(memory, Local) and memory.name in buffers for memory in call.args)


def _size(call: Instruction) -> int:
    (size,) = call.args
    assert isinstance(size, ConstInt)
    return size.value
