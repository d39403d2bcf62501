"""What is predicted of products on AMX, beside what was measured on Sapphire Rapids (one core, `tlx bench gemm`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.types import BFLOAT, FLOAT, I8, I32, FloatType, Type
from tlx.lower.to_tiles.choose import choose
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.units import matrix_cycles
from tlx.lower.to_tiles.view import View
from tlx.target import Target, targets

_SHARES = [
    (BFLOAT, 64, 0.32),
    (BFLOAT, 100, 0.14),
    (BFLOAT, 128, 0.32),
    (BFLOAT, 256, 0.44),
    (BFLOAT, 512, 0.36),
    (I8, 64, 0.18),
    (I8, 100, 0.12),
    (I8, 128, 0.24),
    (I8, 256, 0.35),
    (I8, 512, 0.42),
]


def _square(element: Type, n: int) -> Gemm:
    sign = "f" if isinstance(element, FloatType) else "s"
    result = FLOAT if isinstance(element, FloatType) else I32
    a, c = View(element, n, n, n, 1), View(result, n, n, n, 1)
    return Gemm(a, a, c, None, sign, sign)


@pytest.fixture(name="amx")
def _amx() -> Target:
    return targets()["amx"].on_cpu("sapphirerapids")


@pytest.mark.parametrize(("element", "n", "measured"), _SHARES)
def test_shares_are_near_what_was_measured(amx: Target, element: Type, n: int, measured: float) -> None:
    assert choose(_square(element, n), amx).share == pytest.approx(measured, rel=0.25)


def test_padding_and_far_results_take_time(amx: Target) -> None:
    gemm = _square(I8, 128)
    recipe = choose(gemm, amx)
    cycles = matrix_cycles(gemm, recipe, amx)
    far = replace(amx, caches=replace(amx.caches, l1=8 << 10, l2=16 << 10))
    assert matrix_cycles(gemm, recipe, far) > 1.5 * cycles
    deeper = replace(gemm, a=View(I8, 128, 130, 130, 1), b=View(I8, 130, 128, 128, 1))
    assert matrix_cycles(deeper, choose(deeper, amx), amx) > 1.3 * cycles


def test_sixteen_rows_by_a_far_matrix_are_for_the_matrix_unit() -> None:
    """16x1024x1024 of bfloat: 1470 kcycles by vectors, 313 by tiles (`--target=amx`)."""
    a, b, c = View(BFLOAT, 16, 1024, 1024, 1), View(BFLOAT, 1024, 1024, 1024, 1), View(FLOAT, 16, 1024, 1024, 1)
    assert choose(Gemm(a, b, c, None, "f", "f"), targets()["amx"]).unit == "matrix"


@pytest.mark.parametrize(("k", "packs"), [(512, False), (1024, True)])
def test_rows_far_apart_are_read_as_they_lie_beside_a_near_a(amx: Target, k: int, packs: bool) -> None:
    """512x512xK of bfloat, B in pairs of rows: 32 rows of A take 32 or 64 KB of the first cache's 48."""
    a, c = View(BFLOAT, 512, k, k, 1), View(FLOAT, 512, 512, 512, 1)
    recipe = choose(Gemm(a, View(BFLOAT, k, 512, 512, 2, group=2), c, None, "f", "f"), amx)
    assert recipe.pack_b is packs


@pytest.mark.parametrize(("n", "columns"), [(512, 512), (2048, 256)])
def test_blocks_of_b_are_larger_where_a_is_read_from_afar(amx: Target, n: int, columns: int) -> None:
    """Packed, they take a quarter of the second cache, or half of it."""
    assert choose(_square(BFLOAT, n), amx).nc == columns
