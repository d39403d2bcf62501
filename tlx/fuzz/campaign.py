"""A fuzzing campaign: has worker processes check random programs, shrinks those that fail, and replays failures."""

from __future__ import annotations

import platform
import re
import shlex
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tlx.diagnostics import UsageError
from tlx.fuzz.check import CheckSettings
from tlx.fuzz.log import FuzzLog, Result, Series
from tlx.fuzz.options import is_runnable, random_options
from tlx.fuzz.shrinking import shrink
from tlx.fuzz.worker import GRAPHS, Request
from tlx.fuzz.worker_pool import CheckOutcome, Kind, Worker, check_all
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target

MIXED_PROFILES: Final = tuple("any small any overlaps loops any run-time moves any any-large convolutions".split())
_EMULATED_PROFILES: Final = ("any-tiles", "tiles", "any-tiles", "tiles", "run-time-tiles")
Say = Callable[[str], None]
Step = Callable[[str], object]


def _ignore(_text: str) -> None:
    pass


@dataclass(frozen=True)
class CampaignPlan:
    """Which programs to check, and how.

    Attributes:
        seed: Seed of the first program; the others count up from it.
        count: Number of programs.
        targets: Targets to check each program on; if empty, programs are only evaluated.
        profile: Profile of the programs; empty for a mixture.
        operations: Names of the operations to use; empty for all.
        jobs: Number of processes.
        seconds: Time after which the campaign ends, without the programs that still run; None for no limit.
        trials: Maximum number of programs to try when shrinking a failing one.
        keep: Folder to write failing programs to.
        emulate_matrix: Whether matrix units are emulated even if this machine has them.
        threads: Whether every kernel runs on several threads.
        opt: LLVM's `opt` program, which optimises three of seven programs before they are lowered; empty for none.
        emulator: The command of the emulator that runs machine code; empty for this machine.
        features: Features to add to the targets', or to remove: `+a`, `-b`.
        code_only: Whether the stages of a program are evaluated only if its machine code fails, or cannot run.
        log: A file with the programs that have been checked, which are left out; None for none.
    """

    seed: int
    count: int
    targets: tuple[str, ...]
    keep: Path
    profile: str = ""
    operations: tuple[str, ...] = ()
    jobs: int = 1
    seconds: float | None = None
    trials: int = 300
    emulate_matrix: bool = False
    threads: bool = False
    opt: str = ""
    emulator: str = ""
    features: tuple[str, ...] = ()
    code_only: bool = False
    log: Path | None = None

    def requests(self) -> Iterator[Request]:
        """The requests: each program on each target."""
        for seed in range(self.seed, self.seed + self.count):
            for target in self.targets or ("",):
                check = check_on(
                    target, seed, emulate_matrix=self.emulate_matrix, emulator=self.emulator, features=self.features
                )
                check = replace(check, threads=self.threads, optimise=self.opt if seed % 7 < 3 else "")
                check = replace(check, evaluate=not (self.code_only and check.run))
                mixture: Sequence[str] = _EMULATED_PROFILES if check.emulate else MIXED_PROFILES
                yield Request(self.profile or mixture[seed % len(mixture)], seed, check, self.operations)

    def series(self, target: str) -> Series:
        """The series in which the programs for a target are counted."""
        words = {
            "--emulator": self.emulator,
            "--mattr": ",".join(self.features),
            "--profile": "" if self.profile == GRAPHS else self.profile,
            "--ops": ",".join(self.operations),
            "--opt": self.opt,
            "--threads": "openmp" if self.threads else "",
        }
        flags = {"--emulate-matrix": self.emulate_matrix, "--code-only": self.code_only}
        options = [f"{name}={shlex.quote(value)}" for name, value in words.items() if value]
        options += [name for name, is_set in flags.items() if is_set]
        return Series(target or "none", "graphs" if self.profile == GRAPHS else "programs", " ".join(options))


