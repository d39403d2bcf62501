"""Calls in code for one thread of a grid, as front ends write it, and the attributes that mark such functions.

    define void @scale(ptr %a, i64 %nx, i64 %ny, i64 %nz) "tlx-block"="128,4096" {      128 threads, 4096 shared bytes
      %thread = call i32 @tlx.thread.number()
      call void @tlx.thread.barrier()

The last three parameters are the numbers of blocks along x, y and z; their product is the number of blocks. Stage 2
turns the function into a kernel, and the calls into operations of the target's grid.

A subgroup is a power of two of adjacent threads, at most a warp. All of them make the calls for subgroups together.

Fragments, and what each thread of a warp holds of them, are those of `tlx.target.grid_unit`. All threads of a warp make
the calls for them together. The name of a product says its extents, and the types of A, B and the sums:

      %d = call { float, float, float, float } @tlx.thread.multiply.16x8x16.f.half.f.half.float(%c0..3, %a0..3, %b0..1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.ir.types import I1, I32, VOID, PointerType, StructType
from tlx.ir.values import const_int

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.types import Type
    from tlx.ir.values import Value
    from tlx.target.grid_unit import FragmentProduct

BLOCK_ATTRIBUTE: Final = "tlx-block"
PREFIX: Final = "tlx.thread."
COUNTS: Final = 3
"""The last parameters, which are numbers of blocks."""
FRAGMENTS: Final = "fragments"
TRANSPOSED: Final = ".transposed"
MULTIPLY: Final = "multiply"
MATRICES: Final = 4
"""Matrices of 8 lines x 16 bytes that are loaded at once."""


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


def load_fragments(b: Builder, address: Value, *, transposed: bool) -> list[Value]:
    """Four matrices of 8 lines x 16 bytes of shared memory, spread over the warp: an i32 of each."""
    name = f"{PREFIX}{FRAGMENTS}{TRANSPOSED if transposed else ''}"
    loaded = b.call_named(name, StructType((I32,) * MATRICES), [address], "fragments").value
    return _members(b, loaded, I32, MATRICES)


def multiply(
    b: Builder, product: FragmentProduct, acc: Sequence[Value], lhs: Sequence[Value], rhs: Sequence[Value]
) -> list[Value]:
    """The sums, with a product of fragments added, whose registers are i32, or the elements if these are larger."""
    type_ = acc[0].type
    arguments = [*acc, *lhs, *rhs]
    name = f"{PREFIX}{MULTIPLY}.{product_name(product)}"
    sums = b.call_named(name, StructType((type_,) * len(acc)), arguments, "product").value
    return _members(b, sums, type_, len(acc))


def product_name(product: FragmentProduct) -> str:
    """The extents and types of a product, which no two products of a grid share."""
    operands = (f"{sign}.{element}" for element, sign in (product.lhs, product.rhs))
    return ".".join([f"{product.rows}x{product.columns}x{product.depth}", *operands, product.accumulator])


def _members(b: Builder, structure: Value, type_: Type, count: int) -> list[Value]:
    numbers = [const_int(I32, k) for k in range(count)]
    return [
        b.value("extractvalue", type_, [structure, k], f"extractvalue {structure.typed}, {k.value}") for k in numbers
    ]
