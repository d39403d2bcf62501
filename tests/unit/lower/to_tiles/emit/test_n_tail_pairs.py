"""The last columns of a product, at most half a register, as sums of even and of odd positions of K."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tlx
from tests.support.remarks import remarks_of
from tlx.api.validation import validate
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target

PROGRAM = """
define void @f(ptr noalias %c, ptr %a, ptr %b, ptr %bias) {{
  %x = call token @llvm.tensor.load(ptr elementtype({t}) %a, <2 x i32> <i32 {m}, i32 {k}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype({t}) %b, <2 x i32> <i32 {k}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <{mn} x {r}> @llvm.tensor.matmul(token %x, token %y)
{epilogue}  %t = call token @llvm.tensor.typeinfo(<{mn} x {r}> %{v}, <2 x i32> <i32 {m}, i32 {n}>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}}
"""
EPILOGUE = """
  %tx = call token @llvm.tensor.load(ptr elementtype({r}) %bias, <2 x i32> <i32 1, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %row = call <{mn} x {r}> @llvm.tensor.broadcast(token %tx, <2 x i32> <i32 {m}, i32 {n}>, <2 x i32> <i32 0, i32 1>)
  %sum = fadd <{mn} x {r}> %m, %row
"""


def _program(element: str, m: int, n: int, k: int, *, biased: bool = False) -> str:
    result = "float" if element == "half" else element
    words = {"m": m, "n": n, "k": k, "mn": m * n, "r": result}
    return PROGRAM.format(
        **words, t=element, epilogue=EPILOGUE.format(**words) if biased else "", v="sum" if biased else "m"
    )


@pytest.mark.parametrize(
    ("element", "m", "n", "k", "columns"),
    [
        ("float", 64, 8, 64, 8),
        ("double", 64, 4, 64, 4),
        ("float", 64, 3, 64, 3),
        ("float", 48, 40, 48, 8),
        ("half", 8, 8, 9, 8),
        ("float", 64, 8, 65, 8),
        ("float", 64, 9, 64, 0),
        ("float", 64, 48, 64, 0),
        ("i32", 64, 8, 64, 0),
        ("float", 64, 8, 1 << 14, 0),  # B would not stay in the first cache
    ],
)
def test_columns_of_half_a_register_are_summed_by_pairs(element: str, m: int, n: int, k: int, columns: int) -> None:
    remark = remarks_of(_program(element, m, n, k))
    assert (f"the last {columns} columns are summed by pairs along K" in remark) == (columns > 0)
    assert columns or "by pairs" not in remark


def test_registers_of_16_bytes_do_not_pair_sums() -> None:
    assert "by pairs" in remarks_of(_program("float", 64, 4, 64), "avx2")
    assert "by pairs" not in remarks_of(_program("float", 64, 4, 64), "generic")


def test_the_predicted_share_counts_filled_lanes() -> None:
    """8 columns alone would leave half of a register's lanes empty."""
    match = re.search(r"about (\d+) % of peak", remarks_of(_program("float", 64, 8, 64)))
    assert match is not None
    assert int(match[1]) > 50


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize(
    ("element", "m", "n", "k"),
    [
        ("float", 8, 8, 8),
        ("float", 61, 4, 70),
        ("float", 31, 36, 48),
        ("float", 31, 4, 65),
        ("double", 7, 2, 15),
        ("half", 13, 3, 19),
    ],
)
def test_the_products_are_right(target: str, element: str, m: int, n: int, k: int) -> None:
    lacking = missing_features(find_target(target), cpu_flags())
    if lacking:
        pytest.skip(f"this processor has no {', '.join(lacking)}")
    rng = np.random.default_rng(m)
    dtype = {"float": np.float32, "double": np.float64, "half": np.float16}[element]
    a, b = (rng.integers(-8, 8, extents).astype(dtype) for extents in ((m, k), (k, n)))
    result = np.float32 if element == "half" else dtype
    bias = rng.integers(-8, 8, n).astype(result)
    for biased in (False, True):
        c = np.full((m, n), np.nan, result)
        tlx.compile(_program(element, m, n, k, biased=biased), target)(c, a, b, bias)
        expected = a.astype(result) @ b.astype(result)
        assert np.array_equal(c, expected + bias if biased else expected)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize(("element", "m", "n", "k"), [("half", 5, 3, 7), ("float", 3, 21, 10)])
def test_each_stage_means_the_same(target: str, element: str, m: int, n: int, k: int) -> None:
    assert validate(_program(element, m, n, k), target) == []
