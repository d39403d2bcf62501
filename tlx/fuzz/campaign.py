"""A fuzzing campaign: draws programs, has worker processes check them, shrinks the failing ones, and replays them."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, Literal

from tlx.diagnostics import UsageError
from tlx.fuzz.check import CheckSettings
from tlx.fuzz.generation.model import ChoiceNode
from tlx.fuzz.log import FuzzLog, Result, Series
from tlx.fuzz.options import RandomOptions, is_runnable, random_options
from tlx.fuzz.worker import GRAPHS, SECONDS, Request
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target

MIXED_PROFILES: Final = ("any", "small", "any", "overlaps", "loops", "any", "run-time", "moves", "any", "any-large")
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


NodePath = tuple[int, ...]


@dataclass
class _SmallestFailure:
    """The smallest failing program found so far.

    Attributes:
        best: The program and how it failed.
        check: Checks a program.
        left: Number of programs that may still be checked.
        seen: Texts that have already been checked.
    """

    best: CheckOutcome
    node: ChoiceNode
    check: Callable[[Request], CheckOutcome]
    left: int
    seen: set[str]

    def accepts(self, candidate: ChoiceNode) -> bool:
        """Check a program; if it fails in the same way, it becomes the best. Returns whether it does."""
        request = replace(self.best.request, source=candidate)
        try:
            program = request.program()
        except (ValueError, AssertionError, IndexError):
            return False
        if program.text in self.seen or self.left <= 0:
            return False
        self.seen.add(program.text)
        return self._fails_alike(replace(request, source=program.node), program.node)

    def accepts_options(self, drawn: RandomOptions) -> bool:
        """Check the program with fewer options; like `accepts`."""
        if self.left <= 0:
            return False
        request = self.best.request
        return self._fails_alike(replace(request, check=replace(request.check, drawn=drawn)), self.node)

    def _fails_alike(self, request: Request, node: ChoiceNode) -> bool:
        self.left -= 1
        outcome = self.check(request)
        if not outcome.is_like(self.best):
            return False
        self.best, self.node = replace(outcome, request=request), node
        return True


def shrink(failure: CheckOutcome, check: Callable[[Request], CheckOutcome], trials: int = 300) -> CheckOutcome:
    """Find a simpler program that fails in the same way.

    Args:
        failure: The failure.
        check: Checks a program; raises `TimeoutError` if the search has to end.
        trials: Maximum number of programs to check.
    """
    program = failure.request.program()
    search = _SmallestFailure(failure, program.node, check, trials, {program.text})
    with contextlib.suppress(TimeoutError):
        _simplify(search)
    return search.best


def _simplify(search: _SmallestFailure) -> None:
    while any(search.accepts_options(drawn) for drawn in search.best.request.check.drawn.simpler()):
        pass
    before = -1
    while search.left > 0 and before != search.left:
        before = search.left
        _drop_parts(search)
        _zero_nodes(search)
        _lower_numbers(search)


def _drop_parts(search: _SmallestFailure) -> None:
    for path in list(_paths(search.node)):
        if not _exists(search.node, path):
            continue

        def drop(start: int, end: int, path: NodePath = path) -> int | None:
            candidate = search.node.copy()
            del _at(candidate, path).parts[start:end]
            is_dropped = search.accepts(candidate) and _exists(search.node, path)
            return len(_at(search.node, path).parts) if is_dropped else None

        drop_items(len(_at(search.node, path).parts), drop)


def _zero_nodes(search: _SmallestFailure) -> None:
    for path in list(_paths(search.node)):
        if _exists(search.node, path) and any(_at(search.node, path).draws):
            candidate = search.node.copy()
            _at(candidate, path).draws = []
            search.accepts(candidate)


def _lower_numbers(search: _SmallestFailure) -> None:
    for path in list(_paths(search.node)):
        at = 0
        while _exists(search.node, path) and at < len(_at(search.node, path).draws):
            _lower(search, path, at)
            at += 1


def _lower(search: _SmallestFailure, path: NodePath, at: int) -> None:
    """Minimise one number by trying zero, halving, and counting down."""
    while _exists(search.node, path) and at < len(_at(search.node, path).draws):
        number = _at(search.node, path).draws[at]
        if not any(search.accepts(_with(search.node, path, at, new)) for new in _smaller(number)):
            return


def _smaller(number: int) -> list[int]:
    return list(dict.fromkeys(new for new in (0, number // 2, number - 1) if 0 <= new < number))


def _with(node: ChoiceNode, path: NodePath, at: int, number: int) -> ChoiceNode:
    candidate = node.copy()
    _at(candidate, path).draws[at] = number
    return candidate


def _paths(node: ChoiceNode, path: NodePath = ()) -> Iterator[NodePath]:
    yield path
    for index, part in enumerate(node.parts):
        yield from _paths(part, (*path, index))


def _exists(node: ChoiceNode, path: NodePath) -> bool:
    for index in path:
        if index >= len(node.parts):
            return False
        node = node.parts[index]
    return True


def _at(node: ChoiceNode, path: NodePath) -> ChoiceNode:
    for index in path:
        node = node.parts[index]
    return node


_WALL_SECONDS: Final = 5 * SECONDS
_LAST_WORDS: Final = 2000
Kind = Literal["done", "refused", "mismatch", "diagnostic", "exception", "crash", "hang"]


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of checking a program.

    Attributes:
        request: The program and how it was checked.
        kind: `done`, `refused`, or the kind of failure.
        stage: The step at which it was refused or failed.
        message: Why it was refused or failed.
        functions: Number of functions checked.
        tile_kernels: Number of kernels that use a matrix unit.
    """

    request: Request
    kind: Kind
    stage: str = ""
    message: str = ""
    functions: int = 0
    tile_kernels: int = 0

    @property
    def is_failure(self) -> bool:
        """Whether the program exposes a bug in TLX."""
        return self.kind not in ("done", "refused")

    def is_like(self, other: CheckOutcome) -> bool:
        """Whether two programs fail in the same way."""
        return (self.kind, self.stage) == (other.kind, other.stage)


