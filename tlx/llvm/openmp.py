"""OpenMP: the choice of threads, and the library that compiled modules in this process run them with.

A process should have one OpenMP library: two do not know of each other's threads. One that is loaded already, such as
PyTorch's, is taken; else LLVM's or GCC's, as installed. `TLX_OPENMP` names another.

GCC's library keeps the threads of a team for the next one. A process that is forked off has none of them, and would
wait for them forever: they are released before a fork, and the next team starts others.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path
from typing import Final, Literal

from tlx.diagnostics import UsageError

Threads = Literal["none", "openmp"]
THREADS: Final[tuple[Threads, ...]] = ("none", "openmp")
THREAD_CYCLES: Final = 10_000
"""Cycles of work that are worth a thread: starting a team and waiting for it takes 2 to 5 microseconds."""
VARIABLE: Final = "TLX_OPENMP"

_LOADED: Final = re.compile(r"(?m)\s(/\S*/lib(?:gomp|omp|iomp5)[-.][^/\s]*)$")
_INSTALLED: Final = ("libomp.so.5", "libomp.so", "libgomp.so.1", "libomp.dylib")
_MAPS: Final = Path("/proc/self/maps")
_PAUSE_HARD: Final = 2  # omp_pause_hard, OpenMP 5.0, section 3.2.44

_forked: Final[dict[str, ctypes.CDLL]] = {}
"""Libraries whose threads are released before a fork."""


def openmp_library() -> str:
    """Name or path of the OpenMP library to load.

    Raises:
        UsageError: None is installed.
    """
    chosen = os.environ.get(VARIABLE) or loaded_library(_maps()) or _installed()
    if chosen is None:
        raise UsageError(
            "threads=openmp needs an OpenMP library in this process, and none was found: install LLVM's (on Debian and "
            f"Ubuntu 'apt install libomp5') or GCC's ('libgomp1'), or name one by the environment variable {VARIABLE}"
        )
    return chosen


def prepare_for_forks(name: str) -> None:
    """Make sure that a library, which is going to be used, can start teams in forked processes."""
    try:
        found = ctypes.CDLL(name)
    except OSError:  # whoever loads it says so
        return
    keeps_threads = not hasattr(found, "__kmpc_fork_call") and hasattr(found, "omp_pause_resource_all")  # LLVM's do not
    if not keeps_threads or not hasattr(os, "register_at_fork") or name in _forked:
        return
    if not _forked:
        os.register_at_fork(before=_release_threads)
    _forked[name] = found


def _release_threads() -> None:
    for found in _forked.values():
        found.omp_pause_resource_all(_PAUSE_HARD)


def set_threads(count: int) -> None:
    """Have teams that this thread starts use that many threads, whatever OMP_NUM_THREADS says."""
    ctypes.CDLL(openmp_library()).omp_set_num_threads(count)


def loaded_library(maps: str) -> str | None:
    """Path of an OpenMP library in the text of a process's memory maps."""
    found = _LOADED.search(maps)
    return found[1] if found else None


def _maps() -> str:
    try:
        return _MAPS.read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux
        return ""


def _installed() -> str | None:
    return next((name for name in _candidates() if _loads(name)), None)


def _candidates() -> Iterator[str]:
    yield from _INSTALLED
    for name in ("omp", "gomp"):
        if found := find_library(name):  # asks other programs: last
            yield found


def _loads(name: str) -> bool:
    try:
        return bool(ctypes.CDLL(name))
    except OSError:
        return False
