"""Shared by the tests of `tlx bench`: expected results, and a function that does nothing."""

from __future__ import annotations

from tlx.intrinsics.numpy_types import Array
from tlx.tuning.workload import ElementwiseCheck, Workload


def nothing(*_arguments: object, **_options: object) -> None:
    """In place of functions whose work is not wanted."""


def expected(work: Workload, arrays: dict[str, Array]) -> ElementwiseCheck:
    """The expected result of a workload."""
    assert work.expected is not None
    truth = work.expected(arrays)
    assert isinstance(truth, ElementwiseCheck)
    return truth
