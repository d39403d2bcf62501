"""A column-major A that is copied once keeps its order: [k][rows], read in order by the inner loop."""

from __future__ import annotations

import numpy as np
import pytest

import tlx
from tests.support.product_texts import product_text
from tests.support.remarks import remarks_of


@pytest.mark.parametrize(
    ("m", "n", "k", "packed"),
    [(200, 400, 1000, True), (200, 400, 64, False), (200, 64, 1000, False), (50, 400, 1000, False)],
)
def test_a_is_copied_where_its_columns_are_many_and_used_often(m: int, n: int, k: int, packed: bool) -> None:
    """A row tile of 1000 columns is as many lines; few rows go over K in passes, short enough for the first cache."""
    remark = remarks_of(product_text(m, n, k, a_columns=True))
    assert ("A packed: it is column-major" in remark) == packed


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(("m", "n", "k"), [(37, 260, 521), (8, 300, 600)])
def test_the_product_is_right(target: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-8, 8, extents).astype(np.float32) for extents in ((k, m), (k, n)))
    c = np.zeros((m, n), np.float32)
    text = product_text(m, n, k, a_columns=True)
    compiled = tlx.compile(text, target)
    compiled(c, a, b)
    assert np.array_equal(c, a.T @ b)
