"""Which tiles of a product on AMX bypass the first-level cache, and which rows are prefetched."""

from __future__ import annotations

import pytest

from tlx.ir.types import BFLOAT, FLOAT, I8, I32, Type
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.selection import select
from tlx.target.installed import targets


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


@pytest.mark.parametrize(
    ("m", "n", "k", "rows", "columns", "asks"),
    [
        (128, 3072, 768, 128, 128, "B"),  # all rows of A stay in the second cache
        (512, 3072, 768, 512, 128, "B"),
        (512, 768, 3072, 128, 32, "B"),  # some rows do
        (128, 512, 512, 32, 512, ""),  # all of B stays there, too
        (16, 3072, 768, 16, 320, ""),  # each panel is read once
        (512, 4096, 4096, 32, 128, ""),  # the third cache does not hold B
        (1024, 1024, 1024, 32, 512, "A"),  # more than half of a row tile stays in the first cache
    ],
)
def test_panels_that_were_packed_before_pass_through_l2(
    m: int, n: int, k: int, rows: int, columns: int, asks: str
) -> None:
    a, b, c = MatrixView(BFLOAT, m, k, k, 1), MatrixView(BFLOAT, k, n, n, 1), MatrixView(FLOAT, m, n, n, 1)
    target = targets()["amx"].on_cpu("sapphirerapids")
    recipe = select(Gemm(a, b, c, None, "f", "f", packs_per_product=0.0), target)
    assert (recipe.blocks.mc, recipe.blocks.nc, recipe.prefetch.operands) == (rows, columns, asks)
