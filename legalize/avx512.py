"""`avx512`: x86-64 with AVX-512 F, BW, DQ, VL, BF16 and VNNI (Cooper Lake, Zen 4 and later; see `--mattr` for others).

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: VFMADD231PS, VDPBF16PS, VPDPBUSD, VPDPWSSD,
VPMADDWD (of bytes widened to i16, where there is no VNNI).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.types import FLOAT, I16, I32, VectorType
from tlx.legalize._cpuid import level
from tlx.legalize._x86 import CPUS
from tlx.target import Caches, Dot, Target

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

_WORDS: Final = VectorType(16, I32)
_PAIRS: Final = VectorType(32, I16)
_FLOATS: Final = VectorType(16, FLOAT)


def vdpbf16ps(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Pairs of bfloat; the operands are spelled as i32, which LLVM 14 wants and later ones upgrade."""
    return b.call_named("llvm.x86.avx512bf16.dpbf16ps.512", _FLOATS, [acc, lhs, rhs], "acc").value


def vpdpbusd(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Unsigned bytes of the left times signed bytes of the right, four products added to each i32."""
    return b.call_named("llvm.x86.avx512.vpdpbusd.512", _WORDS, [acc, lhs, rhs], "acc").value


def vpdpbusd_swapped(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Signed left, unsigned right: multiplication commutes."""
    return vpdpbusd(b, acc, rhs, lhs)


def vpdpwssd(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Two products of i16 added to each i32."""
    return b.call_named("llvm.x86.avx512.vpdpwssd.512", _WORDS, [acc, lhs, rhs], "acc").value


def vpmaddwd(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Pairs of i16, multiplied and added up to i32, then added."""
    pairs = [b.cast("bitcast", operand, _PAIRS) for operand in (lhs, rhs)]
    products = b.call_named("llvm.x86.avx512.pmaddw.d.512", _WORDS, pairs, "pairs").value
    return b.binary("add", acc, products)


TARGET: Final = Target(
    name="avx512",
    title="x86-64 with AVX-512, BF16 and VNNI",
    features=("+avx512f", "+avx512bw", "+avx512dq", "+avx512vl", "+avx512bf16", "+avx512vnni", "+f16c", "+fma"),
    vector_bytes=64,
    registers=32,
    dots=(
        Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "avx512bf16", vdpbf16ps),
        Dot(("i8", "u"), ("i8", "s"), "i32", 4, "avx512vnni", vpdpbusd),
        Dot(("i8", "s"), ("i8", "u"), "i32", 4, "avx512vnni", vpdpbusd_swapped),
        Dot(("i16", "s"), ("i16", "s"), "i32", 2, "avx512vnni", vpdpwssd),
        Dot(("i16", "s"), ("i16", "s"), "i32", 2, "avx512bw", vpmaddwd, temporaries=1),
    ),
    masked_bits=(8, 16, 32, 64),
    fused=True,
    converts_half=True,
    rounds=True,
    caches=Caches(l1=32 << 10, l2=1 << 20, l3=16 << 20),
    cpus=CPUS,
    requires=("avx512f", "avx512bw", "avx512dq", "avx512vl"),
    tiers=((), ("avx512vnni",), ("avx512vnni", "avx512bf16")),
    detect=level,
)
