"""What several threads are compared with: the machine's own scaling."""

from __future__ import annotations

from tlx import openmp
from tlx.bench import controls, peaks
from tlx.bench.elements import F32
from tlx.bench.scaling import gain
from tlx.target import find


def test_gain_counts_what_all_threads_do() -> None:
    """Four threads that take as long as one do four times as much; that take twice as long, twice."""
    alone = [1.0, 2.0, 1.0]
    assert gain(alone, alone, 1) == 1.0
    assert gain(alone, [1.0, 2.0, 1.5], 4) == 4.0
    assert gain(alone, [2.0, 4.0, 2.0], 4) == 2.0


def test_every_thread_of_a_control_works() -> None:
    target = find("generic")
    openmp.set_threads(3)
    controls.multiply_adds(peaks.peak((F32, F32, F32), target), target, 3)(1)
    to, source = controls.memory(3)
    controls.copies((to, source), target)(1)
    assert (to == source).all()
