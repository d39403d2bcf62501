"""Which tiles of a product on AMX bypass the first-level cache, and which rows are prefetched."""

from __future__ import annotations

import pytest

from tlx.ir.types import BFLOAT, FLOAT, I8, I32, Type
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.selection import select
from tlx.target.target import targets


@pytest.mark.parametrize(
    ("element", "n", "passes", "asks"),
    [
        (BFLOAT, 128, False, ""),  # B stays in the first cache
        (I8, 256, False, ""),  # most of it does
        (BFLOAT, 256, True, ""),
        (BFLOAT, 512, True, ""),  # A and B stay in the second cache
        (BFLOAT, 1024, True, "A"),
        (BFLOAT, 2048, True, "A"),
        (BFLOAT, 4096, False, ""),  # no line of a row tile of A stays, and panels are few
    ],
)
def test_tiles_of_b_bypass_l1_if_a_stays_there(element: Type, n: int, asks: str, *, passes: bool) -> None:
    result, sign = (I32, "s") if element == I8 else (FLOAT, "f")
    a, c = MatrixView(element, n, n, n, 1), MatrixView(result, n, n, n, 1)
    recipe = select(Gemm(a, a, c, None, sign, sign), targets()["amx"].on_cpu("sapphirerapids"))
    assert (recipe.prefetch.b_bypasses_l1, recipe.prefetch.operands) == (passes, asks)
