"""What tests need from the machine: programs, libraries, instructions."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from tlx.diagnostics import UsageError
from tlx.llvm.openmp import openmp_library
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target

HANG_S: Final = 600
"""Seconds after which a process that a test waits for counts as hanging, however loaded the machine is."""


def require(tool: str) -> str:
    """The path of a program; without it the test is skipped, or fails where `CI` is set."""
    return find(tool) or missing(tool)


def find(tool: str) -> str | None:
    """The path of a program that a test can do without, if it is there; without it the test fails where `CI` is set."""
    path = shutil.which(tool)
    return missing(tool) if path is None and os.environ.get("CI") else path


def missing(tool: str) -> NoReturn:
    """Skip a test that lacks something, or fail it where `CI` is set."""
    message = f"{tool} is missing"
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message, allow_module_level=True)


def require_module(name: str) -> Any:
    """A Python package, for the top level of a test module, which is skipped without it, or fails where `CI` is set."""
    try:
        return import_module(name)
    except ImportError:
        missing(f"the Python package {name}")


def require_openmp() -> None:
    """Skip a test where no OpenMP library is installed, or fail where `CI` is set."""
    try:
        openmp_library()
    except UsageError:
        missing("an OpenMP library (libomp5 or libgomp1)")


def child_processes() -> set[int]:
    """The processes that this one has started and not waited for."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text(encoding="ascii").split()}


def kill(processes: set[int]) -> None:
    """End processes by a signal that they cannot catch, and wait until they have ended."""
    assert processes
    for process in processes:
        os.kill(process, signal.SIGKILL)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)


def quick(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Values of a parameter, of which `make test` takes the first ones and `make test-long` the others."""
    values = list(values)
    return [*values[:count], *(pytest.param(value, marks=pytest.mark.long) for value in values[count:])]


def quick_by_target(values: Iterable[Any], targets: Sequence[str], count: int = 1) -> list[Any]:
    """Values with targets: the first values with each target, for `make test`, and each of the others with one in turn.

    For properties that depend little on the target, such as those of the first stage.
    """
    values = list(values)
    size = len(targets)
    pairs = [(v, targets[(k + k // size) % size]) for k, v in enumerate(values) if k >= count]  # not only even seeds
    first = [pytest.param(value, target) for value in values[:count] for target in targets]
    return [*first, *(pytest.param(*pair, marks=pytest.mark.long) for pair in pairs)]


def runs(target: str) -> bool:
    """Whether this processor runs the code of a target."""
    return not missing_features(find_target(target), cpu_flags())


def require_processor(target: str) -> None:
    """Skip a test on a processor that does not run the code of a target."""
    if lacking := missing_features(find_target(target), cpu_flags()):
        pytest.skip(f"this processor has no {', '.join(lacking)}")
