"""`rvv`: RISC-V with the vector extension 1.0, registers of at least 128, 256 or 512 bits.

Code has vectors of the least length, and functions the attribute `vscale_range`, from which LLVM's backend knows that
such a vector fits in a register. It sets `vl` to their elements, so that longer registers do no harm, and partial
vectors need no masks. A multiply-add takes its left factor from a scalar register (VFMACC.VF, VMACC.VX).

`rvv` has 128 bits, or what `--mcpu`, `--mattr=+zvl256b` and `--vector-bits` say; `rvv256` and `rvv512` are the same for
other lengths, as versions in one program.

Vectors are single registers: cores whose data paths are as wide as a register, or narrower, gain nothing by groups of
registers, of which there are fewer.

Without dot products, bytes are widened to i32 while packing: VWMACC of words produces no more sums a cycle, as it
writes two registers. Zvqdotq, which LLVM has since version 21, adds four products of bytes to each i32; its operands
are scalable vectors of bytes, and no copy is needed:

    %x = call <vscale x 16 x i8> @llvm.experimental.vector.insert.nxv8i8.v32i8(..., <32 x i8> %bytes, i64 0)

The RISC-V Instruction Set Manual, volume I, chapter "V"; riscv-dot-product, version 0.0.3.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.types import I8, I32, I64, IntType, VectorType
from tlx.ir.values import Keyword, const_int
from tlx.legalize.riscv import TRIPLES
from tlx.legalize.riscv.features import DETECT
from tlx.legalize.riscv.host import detect_features
from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches
from tlx.target.instructions.compilers import CompilerVersions
from tlx.target.instructions.dots import Dot, with_swapped_operands
from tlx.target.instructions.vectors import HalfConversions, NarrowFloats, VectorInstructions
from tlx.target.machines import Processor, VectorLengths
from tlx.target.target import Detection, Target

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

_GRANULE_BYTES: Final = 8
"""`vscale` is the number of granules in a register."""
_LEAST_BYTES: Final = 16
_LARGEST: Final = 1024
"""The largest `vscale` of the architecture."""
_HALF: Final = "zvfhmin"
_HALF_ARITHMETIC: Final = "zvfh"
_VQDOT: Final = "experimental-zvqdotq"
_TAIL_AGNOSTIC: Final = 1


def _of_length(target: Target) -> Target:
    """The target for vectors of its length: their attribute, and machines that have them."""
    scale, bits = target.vector_bytes // _GRANULE_BYTES, 8 * target.vector_bytes
    requires = ("v",) if target.vector_bytes == _LEAST_BYTES else ("v", f"zvl{bits}b")
    return replace(target, attributes=(f"vscale_range({scale},{_LARGEST})",), requires=requires)


def _scalable(b: Builder, value: Value, element: IntType) -> Value:
    """A register as a scalable vector of an element type."""
    assert isinstance(value.type, VectorType)
    assert isinstance(value.type.element, IntType)
    type_ = VectorType(_GRANULE_BYTES * 8 // element.bits, element, scalable=True)
    fixed = VectorType(value.type.count * value.type.element.bits // element.bits, element)
    name = f"llvm.experimental.vector.insert.nxv{type_.count}{element}.v{fixed.count}{element}"
    args = [Keyword(type_, "undef"), b.cast("bitcast", value, fixed), const_int(I64, 0)]
    return b.call_named(name, type_, args, "scalable").value


def _vqdot(name: str, b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """VQDOT, VQDOTU, VQDOTSU: products of four bytes added to each i32."""
    fixed = acc.type
    assert isinstance(fixed, VectorType)
    start = _scalable(b, acc, I32)
    operands = [_scalable(b, operand, I8) for operand in (lhs, rhs)]
    args = [start, *operands, const_int(I64, fixed.count), const_int(I64, _TAIL_AGNOSTIC)]
    result = b.call_named(f"llvm.riscv.{name}.nxv2i32.nxv8i8.i64", start.type, args, "acc").value
    extract = f"llvm.experimental.vector.extract.v{fixed.count}i32.nxv2i32"
    return b.call_named(extract, fixed, [result, const_int(I64, 0)], "fixed").value


_vqdotsu: Final = partial(_vqdot, "vqdotsu")


_BASE: Final = ("v", "m", "a", "f", "d")
_X280: Final = Processor(
    (*_BASE, "zvl512b", _HALF, _HALF_ARITHMETIC),
    vector_bytes=64,
    caches=Caches(l1=32 << 10, l2=256 << 10, l3=2 << 20),
    core=CoreModel(fmas_per_cycle=0.5, loads_per_cycle=0.5, fma_latency=8, issue_width=2),
)
"""SiFive Intelligence X280: registers of 512 bits, data paths of 256 (LLVM, RISCVSchedSiFive7.td)."""
_P670: Final = Processor(
    (*_BASE, "zvl128b"), core=CoreModel(fmas_per_cycle=2, loads_per_cycle=1, fma_latency=5, issue_width=4)
)
"""SiFive P670: two vector pipes of 128 bits (LLVM, RISCVSchedSiFiveP600.td)."""
_X60: Final = Processor((*_BASE, "zvl256b", _HALF, _HALF_ARITHMETIC), vector_bytes=32)
"""SpacemiT X60."""

TARGET: Final = _of_length(
    Target(
        name="rvv",
        title="RISC-V with the vector extension",
        triples=TRIPLES,
        features=tuple(f"+{feature}" for feature in _BASE),
        compilers=CompilerVersions(16, {_HALF: 19, _HALF_ARITHMETIC: 19, _VQDOT: 21}),
        derive=_of_length,
        vector_bytes=_LEAST_BYTES,
        lengths=VectorLengths((16, 32, 64), features=(("zvl128b", 16), ("zvl256b", 32), ("zvl512b", 64))),
        registers=32,
        dots=(
            Dot(("i8", "s"), ("i8", "s"), "i32", 4, _VQDOT, partial(_vqdot, "vqdot"), cycles=1),
            Dot(("i8", "u"), ("i8", "u"), "i32", 4, _VQDOT, partial(_vqdot, "vqdotu"), cycles=1),
            Dot(("i8", "s"), ("i8", "u"), "i32", 4, _VQDOT, _vqdotsu, cycles=1),
            Dot(("i8", "u"), ("i8", "s"), "i32", 4, _VQDOT, with_swapped_operands(_vqdotsu), cycles=1),
        ),
        instructions=VectorInstructions(has_fma=True, has_rounding=True),
        narrow_floats=NarrowFloats(half_conversions=HalfConversions(_HALF), half_arithmetic=_HALF_ARITHMETIC),
        caches=Caches(l1=32 << 10, l2=512 << 10, l3=2 << 20),
        core=CoreModel(fmas_per_cycle=1, loads_per_cycle=1, fma_latency=5, issue_width=2),
        cpus={"sifive-x280": _X280, "sifive-p670": _P670, "spacemit-x60": _X60},
        detection=Detection(find_features=detect_features, emit=DETECT, on_linux_only=True),
    )
)
