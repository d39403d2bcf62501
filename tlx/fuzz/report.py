"""What a campaign found: counts, reasons of refusal, and failures as files that say how to run them again."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tlx.diagnostics import UsageError
from tlx.fuzz.campaign import Outcome
from tlx.fuzz.worker import Request

_MARK: Final = "; request: "
_MOST_ALIKE: Final = 2
_VARIABLE: Final = re.compile(r"\d+|[%@][\w.$]+|\"[^\"]*\"")


@dataclass
class Report:
    """What was found.

    Attributes:
        folder: Where failures are written to.
        passed: Programs that mean the same everywhere.
        functions: Functions in them.
        tiled: Kernels in them that multiply tiles of a matrix unit.
        refused: How many programs were refused, by reason.
        failed: How many failed, by what they have in common.
        files: Files of failures.
    """

    folder: Path
    passed: int = 0
    functions: int = 0
    tiled: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    failed: Counter[str] = field(default_factory=Counter[str])
    files: dict[str, list[Path]] = field(default_factory=dict[str, list[Path]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, outcome: Outcome) -> bool:
        """Count an outcome; whether it is a failure that is worth a file, unlike those before."""
        with self._lock:
            if outcome.kind == "done":
                self.passed += 1
                self.functions += outcome.functions
                self.tiled += outcome.tiled
            elif outcome.kind == "refused":
                self.refused[_general(outcome.message)] += 1
            else:
                alike = common(outcome)
                self.failed[alike] += 1
                return self.failed[alike] <= _MOST_ALIKE
        return False

    def write(self, found: Outcome, smallest: Outcome) -> Path:
        """Write a failure to a file."""
        request = found.request
        name = f"{request.profile}-{request.check.target or 'none'}-{request.source}.ll"
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        path.write_text(file_text(smallest, path), encoding="utf-8")
        with self._lock:
            self.files.setdefault(common(found), []).append(path)
        return path

    def summary(self, seconds: float) -> Iterator[str]:
        """Lines that say what was found."""
        refused, failed = self.refused.total(), self.failed.total()
        yield (
            f"{self.passed + refused + failed} programs: {self.passed} passed ({self.functions} functions), "
            f"{refused} refused, {failed} failed; {seconds:.0f} s"
        )
        if self.tiled:
            yield f"  tiles of a matrix unit are multiplied in {self.tiled} kernels"
        for title, counts in (("refused", self.refused), ("failed", self.failed)):
            for reason, count in counts.most_common():
                yield f"  {title} {count:5}  {reason}"
                yield from (f"                 {path}" for path in self.files.get(reason, []))


def common(outcome: Outcome) -> str:
    """What failures of the same kind have in common."""
    if outcome.kind in ("diagnostic", "exception"):
        lines = [line for line in outcome.message.splitlines() if line.strip()]
        said = next((line for line in lines if "error:" in line), lines[-1] if lines else "")
        return f"{outcome.kind}: {_general(said)}"
    return f"{outcome.kind} {_doing(outcome.stage)}"


def _doing(stage: str) -> str:
    return _general(stage) if stage.startswith("running @") else stage


def _general(message: str) -> str:
    """A message without names and numbers."""
    return _VARIABLE.sub("_", message.rsplit("error:", maxsplit=1)[-1].strip())[:160]


def file_text(outcome: Outcome, path: Path) -> str:
    """A failing program with what is wrong and how to see it again."""
    request = outcome.request
    target = request.check.target or "none"
    check = request.check
    optimised = f"; optimised by {check.optimise} {' '.join(check.pipeline)} first\n" if check.optimise else ""
    lowered = f"; lowered with {asked}\n" if (asked := str(request.check.asked)) else ""
    said = "".join(f"; {line}\n" for line in outcome.message.splitlines()[:20])
    return (
        f"; {outcome.kind} on target {target}: {outcome.stage}\n{said}"
        f"{optimised}{lowered}; check it again:  tlx fuzz --replay {path}\n{_MARK}{request.as_json()}\n\n{request.text}"
    )


def request_of(text: str, name: str) -> Request:
    """The request in the file of a failure.

    Raises:
        UsageError: There is none.
    """
    for line in text.splitlines():
        if line.startswith(_MARK):
            try:
                return Request.of_json(line.removeprefix(_MARK))
            except (ValueError, KeyError, TypeError, IndexError):
                break
    raise UsageError(f"'{name}' is no file that 'tlx fuzz' wrote: it has no line '{_MARK.strip()} ...'", name=name)
