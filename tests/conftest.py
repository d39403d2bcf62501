"""Settings of all tests: few garbage collections, and a skip for tests without an OpenMP library."""

from collections.abc import Generator

import pytest

from tests.tools import require_openmp
from tlx.diagnostics import UsageError
from tlx.fuzz.worker import collect_rarely

collect_rarely()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Treat a missing OpenMP library, of which TLX says so itself, as any tool that is missing."""
    try:
        return (yield)
    except UsageError as error:
        if "needs an OpenMP library" in str(error):
            require_openmp()
        raise
