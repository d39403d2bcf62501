"""Every register tile of a workload's product, beside the one that the cost model chooses.

The paper explores tile sizes M x N by hand and reports the best. Here all that fit the registers are compiled, checked
and timed alternately; a tile with the same speed as the chosen one in most rounds is a tie.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from tlx.bench.measure import OURS, PEAK, Bench
from tlx.bench.paper.tables import RUNS
from tlx.bench.report import Record, cell_name, facts_of, geometric_mean, markdown_table
from tlx.diagnostics import TlxError, UsageError
from tlx.lower.knobs import FixedKnobs, KnobOrigin, parse_knobs
from tlx.target.target import Target
from tlx.tuning.timing import interleaved
from tlx.tuning.workload import Workload

_ROUNDS: Final = 5
_TILE: Final = re.compile(r"\d+x\d+")
_LANE_BYTES: Final = 4


def measure(bench: Bench, work: Workload) -> dict[str, Any]:
    """The record of a workload: shares of the peak by tile, rows x columns, and of the chosen one.

    `tiles` is empty where the workload's code has no register tile to choose; `error` says why nothing was measured.
    """
    arrays = work.arrays()
    expected = work.expected(arrays) if work.expected is not None else None
    limit, _ = bench.limit(work)
    contestants = {PEAK: limit}
    record: dict[str, Any] = dict(zip(("row", "types", "size", "variant"), work.key, strict=True))
    try:
        contestants[OURS], _ = bench.kernel(work, arrays, expected)
    except TlxError as problem:
        return {**record, "tiles": {}, "chosen": None, "error": problem.message}
    for rows, columns in _tiles(bench.target):
        name = f"{rows}x{columns}"
        knobs = FixedKnobs(parse_knobs(f"tile={name}", KnobOrigin("--sweep")))
        try:
            contestants[name], _ = bench.kernel(work, arrays, expected, knobs)
        except UsageError:  # it does not fit
            continue
    timed = interleaved(contestants, min(bench.rounds, _ROUNDS), bench.core).rates
    tiles = {name: rates.share(timed[PEAK]) for name, rates in timed.items() if _TILE.fullmatch(name)}
    return {**record, "tiles": tiles, "chosen": timed[OURS].share(timed[PEAK]), "error": ""}


def _tiles(target: Target) -> Iterator[tuple[int, int]]:
    """All tiles that might fit the registers, which also hold an operand of each row or column."""
    unit = target.matrix
    lanes = target.vector_bytes // _LANE_BYTES
    if unit is not None:
        yield from ((16 * rows, 16 * columns) for rows in range(1, 5) for columns in range(1, 5))
        return
    for rows in range(1, target.registers):
        for vectors in range(1, target.registers // rows + 1):
            yield rows, vectors * lanes


def heading() -> str:
    """The column titles of lines."""
    return (
        f"{'target':8} {'work':7} {'types':5} {'size':12} {'variant':22} {'tiles':>5} {'chosen, of peak':>15} "
        f"{'best tile':>9} {'to chosen':>9}"
    )


def line(run: Record, cell: Record) -> str:
    """A workload: the number of tiles, the speed of the chosen one, the best tile and its speed."""
    key = f"{run['target']:8} {cell['row']:7} {cell['types']:5} {cell['size']:12} {cell['variant']:22}"
    if cell["error"] or not cell["tiles"]:
        return f"{key} {cell['error'] or 'no register tile to choose'}"
    best = _best(cell)
    return f"{key} {len(cell['tiles']):5} {cell['chosen']:15.1%} {best:>9} {cell['tiles'][best] / cell['chosen']:9.3f}"


def terminal_tables(report: Record) -> Iterator[str]:
    """The geometric mean of what the best tiles gain."""
    gains = [
        cell["tiles"][_best(cell)] / cell["chosen"]
        for run in report[RUNS]
        for cell in run["cells"]
        if cell["tiles"] and cell["chosen"]
    ]
    if mean := geometric_mean(gains):
        yield ""
        yield f"the best of all tiles has {mean:.3f} times the speed of the chosen one: geometric mean of {len(gains)}"


def markdown(report: Record) -> str:
    """A grid of shares of the peak for each workload, rows by columns of the tile."""
    parts = [facts_of({**report[RUNS][0], "cells": []})]
    for run in report[RUNS]:
        for cell in run["cells"]:
            if not cell["tiles"]:
                continue
            shares = {tuple(map(int, name.split("x"))): share for name, share in cell["tiles"].items()}
            columns = sorted({columns for _, columns in shares})
            rows = [
                [str(m), *(f"{shares[m, n]:.0%}" if (m, n) in shares else "" for n in columns)]
                for m in sorted({rows for rows, _ in shares})
            ]
            best = _best(cell)
            parts += [
                f"## {run['target']} {cell_name(cell)}",
                f"Chosen: {cell['chosen']:.1%} of the peak; best: {best}, {cell['tiles'][best]:.1%}.",
                "\n".join(markdown_table(["M \\ N", *map(str, columns)], rows)),
            ]
    return "\n\n".join(parts) + "\n"


def _best(cell: Record) -> str:
    return max(cell["tiles"], key=lambda name: cell["tiles"][name])
