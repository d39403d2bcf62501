"""A column-major A that is copied once keeps its order: [k][rows], read in order by the inner loop."""

from __future__ import annotations

import numpy as np
import pytest

import tlx
from tlx.ir.types import FLOAT
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.selection import select
from tlx.target.discovery import targets

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


def _packs_a(m: int, n: int, k: int, strides: tuple[int, int]) -> bool:
    a, b, c = MatrixView(FLOAT, m, k, *strides), MatrixView(FLOAT, k, n, n, 1), MatrixView(FLOAT, m, n, n, 1)
    return select(Gemm(a, b, c, None, "f", "f"), targets()["avx512"]).packing.a


def test_a_is_copied_where_its_columns_are_many_and_used_often() -> None:
    """A row tile of 1000 columns is as many lines; few rows go over K in passes, short enough for the first cache."""
    assert _packs_a(200, 400, 1000, (1, 200))
    assert not _packs_a(200, 400, 64, (1, 200))
    assert not _packs_a(200, 64, 1000, (1, 200))
    assert not _packs_a(200, 400, 1000, (1000, 1))
    assert not _packs_a(50, 400, 1000, (1, 50))


def test_a_copy_of_all_of_a_leaves_b_its_half_of_the_second_cache() -> None:
    """Its tiles are halves of lines: eight floats; rows are read from the copy as from a row-major A."""
    target = targets()["avx512"]
    c, b = MatrixView(FLOAT, 1024, 1024, 1024, 1), MatrixView(FLOAT, 1024, 1024, 1024, 1)
    copied = select(Gemm(MatrixView(FLOAT, 1024, 1024, 1, 1024), b, c, None, "f", "f"), target)
    assert copied.packing.whole_a
    assert copied.tile.mr % 8 == 0
    assert copied.blocks.nc * 1024 * 4 > target.caches.l2 // 4


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(("m", "n", "k"), [(37, 260, 521), (8, 300, 600)])
def test_its_product_is_numpy_s(target: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-8, 8, extents).astype(np.float32) for extents in ((k, m), (k, n)))
    c = np.zeros((m, n), np.float32)
    text = PROGRAM.format(m=m, n=n, k=k, mn=m * n)
    compiled = tlx.compile(text, target)
    compiled(c, a, b)
    assert np.array_equal(c, a.T @ b)
