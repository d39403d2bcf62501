"""Power's processors by LLVM's names: features, caches, and what a core does in a cycle.

POWER9 Processor User's Manual, instruction latencies: a multiply-add takes 6 to 7 cycles, two start in a cycle; LLVM,
lib/Target/PowerPC/P10InstrResources.td: Power10 starts four, and two loads, in a cycle. Caches are those of a core of
four threads; IBM's POWER10 Processor, Hot Chips 32: half of the 2 MB of second-level and the 8 MB of third-level cache
of a core of eight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.target.costs.core import CoreModel
from tlx.target.costs.kernels import KernelCosts, RegisterTileCosts
from tlx.target.costs.limits import KernelLimits, KLoopLimits, PrefetchLimits
from tlx.target.costs.memory import Caches
from tlx.target.machines import Processor

POWER8: Final = ("vsx", "altivec", "power8-altivec", "power8-vector", "direct-move")
_POWER9: Final = (*POWER8, "power9-altivec", "power9-vector")
_POWER10: Final = (*_POWER9, "power10-vector", "paired-vector-memops", "mma")

POWER8_CACHES: Final = Caches(l1=32 << 10, l2=512 << 10, l3=10 << 20, line_bytes=128)
_COSTS: Final = KernelCosts(register_tile=RegisterTileCosts(l2_register_cycles=0.05, loop_instructions=3))
"""The second-level cache delivers 64 bytes a cycle."""
_LIMITS: Final = KernelLimits(
    k_loop=KLoopLimits(
        min_unroll=4,
        min_dot_unroll=4,
        max_addressed_elements=24,
        loads_ahead=10,
        spare_registers=12,
        spare_dot_registers=5,
    ),
    prefetch=PrefetchLimits(b_steps=0, min_part_steps=512),
)
"""LXVWSX, which repeats a word, has no displacement: each element of A in an iteration takes an integer register.

LLVM's models of POWER9 and Power10 hold 44 micro-operations and retire them in order: a product that waits for its load
holds up the others. Two products start in the five cycles that a load takes on POWER9. Parts of fewer steps, each of
which loads ahead, would take more instructions: 6.41 M for 256x256x256 float (POWER9) in parts of 32 steps, 6.06 M in
one loop of 256 (QEMU's counts, 2026-11-30). The processor prefetches panels, which are contiguous.
"""
_IN_FLIGHT: Final = 44 / 9
"""Micro-operations that complete in a cycle, as each product stays in the model for nine."""
POWER8_CORE: Final = CoreModel(fma_latency=7, issue_width=_IN_FLIGHT / 2, costs=_COSTS, limits=_LIMITS)
"""POWER8 and POWER9, where a product is two micro-operations."""
POWER10_CACHES: Final = Caches(l1=32 << 10, l2=1 << 20, l3=4 << 20, line_bytes=128)
_POWER10_LIMITS: Final = replace(_LIMITS, k_loop=replace(_LIMITS.k_loop, min_dot_unroll=2, loads_ahead=32))
"""Four products start in each of the six cycles that a load takes, and of two for its address.

With four steps instead of two, LLVM 19 copies registers in some loops of bytes, which then reach 60 to 72 % of what the
ports allow instead of 71 to 72 % (llvm-mca 19, six shapes, 2026-11-30).
"""
POWER10_CORE: Final = CoreModel(
    fmas_per_cycle=4, loads_per_cycle=2, fma_latency=6, issue_width=_IN_FLIGHT, costs=_COSTS, limits=_POWER10_LIMITS
)

PROCESSORS: Final = {
    "pwr8": Processor(POWER8),
    "pwr9": Processor(_POWER9),
    **dict.fromkeys(("pwr10", "pwr11"), Processor(_POWER10, caches=POWER10_CACHES, core=POWER10_CORE)),
}
