"""Addresses of elements, uniform or one each work-item, and vectors in memory under masks.

LLVM 22 writes four bytes for a masked store of truncated lanes whose mask is known to have one lane only:

    %t = trunc <16 x i32> %v to <16 x i8>                                               vmovss %xmm0, (%rdi)
    call void @llvm.masked.store.v16i8.p0(<16 x i8> %t, ptr %p, i32 1, <i1 1, i1 0, ...>)

So masks of elements below 32 bits take part in an `and` with a truth that LLVM does not know: it comes from memory that
is read as volatile.
"""

from __future__ import annotations

from collections.abc import Sequence

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import is_int, unify_values
from tlx.frontends.tensor_language.emit.values import Memref, memory_type
from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.types import I1, I8, I32, I64, VOID, Type, VectorType, bits_of
from tlx.ir.values import Keyword, Value, const_int, const_ints


def offset_product(e: Emitter, a: Value, b: Value) -> Value:
    """A product of extents, uniform or varying."""
    a, b = unify_values(e, a, b)
    return e.b.mul(a, b)


def offset_sum(e: Emitter, a: Value, b: Value) -> Value:
    """A sum of offsets, uniform or varying."""
    if is_int(a, 0):
        return b
    if is_int(b, 0):
        return a
    a, b = unify_values(e, a, b)
    return e.b.add(a, b)


def offset_of(e: Emitter, memref: Memref, indices: Sequence[Value]) -> Value:
    """`i1*S1 + i2*S2 + ...` in elements, a lane each item where anything varies."""
    offset: Value = const_int(I64, 0)
    for index, stride in zip(indices, memref.stride, strict=True):
        offset = offset_sum(e, offset, offset_product(e, index, stride))
    return offset


def address_of(e: Emitter, memref: Memref, indices: Sequence[Value]) -> Value:
    """Address of an element: one, or one each lane."""
    return pointer_at(e, memref, offset_of(e, memref, indices))


def pointer_at(e: Emitter, memref: Memref, offset: Value) -> Value:
    """The address a number of elements behind a memref's first one."""
    if is_int(offset, 0):
        return memref.pointer
    element = memory_type(memref.type.element)
    if memref.type.element.kind == "complex":
        offset = offset_product(e, offset, const_int(I64, 2))
    if e.mask is not None or isinstance(offset.type, VectorType) or isinstance(memref.pointer.type, VectorType):
        return unbounded_gep(e, element, memref.pointer, offset)  # lanes that are not active may be outside
    return e.b.gep(element, memref.pointer, offset)


def unbounded_gep(e: Emitter, element: Type, pointer: Value, offset: Value) -> Value:
    """`getelementptr` without `inbounds`: of one address or several, which may lie outside of what they point into."""
    lanes = offset.type if isinstance(offset.type, VectorType) else pointer.type
    type_ = e.b.pointer(element)
    result = VectorType(lanes.count, type_) if isinstance(lanes, VectorType) else type_
    body = f"getelementptr {element}, {pointer.typed}, {offset.typed}"
    return e.b.emit("getelementptr", result, [pointer, offset], body, source_type=element).value


def part_addresses(e: Emitter, address: Value, type_: ScalarType) -> tuple[Value, ...]:
    """Addresses of the parts of an element; those of complex ones are adjacent."""
    if type_.kind != "complex":
        return (address,)
    element = memory_type(type_)
    if isinstance(address.type, VectorType):
        return address, unbounded_gep(e, element, address, const_int(I64, 1))
    return address, e.b.gep(element, address, 1)


def null_like(pointer: Value) -> Value:
    """A null pointer, or a vector of as many as there are pointers."""
    return Keyword(pointer.type, "zeroinitializer" if isinstance(pointer.type, VectorType) else "null")


def masked_load(e: Emitter, type_: VectorType, address: Value, align: int, mask: Value | None) -> Value:
    """A vector of neighbours; zeros where a mask is off, None for all lanes."""
    return e.b.load(type_, address, align) if mask is None else e.b.masked_load(type_, address, align, mask)


def masked_store(e: Emitter, value: Value, address: Value, align: int, mask: Value | None) -> None:
    """Write the lanes of a vector to neighbours where a mask is on, None for all lanes."""
    if mask is None:
        e.b.store(value, address, align)
        return
    type_ = value.type
    assert isinstance(type_, VectorType)
    if bits_of(type_.element) < 32:
        mask = e.b.binary("and", mask, e.b.splat(_truth(e), type_.count))
    e.b.masked_store(value, address, align, mask)


def gather(e: Emitter, element: Type, addresses: Value, align: int, mask: Value | None) -> Value:
    """What lies at an address each lane; zero where a mask is off, None for all lanes."""
    assert isinstance(addresses.type, VectorType)
    vector = VectorType(addresses.type.count, element)
    args = [addresses, const_int(I32, align), _lanes(mask, vector), Keyword(vector, "zeroinitializer")]
    return e.b.call_intrinsic("llvm.masked.gather", [vector, addresses.type], vector, args)


def scatter(e: Emitter, value: Value, addresses: Value, align: int, mask: Value | None) -> None:
    """Write a value each lane where a mask is on, None for all lanes; lowest lane first."""
    assert isinstance(value.type, VectorType)
    args = [value, addresses, const_int(I32, align), _lanes(mask, value.type)]
    e.b.call_intrinsic("llvm.masked.scatter", [value.type, addresses.type], VOID, args)


def _lanes(mask: Value | None, vector: VectorType) -> Value:
    return mask if mask is not None else const_ints(I1, [1] * vector.count)


def _truth(e: Emitter) -> Value:
    """`true`, from memory; LLVM cannot tell."""
    place = e.b.alloca(I8, "truth", 1)
    one = const_int(I8, 1)
    written = e.b.emit("store", VOID, [one, place], f"store volatile {one.typed}, {place.typed}, align 1")
    read = e.b.emit("load", I8, [place], f"load volatile i8, {place.typed}, align 1")
    for access in (written, read):
        access.flags, access.align = ("volatile",), 1
    return e.b.icmp("ne", read.value, 0)
