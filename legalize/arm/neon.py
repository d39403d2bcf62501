"""`neon`: AArch64 with Advanced SIMD: vectors of 16 bytes, dot products of bytes and bfloat where the features say so.

Half has arithmetic of its own (FEAT_FP16); products of half are multiply-adds of float.

Arm Architecture Reference Manual for A-profile, C7.2: FMLA, SDOT, UDOT, USDOT, BFDOT, FCVT, FRINTN.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.types import BFLOAT, FLOAT, I8, I32, VectorType
from tlx.legalize.arm import TRIPLES
from tlx.legalize.arm.features import DETECT, LINUX_NAMES
from tlx.legalize.arm.mmla import mmla_unit
from tlx.legalize.arm.processors import FOUR_PIPES, NEON_PROCESSORS, NEOVERSE_CACHES
from tlx.target.instructions.dots import Dot, with_swapped_operands
from tlx.target.instructions.vectors import NarrowFloats, VectorInstructions
from tlx.target.target import Detection, Target

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

_FLOATS: Final = VectorType(4, FLOAT)
_BFLOATS: Final = VectorType(8, BFLOAT)
_WORDS: Final = VectorType(4, I32)
_BYTES: Final = VectorType(16, I8)
_CYCLES: Final = 0.25
"""Of a dot product, as of a multiply-add."""


def _bfdot(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """BFDOT: two products of bfloat added to each float."""
    x, y = (b.cast("bitcast", operand, _BFLOATS) for operand in (lhs, rhs))
    return b.call_named("llvm.aarch64.neon.bfdot.v4f32.v8bf16", _FLOATS, [acc, x, y], "acc").value


def _byte_dot(name: str, b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """SDOT, UDOT, USDOT: four products of bytes added to each i32."""
    x, y = (b.cast("bitcast", operand, _BYTES) for operand in (lhs, rhs))
    return b.call_named(f"llvm.aarch64.neon.{name}.v4i32.v16i8", _WORDS, [acc, x, y], "acc").value


# A dot product takes a lane of its last operand, so that is A, except in SUDOT.
_sdot: Final = with_swapped_operands(partial(_byte_dot, "sdot"))
_udot: Final = with_swapped_operands(partial(_byte_dot, "udot"))
_usdot: Final = partial(_byte_dot, "usdot")


_REGISTERS: Final = 31
"""Of 32: if sums, A and B take all, LLVM 19 and 22 spill some of them on Neoverse N1."""


def _with_tiles(target: Target) -> Target:
    """The target with tiles that are multiplied as fast as its vectors."""
    return replace(target, matrix=mmla_unit(target.vector_bytes, target.core.fmas_per_cycle))


TARGET: Final = _with_tiles(
    Target(
        name="neon",
        title="AArch64 with Advanced SIMD, BF16 and I8MM",
        triples=TRIPLES,
        features=("+neon", "+fullfp16", "+dotprod", "+bf16", "+i8mm"),
        derive=_with_tiles,
        vector_bytes=16,
        registers=_REGISTERS,
        dots=(
            Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "bf16", with_swapped_operands(_bfdot), cycles=_CYCLES),
            Dot(("i8", "s"), ("i8", "s"), "i32", 4, "dotprod", _sdot, cycles=_CYCLES),
            Dot(("i8", "u"), ("i8", "u"), "i32", 4, "dotprod", _udot, cycles=_CYCLES),
            Dot(("i8", "u"), ("i8", "s"), "i32", 4, "i8mm", _usdot, cycles=_CYCLES),
            Dot(("i8", "s"), ("i8", "u"), "i32", 4, "i8mm", with_swapped_operands(_usdot), cycles=_CYCLES),
        ),
        instructions=VectorInstructions(has_fma=True, fma_takes_lane=True, has_rounding=True),
        narrow_floats=NarrowFloats(converts_half=True, half_arithmetic="fullfp16"),
        caches=NEOVERSE_CACHES,
        core=FOUR_PIPES,
        cpus=NEON_PROCESSORS,
        requires=("neon",),
        detection=Detection(linux_names=LINUX_NAMES, emit=DETECT, on_linux_only=True),
    )
)
