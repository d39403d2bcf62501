"""The actions of `tlx fuzz`: run a campaign, or replay a failure."""

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
    """Which programs to check, and how.

    Attributes:
        seed: Seed of the first program; the others count up from it.
        count: Number of programs.
        targets: Targets to check each program on; if empty, programs are only evaluated.
        profile: Profile of the programs; empty for a mixture.
        operations: Names of the operations to use; empty for all.
        jobs: Number of processes.
        seconds: Time after which no more programs are started; None for no limit.
        trials: Maximum number of programs to try when shrinking a failing one.
        keep: Folder to write failing programs to.
        emulate_matrix: Whether matrix units are emulated even if this machine has them.
        threads: Whether every kernel runs on several threads.
        opt: LLVM's `opt` program, which optimises three of seven programs before they are lowered; empty for none.
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
        """The requests: each program on each target."""
        for seed in range(self.seed, self.seed + self.count):
            for target in self.targets or ("",):
                check = check_on(target, seed, emulate_matrix=self.emulate_matrix)
                check = replace(check, threads=self.threads, optimise=self.opt if seed % 7 < 3 else "")
                mixture: Sequence[str] = _EMULATED_PROFILES if check.emulate else MIXED_PROFILES
                yield Request(self.profile or mixture[seed % len(mixture)], seed, check, self.operations)


def check_on(target: str, variant: int, *, emulate_matrix: bool = False) -> Check:
    """How to check programs for a target on this machine: if it lacks features, the code is only evaluated.

    Matrix units are emulated if the machine lacks them or if `emulate_matrix` is set.
    """
    lacking = missing_features(find_target(target), cpu_flags()) if target else []
    emulate = bool(target) and (emulate_matrix or bool(lacking)) and find_target(target).matrix is not None
    drawn = random_options(target, variant)
    run = bool(target) and (emulate or not lacking) and is_runnable(drawn, find_target(target), cpu_flags())
    return Check(target, emulate, run=run, variant=variant, drawn=drawn)


def fuzz(plan: CampaignPlan, say: Say) -> bool:
    """Run a campaign; returns whether all programs passed."""
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
