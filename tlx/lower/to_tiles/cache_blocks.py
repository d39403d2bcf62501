"""Cache blocks of a product on vector registers: rows of A and columns of B that stay near while the other goes by.

first cache      a panel of B, which meets the row tiles of a block
second cache     a block of B's columns, which meets all of A; small operands stay beside it
last cache       A, packed once for all blocks of columns
"""

from __future__ import annotations

from typing import Final

from tlx.lower.to_tiles.problem import Gemm
from tlx.target import Target

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
