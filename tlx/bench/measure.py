"""Measures a workload: compiles it, checks it, and times it together with the peak loop and the peers.

A session of measurements is the target, the libraries, and the processors of this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from tlx.api.call import PreparableFunction, PreparedFunction
from tlx.api.compiler import compile as compile_module
from tlx.api.files import os_error_text
from tlx.bench import peaks
from tlx.bench.peers import base
from tlx.bench.peers.base import LibraryPaths, Peer
from tlx.bench.settings import BenchSettings
from tlx.diagnostics import TlxError, UsageError
from tlx.intrinsics.numpy_types import Array
from tlx.lower.knobs import KnobSource, no_knobs
from tlx.lower.options import Options
from tlx.lower.remarks import ArithmeticUnit, Prediction, Remarks
from tlx.target.host import cpu_flags, missing_features, version_for
from tlx.target.lookup import find_target
from tlx.target.target import Target
from tlx.tuning import machine, timing
from tlx.tuning.timing import (
    LENGTHY,
    Contestant,
    NativeCall,
    PinnedCore,
    Rates,
    Repeat,
    call_loop,
    fastest,
    function_address,
    interleaved,
    rate,
    seconds,
)
from tlx.tuning.workload import MemoryTraffic, ResultCheck, Workload, WrongResultError

PEAK: Final = "peak"
OURS: Final = "tlx"
_HOPELESS: Final = 0.05  # of our speed; slower peers are not worth waiting for
_SLOWER: Final = 1.3  # times a peer's fastest attempt; slower attempts at lengthy work are timed only once
_INTENSE: Final = 16  # operations per byte above which memory is not the bottleneck


@dataclass(frozen=True)
class Cell:
    """The measurements of one workload.

    Attributes:
        rates: Rates by contestant: `peak`, `tlx`, then the peers.
        instruction: The instruction that the peak loop repeats; empty if there is no peak loop.
        notes: Notes on contestants, by name.
        predicted: Share of the peak that the lowering predicts; None if it predicts nothing.
        error: Why our code was not measured; empty if it was.
        rounds: Number of rounds.
        quiet: Number of quiet rounds; None if that was not probed.
    """

    work: Workload
    target: str
    rates: dict[str, Rates]
    instruction: str = ""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    predicted: float | None = None
    error: str = ""
    rounds: int = 0
    quiet: int | None = None

    @property
    def best_peer(self) -> str | None:
        """The fastest peer; None if no peer supports the workload."""
        peers = [name for name in self.rates if name not in {PEAK, OURS}]
        return max(peers, key=lambda name: self.rates[name].median, default=None)


@dataclass(frozen=True)
class Bench:
    """A benchmark run: the target, the peers, and how to measure.

    Attributes:
        target: Target that our code is compiled for.
        peers: Libraries to compare with.
        rounds: Number of samples of each figure.
        threads: Number of threads that every contestant uses; by OpenMP if more than one.
        folder: Folder to write the workloads' IR to, if any.
        knobs: Knobs for the kernels of products.
        core: Probe that detects whether another program used the core; None accepts all samples.
    """

    target: Target
    peers: Sequence[Peer]
    rounds: int
    threads: int = 1
    folder: Path | None = None
    knobs: KnobSource = no_knobs
    core: PinnedCore | None = None
    _peaks: dict[peaks.Types, tuple[Contestant, peaks.Peak]] = field(
        default_factory=dict[Any, Any], init=False, repr=False
    )
    _vectors: dict[tuple[peaks.Types, ArithmeticUnit], Contestant] = field(
        default_factory=dict[Any, Any], init=False, repr=False
    )

    @property
    def _machine(self) -> Target:
        """The target, or the version of it that this machine runs if it has several."""
        return version_for(self.target, cpu_flags())

    def measure(self, work: Workload) -> Cell:
        """Check and time a workload."""
        arrays = work.arrays()
        expected = work.expected(arrays) if work.expected is not None else None
        contestants: dict[str, Contestant] = {}
        notes: dict[str, str] = {}
        instruction = ""
        contestants[PEAK], instruction = self.limit(work)
        error, predicted = "", None
        try:
            contestants[OURS], predicted = self.kernel(work, arrays, expected)
        except TlxError as problem:
            error = problem.message
        ours = contestants[OURS].seconds_estimate if OURS in contestants else inf
        for peer in self.peers:
            attempts = correct_attempts(peer, work, arrays, expected, ours, notes)
            if attempts:
                best = fastest([contestant for contestant, _ in attempts])
                contestants[peer.name], notes[peer.name] = attempts[best]
        steady = [PEAK] if instruction in peaks.TILE_PRODUCTS.values() else []
        timed = interleaved(contestants, self.rounds, self.core, steady)
        notes = {name: note for name, note in notes.items() if note}
        share = None
        if predicted is not None:
            share = min(
                1.0, predicted.share * self.share_of_limit(work, predicted.unit, contestants[PEAK], timed.rates[PEAK])
            )
        facts = (instruction, notes, share, error, timed.rounds, timed.quiet)
        return Cell(work, self.target.name, timed.rates, *facts)

    def limit(self, work: Workload) -> tuple[Contestant, str]:
        """The peak loop that bounds a workload (multiplications, or memory if that is slower), and its instruction."""
        if isinstance(work.peak, MemoryTraffic):
            return peaks.stream_contestant(work.peak, self._machine)
        loop, peak = self._peak(work.peak)
        if work.operations > _INTENSE * work.traffic:
            return loop, peak.instruction
        reads = len(work.buffers) - 1
        mostly_read = work.output.bytes * _INTENSE < work.traffic
        bound = (
            MemoryTraffic(work.traffic, 1, 0) if mostly_read else MemoryTraffic(work.traffic // (reads + 1), reads, 1)
        )
        memory, what = peaks.stream_contestant(bound, self._machine)
        memory = Contestant(memory.repeat, work.operations)
        return (memory, what) if rate(loop) > rate(memory) else (loop, peak.instruction)

    def share_of_limit(self, work: Workload, unit: ArithmeticUnit, limit: Contestant, measured: Rates) -> float:
        """The peak of a unit's multiplications as a share of the peak that bounds a workload."""
        if isinstance(work.peak, MemoryTraffic):
            return 1.0
        loop = self._of_unit(work.peak, unit)
        return 1.0 if loop is limit else rate(loop) / measured.median

    def _of_unit(self, types: peaks.Types, unit: ArithmeticUnit) -> Contestant:
        """The peak loop of the unit that multiplies, which need not be the fastest one of the target."""
        loop, peak = self._peak(types)
        if unit in ("matrix", peak.unit):
            return loop
        if (types, unit) not in self._vectors:
            vectors = replace(self._machine, matrix=None, dots=self._machine.dots if unit == "dot" else ())
            self._vectors[types, unit] = peaks.contestant(peaks.peak(types, vectors), vectors)
        return self._vectors[types, unit]

    def _peak(self, types: peaks.Types) -> tuple[Contestant, peaks.Peak]:
        """The peak loop for products of these types, the fastest of the target's; cached."""
        if types not in self._peaks:
            loops = [(peaks.contestant(loop, self._machine), loop) for loop in peaks.candidates(types, self._machine)]
            self._peaks[types] = loops[0] if len(loops) == 1 else max(loops, key=lambda loop: rate(loop[0]))
        return self._peaks[types]

    def kernel(
        self, work: Workload, arrays: dict[str, Array], expected: ResultCheck | None, knobs: KnobSource | None = None
    ) -> tuple[Contestant, Prediction | None]:
        """Our code, checked, and the predicted share of the peak; `knobs` are used instead of those of the run.

        Raises:
            TlxError: There is no code, or it computes a wrong result.
        """
        text = work.text()
        if self.folder is not None:
            name = work.name.replace("->", "-").replace(" ", "_")
            (self.folder / f"{name}.ll").write_text(text, encoding="utf-8")
        remarks = Remarks()
        threads = "openmp" if self.threads > 1 else "none"
        options = Options(remarks=remarks, knobs=knobs or self.knobs, threads=threads)
        compiled = compile_module(text, self.target, entry=work.function, options=options)
        constant = [buffer.name for buffer in work.buffers if buffer.constant]
        prepared, blocks = None, dict[str, Array]()
        if isinstance(compiled.entry, PreparableFunction):
            prepared = PreparedFunction(compiled.entry, [arrays[name] for name in constant])
            blocks = dict(zip(constant, prepared.blocks, strict=True))
        step = NativeCall(function_address(compiled.entry.code), work.arguments(arrays | blocks))
        repeat = call_loop([step], (compiled, prepared, arrays))
        _checked(work, repeat, arrays, expected, OURS)
        predicted = None if self.target.versions else _predicted(remarks)  # each version has its own
        return Contestant(repeat, work.operations, seconds(repeat)), predicted


