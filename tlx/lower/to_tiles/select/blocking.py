"""Blocking of a product on vector registers: cache blocks, passes over K, k-unroll.

Cache blocks of a product on vector registers: rows of A and columns of B that stay near while the other goes by.

first cache      a panel of B, which meets the row tiles of a block
second cache     a block of B's columns, which meets all of A; small operands stay beside it
last cache       A, packed once for all blocks of columns

Whether B is read as it lies, and which parts of K a pass goes over.

    B packed        read, written to panels that stay near, and read again: pays where many rows meet it
    B as it lies    each panel a few lines of each row: pays where B stays in the caches, or few rows meet it

Few rows that meet a B from behind the second cache go over K in passes: while one part of B is multiplied, the next one
is asked for, end to end (`prefetch.streams`). With kc positions a pass, N columns and M rows, cycles go to

    kc N / FAR_BYTES                 what nothing is multiplied beside: the first part      fewest where they are equal,
    2 M N K / kc / (2 FAR_BYTES)     C, read and written for each part, from near           kc = sqrt(M K)

and two parts fit the second cache beside C. Where that does not pay, all of K is multiplied. Where each position is in
a page of its own, 128 are looked up at once.

Measured (Xeon with AMX-FP16, one core, float, G/s with B packed or K whole, now): 16x1024x1024 98, 142; 32x1024x1024
101, 158; 64x1024x1024 119, 150; 64x512x4096 55, 111. Xeon with AMX: 96x1024x1024 154, 170; 196x1024x256 156, 170;
double 4096 cubed by 2048 and 1024 positions 84, 88; by 1024 and 512 75.8, 82.2 and 80.4, 79.0 (others beside it).

How many positions of K a register tile multiplies at a time, where no operand is converted on the way.

    for k:                                       for k, by 2:
      acc += A[tile, k] @ B[k, panel]              acc += A[tile, k:k+2] @ B[k:k+2, panel]

A tile with registers to spare holds the rows of B of several positions: a loop has fewer instructions of its own, and
is left fewer times too late. A sum that is written out goes over a row of A while it is at it, which keeps what waits
for a load short. Each element is added in the order of K either way.

Measured (Xeon with AVX-512, medians in one process, cycles before and now): 32x32x32 float 1211, 1158; 13x17x19 double
451, 423; 12x24x36 float 550, 525, double 688, 667; 16x16x16 float, written out, 178, 167; 32x32x32 half, both packed,
1278, 1236, beside another thread on the core 1661, 1532. Four at a time, or two with hardly a register left, were not
faster.
"""

from __future__ import annotations

from math import isqrt
from typing import Final

from tlx.ir.types import Type, bytes_of
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.caches import usable_last_level_bytes
from tlx.lower.to_tiles.select.recipe import Recipe, round_up
from tlx.target.target import Target

_FEW_ROWS: Final = 19
"""Rows of A up to which no B is packed for them, wherever it is."""
_REUSES: Final = 128
"""Rows up to which a B from behind the second cache is read as it lies."""
_LONGEST: Final = 2048
"""Positions of a pass."""
_SHORTEST: Final = 32
"""Positions of a pass that asks for the next one's part of B."""
_LOOKED_UP: Final = 128
"""Pages that are looked up at once."""
_GROUPS_APART: Final = 64
"""Groups of rows up to which it does no harm that they lie whole pages apart."""


def b_misses_l2(gemm: Gemm, target: Target) -> bool:
    """Whether B comes from behind the second cache."""
    return gemm.b.size * len(gemm.term_offsets) * bytes_of(gemm.b.element) > target.caches.l2


def reads_b_unpacked(gemm: Gemm, target: Target, accumulator: Type, size: int) -> bool:
    """Whether B, elements of so many bytes, is best read as it lies."""
    if not gemm.b.is_row_major and gemm.b.interleave == 1:
        return False
    if gemm.m <= _FEW_ROWS or (gemm.m <= _most_rows(gemm, target) and _goes_in_passes(gemm, target, accumulator)):
        return True
    return not rows_share_sets(gemm, size, target) and (not b_misses_l2(gemm, target) or gemm.m <= _REUSES)


