"""What was measured, as lines on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.bench.measure import OURS, PEAK, Cell


def heading(peers: Sequence[str]) -> str:
    """The titles of the columns."""
    columns = " ".join(f"{name:>8}" for name in peers)
    return (
        f"{'work':8} {'types':11} {'size':14} {'variant':12} {'peak':>7} {'ours':>7} {'spread':>6} {'of peak':>7} "
        f"{'to best':>7}   of peak: {columns}"
    )


def line(cell: Cell, peers: Sequence[str]) -> str:
    """One workload: speeds in 10^9 operations a second, then shares of the peak and the ratio to the best peer."""
    work, rates = cell.work, cell.rates
    top, ours = rates.get(PEAK), rates.get(OURS)
    best = cell.best_peer
    shares = [f"{rates[name].share(top):8.1%}" if top and name in rates else f"{'-':>8}" for name in peers]
    best_name = best or ""
    cells = [
        f"{work.row:8} {work.types:11} {work.size:14} {work.variant:12}",
        f"{top.median:7.1f}" if top else f"{'-':>7}",
        f"{ours.median:7.1f} {ours.spread:6.0%}" if ours else f"{'-':>7} {'-':>6}",
        f"{ours.share(top):7.1%}" if ours and top else f"{'-':>7}",
        f"{ours.share(rates[best]):7.2f}" if ours and best else f"{'-':>7}",
        f"{best_name:9}",
        *shares,
    ]
    return " ".join(cells)
