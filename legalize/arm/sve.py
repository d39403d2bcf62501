"""`sve`: AArch64 with the Scalable Vector Extension at a length known when the code is lowered: 128, 256 or 512 bits.

Code has vectors of that length, and functions the attribute `vscale_range`, from which LLVM's backend knows that such
a vector is a register. Partial vectors are loaded and stored under predicates. `sve` has 128 bits, or what `--mcpu` and
`--vector-bits` say; `sve256` and `sve512` are the same for other lengths, as versions in one program. Code for one
length is wrong on machines with another.

Arm Architecture Reference Manual for A-profile, C8.2: FMLA, SDOT, UDOT, USDOT, BFDOT (vectors), LD1W, ST1W.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.types import BFLOAT, I8, Type, VectorType
from tlx.legalize.arm import TRIPLES
from tlx.legalize.arm.features import DETECT, LINUX_NAMES
from tlx.legalize.arm.host import host_vector_length
from tlx.legalize.arm.mmla import mmla_unit
from tlx.legalize.arm.processors import FOUR_PIPES, NEOVERSE_CACHES, SVE_PROCESSORS
from tlx.legalize.arm.scalable import GRANULE_BYTES, from_scalable, scalable, to_scalable
from tlx.target.instructions.dots import Dot, with_swapped_operands
from tlx.target.instructions.vectors import NarrowFloats, VectorInstructions
from tlx.target.machines import VectorLengths
from tlx.target.target import Detection, Target

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

_CYCLES: Final = 0.25
_TUNING: Final = {32: ('"tune-cpu"="cortex-x1"',)}
"""By bytes of a vector. LLVM's tuning for Neoverse V1, the one processor with this length, does not load and repeat an
element of A by LD1RW but by LDR and DUP, which takes the ports of the products. That for Cortex-X1, from which V1 is
derived, does. So does that for no processor (`generic`), but it loads early, as for a core that executes in order, and
registers spill."""


def _of_length(target: Target) -> Target:
    """The target for vectors of its length: their attribute, tiles of it, machines that have it."""
    scale = target.vector_bytes // GRANULE_BYTES
    return replace(
        target,
        attributes=(f"vscale_range({scale},{scale})", *_TUNING.get(target.vector_bytes, ())),
        matrix=mmla_unit(target.vector_bytes, target.core.fmas_per_cycle),
        requires=("sve", f"sve{8 * target.vector_bytes}"),
    )


def _dot(name: str, element: Type, b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """SDOT, UDOT, USDOT, BFDOT: products of four bytes, or two bfloats, added to each 32-bit element."""
    fixed = acc.type
    assert isinstance(fixed, VectorType)
    args = [to_scalable(b, acc, fixed.element), *(to_scalable(b, operand, element) for operand in (lhs, rhs))]
    suffix = "" if element == BFLOAT else ".nxv4i32"
    result = b.call_named(f"llvm.aarch64.sve.{name}{suffix}", scalable(fixed.element), args, "acc").value
    return from_scalable(b, result, fixed)


_usdot: Final = partial(_dot, "usdot", I8)


TARGET: Final = _of_length(
    Target(
        name="sve",
        title="AArch64 with SVE, BF16 and I8MM",
        triples=TRIPLES,
        features=("+sve", "+neon", "+fullfp16", "+bf16", "+i8mm"),
        derive=_of_length,
        vector_bytes=GRANULE_BYTES,
        lengths=VectorLengths((16, 32, 64)),
        registers=32,
        dots=(
            Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "bf16", partial(_dot, "bfdot", BFLOAT), cycles=_CYCLES),
            Dot(("i8", "s"), ("i8", "s"), "i32", 4, "sve", partial(_dot, "sdot", I8), cycles=_CYCLES),
            Dot(("i8", "u"), ("i8", "u"), "i32", 4, "sve", partial(_dot, "udot", I8), cycles=_CYCLES),
            Dot(("i8", "u"), ("i8", "s"), "i32", 4, "i8mm", _usdot, cycles=_CYCLES),
            Dot(("i8", "s"), ("i8", "u"), "i32", 4, "i8mm", with_swapped_operands(_usdot), cycles=_CYCLES),
        ),
        instructions=VectorInstructions(has_fma=True, has_rounding=True, masked_bits=(8, 16, 32, 64)),
        narrow_floats=NarrowFloats(converts_half=True, half_arithmetic="sve"),
        caches=NEOVERSE_CACHES,
        core=FOUR_PIPES,
        cpus=SVE_PROCESSORS,
        detection=Detection(
            linux_names=LINUX_NAMES, find_features=partial(host_vector_length, "sve"), emit=DETECT, on_linux_only=True
        ),
    )
)
