"""What was measured, as JSON: written, read, and asked.

{"machine": ..., "target": ..., "date": ..., "cells": [{"row": "gemm", "types": "f32", "size": "64", ...,
  "rates": {"peak": {"best": 223.1, "median": ..., "spread": ..., "of_peak": 1.0}, "tlx": {...}, "mkl": {...}}}]}
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

from tlx.bench.measure import OURS, PEAK, Cell
from tlx.bench.timing import Rates
from tlx.diagnostics import UsageError
from tlx.files import reason

Record = dict[str, Any]
KEY: Final = ("row", "types", "size", "variant")


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
        "notes": cell.notes,
        "error": cell.error,
    }


def _rates(rates: Rates, peak: Rates | None) -> dict[str, float]:
    share = {"of_peak": rates.share(peak)} if peak else {}
    return {"best": rates.best, "median": rates.median, "spread": rates.spread, **share}


def write(path: str, report: Record) -> None:
    """Write a report.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        Path(path).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"could not open output file '{path}': {reason(error)}") from None


def read(path: str) -> Record:
    """Read a report.

    Raises:
        UsageError: It cannot be read, or is none.
    """
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
