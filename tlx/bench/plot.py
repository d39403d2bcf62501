"""Plots of a report: speed over size with the peak as a line, one panel for each kind of work, and a roofline.

Sizes of one number are joined by lines; sizes of several, such as `1x1024x1024`, are dots at their geometric mean.
Panels whose sizes are all names, such as `64-64.56.3s1`, have a category for each.

matplotlib is an optional dependency: `pip install 'tlx-ir[bench]'`.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tlx.api.files import os_error_text
from tlx.bench.measure import OURS, PEAK
from tlx.bench.report import Record, median_rate
from tlx.diagnostics import UsageError, counted

_SUFFIXES: Final = (".png", ".svg", ".pdf")
COLOURS: Final = {
    OURS: "#d62728",
    PEAK: "#333333",
    "libxsmm": "#1f77b4",
    "mkl": "#17becf",
    "onednn": "#2ca02c",
    "openblas": "#9467bd",
    "torch": "#ff7f0e",
    "jax": "#1f77b4",
    "onnxruntime": "#2ca02c",
    "clang": "#8c564b",
    "matrix": "#e377c2",
}
_COLUMNS: Final = 3
_LARGEST: Final = 8192  # larger sizes are written with a suffix
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20}


def draw(path: str, report: Record) -> None:
    """Write the plots to a file; its suffix determines the format.

    Raises:
        UsageError: matplotlib is missing, there is nothing to draw, or the file cannot be written.
    """
    plt = pyplot(path)
    panels = _panels(report["cells"])
    if not panels:
        raise UsageError("the report has nothing to plot")
    flops = any(cell["unit"] != "GB/s" for cells in panels.values() for cell in cells)
    count = len(panels) + flops
    columns = 2 if count in {2, 4} else min(_COLUMNS, count)
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(5.2 * columns, 3.8 * rows), squeeze=False, layout="constrained")
    places = [axis for line in axes for axis in line]
    for axis, (title, cells) in zip(places, panels.items(), strict=False):
        _speeds(axis, title, cells)
    if flops:
        _roofline(places[len(panels)], report["cells"], report.get("memory", {}).get("triad", 0.0))
    for axis in places[count:]:
        axis.set_visible(False)
    threads = report.get("threads", 1)
    how = f"target {report['target']}, {counted(threads, 'thread')}"
    figure.suptitle(f"{report['machine']}, {how}, {report['date']}", fontsize=9)
    save(figure, path)


def save(figure: Any, path: str) -> None:
    """Write a figure to a file, and close it.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        figure.savefig(path, dpi=120, metadata={"Date": None} if Path(path).suffix == ".svg" else None)
    except OSError as error:
        raise UsageError(f"could not open output file '{path}': {os_error_text(error)}") from None
    finally:
        pyplot(path).close(figure)


def pyplot(path: str) -> Any:
    """matplotlib, for a file of this name.

    Raises:
        UsageError: matplotlib is missing, or cannot write such files.
    """
    if Path(path).suffix not in _SUFFIXES:
        raise UsageError(f"plots are written to files that end in {', '.join(_SUFFIXES)}, not in '{Path(path).suffix}'")
    try:
        matplotlib: Any = importlib.import_module("matplotlib")
        matplotlib.use("Agg")
        matplotlib.rcParams["svg.hashsalt"] = "tlx"
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise UsageError("plots need the package matplotlib: pip install 'tlx-ir[bench]'") from None


def _panels(cells: Sequence[Record]) -> dict[str, list[Record]]:
    """Cells by the kind of work, in the report's order."""
    panels: dict[str, list[Record]] = {}
    for cell in cells:
        if OURS in cell["rates"]:
            title = " ".join(part for part in (cell["row"], cell["types"], cell["variant"]) if part)
            panels.setdefault(title, []).append(cell)
    return panels


def _axis_position(cell: Record) -> float | None:
    """The position of a size on the axis: the geometric mean of its numbers."""
    numbers = [int(number) * _UNITS.get(unit, 1) for number, unit in re.findall(r"(\d+)([KM]?)", cell["size"])]
    return math.exp(sum(math.log(n) for n in numbers) / len(numbers)) if numbers and min(numbers) > 0 else None


