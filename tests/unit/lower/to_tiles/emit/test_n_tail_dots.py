"""The last columns of a product, too few for a register, as sums along K."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tlx
from tests.remarks import remarks_of
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target

PROGRAM = """
define void @f(ptr noalias %c, ptr %a, ptr %b) {{
  %x = call token @llvm.tensor.load(ptr elementtype({t}) %a, <2 x i32> <i32 {m}, i32 {k}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype({t}) %b, <2 x i32> <i32 {k}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <{mn} x {t}> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<{mn} x {t}> %m, <2 x i32> <i32 {m}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}}
"""


def _program(element: str, m: int, n: int, k: int) -> str:
    return PROGRAM.format(t=element, m=m, n=n, k=k, mn=m * n)


@pytest.mark.parametrize(
    ("n", "said"),
    [(49, "the last column is summed along K"), (196, "the last 4 columns are summed along K"), (48, ""), (62, "")],
)
def test_few_columns_after_whole_registers_are_summed_along_k(n: int, said: str) -> None:
    remark = remarks_of(_program("float", 512, n, 512))
    assert said in remark
    assert said or "summed along K" not in remark


def test_short_sums_and_integers_are_not_summed_along_k() -> None:
    assert "summed along K" not in remarks_of(_program("float", 512, 49, 4))
    assert "summed along K" not in remarks_of(_program("i32", 512, 49, 512))


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(
    ("element", "m", "n", "k"),
    [("float", 29, 49, 71), ("float", 23, 36, 2500), ("double", 31, 33, 35), ("float", 7, 17, 64)],
)
def test_the_products_are_right(target: str, element: str, m: int, n: int, k: int) -> None:
    lacking = missing_features(find_target(target), cpu_flags())
    if lacking:
        pytest.skip(f"this processor has no {', '.join(lacking)}")
    rng = np.random.default_rng(m)
    dtype = np.float32 if element == "float" else np.float64
    a, b = (rng.integers(-8, 8, extents).astype(dtype) for extents in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, dtype)
    tlx.compile(_program(element, m, n, k), target)(c, a, b)
    assert np.array_equal(c, a @ b)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize(("m", "n", "k"), [(23, 17, 2500), (23, 36, 5000)])
def test_a_block_of_k_reads_nothing_of_the_next_one(target: str, m: int, n: int, k: int) -> None:
    """Zeros in place of A's elements would make an infinite one of B a NaN."""
    lacking = missing_features(find_target(target), cpu_flags())
    if lacking:
        pytest.skip(f"this processor has no {', '.join(lacking)}")
    remark = remarks_of(_program("float", m, n, k), target)
    match = re.search(r"blocks .*K (\d+);", remark)
    assert match is not None
    first_pass = int(match[1])
    assert "along K" in remark
    assert first_pass < k
    assert first_pass % 8, "no multiple of a register"
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    b[first_pass, -1] = np.inf
    c = np.full((m, n), np.nan, np.float32)
    tlx.compile(_program("float", m, n, k), target)(c, a, b)
    with np.errstate(invalid="ignore"):  # which some of numpy's kernels signal, though no result is a NaN
        assert np.array_equal(c, a @ b)
