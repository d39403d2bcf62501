"""What tests of `tlx bench` share: what a workload should give, and a function that does nothing."""

from __future__ import annotations

from tlx.bench.elements import Array
from tlx.bench.truth import Expected
from tlx.bench.workload import Workload


def nothing(*_arguments: object, **_options: object) -> None:
    """In place of functions whose work is not wanted."""


def expected(work: Workload, arrays: dict[str, Array]) -> Expected:
    """All elements that a workload should give."""
    assert work.expected is not None
    truth = work.expected(arrays)
    assert isinstance(truth, Expected)
    return truth
