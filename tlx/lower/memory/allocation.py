"""Allocation: the only code of the lowering that emits calls to malloc and free, or what replaces them.

Memory carries metadata until the planner has decided where it comes from:

    %x = alloca [15 x float], !tlx.buffer !{}             a buffer of known size, on the stack
    %x = call ptr @malloc(i64 4096), !tlx.buffer !{}      or on the heap: freed at every exit of the function
    %x = call ptr @malloc(i64 %n), !tlx.frame !{}         a frame: allocated once in a call of the function, and freed
    call void @free(ptr %x), !tlx.frame !{}               by marked calls before it returns

The buffers of a function share one block of memory. Frames stay outside the block, because their size is known only at
run time, or because each thread of a team needs its own. `--workspace` says who allocates blocks and frames:

    malloc      malloc, in each call
    arena       the arena that each thread keeps between calls
    argument    the caller, who passes the block; frames stay with malloc

The arena of a thread (`--workspace=arena`):

    call ptr @malloc(i64 n)     ->  call ptr @tlx.workspace.acquire(i64 n)
    call void @free(ptr %x)     ->  call void @tlx.workspace.release(ptr %x)

    arena of a thread:  | capacity | top | peak | ... | frame | frame | free ...      frames begin 64 bytes after it
                                                                      ^ top

    acquire: takes the frame after the last one if it fits; else, if no frame is in use, replaces the arena by a larger
             one; else calls malloc, and lets the arena grow the next time
    release: everything from the start of the frame on is free; memory outside of the arena goes back to malloc

A function releases all its frames before it returns, in any order, and acquires none in between.

A frame that is not released, because an exception left its function, ends with the frame before it. The arena is
the value of a POSIX thread key, whose destructor, `free`, runs when the thread ends; a forked process has a copy, as it
has of all memory. If the system has no key left, each call uses malloc. All modules of a program or library share the
arenas, since the functions are linkonce_odr.

Memory that the caller passes (`--workspace=argument`):

    define void @f(ptr %x) {        ->  @f_workspace = constant i64 73856
      %workspace = call ptr @malloc     define void @f(ptr %x, ptr noalias %workspace) {
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tlx.diagnostics import LoweringError, Span
from tlx.ir.builder import Builder
from tlx.ir.functions import Argument, Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module, UnparsedText
from tlx.ir.rewrite import declare_function, set_operand, split_block
from tlx.ir.types import I8, I32, I64, VOID, FunctionType
from tlx.ir.values import Global, Keyword, Local, Value

CACHE_LINE: Final = 64
"""Bytes to which buffers are aligned: a cache line, or half of one where lines are longer; malloc aligns to 16."""
ACQUIRE: Final = "tlx.workspace.acquire"
"""`ptr acquire(i64 size)`: a frame of the thread's arena; null if there is no memory."""
RELEASE: Final = "tlx.workspace.release"
"""`void release(ptr frame)`: frees the frame and all that were acquired later."""
ALLOCATORS: Final = frozenset({"malloc", "free", ACQUIRE, RELEASE})
"""The functions that allocate and free the memory of lowered code; they clobber no more registers than any call."""
_BUFFER: Final = re.compile(r', !tlx\.buffer !\{(?:!"([^"]*)")?\}')
_FRAME: Final = re.compile(r', !tlx\.frame !\{(?:!"([^"]*)")?\}')


def buffer_metadata(scope: str = "") -> str:
    """The metadata of a call to malloc, or of an alloca, that allocates a buffer.

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
    """The metadata of a call to malloc or free whose memory is a frame.

    Args:
        content: Describes the frame in the remark that `--workspace=argument` does not cover it; empty: no such remark.
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
        module: The module.
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
        if declared is None and _defines_global(module.raw_text(), name):
            raise LoweringError(f"{what} @{name}, which is not a function in this module", span)


def _defines_global(text: str, name: str) -> bool:
    """Whether a line defines a global variable, `@name = ...`.

    The expression begins with a literal, as `^` would make the search of megabytes of constants a hundred times slower.
    """
    return any(text[at.start() - 1 : at.start()] in ("", "\n") for at in re.finditer(rf"@{name} *=", text))


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
    """The index at which memory is freed: before `ret` or `resume`, and a `musttail` call in front of it; else None."""
    last = len(block.instructions) - 1
    if block.terminator.opcode not in ("ret", "resume"):
        return None
    for index in range(last - 1, max(last - 3, -1), -1):
        if "musttail" in block.instructions[index].flags:
            return index
    return last


def remove_mark(call: Instruction) -> None:
    """Remove the metadata of a call once its allocator is chosen."""
    for mark in (_BUFFER, _FRAME):
        call.text, call.trailer = mark.sub("", call.text), mark.sub("", call.trailer)


