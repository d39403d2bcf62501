"""One block of memory for all that a function takes from malloc, and the kernels that it calls.

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
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import set_operand
from tlx.ir.types import I8, I64, VOID, FunctionType
from tlx.ir.values import ConstInt, Global, Local, Value, const_int
from tlx.lower.stage import BUFFER, is_kernel, is_nest

_SCRATCH: Final = "scratch"


@dataclass(frozen=True, slots=True)
class _Place:
    """An instruction and where it stands."""

    function: Function
    block: Block
    instruction: Instruction


def join_buffers(module: Module) -> None:
    """Take the buffers of each function, and what its kernels work in, from one block of memory."""
    buffers = {function.name: _buffers(function) for function in module.functions}
    used = _uses(module) if any(buffers.values()) else {}
    behind: dict[str, list[tuple[_Place, int]]] = {}
    for kernel in module.functions:
        if is_kernel(module, kernel) and len(buffers[kernel.name]) == 1:
            (own,) = buffers[kernel.name]
            calls = _calls(used.get(kernel.name, []), kernel.name)
            if calls and all(buffers[c.function.name] and not _is_ours(module, c.function) for c in calls):
                _take_from_caller(module, kernel, own)
                buffers[kernel.name] = []
                for call in calls:
                    behind.setdefault(call.function.name, []).append((call, _size(own.instruction)))
    for name, found in buffers.items():
        if found:
            _join(module, found, behind.get(name, ()))


def _is_ours(module: Module, function: Function) -> bool:
    return is_kernel(module, function) or is_nest(module, function)


def _buffers(function: Function) -> list[_Place]:
    places = (_Place(function, block, i) for block in function.blocks for i in block.instructions)
    return [place for place in places if BUFFER in place.instruction.text]


def _uses(module: Module) -> dict[str, list[_Place]]:
    """The instructions that use each function or global."""
    found: dict[str, list[_Place]] = {}
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                for name in {operand.name for operand in instruction.operands if isinstance(operand, Global)}:
                    found.setdefault(name, []).append(_Place(function, block, instruction))
    return found


def _calls(used: list[_Place], name: str) -> list[_Place]:
    """All calls of a function; none where it is used otherwise, too."""
    return used if all(place.instruction.callee == name for place in used) else []


def _take_from_caller(module: Module, kernel: Function, own: _Place) -> None:
    """Have a kernel be given what it works in."""
    call = own.instruction
    parameters = [(a.type, a.attributes, a.name) for a in kernel.arguments]
    module.remove(kernel)
    given = (call.value.type, "noalias nonnull", str(call.result))
    made = new_function(module, kernel.name, [*parameters, given], kernel.signature.attributes)
    own.block.instructions.remove(call)
    _remove_frees(kernel, {str(call.result)})
    made.blocks, made.names = kernel.blocks, kernel.names


def _join(module: Module, found: Sequence[_Place], behind: Sequence[tuple[_Place, int]]) -> None:
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
        _give(module, place, call.value, size)
    set_operand(call, 1, const_int(I64, size + max((own for _, own in behind), default=0)))
    call.text = call.text.replace(BUFFER, "")
    call.trailer = call.trailer.replace(BUFFER, "")


def _give(module: Module, place: _Place, memory: Value, offset: int) -> None:
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
