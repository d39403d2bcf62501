"""Reports of a run: JSON, and tables in text and Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from tlx.api import files
from tlx.api.files import os_error_text
from tlx.bench import workloads
from tlx.bench.measure import OURS, PEAK, Cell
from tlx.diagnostics import UsageError
from tlx.tuning.timing import FEWEST_QUIET_ROUNDS, QUIET_RATIO, Rates


def terminal_heading(peers: Sequence[str]) -> str:
    """The column titles."""
    columns = " ".join(f"{name:>8}" for name in peers)
    return (
        f"{'':48} G/s, median                  of peak          to best peer     of peak\n"
        f"{'work':11} {'types':10} {'size':14} {'variant':11} {'peak':>7} {'ours':>7} {'spread':>6} {'quiet':>6} "
        f"{'ours':>7} {'said':>7} {'ours':>7} {'':8} {columns}"
    ).rstrip()


def terminal_lines(cell: Cell, peers: Sequence[str]) -> Iterator[str]:
    """A workload: speeds in 10^9 operations a second, shares of the peak, ratio to the best peer, notes."""
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
    """The whole report; a peer's column has our speed as a multiple of the peer's."""
    cells: list[Record] = report["cells"]
    lanes: int = report["lanes"]
    names = list(report["peers"])
    parts = [facts_of(report), _summary(cells, lanes, names)]
    for row in dict.fromkeys(cell["row"] for cell in cells):
        parts += [f"## {row}", _cells([cell for cell in cells if cell["row"] == row], lanes, names)]
    return "\n\n".join(parts) + "\n"


def facts_of(report: Record) -> str:
    """Machine, target, versions and date, as a list in Markdown."""
    lines = [f"{fact}: {str(report[fact]).replace(',', ', ')}" for fact in _FACTS if fact in report]
    lines.append("peers: " + (", ".join(f"{peer} {number}" for peer, number in report["peers"].items()) or "none"))
    if count := count_disturbed(report.get("cells", [])):
        lines.append(f"fewer than {FEWEST_QUIET_ROUNDS} quiet rounds: {count} cells")
    return "\n".join(f"- {line}" for line in lines)


def _summary(cells: Sequence[Record], lanes: int, names: Sequence[str]) -> str:
    peers = peers_of(cells, names)
    heads = ["row", "types", "cells", "at bar", "of peak", *(f"/ {peer}" for peer in peers), "lowest", "of its bar"]
    rows: list[list[str]] = []
    for (row, types), own in [*group_cells(cells).items(), (("all", ""), list(cells))]:
        judged = [(bound, cell) for cell in own if (bound := verdict(cell, lanes))]
        of_peak = geometric_mean(part for cell in own if (part := share_of_peak(cell)))
        lowest = min(judged, key=lambda pair: pair[0].reached, default=None)
        ratios = [geometric_mean(c["to_peers"][peer] for c in own if peer in c["to_peers"]) for peer in peers]
        rows.append(
            [
                *(row, types, str(len(own)), str(sum(bound.met for bound, _ in judged)), _percent(of_peak)),
                *map(_ratio, ratios),
                *([cell_name(lowest[1]), _ratio(lowest[0].reached)] if lowest else ["", ""]),
            ]
        )
    return "\n".join(markdown_table(heads, rows))


def _cells(cells: Sequence[Record], lanes: int, names: Sequence[str]) -> str:
    peers = peers_of(cells, names)
    ratios = [f"/ {peer}" for peer in peers]
    heads = ["types", "size", "variant", "peak", "ours", "of peak", "predicted", *ratios, "bar", "of bar"]
    rows = [
        [*_own(cell), *(_ratio(cell["to_peers"].get(peer)) for peer in peers), *_verdict_cells(cell, lanes)]
        for cell in cells
    ]
    units = ", ".join(dict.fromkeys(cell["unit"] for cell in cells))
    return f"Speeds in {units}.\n\n" + "\n".join(markdown_table(heads, rows))


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


def _verdict_cells(cell: Record, lanes: int) -> list[str]:
    bound = verdict(cell, lanes)
    if bound is None:
        return ["", cell["error"] or ("not measured" if share_of_peak(cell) is None else "no peer")]
    return [_percent(bound.bar), "met" if bound.met else f"**{_ratio(bound.reached)}**"]


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table."""
    for line in (heads, ["---"] * len(heads), *rows):
        yield "| " + " | ".join(word.replace("|", "\\|") for word in line) + " |"


