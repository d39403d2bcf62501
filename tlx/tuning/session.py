"""A tuning session: runs searches, stores measurements, and reports results."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tlx.lower.knobs import OPENMP, KnobQuery, parse_knobs, value_text
from tlx.tuning.database import BestKnobs, Database, Entry, EntryKey, best_of, key_of
from tlx.tuning.machine import today
from tlx.tuning.pools import Pool
from tlx.tuning.product import parse_product
from tlx.tuning.search import Search, SearchResult
from tlx.tuning.trial import Trial, TrialOutcome, target_of


def format_report(report: SearchReport, *, several: bool) -> str:
    """Describe the result of a search; the processor is named if there are `several`."""
    where = f" on {report.key.cpu}" if several else ""
    head = f"{report.key.target}: {report.key.problem}{where}: "
    if report.error:
        return f"{head}no measurements"
    best = report.best
    text = f"{best.knobs} is {best.ratio:.2f} times as fast, {best.rate:.1f} GFLOP/s" if best else "the model's choice"
    notes = [note for note, on in (("known before", report.known), ("budget spent", not report.complete)) if on]
    return head + text + (f" ({', '.join(notes)})" if notes else "")


def format_database(entries: Mapping[str, Entry], path: Path) -> str:
    """List all entries by processor."""
    lines = [f"{path}: {len(entries)} product{'' if len(entries) == 1 else 's'}"]
    for cpu in sorted({entry["cpu"] for entry in entries.values()}):
        lines += ["", cpu]
        for entry in sorted((e for e in entries.values() if e["cpu"] == cpu), key=_order):
            lines.append(f"  {_described(entry)}")
    return "\n".join(lines) + "\n"


def format_knobs_file(entries: Mapping[str, Entry], cpu: str) -> str:
    """The best knobs on a processor as a knobs file; longest patterns first, as the first match applies."""
    lines = [f"# Knobs that 'tlx tune' found for {cpu}."]
    own = [entry for entry in entries.values() if entry["cpu"] == cpu]
    for entry in sorted(own, key=lambda e: (-len(key_of(e).problem.split()), _order(e))):
        best = best_of(entry)
        if best is None:
            continue
        settings = parse_knobs(best.knobs).settings
        words = re.sub(rf" {OPENMP}=\d+$", f" {OPENMP}", entry["problem"])  # patterns omit the number of threads
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


@dataclass(frozen=True, slots=True)
class Budget:
    """The limit of a search: trials, seconds, or none."""

    trials: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SearchReport:
    """The result of a search.

    Attributes:
        key: The product, target and processor.
        best: The best knobs; None for the model's choice.
        complete: Whether the budget sufficed.
        known: Whether the database had the complete result.
        error: Why the model's choice could not be measured; empty if it could.
    """

    key: EntryKey
    best: BestKnobs | None
    complete: bool
    known: bool = False
    error: str = ""


@dataclass(slots=True)
class TuningSession:
    """Searches for any number of products on all machines of a pool.

    Attributes:
        database: Stores each outcome as it arrives.
        pool: Runs the trials.
        budget: Budget of each search.
        remeasure: Whether to repeat earlier searches.
        step: Called after each trial.
    """

    database: Database
    pool: Pool
    budget: Budget = field(default_factory=Budget)
    remeasure: bool = False
    step: Callable[[], object] = lambda: None

    def run(self, queries: Sequence[KnobQuery]) -> Iterator[SearchReport]:
        """Search for every product on every kind of machine; yields each report when its search ends.

        Raises:
            UsageError: The database cannot be written, or a product is invalid.
        """
        keys = [EntryKey(q.text, q.target, q.features, kind) for kind in self.pool.kinds for q in queries]
        with ThreadPoolExecutor(len(self.pool.kinds)) as threads:  # one search at a time for each kind of machine
            groups = [[key for key in keys if key.cpu == kind] for kind in self.pool.kinds]
            if len(groups) == 1:
                yield from map(self._search, groups[0])
                return
            for reports in threads.map(self._search_all, groups):
                yield from reports

    def _search_all(self, keys: Sequence[EntryKey]) -> list[SearchReport]:
        return [self._search(key) for key in keys]

    def _search(self, key: EntryKey) -> SearchReport:
        if self.remeasure:
            self.database.forget(key)
        entry = self.database.entry(key)
        if entry["complete"]:
            return SearchReport(key, best_of(entry), complete=True, known=True)
        measuring = _TrialRunner(self, key, entry)
        product = parse_product(key.problem)
        result = Search(product, target_of(key.target, key.features), measuring).run()
        best = _best(result)
        if result.error:
            return SearchReport(key, None, complete=False, error=result.error)
        self.database.finish(key, best, complete=result.complete)
        return SearchReport(key, best, result.complete)


def _best(result: SearchResult) -> BestKnobs | None:
    outcome = result.outcome
    if outcome is None or not result.knobs:
        return None
    rate, default = round(outcome.rate, 2), round(outcome.default_rate, 2)
    return BestKnobs(str(result.knobs), round(outcome.ratio, 4), rate, default, today()[:10])


class _TrialRunner:
    """Measures those trials of a search that the database has no outcomes of, within the budget."""

    def __init__(self, session: TuningSession, key: EntryKey, entry: Entry) -> None:
        self._session = session
        self._key = key
        trials: dict[str, Entry] = entry["trials"]
        self._known = {name: _outcome(trial, key.cpu) for name, trial in trials.items() if not trial["error"]}
        self._left = session.budget.trials
        seconds = session.budget.seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def __call__(self, trials: Sequence[Trial]) -> list[TrialOutcome | None]:
        outcomes: dict[Trial, TrialOutcome] = {t: self._known[t.key] for t in trials if t.key in self._known}
        for batch in self._batches([t for t in trials if t not in outcomes]):
            for trial, outcome in self._session.pool.run(self._key.cpu, batch):
                self._session.database.record(self._key, trial, outcome)
                outcomes[trial] = outcome
                self._session.step()
        return [outcomes.get(trial) for trial in trials]

    def _batches(self, trials: list[Trial]) -> Iterator[list[Trial]]:
        """The trials that the budget allows: all at once, or one by one if it limits time."""
        if self._left is not None:
            trials = trials[: self._left]
            self._left -= len(trials)
        if self._end is None:
            yield trials
            return
        for trial in trials:
            if time.monotonic() >= self._end:
                return
            yield [trial]


def _outcome(trial: Entry, cpu: str) -> TrialOutcome:
    return TrialOutcome(
        tuple(trial["ratios"]), trial["best_ratio"], trial["rate"], trial["default_rate"], cpu, trial["error"]
    )
