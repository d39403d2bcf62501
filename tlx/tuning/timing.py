"""Timing: interleaved samples of machine code in loops, and a probe for other programs on the core.

The loops are machine code too, so that measurements include neither Python nor ctypes:

    repeat = call_loop([NativeCall(address, (("ptr", x), ("i32", 5))), ...])
    repeat(1000)

    define void @repeat(i64 %n) {
    again:                                      ; %n times
      call void inttoptr (i64 ADDRESS to ptr)(ptr inttoptr (i64 X to ptr), i32 5)
      ...
    }

Time is the thread's CPU time, which other programs on the processor affect only through caches and clock frequency.
Another program may run on the core's second hyperthread, however. That does not slow down a loop of multiply-adds, so
the peak does not show it; but it takes half of the front end, which slows code that also loads, stores and counts by a
fifth to a third. It shows in the ratio of

    the time of nops, which saturate the front end   /   the time of a chain of multiplications, bound by latency

The ratio is about the same whenever the core is quiet, at any clock frequency, and 1.5 to 2 times as high when it is
shared.
"""

from __future__ import annotations

import ctypes
import random
import statistics
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from tlx.api.compiler import compile as compile_module

Repeat = Callable[[int], object]
LOOP_LABEL: Final = "again"


@dataclass(frozen=True)
class NativeCall:
    """A call of a native function.

    Attributes:
        address: Address of the function.
        arguments: Arguments as (LLVM type, value); pointers are addresses.
    """

    address: int
    arguments: tuple[tuple[str, int | float], ...]

    def text(self) -> str:
        """The call as LLVM IR."""
        arguments = ", ".join(f"{type_} {_constant(type_, value)}" for type_, value in self.arguments)
        return f"  call void inttoptr (i64 {self.address} to ptr)({arguments})\n"


def call_loop(steps: Sequence[NativeCall], keep: object = None) -> Repeat:
    """A function that makes the calls in order, the given number of times."""
    body = "".join(step.text() for step in steps)
    return compile_loop(loop_function(body), keep)


def compile_loop(text: str, keep: object = None) -> Repeat:
    """The function `@repeat(i64 n)` of a module."""
    compiled = compile_module(text, entry="repeat")
    call = compiled.entry.unchecked

    def repeat(count: int, _keep: object = (compiled, keep)) -> Any:
        return call(count)

    return repeat


def loop_function(body: str, last: str = LOOP_LABEL, first: str = "", attributes: str = "") -> str:
    """The function `@repeat`, which runs `first` once and a body the given number of times.

    Args:
        body: Instructions that begin in the block `LOOP_LABEL`.
        last: Block that they end in.
        first: Instructions before the loop.
        attributes: Attributes of the function.
    """
    loop = counted_loop(LOOP_LABEL, "entry", "%n", body, last=last)
    return f"define void @repeat(i64 %n) {attributes} {{\nentry:\n{first}{loop}  ret void\n}}\n"


def counted_loop(name: str, before: str, limit: object, body: str, step: int = 1, last: str = "") -> str:
    """A loop that counts `%NAME.i` from 0 up to a limit, in steps; it runs at least once.

    Args:
        name: Name of its first block; the block after the loop is `NAME.end`.
        before: The block that it is entered from.
        limit: A number, or the name of a value.
        body: Instructions, starting with further phis.
        step: The increment.
        last: The last block of the body, if it has several.
    """
    return f"""  br label %{name}
{name}:
  %{name}.i = phi i64 [ 0, %{before} ], [ %{name}.next, %{last or name} ]
{body}  %{name}.next = add i64 %{name}.i, {step}
  %{name}.more = icmp ult i64 %{name}.next, {limit}
  br i1 %{name}.more, label %{name}, label %{name}.end
{name}.end:
"""


def _constant(type_: str, value: float) -> str:
    if type_ == "ptr":
        return f"inttoptr (i64 {int(value)} to ptr)"
    if type_ == "float":
        bits = struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<f", value))[0]))[0]
        return f"0x{bits:016X}"
    if type_ == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return str(int(value))


