"""Results of the paper's workloads: JSON, and tables in text and Markdown, as percentages of libxsmm's speed.

A report has a run for each target and number of threads, which is a report of `tlx bench` by itself:

    {"paper": [{"target": "avx2", "threads": 1, ..., "cells": [...]}, ...]}

The tables are those of the paper: geometric means over numbers of threads by size and type, and over sizes by number of
threads. The expected shares are the best of the paper on that kind of machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tlx.bench.measure import OURS
from tlx.bench.paper.workloads import BRGEMM, FUSED, MLP, PRODUCT, UNFUSED, split_variant
from tlx.bench.report import (
    Record,
    cell_key,
    facts_of,
    geometric_mean,
    markdown_table,
    median_rate,
    peers_of,
    read_json,
    share_of_peak,
)
from tlx.diagnostics import UsageError
from tlx.target.lookup import find_target

RUNS: Final = "paper"
REFERENCE: Final = "libxsmm"
_FLOAT: Final = 0.97
_TILES: Final = 1.0
_CONVERTED_FLAT: Final = 1.2
Row = list[str]


def read(paths: Sequence[str]) -> Record:
    """Merge reports; of a cell in several, the last counts.

    Raises:
        UsageError: A file cannot be read or is not such a report, or the reports are of different machines.
    """
    files = [str(f) for path in paths for f in (sorted(Path(path).glob("*.json")) if Path(path).is_dir() else [path])]
    if not files:
        raise UsageError("the folder has no reports")
    runs: dict[tuple[str, int], Record] = {}
    for path in files:
        for run in read_json(path, RUNS, "tlx bench paper --json")[RUNS]:
            if runs and run["machine"] != (first := next(iter(runs.values())))["machine"]:
                raise UsageError(f"'{path}' is for machine {run['machine']}, '{files[0]}' for {first['machine']}")
            key = run["target"], run["threads"]
            old = {cell_key(cell): cell for cell in runs[key]["cells"]} if key in runs else {}
            cells = old | {cell_key(cell): cell for cell in run["cells"]}
            runs[key] = {**run, "cells": list(cells.values())}
    return {RUNS: list(runs.values())}


def select_cells(report: Record, chosen: Callable[[Record], bool]) -> Record:
    """The report, reduced to some cells.

    Raises:
        UsageError: It has none of them.
    """
    runs = [{**run, "cells": [cell for cell in run["cells"] if chosen(cell)]} for run in report[RUNS]]
    runs = [run for run in runs if run["cells"]]
    if not runs:
        raise UsageError("the report has no such cells")
    return {**report, RUNS: runs}


def to_reference(cell: Record) -> float | None:
    """Our speed as a share of libxsmm's; None if it was not measured."""
    return cell.get("to_peers", {}).get(REFERENCE)


def expectation(target: str, cell: Record) -> float:
    """The least share of libxsmm's speed that is expected of a cell measured on a target of this name."""
    if cell["types"] == "f32":
        return _FLOAT
    machine = find_target(target)
    if any(dot.lhs[0] == "bfloat" for dot in machine.usable_matrix_dots):
        return _TILES
    flat = "vnni" not in cell["variant"].split()
    converted = all(dot.lhs[0] != "bfloat" for dot in machine.usable_dots)
    return _CONVERTED_FLAT if flat and converted else _FLOAT


def shortfalls(report: Record) -> Iterator[tuple[Record, Record, float]]:
    """Runs and cells that are slower than expected, with the expected share."""
    for run in report[RUNS]:
        for cell in run["cells"]:
            share, expected = to_reference(cell), expectation(run["target"], cell)
            if share is not None and share < expected:
                yield run, cell, expected


def heading() -> str:
    """The column titles of lines."""
    return (
        f"{'target':8} {'threads':>7} {'work':7} {'types':5} {'size':12} {'variant':22} {'peak':>7} {'ours':>7} "
        f"{'of peak':>7} {'of libxsmm':>10} {'best peer':>10}"
    )


