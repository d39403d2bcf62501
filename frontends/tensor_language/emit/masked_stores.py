"""Masked stores, and how those of narrow elements are kept from LLVM 22.

LLVM 22 writes four bytes for a masked store of truncated lanes whose mask is known to have one lane only:

    %t = trunc <16 x i32> %v to <16 x i8>                                               vmovss %xmm0, (%rdi)
    call void @llvm.masked.store.v16i8.p0(<16 x i8> %t, ptr %p, i32 1, <i1 1, i1 0, ...>)

So masks of elements below 32 bits take part in an `and` with a truth that LLVM does not know: it comes from memory that
is read as volatile.
"""

from __future__ import annotations

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.ir.types import I8, VOID, VectorType, bits_of
from tlx.ir.values import Value, const_int


def masked_store(e: Emitter, value: Value, address: Value, align: int, mask: Value) -> None:
    """Write the lanes of a vector where a mask is on."""
    type_ = value.type
    assert isinstance(type_, VectorType)
    if bits_of(type_.element) < 32:
        mask = e.b.binary("and", mask, e.b.splat(_truth(e), type_.count))
    e.b.masked_store(value, address, align, mask)


def _truth(e: Emitter) -> Value:
    """`true`, from memory; LLVM cannot tell."""
    place = e.b.alloca(I8, "truth", 1)
    one = const_int(I8, 1)
    written = e.b.emit("store", VOID, [one, place], f"store volatile {one.typed}, {place.typed}, align 1")
    read = e.b.emit("load", I8, [place], f"load volatile i8, {place.typed}, align 1")
    for access in (written, read):
        access.flags, access.align = ("volatile",), 1
    return e.b.icmp("ne", read.value, 0)
