"""Labels of least cost, against all labellings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tlx.lower.to_2d.analysis.minimum_cut import LabelCosts, PairCosts


@pytest.mark.parametrize("seed", range(60))
def test_the_labels_have_the_least_cost_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 8))
    alone = rng.integers(0, 20, (count, 2)).tolist()
    together = list[tuple[int, int, PairCosts]]()
    for first, second in zip(rng.integers(count, size=12).tolist(), rng.integers(count, size=12).tolist(), strict=True):
        if first != second:
            same, other = rng.integers(0, 20, 2).tolist(), rng.integers(0, 20, 2).tolist()
            missing = max(0, sum(same) - sum(other))  # labels that differ are never cheaper
            together.append((first, second, PairCosts(same[0], other[0] + missing, other[1], same[1])))
    costs = LabelCosts[int]()
    for variable, pair in enumerate(alone):
        costs.add(variable, *pair)
    for first, second, pair in together:
        costs.add_pair(first, second, pair)

    def total(labels: tuple[int, ...]) -> float:
        return sum(alone[v][label] for v, label in enumerate(labels)) + sum(
            pair[2 * labels[first] + labels[second]] for first, second, pair in together
        )

    ones = costs.ones()
    least = min(total(labels) for labels in product((0, 1), repeat=count))
    assert total(tuple(int(v in ones) for v in range(count))) == least


def test_equal_costs_choose_label_0() -> None:
    costs = LabelCosts[str]()
    costs.add("a", 3, 3)
    costs.add_pair("a", "b", PairCosts(0, 5, 5, 0))
    assert costs.ones() == frozenset()
