"""Measuring a workload: compile it, check it, and time it beside the peak and the peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tlx.bench import peaks, streams
from tlx.bench.elements import Array
from tlx.bench.native_calls import Repeat, Step, repeated
from tlx.bench.peers.base import Attempt, Peer, address_of
from tlx.bench.timing import Contestant, Rates, fastest, interleaved, rate, seconds
from tlx.bench.workload import Expected, Stream, Workload, WrongResultError
from tlx.diagnostics import TlxError, UsageError
from tlx.jit import compile as compile_module
from tlx.native import cpu_flags, missing
from tlx.target import Target, find

PEAK = "peak"
OURS = "tlx"
_HOPELESS = 0.05
_INTENSE = 16  # operations for each byte, from which on memory does not matter


@dataclass(frozen=True)
class Cell:
    """What was measured of a workload.

    Attributes:
        rates: By contestant: `peak`, `tlx`, then the peers.
        instruction: What the peak loop repeats; empty without one.
        notes: What is special about a contestant, by its name.
        error: Why there is nothing of ours; empty where there is.
    """

    work: Workload
    target: str
    rates: dict[str, Rates]
    instruction: str = ""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    error: str = ""

    @property
    def best_peer(self) -> str | None:
        """The fastest peer; None where no peer does the work."""
        peers = [name for name in self.rates if name not in {PEAK, OURS}]
        return max(peers, key=lambda name: self.rates[name].median, default=None)


@dataclass(frozen=True)
class Bench:
    """How to measure.

    Attributes:
        target: Machine that our code is for.
        peers: Whom to compare with.
        rounds: Samples of each figure.
    """

    target: Target
    peers: Sequence[Peer]
    rounds: int
    _peaks: dict[peaks.Types, tuple[Contestant, str]] = field(default_factory=dict[Any, Any], init=False, repr=False)

    def measure(self, work: Workload) -> Cell:
        """Check and time a workload."""
        arrays = work.arrays()
        expected = work.expected(arrays)
        contestants: dict[str, Contestant] = {}
        notes: dict[str, str] = {}
        instruction = ""
        contestants[PEAK], instruction = self._limit(work)
        error = ""
        try:
            contestants[OURS] = self._ours(work, arrays, expected)
        except TlxError as problem:
            error = problem.message
        pace = work.operations / seconds(contestants[OURS].repeat) / 1e9 if OURS in contestants else 0.0
        for peer in self.peers:
            attempts = _right(peer, work, arrays, expected, pace, notes)
            if attempts:
                best = fastest([Contestant(attempt.repeat, work.operations) for attempt in attempts])
                contestants[peer.name] = Contestant(attempts[best].repeat, work.operations)
                notes[peer.name] = attempts[best].note
        rates = interleaved(contestants, self.rounds)
        return Cell(work, self.target.name, rates, instruction, {k: v for k, v in notes.items() if v}, error)

    def _limit(self, work: Workload) -> tuple[Contestant, str]:
        """What bounds a workload, and what that loop does: multiplications, or memory where that takes longer."""
        loop, instruction = self._peak(work.peak)
        if isinstance(work.peak, Stream) or work.operations > _INTENSE * work.traffic:
            return loop, instruction
        reads = len(work.buffers) - 1
        mostly_read = work.output.bytes * _INTENSE < work.traffic
        bound = Stream(work.traffic, 1, 0) if mostly_read else Stream(work.traffic // (reads + 1), reads, 1)
        memory, what = streams.contestant(bound, self.target)
        memory = Contestant(memory.repeat, work.operations)
        return (memory, what) if rate(memory) < rate(loop) else (loop, instruction)

    def _peak(self, bound: peaks.Types | Stream) -> tuple[Contestant, str]:
        """The peak loop for products of these types, or for memory, made once, and what it repeats."""
        if isinstance(bound, Stream):
            return streams.contestant(bound, self.target)
        if bound not in self._peaks:
            loop = peaks.peak(bound, self.target)
            self._peaks[bound] = peaks.contestant(loop, self.target), loop.instruction
        return self._peaks[bound]

    def _ours(self, work: Workload, arrays: dict[str, Array], expected: Expected) -> Contestant:
        compiled = compile_module(work.text(), self.target, entry=work.function)
        step = Step(address_of(compiled.entry.code), work.arguments(arrays))
        repeat = repeated([step], (compiled, arrays))
        _checked(work, repeat, arrays, expected, OURS)
        return Contestant(repeat, work.operations)


def runnable(name: str) -> Target:
    """The target of that name.

    Raises:
        UsageError: There is none, or this machine cannot run its code.
    """
    target = find(name)
    lacking = missing(target, cpu_flags())
    if lacking:
        raise UsageError(f"this machine cannot run the code of {target.name}: it lacks {', '.join(lacking)}")
    return target


def _right(
    peer: Peer, work: Workload, arrays: dict[str, Array], expected: Expected, pace: float, notes: dict[str, str]
) -> list[Attempt]:
    """The ways of a peer that give the right result; where one does not, the notes say so."""
    found: list[Attempt] = []
    for attempt in peer.attempts(work, arrays):
        try:
            _checked(work, attempt.repeat, arrays, expected, peer.name)
        except WrongResultError as error:
            notes[peer.name] = error.message
            continue
        rate = work.operations / seconds(attempt.repeat) / 1e9
        if rate < _HOPELESS * pace:
            notes[peer.name] = f"left out: no faster than {rate:.3g} G/s"
        else:
            found.append(attempt)
    return found


def _checked(work: Workload, repeat: Repeat, arrays: dict[str, Array], expected: Expected, who: str) -> None:
    out = arrays[work.output.name]
    out.view("u1")[...] = 0xA5  # what is not written is wrong
    repeat(1)
    work.check(out, expected, who)


def record(cell: Cell) -> dict[str, Any]:
    """A cell for JSON; rates in 10^9 operations a second."""
    top = cell.rates.get(PEAK)
    rates = {
        name: {
            "best": one.best,
            "median": one.median,
            "spread": one.spread,
            **({"of_peak": one.share(top)} if top else {}),
        }
        for name, one in cell.rates.items()
    }
    work = cell.work
    return {
        "row": work.row,
        "types": work.types,
        "size": work.size,
        "variant": work.variant,
        "operations": work.operations,
        "traffic": work.traffic,
        "peak_loop": cell.instruction,
        "rates": rates,
        "notes": cell.notes,
        "error": cell.error,
    }
