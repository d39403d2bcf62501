"""The page: a report as one HTML file that needs no other file and no network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from tlx import __version__
from tlx.diagnostics import size_text
from tlx.explain.assembly import Analysis, AssemblyLoop
from tlx.explain.charts import Point, Roof, TemporaryBox, memory_chart, roofline_chart
from tlx.explain.collect import ExplainedKernel, Report, StageText
from tlx.explain.figures import UNITS, Figures, figures
from tlx.explain.html import Content, Markup, escape, join, tag
from tlx.explain.provenance import Keys, Line, Section, line_of
from tlx.explain.svg import legend
from tlx.explain.tiles import tiles
from tlx.explain.trees import tree
from tlx.lower.memory.planner import MemoryPlan, PlannedTemporary
from tlx.lower.remarks import Remark
from tlx.lower.to_tiles.problem import Copy, Gemm, LineShuffle
from tlx.target.target import Target

_MOST_LINES: Final = 400
"""Lines of a function that are shown."""
_MOST_COLUMN_LINES: Final = 6000
"""Lines of a text that are shown; later functions are left out."""
_MOST_INDENT: Final = 8
_MOST_OPEN: Final = 12
"""Rows of a table of temporaries that is shown unfolded."""
_MOST_KERNELS: Final = 60
_MOST_POINTS: Final = 24
_INTRINSIC: Final = re.compile(r"(@(?:llvm|tlx)\.[\w.]+)")
_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The machine code of a report.

    Attributes:
        loops: The main loop of functions, by name.
        analyses: What llvm-mca says about them, by name.
        note: What is missing, and how to get it; empty if nothing is.
    """

    loops: Mapping[str, AssemblyLoop]
    analyses: Mapping[str, Analysis]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measured speed of a function on this machine.

    Attributes:
        function: Its name, without `@`.
        seconds: Time of a call.
        operations: Operations of a call.
        share: The part of the machine's measured peak that it reaches, 0 to 1.
        peak: What the loop of that peak does: an instruction, or the arrays that it reads and writes.
    """

    function: str
    seconds: float
    operations: int
    share: float
    peak: str


def page(report: Report, code: MachineCode, measured: Measurement | None = None) -> str:
    """The HTML of a report; equal reports give equal pages."""
    script = _template("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {
        "hash": digest,
        "title": escape(f"{report.title} on {report.target}: TLX"),
        "style": _template("page.css"),
        "script": script,
        "header": _header(report),
        "main": join(
            [
                _stages(report),
                _kernels(report, code),
                _roofline(report, measured),
                _memory(report),
                _remarks(report),
            ]
        ),
        "footer": escape(f"Written by TLX {__version__}. Predictions come from the cost model of the target."),
    }
    return _PLACEHOLDER.sub(lambda match: values[match[1]], _template("page.html"))


def _template(name: str) -> str:
    return files("tlx.explain").joinpath("templates", name).read_text(encoding="utf-8")


def _header(report: Report) -> Markup:
    totals = [
        ("target", report.target),
        ("kernels", str(len(report.kernels))),
        ("temporaries", size_text(sum(_plan_size(plan) for plan in report.plans.values()))),
        ("remarks", str(len(report.remarks))),
    ]
    links = [
        ("stages", "Stages"),
        ("kernels", "Kernels"),
        ("roofline", "Roofline"),
        ("memory", "Memory"),
        ("remarks", "Remarks"),
    ]
    return join(
        [
            tag("h1", report.title),
            tag("p", "What TLX makes of this program, stage by stage, and why.", class_="lead"),
            tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in totals), class_="totals"),
            tag(
                "nav",
                tag("ul", *(tag("li", tag("a", words, href=f"#{name}")) for name, words in links)),
                aria_label="Parts of the report",
            ),
        ]
    )


# Stages --------------------------------------------------------------------------------------------------------------


def _stages(report: Report) -> Markup:
    columns = list(report.columns)
    is_original = [False] * len(columns)
    first_stage = next((i for i, c in enumerate(columns) if c.name == "to-2d"), len(columns))
    numbered = first_stage - 1  # the TLX IR, whose lines are the keys
    is_original[numbered] = True
    tabs = tag(
        "div",
        *(
            tag("button", c.title, type="button", aria_pressed="true" if not i else "false")
            for i, c in enumerate(columns)
        ),
        class_="tabs",
        role="group",
        aria_label="Shown text",
    )
    helped = tag(
        "span",
        tag("kbd", "↑"), " ", tag("kbd", "↓"), " line, ", tag("kbd", "←"), " ", tag("kbd", "→"), " text, ",
        tag("kbd", "Enter"), " pin or unfold, ", tag("kbd", "Esc"), " unpin",
        class_="help",
    )  # fmt: skip
    return tag(
        "section",
        tag("h2", "Stages"),
        tag(
            "p",
            "Point at a line to see what it became; click to pin it and to scroll the other texts there.",
            class_="lead",
        ),
        tabs,
        tag("div", *(_column(c, i, has_ids=i == numbered) for i, c in enumerate(columns)), class_="columns"),
        tag("div", helped, tag("span", class_="status", role="status"), class_="keys"),
        id="stages",
    )


def _column(column: StageText, number: int, *, has_ids: bool) -> Markup:
    is_users = len(column.sections) == 1 and not column.sections[0].title
    parts: list[Markup] = []
    left = _MOST_COLUMN_LINES
    for part in column.sections:
        most = left if is_users else min(left, _MOST_LINES)
        parts.append(_section(part, column.name, most, is_users=is_users, has_ids=has_ids))
        left -= min(most, len(part.lines))
    heading = tag("h3", column.title, " ", tag("code", column.name), id=f"column-{number}")
    text = tag("div", *parts, class_="text code", tabindex=0, role="group", aria_labelledby=f"column-{number}")
    return tag("section", heading, text, class_="column")


def _section(part: Section, stage: str, most: int, *, is_users: bool, has_ids: bool) -> Markup:
    """A part of a column, with its first lines only if it has more than `most`."""
    lines = [
        _line(line, number if is_users else None, f"line-{number}" if has_ids else None)
        for number, line in enumerate(part.lines[:most], 1)
    ]
    if len(part.lines) > most:
        rest = len(part.lines) - most
        how = "" if is_users else f"; tlx-lower --stop-after={stage} writes all"
        lines.append(tag("span", f"... {rest} more lines{how}", class_="l note"))
    text = join(lines, "\n")
    if is_users:
        return text
    title = part.title or "declarations and globals"
    summary = tag("summary", tag("b", title), f"  {len(part.lines)} lines", data_k=_keys(part.keys))
    return tag("details", summary, text, open=bool(part.title) and not part.is_made)


def _line(line: Line, number: int | None, identifier: str | None) -> Markup:
    shown = [tag("span", str(number), class_="n")] if number is not None else []
    kind = "l numbered" if shown else "l"
    return tag("span", *shown, *_coloured(line.text), class_=kind, data_k=_keys(line.keys), id=identifier)


def _coloured(text: str) -> list[Content]:
    """A line of LLVM assembly with its comment, or the names of its intrinsics, in colour; deep indents are cut."""
    indent = len(text) - len(text.lstrip(" "))
    text = text[max(0, indent - _MOST_INDENT) :]
    if text.lstrip().startswith(";"):
        return [tag("span", text, class_="c")]
    parts = _INTRINSIC.split(text)
    return (
        [tag("span", part, class_="o") if number % 2 else part for number, part in enumerate(parts)]
        if text
        else ["\u200b"]
    )


def _keys(keys: Keys) -> str | None:
    return " ".join(map(str, keys)) or None


# Kernels -------------------------------------------------------------------------------------------------------------


def _kernels(report: Report, code: MachineCode) -> Markup:
    shown = report.kernels[:_MOST_KERNELS]
    parts: list[Content] = [tag("h2", "Kernels")]
    lead = "Each 2-D tree becomes a kernel: a function with the loops and tiles that its sizes need."
    parts.append(tag("p", lead if shown else "The program has no kernels.", class_="lead"))
    if code.note:
        parts.append(tag("p", code.note, class_="note"))
    parts += [_kernel(kernel, number, report, code) for number, kernel in enumerate(shown, 1)]
    if len(report.kernels) > len(shown):
        parts.append(tag("p", f"{len(report.kernels) - len(shown)} more kernels are not shown.", class_="note"))
    return tag("section", *parts, id="kernels")


def _kernel(kernel: ExplainedKernel, number: int, report: Report, code: MachineCode) -> Markup:
    values = figures(kernel.facts)
    lines = [tag("a", str(key), href=f"#line-{key}") for key in kernel.keys[:12]]
    more = ", ..." if len(kernel.keys) > len(lines) else ""
    origin = tag("span", "lines ", join(lines, ", "), more, class_="lines") if lines else Markup()
    head = tag("div", tag("h3", f"{number}. ", tag("code", f"@{kernel.name}")), origin, class_="head")
    cut = tiles(kernel.facts)
    pictures = [
        tag("div", tag("h4", "Tree"), tag("div", tree(kernel.facts), class_="scroll"), _tree_legend(kernel)),
        *([tag("div", tag("h4", "Blocks and tiles"), cut, _tile_legend(kernel))] if cut else []),
    ]
    remarks = _remarks_of(kernel, report.remarks)
    reasons = (
        tag("ul", *(tag("li", r.message, class_=r.kind) for r in remarks), class_="reasons") if remarks else Markup()
    )
    facts = tag("div", tag("h4", "Figures"), _figures(kernel, values), reasons)
    return tag(
        "article",
        head,
        tag("p", _what(kernel), class_="what"),
        tag("div", *pictures, facts, class_="grid"),
        _assembly(kernel, code),
        class_="card kernel",
        id=f"kernel-{number}",
    )


def _what(kernel: ExplainedKernel) -> str:
    problem = kernel.facts.problem
    if isinstance(problem, Gemm):
        return problem.title
    if isinstance(problem, Copy):
        return f"copy of {problem.source.layout}"
    if isinstance(problem, LineShuffle):
        return "shuffle of loaded vectors"
    return problem.kernel_name.removeprefix("tlx.").replace(".", " ")


def _tree_legend(kernel: ExplainedKernel) -> Markup:
    is_product = isinstance(kernel.facts.problem, Gemm)
    kinds = [("memory", "operand in memory"), ("operation", "computed on tiles"), ("store", "result in memory")]
    return legend(
        [*kinds[:1], *([("packing", "packed copy"), ("product", "product")] if is_product else []), *kinds[1:]]
    )


def _tile_legend(kernel: ExplainedKernel) -> Markup:
    if isinstance(kernel.facts.problem, Gemm):
        return legend([("tile", "register tile"), ("block", "cache block"), ("packing", "packed into panels")])
    return legend([("tile", "computed at a time")])


def _figures(kernel: ExplainedKernel, values: Figures) -> Markup:
    rows: list[tuple[str, str]] = []
    recipe = kernel.facts.recipe
    if recipe is not None:
        mma = recipe.mma
        packed = [name for name, on in (("A", recipe.packing.a), ("B", recipe.packing.b)) if on]
        rows += [
            ("unit", f"{UNITS[mma.unit]}: {mma.operand_a} x {mma.operand_b} -> {mma.accumulator}"),
            ("register tile", f"{recipe.tile.mr} x {recipe.tile.nr}, {recipe.tile.kstep} along K at a time"),
            ("cache blocks", f"M {recipe.blocks.mc}, N {recipe.blocks.nc}, K {recipe.blocks.kc}"),
            ("packed", " and ".join(packed) or "nothing"),
            ("predicted", f"{100 * recipe.efficiency:.0f} % of the unit's peak"),
        ]
    if values.operations:
        rows.append(("operations", _count(values.operations)))
    if values.bytes:
        rows.append(("bytes", size_text(values.bytes)))
    if values.cycles:
        rows.append(("predicted cycles", _count(round(values.cycles))))
    if kernel.calls > 1:
        rows.append(("calls", f"{kernel.calls} in each call of the program"))
    if kernel.home != kernel.name:
        rows.append(("inlined into", f"@{kernel.home}"))
    return tag("dl", *(join([tag("dt", name), tag("dd", value)]) for name, value in rows), class_="pair")


def _count(number: int) -> str:
    for unit, size in (("G", 10**9), ("M", 10**6)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:,}".replace(",", "\u202f")


def _remarks_of(kernel: ExplainedKernel, remarks: Sequence[Remark]) -> list[Remark]:
    keys = set(kernel.keys)
    return [remark for remark in remarks if remark.span is not None and line_of(remark.span) in keys]


def _assembly(kernel: ExplainedKernel, code: MachineCode) -> Markup:
    loop, analysis = code.loops.get(kernel.home), code.analyses.get(kernel.home)
    if loop is None:
        return Markup()
    shares = iter(analysis.shares if analysis is not None else ())
    most = max(analysis.shares, default=0.0) if analysis is not None else 0.0
    instructions = {line.strip() for line in loop.instructions}
    rows: list[Markup] = []
    for line in loop.lines:
        is_instruction = line.strip() in instructions and line[:1].isspace()
        cells = [tag("td", line.expandtabs(8), class_="code")]
        if analysis is not None:
            share = next(shares, 0.0) if is_instruction else None
            cells.append(tag("td", f"{100 * share:.1f} %" if share is not None else "", class_="num"))
            cells.append(tag("td", _bar(share / most if share and most else 0.0), class_="bar"))
        rows.append(tag("tr", *cells))
    heads = [
        tag("th", "instruction"),
        *([tag("th", "share", class_="num"), tag("th", "")] if analysis is not None else []),
    ]
    summary = f"Main loop: {len(loop.instructions)} instructions"
    parts: list[Markup] = []
    if analysis is not None:
        summary += f", {analysis.cycles:.3g} cycles an iteration"
        words = (
            f"llvm-mca for {analysis.processor}: {analysis.cycles:.3g} cycles an iteration, {analysis.throughput:.2f} "
            "instructions per cycle, data in the first-level cache. A share is an instruction's part of the cycles in "
            "which units are busy."
        )
        parts += [tag("p", words, class_="note"), _ports(analysis)]
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="asm")
    return tag("details", tag("summary", summary), *parts, tag("div", table, class_="scroll", tabindex=0))


def _ports(analysis: Analysis) -> Markup:
    cells = [
        join(
            [
                tag("span", resource.name),
                tag("span", _bar(min(1.0, resource.cycles / analysis.cycles)), class_="bar"),
                tag("span", f"busy {100 * min(1.0, resource.cycles / analysis.cycles):.0f} %"),
            ]
        )
        for resource in analysis.resources
    ]
    return tag("div", *cells, class_="ports")


def _bar(share: float) -> Markup:
    rect = tag("rect", width=round(110 * share, 1), height=9, rx=2)
    return tag("svg", rect, viewBox="0 0 110 9", aria_hidden="true")


# Roofline ------------------------------------------------------------------------------------------------------------


def _roofline(report: Report, measured: Measurement | None) -> Markup:
    heading, points = tag("h2", "Roofline"), list[Point]()
    peaks: dict[str, float] = {}
    targets: list[Target] = []
    totals = [0, 0]
    rows: list[Markup] = []
    for number, kernel in enumerate(report.kernels[:_MOST_KERNELS], 1):
        values = figures(kernel.facts)
        totals[0] += values.operations * kernel.calls
        totals[1] += values.bytes * kernel.calls
        targets.append(kernel.facts.target)
        if values.unit is not None and values.peak:
            label = UNITS[values.unit]
            peaks[label] = max(peaks.get(label, 0.0), values.peak)
        if values.rate and values.bytes:
            if len(points) < _MOST_POINTS:
                points.append(Point(f"@{kernel.name}", values.intensity, values.rate, False, str(number)))
            link = tag("a", f"@{kernel.name}", href=f"#kernel-{number}")
            numbers = (f"{values.intensity:.3g}", f"{values.rate:.3g}", _count(round(values.cycles * kernel.calls)))
            rows.append(
                tag(
                    "tr",
                    tag("td", str(number)),
                    tag("td", link, class_="code wide"),
                    *(tag("td", n, class_="num") for n in numbers),
                )
            )
    if not points:
        return tag("section", heading, tag("p", "No kernel has a prediction.", class_="note"), id="roofline")
    target = targets[0]
    lanes = 2 * target.core.fmas_per_cycle * target.vector_bytes / 4
    peaks = peaks or {"float multiply-add": lanes}
    roofs = [Roof(f"{name}", peak=peak) for name, peak in sorted(peaks.items(), key=lambda item: item[1])]
    roofs += [
        Roof("L2", bandwidth=target.memory.l2_bytes_per_cycle),
        Roof("beyond L2", bandwidth=target.memory.bytes_per_cycle),
    ]
    words = (
        "Predicted by the cost model, on one thread. Horizontal lines are units that multiply, slopes are bandwidths."
    )
    note = Markup()
    if measured is not None:
        intensity, bound = totals[0] / max(totals[1], 1), max(peaks.values())
        if " read" in measured.peak:
            bound = min(bound, intensity * target.memory.bytes_per_cycle)
        points.append(Point(f"@{measured.function}", intensity, measured.share * bound, True, "measured"))
        speed = measured.operations / measured.seconds / 1e9
        note = tag(
            "p",
            f"Measured: @{measured.function} takes {_duration(measured.seconds)} and computes {speed:.3g} billion "
            f"operations a second, {100 * measured.share:.0f} % of the peak on this machine ({measured.peak}).",
        )
    heads = ("", "kernel", "operations per byte", "operations per cycle", "cycles, all calls")
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", h, class_="num" if i > 1 else None) for i, h in enumerate(heads)))),
        tag("tbody", *rows),
    )
    marks = [("predicted", "predicted"), *([("measured", "measured")] if measured is not None else [])]
    return tag(
        "section",
        heading,
        tag("p", words, class_="lead"),
        note,
        tag(
            "div",
            tag("div", tag("div", roofline_chart(roofs, points), class_="scroll"), legend(marks)),
            tag("div", table, class_="scroll"),
            class_="card beside",
        ),
        id="roofline",
    )


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


# Memory --------------------------------------------------------------------------------------------------------------


def _plan_size(plan: MemoryPlan) -> int:
    return sum(max((t.offset + t.size for t in block), default=0) for block in (plan.heap, plan.stack))


def _memory(report: Report) -> Markup:
    lead = (
        "Temporaries of a function share one block of memory: those that are not live at the same time may overlap."
        if report.plans
        else "The program needs no temporaries."
    )
    cards: list[Markup] = []
    for name, plan in report.plans.items():
        marks = [(point, line_of(span)) for point, span in plan.marks]
        for kind, block in (("heap", plan.heap), ("stack", plan.stack)):
            if not block:
                continue
            rectangles = [
                TemporaryBox(_short_name(t.name), max(start, 0), min(end, plan.points), t.offset, t.size)
                for t in block
                for start, end in t.lifetime
            ]
            size, total = max(t.offset + t.size for t in block), sum(t.size for t in block)
            title = f"@{name}: {size_text(size)} on the {kind}"
            saved = f", {size_text(total)} without sharing" if total > size else ""
            chart = memory_chart(rectangles, marks, f"Memory plan of {title}")
            cards.append(
                tag(
                    "article",
                    tag("h3", tag("code", title), saved),
                    tag("div", tag("div", chart, class_="scroll"), _temporaries(block), class_="beside"),
                    class_="card",
                )
            )
    return tag("section", tag("h2", "Memory"), tag("p", lead, class_="lead"), *cards, id="memory")


def _short_name(name: str) -> str:
    """The name of the value that a temporary holds."""
    return name.removesuffix(".heap").removesuffix(".buf")


def _temporaries(block: Sequence[PlannedTemporary]) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", _short_name(t.name), class_="code"),
            tag("td", size_text(t.size), class_="num"),
            tag("td", str(t.offset), class_="num"),
        )
        for t in block
    ]
    heads = tag("tr", tag("th", "temporary"), tag("th", "size", class_="num"), tag("th", "offset", class_="num"))
    table = tag("table", tag("thead", heads), tag("tbody", *rows))
    count = f"{len(rows)} temporar{'y' if len(rows) == 1 else 'ies'}"
    return tag("details", tag("summary", count), tag("div", table, class_="scroll"), open=len(rows) <= _MOST_OPEN)


# Remarks -------------------------------------------------------------------------------------------------------------


def _remarks(report: Report) -> Markup:
    rows: list[Markup] = []
    for remark in report.remarks:
        place: Content = ""
        if remark.span is not None:
            line = line_of(remark.span)
            is_linked = remark.span.source.text == report.source.text
            place = tag("a", f"line {line}", href=f"#line-{line}") if is_linked else remark.span.place
        cells = [
            tag("td", place),
            tag("td", tag("span", remark.kind, class_=f"kind {remark.kind}")),
            tag("td", tag("code", remark.stage)),
            tag("td", remark.message, class_="wide"),
        ]
        rows.append(tag("tr", *cells))
    heads = tag("tr", *(tag("th", words) for words in ("place", "kind", "stage", "decision")))
    table = tag("div", tag("table", tag("thead", heads), tag("tbody", *rows)), class_="scroll")
    lead = "What the stages decided, and why: applied, missed, or a fact." if rows else "The lowering made no remarks."
    return tag(
        "section", tag("h2", "Remarks"), tag("p", lead, class_="lead"), table if rows else Markup(), id="remarks"
    )
