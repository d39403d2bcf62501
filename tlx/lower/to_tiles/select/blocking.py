"""Blocking of a product on vector registers: cache blocks, passes over K, k-unroll.

Cache blocks: a block of one operand stays in a cache while the other operand is streamed through.

L1               a panel of B, reused by the row tiles of a block
L2               a block of B's columns, reused by all of A; small operands stay there, too
last level       A, packed once for all blocks of columns

Whether B is packed, and how K is split into passes:

    B packed        read, written to panels that stay in cache, and read again: pays where many rows use it
    B unpacked      each panel reads a few cache lines of each row: pays where B stays in the caches, or few rows use it

A product of few rows whose B does not fit L2 splits K into passes: while one part of B is multiplied, the next one is
prefetched sequentially (`tlx.lower.to_tiles.prefetch`). With kc positions a pass, N columns and M rows, the cycles
besides the multiply-adds are

    kc N / FAR_BYTES                 reading the first part, which nothing overlaps         least where they are equal,
    2 M N K / kc / (2 FAR_BYTES)     C, read from and written to L2 in each pass            kc = sqrt(M K)

and two parts fit L2 beside C. Where L2 does not hold two such parts, or reading the first one costs too much, a pass
has 128 positions, and each panel is prefetched while the one before is multiplied: a longer panel misses the TLB, and
its rows may share cache sets. Where passes do not pay, one covers all of K.

Measured (Xeon with AMX-FP16, one core, float, G/s with B packed or K whole, now): 16x1024x1024 98, 142; 32x1024x1024
101, 158; 64x1024x1024 119, 150; 64x512x4096 55, 111. Xeon with AMX: 96x1024x1024 154, 170; 196x1024x256 156, 170;
double 4096 cubed by 2048 and 1024 positions 84, 88; by 1024 and 512 75.8, 82.2 and 80.4, 79.0 (on a shared machine).
Panels of 128 positions that prefetch the next one, time divided by that with B packed or K whole (best of alternated
calls on a Xeon 6/167/1, and on a 6/207/2; 2026-11-30): AVX2 16x3072x768 float .26, .35; 16x2048x2048 .29, .65;
32x2048x2048 .65, .78; 64x2048x2048 .51, .90; 16x1024x1024 double .41, .55; AVX-512 16x3072x768 float .75, .79;
32x2048x2048 .68, .74; 64x1000x2048 .85, .92; 128x1024x1024 1.04, .96.

K-unroll: how many positions of K a register tile multiplies in a step, where no operand is converted as it is read.

    for k:                                       for k, by 2:
      acc += A[tile, k] @ B[k, panel]              acc += A[tile, k:k+2] @ B[k:k+2, panel]

A tile with registers to spare holds the rows of B of several positions: the loop has less overhead, and its branch is
mispredicted less often. A fully unrolled sum reads several elements of a row of A in succession, so that few
instructions wait for each load. Elements are added in the order of K either way.

Measured (Xeon with AVX-512, medians in one process, cycles before and now): 32x32x32 float 1211, 1158; 13x17x19 double
451, 423; 12x24x36 float 550, 525, double 688, 667; 16x16x16 float, unrolled, 178, 167; 32x32x32 half, both packed,
1278, 1236, with another thread on the core 1661, 1532. Unrolling by four, or by two with hardly a register left, was
not faster.
"""

from __future__ import annotations

from math import gcd, isqrt
from typing import Final

from tlx.ir.types import Type, bits_of, bytes_of
from tlx.lower.cost import least_k_unroll, needed_registers, randomized_cycles
from tlx.lower.to_tiles.problem import Gemm, c_holds_sums, partial_sums
from tlx.lower.to_tiles.select.recipe import Recipe, round_up
from tlx.target.costs.limits import KernelLimits
from tlx.target.costs.memory import Caches
from tlx.target.target import Target

FEW_PAGE_OFFSETS: Final = 4
"""Places in a page up to which rows of B share cache sets."""
_SHARED_PAGES: Final = 4
"""Rows of B that are a multiple of so many pages apart share sets of the second-level cache even in a short pass."""


def b_misses_l2(gemm: Gemm, caches: Caches) -> bool:
    """Whether B exceeds the second-level cache."""
    return gemm.b.size * len(gemm.term_offsets) * bytes_of(gemm.b.element) > caches.l2


