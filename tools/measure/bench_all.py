"""Measure the whole table of `tlx bench` in pieces, several at a time, each on its own processor.

    python tools/measure/bench_all.py --cpus=2,6,10,14 --out=tables --minutes=8

Each piece is a run of `tlx bench` with a report in the folder, the longest first. When the time is up, running pieces
are stopped but keep their finished cells, and the missing cells are listed. The same command then continues with those.

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

from tlx.bench import report, workloads
from tlx.diagnostics import UsageError
from tlx.tuning.workload import Workload

PIECE_SECONDS = 30.0
_RUNS = 40  # runs of a cell's work by all peers, for checks and samples
_SPEED = 1e11  # assumed operations per second
_CHECKED = 1e8  # bytes per second that are generated, computed by numpy and compared
_LEAST = 1.5  # minimum seconds of a cell: lowering, compiling, samples of 8 ms


@dataclass(frozen=True)
class Piece:
    """Cells of one row, types and variant that one run measures."""

    works: list[Workload] = field(default_factory=list[Workload])

    @property
    def seconds(self) -> float:
        """The estimated time."""
        return sum(map(_seconds, self.works))

    def command(self, options: argparse.Namespace, cpu: int, path: Path) -> list[str]:
        """The command that measures it."""
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
    """Measure, and list the missing cells; returns their number."""
    options = _options().parse_args(words)
    cpus = [int(word) for word in options.cpus.split(",")]
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * options.minutes
    waiting = sorted(pieces(_missing(folder, options.rows)), key=lambda piece: piece.seconds)
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
    parser.add_argument("rows", nargs="*", help="rows of the table (default: all)")
    parser.add_argument(
        "--cpus", default=str(max(os.sched_getaffinity(0))), help="processors, one for each concurrent run"
    )
    parser.add_argument("--out", required=True, help="folder for the reports")
    parser.add_argument("--minutes", type=float, default=60, help="most time")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each figure")
    parser.add_argument("--target", default="native", help="target to compile for")
    parser.add_argument("--peers", help="libraries to compare with (default: all that are installed)")
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
    """The cells that no report in the folder has."""
    done: set[tuple[str, ...]] = set()
    for path in folder.glob("*.json"):
        try:
            done |= {report.cell_key(cell) for cell in report.read(str(path))["cells"]}
        except UsageError as error:
            click.echo(error.message)
    return [work for work in workloads.select_workloads(rows, [], [], []) if work.key not in done]


def _listed(works: Sequence[Workload]) -> Iterator[str]:
    """Lines such as `gemm bf16 vnni B: 64, 128`."""
    sizes: dict[str, list[str]] = {}
    for work in works:
        sizes.setdefault(" ".join(filter(None, (work.row, work.types, work.variant))), []).append(work.size)
    yield from (f"{like}: {', '.join(own)}" for like, own in sizes.items())


def pieces(works: Sequence[Workload]) -> Iterator[Piece]:
    """Split workloads into pieces of about `PIECE_SECONDS` seconds, or of a single cell."""
    groups: dict[tuple[str, str, str], Piece] = {}
    for work in works:
        like = (work.row, work.types, work.variant)
        piece = groups.setdefault(like, Piece())
        if piece.works and piece.seconds + _seconds(work) > PIECE_SECONDS:
            yield piece
            piece = groups[like] = Piece()
        piece.works.append(work)
    yield from groups.values()


def _seconds(work: Workload) -> float:
    return _LEAST + _RUNS * work.operations / _SPEED + work.traffic / _CHECKED


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