def _speeds(axis: Any, title: str, cells: Sequence[Record]) -> None:
    ordered = sorted(cells, key=lambda cell: _axis_position(cell) or 0)
    named = not any(map(_is_number, ordered))
    if named:
        ordered = list(cells)
    names = dict.fromkeys(name for cell in ordered for name in cell["rates"])
    for name in names:
        points = [
            (index if named else _axis_position(cell), median_rate(cell, name), _is_number(cell))
            for index, cell in enumerate(ordered)
            if name in cell["rates"]
        ]
        _draw(axis, name, [point[:2] for point in points if point[2]], [point[:2] for point in points if not point[2]])
    if named:
        axis.set_xticks(range(len(ordered)), [cell["size"] for cell in ordered], rotation=90, fontsize=6)
    else:
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(_tick)
        axis.set_xlabel("size" if all(map(_is_number, ordered)) else "size (dots: geometric mean of M, N, K)")
    axis.set_ylim(bottom=0)
    axis.set_title(title, fontsize=10)
    axis.set_ylabel(ordered[0]["unit"])
    axis.legend(fontsize=7)
    axis.grid(visible=True, alpha=0.3)


def _draw(axis: Any, name: str, joined: Sequence[Any], apart: Sequence[Any]) -> None:
    """Draw the speeds of one contestant: a line through `joined`, dots for `apart`."""
    look: dict[str, Any] = {"color": COLOURS.get(name)}
    width = 2 if name == OURS else 1
    if joined:
        style = {"linestyle": "--"} if name == PEAK else {"marker": "o", "markersize": 3}
        axis.plot(*zip(*joined, strict=True), label=name, linewidth=width, **style, **look)
    if apart:
        mark = {"marker": "_" if name == PEAK else "o", "markersize": 5 if name in {OURS, PEAK} else 2.5}
        axis.plot(*zip(*apart, strict=True), linestyle="", label=None if joined else name, **mark, **look)


def _is_number(cell: Record) -> bool:
    """Whether a size is one number."""
    return re.fullmatch(r"\d+[KM]?", cell["size"]) is not None


def _tick(size: float, _position: int) -> str:
    """A size as the table writes it: `1024`, `64K`, `16M`."""
    unit = next((unit for unit in ("M", "K") if size >= _UNITS[unit] and size > _LARGEST), "")
    return f"{size / _UNITS.get(unit, 1):g}{unit}"


def _roofline(axis: Any, cells: Sequence[Record], bandwidth: float) -> None:
    """Draw speed over arithmetic intensity; the roofs are the measured peaks of arithmetic and memory."""
    roofs: dict[str, float] = {}
    points: dict[str, list[tuple[float, float]]] = {}
    for cell in cells:
        speed, top = median_rate(cell, OURS), median_rate(cell, PEAK)
        if speed is None or top is None or cell["unit"] == "GB/s":
            continue
        kind = cell["types"]
        points.setdefault(kind, []).append((cell["operations"] / cell["traffic"], speed))
        if "read" not in cell["peak_loop"]:
            roofs[kind] = max(roofs.get(kind, 0.0), top)
    axis.set_title("roofline", fontsize=10)
    for index, (kind, pairs) in enumerate(points.items()):
        colour = f"C{index}"
        axis.plot(*zip(*pairs, strict=True), "o", markersize=3, color=colour, label=kind)
        if kind in roofs:
            axis.axhline(roofs[kind], color=colour, linestyle="--", linewidth=1)
    if bandwidth and points:
        ends = [min(x for pairs in points.values() for x, _ in pairs), max(roofs.values(), default=1) / bandwidth]
        axis.plot(ends, [bandwidth * x for x in ends], color="#333333", linewidth=1, label="memory")
    if points:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        axis.legend(fontsize=7)
    axis.set_xlabel("operations per byte")
    axis.set_ylabel("10^9 operations a second")
    axis.grid(visible=True, alpha=0.3)