def reads_b_unpacked(gemm: Gemm, target: Target, accumulator: Type, size: int) -> bool:
    """Whether B, whose elements have `size` bytes, is best read unpacked.

    One that is packed before all calls is best read in panels unless it is small. Zen 5, unpacked and in panels, in
    G/s: 8x768x768 float 182 and 246, 32x1024x1024 158 and 263, 64x512x512 256 and 262, 64x64x64 129 and 130.
    """
    limits = target.core.limits
    if not gemm.b.is_row_major and gemm.b.interleave == 1:
        return False
    if gemm.packs_per_product == 0 and gemm.b.bytes_moved * len(gemm.term_offsets) > target.caches.l2 // 8:
        return False
    if gemm.m <= limits.packing.max_unpacked_rows:
        return True
    if _rows_share_few_sets(gemm, size, target):
        return False
    if gemm.m <= _most_rows(gemm, target.caches, target.core.limits) and _may_read_in_passes(gemm, target, accumulator):
        return True
    near = not b_misses_l2(gemm, target.caches) or gemm.m <= limits.packing.max_unpacked_l2_miss_rows
    return near and not rows_are_pages_apart(gemm, size, target.caches, target.core.limits)


def _rows_share_few_sets(gemm: Gemm, size: int, target: Target) -> bool:
    """Whether rows of B share so few sets of the caches that reading a panel in place for many row tiles takes long.

    A pitch of 2 KB or 6 KB leaves 2 places in a page, one of 1 KB, 3 KB or 9 KB leaves 4. Time of unpacked to packed
    panels for 128 rows of A, float (16 cores of a Xeon 6/207/2, each with a product of its own, 2026-11-29):

        N x K      512x512  768x768  1536x768  2304x768  512x1536  1536x1536  2304x1536  512x3072  768x3072  2304x3072
        AVX2       .95      .99                1.05                                      1.96      1.08      1.10
        AVX-512    .96      .93      .91       .97       1.30      1.74       1.04       1.85      .96       1.08
    """
    limits = target.core.limits
    if gemm.b.interleave != 1 or gemm.k <= limits.packing.max_page_pitch_groups:
        return False
    places = distinct_page_offsets(gemm.b.row_stride * size, target.caches)
    narrow = 2 * target.vector_bytes <= target.caches.line_bytes  # a row of a panel is one line
    if narrow:
        is_long = places < FEW_PAGE_OFFSETS or gemm.k > target.caches.page_bytes // target.caches.line_bytes * places
    else:
        is_long = gemm.k > limits.packing.max_set_conflict_k and (
            places < FEW_PAGE_OFFSETS or b_misses_l2(gemm, target.caches)
        )
    least = limits.packing.min_set_conflict_line_rows if narrow else limits.packing.min_set_conflict_rows
    return places <= FEW_PAGE_OFFSETS and is_long and gemm.m >= least


def distinct_page_offsets(pitch: int, caches: Caches) -> int:
    """At how many different places in a page rows begin that are `pitch` bytes apart."""
    return caches.page_bytes // gcd(pitch, caches.page_bytes)


def rows_are_pages_apart(gemm: Gemm, size: int, caches: Caches, limits: KernelLimits) -> bool:
    """Whether the rows of B are whole pages apart, so that a panel of many exceeds the associativity of L1."""
    return (
        gemm.b.row_stride * gemm.b.interleave * size % caches.page_bytes == 0
        and gemm.k > limits.packing.max_page_pitch_groups * gemm.b.interleave
    )


