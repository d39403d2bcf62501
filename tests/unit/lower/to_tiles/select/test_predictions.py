"""Predictions for products on AMX, compared with measurements on Emerald Rapids.

One core in quiet rounds, with the unit's full peak beside it (`tlx bench gemm`, 22 November 2026).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.types import BFLOAT, FLOAT, I8, I32, FloatType, Type, bytes_of
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.recipe_cost import cost
from tlx.lower.to_tiles.select.selection import select
from tlx.target.installed import targets
from tlx.target.target import Target

_SHARES = [
    (BFLOAT, 64, 0.465),
    (BFLOAT, 100, 0.174),
    (BFLOAT, 512, 0.536),
    (BFLOAT, 1000, 0.408),
    (BFLOAT, 1024, 0.595),
    (BFLOAT, 4096, 0.40),
    (I8, 32, 0.088),
    (I8, 64, 0.312),
    (I8, 100, 0.119),
    (I8, 4096, 0.461),
]
_INTERLEAVED = [
    (BFLOAT, 64, 0.606),
    (BFLOAT, 128, 0.565),
    (BFLOAT, 256, 0.712),
    (I8, 64, 0.451),
    (I8, 128, 0.398),
    (I8, 256, 0.552),
    (I8, 512, 0.747),
    (I8, 1024, 0.66),
    (I8, 2048, 0.56),
]


def _square(element: Type, n: int, group: int = 1) -> Gemm:
    sign = "f" if isinstance(element, FloatType) else "s"
    result = FLOAT if isinstance(element, FloatType) else I32
    a, c = MatrixView(element, n, n, n, 1), MatrixView(result, n, n, n, 1)
    return Gemm(a, MatrixView(element, n, n, n, group, interleave=group), c, None, sign, sign)


@pytest.fixture(name="amx")
def _amx() -> Target:
    return targets()["amx"].on_cpu("sapphirerapids")


@pytest.mark.parametrize(("element", "n", "measured"), _SHARES)
def test_predicted_shares_agree_with_measurements(amx: Target, element: Type, n: int, measured: float) -> None:
    assert select(_square(element, n), amx).efficiency == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize(("element", "n", "measured"), _INTERLEAVED)
def test_predicted_shares_of_interleaved_rows_agree_with_measurements(
    amx: Target, element: Type, n: int, measured: float
) -> None:
    recipe = select(_square(element, n, 4 // bytes_of(element)), amx)
    assert recipe.efficiency == pytest.approx(measured, rel=0.15)


def test_sixteen_rows_are_packed_as_they_are_multiplied(amx: Target) -> None:
    a, b, c = MatrixView(I8, 16, 1024, 1024, 1), MatrixView(I8, 1024, 1024, 1024, 1), MatrixView(I32, 16, 1024, 1024, 1)
    assert select(Gemm(a, b, c, None, "s", "s"), amx).efficiency == pytest.approx(0.251, rel=0.15)


@pytest.mark.parametrize(("element", "n", "measured"), [(BFLOAT, 64, 0.21), (BFLOAT, 512, 0.40), (I8, 512, 0.438)])
def test_column_major_a_costs_time(amx: Target, element: Type, n: int, measured: float) -> None:
    gemm = _square(element, n)
    by_columns = replace(gemm, a=MatrixView(element, n, n, 1, n))
    assert select(by_columns, amx).efficiency == pytest.approx(measured, rel=0.15)


def test_padding_and_results_beyond_l2_cost_time(amx: Target) -> None:
    gemm = _square(I8, 128)
    recipe = select(gemm, amx)
    cycles = cost(gemm, recipe, amx).total
    far = replace(amx, caches=replace(amx.caches, l1=8 << 10, l2=16 << 10))
    assert cost(gemm, recipe, far).total > 1.4 * cycles
    deeper = replace(gemm, a=MatrixView(I8, 128, 130, 130, 1), b=MatrixView(I8, 130, 128, 128, 1))
    assert cost(deeper, select(deeper, amx), amx).total > 1.3 * cycles


def test_sixteen_rows_by_a_matrix_in_memory_use_the_matrix_unit() -> None:
    """16x1024x1024 of bfloat: 1470 kcycles by vectors, 313 by tiles (`--target=amx`)."""
    a, b, c = (
        MatrixView(BFLOAT, 16, 1024, 1024, 1),
        MatrixView(BFLOAT, 1024, 1024, 1024, 1),
        MatrixView(FLOAT, 16, 1024, 1024, 1),
    )
    assert select(Gemm(a, b, c, None, "f", "f"), targets()["amx"]).mma.unit == "matrix"


@pytest.mark.parametrize(("k", "packs"), [(512, False), (1024, True)])
def test_distant_rows_are_read_in_place_if_a_stays_in_l1(amx: Target, k: int, packs: bool) -> None:
    """512x512xK of bfloat, B in pairs of rows: 32 rows of A take 32 or 64 KB of the first cache's 48."""
    a, c = MatrixView(BFLOAT, 512, k, k, 1), MatrixView(FLOAT, 512, 512, 512, 1)
    recipe = select(Gemm(a, MatrixView(BFLOAT, k, 512, 512, 2, interleave=2), c, None, "f", "f"), amx)
    assert recipe.packing.b is packs


@pytest.mark.parametrize(("n", "columns"), [(512, 512), (2048, 256)])
def test_blocks_of_b_are_larger_where_a_misses_l2(amx: Target, n: int, columns: int) -> None:
    """Packed, they take a quarter of the second cache, or half of it."""
    assert select(_square(BFLOAT, n), amx).blocks.nc == columns


def test_a_sum_of_products_moves_its_result_once() -> None:
    """64x64x64 in 32 products of two positions: as far as C is concerned, one product. Both operands are packed."""
    a, b, c = MatrixView(BFLOAT, 64, 2, 64, 1), MatrixView(BFLOAT, 2, 64, 1, 2), MatrixView(FLOAT, 64, 64, 64, 1)
    sums = Gemm(a, b, c, None, "f", "f", term_offsets=tuple((2 * i, 128 * i) for i in range(32)))
    assert select(sums, targets()["avx2"]).efficiency == pytest.approx(0.7, abs=0.05)
