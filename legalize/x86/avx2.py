"""`avx2`: x86-64 with AVX2, FMA and F16C; AVX-VNNI, AVX-VNNI-INT8 and AVX-NE-CONVERT where the features say so.

Without dot products of bytes, bytes become i16, pairs of which VPMADDWD multiplies: at twice the rate of i32 and with
half as many bytes to load. bfloat and half are converted to float while packing; AVX-NE-CONVERT converts bfloat as it
is loaded.

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, and Intel Architecture Instruction Set
Extensions Programming Reference: VFMADD231PS, VPDPBUSD and VPDPWSSD (VEX), VPDPB[SU][SU]D, VPMADDWD, VBCSTNEBF162PS,
VCVTNEEBF162PS, VCVTNEOBF162PS, VCVTPH2PS.
A multiply-add takes 5 cycles on Haswell, Broadwell and Zen, 4 on later processors (Optimization Reference Manual,
appendix D).

A loop over K has four steps in an iteration. A step of 6x16 floats takes six cycles, and the out-of-order window holds
more of them the fewer instructions there are besides. In cycles (a loop in assembly, Xeon 6/167/1, 2026-11-30), a panel
of B from L1 takes as long either way, one of 864x16 from L2 takes .92 of the time. Whole kernels, speed by alternated
calls there, and on a Xeon 6/207/2: products of 64 and 128 the same, 256 and 512 1.02 and 1.03, 1.03 and 1.06,
128x3072x768 1.03, 1.03; convolutions of 96 channels by 3x3, 52x52 1.04, 1.02, 26x26 1.01, 1.01, 13x13 1.03, 1.06.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.types import FLOAT, I8, I16, I32, VectorType
from tlx.legalize.x86 import TRIPLES
from tlx.legalize.x86.conversions import saturate_in_float
from tlx.legalize.x86.features import LINUX_NAMES, PROCESSORS, emit_detection
from tlx.legalize.x86.host import detect_features
from tlx.target.costs.core import CoreModel
from tlx.target.costs.limits import KernelLimits, KLoopLimits
from tlx.target.costs.memory import Caches
from tlx.target.instructions.compilers import CompilerVersions, LlvmBackend
from tlx.target.instructions.dots import Dot, WideningLoads, with_swapped_operands
from tlx.target.instructions.vectors import NarrowFloats, VectorInstructions
from tlx.target.target import Detection, Target

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

_WORDS: Final = VectorType(8, I32)
_PAIRS: Final = VectorType(16, I16)


def _dot(name: str, b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """A dot product; its operands are spelled as i32, which LLVM 14 requires and later ones upgrade."""
    return b.call_named(f"llvm.x86.{name}.256", _WORDS, [acc, lhs, rhs], "acc").value


def _vpmaddwd(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Pairs of i16, multiplied and summed to i32, then accumulated."""
    pairs = [b.cast("bitcast", operand, _PAIRS) for operand in (lhs, rhs)]
    products = b.call_named("llvm.x86.avx2.pmadd.wd", _WORDS, pairs, "pairs").value
    return b.binary("add", acc, products)


def _fma(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    return b.call_intrinsic("llvm.fma", [acc.type], acc.type, [lhs, rhs, acc], "acc")


def _widened(name: str, b: Builder, address: Value, lanes: int) -> Value:
    """A load that converts bfloat to float; LLVM has it since version 16."""
    return b.call_named(
        f"llvm.x86.{name}{32 * lanes}", VectorType(lanes, FLOAT), [b.retype(address, I8)], "widened"
    ).value


_NE_CONVERT: Final = WideningLoads(
    lhs=partial(_widened, "vbcstnebf162ps"),
    rhs=(partial(_widened, "vcvtneebf162ps"), partial(_widened, "vcvtneobf162ps")),
    lanes=(4, 8),
)

CORE: Final = CoreModel(fma_latency=5, limits=KernelLimits(k_loop=KLoopLimits(min_unroll=4, keeps_order=True)))
"""Without `keeps_order`, `clang-19 -O2` spills up to 16 registers in an iteration of tiles of 4x24 and 3x32."""

TARGET: Final = Target(
    name="avx2",
    title="x86-64 with AVX2, FMA, F16C",
    triples=TRIPLES,
    features=("+avx2", "+fma", "+f16c"),
    compilers=CompilerVersions(features={"avxvnniint8": 16, "avxneconvert": 16}),
    finish=saturate_in_float,
    backend=LlvmBackend(has_saturating_conversions=False),  # LLVM 19 converts one element after another
    vector_bytes=32,
    registers=16,
    dots=(
        Dot(("i8", "u"), ("i8", "s"), "i32", 4, "avxvnni", partial(_dot, "avx512.vpdpbusd")),
        Dot(("i8", "s"), ("i8", "u"), "i32", 4, "avxvnni", with_swapped_operands(partial(_dot, "avx512.vpdpbusd"))),
        Dot(("i8", "s"), ("i8", "s"), "i32", 4, "avxvnniint8", partial(_dot, "avx2.vpdpbssd")),
        Dot(("i8", "s"), ("i8", "u"), "i32", 4, "avxvnniint8", partial(_dot, "avx2.vpdpbsud")),
        Dot(("i8", "u"), ("i8", "s"), "i32", 4, "avxvnniint8", with_swapped_operands(partial(_dot, "avx2.vpdpbsud"))),
        Dot(("i8", "u"), ("i8", "u"), "i32", 4, "avxvnniint8", partial(_dot, "avx2.vpdpbuud")),
        Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "avxneconvert", _fma, widening_loads=_NE_CONVERT, cycles=1.0),
        Dot(("i16", "s"), ("i16", "s"), "i32", 2, "avxvnni", partial(_dot, "avx512.vpdpwssd")),
        Dot(("i16", "s"), ("i16", "s"), "i32", 2, "avx2", _vpmaddwd, scratch_registers=1),
    ),
    instructions=VectorInstructions(has_fma=True, has_rounding=True, masked_bits=(32, 64), opaque_constraint="x"),
    narrow_floats=NarrowFloats(converts_half=True),
    caches=Caches(l1=32 << 10, l2=512 << 10, l3=8 << 20),
    core=CORE,
    cpus=PROCESSORS,
    requires=("avx2", "fma", "f16c"),
    tiers=((), ("avxvnni",)),
    detection=Detection(linux_names=LINUX_NAMES, find_features=detect_features, emit=emit_detection),
)
