"""The end of a report: which cells are below their bar, and means.

bar of a cell         the best peer, or 97 % of the peak, whichever is lower
gemm up to 64         libxsmm, and 85 % of what the lanes allow: 17 columns in 16 lanes fill 17 of 32
matrix unit           97 % of the best peer, or of the peak, whichever is lower
memory                90 % of what memory gives, or the best peer, whichever is lower
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tlx.bench.measure import OURS, PEAK
from tlx.bench.report import Record, geometric_mean, key, median, name, share

_PEAK_BAR: Final = 0.97
_TILE_BAR: Final = 0.97
_LANE_BAR: Final = 0.85
_MEMORY_BAR: Final = 0.9
_SMALL: Final = 64
_TIE: Final = 0.995  # what rounds to 1.00

Echo = Callable[[str], object]


def summarise(cells: Sequence[Record], lanes: int, echo: Echo) -> None:
    """Print it; `lanes` are 32-bit elements of a vector register."""
    missed = [(cell, text) for cell in cells if (text := below(cell, lanes))]
    measured = sum(OURS in cell["rates"] for cell in cells)
    echo(f"\n{measured - len(missed)} of {measured} cells reach their bar")
    for cell, text in missed:
        echo(f"  below: {name(cell):36} {text}")
    groups = dict.fromkeys((cell["row"], cell["types"]) for cell in cells)
    peers = dict.fromkeys(peer for cell in cells for peer in cell["rates"] if peer not in {PEAK, OURS})
    if not groups:
        return
    echo("\ngeometric means   cells of peak" + "".join(f"{'/' + peer:>10}" for peer in peers))
    for row, types in groups:
        own = [cell for cell in cells if key(cell)[:2] == (row, types)]
        of_peak = geometric_mean(part for cell in own if (part := share(cell)) is not None)
        ratios = [geometric_mean(c["to_peers"][peer] for c in own if peer in c["to_peers"]) for peer in peers]
        shown = "".join(f"{ratio:10.2f}" if ratio else f"{'-':>10}" for ratio in ratios)
        echo(f"  {row:11} {types:10} {len(own):3} {f'{of_peak:.1%}' if of_peak else '-':>7}{shown}")


def below(cell: Record, lanes: int) -> str:
    """In which way a cell misses its bar; empty where it does not, or was not measured."""
    part, best = share(cell), cell["best_peer"]
    if part is None:
        return ""
    top = share(cell, best) if best else None
    if cell["unit"] == "GB/s":
        bar = min(_MEMORY_BAR, top) if top is not None else _MEMORY_BAR
        return "" if part >= bar * _TIE else _said(cell, part, bar)
    if cell["peak_loop"].startswith("tdp"):
        bar = min(_PEAK_BAR, _TILE_BAR * top) if top is not None else _PEAK_BAR
        return "" if part >= bar or (cell["to_best"] or 0) >= _TILE_BAR else _said(cell, part, bar)
    sides = _sides(cell)
    if cell["row"] == "gemm" and "read" not in cell["peak_loop"] and sides and max(sides) <= _SMALL:
        reached = cell["to_peers"].get("libxsmm", 1.0) >= _TIE
        bar = _LANE_BAR * _lane_share(cell, sides, lanes)
        return "" if reached and part >= bar else _said(cell, part, bar)
    bar = min(_PEAK_BAR, top) if top is not None else _PEAK_BAR
    return "" if part >= bar * _TIE or (cell["to_best"] or 0) >= _TIE else _said(cell, part, bar)


def _said(cell: Record, part: float, bar: float) -> str:
    best = cell["best_peer"]
    ratio = f"; {cell['to_best']:.2f} of {best}" if best else ""
    speed = median(cell, OURS)
    return f"{part:.1%} of peak, bar {bar:.1%}{ratio} ({speed:.4g} {cell['unit']})"


def _sides(cell: Record) -> list[int]:
    """M, N and K of a product; empty where the size does not say."""
    parts = cell["size"].split("x")
    numbers = [int(part) for part in parts if part.isdigit()]
    return numbers * 3 if len(numbers) == 1 else numbers if len(numbers) == 3 else []


def _lane_share(cell: Record, sides: Sequence[int], lanes: int) -> float:
    """The part of the lanes that the columns fill."""
    columns, width = sides[1], lanes // 2 if cell["types"] == "f64" else lanes
    return columns / (-(-columns // width) * width)
