"""How much faster code is on several threads: `tlx bench --scaling=1,2,4`.

    work                          alone         1      2      4
    gemm f32 1024              143 G/s      1.00   1.96   3.80
      multiply-adds alone                   1.00   1.98   3.95
      copies alone                          1.00   1.81   2.70

`alone` is the code without threads; behind it, for each number of threads, how many times as fast the code with threads
is. Below it is what the machine gives to as many threads at that time (`controls`): how many times as much as one of
them all get done, by the loop of the peak and by copies. All take turns; the time is that of the clock on the wall.

Each thread stays on a processor, the first ones on processors of different cores (`cores`). Threads that have nothing
to do sleep after a millisecond: LLVM's library would have them spin for 200, beside what is timed next.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tlx import openmp
from tlx.bench import controls, peaks
from tlx.bench.cores import one_of_each_first
from tlx.bench.elements import F32
from tlx.bench.native_calls import Repeat, Step, repeated
from tlx.bench.peers.base import address_of
from tlx.bench.workload import Stream, Workload
from tlx.diagnostics import TlxError
from tlx.jit import compile as compile_module
from tlx.native import cpu_flags, version_for
from tlx.pipeline import Options

if TYPE_CHECKING:
    from tlx.target import Target

SAMPLE: Final = 0.02  # seconds
_LONGEST_NAME: Final = 36
_CONTROLS: Final = ("multiply-adds alone", "copies alone")


def print_scaling(
    works: Sequence[Workload], target: Target, counts: Sequence[int], rounds: int, echo: Callable[[str], object]
) -> None:
    """Measure and print.

    Args:
        works: What to measure.
        target: Machine that the code is for.
        counts: Numbers of threads.
        rounds: Samples of each figure.
        echo: Takes a line.
    """
    _prepare_library(echo)
    echo(f"{'work':{_LONGEST_NAME}} {'alone':>11} " + "".join(f"{count:>7}" for count in counts))
    for work in works:
        try:
            seconds = _measured(work, target, counts, rounds)
        except TlxError as error:
            echo(f"{work.name:{_LONGEST_NAME}} {error.message}")
            continue
        alone = statistics.median(seconds[0])
        speed = work.operations / alone / 1e9
        ours, theirs = seconds[1 : 1 + len(counts)], seconds[1 + len(counts) :]
        others = theirs[: len(theirs) // 2], theirs[len(theirs) // 2 :]
        ratios = [statistics.median(a / b for a, b in zip(seconds[0], own, strict=True)) for own in ours]
        echo(f"{work.name:{_LONGEST_NAME}} {speed:>7.0f} G/s " + "".join(f"{ratio:>7.2f}" for ratio in ratios))
        for name, own in zip(_CONTROLS, others, strict=True):
            gains = (gain(own[0], team, count) for team, count in zip(own[1:], counts, strict=True))
            echo(f"  {name:{_LONGEST_NAME + 10}} " + "".join(f"{more:>7.2f}" for more in gains))


def _prepare_library(echo: Callable[[str], object]) -> None:
    """Have the OpenMP library, which is loaded later, keep threads apart; what the user has set stays."""
    os.environ.setdefault("OMP_PROC_BIND", "close")
    os.environ.setdefault("KMP_BLOCKTIME", "1")  # milliseconds
    if "OMP_PLACES" not in os.environ:
        order = one_of_each_first(sorted(os.sched_getaffinity(0)))
        os.environ["OMP_PLACES"] = ",".join(f"{{{processor}}}" for processor in order)
        echo(f"threads stay on processors {' '.join(map(str, order))}, in this order\n")


def gain(alone: Sequence[float], team: Sequence[float], count: int) -> float:
    """How many times as much as one thread does a team of `count` do, all of whose threads do the same, each."""
    return count * statistics.median(one / all_ for one, all_ in zip(alone, team, strict=True))


def _measured(work: Workload, target: Target, counts: Sequence[int], rounds: int) -> list[list[float]]:
    """Seconds round by round: without threads, for each number of threads; then each control's, on one and on each."""
    arrays = work.arrays()
    expected = work.expected(arrays) if work.expected else None
    out = arrays[work.output.name]

    def contestant(options: Options) -> Repeat:
        compiled = compile_module(work.text(), target, entry=work.function, options=options)
        return repeated([Step(address_of(compiled.entry.code), work.arguments(arrays))], (compiled, arrays))

    alone, team = contestant(Options()), contestant(Options(threads="openmp"))
    most, runs = max(counts), version_for(target, cpu_flags())
    others = controls.multiply_adds(_ceiling(work, runs), runs, most), controls.copies(controls.memory(most), runs)
    ours = [(alone, 1), *((team, count) for count in counts)]
    contestants = [*ours, *((other, count) for other in others for count in (1, *counts))]
    often: list[int] = []
    for repeat, count in contestants:
        openmp.set_threads(count)
        out.view("u1")[...] = 0xA5  # what is not written is wrong
        repeat(1)
        if expected is not None and (repeat, count) in ours:
            work.check(out, expected, f"{count} threads")
        often.append(max(1, int(SAMPLE / min(_timed(repeat, 1), _timed(repeat, 1)))))
    return list(map(list, zip(*_rounds(contestants, often, rounds), strict=True)))


def _ceiling(work: Workload, target: Target) -> peaks.Peak:
    """The loop of the peak for a workload's types; multiply-adds of float where memory bounds it."""
    return peaks.peak((F32, F32, F32) if isinstance(work.peak, Stream) else work.peak, target)


def _rounds(contestants: Sequence[tuple[Repeat, int]], often: Sequence[int], rounds: int) -> Iterator[list[float]]:
    for _ in range(rounds):
        row: list[float] = []
        for (repeat, count), times in zip(contestants, often, strict=True):
            openmp.set_threads(count)
            repeat(1)  # wakes the team
            row.append(_timed(repeat, times) / times)
        yield row


def _timed(repeat: Repeat, times: int) -> float:
    begun = time.perf_counter()
    repeat(times)
    return time.perf_counter() - begun