def k_pass(gemm: Gemm, target: Target, accumulator: Type, width: int, *, pack_b: bool) -> int:
    """Positions of K in a pass: all, or equal parts of at most 2048 where a matrix holds the sums between passes.

    A temporary matrix of sums costs more than C, so that parts have 2048 times the size of a sum instead: 512x512x4096
    bfloat by dot products is 3 % slower in two passes (Zen 5).

    A decision seed draws whether K is whole, or in halves or thirds.

    Parts are shorter where A is read from memory for each block of columns, which makes the blocks wider. With elements
    of `size` bytes and a block in half of the second-level cache, the memory traffic in elements is

        M K N 2 kc size / L2     of A, once for each block         least where they are equal,
        2 M N K / kc             of C, in each pass                kc = sqrt(L2 / size)
    """
    size = bytes_of(accumulator if width == 1 else gemm.b.element)
    far = gemm.a.bytes_moved > target.memory.usable_l3_bytes(target.caches)
    longest = target.core.limits.k_loop.max_pass
    if not c_holds_sums(gemm, accumulator):
        longest = longest * bytes_of(accumulator) // size
    most = min(longest, isqrt(target.caches.l2 // size)) if far else longest
    if not pack_b and gemm.b.is_row_major and gemm.m <= _most_rows(gemm, target.caches, target.core.limits):
        most = _unpacked_pass(gemm, target.caches, target.core.limits, accumulator) or most
    seed = target.core.costs.decision_seed
    if not may_split_k(gemm, target, accumulator) or (gemm.k <= most and seed is None):
        return gemm.k
    model, halves, thirds = (round_up(-(-gemm.k // passes), width) for passes in (-(-gemm.k // most), 2, 3))
    if seed is None:
        return model
    return min((gemm.k, halves, thirds), key=lambda kc: randomized_cycles(seed, 0, gemm.knob_key, kc))


def _most_rows(gemm: Gemm, caches: Caches, limits: KernelLimits) -> int:
    """Rows up to which B may be read in passes: twice as many where all operands stay in L2."""
    near = gemm.a.bytes_moved + gemm.b.bytes_moved + gemm.c.bytes_moved <= caches.l2
    return (2 if near else 1) * limits.packing.max_unpacked_l2_miss_rows


def _unpacked_pass(gemm: Gemm, caches: Caches, limits: KernelLimits, accumulator: Type) -> int | None:
    """Most positions of K in a pass over a B that is read unpacked; None if B is better packed.

    Passes pay that gain twice as much as they cost, in cycles per position and register of C:

        gains    4 lanes / M FAR_BYTES                reading B
        costs    4 lanes kc / K M FAR_BYTES           reading its first part, if L2 holds two parts
                 8 lanes / kc 2 FAR_BYTES             reading and writing C

    If L2 does not hold two such parts, each panel is prefetched while the one before is multiplied, and passes pay that
    gain as much as they cost. Two passes do not, unless the rows of a longer panel share sets; nor do any if even those
    of a pass do: with rows 16 KB apart, 32x4096x1024 floats take .35 of the time on a Xeon 6/167/1, but 1.7 times as
    long on a 6/207/2 (AVX2, alternated calls, 2026-11-30).
    """
    k_loop = limits.k_loop
    pages = k_loop.max_paged_pass if _pitch(gemm) >= caches.page_bytes else k_loop.max_pass
    if not b_misses_l2(gemm, caches):
        return pages
    part = min(pages, isqrt(gemm.m * gemm.k), _b_rows_in_half_l2(gemm, caches, accumulator))
    if part >= k_loop.min_pass and part - 2 * part * part / gemm.k >= gemm.m:
        return part
    part = k_loop.max_paged_pass
    pitch, page = _pitch(gemm), caches.page_bytes
    is_long = gemm.k > 2 * part or rows_are_pages_apart(gemm, bytes_of(gemm.b.element), caches, limits)
    pays = is_long and part >= gemm.m and gcd(pitch, _SHARED_PAGES * page) < _SHARED_PAGES * page
    return part if pays else None


def may_split_k(gemm: Gemm, target: Target, accumulator: Type) -> bool:
    """Whether there is one product, and C or a temporary matrix that stays in the last-level cache holds its sums."""
    held = c_holds_sums(gemm, accumulator)
    fits = held or partial_sums(gemm, accumulator).bytes_moved <= target.memory.retained_l3_bytes(target.caches)
    return fits and len(gemm.term_offsets) == 1


def _may_read_in_passes(gemm: Gemm, target: Target, accumulator: Type) -> bool:
    """Whether B fits L2, or passes over K pay."""
    return _unpacked_pass(gemm, target.caches, target.core.limits, accumulator) is not None and may_split_k(
        gemm, target, accumulator
    )


def _b_rows_in_half_l2(gemm: Gemm, caches: Caches, accumulator: Type) -> int:
    """Half of the rows of B that fit L2 together with the partial sums."""
    sums = partial_sums(gemm, accumulator).bytes_moved
    return max(0, caches.l2 * 3 // 4 - sums) // 2 // max(_pitch(gemm), 1)


def _pitch(gemm: Gemm) -> int:
    """Bytes from a row of B to the next."""
    return gemm.b.row_stride * bytes_of(gemm.b.element)


def is_packed_whole(gemm: Gemm, caches: Caches, limits: KernelLimits, row: int, nc: int) -> bool:
    """Whether an A with rows of this many bytes is packed once for all blocks of columns.

    It is where the last-level cache holds it, or there are many blocks; otherwise each block packs it again.
    """
    return (
        gemm.m * row <= caches.l3 // limits.packing.packed_a_l3_divisor or gemm.n > limits.packing.max_a_packings * nc
    )


def cache_blocks(
    gemm: Gemm,
    caches: Caches,
    limits: KernelLimits,
    tile: tuple[int, int],
    line: tuple[int, int],
    *,
    pack_a: bool,
    by_columns: bool,
) -> tuple[int, int]:
    """Rows and columns of a cache block, given the bytes of a row of A and of a column of B.

    A column-major A that several blocks of columns read is copied to row-major as a whole; else it is copied block by
    block, and streamed through the caches like B.
    """
    (mr, nr), (row, column), l2 = tile, line, caches.l2
    if by_columns:
        mc, nc = _blocks(caches, tile, (gemm.m, row), (column, l2 // 2), pack_a=False)
        if nc < gemm.n and is_packed_whole(gemm, caches, limits, row, nc):
            return mc, nc
    mc, nc = _blocks(caches, tile, (gemm.m, row), (column, l2 // (4 if by_columns else 2)), pack_a=pack_a)
    fit_l1 = nr * column + mr * row <= caches.l1 // 2  # a panel and a row tile
    if pack_a and gemm.a.is_row_major and (gemm.n <= nr or not fit_l1):
        mc = mr  # a row tile is packed right before its products, and stays in L1 while panels of B are streamed
    return mc, nc


def _blocks(
    caches: Caches, tile: tuple[int, int], a: tuple[int, int], b: tuple[int, int], *, pack_a: bool
) -> tuple[int, int]:
    """Rows and columns of a cache block; `a`: rows and bytes of a row; `b`: bytes of a column, and the block's limit.

    B's block stays in a part of L2 while A is streamed, beside all of A if that is small. A panel of B that stays in L1
    is reused there by many row tiles. Otherwise each row tile loads it from L2, and blocks of a large A are reused by
    all panels instead. Many rows are packed at a time.
    """
    mr, nr = tile
    (rows, row), (column, most) = a, b
    beside = rows * row if rows * row <= caches.l2 // 4 else 0
    nc = max(nr, (most - beside) // column // nr * nr)
    block_bytes = caches.l2 // 4 if pack_a or beside or column * nr <= caches.l1 // 2 else caches.l1
    return max(mr, block_bytes // row // mr * mr), nc


def k_unroll(gemm: Gemm, recipe: Recipe, target: Target, tile: tuple[int, int], *, unrolled: bool) -> int:
    """Steps along K that are one operation: those of which a load brings a row's elements of A, or what registers hold.

    Args:
        gemm: The product.
        recipe: How it is computed.
        target: The machine. Its registers hold the sums and, for each position, a row of B and an element of A. Fewer
            positions than the latency of a multiply-add are unrolled: with one more, 16x16x16 floats take 47.1 ns
            instead of 46.1 (Emerald Rapids; no difference on a newer Xeon).
        tile: Rows, and registers of a row.
        unrolled: Whether the sum is fully unrolled, without a loop.
    """
    rows, vectors = tile
    if (elements := elements_by_lane(gemm, recipe, target, tile)) > 1:
        return elements
    is_dot = recipe.mma.unit == "dot"
    least = least_k_unroll(target.core, rows, is_dot=is_dot)
    if is_dot and recipe.packing.b and target.core.limits.k_loop.loads_ahead:
        return least
    if not _reads_by_rows(gemm, recipe):
        return 1
    if rows <= vectors or recipe.prefetch.b_steps:
        return least
    positions = (target.registers - 1 - rows * vectors) // (vectors + 1)
    return max(
        least, min(positions, int(target.core.fma_latency) - 1 if unrolled else target.core.limits.k_loop.unroll)
    )


def elements_of_a(target: Target, accumulator: Type) -> int:
    """Elements of a row of A, or groups of them for dot products, that a load brings for sums of this type."""
    return target.vector_bytes * 8 // bits_of(accumulator) if target.instructions.fma_takes_lane else 1


def elements_by_lane(gemm: Gemm, recipe: Recipe, target: Target, tile: tuple[int, int]) -> int:
    """Elements of a row of A, or groups of them, that a tile loads at once and multiplies by lane; 1 for one by one."""
    elements = elements_of_a(target, recipe.mma.accumulator)
    in_rows = _reads_by_rows(gemm, recipe) or (recipe.mma.unit == "dot" and recipe.packing.b)
    return elements if in_rows and needed_registers(*tile, elements=elements) <= target.registers else 1


def _reads_by_rows(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether multiply-adds read both operands row by row, in memory or in panels, without converting them."""
    if recipe.mma.unit != "fma" or not recipe.mma.operand_a == recipe.mma.operand_b == recipe.mma.accumulator:
        return False
    return gemm.a.is_row_major and (recipe.packing.b or gemm.b.row_stride > 0)
