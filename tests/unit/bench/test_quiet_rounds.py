"""Rounds of `tlx bench` disturbed by another program on the core are detected and do not count."""

from __future__ import annotations

import time
from itertools import count
from math import inf
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.bench.test_command import made, reported
from tlx.bench import report
from tlx.tuning import timing
from tlx.tuning.timing import PinnedCore, quiet_rounds

pytestmark = pytest.mark.usefixtures("short_samples")


def nothing(_count: int) -> None:
    """What is timed."""


NOTHING = timing.Contestant(nothing, 1, seconds_estimate=1.0)  # so long that a sample is one run


class Shared:
    """A core whose other hardware thread is busy on demand; a round of two contestants probes three times."""

    best = 1.0

    def __init__(self, busy: set[int]) -> None:
        self._asked, self._busy = 0, busy

    def ratio(self) -> float:
        self._asked += 1
        return 1.9 if self._asked in self._busy else 1.05


def test_quiet_rounds() -> None:
    assert quiet_rounds([1.0, 1.07, 1.09, 2.1], 1.0) == [0, 1]
    assert quiet_rounds([1.0, 1.07, 1.09, 2.1], 1.02) == [0, 1, 2]
    assert quiet_rounds([1.0] * 4, 1.0, [[50, 100, 93, 92]]) == [1, 2]


@pytest.mark.parametrize(
    ("busy", "rounds", "taken", "count", "used"),
    [
        (set[int](), 4, 4, 4, 4),
        ({5}, 4, 4, 3, 3),  # in the midst of the second
        ({1, 6, 7}, 4, 6, 3, 3),  # the first three
        (set(range(5, 99)), 4, 12, 1, 12),
        (set(range(99)), 1, 3, 0, 3),
    ],
)
def test_medians_are_those_of_quiet_rounds(busy: set[int], rounds: int, taken: int, count: int, used: int) -> None:
    contestants: dict[str, timing.Contestant] = dict.fromkeys(("ours", "theirs"), NOTHING)
    timed = timing.interleaved(contestants, rounds, cast("PinnedCore", Shared(busy)))
    assert (timed.rounds, timed.quiet) == (taken, count)
    assert {len(rates.rounds) for rates in timed.rates.values()} == {used}


def test_quiet_rounds_are_not_probed() -> None:
    timed = timing.interleaved({"ours": NOTHING}, 2)
    assert (timed.rounds, timed.quiet, len(timed.rates["ours"].rounds)) == (2, None, 2)


def test_rounds_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of one and a half seconds, none of them quiet: no more than requested are run."""
    monkeypatch.setattr(time, "monotonic_ns", count(0, 1_500_000_000).__next__)
    timed = timing.interleaved({"ours": NOTHING}, 4, cast("PinnedCore", Shared(set(range(99)))))
    assert (timed.rounds, timed.quiet) == (4, 0)


def test_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each contestant waits for the threads of the one before."""
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    timing.interleaved({"a": NOTHING, "b": NOTHING}, 3, rest=0.25)
    assert rests == [0.25] * 6


def test_the_core_is_probed() -> None:
    core = PinnedCore()
    ratios = [core.ratio() for _ in range(3)]
    assert all(0 < core.best <= ratio < inf for ratio in ratios)


def test_the_quietest_measurement_of_a_cell_counts(tmp_path: Path) -> None:
    def shaken(ours: float, quiet: int | None, spread: float) -> dict[str, Any]:
        cell = made(ours, 60, rounds=11, quiet=quiet)
        cell["rates"]["peak"]["spread"] = spread
        return cell

    cells = [shaken(1, None, 0), shaken(2, 9, 0.2), shaken(3, 9, 0.1), shaken(4, 2, 0.0), made(5, 60)]
    for number, cell in enumerate(cells):
        report.write(str(tmp_path / f"{number}.json"), reported(cell))
    (cell,) = report.read(str(tmp_path))["cells"]
    assert cell["rates"]["tlx"]["median"] == 3
    assert report.count_disturbed(cells) == 1
    report.write(str(tmp_path / "a.json"), reported(shaken(6, 11, 0), core=1.5))
    assert report.read(str(tmp_path))["cells"][0]["rates"]["tlx"]["median"] == 6
    report.write(str(tmp_path / "b.json"), reported(shaken(7, 3, 0), core=1.04))
    whole = report.read(str(tmp_path))
    assert whole["cells"][0]["rates"]["tlx"]["median"] == 3  # no round of report a was quiet
    assert whole["core"] == 1.04
    for number in range(10):
        report.write(str(tmp_path / f"c{number}.json"), reported(core=1.04 if number else 0.9))
    whole = report.read(str(tmp_path))
    assert (whole["core"], whole["cells"][0]["rates"]["tlx"]["median"]) == (1.04, 3)  # a single low ratio is an error
    assert "- fewer than 3 quiet rounds: 1 cells\n" in report.markdown_tables(reported(*cells))
