"""What was measured, as lines on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlx.bench.measure import OURS, PEAK, Cell


def heading(peers: Sequence[str]) -> str:
    """The titles of the columns."""
    columns = " ".join(f"{name:>8}" for name in peers)
    return (
        f"{'':48} G/s, median                  of peak          to best peer     of peak\n"
        f"{'work':11} {'types':10} {'size':14} {'variant':11} {'peak':>7} {'ours':>7} {'spread':>6} {'quiet':>6} "
        f"{'ours':>7} {'said':>7} {'ours':>7} {'':8} {columns}"
    ).rstrip()


def lines(cell: Cell, peers: Sequence[str]) -> Iterator[str]:
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
