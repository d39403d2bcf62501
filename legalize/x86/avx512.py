"""`avx512`: x86-64 with AVX-512 F, BW, DQ, VL, BF16 and VNNI (Cooper Lake, Zen 4 and later; see `--mattr` for others).

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: VFMADD231PS, VDPBF16PS, VPDPBUSD, VPDPWSSD,
VPMADDWD (of bytes widened to i16, where there is no VNNI), VSCALEFPS, VRCP14PS, VREDUCEPS, VGETEXPPS,
VGETMANTPS, VCVTPS2DQ, VCVTPD2QQ, VPERMPS, VPERMI2PS.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tlx.ir.types import DOUBLE, FLOAT, I8, I16, I32, I64, Type, VectorType, scalar_of
from tlx.ir.values import const_float, const_int, const_vector
from tlx.legalize.x86 import TRIPLES
from tlx.legalize.x86.conversions import saturate_in_float
from tlx.legalize.x86.features import LINUX_NAMES, PROCESSORS, emit_detection
from tlx.legalize.x86.host import detect_features
from tlx.target.costs.core import CoreModel
from tlx.target.costs.kernels import KernelCosts, RegisterTileCosts
from tlx.target.costs.memory import Caches
from tlx.target.instructions.compilers import LlvmBackend
from tlx.target.instructions.dots import Dot, with_swapped_operands
from tlx.target.instructions.functions import FloatInstructions
from tlx.target.instructions.vectors import NarrowFloats, PairRounding, PermuteInstructions, VectorInstructions
from tlx.target.target import Detection, Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

_WORDS: Final = VectorType(16, I32)
_QUADS: Final = VectorType(8, I64)
_PAIRS: Final = VectorType(32, I16)
_CURRENT_ROUNDING: Final = 4
_TO_NEAREST: Final = 8
"""VREDUCEPS: to the nearest integer, ties to even, no exceptions."""
_UPWARD: Final = 0b1010
"""Embedded rounding: upward, no exceptions."""
_FROM_THREE_QUARTERS: Final = 0b1111
"""VGETMANTPS: mantissas from 3/4 to 3/2; negative numbers are invalid, except -0."""
_MAGNITUDE_FROM_ONE: Final = 0b0100
"""VGETMANTPS: mantissas from 1 to 2 without the sign."""
_SLOW: Final = ("avx512fp16", 2.0)
"""Cycles of VDPBF16PS on Intel's processors with AMX: half the rate of VFMADD231PS (measured on Sapphire and Emerald
Rapids).

They are recognised by AVX512-FP16, which Cooper Lake, Zen 4 and Zen 5 lack: virtual machines often hide AMX.
"""
_FLOATS: Final = VectorType(16, FLOAT)


def vdpbf16ps(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Pairs of bfloat; the operands are spelled as i32, which LLVM 14 requires and later ones upgrade."""
    return b.call_named("llvm.x86.avx512bf16.dpbf16ps.512", _FLOATS, [acc, lhs, rhs], "acc").value


def vcvtne2ps2bf16(b: Builder, first: Value, second: Value) -> Value:
    """VCVTNE2PS2BF16; its result is i16 in LLVM 14 to 16, later ones upgrade it."""
    return b.call_named("llvm.x86.avx512bf16.cvtne2ps2bf16.512", _PAIRS, [second, first], "rounded").value


