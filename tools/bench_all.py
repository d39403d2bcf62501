"""Measure the whole table of `tlx bench` in pieces, several at a time, each on a processor of its own.

    python tools/bench_all.py --cpus=2,6,10,14 --out=tables --minutes=8

Every piece is a run of `tlx bench` and a report in the folder. Those of the longest work begin first; when the time is
up, what runs is ended, keeps the cells it has, and what is missing is printed. The same command then goes on with that.

    tlx bench --from=tables --markdown=tables.md
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from tlx.bench import report
from tlx.bench.workloads import catalogue
from tlx.diagnostics import UsageError
from tlx.tuning.measure.workload import Workload

_PIECE = 30.0  # seconds, about
_RUNS = 40  # of a cell's work: by all peers, for checks and for samples
_SPEED = 1e11  # operations a second
_CHECKED = 1e8  # bytes a second that are made, computed by numpy and compared
_LEAST = 1.5  # seconds of a cell: lowering, compiling, samples of 8 ms


@dataclass(frozen=True)
class Piece:
    """Cells of one row, types and variant, and about how many seconds they take."""

    works: list[Workload] = field(default_factory=list[Workload])

    @property
    def seconds(self) -> float:
        """A guess."""
        return sum(map(_seconds, self.works))

    def command(self, options: argparse.Namespace, cpu: int, path: Path) -> list[str]:
        """The run of `tlx bench` that measures it."""
        first = self.works[0]
        chosen = {
            "types": first.types,
            "variants": first.variant or "plain",
            "sizes": ",".join(work.size for work in self.works),
        }
        given = {"cpu": cpu, "json": path, "rounds": options.rounds, "target": options.target}
        if options.peers is not None:
            given["peers"] = options.peers
        words = [f"--{name}={value}" for name, value in {**chosen, **given}.items()]
        return [sys.executable, "-c", "from tlx.cli import main; main()", "bench", first.row, *words]


def main(words: Sequence[str]) -> int:
    """Measure, and print what is missing; gives how many cells are."""
    options = _options().parse_args(words)
    cpus = [int(word) for word in options.cpus.split(",")]
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * options.minutes
    waiting = sorted(_pieces(_missing(folder, options.rows)), key=lambda piece: piece.seconds)
    click.echo(f"{sum(len(piece.works) for piece in waiting)} cells in {len(waiting)} pieces")
    running: dict[int, subprocess.Popen[bytes]] = {}
    while (waiting or running) and time.monotonic() < end:
        running = {cpu: process for cpu, process in running.items() if process.poll() is None}
        for cpu in cpus:
            if waiting and cpu not in running:
                running[cpu] = _started(waiting.pop(), options, cpu, folder)
        time.sleep(0.2)
    for process in running.values():
        process.kill()
        process.wait()
    missing = _missing(folder, options.rows)
    for line in _listed(missing):
        click.echo(f"missing: {line}")
    click.echo(f"{len(missing)} cells are missing")
    return len(missing)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure the whole table of `tlx bench`, in pieces.")
    parser.add_argument("rows", nargs="*", help="rows of the table; all")
    parser.add_argument("--cpus", default=str(max(os.sched_getaffinity(0))), help="processors, one for each run")
    parser.add_argument("--out", required=True, help="folder of the reports")
    parser.add_argument("--minutes", type=float, default=60, help="most time")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each figure")
    parser.add_argument("--target", default="native", help="machine to aim at")
    parser.add_argument("--peers", help="libraries to compare with; all that are found")
    return parser


def _started(piece: Piece, options: argparse.Namespace, cpu: int, folder: Path) -> subprocess.Popen[bytes]:
    first = piece.works[0]
    words = "-".join([*first.key[:2], first.variant or "plain", f"{first.size}_{len(piece.works)}"])
    name = words.replace("->", "_").replace(" ", "_")
    path = folder / f"{name}.{time.time_ns() // 1000000}.json"
    click.echo(f"cpu {cpu}: {first.name}{f' and {len(piece.works) - 1} more' if len(piece.works) > 1 else ''}")
    with path.with_suffix(".txt").open("wb") as log:
        return subprocess.Popen(piece.command(options, cpu, path), stdout=log, stderr=subprocess.STDOUT)


def _missing(folder: Path, rows: Sequence[str]) -> list[Workload]:
    """The cells that no report of the folder has."""
    done: set[tuple[str, ...]] = set()
    for path in folder.glob("*.json"):
        try:
            done |= {report.cell_key(cell) for cell in report.read(str(path))["cells"]}
        except UsageError as error:
            click.echo(error.message)
    return [work for work in catalogue.select_workloads(rows, [], [], []) if work.key not in done]


def _listed(works: Sequence[Workload]) -> Iterator[str]:
    """`gemm bf16 vnni B: 64, 128`."""
    sizes: dict[str, list[str]] = {}
    for work in works:
        sizes.setdefault(" ".join(filter(None, (work.row, work.types, work.variant))), []).append(work.size)
    yield from (f"{like}: {', '.join(own)}" for like, own in sizes.items())


def _pieces(works: Sequence[Workload]) -> Iterator[Piece]:
    """Cells that one run can measure, of about `_PIECE` seconds or one cell."""
    groups: dict[tuple[str, str, str], Piece] = {}
    for work in works:
        like = (work.row, work.types, work.variant)
        piece = groups.setdefault(like, Piece())
        if piece.works and piece.seconds + _seconds(work) > _PIECE:
            yield piece
            piece = groups[like] = Piece()
        piece.works.append(work)
    yield from groups.values()


def _seconds(work: Workload) -> float:
    return _LEAST + _RUNS * work.operations / _SPEED + work.traffic / _CHECKED


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