def use_arena(call: Instruction) -> None:
    """Have a call to malloc or free use the arena of the thread instead."""
    set_operand(call, 0, Global(call.operands[0].type, ACQUIRE if call.callee == "malloc" else RELEASE))


_LOCAL: Final = frozenset({"internal", "private", "available_externally"})
_MERGED: Final = frozenset({"linkonce", "linkonce_odr", "weak", "weak_odr"})


# The caller's memory -------------------------------------------------------------------------------------------------


def may_take_workspace(module: Module, function: Function) -> bool:
    """Whether a function that nothing in its module uses may have one more parameter."""
    words = set(function.signature.result_attributes.split())
    return not (words & _LOCAL or function.signature.type.vararg or _is_named(module, function))


def _is_named(module: Module, function: Function) -> bool:
    """Whether the part of the module that is not parsed names a function."""
    return re.search(rf"@{re.escape(function.name)}(?![\w.$-])", module.raw_text()) is not None


def add_workspace_parameter(module: Module, function: Function) -> Local:
    """Append a pointer to the parameters of a function."""
    name = function.names.fresh("workspace")
    argument = Argument(module.pointer_to(I8), "noalias", name)
    start = function.header.index("(", function.header.index(f"@{function.name}")) + 1
    end, depth = start, 1
    while depth:
        depth += {"(": 1, ")": -1}.get(function.header[end], 0)
        end += 1
    text = f"{', ' if function.signature.arguments else ''}{argument.type} noalias %{name}"
    function.header = f"{function.header[: end - 1]}{text}{function.header[end - 1 :]}"
    function.signature.arguments.append(argument)
    return argument.value


def workspace_constant(name: str) -> str:
    """Name of the global that holds the size of a function's workspace."""
    return f'{name[:-1]}_workspace"' if name.endswith('"') else f"{name}_workspace"


def add_workspace_constant(module: Module, function: Function, size: int) -> None:
    """Add the global that holds the size of a function's workspace in bytes."""
    linkage = "weak_odr " if _MERGED & set(function.signature.result_attributes.split()) else ""
    module.append(UnparsedText(f"\n\n@{workspace_constant(function.name)} = {linkage}constant i64 {size}, align 8"))


def workspace_size(module: Module, name: str) -> int:
    """Size in bytes of the workspace that a lowered function takes; 0 if it takes none."""
    name = re.escape(workspace_constant(name))
    match = re.search(rf"(?m)^@{name} = (?:\w+ )?constant i64 (\d+), align 8$", module.raw_text())
    return int(match[1]) if match else 0


# The arena of a thread -----------------------------------------------------------------------------------------------

