"""Worker processes that check programs, and the outcomes of their checks."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any, Final, Literal

from tlx.fuzz.worker import SECONDS, Request

_WALL_SECONDS: Final = 5 * SECONDS
_LAST_WORDS: Final = 2000
Kind = Literal["done", "refused", "mismatch", "diagnostic", "exception", "crash", "hang"]


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of checking a program.

    Attributes:
        request: The program and how it was checked.
        kind: `done`, `refused`, or the kind of failure.
        stage: The step at which it was refused or failed.
        message: Why it was refused or failed.
        functions: Number of functions checked.
        tile_kernels: Number of kernels that use a matrix unit.
    """

    request: Request
    kind: Kind
    stage: str = ""
    message: str = ""
    functions: int = 0
    tile_kernels: int = 0

    @property
    def is_failure(self) -> bool:
        """Whether the program exposes a bug in TLX."""
        return self.kind not in ("done", "refused")

    def is_like(self, other: CheckOutcome) -> bool:
        """Whether two programs fail in the same way."""
        return (self.kind, self.stage) == (other.kind, other.stage)


class Worker:
    """A worker process, started on demand.

    Args:
        deadline: The monotonic time at which it ends; None for never.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self._deadline = deadline
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._pending = b""

    def check(self, request: Request) -> CheckOutcome:
        """Have the worker check a program.

        Raises:
            TimeoutError: The deadline passes before the program is checked.
        """
        process = self._started()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(request.as_json().encode() + b"\n")
            process.stdin.flush()
        doing = "starting"
        while True:
            event = self._event(process)
            if event is None:
                return self._outcome_of_dead_worker(process, request, doing)
            if "doing" not in event:
                return _parse_event(request, event)
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
        """The next event; None if the process has ended or times out."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left = math.inf if self._deadline is None else self._deadline - time.monotonic()
                if left <= 0 or not selector.select(min(left, _WALL_SECONDS)):
                    if left < _WALL_SECONDS:
                        self.close()
                        raise TimeoutError
                    process.send_signal(signal.SIGPROF)
                    return None
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    return None
                self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line) if line.startswith(b"{") else {"doing": "starting"}

    def _outcome_of_dead_worker(self, process: subprocess.Popen[bytes], request: Request, doing: str) -> CheckOutcome:
        status = process.wait()
        errors = ""
        if self._errors is not None:
            self._errors.seek(0)
            errors = self._errors.read().decode(errors="replace")[-_LAST_WORDS:]
        self.close()
        if status == -signal.SIGPROF:
            return CheckOutcome(request, "hang", doing, f"more than {SECONDS} s of CPU time while {doing}")
        return CheckOutcome(request, "crash", doing, f"the process died with status {status} while {doing}\n{errors}")


def _parse_event(request: Request, event: dict[str, Any]) -> CheckOutcome:
    if "refused" in event:
        return CheckOutcome(request, "refused", message=event["refused"])
    if "failed" in event:
        return CheckOutcome(request, event["failed"], event["stage"], event["message"])
    return CheckOutcome(request, "done", functions=event["functions"], tile_kernels=event["tile_kernels"])


def check_all(
    requests: Iterable[Request],
    jobs: int,
    report: Callable[[CheckOutcome, Worker], None],
    deadline: float | None = None,
) -> None:
    """Check programs in several processes.

    Args:
        requests: The programs.
        jobs: Number of processes.
        report: Called with each outcome and its worker, from several threads.
        deadline: The monotonic time at which the processes end, with the programs that still run; None for never.
    """
    todo = iter(requests)

    def work(_: int) -> None:
        worker = Worker(deadline)
        try:
            for request in todo_safely():
                report(worker.check(request), worker)
        except TimeoutError:
            return
        finally:
            worker.close()

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
