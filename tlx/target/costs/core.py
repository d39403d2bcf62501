"""What a core does in a cycle: its ports, and the costs and limits of its kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.target.costs.kernels import KernelCosts
from tlx.target.costs.limits import KernelLimits


@dataclass(frozen=True, slots=True)
class CoreModel:
    """What a core does in a cycle, on full vector registers.

    Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter 2: two multiply-adds (ports 0 and 1, or 0
    and 5 on 512 bits), two loads, latency 4; Zen has the same (Software Optimization Guide for Family 1Ah, 2.11).

    Attributes:
        fmas_per_cycle: Multiply-adds.
        loads_per_cycle: Loads, broadcasts of one element included.
        fma_latency: Latency of a multiply-add, in cycles.
        issue_width: Instructions that issue to the ports (Haswell and Skylake; later cores are wider), or complete, if
            fewer.
        costs: Cycles of work besides multiply-adds.
        limits: Thresholds between forms of kernels.
    """

    fmas_per_cycle: float = 2.0
    loads_per_cycle: float = 2.0
    fma_latency: float = 4.0
    issue_width: float = 4.0
    costs: KernelCosts = field(default_factory=KernelCosts)
    limits: KernelLimits = field(default_factory=KernelLimits)