_ARENA: Final = """
@tlx.workspace.key = linkonce_odr hidden global i32 -1, align 4

define linkonce_odr hidden PTR @ACQUIRE(i64 %size) nounwind {
entry:
  %slot = alloca i32, align 4
  %current.key = load atomic i32, I32* @tlx.workspace.key acquire, align 4
  %has.no.key = icmp eq i32 %current.key, -1
  br i1 %has.no.key, label %create, label %get.arena

create:
  %error = call i32 @pthread_key_create(I32* %slot, FREE* @free)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %fallback, label %publish

publish:
  %new.key = load i32, I32* %slot, align 4
  %swap = cmpxchg I32* @tlx.workspace.key, i32 -1, i32 %new.key acq_rel acquire
  %winner.key = extractvalue { i32, i1 } %swap, 0
  %is.first = extractvalue { i32, i1 } %swap, 1
  br i1 %is.first, label %get.arena, label %delete.key

delete.key:
  %deleted = call i32 @pthread_key_delete(i32 %new.key)
  br label %get.arena

get.arena:
  %key = phi i32 [ %current.key, %entry ], [ %new.key, %publish ], [ %winner.key, %delete.key ]
  %padded = add i64 %size, 63
  %rounded = and i64 %padded, -64
  %arena = call PTR @pthread_getspecific(i32 %key)
  %has.no.arena = icmp eq PTR %arena, null
  br i1 %has.no.arena, label %grow, label %has.arena

has.arena:
  %capacity.at = bitcast PTR %arena to I64*
  %capacity = load i64, I64* %capacity.at, align 8
  %top.byte = getelementptr inbounds i8, PTR %arena, i64 8
  %top.at = bitcast PTR %top.byte to I64*
  %top = load i64, I64* %top.at, align 8
  %peak.byte = getelementptr inbounds i8, PTR %arena, i64 16
  %peak.at = bitcast PTR %peak.byte to I64*
  %peak = load i64, I64* %peak.at, align 8
  %end = add i64 %top, %rounded
  %exceeds = icmp ugt i64 %end, %peak
  %new.peak = select i1 %exceeds, i64 %end, i64 %peak
  %is.empty = icmp eq i64 %top, 0
  %needed = select i1 %is.empty, i64 %new.peak, i64 %end
  %fits = icmp ule i64 %needed, %capacity
  br i1 %fits, label %allocate, label %exceeded

allocate:
  store i64 %end, I64* %top.at, align 8
  %offset = add i64 %top, 64
  %frame = getelementptr inbounds i8, PTR %arena, i64 %offset
  ret PTR %frame

exceeded:
  store i64 %new.peak, I64* %peak.at, align 8
  br i1 %is.empty, label %grow, label %fallback

grow:
  %new.capacity = phi i64 [ %rounded, %get.arena ], [ %needed, %exceeded ]
  %bytes = add i64 %new.capacity, 64
  %new = call PTR @malloc(i64 %bytes)
  %is.null = icmp eq PTR %new, null
  br i1 %is.null, label %return.new, label %attach

attach:
  %status = call i32 @pthread_setspecific(i32 %key, PTR %new)
  %attached = icmp eq i32 %status, 0
  br i1 %attached, label %replace, label %return.new

replace:
  call void @free(PTR %arena)
  %new.capacity.at = bitcast PTR %new to I64*
  store i64 %new.capacity, I64* %new.capacity.at, align 8
  %new.top.byte = getelementptr inbounds i8, PTR %new, i64 8
  %new.top.at = bitcast PTR %new.top.byte to I64*
  store i64 %rounded, I64* %new.top.at, align 8
  %new.peak.byte = getelementptr inbounds i8, PTR %new, i64 16
  %new.peak.at = bitcast PTR %new.peak.byte to I64*
  store i64 %new.capacity, I64* %new.peak.at, align 8
  %new.frame = getelementptr inbounds i8, PTR %new, i64 64
  ret PTR %new.frame

return.new:
  ret PTR %new

fallback:
  %memory = call PTR @malloc(i64 %size)
  ret PTR %memory
}

define linkonce_odr hidden void @RELEASE(PTR %frame) nounwind {
entry:
  %key = load atomic i32, I32* @tlx.workspace.key acquire, align 4
  %has.no.key = icmp eq i32 %key, -1
  br i1 %has.no.key, label %fallback, label %get.arena

get.arena:
  %arena = call PTR @pthread_getspecific(i32 %key)
  %has.no.arena = icmp eq PTR %arena, null
  br i1 %has.no.arena, label %fallback, label %has.arena

has.arena:
  %capacity.at = bitcast PTR %arena to I64*
  %capacity = load i64, I64* %capacity.at, align 8
  %arena.address = ptrtoint PTR %arena to i64
  %first = add i64 %arena.address, 64
  %address = ptrtoint PTR %frame to i64
  %start = sub i64 %address, %first
  %in.arena = icmp ult i64 %start, %capacity
  br i1 %in.arena, label %release, label %fallback

release:
  %top.byte = getelementptr inbounds i8, PTR %arena, i64 8
  %top.at = bitcast PTR %top.byte to I64*
  %top = load i64, I64* %top.at, align 8
  %below = icmp ult i64 %start, %top
  %new.top = select i1 %below, i64 %start, i64 %top
  store i64 %new.top, I64* %top.at, align 8
  ret void

fallback:
  call void @free(PTR %frame)
  ret void
}
"""


def add_arena(module: Module) -> None:
    """Add the functions of the arena, unless they are there, and declare those that they call."""
    if f"@{ACQUIRE}(" in module.raw_text():
        return
    byte, key = module.pointer_to(I8), module.pointer_to(I32)
    free = FunctionType(VOID, (byte,))
    called = {
        "malloc": FunctionType(byte, (I64,)),
        "free": free,
        "pthread_key_create": FunctionType(I32, (key, module.pointer_to(free))),
        "pthread_key_delete": FunctionType(I32, (I32,)),
        "pthread_getspecific": FunctionType(byte, (I32,)),
        "pthread_setspecific": FunctionType(I32, (I32, byte)),
    }
    for name, type_ in called.items():
        declare_function(module, name, type_)
    text = _ARENA.replace("FREE*", str(module.pointer_to(free))).replace("PTR", str(byte))
    text = text.replace("ACQUIRE", ACQUIRE).replace("RELEASE", RELEASE)
    for type_ in (I32, I64):
        text = text.replace(f"{str(type_).upper()}*", str(module.pointer_to(type_)))
    module.append(UnparsedText(f"\n{text.rstrip()}"))
