"""Garbage collection is off inside the context manager and restored after it."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from tlx.ir.parser.module import without_collection


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_restored(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with without_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
        with pytest.raises(KeyError), without_collection():
            raise KeyError
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_no_collection_at_exit() -> None:
    program = "import gc; from tlx.cli import end_without_collection; end_without_collection()"
    program += "; gc.callbacks.append(lambda phase, _: print(phase)); x = []; x.append(x); del x; print(gc.isenabled())"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b"False\n"


def test_long_processes_collect_rarely() -> None:
    program = "import gc; from tlx.fuzz.worker import collect_rarely; collect_rarely(); found = []"
    program += "; gc.callbacks.append(lambda phase, _: found.append(phase))"
    program += "; kept = [[] for _ in range(100_000)]; print(gc.isenabled(), found)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b"True []\n"
