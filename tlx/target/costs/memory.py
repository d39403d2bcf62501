"""Caches and memory: their sizes, bandwidths and latency."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caches:
    """Bytes of data cache one thread can count on.

    Attributes:
        l1, l2, l3: By level.
        l3_sharers: Processors that share the last-level cache.
        line_bytes: Bytes of a cache line.
        l1_way_bytes: Bytes of a way of the first-level cache: lines that far apart are in the same set.
        page_bytes: Bytes of a page of virtual memory.
        four_set_pitch: Bytes; 16 rows whose pitch is a multiple of it share four sets of the first-level cache.
        two_set_pitch: Bytes; rows whose pitch is a multiple of it share two sets, and 16 of them are in many pages.
    """

    l1: int = 32 << 10
    l2: int = 1 << 20
    l3: int = 16 << 20
    l3_sharers: int = 1
    line_bytes: int = 64
    l1_way_bytes: int = 4096
    page_bytes: int = 4096
    four_set_pitch: int = 1024
    two_set_pitch: int = 2048


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """What the caches and memory deliver, beyond the sizes in `Caches`.

    The figures are those of server cores, measured on Xeon with AMX (Sapphire Rapids), 2026-11-22, one thread.

    Attributes:
        l2_bytes_per_cycle: Bandwidth of the second-level cache: half a line.
        bytes_per_cycle: Bandwidth from beyond the second-level cache.
        l2_miss_latency: Latency of loads that miss the second-level cache, in cycles.
        stream_detection_bytes: Bytes that could have arrived before the prefetcher recognizes a sequential stream.
        tlb_bytes: Bytes that the first-level TLB covers: 96 pages of 4 KB.
        prefetch_distance: Bytes by which elementwise kernels prefetch rows; calibrated on the benchmark.
        max_l3_bytes_per_program: Most bytes of the last-level cache that one program can count on, as other cores use
            it too.
        min_l3_bytes_per_core: Least bytes of a shared last-level cache that each processor can count on.
        write_allocate_cycles: Cycles to fetch a line from the second-level cache before it is written.
        false_sharing_row_cycles: Cycles that each thread loses on a row of C that other threads write parts of: lines
            move between cores. Two threads, interleaved B, 512 cubed (Xeon 6/207/2): 70 for bytes, 140 to 180 for
            bfloat, half of it where only one of them works.
    """

    l2_bytes_per_cycle: int = 32
    bytes_per_cycle: int = 8
    l2_miss_latency: int = 768
    stream_detection_bytes: int = 512
    tlb_bytes: int = 384 << 10
    prefetch_distance: int = 4096
    max_l3_bytes_per_program: int = 32 << 20
    min_l3_bytes_per_core: int = 16 << 20
    write_allocate_cycles: int = 3
    false_sharing_row_cycles: int = 128

    def usable_l3_bytes(self, caches: Caches) -> int:
        """Bytes of the last-level cache that one program can count on."""
        return min(caches.l3, self.max_l3_bytes_per_program)

    def retained_l3_bytes(self, caches: Caches) -> int:
        """Bytes that stay in the last-level cache until they are read again: a processor's share of it, within limits.

        Larger results are best written by non-temporal stores. Speed-up by them, measured on 2026-11-22, without and
        with a reader of the result right after:

            10,000 products 16x16x16, float (30 MB)  Xeon 6/207/2, 16 processors on 300 MB  1.33 and  .98 times as fast
                                                     32 processors on 300 MB                1.36 and 1.16
                                                     a newer Xeon, 2 on 480 MB               .98 and  .80
            exp of 4 M floats (32 MB)                32 on 300 MB                           1.68 and 1.24
            a sum of 4 M bfloats (24 MB)             32 on 300 MB                           1.42 and 1.12
        """
        share = max(self.min_l3_bytes_per_core, caches.l3 // caches.l3_sharers)
        return min(share, self.usable_l3_bytes(caches))