def function_address(function: Any) -> int:
    """The address of a library's function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


SAMPLE_NS: Final = 8_000_000
_MIN_SAMPLE_NS: Final = 200_000
_MIN_ROUNDS: Final = 3
_clock = time.thread_time_ns
_LONG_NS: Final = 12_000_000_000
_LONGER: Final = 1.67
_MORE: Final = 3  # maximum factor of additional rounds if too few are quiet
_MORE_NS: Final = 4_000_000_000
LENGTHY: Final = 0.05  # seconds


@dataclass(frozen=True)
class Contestant:
    """Code to time.

    Attributes:
        repeat: Runs it the given number of times.
        operations: Arithmetic operations of one run.
        seconds_estimate: Approximate seconds of one run, if known.
    """

    repeat: Callable[[int], object]
    operations: int
    seconds_estimate: float = 0.0


@dataclass(frozen=True)
class Rates:
    """Speeds of one contestant in 10^9 operations a second, one for each round."""

    rounds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The highest speed."""
        return max(self.rounds)

    @property
    def median(self) -> float:
        """The median speed."""
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        """Highest minus lowest, as a share of the median."""
        return (self.best - min(self.rounds)) / self.median

    def share(self, whole: Rates) -> float:
        """The median of the ratios to another contestant's speeds in the same rounds."""
        return statistics.median(own / other for own, other in zip(self.rounds, whole.rounds, strict=True))


@dataclass(frozen=True)
class InterleavedRates:
    """Interleaved measurements of contestants.

    Attributes:
        rates: Rates by contestant, from the same rounds for all: the quiet ones if there are enough.
        rounds: Number of rounds.
        quiet: Number of quiet rounds; None if that was not checked.
    """

    rates: dict[str, Rates]
    rounds: int
    quiet: int | None = None


def interleaved(
    contestants: Mapping[str, Contestant],
    rounds: int,
    core: PinnedCore | None = None,
    steady: Sequence[str] = (),
    long_ns: int = _LONG_NS,
    rest: float = 0.0,
) -> InterleavedRates:
    """Time all contestants in turn, `rounds` times, each time for about `SAMPLE_NS`.

    There are fewer rounds if they take too long: three after `long_ns`, two after `_LONGER` times that. The order
    changes in each round, as the contestant after the peak loop is up to a fifth slower. If a core is given, it is
    probed before and after each contestant, and rounds are added until enough of them are quiet.

    Args:
        contestants: The contestants by name.
        rounds: Requested number of rounds.
        core: Probe that detects quiet rounds; None accepts all rounds.
        steady: Contestants that reach their best speed in any quiet round.
        long_ns: Nanoseconds after which there are only as many rounds as a median needs.
        rest: Seconds to wait before each contestant, until the threads of the one before no longer look for work.
    """
    counts = {name: _calibrated(contestant) for name, contestant in contestants.items()}
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    ratios: list[float] = []
    quiet: list[int] = []
    started = time.monotonic_ns()
    while _goes_on(
        len(ratios), rounds, time.monotonic_ns() - started, long_ns, lacking=core is not None and _few(quiet, rounds)
    ):
        ratio = core.ratio() if core else 0.0
        for name in random.Random(len(ratios)).sample(list(contestants), len(contestants)):
            time.sleep(rest)
            if counts[name] > 1:
                contestants[name].repeat(1)  # the peak loop has evicted its data from the cache
            elapsed = _elapsed(contestants[name], counts[name])
            samples[name].append(contestants[name].operations * counts[name] / elapsed)
            ratio = max(ratio, core.ratio() if core else 0.0)
        ratios.append(ratio)
        quiet = quiet_rounds(ratios, core.best, [samples[name] for name in steady]) if core else []
    chosen = range(len(ratios)) if _few(quiet, rounds) else quiet
    rates = {name: Rates(tuple(values[index] for index in chosen)) for name, values in samples.items()}
    return InterleavedRates(rates, len(ratios), len(quiet) if core else None)


def _few(quiet: Sequence[int], rounds: int) -> bool:
    """Whether there are too few quiet rounds."""
    return len(quiet) < min(FEWEST_QUIET_ROUNDS, rounds)


def _goes_on(done: int, rounds: int, spent: int, long_ns: int, *, lacking: bool) -> bool:
    """Whether to run another round, given the number of rounds done and the nanoseconds spent."""
    if (done >= _MIN_ROUNDS and spent > long_ns) or (done >= _MIN_ROUNDS - 1 and spent > _LONGER * long_ns):
        return False
    return done < rounds or (lacking and done < _MORE * rounds and spent < _MORE_NS)


