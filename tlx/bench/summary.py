"""The end of a report: which cells are below their bar, and means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tlx.bench.bars import verdict
from tlx.bench.measure import OURS
from tlx.bench.quiet import ENOUGH
from tlx.bench.report import Record, disturbed, geometric_mean, groups, median, name, peers_of, share

Echo = Callable[[str], object]


def summarise(cells: Sequence[Record], lanes: int, echo: Echo) -> None:
    """Print it; `lanes` are 32-bit elements of a vector register."""
    missed = [(cell, text) for cell in cells if (text := below(cell, lanes))]
    judged = sum(verdict(cell, lanes) is not None for cell in cells)
    without = sum(OURS in cell["rates"] for cell in cells) - judged
    alone = f"; {without} {'have' if without > 1 else 'has'} none, for want of a peer" if without else ""
    echo(f"\n{judged - len(missed)} of {judged} cells reach their bar{alone}")
    if count := disturbed(cells):
        echo(f"{count} had fewer than {ENOUGH} quiet rounds: something else is using the core")
    for cell, text in missed:
        echo(f"  below: {name(cell):36} {text}")
    if not cells:
        return
    peers = peers_of(cells)
    echo("\ngeometric means   cells of peak" + "".join(f"{'/' + peer:>10}" for peer in peers))
    for (row, types), own in groups(cells).items():
        of_peak = geometric_mean(part for cell in own if (part := share(cell)) is not None)
        ratios = [geometric_mean(c["to_peers"][peer] for c in own if peer in c["to_peers"]) for peer in peers]
        shown = "".join(f"{ratio:10.2f}" if ratio else f"{'-':>10}" for ratio in ratios)
        echo(f"  {row:11} {types:10} {len(own):3} {f'{of_peak:.1%}' if of_peak else '-':>7}{shown}")


def below(cell: Record, lanes: int) -> str:
    """In which way a cell misses its bar; empty where it does not, or was not measured."""
    found, best = verdict(cell, lanes), cell["best_peer"]
    if found is None or found.met:
        return ""
    ratio = f"; {cell['to_best']:.2f} of {best}" if best else ""
    speed = median(cell, OURS)
    return f"{share(cell):.1%} of peak, bar {found.bar:.1%}{ratio} ({speed:.4g} {cell['unit']})"
