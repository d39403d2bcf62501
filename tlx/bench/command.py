"""What `tlx bench` does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tlx.bench import machine
from tlx.diagnostics import UsageError
from tlx.files import reason
from tlx.native import cpu_flags

Echo = Callable[[str], object]


@dataclass(frozen=True)
class Choice:
    """Which workloads; empty means all."""

    rows: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """How to measure, as the command line says it.

    Attributes:
        peers: Names of the peers; None means all that are found.
        peers_path: Where they are; None means where TLX_PEERS says.
        report: File that everything is written to.
    """

    target: str = "native"
    peers: tuple[str, ...] | None = None
    peers_path: str | None = None
    rounds: int = 11
    cpu: int | None = None
    report: str | None = None


def show(choice: Choice, echo: Echo) -> None:
    """List the workloads."""
    from tlx.bench import catalogue

    for work in catalogue.chosen(choice.rows, choice.types, choice.sizes, choice.variants):
        echo(work.name)


def run(choice: Choice, setting: Setting, echo: Echo) -> None:
    """Measure and print.

    Raises:
        TlxError: A name is unknown, this machine cannot run the target's code, or a result is wrong.
    """
    machine.prepare_libraries(cpu_flags())  # before anything imports numpy
    from tlx.bench import catalogue, measure, table
    from tlx.bench.peers import finding
    from tlx.bench.peers.base import Places

    works = catalogue.chosen(choice.rows, choice.types, choice.sizes, choice.variants)
    target = measure.runnable(setting.target)
    cpu = _pinned(setting.cpu)
    places = Places.of(setting.peers_path)
    peers, absent = finding.find(finding.NAMES if setting.peers is None else setting.peers, places)
    facts = {
        "machine": machine.processor(),
        "cpu": cpu,
        "target": target.name,
        "features": ",".join(target.features),
        "llvm": f"llvmlite {version('llvmlite')}",
        "peers": {peer.name: peer.version for peer in peers},
        "date": machine.today(),
    }
    _introduce(facts | {"peers": ", ".join(f"{peer.name} {peer.version}" for peer in peers) or "none"}, absent, echo)
    names = [peer.name for peer in peers]
    bench = measure.Bench(target, peers, setting.rounds)
    echo("\n" + table.heading(names))
    cells: list[measure.Cell] = []
    for work in works:
        cells.append(bench.measure(work))
        echo(table.line(cells[-1], names))
        if cells[-1].error:
            echo(f"  not measured: {cells[-1].error}")
        for name, note in cells[-1].notes.items():
            if "wrong" in note:
                echo(f"  {name}: {note}")
        if setting.report is not None:
            _write(setting.report, {**facts, "cells": [measure.record(cell) for cell in cells]})


def _introduce(facts: dict[str, Any], absent: dict[str, str], echo: Echo) -> None:
    for name, value in facts.items():
        echo(f"{name + ':':9} {value}")
    for name, why in absent.items():
        echo(f"left out: {name} ({why})")


def _pinned(cpu: int | None) -> int:
    try:
        return machine.pin(cpu)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _write(path: str, report: dict[str, Any]) -> None:
    try:
        Path(path).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"could not open output file '{path}': {reason(error)}") from None
