"""`sse`: x86-64 with SSE4.2 (x86-64-v2), for machines without AVX2.

A target is data: its registers, and the instructions that multiply and add in one step. From this, TLX derives tile
sizes, cache blocking and packing, and the vector legaliser writes the code.

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: PMADDWD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.types import I16, I32, VectorType
from tlx.target.costs.memory import Caches
from tlx.target.instructions.dots import Dot
from tlx.target.target import Target

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

_SHORTS: Final = VectorType(8, I16)
_WORDS: Final = VectorType(4, I32)


def _pmaddwd(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Add pairs of signed 16-bit products to each i32.

    The operands are registers with the accumulator's lanes, each of two i16:

        lhs  [a0 a1][a0 a1][a0 a1][a0 a1]      one word of A, broadcast
        rhs  [b0 b1][b0 b1][b0 b1][b0 b1]      four columns of B, rows k and k+1 interleaved
    """
    shorts = [b.cast("bitcast", operand, _SHORTS) for operand in (lhs, rhs)]
    pairs = b.call_named("llvm.x86.sse2.pmadd.wd", _WORDS, shorts, "pairs").value
    return b.binary("add", acc, pairs, "acc")


TARGET: Final = Target(
    name="sse",
    title="x86-64 with SSE4.2",
    features=("+sse4.2",),
    vector_bytes=16,
    registers=16,
    dots=(Dot(("i16", "s"), ("i16", "s"), "i32", 2, "sse4.2", _pmaddwd),),
    caches=Caches(l1=32 << 10, l2=256 << 10, l3=4 << 20),
    requires=("sse4_2",),
)