def _speed(cell: Record, who: str) -> str:
    speed = median_rate(cell, who)
    return f"{speed:.4g}" if speed is not None else ""


def _percent(part: float | None) -> str:
    return f"{part:.0%}" if part is not None and part >= 0.1 else f"{part:.1%}" if part is not None else ""


def _ratio(ratio: float | None) -> str:
    return f"{ratio:.2f}" if ratio else ""


Record = dict[str, Any]
KEY: Final = ("row", "types", "size", "variant")
_ALIKE: Final = ("machine", "target", "threads")


def record(cell: Cell) -> Record:
    """A cell as JSON; rates are in 10^9 operations, or bytes, a second."""
    work, ours, best = cell.work, cell.rates.get(OURS), cell.best_peer
    return {
        "row": work.row,
        "types": work.types,
        "size": work.size,
        "variant": work.variant,
        "unit": work.unit,
        "operations": work.operations,
        "traffic": work.traffic,
        "peak_loop": cell.instruction,
        "predicted": cell.predicted,
        "rates": {name: _rates(rates, cell.rates.get(PEAK)) for name, rates in cell.rates.items()},
        "best_peer": best,
        "to_best": ours.share(cell.rates[best]) if ours and best else None,
        "to_peers": {n: ours.share(r) for n, r in cell.rates.items() if ours and n not in {PEAK, OURS}},
        "rounds": cell.rounds,
        "quiet": cell.quiet,
        "notes": cell.notes,
        "error": cell.error,
    }


def _rates(rates: Rates, peak: Rates | None) -> dict[str, float]:
    share = {"of_peak": rates.share(peak)} if peak else {}
    return {"best": rates.best, "median": rates.median, "spread": rates.spread, **share}


def select_cells(cells: Sequence[Record], selection: Sequence[Sequence[str]]) -> list[Record]:
    """The cells of the given rows, types, sizes and variants; an empty list means all.

    Raises:
        UsageError: There is no such cell.
    """
    selected = list(cells)
    for key, names in zip(KEY, selection, strict=True):
        have = {cell[key] or "plain" for cell in selected}
        if missing := [name for name in names if name not in have]:
            raise UsageError(f"the report has no cells of {key} '{missing[0]}'; it has {', '.join(sorted(have))}")
        selected = [cell for cell in selected if not names or (cell[key] or "plain") in names]
    return selected


def write(path: str, report: Record) -> None:
    """Write a report.

    Raises:
        UsageError: It cannot be written.
    """
    files.write_output(path, json.dumps(report, indent=1) + "\n")


def read(path: str) -> Record:
    """Read a report, or all reports in a folder.

    Raises:
        UsageError: A file cannot be read or is not a report.
    """
    if Path(path).is_dir():
        return merge_reports([str(file) for file in sorted(Path(path).glob("*.json"))])
    report = read_json(path, "cells", "tlx bench --json")
    if "lanes" not in report:
        raise UsageError(f"'{path}' is not a report written by 'tlx bench --json'")
    return report


def read_json(path: str, field: str, writer: str) -> Record:
    """Read a report that has a field.

    Raises:
        UsageError: The file cannot be read, or is not such a report.
    """
    report: Any = None
    try:
        report = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"could not open input file '{path}': {os_error_text(error)}") from None
    except ValueError:
        pass
    if not isinstance(report, dict) or field not in report:
        raise UsageError(f"'{path}' is not a report written by '{writer}'")
    return cast("Record", report)


