"""Caches and memory as kernels and their cost models see them, beyond the sizes that a target knows."""

from __future__ import annotations

from typing import Final

from tlx.lower.to_tiles.problem.problems import BatchStrides
from tlx.target.target import Target

LINE: Final = 64
"""Bytes to which copies and memory of our own are aligned: a cache line of all machines that are known."""
PAGE: Final = 4096
"""Bytes; rows of copies are not whole multiples of it apart, which would share cache sets."""


def usable_last_level_bytes(target: Target) -> int:
    """Bytes of the last-level cache that one program may take to be its own."""
    return min(target.caches.l3, target.memory.l3_program_bytes)


def retained_last_level_bytes(target: Target) -> int:
    """Bytes that the last-level cache holds until they are read again: a processor's own part of it, within limits.

    Larger results are best written by non-temporal stores. Measured on 2026-11-22, with and without a reader of the
    result right behind:

        10,000 products 16x16x16, float (30 MB)    Xeon 6/207/2, 16 processors on 300 MB    1.33 and .98 times as fast
                                                   another one, 32 on 300 MB                1.36 and 1.16
                                                   a newer one, 2 on 480 MB                  .98 and  .80
        exp of 4 M floats (32 MB)                  32 on 300 MB                             1.68 and 1.24
        a sum of 4 M bfloats (24 MB)               32 on 300 MB                             1.42 and 1.12
    """
    own = max(target.memory.l3_core_bytes, target.caches.l3 // target.caches.sharers)
    return min(own, usable_last_level_bytes(target))


def batch_exceeds_caches(batch: BatchStrides | None, target: Target) -> bool:
    """Whether all rounds together move more than the last-level cache holds for one program."""
    return batch is not None and batch.total is not None and batch.total > retained_last_level_bytes(target)
