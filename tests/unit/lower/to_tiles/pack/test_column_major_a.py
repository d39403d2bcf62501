"""A column-major A that is copied once keeps its order: [k][rows], read in order by the inner loop."""

from __future__ import annotations

import numpy as np
import pytest

import tlx
from tests.remarks import remarks_of

PROGRAM = """  ; the shape of a column-major operand is listed as it lies: columns first
define void @f(ptr noalias %c, ptr %a, ptr %b) {{
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 {k}, i32 {m}>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 {k}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <{mn} x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<{mn} x float> %m, <2 x i32> <i32 {m}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}}
"""


@pytest.mark.parametrize(
    ("m", "n", "k", "packed"),
    [(200, 400, 1000, True), (200, 400, 64, False), (200, 64, 1000, False), (50, 400, 1000, False)],
)
def test_a_is_copied_where_its_columns_are_many_and_used_often(m: int, n: int, k: int, packed: bool) -> None:
    """A row tile of 1000 columns is as many lines; few rows go over K in passes, short enough for the first cache."""
    remark = remarks_of(PROGRAM.format(m=m, n=n, k=k, mn=m * n))
    assert ("A packed: it is column-major" in remark) == packed


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(("m", "n", "k"), [(37, 260, 521), (8, 300, 600)])
def test_the_product_is_right(target: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-8, 8, extents).astype(np.float32) for extents in ((k, m), (k, n)))
    c = np.zeros((m, n), np.float32)
    text = PROGRAM.format(m=m, n=n, k=k, mn=m * n)
    compiled = tlx.compile(text, target)
    compiled(c, a, b)
    assert np.array_equal(c, a.T @ b)
