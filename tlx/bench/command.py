"""What `tlx bench` does."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tlx import files
from tlx.bench import machine
from tlx.diagnostics import UsageError
from tlx.files import reason
from tlx.knobs import Answers, no_answers
from tlx.native import cpu_flags, version_for

if TYPE_CHECKING:
    from tlx.bench.workload import Workload

Echo = Callable[[str], object]
_NOISY: Final = 0.15


@dataclass(frozen=True)
class Choice:
    """Which workloads; empty means all.

    Attributes:
        rows: Rows of the table, or one file with a function of the user's own.
        function: The function of that file.
        arguments: What it takes, NAME=VALUE, where the file does not say.
        reading: What the file is written in.
    """

    rows: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    function: str | None = None
    arguments: tuple[str, ...] = ()
    reading: files.Reading = files.AS_NAMED


@dataclass(frozen=True)
class Setting:
    """How to measure, as the command line says it.

    Attributes:
        peers: Names of the peers; None means all that are found.
        peers_path: Where they are; None means where TLX_PEERS says.
        cpu: Processor to stay on; None means the last one.
        report: File that everything is written to.
        plot: File that it is drawn in.
        compare: Earlier report to compare with.
        sources: Reports, or folders of them, to take in place of measuring.
        markdown: File that tables are written to.
        knobs: What products' kernels are asked for.
        folder: Where the workloads' texts are written to.
    """

    target: str = "native"
    peers: tuple[str, ...] | None = None
    peers_path: str | None = None
    rounds: int = 11
    cpu: int | None = None
    threads: int = 1
    report: str | None = None
    plot: str | None = None
    compare: str | None = None
    sources: tuple[str, ...] = ()
    markdown: str | None = None
    knobs: Answers = no_answers
    folder: str | None = None


def show(choice: Choice, echo: Echo) -> None:
    """List the workloads."""
    for work in _works(choice):
        echo(work.name)


def run(choice: Choice, setting: Setting, echo: Echo) -> bool:
    """Measure, or read what was measured, and print, write and draw it.

    Returns:
        Whether there is generated code for all workloads, with the right results.

    Raises:
        TlxError: A name is unknown, a file cannot be read or written, or this machine cannot run the target's code.
    """
    machine.prepare_libraries(cpu_flags(), setting.threads)  # before anything imports numpy
    from tlx.bench import report as reports
    from tlx.bench.compare import compare
    from tlx.bench.summary import summarise

    if setting.plot is not None:
        from tlx.bench import plot

        plot.check(setting.plot)
    for path in (setting.report, setting.markdown, setting.plot):
        if path is not None:
            files.check_writable(path)
    old = reports.read(setting.compare) if setting.compare is not None else None
    report = _kept(choice, reports.merged(setting.sources)) if setting.sources else _measured(choice, setting, echo)
    summarise(report["cells"], report["lanes"], echo)
    if old is not None:
        compare(report["cells"], old["cells"], echo)
    if setting.report is not None:
        reports.write(setting.report, report)
    if setting.markdown is not None:
        from tlx.bench.markdown import tables

        files.write(setting.markdown, tables(report))
    if setting.plot is not None:
        from tlx.bench import plot

        plot.draw(setting.plot, report)
    return not any(cell["error"] for cell in report["cells"])


def _kept(choice: Choice, report: dict[str, Any]) -> dict[str, Any]:
    """A report with the chosen cells only."""
    from tlx.bench.report import chosen

    if choice.function is not None or choice.arguments:
        raise UsageError("--function and --args are about a file of your own, --from about what was measured")
    return {**report, "cells": chosen(report["cells"], (choice.rows, choice.types, choice.sizes, choice.variants))}


def _works(choice: Choice) -> list[Workload]:
    if any(Path(row).suffix for row in choice.rows) or choice.function is not None:
        from tlx.bench import user

        if len(choice.rows) != 1:
            raise UsageError("name one file, or rows of the table")
        if choice.types or choice.sizes or choice.variants:
            raise UsageError("--types, --sizes and --variants choose from the table; a file has none")
        return [user.workload(choice.rows[0], choice.function, user.arguments(choice.arguments), choice.reading)]
    from tlx.bench import catalogue

    if choice.arguments:
        raise UsageError("--args are those of a function of your own; name its file")
    return catalogue.chosen(choice.rows, choice.types, choice.sizes, choice.variants)


def _measured(choice: Choice, setting: Setting, echo: Echo) -> dict[str, Any]:
    from tlx.bench import measure, report, streams, table, timing
    from tlx.bench.peers import finding
    from tlx.bench.peers.base import Places
    from tlx.bench.quiet import Core

    works = _works(choice)
    folder = _made(setting.folder)
    timing.use_clock(setting.threads)
    target = measure.runnable(setting.target)
    runs = version_for(target, cpu_flags())
    cpus = _pinned(setting.cpu, setting.threads)
    places = Places.of(setting.peers_path)
    peers, absent = finding.find(finding.NAMES if setting.peers is None else setting.peers, places)
    facts: dict[str, Any] = {
        "machine": machine.processor(),
        "cpu": ",".join(map(str, cpus)),
        "threads": setting.threads,
        "target": target.name,
        "features": ",".join(runs.features),
        "rounds": setting.rounds,
        "lanes": runs.vector_bytes // 4,
        "llvm": f"llvmlite {version('llvmlite')}",
        "peers": {peer.name: peer.version for peer in peers},
        "date": machine.today(),
    }
    facts["memory"] = {name: round(speed, 1) for name, speed in streams.bandwidths(runs).items()}
    _introduce(facts, absent, echo)
    names = [peer.name for peer in peers]
    core = Core() if setting.threads == 1 else None  # threads of ours may share one
    bench = measure.Bench(target, peers, setting.rounds, setting.threads, folder, setting.knobs, core)
    echo("\n" + table.heading(names))
    cells: list[dict[str, Any]] = []
    widest = 0.0
    for work in works:
        cell = bench.measure(work)
        cells.append(report.record(cell))
        facts["core"] = core.best if core else None
        widest = max(widest, cell.rates[measure.PEAK].spread)
        for line in table.lines(cell, names):
            echo(line)
        if setting.report is not None:  # what is there is kept if the rest is interrupted
            report.write(setting.report, {**facts, "cells": cells})
    if widest > _NOISY:
        echo(f"\nThe peak itself varied by up to {widest:.0%}: something else is using the machine.")
    return {**facts, "cells": cells}


def scale(choice: Choice, target: str, counts: Sequence[int], rounds: int, echo: Echo) -> None:
    """Measure several threads against one.

    Raises:
        TlxError: A name is unknown, this machine cannot run the target's code, or a result is wrong.
    """
    from tlx.bench import measure
    from tlx.bench.scaling import print_scaling

    works = _works(choice)
    found = measure.runnable(target)
    allowed = len(os.sched_getaffinity(0))
    for name, value in (("machine", machine.processor()), ("target", found.name), ("date", machine.today())):
        echo(f"{name + ':':9} {value}")
    if max(counts) > allowed:
        echo(f"{max(counts)} threads share the processors of this process, of which there are {allowed}")
    echo("")
    print_scaling(works, found, counts, rounds, echo)


def _introduce(facts: dict[str, Any], absent: dict[str, str], echo: Echo) -> None:
    peers = ", ".join(f"{name} {number}" for name, number in facts["peers"].items()) or "none"
    memory = ", ".join(f"{name} {speed} GB/s" for name, speed in facts["memory"].items())
    for name, value in (facts | {"peers": peers, "memory": memory}).items():
        if name not in {"lanes", "rounds"}:
            echo(f"{name + ':':9} {value}")
    for name, why in absent.items():
        echo(f"left out: {name} ({why})")


def _pinned(cpu: int | None, threads: int) -> list[int]:
    try:
        return machine.pin(cpu, threads)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _made(folder: str | None) -> Path | None:
    if folder is None:
        return None
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"could not create folder '{folder}': {reason(error)}") from None
    return path
