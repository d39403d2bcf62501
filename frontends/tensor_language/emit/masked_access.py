"""Vectors in memory under masks: loads, stores, gathers and scatters; and how LLVM 22 is kept from breaking stores.

LLVM 22 writes four bytes for a masked store of truncated lanes whose mask is known to have one lane only:

    %t = trunc <16 x i32> %v to <16 x i8>                                               vmovss %xmm0, (%rdi)
    call void @llvm.masked.store.v16i8.p0(<16 x i8> %t, ptr %p, i32 1, <i1 1, i1 0, ...>)

So masks of elements below 32 bits take part in an `and` with a truth that LLVM does not know: it comes from memory that
is read as volatile.
"""

from __future__ import annotations

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.ir.types import I1, I8, I32, VOID, Type, VectorType, bits_of
from tlx.ir.values import Keyword, Value, const_int, const_ints


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