def merge_reports(paths: Sequence[str]) -> Record:
    """Merge reports of parts of the table, in the order of the table.

    A cell that several reports have is taken from the one with the most quiet rounds, then the steadiest peak, then
    from the last. A report whose core was never as quiet as another's counts as having no quiet rounds.

    Raises:
        UsageError: A report cannot be read, or they differ in machine, target or number of threads.
    """
    if not paths:
        raise UsageError("the folder has no reports")
    reports = [read(path) for path in paths]
    for path, report in zip(paths, reports, strict=True):
        for fact in _ALIKE:
            if report.get(fact) != reports[0].get(fact):
                ours, first = report.get(fact), reports[0].get(fact)
                raise UsageError(f"'{path}' is for {fact} {ours}, '{paths[0]}' for {first}")
    cells: dict[tuple[str, ...], Record] = {}
    for cell in _all_cells(reports):
        cells[cell_key(cell)] = max(cell, cells.get(cell_key(cell), cell), key=_is_calm)
    order: dict[tuple[str, ...], int] = {work.key: place for place, work in enumerate(workloads.all_workloads())}
    dates = sorted({report["date"] for report in reports})
    spans = {"date": dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"}
    spans["cpu"] = ",".join(sorted({report["cpu"] for report in reports}))
    if any(report.get("core") for report in reports):
        spans["core"] = _quietest(reports)
    peers = {peer: number for report in reports for peer, number in report["peers"].items()}
    rows = sorted(cells.values(), key=lambda cell: order.get(cell_key(cell), len(order)))
    return {**reports[0], **spans, "peers": peers, "cells": rows}


def count_disturbed(cells: Sequence[Record]) -> int:
    """Number of cells with too few quiet rounds for a median; cells measured without the probe do not count."""
    looked = [cell for cell in cells if cell.get("quiet") is not None]
    return sum(cell["quiet"] < min(FEWEST_QUIET_ROUNDS, cell["rounds"]) for cell in looked)


def _all_cells(reports: Sequence[Record]) -> Iterator[Record]:
    """The cells of all reports."""
    best = _quietest(reports)
    for report in reports:
        shared = (report.get("core") or 0.0) > QUIET_RATIO * best
        yield from ({**cell, "quiet": 0} if shared else cell for cell in report["cells"])


def _quietest(reports: Sequence[Record]) -> float:
    """The tenth percentile of the reports' ratios; the lowest is unreliable: one in 70 was off by a tenth."""
    cores = sorted(report["core"] for report in reports if report.get("core"))
    return cores[len(cores) // 10] if cores else 0.0


def _is_calm(cell: Record) -> tuple[int, float]:
    return cell.get("quiet") or 0, -cell.get("rates", {}).get(PEAK, {}).get("spread", math.inf)


def group_cells(cells: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """Cells by row and types."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for cell in cells:
        groups.setdefault((cell["row"], cell["types"]), []).append(cell)
    return groups


def peers_of(cells: Sequence[Record], names: Sequence[str] = ()) -> list[str]:
    """The peers that any cell has, in the order of `names`, the others in order of appearance."""
    peers = dict.fromkeys(peer for cell in cells for peer in cell["rates"] if peer not in {PEAK, OURS})
    return sorted(peers, key=lambda peer: names.index(peer) if peer in names else len(names))


def cell_key(cell: Record) -> tuple[str, ...]:
    """The key that identifies a cell."""
    return tuple(cell[name] for name in KEY)


def cell_name(cell: Record) -> str:
    """A cell's name, such as `gemm f32 64`."""
    return " ".join(part for part in cell_key(cell) if part)


def median_rate(cell: Record, who: str) -> float | None:
    """A contestant's median speed."""
    return cell["rates"][who]["median"] if who in cell["rates"] else None


def share_of_peak(cell: Record, who: str = OURS) -> float | None:
    """A contestant's share of the peak."""
    return cell["rates"].get(who, {}).get("of_peak")


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean of the positive values; None if there are none."""
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


_PEAK_BAR: Final = 0.97
_TILE_BAR: Final = 0.97
_LANE_BAR: Final = 0.85
_MEMORY_BAR: Final = 0.9
_SMALL: Final = 64
_TIE: Final = 0.995  # rounds to 1.00


@dataclass(frozen=True)
class BarVerdict:
    """A cell's bar as a share of the peak, the part of it that is reached, and whether that is enough."""

    bar: float
    reached: float
    met: bool


def verdict(cell: Record, lanes: int) -> BarVerdict | None:
    """Whether a cell meets its bar; None if there is nothing to compare with. `lanes`: 32-bit lanes of a register."""
    part, best = share_of_peak(cell), cell["best_peer"]
    if part is None:
        return None
    top = (share_of_peak(cell, best) if best else None) or 1.0
    to_best = cell["to_best"] or 0.0
    if cell["unit"] == "GB/s":
        return _verdict_of_shares(min(_MEMORY_BAR, top), part)
    if cell["peak_loop"].startswith("tdp"):
        if not best:
            return None
        bar = min(_PEAK_BAR, _TILE_BAR * top)
        reached = max(part / bar, to_best / _TILE_BAR)
        return BarVerdict(bar, reached, reached >= 1)
    sides = _gemm_extents(cell)
    if cell["row"] == "gemm" and "read" not in cell["peak_loop"] and sides and max(sides) <= _SMALL:
        bar, to_libxsmm = _LANE_BAR * _lane_share(cell, sides, lanes), cell["to_peers"].get("libxsmm", 1.0)
        return BarVerdict(bar, min(to_libxsmm, part / bar), to_libxsmm >= _TIE and part >= bar)
    return _verdict_of_shares(min(_PEAK_BAR, top), part, to_best)


def _verdict_of_shares(bar: float, part: float, to_best: float = 0.0) -> BarVerdict:
    reached = max(part / bar, to_best)
    return BarVerdict(bar, reached, reached >= _TIE)


def _gemm_extents(cell: Record) -> list[int]:
    """M, N and K of a product; empty if the size does not give them."""
    parts = cell["size"].split("x")
    numbers = [int(part) for part in parts if part.isdigit()]
    return numbers * 3 if len(numbers) == 1 else numbers if len(numbers) == 3 else []


def _lane_share(cell: Record, sides: Sequence[int], lanes: int) -> float:
    """The share of the lanes that the columns fill."""
    columns, width = sides[1], lanes // 2 if cell["types"] == "f64" else lanes
    return columns / (-(-columns // width) * width)


def compare(cells: Sequence[Record], old: Sequence[Record], echo: Callable[[str], object]) -> None:
    """Print the ratio new / old for each cell in both reports; above 1 is faster."""
    before = {cell_key(cell): cell for cell in old}
    ratios: list[float] = []
    echo(f"\n{'compared':36} {'before':>9} {'now':>9} {'ratio':>6}  of peak: before    now  ratio")
    for cell in cells:
        other = before.get(cell_key(cell))
        now, was = median_rate(cell, OURS), median_rate(other, OURS) if other else None
        if other is None or not now or not was:
            continue
        shares = share_of_peak(cell) or 0.0, share_of_peak(other) or 0.0
        relative = shares[0] / shares[1] if shares[1] else now / was
        ratios.append(relative)
        speeds = f"{was:9.1f} {now:9.1f} {now / was:6.2f}"
        echo(f"{cell_name(cell):36} {speeds}  {shares[1]:15.1%} {shares[0]:6.1%} {relative:6.2f}")
    mean = geometric_mean(ratios)
    echo(f"{len(ratios)} cells in both" + (f"; geometric mean of the ratios of shares {mean:.3f}" if mean else ""))


Echo = Callable[[str], object]


def summarise(cells: Sequence[Record], lanes: int, echo: Echo) -> None:
    """Print a summary; `lanes` is the number of 32-bit lanes of a vector register."""
    missed = [(cell, text) for cell in cells if (text := shortfall(cell, lanes))]
    judged = sum(verdict(cell, lanes) is not None for cell in cells)
    without = sum(OURS in cell["rates"] for cell in cells) - judged
    alone = f"; {without} {'have' if without > 1 else 'has'} none, as no peer was measured" if without else ""
    echo(f"\n{judged - len(missed)} of {judged} cells reach their bar{alone}")
    if count := count_disturbed(cells):
        echo(f"{count} had fewer than {FEWEST_QUIET_ROUNDS} quiet rounds: other programs are using the core")
    for cell, text in missed:
        echo(f"  below: {cell_name(cell):36} {text}")
    if not cells:
        return
    peers = peers_of(cells)
    echo("\ngeometric means   cells of peak" + "".join(f"{'/' + peer:>10}" for peer in peers))
    for (row, types), own in group_cells(cells).items():
        of_peak = geometric_mean(part for cell in own if (part := share_of_peak(cell)) is not None)
        ratios = [geometric_mean(c["to_peers"][peer] for c in own if peer in c["to_peers"]) for peer in peers]
        shown = "".join(f"{ratio:10.2f}" if ratio else f"{'-':>10}" for ratio in ratios)
        echo(f"  {row:11} {types:10} {len(own):3} {f'{of_peak:.1%}' if of_peak else '-':>7}{shown}")


def shortfall(cell: Record, lanes: int) -> str:
    """By how much a cell misses its bar; empty if it does not, or was not measured."""
    result, best = verdict(cell, lanes), cell["best_peer"]
    if result is None or result.met:
        return ""
    ratio = f"; {cell['to_best']:.2f} of {best}" if best else ""
    speed = median_rate(cell, OURS)
    return f"{share_of_peak(cell):.1%} of peak, bar {result.bar:.1%}{ratio} ({speed:.4g} {cell['unit']})"
