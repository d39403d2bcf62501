"""A kernel of a matrix unit has the code of a tile once, whether the tile packs a panel of B or not."""

from __future__ import annotations

import pytest

from tests.support.product_texts import product_text
from tlx.lower.pipeline import lower_text


def _products(m: int, n: int, k: int) -> int:
    """The instructions that multiply tiles."""
    return lower_text(product_text(m, n, k, "bfloat", relu=True), target="amx").count("@llvm.x86.tdpbf16ps(i8")


@pytest.mark.parametrize(("n", "k"), [(64, 192), (96, 64), (676, 192)])
def test_three_rows_of_tiles_have_the_code_of_one(n: int, k: int) -> None:
    assert 0 < _products(96, n, k) <= _products(32, n, k)
