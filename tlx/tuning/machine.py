"""The machine that measurements run on: its processor, pinning, and the settings of numpy's BLAS."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
from pathlib import Path

from tlx.diagnostics import UsageError


def prepare_libraries(flags: frozenset[str], threads: int = 1) -> None:
    """Have libraries use a number of threads, and OpenBLAS its best kernels for this machine.

    OpenBLAS selects AVX2 kernels on AMD's AVX-512 machines by default, and the environment may set something worse.
    It reads these variables when it is loaded, possibly on the import of numpy.
    """
    os.environ.pop("OPENBLAS_L2_SIZE", None)
    os.environ.pop("OPENBLAS_CORETYPE", None)
    if "avx512vl" in flags:
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(threads)


def library_threads() -> int:
    """The number of threads that `prepare_libraries` has set."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    return int(text) if text.isdecimal() and int(text) else 1


def processors_for(cpu: int | None, threads: int = 1) -> list[int]:
    """A processor for each thread: `cpu` first, by default the last one.

    Raises:
        UsageError: There is no such processor, or there are fewer than threads.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if cpu is not None and cpu not in allowed:
        raise UsageError(f"there is no processor {cpu} here, only {', '.join(map(str, allowed))}")
    if threads > len(allowed):
        raise UsageError(f"{threads} threads need as many processors; there are {len(allowed)}")
    first = cpu if cpu is not None else allowed[-1]
    return [first, *[other for other in reversed(allowed) if other != first]][:threads]


def pin(cpu: int | None, threads: int = 1) -> list[int]:
    """Pin the process to one processor, or to as many as there are threads; returns their numbers.

    Raises:
        UsageError: As `processors_for`.
    """
    processors = processors_for(cpu, threads)
    os.sched_setaffinity(0, processors)
    return processors


def processor() -> str:
    """The processor's name."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    fields = dict(re.findall(r"(?m)^(model name|cpu family|model|stepping)\s*: (.*)$", text))
    numbers = "/".join(fields.get(name, "?") for name in ("cpu family", "model", "stepping"))
    return f"{fields.get('model name', platform.processor())} (family/model/stepping {numbers})"


def today() -> str:
    """The current date and time in UTC."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
