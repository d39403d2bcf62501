"""Workspaces other than malloc: an arena that each thread keeps between calls, and memory that the caller passes.

The arena of a thread (`--workspace=arena`):

    call ptr @malloc(i64 n)     ->  call ptr @tlx.workspace.acquire(i64 n)
    call void @free(ptr %x)     ->  call void @tlx.workspace.release(ptr %x)

    arena of a thread:  | capacity | top | wanted | ... | frame | frame | free ...      frames begin 64 bytes after it
                                                                        ^ top

    acquire: takes the frame after the last one if it fits; else, if no frame is in use, replaces the arena by a larger
             one; else calls malloc, and lets the arena grow the next time
    release: everything from the start of the frame on is free; memory outside of the arena goes back to malloc

A function releases all its frames before it returns, in any order, and acquires none in between.

A frame that is not released because an exception left its function ends with the frame in front of it. The arena is the
value of a POSIX thread key, whose destructor, `free`, runs when the thread ends; a forked process has a copy, as of all
memory. If the system has no key left, each call uses malloc. All modules of a program or library share the arenas: the
functions are linkonce_odr.

Memory that the caller passes (`--workspace=argument`):

    define void @f(ptr %x) {        ->  @f_workspace = constant i64 73856
      %workspace = call ptr @malloc     define void @f(ptr %x, ptr noalias %workspace) {
"""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.functions import Argument, Function
from tlx.ir.module import Module, Raw
from tlx.ir.transform.rewrite import declare_function
from tlx.ir.types import I8, I32, I64, VOID, FunctionType
from tlx.ir.values import Local
from tlx.lower.memory.allocation import ACQUIRE, RELEASE

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


def note_workspace_size(module: Module, function: Function, size: int) -> None:
    """Add the global that holds the size of a function's workspace in bytes."""
    linkage = "weak_odr " if _MERGED & set(function.signature.result_attributes.split()) else ""
    module.append(Raw(f"\n\n@{workspace_constant(function.name)} = {linkage}constant i64 {size}, align 8"))


def workspace_size(module: Module, name: str) -> int:
    """Size in bytes of the workspace that a lowered function takes; 0 if it takes none."""
    name = re.escape(workspace_constant(name))
    found = re.search(rf"(?m)^@{name} = (?:\w+ )?constant i64 (\d+), align 8$", module.raw_text())
    return int(found[1]) if found else 0


# The arena of a thread -----------------------------------------------------------------------------------------------

_ARENA: Final = """
@tlx.workspace.key = linkonce_odr hidden global i32 -1, align 4

define linkonce_odr hidden PTR @ACQUIRE(i64 %size) nounwind {
entry:
  %slot = alloca i32, align 4
  %known = load atomic i32, I32* @tlx.workspace.key acquire, align 4
  %unknown = icmp eq i32 %known, -1
  br i1 %unknown, label %create, label %find

create:
  %error = call i32 @pthread_key_create(I32* %slot, FREE* @free)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %alone, label %publish

publish:
  %made = load i32, I32* %slot, align 4
  %swapped = cmpxchg I32* @tlx.workspace.key, i32 -1, i32 %made acq_rel acquire
  %other = extractvalue { i32, i1 } %swapped, 0
  %first = extractvalue { i32, i1 } %swapped, 1
  br i1 %first, label %find, label %lost

lost:
  %deleted = call i32 @pthread_key_delete(i32 %made)
  br label %find

find:
  %key = phi i32 [ %known, %entry ], [ %made, %publish ], [ %other, %lost ]
  %over = add i64 %size, 63
  %rounded = and i64 %over, -64
  %own = call PTR @pthread_getspecific(i32 %key)
  %missing = icmp eq PTR %own, null
  br i1 %missing, label %grow, label %have

have:
  %capacity.at = bitcast PTR %own to I64*
  %capacity = load i64, I64* %capacity.at, align 8
  %top.byte = getelementptr inbounds i8, PTR %own, i64 8
  %top.at = bitcast PTR %top.byte to I64*
  %top = load i64, I64* %top.at, align 8
  %wanted.byte = getelementptr inbounds i8, PTR %own, i64 16
  %wanted.at = bitcast PTR %wanted.byte to I64*
  %wanted = load i64, I64* %wanted.at, align 8
  %end = add i64 %top, %rounded
  %exceeds = icmp ugt i64 %end, %wanted
  %most = select i1 %exceeds, i64 %end, i64 %wanted
  %idle = icmp eq i64 %top, 0
  %needed = select i1 %idle, i64 %most, i64 %end
  %fits = icmp ule i64 %needed, %capacity
  br i1 %fits, label %take, label %full

take:
  store i64 %end, I64* %top.at, align 8
  %place = add i64 %top, 64
  %frame = getelementptr inbounds i8, PTR %own, i64 %place
  ret PTR %frame

full:
  store i64 %most, I64* %wanted.at, align 8
  br i1 %idle, label %grow, label %alone

grow:
  %new.capacity = phi i64 [ %rounded, %find ], [ %needed, %full ]
  %bytes = add i64 %new.capacity, 64
  %new = call PTR @malloc(i64 %bytes)
  %refused = icmp eq PTR %new, null
  br i1 %refused, label %given, label %own.it

own.it:
  %unset = call i32 @pthread_setspecific(i32 %key, PTR %new)
  %kept = icmp eq i32 %unset, 0
  br i1 %kept, label %replace, label %given

replace:
  call void @free(PTR %own)
  %new.capacity.at = bitcast PTR %new to I64*
  store i64 %new.capacity, I64* %new.capacity.at, align 8
  %new.top.byte = getelementptr inbounds i8, PTR %new, i64 8
  %new.top.at = bitcast PTR %new.top.byte to I64*
  store i64 %rounded, I64* %new.top.at, align 8
  %new.wanted.byte = getelementptr inbounds i8, PTR %new, i64 16
  %new.wanted.at = bitcast PTR %new.wanted.byte to I64*
  store i64 %new.capacity, I64* %new.wanted.at, align 8
  %new.frame = getelementptr inbounds i8, PTR %new, i64 64
  ret PTR %new.frame

given:
  ret PTR %new

alone:
  %memory = call PTR @malloc(i64 %size)
  ret PTR %memory
}

define linkonce_odr hidden void @RELEASE(PTR %frame) nounwind {
entry:
  %key = load atomic i32, I32* @tlx.workspace.key acquire, align 4
  %unknown = icmp eq i32 %key, -1
  br i1 %unknown, label %alone, label %find

find:
  %own = call PTR @pthread_getspecific(i32 %key)
  %missing = icmp eq PTR %own, null
  br i1 %missing, label %alone, label %have

have:
  %capacity.at = bitcast PTR %own to I64*
  %capacity = load i64, I64* %capacity.at, align 8
  %own.address = ptrtoint PTR %own to i64
  %first = add i64 %own.address, 64
  %address = ptrtoint PTR %frame to i64
  %start = sub i64 %address, %first
  %inside = icmp ult i64 %start, %capacity
  br i1 %inside, label %give, label %alone

give:
  %top.byte = getelementptr inbounds i8, PTR %own, i64 8
  %top.at = bitcast PTR %top.byte to I64*
  %top = load i64, I64* %top.at, align 8
  %below = icmp ult i64 %start, %top
  %least = select i1 %below, i64 %start, i64 %top
  store i64 %least, I64* %top.at, align 8
  ret void

alone:
  call void @free(PTR %frame)
  ret void
}
"""


def add_arena(module: Module) -> None:
    """Add the functions of the arena and declare those that they call."""
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
    module.append(Raw(f"\n{text.rstrip()}"))
