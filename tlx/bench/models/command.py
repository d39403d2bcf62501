"""The action of `tlx bench models`: measure models or read earlier reports; print, write and plot the results."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tlx.api import files
from tlx.bench.models.workloads import ModelWorkload, select_models
from tlx.diagnostics import UsageError
from tlx.target.host import cpu_flags, version_for
from tlx.tuning import machine

if TYPE_CHECKING:
    from tlx.bench.settings import BenchSettings, ShowProgress, WorkloadSelection

Echo = Callable[[str], object]
ROW: Final = "models"


def show(choice: WorkloadSelection, echo: Echo) -> None:
    """List the models."""
    for model in _selected(choice):
        echo(model.name)


def run(choice: WorkloadSelection, setting: BenchSettings, echo: Echo, watch: ShowProgress) -> bool:
    """Measure, or read earlier reports, and print, write and plot the results.

    Returns:
        Whether TLX compiled all models, and computed what their origins compute.

    Raises:
        TlxError: A name is unknown, a file cannot be read or written, or this machine cannot run the target's code.
    """
    machine.prepare_libraries(cpu_flags(), setting.threads)  # before anything imports numpy
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if setting.plot is not None:
        from tlx.bench import plot

        plot.pyplot(setting.plot)
    for path in (setting.report, setting.markdown, setting.plot):
        if path is not None:
            files.check_writable(path)
    from tlx.bench import report as reports
    from tlx.bench.models import tables

    report = _read(choice, setting.sources) if setting.sources else _measured(choice, setting, echo, watch)
    if not report[tables.CELLS]:
        raise UsageError("the reports have no such models")
    for line in tables.terminal_table(report):
        echo(line)
    if setting.report is not None:
        reports.write(setting.report, report)
    if setting.markdown is not None:
        files.write_output(setting.markdown, tables.markdown(report))
    if setting.plot is not None:
        from tlx.bench.models import bars

        bars.draw(setting.plot, report)
    return not any(cell["error"] for cell in report[tables.CELLS])


def _read(choice: WorkloadSelection, sources: Sequence[str]) -> dict[str, Any]:
    from tlx.bench.models import tables

    report = tables.read(sources)
    selection = (choice.rows[1:], choice.types, choice.sizes)
    return {**report, tables.CELLS: tables.select_records(report[tables.CELLS], selection)}


def _selected(choice: WorkloadSelection) -> list[ModelWorkload]:
    if choice.variants:
        raise UsageError("models have no variants")
    if choice.input_format != files.FORMAT_BY_NAME:
        raise UsageError("options of input files do not apply to models")
    if choice.function is not None or choice.arguments:
        raise UsageError("--function and --args apply to a file of your own")
    return select_models(choice.rows[1:], choice.types, choice.sizes)


def _measured(choice: WorkloadSelection, setting: BenchSettings, echo: Echo, watch: ShowProgress) -> dict[str, Any]:
    from tlx.bench import measure
    from tlx.bench import report as reports
    from tlx.bench.models import tables
    from tlx.bench.models.libraries import LIBRARIES, Library
    from tlx.bench.models.measure import ModelBench
    from tlx.bench.peers.base import MissingError
    from tlx.tuning import timing

    models = _selected(choice)
    target = measure.runnable(setting.target)
    runnable = version_for(target, cpu_flags())
    cpus = machine.pin(setting.cpu, setting.threads)  # before libraries count processors
    timing.use_clock(setting.threads, counts_workers=True)
    libraries: list[Library] = []
    versions: dict[str, str] = {}
    absent: dict[str, str] = {}
    for name in LIBRARIES if setting.peers is None else setting.peers:
        if name not in LIBRARIES:
            raise UsageError(f"unknown library '{name}'; models run in {', '.join(LIBRARIES)}")
        try:
            versions[name] = LIBRARIES[name].version
            libraries.append(LIBRARIES[name])
        except MissingError as reason:
            absent[name] = str(reason)
    facts = setting.facts(target.name, runnable, cpus, versions)
    for name in ("machine", "cpu", "threads", "target", "date"):
        echo(f"{name + ':':9} {facts[name]}")
    echo("peers:    " + (", ".join(f"{name} {number}" for name, number in versions.items()) or "none"))
    for name, why in absent.items():
        echo(f"left out: {name} ({why})")
    bench = ModelBench(setting.target, libraries, setting.rounds, setting.seconds, setting.threads)
    cells: list[dict[str, Any]] = []
    with watch("models", len(models)) as step:
        for model in models:
            cells.append(tables.record(bench.measure(model)))
            step(model.name)
            if not sys.stderr.isatty():
                echo(tables.progress_line(cells[-1]))
            if setting.report is not None:  # an interrupted run keeps what it has measured
                reports.write(setting.report, {**facts, tables.CELLS: cells})
    return {**facts, tables.CELLS: cells}
