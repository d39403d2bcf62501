"""Two reports beside each other: how much faster, or slower, our code became, as shares of the peak of each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tlx.bench.measure import OURS
from tlx.bench.report import Record, geometric_mean, key, median, name, share


def compare(cells: Sequence[Record], old: Sequence[Record], echo: Callable[[str], object]) -> None:
    """Print the ratio new / old of each cell that both have; above 1 is faster."""
    before = {key(cell): cell for cell in old}
    ratios: list[float] = []
    echo(f"\n{'compared':36} {'before':>9} {'now':>9} {'ratio':>6}  of peak: before    now  ratio")
    for cell in cells:
        other = before.get(key(cell))
        now, was = median(cell, OURS), median(other, OURS) if other else None
        if other is None or not now or not was:
            continue
        shares = share(cell) or 0.0, share(other) or 0.0
        relative = shares[0] / shares[1] if shares[1] else now / was
        ratios.append(relative)
        speeds = f"{was:9.1f} {now:9.1f} {now / was:6.2f}"
        echo(f"{name(cell):36} {speeds}  {shares[1]:15.1%} {shares[0]:6.1%} {relative:6.2f}")
    mean = geometric_mean(ratios)
    echo(f"{len(ratios)} cells in both" + (f"; geometric mean of the ratios of shares {mean:.3f}" if mean else ""))
