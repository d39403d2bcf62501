"""The plot of models: speed of every library as a multiple of the fastest one that is not TLX."""

from __future__ import annotations

from typing import Any, Final

from tlx.bench import plot
from tlx.bench.measure import OURS
from tlx.bench.models.tables import CELLS, best_peer
from tlx.bench.report import Record
from tlx.diagnostics import UsageError, counted

_LINE: Final = 0.3  # inches
_TICKS: Final = (0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8, 12, 16)


def draw(path: str, report: Record) -> None:
    """Write the plot to a file; its suffix determines the format.

    Raises:
        UsageError: matplotlib is missing, there is nothing to draw, or the file cannot be written.
    """
    cells = [cell for cell in report[CELLS] if OURS in cell["ms"] and best_peer(cell)]
    if not cells:
        raise UsageError("the report has nothing to plot")
    kinds = list(dict.fromkeys(cell["types"] for cell in cells))
    rows = list(dict.fromkeys((cell["row"], cell["size"]) for cell in cells))
    plt = plot.pyplot(path)
    figure, axes = plt.subplots(
        1,
        len(kinds),
        figsize=(2.4 + 4.2 * len(kinds), 1.5 + _LINE * len(rows)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    places = {row: -number for number, row in enumerate(rows)}
    for axis, kind in zip(axes[0], kinds, strict=True):
        _panel(axis, kind, [cell for cell in cells if cell["types"] == kind], places)
    axes[0][0].set_yticks(list(places.values()), [f"{row}  {size}" for row, size in rows], fontsize=8)
    axes[0][0].set_ylim(min(places.values()) - 0.7, 0.7)
    handles = {
        label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), fontsize=8)
    threads = report["threads"]
    how = f"target {report['target']}, {counted(threads, 'thread')}"
    figure.suptitle(f"{report['machine']}\n{how}, {report['date']}", fontsize=8)
    plot.save(figure, path)


def _panel(axis: Any, kind: str, cells: list[Record], places: dict[tuple[str, str], int]) -> None:
    """A bar for TLX, from the fastest other library to its own speed, a dot for each other library, and the time."""
    heights: dict[str, list[tuple[float, int]]] = {}
    for cell in cells:
        best = best_peer(cell)
        assert best is not None
        place = places[cell["row"], cell["size"]]
        ours = cell["to_peers"][best]
        heights.setdefault(OURS, []).append((ours, place))
        for peer, ratio in cell["to_peers"].items():
            heights.setdefault(peer, []).append((ours / ratio, place))
        time = cell["ms"][OURS]["median"]
        text = f"  {time:.3g} ms" if time < 1000 else f"  {time:.0f} ms"
        axis.text(max(ours, 1), place, text, va="center", ha="left", fontsize=7)
    ours = heights.pop(OURS)
    colours = ["#d62728" if ratio >= 1 else "#f2a0a1" for ratio, _ in ours]
    axis.barh([p for _, p in ours], [r - 1 for r, _ in ours], left=1, height=0.6, color=colours, label="TLX", zorder=2)
    for peer, points in heights.items():
        axis.plot(*zip(*points, strict=True), "o", markersize=4, color=plot.COLOURS.get(peer), label=peer, zorder=3)
    axis.axvline(1, color="#333333", linewidth=1, zorder=1)
    axis.set_xscale("log")
    low = min(0.5, *(ratio for ratio, _ in ours)) / 1.1
    high = max(2.0, *(ratio for ratio, _ in ours)) * 1.5
    axis.set_xlim(low, high)
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8)
    axis.minorticks_off()
    axis.grid(visible=True, axis="x", alpha=0.3)
    axis.set_title(f"{kind}: speed, fastest other library = 1", fontsize=9)
