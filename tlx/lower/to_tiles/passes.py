"""Whether B is read as it lies, and which parts of K a pass goes over.

    B packed        read, written to panels that stay near, and read again: pays where many rows meet it
    B as it lies    each panel a few lines of each row: pays where B stays in the caches, or few rows meet it

Few rows that meet a B from behind the second cache go over K in passes: while one part of B is multiplied, the next one
is asked for, end to end (`next_round`). With kc positions a pass, N columns and M rows, cycles go to

    kc N / FAR_BYTES                 what nothing is multiplied beside: the first part      fewest where they are equal,
    2 M N K / kc / (2 FAR_BYTES)     C, read and written for each part, from near           kc = sqrt(M K)

and two parts fit the second cache beside C. Where that does not pay, all of K is multiplied. Where each position is in
a page of its own, 128 are looked up at once.

Measured (Xeon with AMX-FP16, one core, float, G/s with B packed or K whole, now): 16x1024x1024 98, 142; 32x1024x1024
101, 158; 64x1024x1024 119, 150; 64x512x4096 55, 111. Xeon with AMX: 96x1024x1024 154, 170; 196x1024x256 156, 170;
double 4096 cubed by 2048 and 1024 positions 84, 88; by 1024 and 512 75.8, 82.2 and 80.4, 79.0 (others beside it).
"""

from __future__ import annotations

from math import isqrt
from typing import Final

from tlx.ir.types import Type, bytes_of
from tlx.lower.to_tiles.memory import PAGE, counted_on
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import up
from tlx.target import Target

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


def is_far(gemm: Gemm, target: Target) -> bool:
    """Whether B comes from behind the second cache."""
    return gemm.b.size * len(gemm.sums) * bytes_of(gemm.b.element) > target.caches.l2


def fits_unpacked(gemm: Gemm, target: Target, accumulator: Type, size: int) -> bool:
    """Whether B, elements of so many bytes, is best read as it lies."""
    if not gemm.b.is_row_major and gemm.b.group == 1:
        return False
    if gemm.m <= _FEW_ROWS or (gemm.m <= _most_rows(gemm, target) and _goes_in_passes(gemm, target, accumulator)):
        return True
    return not rows_share_sets(gemm, size) and (not is_far(gemm, target) or gemm.m <= _REUSES)


def rows_share_sets(gemm: Gemm, size: int) -> bool:
    """Whether the rows of B lie whole pages apart: a panel of many is more than a first cache has ways for."""
    return gemm.b.row_stride * gemm.b.group * size % PAGE == 0 and gemm.k > _GROUPS_APART * gemm.b.group


def k_block(gemm: Gemm, target: Target, accumulator: Type, width: int, *, pack_b: bool) -> int:
    """All of K, or equal parts, 2048 positions at most, where C holds the sums between passes exactly.

    Parts are shorter where A comes from memory for each block of columns, which are wider then. With elements of `size`
    bytes and a block in half of the second cache, memory gives and takes

        M K N 2 kc size / L2     of A, once for each block         fewest where they are equal,
        2 M N K / kc             of C, in each pass                kc = sqrt(L2 / size)
    """
    size = bytes_of(accumulator if width == 1 else gemm.b.element)
    far = gemm.a.moves > counted_on(target)
    most = min(_LONGEST, isqrt(target.caches.l2 // size)) if far else _LONGEST
    if not pack_b and gemm.b.is_row_major and gemm.m <= _most_rows(gemm, target):
        part = _part(gemm, target)
        most = part if not is_far(gemm, target) or _pays(gemm, part) else most
    if gemm.k <= most or not _may_stop(gemm, accumulator):
        return gemm.k
    passes = -(-gemm.k // most)
    return up(-(-gemm.k // passes), width)


def _most_rows(gemm: Gemm, target: Target) -> int:
    """Rows up to which B may be read in passes: twice as many where all operands stay in the second cache."""
    near = gemm.a.moves + gemm.b.moves + gemm.c.moves <= target.caches.l2
    return 2 * _REUSES if near else _REUSES


def _part(gemm: Gemm, target: Target) -> int:
    """Positions of a pass over a B that is read as it lies."""
    pages = _LOOKED_UP if _pitch(gemm) >= PAGE else _LONGEST
    return min(pages, isqrt(gemm.m * gemm.k), _held(gemm, target)) if is_far(gemm, target) else pages


def _pays(gemm: Gemm, part: int) -> bool:
    """Whether a pass of so many positions gains twice what it costs, in cycles a position for a register of C.

    gains    4 lanes / M FAR_BYTES                what it takes to read B
    costs    4 lanes kc / K M FAR_BYTES           the first part of it
             8 lanes / kc 2 FAR_BYTES             C, read and written
    """
    return part >= _SHORTEST and part - 2 * part * part / gemm.k >= gemm.m


def holds_sums(gemm: Gemm, accumulator: Type) -> bool:
    """Whether C holds sums as they are: of the accumulator's type, row by row, with nothing applied to them."""
    return gemm.c.element == accumulator and gemm.c.is_row_major and gemm.epilogue is None


def _may_stop(gemm: Gemm, accumulator: Type) -> bool:
    """Whether C may hold sums that are not complete."""
    return holds_sums(gemm, accumulator) and len(gemm.sums) == 1


def _goes_in_passes(gemm: Gemm, target: Target, accumulator: Type) -> bool:
    """Whether B is near, or the second cache holds C beside two parts of it that are worth a pass."""
    near = not is_far(gemm, target)
    return _may_stop(gemm, accumulator) and (near or _pays(gemm, _part(gemm, target)))


def _held(gemm: Gemm, target: Target) -> int:
    """Rows of B of which the second cache holds twice as many, beside C."""
    return max(0, target.caches.l2 * 3 // 4 - gemm.c.moves) // 2 // max(_pitch(gemm), 1)


def _pitch(gemm: Gemm) -> int:
    """Bytes from a row of B to the next."""
    return gemm.b.row_stride * bytes_of(gemm.b.element)
