"""What kernels and cost models assume about caches and memory beyond the target's sizes."""

from __future__ import annotations

from tlx.lower.to_tiles.problem import BatchStrides
from tlx.target.costs.memory import Caches, MemoryModel


def usable_last_level_bytes(caches: Caches, memory: MemoryModel) -> int:
    """Bytes of the last-level cache that one program can count on."""
    return min(caches.l3, memory.max_l3_bytes_per_program)


def retained_last_level_bytes(caches: Caches, memory: MemoryModel) -> int:
    """Bytes that stay in the last-level cache until they are read again: one processor's share of it, within limits.

    Larger results are best written by non-temporal stores. Speed-up by them, measured on 2026-11-22, without and with a
    reader of the result right after:

        10,000 products 16x16x16, float (30 MB)    Xeon 6/207/2, 16 processors on 300 MB    1.33 and .98 times as fast
                                                   32 processors on 300 MB                  1.36 and 1.16
                                                   a newer Xeon, 2 on 480 MB                 .98 and  .80
        exp of 4 M floats (32 MB)                  32 on 300 MB                             1.68 and 1.24
        a sum of 4 M bfloats (24 MB)               32 on 300 MB                             1.42 and 1.12
    """
    share = max(memory.min_l3_bytes_per_core, caches.l3 // caches.l3_sharers)
    return min(share, usable_last_level_bytes(caches, memory))


def batch_exceeds_caches(batch: BatchStrides | None, caches: Caches, memory: MemoryModel) -> bool:
    """Whether all iterations of a batch together move more than the last-level cache holds for one program."""
    return batch is not None and batch.total is not None and batch.total > retained_last_level_bytes(caches, memory)