def _predicted(remarks: Remarks) -> Prediction | None:
    """The lowest predicted share."""
    predictions = [remark.prediction for remark in remarks if remark.prediction is not None]
    return min(predictions, key=lambda prediction: prediction.share, default=None)


def runnable(name: str) -> Target:
    """The target of this name, which this machine must be able to run.

    Raises:
        UsageError: There is none, or this machine cannot run its code.
    """
    target = find_target(name)
    missing = missing_features(target, cpu_flags())
    if missing:
        raise UsageError(f"this machine cannot run the code of {target.name}: it lacks {', '.join(missing)}")
    return target


def correct_attempts(
    peer: Peer,
    work: Workload,
    arrays: dict[str, Array],
    expected: ResultCheck | None,
    ours: float,
    notes: dict[str, str],
) -> list[tuple[Contestant, str]]:
    """A peer's attempts that are right and fast enough, with their notes; `notes` says why others are left out."""
    correct: list[tuple[Contestant, str]] = []
    limit = ours / _HOPELESS
    for attempt in peer.attempts(work, arrays):
        try:
            once = _checked(work, attempt.repeat, arrays, expected, peer.name)
        except WrongResultError as error:
            notes[peer.name] = error.message
            continue
        if once < LENGTHY:  # the first call takes longer
            once = min(once, seconds(attempt.repeat))
        if once > limit:
            notes[peer.name] = f"left out: no faster than {work.operations / once / 1e9:.3g} G/s"
            continue
        correct.append((Contestant(attempt.repeat, work.operations, once), attempt.note))
        if once > LENGTHY:
            limit = min(limit, _SLOWER * once)
    return correct


