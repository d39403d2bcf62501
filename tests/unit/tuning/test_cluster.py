"""Tuning on a Dask cluster: a scheduler and two worker processes on loopback."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.tools import HANG_S
from tlx.diagnostics import UsageError
from tlx.lower.knobs import KnobQuery
from tlx.tuning.database import Database
from tlx.tuning.machine import processor
from tlx.tuning.pools import DaskPool
from tlx.tuning.session import Budget, TuningSession
from tlx.tuning.trial import Trial

pytest.importorskip("distributed")


_QUIET = {"DASK_LOGGING__DISTRIBUTED": "error", "DASK_DISTRIBUTED__WORKER__MEMORY__REBALANCE__MEASURE": "managed"}


@contextmanager
def _process(*command: str) -> Generator[subprocess.Popen[bytes]]:
    """A process that ends with the test."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **_QUIET}
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


_SCHEDULER = """
import asyncio
from distributed import Scheduler
async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(main())
"""
_WORKER = """
import asyncio, sys
from distributed import Worker
async def main():
    options = {"nthreads": int(sys.argv[2]), "resources": eval(sys.argv[3])}
    async with Worker(sys.argv[1], dashboard=False, memory_limit=0, **options) as worker:
        print(worker.address, flush=True)
        await worker.finished()
asyncio.run(main())
"""


def _address(process: subprocess.Popen[bytes]) -> str:
    """The address that a process prints once it can be reached."""
    assert process.stdout is not None
    end, text = time.monotonic() + HANG_S, ""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not (match := re.search(r"tcp://[\d.]+:\d+(?=\n)", text)):
            assert selector.select(max(0.0, end - time.monotonic())), text
            part = os.read(process.stdout.fileno(), 4096)
            assert part, text
            text += part.decode()
    return match[0]


@contextmanager
def _cluster(*workers: tuple[int, dict[str, int]]) -> Generator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The scheduler's address and the worker processes."""
    with ExitStack() as stack:
        address = _address(stack.enter_context(_process("-c", _SCHEDULER)))
        started = [
            stack.enter_context(_process("-c", _WORKER, address, str(threads), repr(resources)))
            for threads, resources in workers
        ]
        for worker in started:
            _address(worker)
        yield address, started


@contextmanager
def _pool(address: str) -> Generator[DaskPool]:
    pool = DaskPool(address)
    try:
        yield pool
    finally:
        pool.close()


def _trials(count: int) -> list[Trial]:
    return [Trial("matmul 8x8x8 float", "generic", (), "", rounds) for rounds in range(1, count + 1)]


def test_trials_run_on_workers_and_results_are_stored_by_processor(tmp_path: Path) -> None:
    database = Database(tmp_path / "tuned.json")
    question = KnobQuery("matmul 16x16x16 float", "generic", ())
    with _cluster((1, {}), (1, {})) as (address, _), _pool(address) as pool:
        assert pool.kinds == [processor()]
        outcomes = dict(pool.run(processor(), _trials(4)))
        assert sorted(len(outcome.ratios) for outcome in outcomes.values()) == [1, 2, 3, 4]
        assert {outcome.cpu for outcome in outcomes.values()} == {processor()}
        (report,) = TuningSession(database, pool, Budget(trials=4)).run([question])
    assert report.key.cpu == processor()
    (entry,) = database.entries().values()
    assert entry["cpu"] == processor()
    assert len(entry["trials"]) == 4


def test_a_dying_worker_is_an_outcome() -> None:
    with _cluster((1, {"tlx": 1})) as (address, (worker,)), _pool(address) as pool:
        (kind,) = pool.kinds
        running = pool.run(kind, [Trial("matmul 8x8x8 float", "generic", (), "", 1)])
        assert not next(running)[1].error
        worker.kill()
        worker.wait()
        actual = [outcome.error for _, outcome in pool.run(kind, _trials(2))]
        assert actual == ["no worker is left to run it, or it hangs"] * 2


def test_a_worker_that_may_run_several_trials_at_once_is_refused() -> None:
    with (
        _cluster((2, {})) as (address, _),
        pytest.raises(UsageError, match=r"may run several trials at once.*--nthreads 1"),
    ):
        DaskPool(address)


def test_a_cluster_without_workers_is_refused() -> None:
    with _cluster() as (address, _), pytest.raises(UsageError, match="has no workers"):
        DaskPool(address)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x:1", "tcp://127.0.0.1:port"])
def test_a_scheduler_that_cannot_be_reached(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    client: Any = distributed.Client

    def impatient(address: str, **options: object) -> object:
        return client(address, **(options | {"timeout": 0.5}))

    monkeypatch.setattr(distributed, "Client", impatient)
    with pytest.raises(UsageError, match=f"could not reach a Dask scheduler at '{address}'"):
        DaskPool(address)


def test_distributed_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    modules: Any = sys.modules
    monkeypatch.setitem(modules, "distributed", None)
    with pytest.raises(UsageError, match="needs the package distributed"):
        DaskPool("tcp://127.0.0.1:1")


@pytest.mark.parametrize("address", ["bogus", "tcp://127.0.0.1", "foo://127.0.0.1:8786"])
def test_malformed_addresses_are_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    monkeypatch.delattr(distributed, "Client")  # one that cannot connect is hard to close
    with pytest.raises(UsageError, match=f"could not reach a Dask scheduler at '{address}': (missing|unknown)"):
        DaskPool(address)


@pytest.mark.parametrize("address", ["tcp://[::1]:8786", "tls://host:8786", "wss://host/path", "inproc://1/2/3"])
def test_addresses_are_passed_to_the_client(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    def refuse(called: str, **_options: object) -> None:
        raise OSError(f"nobody listens at {called}")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(UsageError, match=f"nobody listens at {re.escape(address)}"):
        DaskPool(address)
