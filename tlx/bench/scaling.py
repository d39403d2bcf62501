"""How much faster code is on several threads: `tlx bench --scaling=1,2,4`.

    work                          alone         1      2      4
    gemm f32 1024              143 G/s      1.00   1.96   3.80
      processors one by one                 1.00   1.99   3.92
      multiply-adds alone                   1.00   1.98   3.95
      copies alone                          1.00   1.81   2.70

`alone` is the code without threads; behind it, for each number of threads, how many times as fast the code with threads
is. Below it are the speeds that the code without threads has on each of the processors, the others idle, added up: not
all are equally fast where something else is at work beside them. Then what the machine gives to as many threads at that
time (`controls`): how many times as much as one of them all get done, by the loop of the peak and by copies. All take
turns; the time is that of the clock on the wall.

Each thread stays on a processor, the first ones on processors of different cores (`cores`). Threads that have nothing
to do sleep after a millisecond: LLVM's library would have them spin for 200, beside what is timed next.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
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


@dataclass(frozen=True)
class Seconds:
    """The time of a call, round by round.

    Attributes:
        alone: Without threads.
        teams: With each number of threads.
        elsewhere: Without threads on the second processor, and the ones behind it.
        others: Of each control, on one thread and on each number of them.
    """

    alone: Sequence[float]
    teams: Sequence[Sequence[float]]
    elsewhere: Sequence[Sequence[float]]
    others: Sequence[Sequence[Sequence[float]]]


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
        speed = work.operations / statistics.median(seconds.alone) / 1e9
        ratios = [statistics.median(a / b for a, b in zip(seconds.alone, own, strict=True)) for own in seconds.teams]
        echo(f"{work.name:{_LONGEST_NAME}} {speed:>7.0f} G/s " + _numbers(ratios))
        echo(_below("processors one by one", [together(seconds.alone, seconds.elsewhere, count) for count in counts]))
        for name, (one, *teams) in zip(_CONTROLS, seconds.others, strict=True):
            echo(_below(name, [gain(one, team, count) for team, count in zip(teams, counts, strict=True)]))


def _below(name: str, ratios: Sequence[float]) -> str:
    """A line below that of a workload."""
    return f"  {name:{_LONGEST_NAME + 10}} {_numbers(ratios)}"


def _numbers(ratios: Sequence[float]) -> str:
    return "".join(f"{ratio:>7.2f}" for ratio in ratios)


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


def together(alone: Sequence[float], elsewhere: Sequence[Sequence[float]], count: int) -> float:
    """How many times as much as the first processor do `count` of them, each as fast as it is by itself."""
    return statistics.median(sum(times[0] / t for t in times[:count]) for times in zip(alone, *elsewhere, strict=True))


def _measured(work: Workload, target: Target, counts: Sequence[int], rounds: int) -> Seconds:
    """Measure a workload and the controls."""
    arrays = work.arrays()
    expected = work.expected(arrays) if work.expected else None
    out = arrays[work.output.name]

    def call(options: Options) -> tuple[Step, object]:
        compiled = compile_module(work.text(), target, entry=work.function, options=options)
        return Step(address_of(compiled.entry.code), work.arguments(arrays)), (compiled, arrays)

    (plain, kept), (shared, kept_too) = call(Options()), call(Options(threads="openmp"))
    most, runs = max(counts), version_for(target, cpu_flags())
    alone, team = repeated([plain], kept), repeated([shared], kept_too)
    member = controls.one_of_team(plain, most, runs, kept)
    others = controls.multiply_adds(_ceiling(work, runs), runs, most), controls.copies(controls.memory(most), runs)
    ours = [(alone, 1), *((team, count) for count in counts)]
    elsewhere = [(partial(member, number), number + 1) for number in range(1, most)]
    contestants = [*ours, *elsewhere, *((other, count) for other in others for count in (1, *counts))]
    often: list[int] = []
    for repeat, count in contestants:
        openmp.set_threads(count)
        out.view("u1")[...] = 0xA5  # what is not written is wrong
        repeat(1)
        if expected is not None and (repeat, count) in ours:
            work.check(out, expected, f"{count} threads")
        often.append(max(1, int(SAMPLE / min(_timed(repeat, 1), _timed(repeat, 1)))))
    times = iter(list(column) for column in zip(*_rounds(contestants, often, rounds), strict=True))
    parts = [list(islice(times, size)) for size in (1, len(counts), most - 1, *[1 + len(counts)] * len(others))]
    return Seconds(parts[0][0], parts[1], parts[2], parts[3:])


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
