"""Results of models: JSON, and tables in text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tlx.bench.measure import OURS
from tlx.bench.models.measure import ModelCell
from tlx.bench.report import Record, cell_name, facts_of, geometric_mean, markdown_table, read_json
from tlx.diagnostics import UsageError

CELLS: Final = "models"
_KEY: Final = ("row", "types", "size")
_ALIKE: Final = ("machine", "target", "threads")


def record(cell: ModelCell) -> Record:
    """A cell as JSON: milliseconds of a call, ratios of speed to the peers, seconds to compile, MiB."""
    model, ours = cell.model, cell.rates.get(OURS)
    return {
        "row": model.row,
        "types": model.types,
        "size": model.size,
        "variant": "",
        "ms": {
            name: {"median": 1e-6 / rates.median, "best": 1e-6 / rates.best, "spread": rates.spread}
            for name, rates in cell.rates.items()
        },
        "rounds": max((len(rates.rounds) for rates in cell.rates.values()), default=0),
        "to_peers": {name: ours.share(rates) for name, rates in cell.rates.items() if ours and name != OURS},
        "compile_seconds": cell.compile_seconds,
        "memory": cell.memory,
        "notes": cell.notes,
        "error": cell.error,
    }


def read(paths: Sequence[str]) -> Record:
    """Merge reports of models; of a model in several, the last counts.

    Raises:
        UsageError: A report cannot be read, or they differ in machine, target or number of threads.
    """
    files = [
        str(file) for path in paths for file in (sorted(Path(path).glob("*.json")) if Path(path).is_dir() else [path])
    ]
    if not files:
        raise UsageError("the folder has no reports")
    reports = [read_json(path, CELLS, "tlx bench models --json") for path in files]
    cells: dict[tuple[str, ...], Record] = {}
    peers: dict[str, str] = {}
    for path, report in zip(files, reports, strict=True):
        for fact in _ALIKE:
            if report.get(fact) != reports[0].get(fact):
                raise UsageError(f"'{path}' is for {fact} {report.get(fact)}, '{files[0]}' for {reports[0].get(fact)}")
        peers |= report["peers"]
        cells |= {tuple(cell[name] for name in _KEY): cell for cell in report[CELLS]}
    return {**reports[-1], "peers": peers, CELLS: list(cells.values())}


def select_records(cells: Sequence[Record], selection: Sequence[Sequence[str]]) -> list[Record]:
    """The cells of the given rows, types and sizes; an empty list means all."""
    return [
        cell
        for cell in cells
        if all(not names or cell[key] in names for key, names in zip(_KEY, selection, strict=True))
    ]


def best_peer(cell: Record) -> str | None:
    """The fastest of the other libraries."""
    return min(cell["to_peers"], key=lambda name: cell["to_peers"][name], default=None)


def progress_line(cell: Record) -> str:
    """A model in a line, for output that does not go to a terminal."""
    times = ", ".join(f"{name} {_milliseconds(cell, name)}" for name in cell["ms"])
    return f"{cell_name(cell)}: {cell['error'] or (times + ' ms' if times else 'left out')}"


def terminal_table(report: Record) -> Iterator[str]:
    """All models: milliseconds, ratio to the best other library, seconds to compile, MiB; notes; geometric means."""
    cells: list[Record] = report[CELLS]
    names = [OURS, *_peers(report)]
    compiled = [name for name in names if any(name in cell["compile_seconds"] for cell in cells)]
    short = {name: _SHORT.get(name, name) for name in names}
    yield (
        f"{'':46} {_over('ms, median', 9 * len(names))} {'to':>6} {_over('compile s', 6 * len(compiled))} "
        f"{_over('MiB', 6 * len(names))}"
    ).rstrip()
    yield (
        f"{'model':17} {'types':5} {'size':23}{''.join(f'{short[n]:>9}' for n in names)}   best "
        f"{''.join(f'{short[n]:>6}' for n in compiled)} {''.join(f'{short[n]:>6}' for n in names)}"
    )
    for cell in cells:
        best = best_peer(cell)
        ratio = f"{cell['to_peers'][best]:.2f}" if best else "-"
        times, seconds, memory = (
            "".join(f"{show(cell, name) or '-':>{width}}" for name in of)
            for show, of, width in ((_milliseconds, names, 9), (_seconds, compiled, 6), (_mebibytes, names, 6))
        )
        yield f"{cell['row']:17} {cell['types']:5} {cell['size']:23}{times} {ratio:>6} {seconds} {memory}"
    for cell in cells:
        for who, note in [(OURS, cell["error"])] * bool(cell["error"]) + list(cell["notes"].items()):
            yield f"{cell_name(cell)}: {who}: {note}"
    for label, types, means in _means(report):
        yield f"speed, {types}, times {label}'s: {means}"


def _over(title: str, width: int) -> str:
    return f"{title:>{width}}"


_SHORT: Final = {"onnxruntime": "ort"}


def markdown(report: Record) -> str:
    """The table in Markdown; a peer's ratio is our speed as a multiple of the peer's."""
    cells: list[Record] = report[CELLS]
    peers = _peers(report)
    names = [OURS, *peers]
    heads = ["model", "types", "size", *(f"{name}, ms" for name in names), *(f"/ {peer}" for peer in peers)]
    heads += [f"{name}, s" for name in names] + [f"{name}, MiB" for name in names]
    rows = [
        [
            *(cell[key] for key in _KEY),
            *(_milliseconds(cell, name) for name in names),
            *(f"{cell['to_peers'][peer]:.2f}" if peer in cell["to_peers"] else "" for peer in peers),
            *(_seconds(cell, name) for name in names),
            *(_mebibytes(cell, name) for name in names),
        ]
        for cell in cells
    ]
    means = [f"- speed, {types}, times {label}'s: {value}" for label, types, value in _means(report)]
    return "\n\n".join([facts_of(report), "\n".join(markdown_table(heads, rows)), "\n".join(means)]) + "\n"


def _means(report: Record) -> Iterator[tuple[str, str, str]]:
    """Geometric means of the ratios, by library and types."""
    for types in dict.fromkeys(cell["types"] for cell in report[CELLS]):
        own = [cell for cell in report[CELLS] if cell["types"] == types]
        for peer in _peers(report):
            ratios = [cell["to_peers"][peer] for cell in own if peer in cell["to_peers"]]
            mean = geometric_mean(ratios)
            if mean is not None:
                yield peer, types, f"{mean:.2f} (geometric mean of {len(ratios)}; faster in {_faster(ratios)})"
        ratios = [cell["to_peers"][best] for cell in own if (best := best_peer(cell))]
        mean = geometric_mean(ratios)
        if mean is not None:
            yield "the fastest", types, f"{mean:.2f} (geometric mean of {len(ratios)}; faster in {_faster(ratios)})"


def _faster(ratios: Sequence[float]) -> int:
    return sum(ratio > 1 for ratio in ratios)


def _peers(report: Record) -> list[str]:
    """The libraries that ran any model, in the order of the report."""
    return [name for name in report["peers"] if any(name in cell["ms"] for cell in report[CELLS])]


def _milliseconds(cell: Record, name: str) -> str:
    time: Any = cell["ms"].get(name)
    return f"{time['median']:.3g}" if time and time["median"] < 1000 else f"{time['median']:.0f}" if time else ""


def _seconds(cell: Record, name: str) -> str:
    seconds = cell["compile_seconds"].get(name)
    return f"{seconds:.1f}" if seconds is not None else ""


def _mebibytes(cell: Record, name: str) -> str:
    memory = cell["memory"].get(name)
    return f"{memory:.0f}" if memory is not None else ""
