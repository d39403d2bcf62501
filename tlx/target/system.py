"""What the system reports about the machine that this process runs on, independent of targets."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import mmap
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Final

from tlx.target.discovery import host_modules

_CPUINFO: Final = Path("/proc/cpuinfo")
_CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

_FEATURES: Final = frozenset({"flags", "features", "isa", "hart isa", "cpu"})
_CLOCKS: Final = frozenset({"cpu mhz", "clock", "bogomips"})
_POSITIONS: Final = frozenset(
    {"processor", "hart", "apicid", "initial apicid", "physical id", "core id", "siblings", "cpu cores"}
)
_VARYING: Final = _CLOCKS | _POSITIONS
"""Lines of /proc/cpuinfo that differ among equal processors, or change while they run."""


@cache
def machine_facts() -> tuple[str, ...] | None:
    """All that code for this machine depends on, as lines; None where /proc/cpuinfo names neither features nor model.

    They determine the value of every target of `tlx.legalize`, `native` among them, and what it costs here: the
    architecture, the processors without their clocks and numbers, the features that the system does not list, and the
    caches.
    """
    try:
        lines = {line for line in cpuinfo().splitlines() if line.strip() and _name(line) not in _VARYING}
    except OSError:
        return None
    if not any(_name(line) in _FEATURES for line in lines):
        return None
    unlisted = [sorted(importlib.import_module(name).detect_features()) for name in host_modules(platform.machine())]
    caches = f"caches: {cache_entries()}, of {cache_sharers()}"
    return (f"{sys.platform} {platform.machine()}", *sorted(lines), f"unlisted features: {unlisted}", caches)


def _name(line: str) -> str:
    """What a line of /proc/cpuinfo says: `flags`, `model name`."""
    return line.partition(":")[0].strip().lower()


def cpuinfo() -> str:
    """The text of /proc/cpuinfo.

    Raises:
        OSError: The system has none.
    """
    return _CPUINFO.read_text(encoding="utf-8", errors="replace")


def cache_sharers() -> int:
    """Processors that share the last-level cache, "0-7,16-23" being 16; 1 where the system does not report it."""
    with contextlib.suppress(OSError, ValueError):
        ranges = (_CACHES / "index3" / "shared_cpu_list").read_text().strip().split(",")
        ends = [[int(end) for end in range_.split("-")] for range_ in ranges]
        return sum(end[-1] - end[0] + 1 for end in ends)
    return 1


def cache_entries() -> list[tuple[str, int, int]]:
    """(kind, level, bytes) of each cache of the first processor."""
    entries: list[tuple[str, int, int]] = []
    for entry in sorted(_CACHES.glob("index*")):
        with contextlib.suppress(OSError, ValueError, KeyError):
            kind, level, size = ((entry / name).read_text().strip() for name in ("type", "level", "size"))
            entries.append((kind, int(level), int(size[:-1]) * _UNITS[size[-1]] if size[-1] in _UNITS else int(size)))
    return entries


def call_machine_code(code: bytes, *arguments: int) -> int:
    """Call a function given by its machine code, with the integers that it takes, and return its integer.

    The page is written before it becomes executable, upon which Linux flushes the caches of instructions.

    Raises:
        OSError: The system does not execute such code.
    """
    page = mmap.mmap(-1, mmap.PAGESIZE)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    library = ctypes.CDLL(None, use_errno=True)
    if library.mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise OSError(ctypes.get_errno(), "the system does not execute code of this process")
    types = [ctypes.c_uint64] * len(arguments)
    return ctypes.CFUNCTYPE(ctypes.c_uint64, *types)(address)(*arguments)
