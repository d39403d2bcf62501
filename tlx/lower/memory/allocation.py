"""Allocation: the only code of the lowering that emits calls of malloc and free.

Memory carries metadata until the planner has decided where it comes from:

    %x = alloca [15 x float], !tlx.buffer !{}             a buffer of known size, on the stack
    %x = call ptr @malloc(i64 4096), !tlx.buffer !{}      or on the heap: freed at every way out of the function
    %x = call ptr @malloc(i64 %n), !tlx.frame !{}         a frame: freed, by marked calls, before the function returns,
    call void @free(ptr %x), !tlx.frame !{}               and not allocated anew before

Buffers of one function share one block of memory. Frames have no place in it, since their size is known only at run
time or since each thread of a team has its own. Both may come from the arena of a thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tlx.diagnostics import LoweringError, Span
from tlx.ir.builder.instructions import Builder
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.transform.rewrite import set_operand, split_block
from tlx.ir.types import I8, I64, VOID, FunctionType
from tlx.ir.values import Global, Keyword, Value

CACHE_LINE: Final = 64
"""Bytes to which buffers are aligned: a cache line, or half of one where lines are longer; malloc aligns to 16."""
ACQUIRE: Final = "tlx.workspace.acquire"
"""`ptr acquire(i64 size)`: a frame of the thread's arena; null if there is no memory."""
RELEASE: Final = "tlx.workspace.release"
"""`void release(ptr frame)`: frees the frame and all that were acquired later."""
ALLOCATORS: Final = frozenset({"malloc", "free", ACQUIRE, RELEASE})
"""The functions that lowered code gets memory from and gives it back to; they touch no register but those of calls."""
_BUFFER: Final = re.compile(r', !tlx\.buffer !\{(?:!"([^"]*)")?\}')
_FRAME: Final = re.compile(r', !tlx\.frame !\{(?:!"([^"]*)")?\}')


def buffer_metadata(scope: str = "") -> str:
    """The metadata of a call of malloc, or an alloca, that gives a buffer.

    Args:
        scope: Name of the block that overwrites all of the buffer first whenever the block runs; empty if unknown.
    """
    named = f'!"{scope}"' if scope and re.fullmatch(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*", scope) else ""
    return f", !tlx.buffer !{{{named}}}"


def buffer_scope(call: Instruction) -> str:
    """The scope in the metadata of a buffer."""
    mark = _BUFFER.search(call.text)
    return str(mark[1]) if mark and mark[1] else ""


def frame_metadata(content: str = "") -> str:
    """The metadata of a call of malloc or free whose memory is a frame.

    Args:
        content: What a remark says of a frame that `--workspace=argument` does not cover; empty if another remark does.
    """
    named = f'!"{content}"' if content else ""
    return f", !tlx.frame !{{{named}}}"


def frame_content(call: Instruction) -> str:
    """The content in the metadata of a frame."""
    mark = _FRAME.search(call.text)
    return str(mark[1]) if mark and mark[1] else ""


def is_buffer(instruction: Instruction) -> bool:
    """Whether an instruction allocates a buffer that is still to be planned."""
    return (instruction.callee == "malloc" or instruction.opcode == "alloca") and _BUFFER.search(
        instruction.text
    ) is not None


def is_frame(instruction: Instruction) -> bool:
    """Whether an instruction allocates or frees a frame."""
    return instruction.callee in ("malloc", "free") and _FRAME.search(instruction.text) is not None


def require_allocator(module: Module, what: str, span: Span | None) -> None:
    """Check that malloc and free may be called.

    Args:
        module: Where.
        what: Subject and verb of the message: what needs memory.
        span: Where the error points.

    Raises:
        LoweringError: The module has a malloc or free of another type.
    """
    pointer = module.pointer_to(I8)
    for name, type_ in {"malloc": FunctionType(pointer, (I64,)), "free": FunctionType(VOID, (pointer,))}.items():
        declared = module.declarations.get(name)
        if declared is not None and declared.signature.type != type_:
            message = f"{what} @{name} as {type_}, and this module declares it as {declared.signature.type}"
            raise LoweringError(message, span)
        if declared is None and re.search(rf"(?m)^@{name} *=", module.raw_text()):
            raise LoweringError(f"{what} @{name}, which is no function in this module", span)


def emit_allocation(b: Builder, size: Value, name: str, metadata: str = "") -> Value:
    """`%name = call noalias ptr @malloc(i64 size)`; the result is null if there is no memory."""
    call = b.call_named("malloc", b.pointer(I8), [size], name)
    call.text = call.text.replace("= call ", "= call noalias ", 1) + metadata
    call.trailer, call.spans = call.trailer + metadata, None
    return call.value


def emit_release(b: Builder, pointer: Value, metadata: str = "") -> None:
    """`call void @free(ptr pointer)`; null is allowed."""
    call = b.call_named("free", VOID, [pointer])
    call.text, call.trailer = call.text + metadata, call.trailer + metadata


def trap_if_null(b: Builder, pointers: Sequence[Value]) -> None:
    """Stop the program if a pointer is null; the builder continues in the block where none is."""
    missing: Value | None = None
    for pointer in pointers:
        null = b.icmp("eq", pointer, Keyword(pointer.type, "null"))
        missing = null if missing is None else b.binary("or", missing, null)
    assert missing is not None
    head = b.block
    tail = split_block(b.function, head, b.index, "allocated")
    trap = b.new_block("out.of.memory", head)
    b.at_end(head)
    b.branch_if(missing, trap, tail)
    b.at_end(trap)
    emit_trap(b)
    b.block, b.index = tail, 0


def emit_trap(b: Builder) -> None:
    """End a block by stopping the program."""
    b.call_named("llvm.trap", VOID, [])
    b.emit("unreachable", VOID, [], "unreachable")


def exit_index(block: Block) -> int | None:
    """Where memory is freed: in front of `ret` or `resume`, and of a `musttail` call before it; else None."""
    last = len(block.instructions) - 1
    if block.terminator.opcode not in ("ret", "resume"):
        return None
    for index in range(last - 1, max(last - 3, -1), -1):
        if "musttail" in block.instructions[index].flags:
            return index
    return last


def remove_mark(call: Instruction) -> None:
    """Remove the metadata of a call whose memory is decided."""
    for mark in (_BUFFER, _FRAME):
        call.text, call.trailer = mark.sub("", call.text), mark.sub("", call.trailer)


def use_arena(call: Instruction) -> None:
    """Have a call of malloc or free use the arena of the thread instead."""
    set_operand(call, 0, Global(call.operands[0].type, ACQUIRE if call.callee == "malloc" else RELEASE))
