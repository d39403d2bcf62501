"""Thresholds between the forms of a vector kernel."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """Thresholds between the forms of a kernel on vectors. Calibrated on the benchmark.

    Attributes:
        unpacked_rows: Rows of A up to which B is never packed, whichever cache holds it.
        unpacked_far_rows: Rows up to which a B that exceeds the second-level cache is read unpacked.
        crowded_rows: Rows from which B is packed if its rows share few cache sets: panels of several lines, and of one.
        crowded_k: Rows of B above which panels of several lines are packed then.
        k_pass: Positions of K in a pass: the minimum if a pass prefetches the B of the next one, and the maximum.
        paged_k_pass: The maximum if each row of B is in another page.
        paged_groups: Groups of rows of B up to which a pitch of whole pages does no harm.
        whole_a: Part of the last-level cache that all of A, packed, may take: one in so many.
        a_packings: How often A is packed at most: reading a copy is faster than making one, whichever cache holds it.
        k_unroll: Positions of K in an iteration of a loop, if registers allow: 4 were not faster.
        least_k_unroll: Positions of K in an iteration of a loop, if A and B are read by rows, whatever registers allow.
        least_dot_k_unroll: The same for dot products, whose positions are groups.
        addressed_elements: Elements of A that an iteration of a loop over K may load: where these loads have no
            displacement, each takes an integer register.
        loads_ahead: By how many products of a loop operands are loaded before their first use; 0: right before it.
        registers_ahead: Registers that tiles leave free for these operands: tiles of multiply-adds, of dot products.
        widened_uses: Uses of an operand up to which one converting instruction for each costs less than packing.
        prefetch_steps: Steps along K by which B is prefetched into the first-level cache.
        prefetch_rows: Rows of A that a panel of several blocks prefetches: with 8, 512x4096x4096 bfloat takes 1.1 times
            as long (on a matrix unit).
        prefetch_part, prefetch_piece: Least steps along K of a part and of a piece of it, each of which prefetches a
            row for later tiles.
        streamed_rows: Rows of A up to which B is streamed past sums in the first-level cache.
        streams: Most rows of B that are streamed together: as many streams as hardware prefetchers follow.
        tile_registers: Most registers of each live value of an elementwise tile.
        steady_leaves: Number of leaves equal in all rows from which on elementwise tiles have many rows, as a tile
            loads each of these leaves once.
        chains: Most rows of such a tile.
        reduced_registers: Most registers of sums of a reduction, and most where each of them needs a mask.
    """

    unpacked_rows: int = 19
    unpacked_far_rows: int = 128
    crowded_rows: tuple[int, int] = (128, 96)
    crowded_k: int = 1024
    k_pass: tuple[int, int] = (32, 2048)
    paged_k_pass: int = 128
    paged_groups: int = 64
    whole_a: int = 4
    a_packings: int = 2
    k_unroll: int = 2
    least_k_unroll: int = 1
    least_dot_k_unroll: int = 1
    addressed_elements: int = 1024
    loads_ahead: int = 0
    registers_ahead: tuple[int, int] = (0, 0)
    widened_uses: int = 2
    prefetch_steps: int = 8
    prefetch_rows: int = 4
    prefetch_part: int = 8
    prefetch_piece: int = 4
    streamed_rows: int = 8
    streams: int = 16
    tile_registers: int = 4
    steady_leaves: int = 4
    chains: int = 8
    reduced_registers: tuple[int, int] = (8, 4)
