"""How an epilogue is shared among the steps of K on a matrix unit."""

from __future__ import annotations

import pytest

from tlx.lower.to_tiles.emit.gemm.matrix_unit import epilogue_shares


@pytest.mark.parametrize("groups", [1, 7, 8, 16])
@pytest.mark.parametrize("steps", [*range(12), 15, 16, 17, 23, 31, 95])
@pytest.mark.parametrize("cost", [0.1, 2.0])
def test_two_loops_compute_all_groups_as_evenly_as_they_can(groups: int, steps: int, cost: float) -> None:
    shares = epilogue_shares(groups, steps, cost)
    assert sum(share.count * share.groups for share in shares) == groups
    assert sum(share.count * share.steps for share in shares) <= steps
    assert len(shares) <= 2
    rates = [share.groups / share.steps for share in shares if share.steps]
    assert max(rates, default=0) - min(rates, default=0) <= 1


def without_steps(groups: int, steps: int, cost: float) -> int:
    """Groups that are computed after the steps of K."""
    return sum(share.count * share.groups for share in epilogue_shares(groups, steps, cost) if not share.steps)


def used_steps(groups: int, steps: int, cost: float) -> int:
    """Steps of K among which groups are computed."""
    return sum(share.count * share.steps for share in epilogue_shares(groups, steps, cost))


def test_an_epilogue_without_steps_has_a_loop_of_its_own() -> None:
    assert without_steps(16, 0, 0.1) == 16


@pytest.mark.parametrize("steps", [4, 5, 11, 16, 23, 64])
def test_a_short_epilogue_is_hidden_completely(steps: int) -> None:
    assert without_steps(16, steps, 0.1) == 0


@pytest.mark.parametrize(("steps", "used"), [(16, 16), (23, 23), (26, 26), (32, 32), (47, 32), (95, 80), (400, 96)])
def test_a_long_epilogue_has_more_steps_where_there_are_enough(steps: int, used: int) -> None:
    assert without_steps(16, steps, 2.0) == 0
    assert used == used_steps(16, steps, 2.0)
    assert used_steps(16, steps, 0.1) == 16


@pytest.mark.parametrize("steps", [5, 7, 11])
def test_an_epilogue_longer_than_all_steps_uses_each_of_them(steps: int) -> None:
    assert used_steps(16, steps, 2.0) == steps
    assert 0 < without_steps(16, steps, 2.0) < 16


@pytest.mark.parametrize(("cost", "groups"), [(0.2, 0), (1.0, 16)])
def test_one_step_hides_a_short_epilogue_but_no_long_one(cost: float, groups: int) -> None:
    assert without_steps(16, 1, cost) == groups
