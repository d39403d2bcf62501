"""The action of `tlx bench paper`: measure the paper's workloads or read earlier reports; print, write, plot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from tlx.api import files
from tlx.diagnostics import TlxError, UsageError
from tlx.target.host import cpu_flags, missing_features
from tlx.target.installed import targets
from tlx.target.lookup import find_target

if TYPE_CHECKING:
    from tlx.bench.paper.worker import Job
    from tlx.bench.settings import BenchSettings, ShowProgress, WorkloadSelection
    from tlx.tuning.workload import Workload

Echo = Callable[[str], object]
ROW: Final = "paper"
# The first line whose feature the target has: libxsmm, oneDNN, MKL, PyTorch.
_VARIABLES: Final = ("LIBXSMM_TARGET", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "ATEN_CPU_CAPABILITY")
_LIMITS: Final = {
    "amx-tile": ("spr", "AVX512_CORE_AMX", "AVX512_E4", "avx512"),
    "avx512bf16": ("cpx", "AVX512_CORE_BF16", "AVX512_E3", "avx512"),
    "avx512f": ("clx", "AVX512_CORE_VNNI", "AVX512_E1", "avx512"),
    "avxneconvert": ("srf", "AVX2_VNNI_2", "AVX2_E1", "avx2"),
    "avx2": ("hsw", "AVX2", "AVX2", "avx2"),
}


def show(choice: WorkloadSelection, echo: Echo) -> None:
    """List the workloads."""
    for work in _selected(choice):
        echo(work.name)


def run(choice: WorkloadSelection, setting: BenchSettings, echo: Echo, watch: ShowProgress) -> bool:
    """Measure, or read earlier reports, and print, write and plot the results.

    Returns:
        Whether code was generated for all workloads and computes the right results.

    Raises:
        TlxError: A name is unknown, a file cannot be read or written, or this machine cannot run a target's code.
    """
    if setting.plot is not None:
        from tlx.bench import plot

        plot.pyplot(setting.plot)
    for path in (setting.report, setting.markdown, setting.plot):
        if path is not None:
            files.check_writable(path)
    from tlx.bench import report as reports
    from tlx.bench.paper import sweep, tables

    works = _selected(choice)
    if setting.sources:
        keys = {work.key for work in works}
        report = tables.select_cells(tables.read(setting.sources), lambda cell: reports.cell_key(cell) in keys)
    else:
        report = _measured(works, setting, echo, watch)
    swept = any("tiles" in cell for run in report[tables.RUNS] for cell in run["cells"])
    results = sweep if swept else tables
    for line in results.terminal_tables(report):
        echo(line)
    if setting.report is not None:
        reports.write(setting.report, report)
    if setting.markdown is not None:
        files.write_output(setting.markdown, results.markdown(report))
    if setting.plot is not None:
        from tlx.bench.paper import plots

        plots.draw(setting.plot, report)
    return not any(cell["error"] for run in report[tables.RUNS] for cell in run["cells"])


def _selected(choice: WorkloadSelection) -> list[Workload]:
    from tlx.bench.paper import workloads

    if choice.input_format != files.FORMAT_BY_NAME:
        raise UsageError("options of input files do not apply to the paper's workloads")
    if choice.function is not None or choice.arguments:
        raise UsageError("--function and --args apply to a file of your own")
    return workloads.select(choice.rows[1:], choice.types, choice.sizes, choice.variants)


def _measured(works: list[Workload], setting: BenchSettings, echo: Echo, watch: ShowProgress) -> dict[str, Any]:
    from tlx.bench import report as reports
    from tlx.bench.paper import sweep, tables
    from tlx.bench.paper.worker import Job

    names, counts = _targets(setting.target), _counts(setting)
    sizes = [int(work.size) for work in works if work.size.isdecimal()]
    runs: list[dict[str, Any]] = []
    said: set[str] = set()
    results = sweep if setting.sweep else tables
    peers = list(setting.peers) if setting.peers is not None else None
    with watch("paper", len(names) * len(counts) * len(works)) as step:
        for name, threads in product(names, counts):
            keys = [work.key for work in works]
            how = (peers, setting.peers_path, setting.rounds, setting.cpu, setting.sweep, sizes)
            for message in _messages(Job(keys, name, threads, *how)):
                if "facts" in message:
                    runs.append({**message["facts"], "cells": []})
                    _introduce(runs, message["absent"], said, results.heading(), echo)
                    continue
                cell = message["cell"]
                runs[-1]["cells"].append(cell)
                echo(results.line(runs[-1], cell))
                step(f"{name}, {threads} threads: {reports.cell_name(cell)}")
                if setting.report is not None:  # an interrupted run keeps what it has measured
                    reports.write(setting.report, {tables.RUNS: runs})
    return {tables.RUNS: runs}


def _introduce(runs: list[dict[str, Any]], absent: dict[str, str], said: set[str], heading: str, echo: Echo) -> None:
    """The machine, once; the libraries of a target; those that are missing, once; the first run's heading."""
    facts = runs[-1]
    if len(runs) == 1:
        for name in ("machine", "llvm", "date"):
            echo(f"{name + ':':9} {facts[name]}")
    libraries = ", ".join(f"{name} {number}" for name, number in facts["peers"].items()) or "none"
    if (text := f"{facts['target']}: {libraries}") not in said:
        said.add(text)
        echo(f"{'peers:':9} {text}")
    for name, why in absent.items():
        if name not in said:
            said.add(name)
            echo(f"left out: {name} ({why})")
    if len(runs) == 1:
        echo("\n" + heading)