def check_on(
    target: str, variant: int, *, emulate_matrix: bool = False, emulator: str = "", features: tuple[str, ...] = ()
) -> CheckSettings:
    """How to check programs for a target on this machine: if it lacks features, the code is only evaluated.

    Matrix units are emulated if the machine lacks them or if `emulate_matrix` is set. An emulator has all that its
    command says. Only targets for this architecture are asked for a processor or features.
    """
    if emulator:
        drawn = random_options(target, variant, has_machine=False)
        return CheckSettings(
            target, run=bool(target), variant=variant, drawn=drawn, emulator=emulator, features=features
        )
    lacking = missing_features(find_target(target), cpu_flags()) if target else []
    unit = find_target(target).matrix if target else None
    emulate = unit is not None and unit.emulation is not None and (emulate_matrix or bool(lacking))
    is_native = not target or find_target(target).is_for(platform.machine())
    drawn = random_options(target, variant, has_machine=is_native)
    machine = replace(drawn, features=(*features, *drawn.features))
    run = bool(target) and (emulate or not lacking) and is_runnable(machine, find_target(target), cpu_flags())
    return CheckSettings(target, emulate, run=run, variant=variant, drawn=drawn, features=features)


def fuzz(plan: CampaignPlan, say: Say, step: Step = _ignore) -> bool:
    """Run a campaign; returns whether all programs passed.

    Args:
        plan: What to check.
        say: Prints a line.
        step: Counts a program.
    """
    report = CampaignReport(plan.keep)
    log = None if plan.log is None else FuzzLog.read(plan.log)
    begun = time.monotonic()
    deadline = None if plan.seconds is None else begun + plan.seconds

    def has_run(request: Request) -> bool:
        seed, target = request.source, request.check.target
        return log is not None and isinstance(seed, int) and log.has_run(plan.series(target), seed)

    def note(outcome: CheckOutcome, worker: Worker) -> None:
        outcome = _located(outcome, worker)
        if report.note(outcome):
            smallest = shrink(outcome, worker.check, plan.trials)
            path = report.write(outcome, smallest)
            say(f"{path}: {smallest.kind} {smallest.stage}: {smallest.message}")
        if log is not None:
            with report.lock:
                log.note(*_entry(plan, outcome))
        step("")

    try:
        check_all((request for request in plan.requests() if not has_run(request)), plan.jobs, note, deadline)
    finally:
        if log is not None:
            log.flush()
    for line in report.summary(time.monotonic() - begun):
        say(line)
    if log is not None:
        for line in log.totals():
            say(f"{log.path}: {line}")
    return not report.failed


def _located(outcome: CheckOutcome, worker: Worker) -> CheckOutcome:
    """A failure with the stage that is wrong, if only machine code was run."""
    request = outcome.request
    if not outcome.is_failure or request.check.evaluate:
        return outcome
    try:
        evaluated = worker.check(replace(request, check=replace(request.check, evaluate=True)))
    except TimeoutError:
        return outcome
    return evaluated if evaluated.is_failure else outcome


def _entry(plan: CampaignPlan, outcome: CheckOutcome) -> tuple[Series, int, Result]:
    """What a log says of an outcome."""
    seed = outcome.request.source
    assert isinstance(seed, int)
    results: dict[Kind, Result] = {"done": "passed", "refused": "refused"}
    return plan.series(outcome.request.check.target), seed, results.get(outcome.kind, "failed")


def replay(path: str, text: str, say: Say) -> bool:
    """Check the program in a failure's file again; returns whether it passes.

    Raises:
        UsageError: The file is not a failure's, or the `opt` program that it needs is not installed.
    """
    request = request_of(text, path)
    opt = request.check.optimise
    if opt and shutil.which(opt) is None:
        raise UsageError(f"'{path}': the program was optimised by '{opt}', which is not installed", name=path)
    if not text.endswith(request.text):
        say(f"{path}: note: this version of TLX generates a different program for the request, and checks that")
    worker = Worker()
    try:
        outcome = worker.check(request)
    finally:
        worker.close()
    say(f"{path}: {outcome.kind} {outcome.stage}: {outcome.message}".rstrip(": "))
    return not outcome.is_failure


_MARK: Final = "; request: "
_FILES_PER_KEY: Final = 2
_VARIABLE: Final = re.compile(r"\d+|[%@][\w.$]+|\"[^\"]*\"")