class Worker:
    """A worker process, started on demand.

    Args:
        deadline: The monotonic time at which it ends; None for never.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self._deadline = deadline
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._pending = b""

    def check(self, request: Request) -> CheckOutcome:
        """Have the worker check a program.

        Raises:
            TimeoutError: The deadline passes before the program is checked.
        """
        process = self._started()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(request.as_json().encode() + b"\n")
            process.stdin.flush()
        doing = "starting"
        while True:
            event = self._event(process)
            if event is None:
                return self._ended(process, request, doing)
            if "doing" not in event:
                return _parse_event(request, event)
            doing = event["doing"]

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, self._errors):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
            self._pending = b""
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tlx.fuzz.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        return self._process

    def _event(self, process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
        """The next event; None if the process has ended or times out."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left = math.inf if self._deadline is None else self._deadline - time.monotonic()
                if left <= 0 or not selector.select(min(left, _WALL_SECONDS)):
                    if left < _WALL_SECONDS:
                        self.close()
                        raise TimeoutError
                    process.send_signal(signal.SIGPROF)
                    return None
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    return None
                self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line) if line.startswith(b"{") else {"doing": "starting"}

    def _ended(self, process: subprocess.Popen[bytes], request: Request, doing: str) -> CheckOutcome:
        status = process.wait()
        errors = ""
        if self._errors is not None:
            self._errors.seek(0)
            errors = self._errors.read().decode(errors="replace")[-_LAST_WORDS:]
        self.close()
        if status == -signal.SIGPROF:
            return CheckOutcome(request, "hang", doing, f"more than {SECONDS} s of CPU time while {doing}")
        return CheckOutcome(request, "crash", doing, f"the process died with status {status} while {doing}\n{errors}")


def _parse_event(request: Request, event: dict[str, Any]) -> CheckOutcome:
    if "refused" in event:
        return CheckOutcome(request, "refused", message=event["refused"])
    if "failed" in event:
        return CheckOutcome(request, event["failed"], event["stage"], event["message"])
    return CheckOutcome(request, "done", functions=event["functions"], tile_kernels=event["tile_kernels"])


def check_all(
    requests: Iterable[Request],
    jobs: int,
    report: Callable[[CheckOutcome, Worker], None],
    deadline: float | None = None,
) -> None:
    """Check programs in several processes.

    Args:
        requests: The programs.
        jobs: Number of processes.
        report: Called with each outcome and its worker, from several threads.
        deadline: The monotonic time at which the processes end, with the programs that still run; None for never.
    """
    todo = iter(requests)

    def work(_: int) -> None:
        worker = Worker(deadline)
        try:
            for request in todo_safely():
                report(worker.check(request), worker)
        except TimeoutError:
            return
        finally:
            worker.close()

    lock = threading.Lock()

    def todo_safely() -> Iterable[Request]:
        while True:
            with lock:
                request = next(todo, None)
            if request is None:
                return
            yield request

    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(work, range(jobs)):
            pass


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


def drop_items(size: int, drop: Callable[[int, int], int | None]) -> None:
    """Remove ranges of items: all of them first, then halves, quarters, down to single ones.

    Args:
        size: Number of items.
        drop: Removes the items from one position to another (exclusive) and returns how many remain, or returns None if
            they are needed.
    """
    chunk = size
    while chunk > 0:
        at = 0
        while at < size:
            left = drop(at, at + chunk)
            if left is None:
                at += chunk
            else:
                size = left
        chunk //= 2
