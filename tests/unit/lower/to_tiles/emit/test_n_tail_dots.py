"""The last columns of a product, too few for a register, as sums along K."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tlx
from tests.support.product_texts import product_text
from tests.support.remarks import remarks_of
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target


@pytest.mark.parametrize(
    ("n", "said"),
    [(49, "the last column is summed along K"), (196, "the last 4 columns are summed along K"), (48, ""), (62, "")],
)
@pytest.mark.parametrize("relu", [False, True])
def test_few_columns_after_whole_registers_are_summed_along_k(n: int, said: str, *, relu: bool) -> None:
    remark = remarks_of(product_text(512, n, 512, "float", relu=relu))
    assert said in remark
    assert said or "summed along K" not in remark


def test_short_sums_and_integers_are_not_summed_along_k() -> None:
    assert "summed along K" not in remarks_of(product_text(512, 49, 4, "float"))
    assert "summed along K" not in remarks_of(product_text(512, 49, 512, "i32"))


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(
    ("element", "m", "n", "k"),
    [("float", 29, 49, 71), ("float", 23, 36, 2500), ("double", 31, 33, 35), ("float", 7, 17, 64)],
)
@pytest.mark.parametrize("relu", [False, True])
def test_the_products_are_right(target: str, element: str, m: int, n: int, k: int, *, relu: bool) -> None:
    lacking = missing_features(find_target(target), cpu_flags())
    if lacking:
        pytest.skip(f"this processor has no {', '.join(lacking)}")
    rng = np.random.default_rng(m)
    dtype = np.float32 if element == "float" else np.float64
    a, b = (rng.integers(-8, 8, extents).astype(dtype) for extents in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, dtype)
    tlx.compile(product_text(m, n, k, element, relu=relu), target)(c, a, b)
    assert np.array_equal(c, np.maximum(a @ b, 0) if relu else a @ b)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize(("m", "n", "k"), [(23, 17, 2500), (23, 36, 5000)])
def test_a_block_of_k_reads_nothing_of_the_next_one(target: str, m: int, n: int, k: int) -> None:
    """Zeros in place of A's elements would make an infinite one of B a NaN."""
    lacking = missing_features(find_target(target), cpu_flags())
    if lacking:
        pytest.skip(f"this processor has no {', '.join(lacking)}")
    remark = remarks_of(product_text(m, n, k, "float"), target)
    match = re.search(r"blocks .*K (\d+);", remark)
    assert match is not None
    first_pass = int(match[1])
    assert "along K" in remark
    assert first_pass < k
    assert first_pass % 8, "no multiple of a register"
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    b[first_pass, -1] = np.inf
    c = np.full((m, n), np.nan, np.float32)
    tlx.compile(product_text(m, n, k, "float"), target)(c, a, b)
    with np.errstate(invalid="ignore"):  # which some of numpy's kernels signal, though no result is a NaN
        assert np.array_equal(c, a @ b)