def _targets(text: str) -> list[str]:
    """The targets to measure: those named, or all for this architecture that this machine runs.

    Raises:
        UsageError: There is none of a name, or this machine cannot run its code.
    """
    from tlx.bench import measure

    if not text:
        flags = cpu_flags()
        named = sorted(targets().values(), key=lambda target: target.rank)
        return [t.name for t in named if t.triples and t.is_for(os.uname().machine) and not missing_features(t, flags)]
    names = [name.strip() for name in text.split(",") if name.strip()]
    for position, name in enumerate(names):
        measure.runnable(name)
        if name in names[:position]:
            raise UsageError(f"target '{name}' is named twice")
    return names


def _counts(setting: BenchSettings) -> tuple[int, ...]:
    """Numbers of threads: those given, or 1, 2, 4 up to all processors; one for sweeps."""
    allowed = len(os.sched_getaffinity(0))
    if setting.counts:
        if max(setting.counts) > allowed:
            raise UsageError(f"{max(setting.counts)} threads need as many processors; there are {allowed}")
        return setting.counts
    if setting.sweep:
        return (1,)
    powers = [1 << exponent for exponent in range(allowed.bit_length())]
    return tuple(dict.fromkeys([*powers, allowed]))


def _messages(job: Job) -> Iterator[dict[str, Any]]:
    """The messages of a process that measures a job; libraries are kept to the target's instructions.

    Raises:
        TlxError: The process failed.
    """
    environment = os.environ | library_limits(find_target(job.target).features)
    command = [sys.executable, "-m", "tlx.bench.paper.worker"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(job.text())
            process.stdin.close()
            for text in process.stdout:
                message: dict[str, Any] = json.loads(text)
                if "failed" in message:
                    raise UsageError(message["failed"])
                yield message
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise TlxError(
            f"the process that measures {job.target} on {job.threads} threads ended with {process.returncode}"
        )


def library_limits(features: Collection[str]) -> dict[str, str]:
    """Environment variables that keep other libraries to the instructions of a target.

    The libraries read them when they are loaded, so a process measures one target. Limits are upper bounds: a library
    without kernels for them uses older instructions.

    Args:
        features: The target's, as `+avx2`.

    Returns:
        The variables and their values; none for machines without such variables.
    """
    for feature, values in _LIMITS.items():
        if f"+{feature}" in features:
            return dict(zip(_VARIABLES, values, strict=True))
    return {}
