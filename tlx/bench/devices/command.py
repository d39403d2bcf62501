"""`tlx bench --target=GPU`: the actions, and their tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from tlx.api import files
from tlx.bench.devices.measure import DeviceBench
from tlx.bench.devices.peers import PEER_NAMES, find_peers
from tlx.bench.devices.workloads import device_workloads
from tlx.bench.measure import OURS, PEAK, Cell
from tlx.bench.report import (
    Record,
    compare,
    geometric_mean,
    group_cells,
    markdown_table,
    peers_of,
    read,
    record,
    select_cells,
    write,
)
from tlx.bench.workloads import selected
from tlx.diagnostics import UsageError
from tlx.target.lookup import find_target
from tlx.tuning import machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from tlx.bench.settings import BenchSettings, ShowProgress, WorkloadSelection
    from tlx.target.target import Target
    from tlx.tuning.workload import Workload

    Echo = Callable[[str], object]

_FACTS: Final = ("machine", "target", "llvm", "date")


def is_device(name: str) -> bool:
    """Whether a target's code runs on a device."""
    return find_target(name).grid is not None


def works(choice: WorkloadSelection) -> list[Workload]:
    """The selected workloads of the table.

    Raises:
        UsageError: There is no such row, type, size or variant, or a file was given.
    """
    if choice.function is not None or choice.arguments:
        raise UsageError("--function and --args apply to a file of your own, which cannot be measured on a device")
    return selected(device_workloads(), choice.rows, choice.types, choice.sizes, choice.variants)


def show(choice: WorkloadSelection, echo: Echo) -> None:
    """List the workloads."""
    for work in works(choice):
        echo(work.name)


def run(choice: WorkloadSelection, setting: BenchSettings, echo: Echo, watch: ShowProgress) -> bool:
    """Measure, and print and write the results.

    Returns:
        Whether code was generated for all workloads and computes the right results.

    Raises:
        TlxError: A name is unknown, a file cannot be written, or no device answers.
    """
    unused = {"--plot": setting.plot, "--threads": setting.threads > 1, "--cpu": setting.cpu, "--save": setting.folder}
    for option, value in unused.items():
        if value:
            raise UsageError(f"measurements on a device do not take {option}")
    for path in (setting.report, setting.markdown):
        if path is not None:
            files.check_writable(path)
    old = read(setting.compare) if setting.compare is not None else None
    if setting.sources:
        raise UsageError("--from reads reports of CPUs; read those of devices by --compare")
    report = _measured(works(choice), find_target(setting.target), setting, echo, watch)
    _summarise(report["cells"], echo)
    if old is not None:
        compare(report["cells"], old["cells"], echo)
    if setting.report is not None:
        write(setting.report, report)
    if setting.markdown is not None:
        files.write_output(setting.markdown, markdown(report))
    return not any(cell["error"] for cell in report["cells"])


def _measured(
    works: Sequence[Workload], target: Target, setting: BenchSettings, echo: Echo, watch: ShowProgress
) -> Record:
    grid = target.grid
    assert grid is not None
    device = grid.find_device()
    peers, absent = find_peers(PEER_NAMES if setting.peers is None else setting.peers, device)
    llvm: Any = import_module("llvmlite.binding")
    facts: Record = {
        "machine": device.name,
        "threads": 1,
        "target": f"{target.name} {device.processor}",
        "rounds": setting.rounds,
        "llvm": f"{'.'.join(map(str, llvm.llvm_version_info))}, llvmlite {version('llvmlite')}",
        "peers": {peer.name: peer.version for peer in peers},
        "date": machine.today(),
    }
    for fact in _FACTS:
        echo(f"{fact + ':':9} {facts[fact]}")
    echo(f"{'peers:':9} {', '.join(f'{peer.name} {peer.version}' for peer in peers) or 'none'}")
    for name, why in absent.items():
        echo(f"left out: {name} ({why})")
    names = [peer.name for peer in peers]
    echo(f"\n{_heading(names)}")
    bench = DeviceBench(target, peers, setting.rounds, setting.seconds)
    cells: list[Record] = []
    with watch("workloads", len(works)) as step:
        for work in works:
            cell = bench.measure(work)
            cells.append(record(cell))
            for line in _lines(cell, names):
                echo(line)
            step(work.name)
            if setting.report is not None:  # an interrupted run keeps what it has measured
                write(setting.report, {**facts, "cells": cells})
    return {**facts, "cells": cells}


