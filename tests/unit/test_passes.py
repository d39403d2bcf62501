"""Few rows that meet a B from behind the second cache read it as it lies, in short passes over K."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.types import BFLOAT, FLOAT, Type
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.select.selection import select
from tlx.target.discovery import targets
from tlx.target.hardware import Caches

_TARGET = replace(targets()["avx512"], caches=Caches(48 << 10, 2 << 20, 64 << 20))


def _recipe(m: int, n: int, k: int, result: Type = FLOAT, gap: int = 0) -> Recipe:
    views = MatrixView(FLOAT, m, k, k, 1), MatrixView(FLOAT, k, n, n + gap, 1), MatrixView(result, m, n, n, 1)
    return select(Gemm(*views, None, "f", "f"), _TARGET)


@pytest.mark.parametrize("m", [16, 64, 96])
def test_few_rows_ask_for_the_next_pass(m: int) -> None:
    """Two parts of B fit the second cache beside C; lines of a pass are fetched into the first cache, too."""
    recipe = _recipe(m, 1024, 1024)
    assert (recipe.packing.b, recipe.blocks.kc) == (False, 128)
    assert (recipe.prefetch.locality, bool(recipe.prefetch.b_steps)) == (2, True)


def test_many_rows_pack_b() -> None:
    """And fewer where C leaves no room for parts of B that are worth a pass."""
    for m, n in ((120, 1024), (64, 2048)):
        recipe = _recipe(m, n, 1024)
        assert (recipe.packing.b, recipe.blocks.kc, recipe.prefetch.locality) == (True, 1024, 0)


@pytest.mark.parametrize(("m", "pack_b", "kc"), [(196, False, 128), (256, True, 256)])
def test_passes_over_a_b_that_is_near_pay_for_more_rows(m: int, pack_b: bool, kc: int) -> None:
    recipe = _recipe(m, 1024, 256)
    assert (recipe.packing.b, recipe.blocks.kc, recipe.prefetch.locality) == (pack_b, kc, 0)


def test_an_a_from_memory_meets_wider_blocks() -> None:
    """Parts of sqrt(L2 / 4 bytes) = 724 positions at most, equal ones."""
    assert [_recipe(n, n, n).blocks.kc for n in (2048, 4096)] == [2048, 683]


@pytest.mark.parametrize(
    ("n", "k", "kc", "fetch"),
    [
        (512, 512, 512, 0),  # B stays in the second cache
        (1024, 256, 128, 0),  # there, too, but it has a page for each position
        (768, 4096, 241, 2),  # about sqrt(M K), in equal parts
        (4096, 1024, 40, 2),  # two parts of B and C fill three quarters of the second cache
        (1 << 17, 512, 512, 0),  # which holds no two parts
    ],
)
def test_passes_are_as_long_as_caches_and_pages_allow(n: int, k: int, kc: int, fetch: int) -> None:
    recipe = _recipe(16, n, k)
    assert (recipe.packing.b, recipe.blocks.kc, recipe.prefetch.locality) == (False, kc, fetch)


@pytest.mark.parametrize(("m", "n", "k", "kc"), [(100, 512, 4096, 316), (128, 784, 1152, 1152)])
def test_passes_have_to_pay_for_c(m: int, n: int, k: int, kc: int) -> None:
    recipe = _recipe(m, n, k)
    assert (recipe.packing.b, recipe.blocks.kc) == (False, kc)


def test_what_lies_in_gaps_is_not_asked_for() -> None:
    assert not _recipe(16, 1024, 1024, gap=64).prefetch.locality


def test_sums_that_have_to_be_complete_are_made_in_one_pass() -> None:
    recipe = _recipe(64, 1024, 1024, BFLOAT)
    assert (recipe.packing.b, recipe.blocks.kc) == (True, 1024)


def test_the_predicted_share_knows_what_is_overlapped() -> None:
    assert 0.6 < _recipe(16, 1024, 1024).efficiency < 0.9
    assert _recipe(16, 1024, 1024, gap=64).efficiency < 0.5
