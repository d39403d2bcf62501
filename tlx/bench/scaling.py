"""Measures how code scales with threads: `tlx bench --scaling=1,2,4`.

    work                          alone         1      2      4
    gemm f32 1024              143 G/s      1.00   1.96   3.80
      processors one by one                 1.00   1.99   3.92
      multiply-adds alone                   1.00   1.98   3.95
      copies alone                          1.00   1.81   2.70

`alone` is the speed of the single-threaded code; the columns after it are speedups for each number of threads. The
indented rows are upper bounds, since virtual processors may be hyperthreads of one core or busy with other programs:

    processors one by one    the sum of the speeds of the single-threaded code on each processor, the others being idle
    multiply-adds alone      each thread runs the peak loop, without memory: only cores and their clocks are shared
    copies alone             each thread copies 8 MB of its own: the bandwidth of the memory that all share

The last two are relative to one such thread. All contestants are timed in each round, in wall-clock time.

Each thread is pinned to a processor, the first ones to processors of different cores. Idle threads sleep after a
millisecond; by default LLVM's OpenMP library lets them spin for 200, into the next measurement.

A virtual machine may not report which processors are hyperthreads of one core, so that is measured: a loop of nops
fills the front end of a core (`timing`). On two processors at once it takes as long as on one or, if they share a core,
1.5 to 2 times as long.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

import numpy as np

from tlx.api.compiler import compile as compile_module
from tlx.bench import peaks
from tlx.bench.peaks import STEPS, Peak
from tlx.diagnostics import TlxError
from tlx.intrinsics.numpy_types import Array
from tlx.llvm import openmp
from tlx.lower.options import Options
from tlx.target.host import cpu_flags, version_for
from tlx.target.target import Target
from tlx.tuning.timing import NativeCall, Repeat, call_loop, front_end_loop, function_address, loop_function
from tlx.tuning.workload import F32, MemoryTraffic, Workload

SAMPLE: Final = 0.02  # seconds
_LONGEST_NAME: Final = 36
_CONTROLS: Final = ("multiply-adds alone", "copies alone")


@dataclass(frozen=True)
class Seconds:
    """Seconds of a call in each round.

    Attributes:
        alone: Of the single-threaded code.
        teams: Of the threaded code, for each number of threads.
        elsewhere: Of the single-threaded code on each processor but the first.
        others: Of each control, on one thread and on each number of threads.
    """

    alone: Sequence[float]
    teams: Sequence[Sequence[float]]
    elsewhere: Sequence[Sequence[float]]
    others: Sequence[Sequence[Sequence[float]]]


def print_scaling(
    works: Sequence[Workload], target: Target, counts: Sequence[int], rounds: int, echo: Callable[[str], object]
) -> None:
    """Measure workloads on several threads and print a table.

    Args:
        works: The workloads.
        target: Target that the code is compiled for.
        counts: Numbers of threads to measure.
        rounds: Number of samples of each figure.
        echo: Prints a line.
    """
    if order := pin_threads():
        echo(f"threads stay on processors {' '.join(map(str, order))}, in this order\n")
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
        echo(
            _below(
                "processors one by one", [combined_gain(seconds.alone, seconds.elsewhere, count) for count in counts]
            )
        )
        for name, (one, *teams) in zip(_CONTROLS, seconds.others, strict=True):
            echo(_below(name, [gain(one, team, count) for team, count in zip(teams, counts, strict=True)]))


def _below(name: str, ratios: Sequence[float]) -> str:
    """An indented line below a workload's."""
    return f"  {name:{_LONGEST_NAME + 10}} {_numbers(ratios)}"


def _numbers(ratios: Sequence[float]) -> str:
    return "".join(f"{ratio:>7.2f}" for ratio in ratios)


def pin_threads() -> list[int]:
    """Have the OpenMP library, which is loaded later, pin threads to distinct cores, unless the user has set this.

    Returns:
        The processors in the order of the threads; none if the user has set them.
    """
    os.environ.setdefault("OMP_PROC_BIND", "close")
    os.environ.setdefault("KMP_BLOCKTIME", "1")  # milliseconds
    if "OMP_PLACES" in os.environ:
        return []
    order = distinct_cores_first(sorted(os.sched_getaffinity(0)))
    os.environ["OMP_PLACES"] = ",".join(f"{{{processor}}}" for processor in order)
    return order


