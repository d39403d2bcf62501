"""Random programs of plain vectors on other machines, on guarded memory under an emulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.emulation import GENERIC, Machine
from tests.support.tools import quick
from tlx.fuzz.campaign import MIXED_PROFILES, check_on
from tlx.fuzz.worker import Request
from tlx.fuzz.worker_pool import Worker

LEFT_OUT = ("qemu-ppc64", "qemu-hexagon")
"""Power without VSX, on which Linux makes subnormal floats zeros, and Hexagon, for which there is no `libm`."""
MACHINES = [m for m in GENERIC if not m.features and m.emulator.split()[0] not in LEFT_OUT]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """A worker process for all programs."""
    worker = Worker()
    yield worker
    worker.close()


@pytest.mark.parametrize("seed", quick(range(12), 2))
@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_random_programs(worker: Worker, machine: Machine, seed: int) -> None:
    machine.require()
    check = check_on(machine.target, seed, emulator=machine.emulator)
    outcome = worker.check(Request(MIXED_PROFILES[seed % len(MIXED_PROFILES)], seed, check))
    assert outcome.kind == "done", outcome.message


def test_unoptimised_program_for_which_global_isel_takes_minutes(worker: Worker) -> None:
    """LLVM's own choice for AArch64 at -O0."""
    machine = Machine("neon", "qemu-aarch64 -cpu max")
    machine.require()
    check = replace(check_on(machine.target, 120, emulator=machine.emulator), evaluate=False)
    assert check.opt_level == 0
    outcome = worker.check(Request("any", 120, check))
    assert outcome.kind == "done", outcome.message
