"""What tests of `tlx bench` share: what a workload should give, and a function that does nothing."""

from __future__ import annotations

from tlx.intrinsics.numpy_types import Array
from tlx.tuning.workload import ElementwiseCheck, Workload


def nothing(*_arguments: object, **_options: object) -> None:
    """In place of functions whose work is not wanted."""


def expected(work: Workload, arrays: dict[str, Array]) -> ElementwiseCheck:
    """All elements that a workload should give."""
    assert work.expected is not None
    truth = work.expected(arrays)
    assert isinstance(truth, ElementwiseCheck)
    return truth
