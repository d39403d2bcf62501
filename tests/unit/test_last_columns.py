"""The last columns of a product, too few for a register, as sums along K."""

from __future__ import annotations

import numpy as np
import pytest

import tlx
from tlx.ir.types import FLOAT, I32, Type
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.selection import select
from tlx.target.discovery import targets
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


def _dots(m: int, n: int, k: int, element: Type = FLOAT) -> int:
    a, b, c = MatrixView(element, m, k, k, 1), MatrixView(element, k, n, n, 1), MatrixView(element, m, n, n, 1)
    sign = "f" if element == FLOAT else "s"
    return select(Gemm(a, b, c, None, sign, sign), targets()["avx512"]).tile.dot_columns


def test_few_columns_behind_whole_registers_are_summed_along_k() -> None:
    assert _dots(512, 49, 512) == 1
    assert _dots(512, 196, 256) == 4
    assert _dots(512, 48, 512) == 0
    assert _dots(512, 62, 512) == 0
    assert _dots(512, 49, 4) == 0
    assert _dots(512, 49, 512, I32) == 0


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(
    ("element", "m", "n", "k"),
    [("float", 29, 49, 71), ("float", 23, 36, 2500), ("double", 31, 33, 35), ("float", 7, 17, 64)],
)
def test_their_product_is_numpy_s(target: str, element: str, m: int, n: int, k: int) -> None:
    lacking = missing_features(find_target(target), cpu_flags())
    if lacking:
        pytest.skip(f"this processor has no {', '.join(lacking)}")
    rng = np.random.default_rng(m)
    dtype = np.float32 if element == "float" else np.float64
    a, b = (rng.integers(-8, 8, extents).astype(dtype) for extents in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, dtype)
    tlx.compile(PROGRAM.format(t=element, m=m, n=n, k=k, mn=m * n), target)(c, a, b)
    assert np.array_equal(c, a @ b)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize(("m", "n", "k"), [(23, 17, 2500), (23, 36, 20000)])
def test_a_part_of_k_reads_nothing_of_the_next_one(target: str, m: int, n: int, k: int) -> None:
    """Zeros in place of A's elements would make an infinite one of B a NaN."""
    lacking = missing_features(find_target(target), cpu_flags())
    if lacking:
        pytest.skip(f"this processor has no {', '.join(lacking)}")
    views = MatrixView(FLOAT, m, k, k, 1), MatrixView(FLOAT, k, n, n, 1), MatrixView(FLOAT, m, n, n, 1)
    recipe = select(Gemm(*views, None, "f", "f"), targets()[target])
    assert recipe.tile.dot_columns
    assert recipe.blocks.kc < k
    assert recipe.blocks.kc % recipe.tile.lanes
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    b[recipe.blocks.kc, -1] = np.inf
    c = np.full((m, n), np.nan, np.float32)
    tlx.compile(PROGRAM.format(t="float", m=m, n=n, k=k, mn=m * n), target)(c, a, b)
    with np.errstate(invalid="ignore"):  # which some of numpy's kernels signal, though no result is a NaN
        assert np.array_equal(c, a @ b)
