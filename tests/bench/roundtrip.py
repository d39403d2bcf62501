"""Real LLVM IR through TLX: is it lossless, how long does it take, how much memory?

For each file, reading and writing it gives the same bytes, with no function parsed to instructions and with all of
them. For files of more than 5 MB, `tlx-lower`, which has nothing to do, takes at most twice the time of `opt -S` doing
nothing; below that, starting Python is what takes the time (the last lines say how long). For files of more than 5 MB
it takes at most six times the file's size in memory, child processes included.

The columns `judged` say what the same costs with --verify-each: LLVM, in a process of its own, reads and verifies the
file. They have no bar: LLVM's module alone takes more than six times the file's size.

The fastest of three runs counts, the largest memory of all. The column cpu is the ratio of processor times, children
included, in which other programs on the machine matter less.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.sources import Text, texts
from tlx.ir.parser.module import parse, parse_fully

_TOOL: Final = str(Path(sys.executable).with_name("tlx-lower"))
_OPTS: Final = ("opt-19", "opt-14", "opt")  # LLVM 19 does not read everything that clang 14 writes
_TIME_BAR: Final = 2.0
_MEMORY_BAR: Final = 6.0
_STARTED: Final = 5_000_000
_SAMPLE_S: Final = 0.004
_RUNS: Final = 3


@dataclass(frozen=True)
class Usage:
    """What a program used.

    Attributes:
        cpu: Seconds of processor time, its children's included.
        wall: Seconds that passed.
        own: Its own peak memory in bytes.
        family: Peak of the sum over it and its children.
    """

    cpu: float
    wall: float
    own: int
    family: int


@dataclass(frozen=True)
class Row:
    """The figures of a file; `lossless` and `parsed` are the two ways of reading it."""

    text: Text
    size: int
    lines: int
    lossless: bool
    parsed: bool
    parse_seconds: float
    ours: Usage
    judged: Usage
    opt: Usage

    @property
    def failures(self) -> list[str]:
        """The bars that the file missed."""
        bars = {
            "reading it loses something": not self.lossless,
            "reading it to instructions loses something": not self.parsed,
            "time": self.size > _STARTED and self.ours.wall > _TIME_BAR * self.opt.wall,
            "memory": self.size > _STARTED and self.ours.family > _MEMORY_BAR * self.size,
        }
        return [f"{self.text.name}: {bar}" for bar, missed in bars.items() if missed]

    def line(self) -> str:
        """A line of the table."""
        return (
            f"{self.text.name:38} {self.lines:8} {self.size / 1e6:6.1f} {self.lossless!s:>5} {self.parsed!s:>6} "
            f"{self.lines / self.parse_seconds / 1e3:7.0f} {self.ours.wall:6.2f} {self.opt.wall:6.2f} "
            f"{self.ours.wall / self.opt.wall:5.2f} {self.judged.wall / self.opt.wall:6.2f} "
            f"{self.ours.cpu / self.opt.cpu:5.2f} "
            f"{self.ours.family / self.size:6.1f} {self.judged.family / self.size:6.1f} {self.opt.own / self.size:6.1f}"
        )


def run(cache: Path, lines: int, only: str) -> int:
    """Measure and print; gives the exit status: 0 where all bars are met."""
    opts = [path for name in _OPTS if (path := shutil.which(name))]
    if not opts:
        print("opt was not found", file=sys.stderr)
        return 1
    cache.mkdir(parents=True, exist_ok=True)
    files = texts(cache, only)
    print(f"{'':54} {'lossless':>12} {'parsed':>7} {'wall, s':>13} {'ratio to opt':>18} {'memory / size':>20}")
    print(
        f"{'file':38} {'lines':>8} {'MB':>6} {'text':>5} {'instr.':>6} {'klines/s':>7} {'tlx':>5} {'opt':>6} "
        f"{'wall':>5} {'judged':>6} {'cpu':>5} {'tlx':>6} {'judged':>6} {'opt':>6}"
    )
    rows: list[Row] = []
    for text in files:
        rows.append(_measured(text, opts))
        print(rows[-1].line(), flush=True)
    print(_startup(opts[0]))
    return _summary(rows, lines)


def _startup(opt: str) -> str:
    with tempfile.NamedTemporaryFile(suffix=".ll") as empty:
        ours, rival = (_best([*c, empty.name, "-o", os.devnull]) for c in ([_TOOL], [opt, "-S"]))
    return f"\nAn empty module: tlx-lower {ours.wall:.2f} s, opt {rival.wall:.2f} s."


def _summary(rows: list[Row], lines: int) -> int:
    total = sum(row.lines for row in rows)
    size = sum(row.size for row in rows)
    ours, opts = sum(row.ours.wall for row in rows), sum(row.opt.wall for row in rows)
    lossless = sum(row.lossless and row.parsed for row in rows)
    print(f"{total:,} lines, {size / 1e6:.0f} MB in {len(rows)} files; {lossless} of them come out byte for byte.")
    if rows:
        print(f"All files: {ours / opts:.2f} times the time of opt.")
    failures = [failure for row in rows for failure in row.failures]
    if total < lines:
        failures.append(f"{total} lines are fewer than the {lines} asked for")
    for failure in failures:
        print(f"missed: {failure}")
    return int(bool(failures))


def _measured(text: Text, opts: list[str]) -> Row:
    contents = text.path.read_bytes().decode()
    lossless = str(parse(contents, text.name)) == contents
    start = time.perf_counter()
    module = parse_fully(contents, text.name)
    seconds = time.perf_counter() - start
    parsed = str(module) == contents
    del module
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "out.ll")
        ours = _best([_TOOL, str(text.path), "-o", output])
        judged = _best([_TOOL, "--verify-each", str(text.path), "-o", output])
        lossless = lossless and Path(output).read_bytes() == text.path.read_bytes()
        rival = _best([_first_that_reads(opts, text.path), "-S", str(text.path), "-o", output])
    size = text.path.stat().st_size
    return Row(text, size, contents.count("\n"), lossless, parsed, seconds, ours, judged, rival)


def _first_that_reads(opts: list[str], path: Path) -> str:
    for opt in opts:
        if subprocess.run([opt, "-S", str(path), "-o", os.devnull], capture_output=True, check=False).returncode == 0:
            return opt
    msg = f"no opt reads {path}"
    raise ValueError(msg)


def _best(command: list[str]) -> Usage:
    """The fastest of a few runs, with the largest memory of all."""
    runs = [_usage(command) for _ in range(_RUNS)]
    fastest = min(runs, key=lambda usage: usage.wall)
    return Usage(fastest.cpu, fastest.wall, max(r.own for r in runs), max(r.family for r in runs))


def _usage(command: list[str]) -> Usage:
    before = os.times()
    start = time.perf_counter()
    process = subprocess.Popen(command)
    watch = _Watch(process.pid)
    watch.start()
    status = process.wait()
    wall = time.perf_counter() - start
    watch.stop()
    after = os.times()
    if status:
        raise subprocess.CalledProcessError(status, command)
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Usage(cpu, wall, watch.own, watch.family)


class _Watch(threading.Thread):
    """Looks at the memory of a process and its children, again and again.

    Attributes:
        own: Most bytes that the process had.
        family: Most bytes that it and its children had together.
    """

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._ended = threading.Event()
        self.own = 0
        self.family = 0

    def run(self) -> None:
        """Look until told to stop."""
        while not self._ended.wait(_SAMPLE_S):
            children = Path(f"/proc/{self._process}/task/{self._process}/children")
            try:
                numbers = children.read_text().split()
            except OSError:
                continue
            own = _bytes(self._process, "VmHWM")
            self.own = max(self.own, own)
            now = _bytes(self._process, "VmRSS") + sum(_bytes(int(n), "VmRSS") for n in numbers)
            self.family = max(self.family, now)

    def stop(self) -> None:
        """Stop looking."""
        self._ended.set()
        self.join()


def _bytes(process: int, what: str) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(f"{what}:")), 0)
