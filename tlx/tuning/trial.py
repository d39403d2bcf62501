"""One measurement: a candidate against the model's choice, on this machine.

The candidate's result is compared with numpy's before it is timed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median

from tlx.api.compiler import compile as compile_module
from tlx.diagnostics import TlxError, UsageError
from tlx.intrinsics.numpy_types import Array
from tlx.lower.knobs import NO_KNOBS, FixedKnobs, KnobOrigin, parse_knobs
from tlx.lower.options import Options
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target
from tlx.target.target import Target
from tlx.tuning.machine import processor
from tlx.tuning.product import parse_product
from tlx.tuning.timing import Contestant, NativeCall, Repeat, call_loop, function_address, interleaved, use_clock
from tlx.tuning.workload import ResultCheck, Workload


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial: one candidate for a product.

    Attributes:
        words: The product and its number of threads.
        target, features: The machine that code is generated for.
        knobs: The candidate, in the syntax of `--knobs`; empty for the model's choice.
        rounds: Number of samples.
    """

    words: str
    target: str
    features: tuple[str, ...]
    knobs: str
    rounds: int

    @property
    def key(self) -> str:
        """Its name among the trials of one product."""
        return f"{self.knobs}@{self.rounds}"


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """The outcome of a trial.

    Attributes:
        ratios: Speed of the candidate divided by that of the model's choice, in each round.
        best_ratio: The highest speed of the candidate divided by the highest of the model's choice.
        rate, default_rate: Median speeds in 10^9 operations a second.
        cpu: The processor.
        error: Why there is no measurement; empty if there is one.
    """

    ratios: tuple[float, ...] = ()
    best_ratio: float = 0.0
    rate: float = 0.0
    default_rate: float = 0.0
    cpu: str = ""
    error: str = ""

    @property
    def ratio(self) -> float:
        """The speed-up that both the median and the best of the rounds confirm; 0 if there are no rounds.

        Noise slows single samples down. A slow sample of the model's choice may distort the median of the ratios, but
        not the ratio of the best samples, and vice versa for a slow sample of the candidate.
        """
        return min(median(self.ratios), self.best_ratio) if self.ratios else 0.0


def target_of(name: str, features: tuple[str, ...]) -> Target:
    """The target with exactly these features, and with this machine's caches if it is `native`."""
    from tlx.target.host import native_target

    native = native_target()
    return replace(native if native.name == name else find_target(name), features=features)


def run_trial(trial: Trial) -> TrialOutcome:
    """Measure a trial; an error becomes its outcome."""
    cpu = processor()
    try:
        return replace(_measured(trial), cpu=cpu)
    except TlxError as error:
        return TrialOutcome(cpu=cpu, error=error.message)
    except Exception as error:  # noqa: BLE001 (one candidate's error must not end the search)
        return TrialOutcome(cpu=cpu, error=f"internal error: {type(error).__name__}: {' '.join(str(error).split())}")


def _measured(trial: Trial) -> TrialOutcome:
    use_clock(parse_product(trial.words).threads)
    contestants = {
        "default": _contestant(trial.words, trial.target, trial.features, ""),
        "candidate": _contestant(trial.words, trial.target, trial.features, trial.knobs),
    }
    rates = interleaved(contestants, trial.rounds).rates
    ours, default = rates["candidate"], rates["default"]
    ratios = tuple(a / b for a, b in zip(ours.rounds, default.rounds, strict=True))
    return TrialOutcome(ratios, ours.best / default.best, ours.median, default.median)


@lru_cache(maxsize=32)
def _contestant(words: str, target_name: str, features: tuple[str, ...], knobs: str) -> Contestant:
    """The kernel for some knobs, after checking its result."""
    target = target_of(target_name, features)
    missing = missing_features(target, cpu_flags())
    if missing:
        raise UsageError(f"this machine cannot run the code of {target.name}: it lacks {', '.join(missing)}")
    work, arrays, expected = _problem(words)
    parsed_knobs = parse_knobs(knobs, KnobOrigin("from the tuner")) if knobs else NO_KNOBS
    threads = parse_product(words).threads
    options = Options(knobs=FixedKnobs(parsed_knobs), verify_each=False, threads="openmp" if threads > 1 else "none")
    compiled = compile_module(work.text(), target, entry="work", options=options)
    pointers = tuple(("ptr", arrays[buffer.name].ctypes.data) for buffer in work.buffers)
    repeat = call_loop([NativeCall(function_address(compiled.entry.code), pointers)], (compiled, arrays))
    _check(work, repeat, arrays, expected)
    return Contestant(repeat, work.operations)


@lru_cache(maxsize=1)
def _problem(words: str) -> tuple[Workload, dict[str, Array], ResultCheck]:
    product = parse_product(words)
    work = product.workload
    arrays = work.arrays()
    return work, arrays, product.expected(arrays)


def _check(work: Workload, repeat: Repeat, arrays: dict[str, Array], expected: ResultCheck) -> None:
    work.reset_output(arrays)
    repeat(1)
    work.check(arrays[work.output.name], expected, "the candidate")
