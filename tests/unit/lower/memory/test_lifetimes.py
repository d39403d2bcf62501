"""Live ranges as lists of intervals: a list means the set of points in its intervals."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tlx.lower.memory.lifetimes import LiveInterval, add_interval, intervals_overlap


def points(ranges: list[LiveInterval]) -> set[int]:
    return {point for start, end in ranges for point in range(start, end + 1)}


def live_range(*intervals: LiveInterval) -> list[LiveInterval]:
    ranges: list[LiveInterval] = []
    for interval in intervals:
        add_interval(ranges, interval)
    return ranges


@pytest.mark.parametrize("seed", range(40))
def test_ranges_are_sets_of_points(seed: int) -> None:
    dice = random.Random(seed)
    ranges: list[LiveInterval] = []
    live: set[int] = set()
    for _ in range(12):
        start = dice.randrange(40)
        interval = (start, start + dice.choice([0, 0, 1, 2, 9]))
        add_interval(ranges, interval)
        live |= points([interval])
        assert points(ranges) == live
        assert all(end + 1 < start for (_, end), (start, _) in pairwise(ranges))
        other = live_range(*((at, at + dice.randrange(3)) for at in dice.sample(range(45), 2)))
        assert intervals_overlap(ranges, other) == (not live.isdisjoint(points(other)))


def test_neighbours_are_merged_and_gaps_stay() -> None:
    assert live_range((4, 5), (6, 9)) == [(4, 9)]
    assert live_range((6, 9), (4, 5)) == [(4, 9)]
    assert live_range((0, 2), (10, 12), (4, 8)) == [(0, 2), (4, 8), (10, 12)]
    assert live_range((0, 2), (10, 12), (3, 9)) == [(0, 12)]