def vpdpbusd(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Unsigned bytes of the left times signed bytes of the right, four products added to each i32."""
    return b.call_named("llvm.x86.avx512.vpdpbusd.512", _WORDS, [acc, lhs, rhs], "acc").value


def vpdpwssd(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Two products of i16 added to each i32."""
    return b.call_named("llvm.x86.avx512.vpdpwssd.512", _WORDS, [acc, lhs, rhs], "acc").value


def vpmaddwd(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Pairs of i16, multiplied and summed to i32, then accumulated."""
    pairs = [b.cast("bitcast", operand, _PAIRS) for operand in (lhs, rhs)]
    products = b.call_named("llvm.x86.avx512.pmaddw.d.512", _WORDS, pairs, "pairs").value
    return b.binary("add", acc, products)


def vscalef(b: Builder, x: Value, exponent: Value) -> Value:
    """VSCALEFPS, VSCALEFPD: x 2^floor(exponent)."""
    name, lanes = _of_register(x)
    mask = const_int(I16 if lanes == 16 else I8, -1)  # all lanes
    args = [x, exponent, x, mask, const_int(I32, _CURRENT_ROUNDING)]
    return b.call_named(f"llvm.x86.avx512.mask.scalef.{name}.512", x.type, args, "scaled").value


def vrcp14(b: Builder, x: Value) -> Value:
    """VRCP14PS, VRCP14PD: 1 / x, relative error below 2^-14."""
    name, lanes = _of_register(x)
    mask = const_int(I16 if lanes == 16 else I8, -1)
    return b.call_named(f"llvm.x86.avx512.rcp14.{name}.512", x.type, [x, x, mask], "inverse").value


def vreduce(b: Builder, x: Value) -> Value:
    """VREDUCEPS, VREDUCEPD: x - round(x), of infinity 0."""
    name, lanes = _of_register(x)
    mask = const_int(I16 if lanes == 16 else I8, -1)
    args = [x, const_int(I32, _TO_NEAREST), x, mask, const_int(I32, _CURRENT_ROUNDING)]
    return b.call_named(f"llvm.x86.avx512.mask.reduce.{name}.512", x.type, args, "fraction").value


def vgetexp(b: Builder, x: Value) -> Value:
    """VGETEXPPS, VGETEXPPD: floor(log2 |x|)."""
    name, lanes = _of_register(x)
    mask = const_int(I16 if lanes == 16 else I8, -1)
    args = [x, x, mask, const_int(I32, _CURRENT_ROUNDING)]
    return b.call_named(f"llvm.x86.avx512.mask.getexp.{name}.512", x.type, args, "exponent").value


def vgetmant(interval: int, b: Builder, x: Value) -> Value:
    """VGETMANTPS, VGETMANTPD: x / 2^n in an interval, 1 of both zeros."""
    name, lanes = _of_register(x)
    mask = const_int(I16 if lanes == 16 else I8, -1)
    args = [x, const_int(I32, interval), x, mask, const_int(I32, _CURRENT_ROUNDING)]
    return b.call_named(f"llvm.x86.avx512.mask.getmant.{name}.512", x.type, args, "mantissa").value


def vcvtps2dq(b: Builder, x: Value, selected: Value, other: Value) -> Value:
    """VCVTPS2DQ, VCVTPD2QQ in selected lanes: the nearest integer, as the bits of a number; elsewhere `other`."""
    _, count = _of_register(x)
    integers = _WORDS if count == 16 else _QUADS
    mask = b.cast("bitcast", selected, I16 if count == 16 else I8)
    args = [x, b.cast("bitcast", other, integers), mask, const_int(I32, _CURRENT_ROUNDING)]
    kind = "cvtps2dq" if count == 16 else "cvtpd2qq"
    return b.cast("bitcast", b.call_named(f"llvm.x86.avx512.mask.{kind}.512", integers, args, "bits").value, x.type)


def vfmadd_up(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """VFMADD231PS, VFMADD231PD with embedded rounding: x y + z, rounded upward."""
    name, _ = _of_register(x)
    args = [x, y, z, const_int(I32, _UPWARD)]
    return b.call_named(f"llvm.x86.avx512.vfmadd.{name}.512", x.type, args, "sum").value


def table_lookup(b: Builder, table: Sequence[float], index: Value) -> Value:
    """VPERMPS, VPERMI2PS: elements of a table of one or two registers of floats."""
    registers = [const_vector([const_float(FLOAT, x) for x in table[i : i + 16]]) for i in range(0, len(table), 16)]
    if len(registers) == 1:
        return vperm(b, registers[0], index, "lookup")
    return vpermi2(b, registers[0], registers[1], index, "lookup")


_PERMUTE_SUFFIXES: Final[dict[Type, str]] = {I8: "qi", I16: "hi", FLOAT: "sf", DOUBLE: "df"}


def vperm(b: Builder, register: Value, order: Value, name: str) -> Value:
    """VPERMB, VPERMW, VPERMPS, VPERMPD."""
    suffix = _PERMUTE_SUFFIXES[scalar_of(register.type)]
    return b.call_named(f"llvm.x86.avx512.permvar.{suffix}.512", register.type, [register, order], name).value


def vpermi2(b: Builder, first: Value, second: Value, order: Value, name: str) -> Value:
    """VPERMI2PS, VPERMI2PD."""
    suffix, _ = _of_register(first)
    return b.call_named(f"llvm.x86.avx512.vpermi2var.{suffix}.512", first.type, [first, order, second], name).value


_CONSTRAINT: Final = "v"
PERMUTES: Final = PermuteInstructions(
    64,
    MappingProxyType({8: "avx512vbmi", 16: "avx512bw", 32: "avx512f", 64: "avx512f"}),
    permute=vperm,
    permute_two=vpermi2,
    permute_two_types=(FLOAT, DOUBLE),
    opaque_constraint=_CONSTRAINT,
    opaque_bits=(8, 16),
)


def _of_register(x: Value) -> tuple[str, int]:
    """The instructions' suffix for a register of 512 bits, and its lanes."""
    assert isinstance(x.type, VectorType)
    return ("pd" if x.type.element == DOUBLE else "ps"), x.type.count


TARGET: Final = Target(
    name="avx512",
    title="x86-64 with AVX-512, BF16 and VNNI",
    triples=TRIPLES,
    features=("+avx512f", "+avx512bw", "+avx512dq", "+avx512vl", "+avx512bf16", "+avx512vnni", "+f16c", "+fma"),
    finish=saturate_in_float,
    backend=LlvmBackend(has_saturating_conversions=False),  # LLVM 19 converts one element after another
    vector_bytes=64,
    registers=32,
    core=CoreModel(costs=KernelCosts(register_tile=RegisterTileCosts(tile_kind_share=0.003))),
    dots=(
        Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "avx512bf16", vdpbf16ps, slower_with=_SLOW),
        Dot(("i8", "u"), ("i8", "s"), "i32", 4, "avx512vnni", vpdpbusd),
        Dot(("i8", "s"), ("i8", "u"), "i32", 4, "avx512vnni", with_swapped_operands(vpdpbusd)),
        Dot(("i16", "s"), ("i16", "s"), "i32", 2, "avx512vnni", vpdpwssd),
        Dot(("i16", "s"), ("i16", "s"), "i32", 2, "avx512bw", vpmaddwd, scratch_registers=1),
    ),
    instructions=VectorInstructions(
        has_fma=True,
        fma_broadcasts=True,
        has_rounding=True,
        masked_bits=(8, 16, 32, 64),
        permutes=PERMUTES,
        opaque_constraint=_CONSTRAINT,
        functions=FloatInstructions(
            scale=vscalef,
            reciprocal=vrcp14,
            fraction=vreduce,
            exponent=vgetexp,
            mantissa=partial(vgetmant, _FROM_THREE_QUARTERS),
            significand=partial(vgetmant, _MAGNITUDE_FROM_ONE),
            look_up=table_lookup,
            round_to_bits=vcvtps2dq,
            multiply_add_up=vfmadd_up,
        ),
    ),
    narrow_floats=NarrowFloats(
        converts_half=True, half_arithmetic="avx512fp16", pair_rounding=PairRounding("avx512bf16", vcvtne2ps2bf16)
    ),
    caches=Caches(l1=32 << 10, l2=1 << 20, l3=16 << 20),
    cpus=PROCESSORS,
    requires=("avx512f", "avx512bw", "avx512dq", "avx512vl"),
    tiers=((), ("avx512vnni",), ("avx512vnni", "avx512bf16")),
    detection=Detection(linux_names=LINUX_NAMES, find_features=detect_features, emit=emit_detection),
)
