"""One block of memory for all buffers of a function that malloc gives.

Rewrite:
    %a.heap = call ptr @malloc(i64 x), !tlx.buffer !{}      %a.heap = call ptr @malloc(i64 x + y)
    %b.heap = call ptr @malloc(i64 y), !tlx.buffer !{}  ->  %b.heap = getelementptr i8, ptr %a.heap, i64 x
    ...                                                     ...
    call void @free(ptr %a.heap)                            call void @free(ptr %a.heap)
    call void @free(ptr %b.heap)

The buffers of a function are made at its head and freed at every way out of it. glibc gives memory back to the system
where more of it is free than twice the largest block freed so far, and then each page is touched for the first time in
each call again; one block never is that much. The stages before know buffers apart, each by a block of its own.
"""

from __future__ import annotations

from tlx.ir.builder import Builder
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import set_operand
from tlx.ir.types import I8, I64
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.stage import BUFFER


def join_buffers(module: Module, function: Function) -> None:
    """Take the buffers of a function from one block of memory."""
    found = [(block, i) for block in function.blocks for i in block.instructions if BUFFER in i.text]
    if not found:
        return
    (_, first), *others = found
    size = _size(first)
    for block, call in others:
        _place(module, function, block, call, first.value, size)
        size += _size(call)
    set_operand(first, 1, const_int(I64, size))
    first.text = first.text.replace(BUFFER, "")
    first.trailer = first.trailer.replace(BUFFER, "")


def _place(module: Module, function: Function, block: Block, call: Instruction, start: Value, offset: int) -> None:
    """Have a buffer lie so many bytes behind the first one, which is freed for it."""
    for other in function.blocks:
        other.instructions = [i for i in other.instructions if i.callee != "free" or i.args != [call.value]]
    index = block.instructions.index(call)
    del block.instructions[index]
    function.names.taken.discard(str(call.result))
    Builder(module, function, block, index).gep(I8, start, offset, str(call.result))


def _size(call: Instruction) -> int:
    (size,) = call.args
    assert isinstance(size, ConstInt)
    return size.value
