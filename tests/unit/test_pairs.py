"""The last columns of a product, at most half a register, as sums of even and of odd positions of K."""

from __future__ import annotations

import numpy as np
import pytest

import tlx
from tlx.api.validation import validate
from tlx.ir.types import DOUBLE, FLOAT, HALF, I32, Type
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.recipe import EqualTiles, column_ranges
from tlx.lower.to_tiles.select.selection import select
from tlx.target.discovery import targets
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


def _gemm(m: int, n: int, k: int, element: Type = FLOAT, result: Type | None = None) -> Gemm:
    a, b, c = (
        MatrixView(element, m, k, k, 1),
        MatrixView(element, k, n, n, 1),
        MatrixView(result or element, m, n, n, 1),
    )
    sign = "s" if element == I32 else "f"
    return Gemm(a, b, c, None, sign, sign)


def _program(element: str, m: int, n: int, k: int, *, biased: bool = False) -> str:
    result = "float" if element == "half" else element
    words = {"m": m, "n": n, "k": k, "mn": m * n, "r": result}
    return PROGRAM.format(
        **words, t=element, epilogue=EPILOGUE.format(**words) if biased else "", v="sum" if biased else "m"
    )


def test_narrow_products_and_narrow_rests_are_summed_by_pairs() -> None:
    def pairs(
        m: int, n: int, k: int, *, element: Type = FLOAT, result: Type | None = None, target: str = "avx512"
    ) -> int:
        return select(_gemm(m, n, k, element, result), targets()[target]).tile.paired_columns

    assert pairs(64, 8, 64) == 8
    assert pairs(64, 4, 64, element=DOUBLE) == 4
    assert pairs(64, 3, 64) == 3
    assert pairs(48, 40, 48) == 8
    assert pairs(8, 8, 8, element=HALF, result=FLOAT) == 8
    assert pairs(8, 8, 9, element=HALF, result=FLOAT) == 8
    assert pairs(64, 8, 65) == 8
    assert pairs(64, 9, 64) == 0
    assert pairs(64, 48, 64) == 0
    assert pairs(64, 8, 64, element=I32) == 0
    assert pairs(64, 8, 1 << 14) == 0  # B would not stay in the first cache
    assert pairs(64, 4, 64, target="avx2") == 4
    assert pairs(64, 4, 64, target="generic") == 0


def test_columns_of_pairs_are_a_panel_of_half_a_register() -> None:
    gemm = _gemm(48, 37, 48)
    recipe = select(gemm, targets()["avx512"])
    assert recipe.tile.paired_columns == 5
    assert column_ranges(gemm, recipe)[-1] == EqualTiles(32, 1, 8, 3)
    narrow = _gemm(64, 8, 64)
    recipe = select(narrow, targets()["avx512"])
    assert column_ranges(narrow, recipe) == [EqualTiles(0, 1, 8)]
    assert recipe.efficiency > 0.5  # which half of the lanes could not reach


def test_a_small_a_is_packed_before_pairs_of_b() -> None:
    def packed_first(m: int) -> bool:
        return select(_gemm(m, 8, 8, HALF, FLOAT), targets()["avx512"]).packing.whole_a

    assert packed_first(8)
    assert not packed_first(64)  # row tile by row tile: each stays near


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
def test_their_product_is_numpy_s(target: str, element: str, m: int, n: int, k: int) -> None:
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
        wanted = a.astype(result) @ b.astype(result)
        assert np.array_equal(c, wanted + bias if biased else wanted)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize(("element", "m", "n", "k"), [("half", 5, 3, 7), ("float", 3, 21, 10)])
def test_each_stage_means_the_same(target: str, element: str, m: int, n: int, k: int) -> None:
    assert validate(_program(element, m, n, k), target) == []
