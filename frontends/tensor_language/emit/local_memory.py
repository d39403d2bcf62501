"""Local memory: what `alloca` gives lies on the stack, and on the heap where it is large.

A work-group is run by one thread, so its local memory is the thread's.
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.collective import Alloca, LifetimeStop
from tlx.frontends.tensor_language.emit.branches import trap_if_null
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.values import Memref, memory_type
from tlx.frontends.tensor_language.types import LOCAL_ALIGNMENT, MemrefType
from tlx.ir.types import I8, I64, VOID, ArrayType
from tlx.ir.values import Value, const_int

STACK_LIMIT: Final = 64 << 10  # bytes of one alloca; threads other than the first may have small stacks


def alloca(e: Emitter, i: Alloca) -> None:
    """`%r = alloca : memref-type`."""
    type_ = i.type
    assert isinstance(type_, MemrefType)
    assert type_.is_static
    elements = _span(type_)
    size = elements * type_.element.size
    alignment = _alignment(i)
    large = size > STACK_LIMIT
    pointer = _on_heap(e, type_, size, alignment) if large else _on_stack(e, type_, elements, alignment)
    if id(i) in e.first_writes.zeroed:
        e.b.memset(pointer, 0, size)
    shape = tuple(const_int(I64, s) for s in type_.shape if s is not None)
    stride = tuple(const_int(I64, s) for s in type_.stride if s is not None)
    e.bind(i.result, Memref(type_, pointer, shape, stride, alignment))


def lifetime_stop(_e: Emitter, _i: LifetimeStop) -> None:
    """`lifetime_stop %memref`: stack memory goes with the function, heap memory with the region."""


def _span(type_: MemrefType) -> int:
    """Elements from the first to the last one of a static memref, both included."""
    pairs = zip(type_.shape, type_.stride, strict=True)
    return 1 + sum((shape - 1) * stride for shape, stride in pairs if shape is not None and stride is not None)


def _alignment(i: Alloca) -> int:
    """Bytes: as asked for by `alignment=`, and never less than what all local memory has."""
    asked = i.attributes.get("alignment")
    return max(LOCAL_ALIGNMENT, asked.value) if asked is not None and isinstance(asked.value, int) else LOCAL_ALIGNMENT


def _on_stack(e: Emitter, type_: MemrefType, elements: int, alignment: int) -> Value:
    element = memory_type(type_.element)
    parts = elements * (2 if type_.element.kind == "complex" else 1)
    pointer = e.b.alloca(ArrayType(parts, element), "local", alignment)
    return e.b.retype(pointer, element)


def _on_heap(e: Emitter, type_: MemrefType, size: int, alignment: int) -> Value:
    """`aligned_alloc`, which wants a multiple of the alignment; a trap where memory is short; freed with the region."""
    rounded = -(-size // alignment) * alignment
    bytes_pointer = e.b.pointer(I8)
    args = [const_int(I64, alignment), const_int(I64, rounded)]
    pointer = e.b.call_named("aligned_alloc", bytes_pointer, args, "local").value
    trap_if_null(e, pointer)
    e.at_region_end.append(lambda: _free(e, pointer))
    return e.b.retype(pointer, memory_type(type_.element))


def _free(e: Emitter, pointer: Value) -> None:
    e.b.call_named("free", VOID, [pointer])


RULES: Final = {Alloca: alloca, LifetimeStop: lifetime_stop}