def rows_share_sets(gemm: Gemm, size: int, target: Target) -> bool:
    """Whether the rows of B lie whole pages apart: a panel of many is more than a first cache has ways for."""
    return (
        gemm.b.row_stride * gemm.b.interleave * size % target.caches.page == 0
        and gemm.k > _GROUPS_APART * gemm.b.interleave
    )


def k_pass(gemm: Gemm, target: Target, accumulator: Type, width: int, *, pack_b: bool) -> int:
    """All of K, or equal parts, 2048 positions at most, where C holds the sums between passes exactly.

    Parts are shorter where A comes from memory for each block of columns, which are wider then. With elements of `size`
    bytes and a block in half of the second cache, memory gives and takes

        M K N 2 kc size / L2     of A, once for each block         fewest where they are equal,
        2 M N K / kc             of C, in each pass                kc = sqrt(L2 / size)
    """
    size = bytes_of(accumulator if width == 1 else gemm.b.element)
    far = gemm.a.bytes_moved > usable_last_level_bytes(target)
    most = min(_LONGEST, isqrt(target.caches.l2 // size)) if far else _LONGEST
    if not pack_b and gemm.b.is_row_major and gemm.m <= _most_rows(gemm, target):
        part = _pass_positions(gemm, target)
        most = part if not b_misses_l2(gemm, target) or _pays(gemm, part) else most
    if gemm.k <= most or not _may_hold_partial_sums(gemm, accumulator):
        return gemm.k
    passes = -(-gemm.k // most)
    return round_up(-(-gemm.k // passes), width)


def _most_rows(gemm: Gemm, target: Target) -> int:
    """Rows up to which B may be read in passes: twice as many where all operands stay in the second cache."""
    near = gemm.a.bytes_moved + gemm.b.bytes_moved + gemm.c.bytes_moved <= target.caches.l2
    return 2 * _REUSES if near else _REUSES


def _pass_positions(gemm: Gemm, target: Target) -> int:
    """Positions of a pass over a B that is read as it lies."""
    pages = _LOOKED_UP if _pitch(gemm) >= target.caches.page else _LONGEST
    return min(pages, isqrt(gemm.m * gemm.k), _b_rows_in_half_l2(gemm, target)) if b_misses_l2(gemm, target) else pages


def _pays(gemm: Gemm, part: int) -> bool:
    """Whether a pass of so many positions gains twice what it costs, in cycles a position for a register of C.

    gains    4 lanes / M FAR_BYTES                what it takes to read B
    costs    4 lanes kc / K M FAR_BYTES           the first part of it
             8 lanes / kc 2 FAR_BYTES             C, read and written
    """
    return part >= _SHORTEST and part - 2 * part * part / gemm.k >= gemm.m


def c_holds_sums(gemm: Gemm, accumulator: Type) -> bool:
    """Whether C holds sums as they are: of the accumulator's type, row by row, with nothing applied to them."""
    return gemm.c.element == accumulator and gemm.c.is_row_major and gemm.epilogue is None


def _may_hold_partial_sums(gemm: Gemm, accumulator: Type) -> bool:
    """Whether C may hold sums that are not complete."""
    return c_holds_sums(gemm, accumulator) and len(gemm.term_offsets) == 1


def _goes_in_passes(gemm: Gemm, target: Target, accumulator: Type) -> bool:
    """Whether B is near, or the second cache holds C beside two parts of it that are worth a pass."""
    near = not b_misses_l2(gemm, target)
    return _may_hold_partial_sums(gemm, accumulator) and (near or _pays(gemm, _pass_positions(gemm, target)))


def _b_rows_in_half_l2(gemm: Gemm, target: Target) -> int:
    """Rows of B of which the second cache holds twice as many, beside C."""
    return max(0, target.caches.l2 * 3 // 4 - gemm.c.bytes_moved) // 2 // max(_pitch(gemm), 1)


def _pitch(gemm: Gemm) -> int:
    """Bytes from a row of B to the next."""
    return gemm.b.row_stride * bytes_of(gemm.b.element)


_OF_L3: Final = 4
"""Part of the last cache that all of A, packed, may take."""
_PACKED_AGAIN: Final = 2
"""Times that A is packed at most: a copy is read faster than it is made, from wherever it comes."""


def is_packed_whole(gemm: Gemm, target: Target, row: int, nc: int) -> bool:
    """Whether an A that several blocks of columns read, rows of so many bytes, is packed once for all of them.

    The last cache holds it, or there are many blocks; else each of them packs it anew.
    """
    return gemm.m * row <= target.caches.l3 // _OF_L3 or gemm.n > _PACKED_AGAIN * nc


def cache_blocks(
    gemm: Gemm, target: Target, tile: tuple[int, int], line: tuple[int, int], *, pack_a: bool, by_columns: bool
) -> tuple[int, int]:
    """Rows and columns of a cache block, of an A whose rows, and a B whose columns have so many bytes.

    An A that is copied column by column is copied as a whole where several blocks of columns read it, and lies in rows
    then; else it is copied block by block, and goes by beside B.
    """
    (mr, nr), (row, column), l2 = tile, line, target.caches.l2
    if by_columns:
        mc, nc = _blocks(target, tile, (gemm.m, row), (column, l2 // 2), pack_a=False)
        if nc < gemm.n and is_packed_whole(gemm, target, row, nc):
            return mc, nc
    mc, nc = _blocks(target, tile, (gemm.m, row), (column, l2 // (4 if by_columns else 2)), pack_a=pack_a)
    stay = nr * column + mr * row <= target.caches.l1 // 2  # a panel and a row tile
    if pack_a and gemm.a.is_row_major and (gemm.n <= nr or not stay):
        mc = mr  # a row tile is packed right before its products, and stays near while panels of B go by
    return mc, nc


def _blocks(
    target: Target, tile: tuple[int, int], a: tuple[int, int], b: tuple[int, int], *, pack_a: bool
) -> tuple[int, int]:
    """Rows and columns of a cache block; A has rows of so many bytes, B columns of so many and room for so many.

    B's block stays in a part of the second cache, beside all of A where that is small, while A goes by. Where
    a panel of B stays in the first cache, it meets many row tiles there; else it comes from the second cache for each
    of them, and the rows of an A that is large meet all panels instead. Rows are packed many at a time.
    """
    caches = target.caches
    mr, nr = tile
    (rows, row), (column, for_b) = a, b
    beside = rows * row if rows * row <= caches.l2 // 4 else 0
    nc = max(nr, (for_b - beside) // column // nr * nr)
    held = caches.l2 // 4 if pack_a or beside or column * nr <= caches.l1 // 2 else caches.l1
    return max(mr, held // row // mr * mr), nc


_IN_LOOPS: Final = 2


def k_unroll(gemm: Gemm, recipe: Recipe, target: Target, tile: tuple[int, int], *, written_out: bool) -> int:
    """Positions of K that a step of a tile's sum multiplies, by multiply-adds.

    Args:
        gemm: The product.
        recipe: How it is computed.
        target: Its registers hold the sums, and for each position a row of B and an element of A; a sum is added to
            less often in a row than instructions wait for one of them. Once more, and 16x16x16 floats take 47.1 ns
            where they take 46.1 (Emerald Rapids; a newer Xeon does not tell them apart).
        tile: Rows, and registers of a row.
        written_out: Whether the sum is no loop.
    """
    rows, vectors = tile
    if rows <= vectors or not _lies_in_rows(gemm, recipe) or recipe.prefetch.b_steps:
        return 1
    held = (target.registers - 1 - rows * vectors) // (vectors + 1)
    return max(1, min(held, int(target.core.latency) - 1 if written_out else _IN_LOOPS))


def _lies_in_rows(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether multiply-adds read both operands row by row, as they lie or in panels, without converting them."""
    if recipe.mma.unit != "fma" or not recipe.mma.operand_a == recipe.mma.operand_b == recipe.mma.accumulator:
        return False
    return gemm.a.is_row_major and (recipe.packing.b or gemm.b.row_stride > 0)
