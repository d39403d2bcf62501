"""How an epilogue is shared among the steps of K on a matrix unit."""

from __future__ import annotations

import pytest

from tlx.lower.to_tiles.emit.gemm.matrix_unit import EpilogueShare, epilogue_shares


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


def test_an_epilogue_that_exceeds_the_steps_has_a_loop_of_its_own() -> None:
    assert epilogue_shares(16, 4, 0.1) == [EpilogueShare(1, 4, 4)]
    assert epilogue_shares(16, 3, 0.1) == [EpilogueShare(0, 1, 16)]
    assert epilogue_shares(16, 0, 0.1) == [EpilogueShare(0, 1, 16)]


def test_a_long_epilogue_has_more_steps_where_there_are_enough() -> None:
    assert epilogue_shares(16, 23, 2.0) == [EpilogueShare(3, 2, 7), EpilogueShare(1, 1, 2)]
    assert epilogue_shares(16, 26, 2.0) == [EpilogueShare(3, 2, 6), EpilogueShare(2, 1, 4)]
    assert epilogue_shares(16, 23, 0.1) == [EpilogueShare(1, 1, 16)]
    assert epilogue_shares(16, 11, 0.1) == [EpilogueShare(1, 2, 5), EpilogueShare(1, 1, 6)]


def test_groups_of_a_long_epilogue_that_fit_no_step_have_none() -> None:
    assert epilogue_shares(16, 5, 0.5) == [EpilogueShare(1, 3, 5), EpilogueShare(0, 1, 1)]
    assert epilogue_shares(16, 5, 0.1) == [EpilogueShare(1, 4, 1), EpilogueShare(1, 3, 4)]
