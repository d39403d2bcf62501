"""Plots of the paper's workloads: percentage of libxsmm's speed by size, and by number of threads."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from tlx.bench import plot
from tlx.bench.paper import tables
from tlx.bench.paper.tables import REFERENCE, RUNS, to_reference
from tlx.bench.paper.workloads import FUSED, MLP, split_variant
from tlx.bench.report import Record, geometric_mean
from tlx.diagnostics import UsageError


def draw(path: str, report: Record) -> None:
    """Write the plot to a file; its suffix determines the format.

    Raises:
        UsageError: matplotlib is missing, there is nothing to draw, or the file cannot be written.
    """
    runs = report[RUNS]
    cells = [(run, cell) for run in runs for cell in run["cells"] if cell["row"] == MLP and to_reference(cell)]
    cells = [(run, cell) for run, cell in cells if split_variant(cell["variant"])[1] == FUSED] or cells
    if not cells:
        raise UsageError(f"the report has no layers beside {REFERENCE} to plot")
    targets = list(dict.fromkeys(run["target"] for run, _ in cells))
    counts = sorted({run["threads"] for run, _ in cells})
    axes_of = ["size", *(["threads"] if len(counts) > 1 else [])]
    colours = {name: f"C{index}" for index, name in enumerate(dict.fromkeys(tables.kind(cell) for _, cell in cells))}
    plt = plot.pyplot(path)
    ticker: Any = importlib.import_module("matplotlib.ticker")
    shape = (len(targets), len(axes_of))
    size = (5.4 * shape[1], 3.4 * shape[0])
    figure, axes = plt.subplots(*shape, figsize=size, squeeze=False, sharey="row", layout="constrained")
    for target, line in zip(targets, axes, strict=True):
        own = [(run, cell) for run, cell in cells if run["target"] == target]
        for what, axis in zip(axes_of, line, strict=True):
            _panel(axis, target, what, own, colours)
        line[0].set_yscale("log", base=2)  # ratios; of all panels in the row
        line[0].yaxis.set_major_locator(ticker.LogLocator(base=2, subs=(100 / 64,)))  # ..., 50, 100, 200, ...
        line[0].yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    keys: dict[str, Any] = {}
    for axis in axes.flat:
        lines, names = axis.get_legend_handles_labels()
        keys |= dict(zip(names, lines, strict=True))
    figure.legend(keys.values(), keys.keys(), loc="outside lower center", ncols=len(keys), fontsize=7)
    figure.suptitle(f"{runs[0]['machine']}, {runs[0]['date']}", fontsize=8)
    plot.save(figure, path)


def _panel(
    axis: Any, target: str, what: str, cells: Sequence[tuple[Record, Record]], colours: Mapping[str, str]
) -> None:
    """A line for each type and layout; points are geometric means over what is not on the axis."""
    shares: dict[str, dict[int, list[float]]] = {}
    for run, cell in cells:
        position = int(cell["size"]) if what == "size" else run["threads"]
        share = to_reference(cell)
        if share:
            shares.setdefault(tables.kind(cell), {}).setdefault(position, []).append(share)
    for name, points in shares.items():
        places = sorted(points)
        heights = [100 * (geometric_mean(points[place]) or 0) for place in places]
        axis.plot(places, heights, marker="o", markersize=4, label=name, color=colours[name])
    axis.axhline(100, color="#d62728", linestyle="--", linewidth=1)
    axis.set_xscale("log", base=2)
    ticks = sorted({place for points in shares.values() for place in points})
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel(what)
    axis.set_ylabel(f"% of {REFERENCE}")
    axis.set_title(f"{target}: layers with bias and ReLU, over {what}", fontsize=10)
    axis.grid(visible=True, alpha=0.3)
