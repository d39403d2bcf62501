"""Runs `worker` for tests: many programs in few processes, and a report of what went wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 600
_LAST_WORDS: Final = 2000


@dataclass(frozen=True)
class Job:
    """Programs of one profile on one target.

    Attributes:
        profile: What the programs contain.
        target: The target's name.
        programs: How many.
        part: Which of several equal jobs this is; each has other programs.
        flags: Further flags of the worker.
    """

    profile: str
    target: str
    programs: int
    part: int = 0
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "-".join([self.target, self.profile, *(flag.strip("-") for flag in self.flags), str(self.part)])

    @property
    def seeds(self) -> range:
        """The seeds: `TLX_SEED` moves them, `TLX_PROGRAMS` says how many instead."""
        count = int(os.environ.get("TLX_PROGRAMS") or self.programs)
        first = int(os.environ.get("TLX_SEED", "0")) + self.part * count
        return range(first, first + count)


@dataclass
class Report:
    """What came of a job."""

    programs: int = 0
    functions: int = 0
    tiled: int = 0
    failures: list[str] = field(default_factory=list[str])

    def add(self, other: Report) -> None:
        """Take in another job's report."""
        self.programs += other.programs
        self.functions += other.functions
        self.tiled += other.tiled
        self.failures += other.failures


def check(job: Job) -> Report:
    """Run a job and fail the test if a program fails."""
    report = run(job)
    if report.failures:
        pytest.fail("\n\n".join(report.failures), pytrace=False)
    assert report.programs == len(job.seeds)
    return report


def run(job: Job) -> Report:
    """Run a job; a process that dies is followed by one for the programs behind the fatal one."""
    report = Report()
    folder = Path(os.environ.get("TLX_FAILURES") or Path(tempfile.gettempdir()) / "tlx-semantics")
    folder.mkdir(parents=True, exist_ok=True)
    todo = job.seeds
    while todo:
        todo = _run_process(job, todo, folder, report)
    return report


def _run_process(job: Job, seeds: range, folder: Path, report: Report) -> range:
    """Run programs in one process until it ends; what is left to do."""
    command = [sys.executable, "-m", "tests.semantics.worker", "--profile", job.profile, "--target", job.target]
    command += ["--seeds", f"{seeds.start}:{seeds.stop}", "--folder", str(folder), *job.flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            assert process.stdout is not None
            try:
                state = _follow(job, process.stdout, report)
                status = process.wait(timeout=_SECONDS)
            finally:
                process.kill()
        if status == 0:
            return range(0)
        errors.seek(0)
        said = errors.read()[-_LAST_WORDS:]
    seed = state.get("start", seeds.start)
    doing = {key: value for key, value in state.items() if key not in ("start", "file")}
    report.programs += 1
    report.failures.append(
        f"{job} {seed}: the process died with status {status} while {doing}\n{said}\nprogram: {state.get('file')}"
    )
    return range(seed + 1, seeds.stop)


def _follow(job: Job, lines: IO[str], report: Report) -> dict[str, Any]:
    """Read a worker's events; what it was doing last."""
    state: dict[str, Any] = {}
    for event in _events(lines):
        if "done" in event:
            report.programs += 1
            report.functions += event["functions"]
            report.tiled += event["tiled"]
            _forget(state)
        elif "failed" in event:
            report.programs += 1
            report.failures.append(f"{job} {event['failed']}: {event['message']}\nprogram: {state.get('file')}")
        elif "start" in event:
            state = event
        else:
            kept = {key: state[key] for key in ("start", "file") if key in state}
            state = {**kept, **event}
    return state


def _events(lines: IO[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith("{"):
            yield json.loads(line)


def _forget(state: dict[str, Any]) -> None:
    """Programs that pass leave no file."""
    if "file" in state:
        Path(state["file"]).unlink(missing_ok=True)
