"""Settings of all tests: few garbage collections, processors as they were, and a skip without an OpenMP library."""

import os
from collections.abc import Generator, Iterator
from typing import Final

import pytest

from tests.support.tools import require_openmp
from tlx.diagnostics import UsageError
from tlx.fuzz.worker import collect_rarely

collect_rarely()

_OPENMP_VARIABLES: Final = ("OMP_PLACES", "OMP_PROC_BIND", "KMP_BLOCKTIME")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Treat a missing OpenMP library, of which TLX says so itself, as any tool that is missing."""
    try:
        return (yield)
    except UsageError as error:
        if "needs an OpenMP library" in str(error):
            require_openmp()
        raise


@pytest.fixture(autouse=True)
def _keep_processors() -> Iterator[None]:
    """Undo what `tlx bench` does to its own process: it keeps to one processor, and pins the threads of OpenMP."""
    environment = {name: os.environ.get(name) for name in _OPENMP_VARIABLES}
    processors = os.sched_getaffinity(0)
    yield
    if os.sched_getaffinity(0) != processors:
        os.sched_setaffinity(0, processors)
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
