"""A report as tables in Markdown: one that sums up, then one with every cell of a row of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlx.bench.bars import verdict
from tlx.bench.measure import OURS, PEAK
from tlx.bench.quiet import ENOUGH
from tlx.bench.report import Record, disturbed, geometric_mean, groups, median, name, peers_of, share

_FACTS = ("machine", "cpu", "threads", "target", "features", "llvm", "date")


def tables(report: Record) -> str:
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
    if count := disturbed(report["cells"]):
        lines.append(f"fewer than {ENOUGH} quiet rounds: {count} cells")
    return "\n".join(f"- {line}" for line in lines)


def _summary(cells: Sequence[Record], lanes: int, names: Sequence[str]) -> str:
    peers = peers_of(cells, names)
    heads = ["row", "types", "cells", "at bar", "of peak", *(f"/ {peer}" for peer in peers), "lowest", "of its bar"]
    rows: list[list[str]] = []
    for (row, types), own in [*groups(cells).items(), (("all", ""), list(cells))]:
        judged = [(found, cell) for cell in own if (found := verdict(cell, lanes))]
        of_peak = geometric_mean(part for cell in own if (part := share(cell)))
        lowest = min(judged, key=lambda pair: pair[0].reached, default=None)
        ratios = [geometric_mean(c["to_peers"][peer] for c in own if peer in c["to_peers"]) for peer in peers]
        rows.append(
            [
                *(row, types, str(len(own)), str(sum(found.met for found, _ in judged)), _percent(of_peak)),
                *map(_ratio, ratios),
                *([name(lowest[1]), _ratio(lowest[0].reached)] if lowest else ["", ""]),
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
    return [cell["types"], cell["size"], cell["variant"], *speeds, _percent(share(cell)), _percent(cell["predicted"])]


def _judged(cell: Record, lanes: int) -> list[str]:
    found = verdict(cell, lanes)
    if found is None:
        return ["", cell["error"] or ("not measured" if share(cell) is None else "no peer")]
    return [_percent(found.bar), "met" if found.met else f"**{_ratio(found.reached)}**"]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for line in (heads, ["---"] * len(heads), *rows):
        yield "| " + " | ".join(word.replace("|", "\\|") for word in line) + " |"


def _speed(cell: Record, who: str) -> str:
    speed = median(cell, who)
    return f"{speed:.4g}" if speed is not None else ""


def _percent(part: float | None) -> str:
    return f"{part:.0%}" if part is not None and part >= 0.1 else f"{part:.1%}" if part is not None else ""


def _ratio(ratio: float | None) -> str:
    return f"{ratio:.2f}" if ratio else ""