def gain(alone: Sequence[float], team: Sequence[float], count: int) -> float:
    """The throughput of a team of `count` threads that each do the same work, relative to one thread."""
    return count * statistics.median(one / all_ for one, all_ in zip(alone, team, strict=True))


def combined_gain(alone: Sequence[float], elsewhere: Sequence[Sequence[float]], count: int) -> float:
    """The throughput of `count` processors, each at the speed it has by itself, relative to the first."""
    return statistics.median(sum(times[0] / t for t in times[:count]) for times in zip(alone, *elsewhere, strict=True))


def _measured(work: Workload, target: Target, counts: Sequence[int], rounds: int) -> Seconds:
    """Measure a workload and the controls."""
    arrays = work.arrays()
    expected = work.expected(arrays) if work.expected else None

    def call(options: Options) -> tuple[NativeCall, object]:
        compiled = compile_module(work.text(), target, entry=work.function, options=options)
        return NativeCall(function_address(compiled.entry.code), work.arguments(arrays)), (compiled, arrays)

    (plain, plain_owner), (shared, shared_owner) = call(Options()), call(Options(threads="openmp"))
    most, runs = max(counts), version_for(target, cpu_flags())
    alone, team = call_loop([plain], plain_owner), call_loop([shared], shared_owner)
    member = one_of_team(plain, most, runs, plain_owner)
    others = multiply_adds(_ceiling(work, runs), runs, most), copies(copy_buffers(most), runs)
    ours = [(alone, 1), *((team, count) for count in counts)]
    elsewhere = [(partial(member, number), number + 1) for number in range(1, most)]
    contestants = [*ours, *elsewhere, *((other, count) for other in others for count in (1, *counts))]
    often: list[int] = []
    for repeat, count in contestants:
        openmp.set_threads(count)
        work.reset_output(arrays)
        repeat(1)
        if expected is not None and (repeat, count) in ours:
            work.check(arrays[work.output.name], expected, f"{count} threads")
        often.append(max(1, int(SAMPLE / min(_timed(repeat, 1), _timed(repeat, 1)))))
    times = iter(list(column) for column in zip(*_rounds(contestants, often, rounds), strict=True))
    parts = [list(islice(times, size)) for size in (1, len(counts), most - 1, *[1 + len(counts)] * len(others))]
    return Seconds(parts[0][0], parts[1], parts[2], parts[3:])


def _ceiling(work: Workload, target: Target) -> peaks.Peak:
    """The peak loop for a workload's types; multiply-adds of float if the workload is bound by memory."""
    return peaks.peak((F32, F32, F32) if isinstance(work.peak, MemoryTraffic) else work.peak, target)


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


TimeTogether = Callable[[Sequence[int]], float]
"""Time of the loop when it runs on all of the given processors at once."""

_SHARED: Final = 1.3
"""Slowdown above which two processors share a core."""
_ATTEMPTS: Final = 4
_LOOP_COUNT: Final = 60_000  # about a millisecond, much longer than starting threads takes


def distinct_cores_first(processors: Sequence[int], together: TimeTogether | None = None) -> list[int]:
    """Processors ordered so that one of each core comes before the second hyperthreads.

    Args:
        processors: Numbers of the processors.
        together: Times a loop on several processors at once; the default is a loop of nops.
    """
    together = together or _PinnedLoops(front_end_loop())
    alone = min(together([processor]) for processor in processors)
    first: list[int] = []
    second: list[int] = []
    for processor in processors:
        shares = any(together([other, processor]) > _SHARED * alone for other in first)
        (second if shares else first).append(processor)
    return [*first, *second]


