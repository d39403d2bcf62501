"""What was found, for people and as a knobs file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tlx.lower.knobs import OPENMP, parse_knobs, value_text
from tlx.tuning.database import Entry, best_of, key_of
from tlx.tuning.session import SearchReport


def format_report(report: SearchReport, *, several: bool) -> str:
    """A search's result; `several`: there are several kinds of machines."""
    where = f" on {report.key.cpu}" if several else ""
    head = f"{report.key.target}: {report.key.problem}{where}: "
    if report.error:
        return f"{head}nothing could be measured"
    best = report.best
    text = f"{best.knobs} is {best.ratio:.2f} times as fast, {best.rate:.1f} GFLOP/s" if best else "the model's choice"
    notes = [note for note, on in (("known before", report.known), ("budget spent", not report.complete)) if on]
    return head + text + (f" ({', '.join(notes)})" if notes else "")


def format_database(entries: Mapping[str, Entry], path: Path) -> str:
    """All entries, by processor."""
    lines = [f"{path}: {len(entries)} product{'' if len(entries) == 1 else 's'}"]
    for cpu in sorted({entry["cpu"] for entry in entries.values()}):
        lines += ["", cpu]
        for entry in sorted((e for e in entries.values() if e["cpu"] == cpu), key=_order):
            lines.append(f"  {_described(entry)}")
    return "\n".join(lines) + "\n"


def format_knobs_file(entries: Mapping[str, Entry], cpu: str) -> str:
    """The best knobs on a processor, as `--knobs` reads them; longest patterns first, as the first match decides."""
    lines = [f"# Knobs that 'tlx tune' found for {cpu}."]
    mine = [entry for entry in entries.values() if entry["cpu"] == cpu]
    for entry in sorted(mine, key=lambda e: (-len(key_of(e).problem.split()), _order(e))):
        best = best_of(entry)
        if best is None:
            continue
        settings = parse_knobs(best.knobs).settings
        words = re.sub(rf" {OPENMP}=\d+$", f" {OPENMP}", entry["problem"])  # files know no number of threads
        lines += ["", f"# {best.text}", f'["{entry["target"]}: {words}"]']
        lines += [f"{name} = {_toml(value)}" for name, value in settings.items()]
    return "\n".join(lines) + "\n"


def _order(entry: Entry) -> tuple[str, str]:
    return entry["target"], entry["problem"]


def _described(entry: Entry) -> str:
    best = best_of(entry)
    text = f"{best.knobs}, {best.text}" if best else "the model's choice"
    return f"{entry['target']}: {entry['problem']}: {text}{'' if entry['complete'] else ' (so far)'}"


def _toml(value: object) -> str:
    text = value_text(value)
    return f'"{text}"' if "x" in text else text
