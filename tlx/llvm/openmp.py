"""OpenMP: the number of threads, and the library that compiled modules in this process call.

A process should have one OpenMP library, as two do not coordinate their threads. A library that is already loaded, such
as PyTorch's, is used, else an installed one of LLVM or GCC. `TLX_OPENMP` names another.

GCC's library keeps the threads of a team for the next one. A forked process has none of them and would wait for them
forever, so they are released before a fork, and the next team starts new ones.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from tlx.diagnostics import UsageError

Threads = Literal["none", "openmp"]
THREADS: Final[tuple[Threads, ...]] = ("none", "openmp")
THREAD_CYCLES: Final = 10_000
"""Least work of a thread in cycles: to start a team and to wait for it takes 2 to 5 microseconds."""
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
            "threads=openmp needs an OpenMP library, and none was found: install LLVM's (on Debian and Ubuntu "
            f"'apt install libomp5') or GCC's ('libgomp1'), or name one in the environment variable {VARIABLE}"
        )
    return chosen


def prepare_for_forks(name: str) -> None:
    """Make sure that a library can start teams in forked processes; call this before using the library."""
    try:
        library = ctypes.CDLL(name)
    except OSError:  # reported when it is loaded for use
        return
    is_llvm = hasattr(library, "__kmpc_fork_call")  # which keeps no threads across a fork
    keeps_threads = not is_llvm and hasattr(library, "omp_pause_resource_all")
    if not keeps_threads or not hasattr(os, "register_at_fork") or name in _forked:
        return
    if not _forked:
        os.register_at_fork(before=_release_threads)
    _forked[name] = library


def _release_threads() -> None:
    for library in _forked.values():
        library.omp_pause_resource_all(_PAUSE_HARD)


def set_threads(count: int) -> None:
    """Set the size of teams that this thread starts, overriding OMP_NUM_THREADS."""
    ctypes.CDLL(openmp_library()).omp_set_num_threads(count)


def loaded_library(maps: str) -> str | None:
    """Path of the OpenMP library in the text of a process's memory maps."""
    match = _LOADED.search(maps)
    return match[1] if match else None


def _maps() -> str:
    try:
        return _MAPS.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return ""


def _installed() -> str | None:
    return next((name for name in _candidates() if _loads(name)), None)


def _candidates() -> Iterator[str]:
    yield from _INSTALLED
    from ctypes.util import find_library

    for name in ("omp", "gomp"):
        if library := find_library(name):  # last, as it runs other programs
            yield library


def _loads(name: str) -> bool:
    try:
        return bool(ctypes.CDLL(name))
    except OSError:
        return False
