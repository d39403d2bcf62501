"""Which products of a sum have elements of A in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.types import FLOAT
from tlx.lower.to_tiles.emit.gemm.k_loop import conflict_free_groups
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.selection import select
from tlx.target.installed import targets


def product(offsets: list[int], pitch: int = 8, rows: int = 14) -> Gemm:
    """Products of rows of 8 channels by 16 filters."""
    sums = tuple((offset, 16 * index) for index, offset in enumerate(offsets))
    a, b = MatrixView(FLOAT, rows, 8, pitch, 1), MatrixView(FLOAT, 8, 16, 16 * len(offsets), 1)
    return Gemm(a, b, MatrixView(FLOAT, rows, 16, 16, 1), None, "f", "f", term_offsets=sums)


@pytest.mark.parametrize(
    ("rows", "pitch", "expected"),
    [
        (6, 8, [[0, 3, 6], [1, 4, 7], [2, 5, 8]]),
        (6, 16, [[0, 1, 3, 4, 6, 7], [2, 5, 8]]),  # windows 2 apart: the first and the third pixel meet
        (16, 8, [[0, 6], [1, 7], [2, 8], [3], [4], [5]]),  # more rows than lie between two lines
        (1, 8, [[0, 1, 2, 3, 4, 5, 6, 7, 8]]),
        (1, 0, [[0, 1, 2, 3, 4, 5, 6, 7, 8]]),
    ],
)
def test_separate_products(rows: int, pitch: int, expected: list[list[int]]) -> None:
    """Windows of 3 x 3 pixels of 8 channels, in an image with rows of 12 pixels."""
    gemm = product([8 * (12 * i + j) for i in range(3) for j in range(3)], pitch)
    assert conflict_free_groups(gemm, rows) == expected


@pytest.mark.parametrize(
    ("offsets", "pitch", "expected"),
    [
        ([(0, 0), (8, 16), (16, 32)], 48, True),
        ([(0, 0), (8, 32), (16, 16)], 48, False),
        ([(0, 0), (8, 16)], 48, False),
        ([(0, 0)], 16, False),
        ([(8 * i, 16 * i) for i in range(49)], 16 * 49, False),
    ],
)
def test_products_are_interleaved(offsets: list[tuple[int, int]], pitch: int, expected: bool) -> None:
    """Where rows of B of one position of K are next to each other, in order, and not too many."""
    a, b = MatrixView(FLOAT, 14, 8, 8, 1), MatrixView(FLOAT, 8, 16, pitch, 1)
    gemm = Gemm(a, b, MatrixView(FLOAT, 14, 16, 16, 1), None, "f", "f", term_offsets=tuple(offsets))
    assert gemm.is_interleaved == expected


def test_contiguous_operands_are_not_prefetched() -> None:
    """The hardware prefetches one sequence of lines; rows of a panel in a wider matrix need software prefetches."""
    b, c = MatrixView(FLOAT, 128, 128, 128 * 9, 1), MatrixView(FLOAT, 28, 128, 128, 1)
    a = MatrixView(FLOAT, 28, 128, 144, 1)
    interleaved = Gemm(a, b, c, None, "f", "f", term_offsets=tuple((144 * index, 128 * index) for index in range(9)))
    assert interleaved.is_interleaved
    assert select(interleaved, targets()["avx512"]).prefetch.b_steps == 0
    apart_ = replace(interleaved, term_offsets=tuple((144 * index, 128 * (8 - index)) for index in range(9)))
    assert not apart_.is_interleaved
    assert select(apart_, targets()["avx512"]).prefetch.b_steps > 0
