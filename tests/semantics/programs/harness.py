"""Random programs for tests: many of a profile on a target, in a worker process, and a report of what went wrong."""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tlx.fuzz.check import OLD_OPT, CheckSettings
from tlx.fuzz.options import is_runnable, random_options
from tlx.fuzz.worker import Request
from tlx.fuzz.worker_pool import CheckOutcome, Worker
from tlx.target.host import cpu_flags
from tlx.target.lookup import find_target

EMULATED: Final = "emulate"
RUN_ONLY: Final = "run-only"


@dataclass(frozen=True)
class Job:
    """Programs of one profile on one target.

    Attributes:
        profile: What the programs contain.
        target: The target's name.
        programs: How many.
        part: Which of several equal jobs this is; each has other programs.
        flags: `EMULATED`, `RUN_ONLY`.
        optimise: LLVM's `opt`, where that shall run over the programs first; else empty.
    """

    profile: str
    target: str
    programs: int
    part: int = 0
    flags: tuple[str, ...] = ()
    optimise: str = ""

    def __str__(self) -> str:
        return "-".join([self.target, self.profile, *self.flags, *filter(None, [self.optimise]), str(self.part)])

    @property
    def seeds(self) -> range:
        """The seeds: `TLX_SEED` moves them, `TLX_PROGRAMS` says how many instead."""
        count = int(os.environ.get("TLX_PROGRAMS") or self.programs)
        first = int(os.environ.get("TLX_SEED", "0")) + self.part * count
        return range(first, first + count)

    def request(self, seed: int) -> Request:
        """The program of a seed."""
        emulate, evaluate = EMULATED in self.flags, RUN_ONLY not in self.flags
        drawn = random_options(self.target, seed)
        run = is_runnable(drawn, find_target(self.target), cpu_flags())
        check = CheckSettings(self.target, emulate, evaluate, run, seed, self.optimise, drawn=drawn)
        return Request(self.profile, seed, check)


@dataclass
class Report:
    """What came of a job."""

    programs: int = 0
    functions: int = 0
    tiled: int = 0
    refused_by_opt: int = 0
    failures: list[str] = field(default_factory=list[str])

    def add(self, other: Report) -> None:
        """Take in another job's report."""
        self.programs += other.programs
        self.functions += other.functions
        self.tiled += other.tiled
        self.refused_by_opt += other.refused_by_opt
        self.failures += other.failures

    def note(self, job: Job, seed: int, outcome: CheckOutcome) -> None:
        """Take in a program's outcome; one that the lowering refuses fails: nothing here is beyond it."""
        self.programs += 1
        self.functions += outcome.functions
        self.tiled += outcome.tile_kernels
        if job.optimise and OLD_OPT in outcome.message:
            self.refused_by_opt += 1
        elif outcome.kind != "done":
            self.failures.append(f"{job} {seed}: {outcome.kind}: {outcome.message}\nprogram: {_saved(job, seed)}")


def check(job: Job) -> Report:
    """Run a job and fail the test if a program fails."""
    report = run(job)
    if report.failures:
        pytest.fail("\n\n".join(report.failures), pytrace=False)
    assert report.programs == len(job.seeds)
    assert report.refused_by_opt < max(2, report.programs / 2)
    return report


def run(job: Job) -> Report:
    """Run a job; a worker process that dies is followed by one for the programs behind the fatal one."""
    report = Report()
    for seed in job.seeds:
        report.note(job, seed, _worker(threading.get_ident()).check(job.request(seed)))
    return report


@cache
def _worker(thread: int) -> Worker:
    """The worker of a thread of this process, for all its jobs: one imports TLX and LLVM once."""
    del thread
    worker = Worker()
    atexit.register(worker.close)
    return worker


def _saved(job: Job, seed: int) -> Path:
    """The program in a file, for whoever has to look at it."""
    folder = Path(os.environ.get("TLX_FAILURES") or Path(tempfile.gettempdir()) / "tlx-semantics")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{job}-{seed}.ll"
    path.write_text(job.request(seed).program().text, encoding="utf-8")
    return path
