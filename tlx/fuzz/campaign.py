"""Feeds programs to worker processes and takes note of what becomes of them, dying and hanging included."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any, Final, Literal

from tlx.fuzz.worker import SECONDS, Request

_WALL_SECONDS: Final = 5 * SECONDS
_LAST_WORDS: Final = 2000
Kind = Literal["done", "refused", "mismatch", "diagnostic", "exception", "crash", "hang"]


@dataclass(frozen=True)
class Outcome:
    """What became of a program.

    Attributes:
        request: The program and how it was checked.
        kind: `done` or `refused`, or how it failed.
        stage: What was being done.
        message: Why it was refused or failed.
        functions: Functions that were checked.
        tiled: Kernels that multiply tiles.
    """

    request: Request
    kind: Kind
    stage: str = ""
    message: str = ""
    functions: int = 0
    tiled: int = 0

    @property
    def is_failure(self) -> bool:
        """Whether something is wrong with TLX."""
        return self.kind not in ("done", "refused")

    def is_like(self, other: Outcome) -> bool:
        """Whether two programs fail alike."""
        return (self.kind, self.stage) == (other.kind, other.stage)


class Worker:
    """A worker process, started when it is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._pending = b""

    def check(self, request: Request) -> Outcome:
        """Have a program checked."""
        process = self._started()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(request.as_json().encode() + b"\n")
            process.stdin.flush()
        doing = "starting"
        while True:
            event = self._event(process)
            if event is None:
                return self._ended(process, request, doing)
            if "doing" not in event:
                return _outcome(request, event)
            doing = event["doing"]

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, self._errors):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
            self._pending = b""
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tlx.fuzz.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        return self._process

    def _event(self, process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
        """The next event; None where the process ended or says nothing for too long."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(_WALL_SECONDS):
                    process.send_signal(signal.SIGPROF)
                    return None
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    return None
                self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line) if line.startswith(b"{") else {"doing": "starting"}

    def _ended(self, process: subprocess.Popen[bytes], request: Request, doing: str) -> Outcome:
        status = process.wait()
        said = ""
        if self._errors is not None:
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace")[-_LAST_WORDS:]
        self.close()
        if status == -signal.SIGPROF:
            return Outcome(request, "hang", doing, f"more than {SECONDS} s of the processor's time while {doing}")
        return Outcome(request, "crash", doing, f"the process died with status {status} while {doing}\n{said}")


def _outcome(request: Request, event: dict[str, Any]) -> Outcome:
    if "refused" in event:
        return Outcome(request, "refused", message=event["refused"])
    if "failed" in event:
        return Outcome(request, event["failed"], event["stage"], event["message"])
    return Outcome(request, "done", functions=event["functions"], tiled=event["tiled"])


def check_all(requests: Iterable[Request], jobs: int, report: Callable[[Outcome, Worker], bool]) -> None:
    """Check programs in several processes.

    Args:
        requests: The programs.
        jobs: How many processes.
        report: Is told of each outcome, in threads; may use the worker; says whether to go on.
    """
    todo = iter(requests)

    def work(_: int) -> None:
        worker = Worker()
        try:
            for request in todo_safely():
                if not report(worker.check(request), worker):
                    return
        finally:
            worker.close()

    import threading

    lock = threading.Lock()

    def todo_safely() -> Iterable[Request]:
        while True:
            with lock:
                request = next(todo, None)
            if request is None:
                return
            yield request

    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(work, range(jobs)):
            pass
