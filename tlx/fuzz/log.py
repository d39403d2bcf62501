"""A log of the programs that have been checked, to which each run of `tlx fuzz --resume` appends.

Each line describes one batch of programs, in JSON:

    {"date": "2026-11-29", "version": "0.1.0", "target": "neon", "kind": "programs", "options": "--code-only",
     "passed": "0-11,13-24", "refused": "12", "failed": ""}

A line is written in one piece, so a run that is killed loses no more than its current batches. Programs that failed are
run again; the last line that names a seed counts.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from tlx import __version__
from tlx.api import files
from tlx.diagnostics import UsageError

BATCH: Final = 25
"""Programs in a batch."""
Result = Literal["passed", "refused", "failed"]
_RESULTS: Final[tuple[Result, ...]] = ("passed", "refused", "failed")
_NAMES: Final = ("target", "kind", "options")
_RANGES: Final = re.compile(r"(?:\d{1,15}(?:-\d{1,15})?(?:,\d{1,15}(?:-\d{1,15})?)*)?")


@dataclass(frozen=True, order=True)
class Series:
    """The programs that are counted together.

    Attributes:
        target: The target's name; `none` if programs are only evaluated, `any` for inputs that are for all of them.
        kind: `programs`, `graphs` or `malformed inputs`.
        options: The other options that say what is checked, as on the command line.
    """

    target: str
    kind: str
    options: str


Seeds = dict[int, Result]


@dataclass
class FuzzLog:
    """A log file.

    Attributes:
        path: The file, which need not exist yet.
    """

    path: Path
    _seeds: dict[Series, Seeds] = field(default_factory=dict[Series, Seeds])
    _batches: dict[Series, Seeds] = field(default_factory=dict[Series, Seeds])

    @classmethod
    def read(cls, path: Path) -> FuzzLog:
        """The log in a file, or an empty one if there is none.

        Raises:
            UsageError: The file cannot be read or written, or a line of it is damaged.
        """
        log = cls(path)
        files.check_writable(str(path))
        if not path.exists():
            return log
        lines = files.read_bytes(str(path)).decode(errors="replace").splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            try:
                series, seeds = _parsed(line)
            except ValueError as error:
                remedy = "remove the line, and its programs are run again"
                raise UsageError(f"line {number} of the log is damaged: {error}; {remedy}", name=str(path)) from None
            log._seeds.setdefault(series, {}).update(seeds)
        return log

    def has_run(self, series: Series, seed: int) -> bool:
        """Whether the program of a seed has been run and has not failed."""
        return self._seeds.get(series, {}).get(seed, "failed") != "failed"

    def note(self, series: Series, seed: int, result: Result) -> None:
        """Add a program, and write the batch to the file if this completes it."""
        batch = self._batches.setdefault(series, {})
        batch[seed] = result
        if len(batch) >= BATCH:
            self._write(series)

    def flush(self) -> None:
        """Write the batches that are not complete."""
        for series in list(self._batches):
            self._write(series)

    def totals(self) -> Iterator[str]:
        """A line for each series."""
        for series, seeds in sorted(self._seeds.items()):
            counts = {result: sum(r == result for r in seeds.values()) for result in _RESULTS}
            title = " ".join(filter(None, [f"{series.target}:", str(len(seeds)), series.kind]))
            words = ", ".join(f"{count} {result}" for result, count in counts.items())
            yield f"{title}: {words}; seeds {_ranges(seeds)}{f'; {series.options}' if series.options else ''}"

    def _write(self, series: Series) -> None:
        """Append a batch by a single system call, so that a line is written as a whole."""
        batch = self._batches.pop(series)
        today = dt.datetime.now(dt.UTC).date().isoformat()
        line: dict[str, str] = {
            "date": today,
            "version": __version__,
            **{name: getattr(series, name) for name in _NAMES},
            **{result: _ranges([seed for seed, r in batch.items() if r == result]) for result in _RESULTS},
        }
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                os.write(file, f"{json.dumps(line)}\n".encode())
            finally:
                os.close(file)
        except OSError as error:
            raise UsageError(
                f"could not append to the log: {files.os_error_text(error)}", name=str(self.path)
            ) from None
        self._seeds.setdefault(series, {}).update(batch)


def _parsed(line: str) -> tuple[Series, Seeds]:
    """The batch of a line.

    Raises:
        ValueError: It is damaged.
    """
    if not line.endswith("\n"):
        raise ValueError("it is incomplete")
    try:
        found: Any = json.loads(line)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is not an object of JSON")
    values = cast("dict[str, Any]", found)
    for name in (*_NAMES, *_RESULTS):
        if not isinstance(values.get(name), str):
            raise ValueError(f"it has no text '{name}'")
    seeds: Seeds = {}
    for result in _RESULTS:
        seeds.update(dict.fromkeys(_numbers(values[result]), result))
    return Series(*(values[name] for name in _NAMES)), seeds


def _numbers(text: str) -> Iterator[int]:
    """The numbers of ranges: `0-2,7`."""
    if not _RANGES.fullmatch(text):
        raise ValueError(f"'{text}' is not a list of seeds")
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if not 0 < len(numbers) <= BATCH:
            raise ValueError(f"'{part}' is not a range of at most {BATCH} seeds")
        yield from numbers


def _ranges(seeds: Iterable[int]) -> str:
    """Numbers as ranges, in order."""
    found: list[list[int]] = []
    for seed in sorted(seeds):
        if found and seed == found[-1][1] + 1:
            found[-1][1] = seed
        else:
            found.append([seed, seed])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
