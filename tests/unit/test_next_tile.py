"""Tiles ask for C, A and B on behalf of those behind them, where memory is far and there is time for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.ir.parser.module import parse
from tlx.ir.types import FLOAT
from tlx.lower.knobs import Knobs
from tlx.lower.pipeline import lower
from tlx.lower.to_tiles.prefetch.policy import pieces_per_part
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.selection import select_recipe
from tlx.target.discovery import targets
from tlx.target.hardware import Caches

_TARGET = replace(targets()["avx512"], caches=Caches(48 << 10, 2 << 20, 64 << 20))


def _gemm(m: int, n: int, k: int, *, a_columns: bool = False) -> Gemm:
    a = MatrixView(FLOAT, m, k, *((1, m) if a_columns else (k, 1)))
    return Gemm(a, MatrixView(FLOAT, k, n, n, 1), MatrixView(FLOAT, m, n, n, 1), None, "f", "f")


@pytest.mark.parametrize(
    ("m", "n", "k", "asks"),
    [
        (256, 256, 256, ""),  # all stays in the second cache
        (512, 512, 512, "CA"),  # two row tiles at a time meet all panels, which are near for the next ones
        (2048, 2048, 2048, "CA"),
        (3136, 64, 576, "CA"),
        (128, 3136, 256, "CB"),  # A stays near
        (128, 784, 512, "C"),  # most of B does, too
        (16, 3136, 256, "C"),  # B needs more time
        (64, 2048, 400, "C"),  # A stays near
        (3136, 256, 32, ""),  # over before anything comes
        (16, 1024, 1024, ""),  # B of the next pass is asked for, and C stays near
    ],
)
def test_what_comes_from_afar_is_asked_for(m: int, n: int, k: int, asks: str) -> None:
    assert select_recipe(_gemm(m, n, k), _TARGET, Knobs(pack_b=True) if asks == "C" else Knobs()).asks == asks


def test_nothing_is_asked_for_where_products_and_loads_fill_the_front_end() -> None:
    narrow = replace(targets()["avx2"], caches=_TARGET.caches)
    assert select_recipe(_gemm(2048, 2048, 2048), narrow).asks == ""
    wide = replace(narrow, core=replace(narrow.core, width=6.0))
    assert select_recipe(_gemm(2048, 2048, 2048), wide).asks == "CA"


def test_rows_of_a_packed_a_are_asked_for_where_all_of_them_are_there() -> None:
    whole = select_recipe(_gemm(1024, 1024, 1024, a_columns=True), _TARGET)
    assert (whole.whole_a, whole.asks) == (True, "CA")
    block = select_recipe(_gemm(1024, 240, 400, a_columns=True), _TARGET)
    assert (block.pack_a, block.whole_a, block.asks) == (True, False, "C")


def test_loops_and_sums_ask_for_other_things() -> None:
    gemm = _gemm(512, 512, 512)
    assert not select_recipe(replace(gemm, sums=((0, 0), (512, 512))), _TARGET).asks


@pytest.mark.parametrize(
    ("k", "rows", "pieces"),
    [
        (256, 128, 2),  # each row asks for two
        (256, 120, 3),
        (256, 512, 1),
        (256, 32, 8),
        (250, 32, 7),  # shorter ones would be over before anything comes
    ],
)
def test_all_tiles_together_ask_for_all_rows_of_the_next_panel(k: int, rows: int, pieces: int) -> None:
    recipe = select_recipe(_gemm(128, 3136, k), _TARGET, Knobs(tile=(8, 48)))
    assert pieces_per_part(recipe, k, rows) == pieces


def test_tiles_of_both_heights_meet_a_panel_before_the_next_one_does() -> None:
    recipe = select_recipe(_gemm(128, 3136, 256), _TARGET)
    assert (recipe.mr, recipe.nr, recipe.nc) == (9, 48, 48)  # tiles of 9 and 8 rows
    assert select_recipe(_gemm(128, 3136, 256), _TARGET, Knobs(nc=480)).nc == 480


@pytest.mark.parametrize(("m", "n", "k"), [(36, 150, 80), (35, 160, 81)])
def test_sums_in_pieces_are_complete(m: int, n: int, k: int) -> None:
    small = replace(_TARGET, caches=Caches(16 << 10, 24 << 10, 64 << 20))
    assert "B" in select_recipe(_gemm(m, n, k), small).asks
    text = f"""define void @f(ptr noalias %c, ptr %a, ptr %b) {{
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, {_matrix(m, k)}, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, {_matrix(k, n)}, <2 x i32> zeroinitializer)
  %m = call <{m * n} x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<{m * n} x float> %m, {_matrix(m, n)})
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}}
"""
    module = lower(parse(text), small)
    assert "piece.loop:" in str(module)
    random = np.random.default_rng(m)
    a, b = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.full((m, n), 7, np.float32)
    Machine(module).call("f", c, a, b)
    np.testing.assert_array_equal(c, a @ b)


def _matrix(rows: int, cols: int) -> str:
    return f"<2 x i32> <i32 {rows}, i32 {cols}>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
