"""What `tlx fuzz` does: which programs are checked on which targets, and what is said about them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tlx.diagnostics import UsageError
from tlx.fuzz.campaign import CampaignReport, CheckOutcome, Worker, check_all, request_of, shrink
from tlx.fuzz.check import Check
from tlx.fuzz.options import is_runnable, random_options
from tlx.fuzz.worker import Request
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target

MIXED_PROFILES: Final = ("any", "small", "any", "overlaps", "loops", "any", "run-time", "moves", "any", "any-large")
_EMULATED_PROFILES: Final = ("any-tiles", "tiles", "any-tiles", "tiles", "run-time-tiles")
Say = Callable[[str], None]


@dataclass(frozen=True)
class CampaignPlan:
    """Which programs are checked, and how.

    Attributes:
        seed: The first program's; the others follow.
        count: How many programs.
        targets: On which targets each is checked; none to evaluate the programs only.
        profile: What they contain; empty for a mixture.
        operations: Names of the operations they are made of; empty for all.
        jobs: Processes.
        seconds: After which no more programs are begun; None for no limit.
        trials: Programs that may be tried to make a failing one smaller.
        keep: Where failing programs are written to.
        emulate_matrix: Whether code for matrix units runs in an emulated form where this machine has them, too.
        threads: Whether every kernel runs on several threads.
        opt: LLVM's `opt`, which optimises three of seven programs before they are lowered; empty for none.
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

    def requests(self) -> Iterator[Request]:
        """The programs on the targets."""
        for seed in range(self.seed, self.seed + self.count):
            for target in self.targets or ("",):
                check = check_on(target, seed, emulate_matrix=self.emulate_matrix)
                check = replace(check, threads=self.threads, optimise=self.opt if seed % 7 < 3 else "")
                mixture: Sequence[str] = _EMULATED_PROFILES if check.emulate else MIXED_PROFILES
                yield Request(self.profile or mixture[seed % len(mixture)], seed, check, self.operations)


def check_on(target: str, variant: int, *, emulate_matrix: bool = False) -> Check:
    """How programs are checked on a target on this machine: without all features, the code is evaluated only.

    Code for matrix units is run in an emulated form without them, and where that is asked for.
    """
    lacking = missing_features(find_target(target), cpu_flags()) if target else []
    emulate = bool(target) and (emulate_matrix or bool(lacking)) and find_target(target).matrix is not None
    asked = random_options(target, variant)
    run = bool(target) and (emulate or not lacking) and is_runnable(asked, find_target(target), cpu_flags())
    return Check(target, emulate, run=run, variant=variant, asked=asked)


def fuzz(plan: CampaignPlan, say: Say) -> bool:
    """Check programs; whether all are right."""
    report = CampaignReport(plan.keep)
    begun = time.monotonic()

    def note(outcome: CheckOutcome, worker: Worker) -> bool:
        if report.note(outcome):
            smallest = shrink(outcome, worker.check, plan.trials)
            path = report.write(outcome, smallest)
            say(f"{path}: {smallest.kind} {smallest.stage}: {smallest.message}")
        return plan.seconds is None or time.monotonic() - begun < plan.seconds

    check_all(plan.requests(), plan.jobs, note)
    for line in report.summary(time.monotonic() - begun):
        say(line)
    return not report.failed


def replay(path: str, text: str, say: Say) -> bool:
    """Check the program in the file of a failure once more; whether it is right.

    Raises:
        UsageError: It is no such file, or the program that optimised it is not here.
    """
    request = request_of(text, path)
    opt = request.check.optimise
    if opt and shutil.which(opt) is None:
        raise UsageError(f"'{path}': opt optimised the program first, and there is no program '{opt}'", name=path)
    if not text.endswith(request.text):
        say(f"{path}: note: this version of TLX makes another program of the request; it is that which is checked")
    worker = Worker()
    try:
        outcome = worker.check(request)
    finally:
        worker.close()
    say(f"{path}: {outcome.kind} {outcome.stage}: {outcome.message}".rstrip(": "))
    return not outcome.is_failure
