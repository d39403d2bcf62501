"""What was measured, as JSON: written, read, and asked.

{"machine": ..., "target": ..., "date": ..., "cells": [{"row": "gemm", "types": "f32", "size": "64", ...,
  "rates": {"peak": {"best": 223.1, "median": ..., "spread": ..., "of_peak": 1.0}, "tlx": {...}, "mkl": {...}}}]}
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

from tlx import files
from tlx.bench import catalogue
from tlx.bench.measure import OURS, PEAK, Cell
from tlx.bench.quiet import ENOUGH, NEAR
from tlx.bench.timing import Rates
from tlx.diagnostics import UsageError
from tlx.files import reason

Record = dict[str, Any]
KEY: Final = ("row", "types", "size", "variant")
_ALIKE: Final = ("machine", "target", "threads")


def record(cell: Cell) -> Record:
    """A cell; rates in 10^9 operations, or bytes, a second."""
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


def chosen(cells: Sequence[Record], wanted: Sequence[Sequence[str]]) -> list[Record]:
    """The cells of these rows, types, sizes and variants; an empty list means all.

    Raises:
        UsageError: There is no such cell.
    """
    found = list(cells)
    for key, names in zip(KEY, wanted, strict=True):
        have = {cell[key] or "plain" for cell in found}
        if missing := [name for name in names if name not in have]:
            raise UsageError(f"nothing of {key} '{missing[0]}' was measured, but {', '.join(sorted(have))}")
        found = [cell for cell in found if not names or (cell[key] or "plain") in names]
    return found


def write(path: str, report: Record) -> None:
    """Write a report.

    Raises:
        UsageError: It cannot be written.
    """
    files.write(path, json.dumps(report, indent=1) + "\n")


def read(path: str) -> Record:
    """Read a report, or those in a folder.

    Raises:
        UsageError: It cannot be read, or is none.
    """
    if Path(path).is_dir():
        return merged([str(found) for found in sorted(Path(path).glob("*.json"))])
    report: Any = None
    try:
        report = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"could not open input file '{path}': {reason(error)}") from None
    except ValueError:
        pass
    if not isinstance(report, dict) or "cells" not in report or "lanes" not in report:
        raise UsageError(f"'{path}' is no report that 'tlx bench --json' wrote")
    return cast("Record", report)


def merged(paths: Sequence[str]) -> Record:
    """Reports of parts of the table as one, in the order of the table.

    Of a cell in several, that with the most quiet rounds counts, then that with the steadiest peak, then the last. No
    round was quiet in a report that never saw the core as quiet as another one did.

    Raises:
        UsageError: One cannot be read, or they are not of one machine, target and number of threads.
    """
    if not paths:
        raise UsageError("there is no report in the folder")
    reports = [read(path) for path in paths]
    for path, report in zip(paths, reports, strict=True):
        for fact in _ALIKE:
            if report.get(fact) != reports[0].get(fact):
                ours, first = report.get(fact), reports[0].get(fact)
                raise UsageError(f"'{path}' is about {fact} {ours}, '{paths[0]}' about {first}")
    cells: dict[tuple[str, ...], Record] = {}
    for cell in _counted(reports):
        cells[key(cell)] = max(cell, cells.get(key(cell), cell), key=_calm)
    order: dict[tuple[str, ...], int] = {work.key: place for place, work in enumerate(catalogue.every())}
    dates = sorted({report["date"] for report in reports})
    spans = {"date": dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"}
    spans["cpu"] = ",".join(sorted({report["cpu"] for report in reports}))
    if any(report.get("core") for report in reports):
        spans["core"] = _quietest(reports)
    peers = {peer: number for report in reports for peer, number in report["peers"].items()}
    rows = sorted(cells.values(), key=lambda cell: order.get(key(cell), len(order)))
    return {**reports[0], **spans, "peers": peers, "cells": rows}


def disturbed(cells: Sequence[Record]) -> int:
    """How many cells have fewer quiet rounds than a median is taken of; not those where nobody looked."""
    looked = [cell for cell in cells if cell.get("quiet") is not None]
    return sum(cell["quiet"] < min(ENOUGH, cell["rounds"]) for cell in looked)


def _counted(reports: Sequence[Record]) -> Iterator[Record]:
    """The cells of all reports."""
    best = _quietest(reports)
    for report in reports:
        shared = (report.get("core") or 0.0) > NEAR * best
        yield from ({**cell, "quiet": 0} if shared else cell for cell in report["cells"])


def _quietest(reports: Sequence[Record]) -> float:
    """The lowest ratio of reports that tell one, but for a tenth of them: one in 70 was off by a tenth."""
    cores = sorted(report["core"] for report in reports if report.get("core"))
    return cores[len(cores) // 10] if cores else 0.0


def _calm(cell: Record) -> tuple[int, float]:
    return cell.get("quiet") or 0, -cell.get("rates", {}).get(PEAK, {}).get("spread", math.inf)


def groups(cells: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """Cells by row and types."""
    found: dict[tuple[str, str], list[Record]] = {}
    for cell in cells:
        found.setdefault((cell["row"], cell["types"]), []).append(cell)
    return found


def peers_of(cells: Sequence[Record], names: Sequence[str] = ()) -> list[str]:
    """The peers that were measured anywhere, in the order of these names or as they come."""
    found = dict.fromkeys(peer for cell in cells for peer in cell["rates"] if peer not in {PEAK, OURS})
    return sorted(found, key=lambda peer: names.index(peer) if peer in names else len(names))


def key(cell: Record) -> tuple[str, ...]:
    """What a cell is found by."""
    return tuple(cell[name] for name in KEY)


def name(cell: Record) -> str:
    """`gemm f32 64`."""
    return " ".join(part for part in key(cell) if part)


def median(cell: Record, who: str) -> float | None:
    """Somebody's speed."""
    return cell["rates"][who]["median"] if who in cell["rates"] else None


def share(cell: Record, who: str = OURS) -> float | None:
    """Somebody's share of the peak."""
    return cell["rates"].get(who, {}).get("of_peak")


def geometric_mean(values: Iterable[float]) -> float | None:
    """None of no values."""
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None