def _checked(work: Workload, repeat: Repeat, arrays: dict[str, Array], expected: ResultCheck | None, who: str) -> float:
    """Run once, compare the result, and return the seconds that it took."""
    if expected is None:
        return seconds(repeat, times=1)
    work.reset_output(arrays)
    once = seconds(repeat, times=1)
    work.check(arrays[work.output.name], expected, who)
    return once


@dataclass(frozen=True)
class Session:
    """What measures, and what a report says about it.

    Attributes:
        bench: Measures workloads.
        facts: Machine, target, libraries, date.
        absent: Why libraries are left out, by name.
    """

    bench: Bench
    facts: dict[str, Any]
    absent: dict[str, str]


def open_session(setting: BenchSettings) -> Session:
    """Pin this process, load the libraries, and measure the bandwidth of the memory.

    Raises:
        TlxError: This machine cannot run the target's code, or a library or processor is unknown.
    """
    folder = _created(setting.folder)
    timing.use_clock(setting.threads)
    target = runnable(setting.target)
    version = version_for(target, cpu_flags())
    cpus = machine.pin(setting.cpu, setting.threads)
    places = LibraryPaths.below(setting.peers_path)
    peers, absent = base.find_peers(base.PEER_NAMES if setting.peers is None else setting.peers, places)
    facts = setting.facts(target.name, version, cpus, {peer.name: peer.version for peer in peers})
    facts["lanes"] = version.vector_bytes // 4
    facts["memory"] = {name: round(speed, 1) for name, speed in peaks.bandwidths(version).items()}
    core = PinnedCore() if setting.threads == 1 else None  # our own threads may share a core
    bench = Bench(target, peers, setting.rounds, setting.threads, folder, setting.knobs, core)
    return Session(bench, facts, absent)


def _created(folder: str | None) -> Path | None:
    if folder is None:
        return None
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"could not create folder '{folder}': {os_error_text(error)}") from None
    return path
