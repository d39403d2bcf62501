"""The meaning of x86 instructions in numpy: AMX tiles, AVX dot products, conversions and permutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.evaluate.semantics import TargetSemantics
from tlx.legalize.x86.semantics.amx import AMX_INSTRUCTIONS
from tlx.legalize.x86.semantics.avx import AVX_INSTRUCTIONS


def _zeros(_inputs: Sequence[int]) -> Sequence[int]:
    """A processor without any features: a program that chooses its kernels takes the weakest."""
    return (0, 0, 0, 0)


SEMANTICS: Final = TargetSemantics(
    intrinsics={**AMX_INSTRUCTIONS, **AVX_INSTRUCTIONS},
    registers={"x86_amx": (16, 64)},
    assembly=dict.fromkeys(("cpuid", "xgetbv", "syscall"), _zeros),
)
