"""The cost model of register tiles: what it was fitted to, and what must follow from it."""

from __future__ import annotations

import pytest

from tlx.lower.to_tiles.select.cost import RegisterTileProblem, product_cycles, register_tile, tile_step_cycles
from tlx.target.hardware import CoreModel

CORE = CoreModel()


@pytest.mark.parametrize(("tile", "share"), [((8, 3), 0.97), ((6, 4), 0.96), ((12, 2), 0.92), ((28, 1), 0.72)])
def test_tiles_are_as_fast_as_they_were_measured(tile: tuple[int, int], share: float) -> None:
    mr, nv = tile
    assert mr * nv / 2 / tile_step_cycles(CORE, mr, nv) == pytest.approx(share, abs=0.05)


def test_few_sums_wait_for_each_other() -> None:
    assert tile_step_cycles(CORE, 1, 2) >= 4
    assert tile_step_cycles(CoreModel(latency=5), 1, 2) >= 5


def test_a_large_product_has_a_large_tile_with_a_register_to_spare() -> None:
    mr, nv = register_tile(RegisterTileProblem(4096, 4096, 16, 0), 32, CORE)
    assert mr * nv >= 24
    assert mr * nv + min(mr, nv) + 1 < 32
    assert register_tile(RegisterTileProblem(4096, 4096, 8, 0), 16, CORE) == (6, 2)


def test_panels_that_stream_cost_more() -> None:
    assert product_cycles(CORE, 64, 8, 8, 2, resident=1) > product_cycles(CORE, 64, 8, 8, 2)


def test_widths_and_heights_are_even() -> None:
    even = tile_step_cycles(CORE, 5, 2)
    assert product_cycles(CORE, 10, 4, 8, 3) == pytest.approx(2 * 2 * even)


def test_columns_that_are_stored_or_copied_are_so_many_that_they_fill_parts_of_lines() -> None:
    for by_columns in ({"transposed_store": 512, "column": 4}, {"copied_a": 8}):
        assert register_tile(RegisterTileProblem(512, 512, 16, 0, **by_columns), 32, CORE)[0] % 4 == 0
    assert register_tile(RegisterTileProblem(18, 192, 16, 0, copied_a=8), 32, CORE) == (9, 3)  # 8 would be 6, 6 and 6
