"""Arm's processors by LLVM's names: features, vector lengths, caches, and what a core does in a cycle.

Arm Neoverse N1, V1 and V2 Software Optimization Guides, Fujitsu A64FX Microarchitecture Manual; LLVM,
lib/Target/AArch64/AArch64Processors.td. Sizes of caches that a system chooses are those of Graviton 2 to 4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches
from tlx.target.machines import Processor

TWO_PIPES: Final = CoreModel(fmas_per_cycle=2, loads_per_cycle=2, fma_latency=4, issue_width=4)
"""Neoverse N1."""
FOUR_PIPES: Final = CoreModel(fmas_per_cycle=4, loads_per_cycle=3, fma_latency=4, issue_width=8)
"""Neoverse V1 and V2 on 128 bits, Apple's performance cores."""
_V1_SVE: Final = CoreModel(fmas_per_cycle=2, loads_per_cycle=2, fma_latency=4, issue_width=8)
_A64FX: Final = CoreModel(fmas_per_cycle=2, loads_per_cycle=2, fma_latency=9, issue_width=4)

NEOVERSE_CACHES: Final = Caches(l1=64 << 10, l2=1 << 20, l3=32 << 20, l1_way_bytes=16 << 10)
_V2_CACHES: Final = replace(NEOVERSE_CACHES, l2=2 << 20)
_A64FX_CACHES: Final = Caches(
    l1=64 << 10, l2=512 << 10, l3=8 << 20, line_bytes=256, l1_way_bytes=16 << 10, page_bytes=64 << 10
)
_APPLE_CACHES: Final = Caches(
    l1=128 << 10, l2=3 << 20, l3=12 << 20, line_bytes=128, l1_way_bytes=16 << 10, page_bytes=16 << 10
)
"""A cluster's cores share the second level: a core can count on a quarter of it, and alone has all of it."""

_ARMV8_2: Final = ("neon", "fullfp16", "dotprod")
_MATRICES: Final = (*_ARMV8_2, "bf16", "i8mm")
_SVE: Final = (*_MATRICES, "sve")

_APPLE: Final = {
    "apple-m1": Processor(_ARMV8_2, 0, _APPLE_CACHES, FOUR_PIPES),
    **dict.fromkeys(("apple-m2", "apple-m3", "apple-m4"), Processor(_MATRICES, 0, _APPLE_CACHES, FOUR_PIPES)),
}

NEON_PROCESSORS: Final = {
    "neoverse-n1": Processor(_ARMV8_2, 0, NEOVERSE_CACHES, TWO_PIPES),
    "neoverse-n2": Processor(_SVE, 0, NEOVERSE_CACHES, TWO_PIPES),
    "neoverse-v1": Processor(_SVE, 0, NEOVERSE_CACHES, FOUR_PIPES),
    "neoverse-v2": Processor(_SVE, 0, _V2_CACHES, FOUR_PIPES),
    "a64fx": Processor(("neon", "fullfp16", "sve"), 0, _A64FX_CACHES, _A64FX),
    **_APPLE,
}

SVE_PROCESSORS: Final = {
    "neoverse-n2": Processor(_SVE, 16, NEOVERSE_CACHES, TWO_PIPES),
    "neoverse-v1": Processor(_SVE, 32, NEOVERSE_CACHES, _V1_SVE),
    "neoverse-v2": Processor(_SVE, 16, _V2_CACHES, FOUR_PIPES),
    "a64fx": Processor(("neon", "fullfp16", "sve"), 64, _A64FX_CACHES, _A64FX),
}