@dataclass
class CampaignReport:
    """The results of a campaign.

    Attributes:
        folder: Folder to write failures to.
        passed: Number of programs that passed.
        functions: Number of functions in them.
        tile_kernels: Number of kernels in them that use a matrix unit.
        refused: Number of programs refused, by reason.
        failed: Number of failures, by key.
        files: Files with failures, by key.
        lock: Held by the thread that changes it.
    """

    folder: Path
    passed: int = 0
    functions: int = 0
    tile_kernels: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    failed: Counter[str] = field(default_factory=Counter[str])
    files: dict[str, list[Path]] = field(default_factory=dict[str, list[Path]])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, outcome: CheckOutcome) -> bool:
        """Count an outcome; returns whether it is a failure of a new kind, which is worth a file."""
        with self.lock:
            if outcome.kind == "done":
                self.passed += 1
                self.functions += outcome.functions
                self.tile_kernels += outcome.tile_kernels
            elif outcome.kind == "refused":
                self.refused[_without_names(outcome.message)] += 1
            else:
                alike = failure_key(outcome)
                self.failed[alike] += 1
                return self.failed[alike] <= _FILES_PER_KEY
        return False

    def write(self, failure: CheckOutcome, smallest: CheckOutcome) -> Path:
        """Write a failure to a file."""
        request = failure.request
        suffix = ".py" if request.profile == GRAPHS else ".ll"
        name = f"{request.profile}-{request.check.target or 'none'}-{request.source}{suffix}"
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        path.write_text(file_text(smallest, path), encoding="utf-8")
        with self.lock:
            self.files.setdefault(failure_key(failure), []).append(path)
        return path

    def summary(self, seconds: float) -> Iterator[str]:
        """The lines of a summary."""
        refused, failed = self.refused.total(), self.failed.total()
        yield (
            f"{self.passed + refused + failed} programs: {self.passed} passed ({self.functions} functions), "
            f"{refused} refused, {failed} failed; {seconds:.0f} s"
        )
        if self.tile_kernels:
            yield f"  {self.tile_kernels} kernels use a matrix unit"
        for title, counts in (("refused", self.refused), ("failed", self.failed)):
            for reason, count in counts.most_common():
                yield f"  {title} {count:5}  {reason}"
                yield from (f"                 {path}" for path in self.files.get(reason, []))


def failure_key(outcome: CheckOutcome) -> str:
    """The key by which failures are grouped."""
    if outcome.kind in ("diagnostic", "exception"):
        lines = [line for line in outcome.message.splitlines() if line.strip()]
        line_of_error = next((line for line in lines if "error:" in line), lines[-1] if lines else "")
        return f"{outcome.kind}: {_without_names(line_of_error)}"
    return f"{outcome.kind} {_doing(outcome.stage)}"


def _doing(stage: str) -> str:
    return _without_names(stage) if stage.startswith("running @") else stage


def _without_names(message: str) -> str:
    """A message stripped of names and numbers."""
    return _VARIABLE.sub("_", message.rsplit("error:", maxsplit=1)[-1].strip())[:160]


def file_text(outcome: CheckOutcome, path: Path) -> str:
    """The text of a failure's file: what is wrong, how to reproduce it, and the program."""
    request = outcome.request
    target = request.check.target or "none"
    check = request.check
    features = f"; lowered with --mattr={','.join(check.features)}\n" if check.features else ""
    optimised = f"; optimised by {check.optimise} {' '.join(check.pipeline)} first\n" if check.optimise else ""
    lowered = f"; lowered with {drawn}\n" if (drawn := str(request.check.drawn)) else ""
    message = "".join(f"; {line}\n" for line in outcome.message.splitlines()[:20])
    head = (
        f"; {outcome.kind} on target {target}: {outcome.stage}\n{message}"
        f"{optimised}{features}{lowered}; check it again:  tlx fuzz --replay {path}\n{_MARK}{request.as_json()}\n"
    )
    if request.profile == GRAPHS:
        head = re.sub(r"(?m)^;", "#", head)
    return f"{head}\n{request.text}"


def request_of(text: str, name: str) -> Request:
    """Read the request from a failure's file.

    Raises:
        UsageError: There is none.
    """
    for line in text.splitlines():
        if line[1:].startswith(_MARK[1:]):
            try:
                return Request.of_json(line[len(_MARK) :])
            except (ValueError, KeyError, TypeError, IndexError):
                break
    raise UsageError(f"'{name}' was not written by 'tlx fuzz': it has no line '{_MARK.strip()} ...'", name=name)
