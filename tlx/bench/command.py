"""The actions of `tlx bench`: list the workloads, measure them, measure thread scaling."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tlx.api import files
from tlx.bench.devices import command as devices
from tlx.bench.models import command as models
from tlx.bench.paper import command as paper
from tlx.bench.settings import BenchSettings, ShowProgress, WorkloadSelection, without_progress
from tlx.diagnostics import UsageError
from tlx.target.host import cpu_flags
from tlx.tuning import machine

if TYPE_CHECKING:
    from tlx.tuning.workload import Workload

Echo = Callable[[str], object]
_NOISY: Final = 0.15


def show(choice: WorkloadSelection, echo: Echo, target: str = "native") -> None:
    """List the workloads, which are others for devices, the models, or the paper's workloads."""
    if choice.rows[:1] == (models.ROW,):
        models.show(choice, echo)
        return
    if choice.rows[:1] == (paper.ROW,):
        paper.show(choice, echo)
        return
    if devices.is_device(target):
        devices.show(choice, echo)
        return
    for work in _works(choice):
        echo(work.name)


def run(choice: WorkloadSelection, setting: BenchSettings, echo: Echo, watch: ShowProgress = without_progress) -> bool:
    """Measure, or read earlier reports, and print, write and plot the results.

    Args:
        choice: What to measure.
        setting: How to measure.
        echo: Prints a line.
        watch: Shows progress.

    Returns:
        Whether code was generated for all workloads and computes the right results.

    Raises:
        TlxError: A name is unknown, a file cannot be read or written, or this machine cannot run the target's code.
    """
    if choice.rows[:1] == (models.ROW,):
        return models.run(choice, setting, echo, watch)
    if choice.rows[:1] == (paper.ROW,):
        return paper.run(choice, setting, echo, watch)
    if devices.is_device(setting.target):
        return devices.run(choice, setting, echo, watch)
    machine.prepare_libraries(cpu_flags(), setting.threads)  # before anything imports numpy
    from tlx.bench import report as reports
    from tlx.bench.report import compare, summarise

    if setting.plot is not None:
        from tlx.bench import plot

        plot.pyplot(setting.plot)
    for path in (setting.report, setting.markdown, setting.plot):
        if path is not None:
            files.check_writable(path)
    old = reports.read(setting.compare) if setting.compare is not None else None
    report = (
        _select_from_report(choice, reports.merge_reports(setting.sources))
        if setting.sources
        else _measured(choice, setting, echo, watch)
    )
    summarise(report["cells"], report["lanes"], echo)
    if old is not None:
        compare(report["cells"], old["cells"], echo)
    if setting.report is not None:
        reports.write(setting.report, report)
    if setting.markdown is not None:
        from tlx.bench.report import markdown_tables

        files.write_output(setting.markdown, markdown_tables(report))
    if setting.plot is not None:
        from tlx.bench import plot

        plot.draw(setting.plot, report)
    return not any(cell["error"] for cell in report["cells"])


def _select_from_report(choice: WorkloadSelection, report: dict[str, Any]) -> dict[str, Any]:
    """The report, reduced to the selected cells."""
    from tlx.bench.report import select_cells

    if choice.function is not None or choice.arguments:
        raise UsageError("--function and --args apply to a file of your own and cannot be combined with --from")
    return {
        **report,
        "cells": select_cells(report["cells"], (choice.rows, choice.types, choice.sizes, choice.variants)),
    }


def _works(choice: WorkloadSelection) -> list[Workload]:
    if any(Path(row).suffix for row in choice.rows) or choice.function is not None:
        from tlx.bench import user_workload

        if len(choice.rows) != 1:
            raise UsageError("give either one file or rows of the table")
        if choice.types or choice.sizes or choice.variants:
            raise UsageError("--types, --sizes and --variants select from the table; they do not apply to a file")
        return [
            user_workload.user_workload(
                choice.rows[0], choice.function, user_workload.parse_arguments(choice.arguments), choice.input_format
            )
        ]
    from tlx.bench import workloads

    if choice.arguments:
        raise UsageError("--args applies to a function of your own: give its file")
    return workloads.select_workloads(choice.rows, choice.types, choice.sizes, choice.variants)


def _measured(choice: WorkloadSelection, setting: BenchSettings, echo: Echo, watch: ShowProgress) -> dict[str, Any]:
    from tlx.bench import measure, report
    from tlx.bench.measure import open_session

    works = _works(choice)
    session = open_session(setting)
    bench, facts = session.bench, session.facts
    _introduce(facts, session.absent, echo)
    names = [peer.name for peer in bench.peers]
    echo("\n" + report.terminal_heading(names))
    cells: list[dict[str, Any]] = []
    widest = 0.0
    with watch("workloads", len(works)) as step:
        for work in works:
            cell = bench.measure(work)
            cells.append(report.record(cell))
            facts["core"] = bench.core.best if bench.core else None
            widest = max(widest, cell.rates[measure.PEAK].spread)
            for line in report.terminal_lines(cell, names):
                echo(line)
            step(work.name)
            if setting.report is not None:  # an interrupted run keeps what it has measured
                report.write(setting.report, {**facts, "cells": cells})
    if widest > _NOISY:
        echo(f"\nThe peak itself varied by up to {widest:.0%}: other programs are using the machine.")
    return {**facts, "cells": cells}


def scale(choice: WorkloadSelection, target: str, counts: Sequence[int], rounds: int, echo: Echo) -> None:
    """Measure the speedup of several threads over one.

    Raises:
        TlxError: A name is unknown, this machine cannot run the target's code, or a result is wrong.
    """
    from tlx.bench import measure
    from tlx.bench.scaling import print_scaling

    if devices.is_device(target):
        raise UsageError(f"--scaling measures threads, and {target} has none")
    works = _works(choice)
    runnable = measure.runnable(target)
    allowed = len(os.sched_getaffinity(0))
    for name, value in (("machine", machine.processor()), ("target", runnable.name), ("date", machine.today())):
        echo(f"{name + ':':9} {value}")
    if max(counts) > allowed:
        echo(f"{max(counts)} threads share the {allowed} processors that this process may use")
    echo("")
    print_scaling(works, runnable, counts, rounds, echo)


def _introduce(facts: dict[str, Any], absent: dict[str, str], echo: Echo) -> None:
    peers = ", ".join(f"{name} {number}" for name, number in facts["peers"].items()) or "none"
    memory = ", ".join(f"{name} {speed} GB/s" for name, speed in facts["memory"].items())
    for name, value in (facts | {"peers": peers, "memory": memory}).items():
        if name not in {"lanes", "rounds"}:
            echo(f"{name + ':':9} {value}")
    for name, why in absent.items():
        echo(f"left out: {name} ({why})")
