"""Random programs on AMX itself: asked for by name, on a machine that has it (`make test-amx`).

Nothing but Python, llvmlite, numpy, click, pytest and ml_dtypes is needed:

    PYTHONPATH=. python3 -m pytest -m amx_hardware tests/semantics -s

The compiled modules ask the kernel for tile permission themselves, in their constructors.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from tests.semantics.floats import products
from tests.semantics.harness import RUN_ONLY, Job, Report, run
from tests.semantics.test_floats import AMX_TYPES, check
from tlx.native import cpu_flags, missing
from tlx.pipeline import Options
from tlx.target import find

pytestmark = pytest.mark.amx_hardware

_ARCH_PRCTL: Final = 158
_REQUEST_PERMISSION: Final = 0x1023
_TILE_DATA: Final = 18
JOBS = [
    *(Job("tiles-any", "amx", 15, part, (RUN_ONLY,)) for part in range(12)),
    *(Job("tiles-large", "amx", 5, part, (RUN_ONLY,)) for part in range(8)),
    *(Job("shapes", "amx", 3, part, (RUN_ONLY,)) for part in range(4)),
    *(Job("small", "amx", 5, part) for part in range(4)),
]


@pytest.fixture(autouse=True)
def machine_with_amx() -> None:
    """Fail, rather than skip, where there is no AMX: these tests are only run on purpose."""
    lacking = missing(find("amx"), cpu_flags())
    if lacking:
        pytest.fail(f"this machine cannot run these tests: its processor has no {', '.join(lacking)}", pytrace=False)


def test_random_programs(capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    report = Report()
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1)) as pool:
        for part in pool.map(run, JOBS):
            report.add(part)
    seconds = time.monotonic() - begun
    with capsys.disabled():
        sys.stdout.write(
            f"\nAMX: {report.programs} programs ({report.functions} functions), {len(report.failures)} mismatches, "
            f"{report.tiled} kernels with tdp* instructions, {seconds:.0f} s\n"
        )
    if report.failures:
        pytest.fail("\n\n".join(report.failures), pytrace=False)
    assert report.programs == sum(len(job.seeds) for job in JOBS)
    assert report.tiled > 0


def test_permission_is_granted() -> None:
    """What the modules' constructors ask for."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA)
    assert result == 0, f"the kernel refuses tiles: {os.strerror(ctypes.get_errno())}"


def test_floats() -> None:
    check(products(AMX_TYPES), find("amx"), Options())
