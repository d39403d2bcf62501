"""`avx2`: x86-64 with AVX2, FMA and F16C; AVX-VNNI where the features say so.

bfloat and half are converted to float while packing. Intel 64 and IA-32 Architectures Software Developer's Manual,
volume 2: VFMADD231PS, VPDPBUSD (VEX), VCVTPH2PS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.types import I32, VectorType
from tlx.legalize._x86 import CPUS
from tlx.target import Caches, Dot, Target

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

_WORDS: Final = VectorType(8, I32)


def _vpdpbusd(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Unsigned bytes of the left times signed bytes of the right, four products added to each i32."""
    return b.call_named("llvm.x86.avx512.vpdpbusd.256", _WORDS, [acc, lhs, rhs], "acc").value


def _vpdpbusd_swapped(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Signed left, unsigned right: multiplication commutes."""
    return _vpdpbusd(b, acc, rhs, lhs)


TARGET: Final = Target(
    name="avx2",
    title="x86-64 with AVX2, FMA, F16C",
    features=("+avx2", "+fma", "+f16c"),
    vector_bytes=32,
    registers=16,
    dots=(
        Dot(("i8", "u"), ("i8", "s"), "i32", 4, "avxvnni", _vpdpbusd),
        Dot(("i8", "s"), ("i8", "u"), "i32", 4, "avxvnni", _vpdpbusd_swapped),
    ),
    masked_bits=(32, 64),
    fused=True,
    converts_half=True,
    rounds=True,
    caches=Caches(l1=32 << 10, l2=512 << 10, l3=8 << 20),
    cpus=CPUS,
    requires=("avx2", "fma", "f16c"),
)