def _heading(peers: Sequence[str]) -> str:
    columns = " ".join(f"{'/ ' + name:>8}" for name in peers)
    return (
        f"{'work':11} {'types':10} {'size':16} {'variant':13} {'time':>9} {'rate':>8} {'':8} {'spread':>6} "
        f"{'/ copy':>7} {columns}"
    ).rstrip()


def _lines(cell: Cell, peers: Sequence[str]) -> Iterator[str]:
    """A workload: time, rate, share of the rate of a copy, ratios to the peers' rates, notes."""
    work, rates = cell.work, cell.rates
    ours, copy = rates.get(OURS), rates.get(PEAK)
    unit = {"GFLOP/s": "TFLOP/s", "GOP/s": "TOP/s", "GB/s": "TB/s"}[work.unit]
    time = (
        f"{_time(work.operations / ours.median * 1e-9):>9} {ours.median / 1e3:8.2f}" if ours else f"{'-':>9} {'-':>8}"
    )
    parts = [
        f"{work.row:11} {work.types:10} {work.size:16} {work.variant:13} {time} {unit:8}",
        f"{ours.spread:6.0%}" if ours else f"{'-':>6}",
        f"{ours.share(copy):7.2f}" if ours and copy else f"{'-':>7}",
        *(f"{ours.share(rates[name]):8.2f}" if ours and name in rates else f"{'-':>8}" for name in peers),
    ]
    yield " ".join(parts).rstrip()
    if cell.error:
        yield f"  not measured: {cell.error}"
    for name, note in cell.notes.items():
        yield f"  {name}: {note}"


def _time(seconds: float) -> str:
    """A time in three digits."""
    for unit, scale in (("us", 1e-6), ("ms", 1e-3)):
        if seconds < 1000 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def _summarise(cells: Sequence[Record], echo: Echo) -> None:
    """Print the geometric means of the ratios."""
    peers = peers_of(cells)
    echo("\ngeometric means          cells  / copy" + "".join(f"{'/ ' + peer:>10}" for peer in peers))
    for (row, types), own in group_cells(cells).items():
        columns = [_mean_share(own), *(_mean_ratio(own, peer) for peer in peers)]
        shown = "".join(
            f"{mean:{width}.2f}" if mean else f"{'-':>{width}}"
            for mean, width in zip(columns, (8, *[10] * len(peers)), strict=True)
        )
        echo(f"  {row:11} {types:10} {len(own):5}{shown}")


def _mean_share(cells: Sequence[Record]) -> float | None:
    shares = (cell["rates"][OURS].get("of_peak") for cell in cells if OURS in cell["rates"])
    return geometric_mean(share for share in shares if share)


def _mean_ratio(cells: Sequence[Record], peer: str) -> float | None:
    return geometric_mean(cell["to_peers"][peer] for cell in cells if peer in cell["to_peers"])


def markdown(report: Record) -> str:
    """The report as Markdown: a table for each row."""
    cells: list[Record] = report["cells"]
    facts = [f"- {fact}: {report[fact]}" for fact in _FACTS]
    facts.append("- peers: " + (", ".join(f"{name} {number}" for name, number in report["peers"].items()) or "none"))
    parts = ["\n".join(facts)]
    for row in dict.fromkeys(cell["row"] for cell in cells):
        parts += [f"## {row}", _table(select_cells(cells, ((row,), (), (), ())), list(report["peers"]))]
    return "\n\n".join(parts) + "\n"


def _table(cells: Sequence[Record], names: Sequence[str]) -> str:
    peers = peers_of(cells, names)
    is_bound = any(PEAK in cell["rates"] for cell in cells)
    unit = {"GFLOP/s": "TFLOP/s", "GOP/s": "TOP/s", "GB/s": "TB/s"}
    heads = ["types", "size", "variant", "time", "rate", *(["/ copy"] if is_bound else []), *(f"/ {p}" for p in peers)]
    rows: list[list[str]] = []
    for cell in cells:
        ours = cell["rates"].get(OURS)
        if ours is None:
            rows.append([cell["types"], cell["size"], cell["variant"], "", cell["error"], *[""] * (len(heads) - 5)])
            continue
        rate = ours["median"]
        units = unit.get(cell["unit"], cell["unit"])
        rows.append(
            [
                *(cell["types"], cell["size"], cell["variant"]),
                *(_time(cell["operations"] / rate * 1e-9), f"{rate / 1e3:.3g} {units}"),
                *([f"{ours['of_peak']:.2f}" if "of_peak" in ours else ""] if is_bound else []),
                *(f"{cell['to_peers'][peer]:.2f}" if peer in cell["to_peers"] else "" for peer in peers),
            ]
        )
    return "\n".join(markdown_table(heads, rows))