def line(run: Record, cell: Record) -> str:
    """A cell: speeds in 10^9 operations a second, shares of the peak and of the peers' speeds."""
    key = f"{run['target']:8} {run['threads']:7} {cell['row']:7} {cell['types']:5} {cell['size']:12} "
    if cell["error"]:
        return f"{key}{cell['variant']:22} not measured: {cell['error']}"
    speeds = " ".join(f"{median_rate(cell, who) or 0:7.1f}" for who in ("peak", OURS))
    best = cell["best_peer"]
    to_best = f" ({cell['to_best']:.0%} of {best})" if best not in {None, REFERENCE} else ""
    shares = f"{share_of_peak(cell) or 0:7.1%} {_percent(to_reference(cell)):>10}"
    return f"{key}{cell['variant']:22} {speeds} {shares}{to_best}"


def terminal_tables(report: Record) -> Iterator[str]:
    """The tables as aligned text, then the cells below what is expected."""
    for title, heads, rows in _tables(report):
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        yield ""
        yield title
        for row in (heads, *rows):
            yield "  " + "  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    yield from _verdict(report)


def markdown(report: Record) -> str:
    """The tables in Markdown, and every cell."""
    parts = [facts_of({**report[RUNS][0], "cells": []}), "\n".join(_verdict(report))]
    for title, heads, rows in _tables(report):
        parts += [f"## {title[0].upper()}{title[1:]}", "\n".join(markdown_table(heads, rows))]
    peers = peers_of([cell for run in report[RUNS] for cell in run["cells"]])
    heads = ["target", "threads", "work", "types", "size", "variant", "peak", "ours", "of peak"]
    heads += [f"of {peer}" for peer in peers]
    rows = [
        [
            *(run["target"], str(run["threads"]), *cell_key(cell)),
            *(f"{speed:.4g}" if (speed := median_rate(cell, who)) else "" for who in ("peak", OURS)),
            *(_percent(share_of_peak(cell)), *(_percent(cell["to_peers"].get(peer)) for peer in peers)),
        ]
        for run in report[RUNS]
        for cell in run["cells"]
    ]
    parts += ["## Every cell", "\n".join(markdown_table(heads, rows))]
    return "\n\n".join(parts) + "\n"


def _tables(report: Record) -> Iterator[tuple[str, Row, list[Row]]]:
    """Titles, heads and rows of the tables that have any rows."""
    yield from filter(
        lambda table: table[2], (_by_size(report), _by_listing(report), _by_threads(report), _of_fusion(report))
    )


def _by_size(report: Record) -> tuple[str, Row, list[Row]]:
    """Tables 2 and 3 of the paper."""
    cells = [(run["target"], cell) for run, cell in _layers(report)]
    heads, rows = _means_by_size(cells, sorted(_unique(cell["size"] for _, cell in cells), key=_first_number))
    if rows:
        columns = _columns(cells)
        rows.append(["geometric mean", *(_mean(c for t, c in cells if (t, kind(c)) == column) for column in columns)])
    return "layers, per cent of libxsmm: geometric mean over numbers of threads", ["size", *heads], rows


def _by_listing(report: Record) -> tuple[str, Row, list[Row]]:
    cells = [(run["target"], cell) for run in report[RUNS] for cell in run["cells"] if cell["row"] == BRGEMM]
    cells = [(target, cell) for target, cell in cells if to_reference(cell)]
    heads, rows = _means_by_size(cells, _unique(cell["size"] for _, cell in cells))
    title = "batch-reduce products, per cent of libxsmm: geometric mean over numbers of threads"
    return title, ["batch x M x N x K", *heads], rows


def _means_by_size(cells: Sequence[tuple[str, Record]], sizes: Sequence[str]) -> tuple[Row, list[Row]]:
    """Heads and rows of means, a column for each target and kind, a row for each size; cells are with their targets."""
    columns = _columns(cells)
    rows = [
        [size, *(_mean(c for t, c in cells if (t, kind(c)) == column and c["size"] == size) for column in columns)]
        for size in sizes
    ]
    return [" ".join(column) for column in columns], rows


