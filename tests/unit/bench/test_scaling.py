"""The upper bounds for several threads: the machine's own scaling."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence

import pytest

from tests.support.tools import require_openmp
from tlx.bench import peaks, scaling, workloads
from tlx.bench.peaks import Peak
from tlx.bench.scaling import combined_gain, distinct_cores_first, gain
from tlx.diagnostics import UsageError
from tlx.llvm import openmp
from tlx.target.lookup import find_target
from tlx.target.target import Target
from tlx.tuning.timing import NativeCall, Repeat
from tlx.tuning.workload import F32


def test_scaling_is_the_throughput_of_all_threads() -> None:
    """Four threads that take as long as one do four times as much; that take twice as long, twice."""
    alone = [1.0, 2.0, 1.0]
    assert gain(alone, alone, 1) == 1.0
    assert gain(alone, [1.0, 2.0, 1.5], 4) == 4.0
    assert gain(alone, [2.0, 4.0, 2.0], 4) == 2.0


def test_the_bound_is_the_sum_of_the_processors() -> None:
    """One at the same speed adds one; one that takes twice as long, a half."""
    alone, elsewhere = [1.0, 2.0, 1.0], [[1.0, 2.0, 1.0], [2.0, 4.0, 1.0]]
    assert [combined_gain(alone, elsewhere, count) for count in (1, 2, 3)] == [1.0, 2.0, 2.5]


def test_processors_of_different_cores_come_first() -> None:
    """Processors 0 and 4, 1 and 3, 2 and 5 are threads of a core: together they take 1.8 times as long."""
    core = {0: "a", 4: "a", 1: "b", 3: "b", 2: "c", 5: "c"}

    def together(processors: Sequence[int]) -> float:
        return 1.8 if len({core[p] for p in processors}) < len(processors) else 1.05

    assert distinct_cores_first([0, 1, 2, 3, 4, 5], together) == [0, 1, 2, 3, 4, 5]
    assert distinct_cores_first([4, 0, 2, 5, 1], together) == [4, 2, 1, 0, 5]


def test_processors_are_measured_one_by_one() -> None:
    """Whatever they turn out to be, each comes once, and the thread that asks may run on all of them again."""
    allowed = sorted(os.sched_getaffinity(0))[:3]
    assert sorted(distinct_cores_first(allowed)) == allowed
    assert set(allowed) <= os.sched_getaffinity(0)


def test_every_thread_of_a_control_works() -> None:
    target = find_target("generic")
    openmp.set_threads(3)
    scaling.multiply_adds(peaks.peak((F32, F32, F32), target), target, 3)(1)
    to, source = scaling.copy_buffers(3)
    scaling.copies((to, source), target)(1)
    assert (to == source).all()


def test_one_thread_of_a_team_makes_the_calls() -> None:
    """The one that is named, as often as it is told to; where there is none of that number, nobody."""
    calls: list[int] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_int)
    def called(what: int) -> None:
        calls.append(threading.get_native_id() if what == 5 else -1)

    address = ctypes.cast(called, ctypes.c_void_p).value
    assert address is not None
    member = scaling.one_of_team(NativeCall(address, (("i32", 5),)), 3, find_target("generic"), called)
    openmp.set_threads(2)
    for number in (0, 1, 2):
        member(number, 3)
    first, second = calls[:3], calls[3:]
    assert set(first) == {threading.get_native_id()}
    assert len(second) == 3
    assert len(set(second) - set(first)) == 1


@pytest.mark.parametrize(("flags", "ours"), [({"avx2", "fma", "f16c"}, "avx2"), (set[str](), "generic")])
def test_controls_are_those_of_the_version_that_runs(
    monkeypatch: pytest.MonkeyPatch, flags: set[str], ours: str
) -> None:
    require_openmp()

    def control(ceiling: Peak, target: Target, most: int) -> Repeat:
        raise UsageError(f"{target.name} {'+avx2' in ceiling.text} {most}")

    monkeypatch.setattr(scaling, "cpu_flags", lambda: frozenset(flags))
    monkeypatch.setattr(scaling, "multiply_adds", control)
    (work,) = workloads.select_workloads(["gemm"], ["f32"], ["8"], ["plain"])
    lines: list[str] = []
    scaling.print_scaling([work], find_target("generic,avx2"), [1, 2], 1, lines.append)
    assert lines[-1].endswith(f" {ours} {'avx2' in flags} 2")