class _PinnedLoops:
    """Runs a loop on several processors at once."""

    def __init__(self, loop: Repeat) -> None:
        self._loop = loop

    def __call__(self, processors: Sequence[int]) -> float:
        """The time of the slowest processor, in the best of a few attempts."""
        return min(self._once(processors) for _ in range(_ATTEMPTS))

    def _once(self, processors: Sequence[int]) -> int:
        begin = threading.Barrier(len(processors))
        times: list[int] = []

        def run(processor: int) -> None:
            os.sched_setaffinity(0, {processor})  # pins this thread only
            begin.wait()
            start = time.perf_counter_ns()
            self._loop(_LOOP_COUNT)
            times.append(time.perf_counter_ns() - start)

        threads = [threading.Thread(target=run, args=(processor,)) for processor in processors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(times)


_OUT: Final = 16384  # bytes of a peak loop's result
_COPIED: Final = 8 << 20
_TEAM: Final = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()

define void @team(i64 %n, ptr %to, ptr %from) {
  %shared = alloca { i64, ptr, ptr }, align 16
  %p0 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 0
  %p1 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 1
  %p2 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 2
  store i64 %n, ptr %p0
  store ptr %to, ptr %p1
  store ptr %from, ptr %p2
  call void @GOMP_parallel(ptr @member, ptr %shared, i32 0, i32 0)
  ret void
}

define internal void @member(ptr %shared) {
  %p1 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 1
  %p2 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 2
  %n = load i64, ptr %shared
  %to = load ptr, ptr %p1
  %from = load ptr, ptr %p2
  %thread = call i32 @omp_get_thread_num()
  %number = zext i32 %thread to i64
  %to.at = mul i64 %number, TO
  %from.at = mul i64 %number, FROM
  %to.own = getelementptr i8, ptr %to, i64 %to.at
  %from.own = getelementptr i8, ptr %from, i64 %from.at
  call void @CALLED(i64 %n, ptr %to.own, ptr %from.own)
  ret void
}
"""
_ONE_OF_TEAM: Final = """
define internal void @one(i64 %n, ptr %chosen, ptr %unused) {
  %flag = load i64, ptr %chosen
  %mine = icmp ne i64 %flag, 0
  br i1 %mine, label %work, label %done

work:
  call void @repeat(i64 %n)
  br label %done

done:
  ret void
}
"""
_COPY: Final = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @copy(i64 %n, ptr %to, ptr %from) {{
  br label %loop

loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 {_COPIED}, i1 false)
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %done

done:
  ret void
}}
"""


def multiply_adds(ceiling: Peak, target: Target, most: int) -> Repeat:
    """The peak loop on a team of up to `most` threads."""
    source = np.random.default_rng(1).random(512, np.float32)
    return _team(ceiling.text, "peak", STEPS, (np.zeros(most * _OUT, np.uint8), source), (_OUT, 0), target)


def copy_buffers(most: int) -> tuple[Array, Array]:
    """Destination and source of the copies of up to `most` threads."""
    return np.zeros(most * _COPIED, np.uint8), np.random.default_rng(1).integers(0, 255, most * _COPIED, np.uint8)


def copies(arrays: tuple[Array, Array], target: Target) -> Repeat:
    """Each thread of a team copies 8 MB from the second array to the first."""
    return _team(_COPY, "copy", 1, arrays, (_COPIED, _COPIED), target)


def one_of_team(step: NativeCall, most: int, target: Target, keep: object = None) -> Callable[[int, int], object]:
    """A function `(thread, n)`: one thread of a team of up to `most` repeats a call n times while the others idle."""
    chosen = np.zeros(most, np.int64)
    text = loop_function(step.text()) + _ONE_OF_TEAM
    repeat = _team(text, "one", 1, (chosen, chosen), (chosen.itemsize, 0), target)

    def member(number: int, count: int, _keep: object = keep) -> object:
        chosen[:] = np.arange(most) == number
        return repeat(count)

    return member


def _team(
    text: str,
    called: str,
    steps: int,
    arrays: tuple[Array, Array],
    pitches: tuple[int, int],
    target: Target,
) -> Repeat:
    """A function that has each thread of a team call the function `called` on its own part of two arrays."""
    team = _TEAM.replace("CALLED", called).replace("TO", str(pitches[0])).replace("FROM", str(pitches[1]))
    compiled = compile_module(text + team, target, entry="team")
    call, (to, source) = compiled.entry.unchecked, arrays

    def repeat(count: int, _keep: object = (compiled, arrays)) -> object:
        return call(count * steps, to.ctypes.data, source.ctypes.data)

    return repeat
