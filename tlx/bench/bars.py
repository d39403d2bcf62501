"""How fast a cell of a report should be, and whether it is.

any cell              the best peer, or 97 % of the peak, whichever is lower
gemm up to 64         libxsmm, and 85 % of what the lanes allow: 17 columns in 16 lanes fill 17 of 32
matrix unit           97 % of the best peer, or of the peak, whichever is lower; none without a peer: packing alone
                      keeps products that are not blocked beforehand at half of that unit's peak
memory                90 % of what memory gives, or the best peer, whichever is lower
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.bench.report import Record, share

_PEAK_BAR: Final = 0.97
_TILE_BAR: Final = 0.97
_LANE_BAR: Final = 0.85
_MEMORY_BAR: Final = 0.9
_SMALL: Final = 64
_TIE: Final = 0.995  # what rounds to 1.00


@dataclass(frozen=True)
class Verdict:
    """What a cell should reach, as a share of the peak, how much of that it reaches, and whether that is enough."""

    bar: float
    reached: float
    met: bool


def verdict(cell: Record, lanes: int) -> Verdict | None:
    """Whether a cell meets its bar; None where nothing was measured to judge by. `lanes`: of 32 bits in a register."""
    part, best = share(cell), cell["best_peer"]
    if part is None:
        return None
    top = (share(cell, best) if best else None) or 1.0
    to_best = cell["to_best"] or 0.0
    if cell["unit"] == "GB/s":
        return _tied(min(_MEMORY_BAR, top), part)
    if cell["peak_loop"].startswith("tdp"):
        if not best:
            return None
        bar = min(_PEAK_BAR, _TILE_BAR * top)
        reached = max(part / bar, to_best / _TILE_BAR)
        return Verdict(bar, reached, reached >= 1)
    sides = _sides(cell)
    if cell["row"] == "gemm" and "read" not in cell["peak_loop"] and sides and max(sides) <= _SMALL:
        bar, to_libxsmm = _LANE_BAR * _lane_share(cell, sides, lanes), cell["to_peers"].get("libxsmm", 1.0)
        return Verdict(bar, min(to_libxsmm, part / bar), to_libxsmm >= _TIE and part >= bar)
    return _tied(min(_PEAK_BAR, top), part, to_best)


def _tied(bar: float, part: float, to_best: float = 0.0) -> Verdict:
    reached = max(part / bar, to_best)
    return Verdict(bar, reached, reached >= _TIE)


def _sides(cell: Record) -> list[int]:
    """M, N and K of a product; empty where the size does not say."""
    parts = cell["size"].split("x")
    numbers = [int(part) for part in parts if part.isdigit()]
    return numbers * 3 if len(numbers) == 1 else numbers if len(numbers) == 3 else []


def _lane_share(cell: Record, sides: Sequence[int], lanes: int) -> float:
    """The part of the lanes that the columns fill."""
    columns, width = sides[1], lanes // 2 if cell["types"] == "f64" else lanes
    return columns / (-(-columns // width) * width)
