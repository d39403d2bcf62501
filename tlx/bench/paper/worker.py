"""A process that measures some of the paper's workloads for one target on one number of threads.

It reads a job from the standard input and writes a line of JSON for the session, then one for each workload:

    {"facts": {...}, "absent": {...}}
    {"cell": {...}}             a record of a report, or of a sweep
    {"failed": "message"}       instead, if it cannot go on
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tlx.diagnostics import TlxError
from tlx.target.lookup import find_target
from tlx.tuning import machine
from tlx.tuning.workload import Workload


@dataclass(frozen=True)
class Job:
    """What to measure.

    Attributes:
        keys: Keys of the workloads.
        target: Name of the target.
        threads: Number of threads.
        peers: Names of the libraries; None means all.
        sweep: Whether to measure every register tile, without libraries.
        sizes: Sizes of layers besides the paper's.
    """

    keys: list[tuple[str, str, str, str]]
    target: str
    threads: int
    peers: list[str] | None
    peers_path: str | None
    rounds: int
    cpu: int | None
    sweep: bool
    sizes: list[int]

    def text(self) -> str:
        """The job as JSON."""
        return json.dumps(asdict(self))


def main() -> None:
    """Measure the job on the standard input."""
    job = Job(**json.loads(sys.stdin.read()))
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries may print
    try:
        for message in _messages(job):
            print(json.dumps(message), file=output, flush=True)
    except TlxError as error:
        print(json.dumps({"failed": error.message}), file=output, flush=True)


def _messages(job: Job) -> Iterator[dict[str, Any]]:
    machine.prepare_libraries(_flags(job.target), job.threads)  # before anything imports numpy
    from tlx.bench import report, scaling
    from tlx.bench.measure import open_session
    from tlx.bench.paper import sweep, workloads
    from tlx.bench.settings import BenchSettings

    peers = () if job.sweep else None if job.peers is None else tuple(job.peers)
    if job.threads > 1:
        scaling.pin_threads()
    setting = BenchSettings(job.target, peers, job.peers_path, job.rounds, job.cpu, job.threads)
    session = open_session(setting)
    yield {"facts": session.facts, "absent": session.absent}
    table: dict[tuple[str, ...], Workload] = {work.key: work for work in workloads.paper_workloads(job.sizes)}
    for key in job.keys:
        work = table[tuple(key)]
        yield {"cell": sweep.measure(session.bench, work) if job.sweep else report.record(session.bench.measure(work))}


def _flags(target: str) -> frozenset[str]:
    """Features of the target, for the choice of OpenBLAS's kernels."""
    return frozenset(feature.removeprefix("+") for feature in find_target(target).features)


if __name__ == "__main__":
    main()
