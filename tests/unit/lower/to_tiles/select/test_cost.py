"""The cost model: tiles that were measured, and what has to follow from a machine's figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.types import FLOAT
from tlx.lower.cost import RegisterTileProblem, product_cycles, register_tile, tile_step_cycles
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.recipe_cost import cost, recipe_dot
from tlx.lower.to_tiles.select.selection import select
from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import MemoryModel
from tlx.target.installed import targets

CORE = CoreModel()


@pytest.mark.parametrize(("tile", "share"), [((8, 3), 0.97), ((6, 4), 0.96), ((12, 2), 0.92), ((28, 1), 0.72)])
def test_tiles_are_as_fast_as_they_were_measured(tile: tuple[int, int], share: float) -> None:
    mr, nv = tile
    assert mr * nv / 2 / tile_step_cycles(CORE, mr, nv) == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("latency", [4, 5])
def test_few_sums_wait_for_each_other(latency: int) -> None:
    assert tile_step_cycles(CoreModel(fma_latency=latency), 1, 2) >= latency


@pytest.mark.parametrize(("lanes", "registers"), [(16, 32), (8, 16)])
def test_a_large_product_has_a_large_tile_with_a_register_to_spare(lanes: int, registers: int) -> None:
    mr, nv = register_tile(RegisterTileProblem(4096, 4096, lanes, 0), registers, CORE)
    assert mr * nv >= 3 * registers // 4
    assert mr * nv + min(mr, nv) + 1 < registers


def test_panels_that_stream_cost_more() -> None:
    assert product_cycles(CORE, 64, 8, 8, 2, resident=1) > product_cycles(CORE, 64, 8, 8, 2)


def test_columns_that_are_stored_or_copied_fill_halves_of_lines() -> None:
    stored, copied = (
        RegisterTileProblem(512, 512, 16, 0, transposed_store=512, column=4),
        RegisterTileProblem(512, 512, 16, 0, copied_a=8),
    )
    for problem in (stored, copied):
        assert register_tile(problem, 32, CORE)[0] % 4 == 0


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("extent", [64, 512, 2048])
def test_slower_memory_costs_more_and_leaves_the_arithmetic_as_it_is(target: str, extent: int) -> None:
    machine = targets()[target]
    view = MatrixView(FLOAT, extent, extent, extent, 1)
    gemm = Gemm(view, view, view, None, "f", "f")
    recipe = select(gemm, machine)
    usual = cost(gemm, recipe, machine)
    slow = cost(gemm, recipe, replace(machine, memory=MemoryModel(l2_bytes_per_cycle=4, bytes_per_cycle=1)))
    assert recipe_dot(recipe, machine) is None
    assert usual.compute == slow.compute <= usual.total <= slow.total
    assert usual.total < slow.total or 3 * view.bytes_moved <= machine.caches.l2