def fastest(contestants: Sequence[Contestant]) -> int:
    """The index of the fastest of several contestants that compute the same result."""
    if len(contestants) == 1:
        return 0
    if all(one.seconds_estimate > LENGTHY for one in contestants):
        return min(range(len(contestants)), key=lambda index: contestants[index].seconds_estimate)
    rates = interleaved({str(index): one for index, one in enumerate(contestants)}, _MIN_ROUNDS).rates
    return max(range(len(contestants)), key=lambda index: rates[str(index)].best)


def seconds(repeat: Callable[[int], object], times: int = 2) -> float:
    """Approximate seconds of one run: the shortest of a few, or of a single one if it is lengthy."""
    shortest = inf
    for _ in range(times):
        shortest = min(shortest, _elapsed(Contestant(repeat, 1), 1) / 1e9)
        if shortest > LENGTHY:
            break
    return shortest


def rate(contestant: Contestant) -> float:
    """The best speed of a few samples."""
    return interleaved({"": contestant}, _MIN_ROUNDS).rates[""].best


def _calibrated(contestant: Contestant) -> int:
    """Number of repetitions for one sample."""
    if contestant.seconds_estimate * 1e9 > SAMPLE_NS:
        return 1
    count = 1
    _elapsed(contestant, count)
    while (elapsed := _elapsed(contestant, count)) < _MIN_SAMPLE_NS:
        count *= 4
    return max(1, count * SAMPLE_NS // elapsed)


def use_clock(threads: int, *, counts_workers: bool = False) -> None:
    """Measure wall-clock time from now on if there are several threads, else this thread's CPU time.

    Args:
        threads: Number of threads of every contestant.
        counts_workers: Measure the CPU time of the whole process instead, for libraries whose only thread is their own.
    """
    global _clock  # noqa: PLW0603 (one choice for a process)
    alone = time.process_time_ns if counts_workers else time.thread_time_ns
    _clock = time.perf_counter_ns if threads > 1 else alone


def _elapsed(contestant: Contestant, count: int) -> int:
    start = _clock()
    contestant.repeat(count)
    return max(1, _clock() - start)


FEWEST_QUIET_ROUNDS: Final = 3
"""Number of rounds needed for a median."""
QUIET_RATIO: Final = 1.08
"""Multiple of the lowest ratio up to which a core counts as undisturbed."""
_RATIO_SAMPLES: Final = 11  # 5 microseconds each
_NOPS: Final = ("nop", 240, 200)  # nops per iteration, divisible by any issue width, and iterations: 8000 cycles
_CHAIN: Final = ("imul %rax, %rax", 64, 40)


class PinnedCore:
    """The core that the thread is pinned to, probed for other programs.

    Attributes:
        best: The lowest ratio measured so far.
    """

    def __init__(self) -> None:
        self.best = inf
        self._nops, self._chain = [_instruction_loop(*what[:2]) for what in (_NOPS, _CHAIN)]
        self.ratio()  # the first calls take longer

    def ratio(self) -> float:
        """Measure the time of the nops over that of the chain: the median of a few samples."""
        ratios = [
            _wall_elapsed(self._nops, _NOPS[2]) / _wall_elapsed(self._chain, _CHAIN[2]) for _ in range(_RATIO_SAMPLES)
        ]
        ratio = statistics.median(ratios)
        self.best = min(self.best, ratio)
        return ratio


def quiet_rounds(ratios: Sequence[float], best: float, steady: Sequence[Sequence[float]] = ()) -> list[int]:
    """The rounds without disturbance from other programs.

    Args:
        ratios: The highest ratio in each round.
        best: The lowest ratio ever measured.
        steady: Speeds in each round of contestants that slow down while another program uses the same unit (AMX).
    """
    return [
        index
        for index, ratio in enumerate(ratios)
        if ratio <= QUIET_RATIO * best and all(QUIET_RATIO * speeds[index] >= max(speeds) for speeds in steady)
    ]


def front_end_loop() -> Repeat:
    """A loop of nops, which saturates the front end of a core."""
    return _instruction_loop(*_NOPS[:2])


def _instruction_loop(instruction: str, times: int) -> Repeat:
    body = f".rept {times}\\0A{instruction}\\0A.endr"
    return compile_loop(loop_function(f'  call void asm sideeffect "{body}", "~{{rax}},~{{flags}}"()\n'))


def _wall_elapsed(repeat: Repeat, count: int) -> int:
    start = time.perf_counter_ns()
    repeat(count)
    return max(1, time.perf_counter_ns() - start)
