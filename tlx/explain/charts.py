"""Charts: the roofline of a program's kernels, and memory over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from tlx.diagnostics import size_text
from tlx.explain.html import Markup, tag
from tlx.explain.svg import picture, text


@dataclass(frozen=True, slots=True)
class Roof:
    """A bound of the roofline: operations per cycle (`peak`), or bytes per cycle (`bandwidth`)."""

    label: str
    peak: float = 0.0
    bandwidth: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel, or a whole program, on the roofline.

    Attributes:
        label: Its name.
        intensity: Operations per byte.
        rate: Operations per cycle.
        is_measured: Whether the rate was measured.
        number: What is written beside it.
    """

    label: str
    intensity: float
    rate: float
    is_measured: bool
    number: str


_CHART: Final = (680, 340)
_AXES: Final = (58, 16, 128, 44)  # left, top, right, bottom


def roofline_chart(roofs: Sequence[Roof], points: Sequence[Point]) -> Markup:
    """Operations per cycle over operations per byte, both logarithmic."""
    peaks = [roof.peak for roof in roofs if roof.peak] or [1.0]
    x0, x1 = _bounds([0.25, 64.0, *(point.intensity for point in points)])
    y0, y1 = _bounds([max(peaks), min(peaks) / 8, *(point.rate for point in points)])
    width, height = _CHART
    left, top, right, bottom = _AXES

    def x_of(value: float) -> float:
        return left + (log10(value) - x0) / (x1 - x0) * (width - left - right)

    def y_of(value: float) -> float:
        return height - bottom - (log10(value) - y0) / (y1 - y0) * (height - top - bottom)

    parts: list[Markup] = []
    for value in _ticks(x0, x1):
        x = x_of(value)
        parts.append(tag("line", x1=x, y1=top, x2=x, y2=height - bottom, class_="grid"))
        parts.append(text(x, height - bottom + 16, f"{value:g}", "tick"))
    for value in _ticks(y0, y1):
        y = y_of(value)
        parts.append(tag("line", x1=left, y1=y, x2=width - right, y2=y, class_="grid"))
        parts.append(text(left - 7, y + 4, f"{value:g}", "tick", "end"))
    top_peak = max(peaks)
    for roof in roofs:
        if roof.peak:
            slowest = max((r.bandwidth for r in roofs if r.bandwidth), default=1.0)
            start = max(10.0**x0, roof.peak / slowest)
            line = tag("line", x1=x_of(start), y1=y_of(roof.peak), x2=width - right, y2=y_of(roof.peak), class_="roof")
            parts += [line, text(width - right + 6, y_of(roof.peak) + 4, roof.label, "tick", "start")]
        else:
            end = min(top_peak / roof.bandwidth, 10.0**x1)
            start = max(10.0**x0, 10.0**y0 / roof.bandwidth)
            (ax, ay), (bx, by) = ((x_of(at), y_of(at * roof.bandwidth)) for at in (start, end))
            parts.append(tag("line", x1=ax, y1=ay, x2=bx, y2=by, class_="roof slope"))
            parts.append(text((ax + 2 * bx) / 3 - 7, (ay + 2 * by) / 3, roof.label, "tick", "end"))
    for point in points:
        x, y = x_of(max(point.intensity, 10.0**x0)), y_of(max(point.rate, 10.0**y0))
        kind = "measured" if point.is_measured else "predicted"
        title = tag(
            "title", f"{point.label}: {point.rate:.3g} operations per cycle, {point.intensity:.3g} per byte, {kind}"
        )
        parts.append(
            tag(
                "g",
                title,
                tag("circle", cx=x, cy=y, r=6, class_=f"point {kind}"),
                text(x, y - 10, point.number, "label"),
            )
        )
    parts.append(text((left + width - right) / 2, height - 8, "operations per byte", "axis"))
    rotation = f"translate(14 {(top + height - bottom) / 2:.1f}) rotate(-90)"
    parts.append(tag("g", text(0, 0, "operations per cycle", "axis"), transform=rotation))
    words = "; ".join(f"{p.number}: {p.label}, {p.rate:.3g} operations per cycle" for p in points)
    return picture(width, height, f"Roofline. {words}", *parts, class_="chart")


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    """Logarithms of the ends of an axis."""
    return log10(min(values)) - 0.1, log10(max(values)) + 0.2


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... between two logarithms; powers of ten alone on a long axis."""
    steps = (1, 2, 5) if high - low < 2 else (1,)
    values = [step * 10.0**decade for decade in range(floor(low), ceil(high) + 1) for step in steps]
    return [value for value in values if low <= log10(value) <= high]


_PLAN: Final = (680, 240)


@dataclass(frozen=True, slots=True)
class TemporaryBox:
    """A temporary in a block of memory: first and last point in time, first byte, size."""

    name: str
    start: int
    end: int
    offset: int
    size: int


def memory_chart(rectangles: Sequence[TemporaryBox], marks: Sequence[tuple[int, int]], label: str) -> Markup:
    """A block of memory over time: bytes upwards, the points of a function from left to right.

    Time begins with the first temporary and ends with the last one.

    Args:
        rectangles: The temporaries.
        marks: Points, and the line of the user's file that is computed there.
        label: What screen readers say.
    """
    width, height = _PLAN
    left, top, right, bottom = 70, 12, 12, 40
    total = max((r.offset + r.size for r in rectangles), default=1) or 1
    first, last = min((r.start for r in rectangles), default=0), max((r.end + 1 for r in rectangles), default=1)

    def x_of(point: float) -> float:
        return left + (point - first) / max(last - first, 1) * (width - left - right)

    def y_of(offset: float) -> float:
        return height - bottom - offset / total * (height - top - bottom)

    parts = [tag("rect", x=left, y=top, width=width - left - right, height=height - top - bottom, class_="frame")]
    halves = (0, total // 2, total)
    parts += [text(left - 7, y_of(offset) + 4, size_text(offset), "tick", "end") for offset in halves]
    labelled = -40.0
    for point, line in (mark for mark in marks if first <= mark[0] <= last):
        x = x_of(point)
        parts.append(tag("line", x1=x, y1=top, x2=x, y2=height - bottom, class_="grid"))
        if x - labelled >= 48 and x <= width - right - 20:
            parts.append(text(x, height - bottom + 15, f"line {line}", "tick"))
            labelled = x
    for number, r in enumerate(rectangles):
        x, y = x_of(r.start), y_of(r.offset + r.size)
        wide, high = max(x_of(r.end + 1) - x, 3.0), max(y_of(r.offset) - y, 2.0)
        title = tag("title", f"{r.name}: {size_text(r.size)} at offset {r.offset}")
        shape = tag("rect", x=x, y=y, width=wide, height=high, rx=2, class_=f"buffer hue{number % 6}")
        shown = high >= 13 and wide >= 7 * len(r.name)
        parts.append(
            tag("g", title, shape, *([text(x + wide / 2, y + high / 2 + 4, r.name, "label")] if shown else []))
        )
    parts.append(text((left + width - right) / 2, height - 6, "time: the function's instructions in order", "axis"))
    return picture(width, height, label, *parts, class_="chart")
