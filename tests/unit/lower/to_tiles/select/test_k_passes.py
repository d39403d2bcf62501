"""Products of few rows by a B beyond the L2 cache read it unpacked, in short passes over K."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, Type
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_tiles.expression import Expression, InstructionNode, MatrixLeaf, MatrixView, ProductLeaf
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.select.selection import select
from tlx.target.costs.memory import Caches
from tlx.target.installed import targets

_TARGET = replace(targets()["avx512"], caches=Caches(48 << 10, 2 << 20, 64 << 20))


def _gemm(m: int, n: int, k: int, result: Type = FLOAT, gap: int = 0, element: Type = FLOAT) -> Gemm:
    views = MatrixView(element, m, k, k, 1), MatrixView(element, k, n, n + gap, 1), MatrixView(result, m, n, n, 1)
    return Gemm(*views, None, "f", "f")


def _recipe(m: int, n: int, k: int, result: Type = FLOAT, gap: int = 0) -> Recipe:
    return select(_gemm(m, n, k, result, gap), _TARGET)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(16, 1024, 1024), (64, 1024, 1024), (96, 1024, 1024), (16, 768, 4096), (16, 4096, 1024)]
)
def test_few_rows_prefetch_the_next_block_of_k(m: int, n: int, k: int) -> None:
    """The parts of B of two passes fit the second-level cache beside C."""
    recipe = _recipe(m, n, k)
    assert not recipe.packing.b
    assert recipe.blocks.kc < k
    assert recipe.prefetch.locality > 0
    assert 4 * (2 * recipe.blocks.kc * n + m * n) <= _TARGET.caches.l2


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("element", [FLOAT, DOUBLE])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 3072, 768), (64, 3072, 2048), (32, 9216, 512)])
def test_few_rows_prefetch_the_next_panel_of_a_wide_b(m: int, n: int, k: int, element: Type, target: str) -> None:
    """The parts of B of two passes do not fit the second-level cache; the rows of a panel do."""
    recipe = select(_gemm(m, n, k, element, element=element), targets()[target])
    assert not recipe.packing.b
    assert recipe.blocks.kc <= 128
    assert not recipe.prefetch.locality


@pytest.mark.parametrize("n", [1024, 2048])
def test_many_rows_pack_b(n: int) -> None:
    recipe = _recipe(136, n, 1024)
    assert recipe.packing.b
    assert recipe.blocks.kc == 1024
    assert not recipe.prefetch.locality


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_rows_that_share_sets_even_in_a_short_pass_are_packed(target: str) -> None:
    assert select(_gemm(64, 8192, 1024), targets()[target]).packing.b


def test_two_passes_over_rows_in_different_sets_do_not_pay() -> None:
    recipe = _recipe(64, 3136, 256)
    assert not recipe.packing.b
    assert recipe.blocks.kc == 256


@pytest.mark.parametrize("m", [100, 196, 256])
def test_a_b_in_the_second_level_cache_is_not_prefetched_by_passes(m: int) -> None:
    assert not _recipe(m, 1024, 256).prefetch.locality


def test_an_a_in_memory_has_wider_blocks() -> None:
    near, far = (_recipe(n, n, n).blocks for n in (2048, 4096))
    assert near.kc == 2048
    assert far.kc < near.kc
    assert far.nc > near.nc


def test_a_b_with_gaps_is_not_prefetched() -> None:
    assert not _recipe(16, 1024, 1024, gap=64).prefetch.locality


def test_sums_that_c_cannot_hold_take_as_many_passes() -> None:
    assert _recipe(64, 1024, 1024, BFLOAT).blocks == _recipe(64, 1024, 1024).blocks


def test_a_temporary_for_sums_fits_the_last_level_cache() -> None:
    assert _recipe(1024, 1024, 8192, BFLOAT).blocks.kc < 8192
    assert _recipe(8192, 8192, 8192, BFLOAT).blocks.kc == 8192


@pytest.mark.parametrize(("rows", "pitch"), [(1, 0), (128, 768), (128, 800)])
def test_an_epilogue_does_not_change_the_blocks(rows: int, pitch: int) -> None:
    """A row is added, a matrix that may be C, or one that cannot be C."""
    plain = _gemm(128, 768, 3072)
    other = MatrixLeaf(element=FLOAT, view=MatrixView(FLOAT, rows, 768, pitch, 1), pointer=0)
    nodes = (ProductLeaf(FLOAT), other, InstructionNode(FLOAT, ElementwiseOp("fadd"), (0, 1)))
    fused = replace(plain, epilogue=Expression(128, 768, nodes))
    assert select(fused, _TARGET).blocks == select(plain, _TARGET).blocks
    assert select(plain, _TARGET).blocks.kc < 3072


def test_the_predicted_share_counts_overlapped_prefetches() -> None:
    assert 0.6 < _recipe(16, 1024, 1024).efficiency < 0.9
    assert _recipe(16, 1024, 1024, gap=64).efficiency < 0.5
