"""A report as lines on a terminal and as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlx.bench.measure import OURS, PEAK, Cell
from tlx.bench.report import (
    Record,
    cell_name,
    count_disturbed,
    geometric_mean,
    group_cells,
    median_rate,
    peers_of,
    share_of_peak,
    verdict,
)
from tlx.bench.timing import FEWEST_QUIET_ROUNDS


def terminal_heading(peers: Sequence[str]) -> str:
    """The titles of the columns."""
    columns = " ".join(f"{name:>8}" for name in peers)
    return (
        f"{'':48} G/s, median                  of peak          to best peer     of peak\n"
        f"{'work':11} {'types':10} {'size':14} {'variant':11} {'peak':>7} {'ours':>7} {'spread':>6} {'quiet':>6} "
        f"{'ours':>7} {'said':>7} {'ours':>7} {'':8} {columns}"
    ).rstrip()


def terminal_lines(cell: Cell, peers: Sequence[str]) -> Iterator[str]:
    """One workload: speeds in 10^9 operations a second, shares of the peak, the ratio to the best peer; remarks."""
    work, rates = cell.work, cell.rates
    top, ours, best = rates[PEAK], rates.get(OURS), cell.best_peer
    to_best = f"{ours.share(rates[best]):7.2f} {best:8}" if ours and best else f"{'-':>7} {best or '':8}"
    parts = [
        f"{work.row:11} {work.types:10} {work.size:14} {work.variant:11}",
        f"{top.median:7.1f}",
        f"{ours.median:7.1f} {ours.spread:6.0%}" if ours else f"{'-':>7} {'-':>6}",
        f"{f'{cell.quiet}/{cell.rounds}' if cell.quiet is not None else '-':>6}",
        f"{ours.share(top):7.1%}" if ours else f"{'-':>7}",
        f"{cell.predicted:7.0%}" if cell.predicted is not None else f"{'-':>7}",
        to_best,
        *[f"{rates[name].share(top):8.1%}" if name in rates else f"{'-':>8}" for name in peers],
    ]
    yield " ".join(parts).rstrip()
    if cell.error:
        yield f"  not measured: {cell.error}"
    for name, note in cell.notes.items():
        if name not in rates:
            yield f"  {name}: {note}"


_FACTS = ("machine", "cpu", "threads", "target", "features", "llvm", "date")


def markdown_tables(report: Record) -> str:
    """The whole report; peers' columns are our speed as a multiple of theirs."""
    cells: list[Record] = report["cells"]
    lanes: int = report["lanes"]
    names = list(report["peers"])
    parts = [_facts(report), _summary(cells, lanes, names)]
    for row in dict.fromkeys(cell["row"] for cell in cells):
        parts += [f"## {row}", _cells([cell for cell in cells if cell["row"] == row], lanes, names)]
    return "\n\n".join(parts) + "\n"


def _facts(report: Record) -> str:
    lines = [f"{fact}: {str(report[fact]).replace(',', ', ')}" for fact in _FACTS if fact in report]
    lines.append("peers: " + (", ".join(f"{peer} {number}" for peer, number in report["peers"].items()) or "none"))
    if count := count_disturbed(report["cells"]):
        lines.append(f"fewer than {FEWEST_QUIET_ROUNDS} quiet rounds: {count} cells")
    return "\n".join(f"- {line}" for line in lines)


def _summary(cells: Sequence[Record], lanes: int, names: Sequence[str]) -> str:
    peers = peers_of(cells, names)
    heads = ["row", "types", "cells", "at bar", "of peak", *(f"/ {peer}" for peer in peers), "lowest", "of its bar"]
    rows: list[list[str]] = []
    for (row, types), own in [*group_cells(cells).items(), (("all", ""), list(cells))]:
        judged = [(found, cell) for cell in own if (found := verdict(cell, lanes))]
        of_peak = geometric_mean(part for cell in own if (part := share_of_peak(cell)))
        lowest = min(judged, key=lambda pair: pair[0].reached, default=None)
        ratios = [geometric_mean(c["to_peers"][peer] for c in own if peer in c["to_peers"]) for peer in peers]
        rows.append(
            [
                *(row, types, str(len(own)), str(sum(found.met for found, _ in judged)), _percent(of_peak)),
                *map(_ratio, ratios),
                *([cell_name(lowest[1]), _ratio(lowest[0].reached)] if lowest else ["", ""]),
            ]
        )
    return "\n".join(_table(heads, rows))


def _cells(cells: Sequence[Record], lanes: int, names: Sequence[str]) -> str:
    peers = peers_of(cells, names)
    ratios = [f"/ {peer}" for peer in peers]
    heads = ["types", "size", "variant", "peak", "ours", "of peak", "predicted", *ratios, "bar", "of bar"]
    rows = [
        [*_own(cell), *(_ratio(cell["to_peers"].get(peer)) for peer in peers), *_judged(cell, lanes)] for cell in cells
    ]
    units = ", ".join(dict.fromkeys(cell["unit"] for cell in cells))
    return f"Speeds in {units}.\n\n" + "\n".join(_table(heads, rows))


def _own(cell: Record) -> list[str]:
    speeds = [_speed(cell, PEAK), _speed(cell, OURS)]
    return [
        cell["types"],
        cell["size"],
        cell["variant"],
        *speeds,
        _percent(share_of_peak(cell)),
        _percent(cell["predicted"]),
    ]


def _judged(cell: Record, lanes: int) -> list[str]:
    found = verdict(cell, lanes)
    if found is None:
        return ["", cell["error"] or ("not measured" if share_of_peak(cell) is None else "no peer")]
    return [_percent(found.bar), "met" if found.met else f"**{_ratio(found.reached)}**"]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for line in (heads, ["---"] * len(heads), *rows):
        yield "| " + " | ".join(word.replace("|", "\\|") for word in line) + " |"


def _speed(cell: Record, who: str) -> str:
    speed = median_rate(cell, who)
    return f"{speed:.4g}" if speed is not None else ""


def _percent(part: float | None) -> str:
    return f"{part:.0%}" if part is not None and part >= 0.1 else f"{part:.1%}" if part is not None else ""


def _ratio(ratio: float | None) -> str:
    return f"{ratio:.2f}" if ratio else ""
