"""Calls in code that is written for one thread of a grid, such as front ends write it, and what marks such functions.

    define void @scale(ptr %a, i64 %nx, i64 %ny, i64 %nz) "tlx-block"="128,4096" {      128 threads, 4096 shared bytes
      %thread = call i32 @tlx.thread.number()
      call void @tlx.thread.barrier()

The last three parameters are the numbers of blocks along x, y and z; their product is the number of blocks. Stage 2
turns the function into a kernel, and the calls into operations of the target's grid.

A subgroup is a power of two of adjacent threads, at most a warp. All of them make the calls for subgroups together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.types import I1, I32, VOID, PointerType

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

BLOCK_ATTRIBUTE: Final = "tlx-block"
PREFIX: Final = "tlx.thread."
COUNTS: Final = 3
"""The last parameters, which are numbers of blocks."""


def number(b: Builder) -> Value:
    """The number of the thread in its block, i32."""
    return b.call_named(f"{PREFIX}number", I32, [], "thread").value


def block(b: Builder) -> Value:
    """The number of the block, i32."""
    return b.call_named(f"{PREFIX}block", I32, [], "block").value


def shared(b: Builder) -> Value:
    """The address of the block's shared memory, a pointer to bytes."""
    return b.call_named(f"{PREFIX}shared", PointerType(None, 0), [], "shared").value


def barrier(b: Builder) -> None:
    """Wait for all threads of the block."""
    b.call_named(f"{PREFIX}barrier", VOID, [])


def subgroup_barrier(b: Builder, size: Value) -> None:
    """Wait for all threads of the subgroup, which has that many (i32); they see what each has written."""
    b.call_named(f"{PREFIX}subgroup.barrier", VOID, [size])


def shuffle(b: Builder, value: Value, lane: Value, size: Value) -> Value:
    """The i32 that a lane (i32) of the subgroup passes."""
    return b.call_named(f"{PREFIX}shuffle", I32, [value, lane, size], "shuffled").value


def ballot(b: Builder, flag: Value, size: Value) -> Value:
    """The i1 of each lane of the subgroup, as the bits of an i32, lane 0 the lowest."""
    assert flag.type == I1
    return b.call_named(f"{PREFIX}ballot", I32, [flag, size], "ballot").value
