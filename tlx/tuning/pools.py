"""Pools of machines that run trials. Machines with the same processor are of one kind, which trials are run for."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from queue import Empty, Queue
from typing import Any, Final, Protocol

from tlx.diagnostics import UsageError
from tlx.tuning.machine import processor, processors_for
from tlx.tuning.trial import Trial, TrialOutcome

TRIAL_SECONDS: Final = 180.0
"""Seconds after which a trial is considered to hang."""


class Pool(Protocol):
    """A pool of machines."""

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of machines: their processors' names, without duplicates."""
        ...

    def run(self, kind: str, trials: Sequence[Trial]) -> Iterator[tuple[Trial, TrialOutcome]]:
        """Run trials on machines of a kind; yields outcomes as they arrive."""
        ...

    def close(self) -> None:
        """End all processes and connections."""
        ...


class LocalPool:
    """A process on this machine, pinned to as many processors as its code has threads, and restarted after a crash."""

    def __init__(self, cpu: int | None = None, threads: int = 1) -> None:
        self._cpu = processors_for(cpu, threads)[0]
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self.kinds: Sequence[str] = [processor()]

    def run(self, kind: str, trials: Sequence[Trial]) -> Iterator[tuple[Trial, TrialOutcome]]:
        """Run trials one after the other."""
        for trial in trials:
            try:
                yield trial, self._outcome(trial)
            except TimeoutError:
                self._end()
                yield trial, TrialOutcome(cpu=kind, error=f"no result after {TRIAL_SECONDS:.0f} seconds")
            except (OSError, ValueError, TypeError):
                yield trial, TrialOutcome(cpu=kind, error=f"the process that measured ended with status {self._end()}")

    def close(self) -> None:
        """End the process."""
        self._end()

    def _outcome(self, trial: Trial) -> TrialOutcome:
        process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(json.dumps(asdict(trial)).encode() + b"\n")
        process.stdin.flush()
        outcome: dict[str, Any] = json.loads(_line(process, TRIAL_SECONDS))
        outcome["ratios"] = tuple(outcome["ratios"])
        return TrialOutcome(**outcome)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tlx.tuning.worker", str(self._cpu), str(self._threads)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True)
        return self._process

    def _end(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(0.2)
        process.kill()
        return process.wait()


def _line(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """The next line that a process writes.

    Raises:
        TimeoutError: There is none in time.
        OSError: The process ended.
    """
    assert process.stdout is not None
    end = time.monotonic() + seconds
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, end - time.monotonic())):
                raise TimeoutError
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                raise OSError
            line += data
    return line


class DaskPool:
    """The workers of a Dask cluster, one trial at a time on each."""

    _CONNECT_SECONDS: Final = 10
    _POLL_SECONDS: Final = 2

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            message = "--scheduler needs the package distributed: pip install 'tlx-ir[tune]'"
            raise UsageError(message) from None
        self._distributed: Any = distributed
        try:
            _check_address(address)
            self._client: Any = distributed.Client(address, timeout=self._CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(f"could not reach a Dask scheduler at '{address}': {text}") from None
        try:
            self.kinds: Sequence[str] = sorted(self._by_kind())
        except BaseException:
            self.close()
            raise
        if not self.kinds:
            self.close()
            raise UsageError("the Dask cluster has no workers; start some: dask worker ADDRESS --nthreads 1")

    def run(self, kind: str, trials: Sequence[Trial]) -> Iterator[tuple[Trial, TrialOutcome]]:
        """Run trials on the workers of a kind, as many at a time as there are."""
        workers = self._by_kind().get(kind, [])
        placement: dict[str, Any] = {"workers": workers, "allow_other_workers": False, "resources": self._resources}
        ended: Queue[Any] = Queue()
        pending: dict[str, tuple[Trial, Any]] = {}
        for trial in trials[: len(trials) if workers else 0]:
            future = self._client.submit(_run, trial, pure=False, retries=0, **placement)
            pending[future.key] = trial, future
            future.add_done_callback(ended.put)
        for _ in range(len(pending)):
            future = self._next(ended, workers)
            if future is None:
                break
            yield pending.pop(future.key)[0], _result(future, kind)
        lost = trials if not workers else [trial for trial, _ in pending.values()]
        for _, future in pending.values():
            future.cancel()
        for trial in lost:
            yield trial, TrialOutcome(cpu=kind, error="no worker is left to run it, or it hangs")

    def _next(self, ended: Queue[Any], workers: Sequence[str]) -> Any:
        """The next finished future; None if no worker is left or a trial takes too long."""
        end = time.monotonic() + TRIAL_SECONDS
        while time.monotonic() < end:
            try:
                return ended.get(timeout=self._POLL_SECONDS)
            except Empty:
                known: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
                if not any(worker in known for worker in workers):
                    return None
        return None

    def close(self) -> None:
        """Disconnect from the cluster, which keeps running."""
        self._client.close(timeout=5)

    def _by_kind(self) -> dict[str, list[str]]:
        """Addresses of the workers by processor.

        Raises:
            UsageError: They lack TLX, or may run several trials at once.
        """
        known: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        self._resources = {"tlx": 1} if all("tlx" in w.get("resources", {}) for w in known.values()) else None
        busy = [name for name, worker in known.items() if worker["nthreads"] > 1]
        if busy and self._resources is None:
            message = (
                f"worker {busy[0]} may run several trials at once, which distorts measurements; start workers with"
            )
            raise UsageError(f"{message} 'dask worker ADDRESS --nthreads 1', or with --resources tlx=1")
        try:
            kinds: dict[str, str] = self._client.run(_kind)
        except ImportError as error:
            raise UsageError(f"the workers of the Dask cluster cannot import TLX: {error}") from None
        workers: dict[str, list[str]] = {}
        for worker, kind in kinds.items():
            workers.setdefault(kind, []).append(worker)
        return workers


def _check_address(address: str) -> None:
    """Reject an invalid address before a client is created, which could not be closed.

    Raises:
        ValueError: The address is invalid.
    """
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    scheme, place = parse_address(address)
    get_backend(scheme)
    if scheme in ("tcp", "tls"):  # other schemes, such as wss://host/path, have their own syntax
        parse_host_port(place)


def _result(future: Any, kind: str) -> TrialOutcome:
    """The outcome of a future."""
    error: BaseException | None = future.exception()
    if error is None:
        return future.result()
    text = " ".join(str(error).split())
    return TrialOutcome(cpu=kind, error=f"the worker failed: {type(error).__name__}: {text}"[:300])


def _kind() -> str:
    """The processor of the worker that runs this function."""
    return processor()


def _run(trial: Trial) -> TrialOutcome:
    """Run a trial on a worker."""
    from tlx.tuning.trial import run_trial

    return run_trial(trial)