def _columns(cells: Sequence[tuple[str, Record]]) -> list[tuple[str, str]]:
    return _unique((target, kind(cell)) for target, cell in cells)


def _by_threads(report: Record) -> tuple[str, Row, list[Row]]:
    """Figures 5 to 7 of the paper."""
    cells = [((run["target"], kind(cell)), run["threads"], cell) for run, cell in _layers(report)]
    counts = sorted({count for _, count, _ in cells})
    rows = [
        [*line, *(_mean(cell for own, at, cell in cells if (own, at) == (line, count)) for count in counts)]
        for line in _unique(line for line, _, _ in cells)
    ]
    title = "layers, per cent of libxsmm by number of threads: geometric mean over sizes"
    return title, ["target", "types", *map(str, counts)], rows


def _of_fusion(report: Record) -> tuple[str, Row, list[Row]]:
    """What fused bias and ReLU cost and gain, as ratios of the shares of the peak."""
    rows: list[Row] = []
    shares: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for run in report[RUNS]:
        for key, parts in _epilogues(run).items():
            if not {FUSED, UNFUSED} <= set(parts):
                continue
            gains = shares.setdefault((run["target"], *key), {UNFUSED: [], PRODUCT: []})
            for other in gains.keys() & parts.keys():
                gains[other].append(parts[FUSED] / parts[other])
    for key, gains in shares.items():
        rows.append([*key, *(f"{mean:.3f}" if (mean := geometric_mean(gains[o])) else "" for o in (UNFUSED, PRODUCT))])
    title = "bias and ReLU: speed of the fused layer, relative to separate passes and to the product alone"
    return title, ["target", "types", "size", "to separate passes", "to the product"], rows


def _epilogues(run: Record) -> dict[tuple[str, str], dict[str, float]]:
    """Our shares of the peak by epilogue, for each type with layout and size."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for cell in run["cells"]:
        share = share_of_peak(cell)
        if cell["row"] == MLP and share:
            found.setdefault((kind(cell), cell["size"]), {})[split_variant(cell["variant"])[1]] = share
    return found


def _verdict(report: Record) -> Iterator[str]:
    """The geometric mean of all ratios, and the cells below what is expected."""
    ratios = [share for run in report[RUNS] for cell in run["cells"] if (share := to_reference(cell))]
    mean = geometric_mean(ratios)
    if mean is None:
        yield f"{REFERENCE} was not measured, so there are no ratios to it"
        return
    low = list(shortfalls(report))
    reached = f"{len(ratios) - len(low)} of {len(ratios)} cells reach what is expected"
    yield f"{reached}; geometric mean of the ratios to {REFERENCE} {mean:.3f}"
    for run, cell, expected in low:
        name = " ".join((run["target"], f"{run['threads']} threads", *cell_key(cell)))
        yield f"- below: {name}: {_percent(to_reference(cell))}, expected {_percent(expected)}"


def _layers(report: Record) -> Iterator[tuple[Record, Record]]:
    """Fused layers that libxsmm has, too; in products where there are none."""
    cells = [(run, c) for run in report[RUNS] for c in run["cells"] if c["row"] == MLP and to_reference(c)]
    fused = [(run, cell) for run, cell in cells if split_variant(cell["variant"])[1] == FUSED]
    yield from fused or cells


def kind(cell: Record) -> str:
    """Types and layout, such as `bf16 blocked vnni`."""
    return f"{cell['types']} {split_variant(cell['variant'])[0]}"


def _mean(cells: Iterable[Record]) -> str:
    return _percent(geometric_mean(share for cell in cells if (share := to_reference(cell))))


def _percent(share: float | None) -> str:
    return f"{share:.0%}" if share else ""


def _first_number(size: str) -> int:
    return int(size.partition("x")[0])


def _unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))
