"""The tuning database: a JSON file in the user's cache that any number of processes may write concurrently.

    {"schema": 1,
     "entries": {"<problem> | <target> <features> | <cpu>": {
        "problem": "matmul 64x64x64 float", "cpu": "...", "target": "avx512", "features": ["+avx512f", ...],
        "trials": {"tile=8x48@3": {"ratios": [1.02, ...], "best_ratio": 1.03,
                                       "rate": 98.1, "default_rate": 95.9, "error": ""}, ...},
        "complete": true,
        "best": {"knobs": "tile=8x48", "ratio": 1.04, "rate": 98.1, "default_rate": 94.3, "date": "2026-11-22"}}}}

Every change reads the file and replaces it as a whole, under a lock on another file in its directory. A file that is
damaged, or of a later schema, is never overwritten.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tlx.diagnostics import Source, Span, TlxError, UsageError
from tlx.lower.knobs import FUSED, NO_KNOBS, OPENMP, KnobOrigin, KnobQuery, Knobs, parse_knobs
from tlx.tuning.knobs_file import TOO_MANY_DIGITS, place_of_digits

if TYPE_CHECKING:
    from tlx.tuning.trial import Trial, TrialOutcome

SCHEMA: Final = 1
_MAX_LISTED: Final = 3
_FIELDS: Final = {"problem": str, "cpu": str, "target": str, "features": list, "trials": dict, "complete": bool}
_NUMBER: Final = (int, float)
_BEST: Final = {"knobs": str, "ratio": _NUMBER, "rate": _NUMBER, "default_rate": _NUMBER, "date": str}
_TRIAL: Final = {"ratios": list, "best_ratio": _NUMBER, "rate": _NUMBER, "default_rate": _NUMBER, "error": str}

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EntryKey:
    """Key of an entry: a product, the target and features it is lowered for, and the processor it runs on."""

    problem: str
    target: str
    features: tuple[str, ...]
    cpu: str

    def __str__(self) -> str:
        """The entry's name in the file."""
        return f"{self.problem} | {self.target} {','.join(sorted(set(self.features)))} | {self.cpu}"

    @property
    def new(self) -> Entry:
        """An entry without trials."""
        entry = {"problem": self.problem, "cpu": self.cpu, "target": self.target}
        return entry | {"features": sorted(set(self.features)), "trials": {}, "complete": False, "best": None}


def default_path() -> Path:
    """`tlx/tuned.json` in the user's cache."""
    from tlx.api import files

    return files.user_cache_directory() / "tuned.json"


class Database:
    """The file."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()

    def entries(self) -> dict[str, Entry]:
        """All entries by name; none if the file does not exist.

        Raises:
            UsageError: The file cannot be read, is damaged, or of a later schema.
        """
        from tlx.api import files

        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UsageError(
                f"could not read the tuning database '{self.path}': {files.os_error_text(error)}"
            ) from None
        return _entries(Source(str(self.path), files.decode(data, str(self.path), hint="")))

    def entry(self, key: EntryKey) -> Entry:
        """The entry with this key, or a new one."""
        return self.entries().get(str(key)) or key.new

    def record(self, key: EntryKey, trial: Trial, outcome: TrialOutcome) -> None:
        """Add a trial's outcome to an entry.

        Raises:
            UsageError: The file cannot be read or written.
        """

        def change(entry: Entry) -> None:
            entry["trials"][trial.key] = {
                "ratios": [round(ratio, 4) for ratio in outcome.ratios],
                "best_ratio": round(outcome.best_ratio, 4),
                "rate": round(outcome.rate, 3),
                "default_rate": round(outcome.default_rate, 3),
                "error": outcome.error,
            }

        self._change(key, change)

    def finish(self, key: EntryKey, best: BestKnobs | None, *, complete: bool) -> None:
        """Record the best of an entry's trials, None for the model's choice.

        Raises:
            UsageError: The file cannot be read or written.
        """
        fields = asdict(best) if best else None
        self._change(key, lambda entry: entry.update(best=fields, complete=complete))

    def forget(self, key: EntryKey) -> None:
        """Replace an entry with a new one without trials.

        Raises:
            UsageError: The file cannot be read or written.
        """
        self._change(key, lambda entry: entry.update(key.new))

    def clear(self) -> int:
        """Remove all entries; returns how many there were. A damaged file is kept under another name.

        Raises:
            UsageError: The file cannot be written.
        """
        with self._locked():
            try:
                count = len(self.entries())
            except TlxError:
                with self._naming_errors():
                    self.path.replace(self.path.with_suffix(".damaged.json"))
                return 0
            with self._naming_errors():
                self.path.unlink(missing_ok=True)
        return count

    def _change(self, key: EntryKey, change: Callable[[Entry], object]) -> None:
        with self._locked():
            entries = self.entries()
            change(entries.setdefault(str(key), key.new))
            self._write(entries)

    def _write(self, entries: dict[str, Entry]) -> None:
        from tlx.api import files

        text = json.dumps({"schema": SCHEMA, "entries": entries}, indent=1)
        with self._naming_errors(), files.atomic_file(self.path) as file:
            file.write(text.encode())

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        with self._naming_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _naming_errors(self) -> Generator[None]:
        from tlx.api import files

        try:
            yield
        except OSError as error:
            raise UsageError(
                f"could not write the tuning database '{self.path}': {files.os_error_text(error)}"
            ) from None


@dataclass(frozen=True, slots=True)
class BestKnobs:
    """The best knobs of an entry, and the date; speeds, also of the model's choice, in 10^9 operations a second."""

    knobs: str
    ratio: float
    rate: float
    default_rate: float
    date: str

    @property
    def text(self) -> str:
        """Description for remarks."""
        return f"tuned on {self.date} at {self.rate:.1f} GFLOP/s, {self.ratio:.2f} times the model's choice"


class TunedKnobs:
    """The database as a source of knobs, for products on a processor and a number of threads."""

    def __init__(self, database: Database, cpu: str, threads: int = 1) -> None:
        self._database = database
        self._threads = threads
        self._cpu = cpu
        self._entries: dict[str, Entry] | None = None
        self._has_knobs: dict[str, bool] = {}  # by query

    def __call__(self, query: KnobQuery, /) -> Knobs:
        """The best known knobs; else those of the product on one thread, of the unfused product, or of both.

        Raises:
            UsageError: The database is damaged.
        """
        knobs = self._best(query)
        self._has_knobs[query.text] = bool(knobs)
        return knobs

    def unused(self) -> Iterator[tuple[str, Span | None]]:
        """See `tlx.lower.knobs.TrackedKnobSource`."""
        without = [text for text, has_knobs in self._has_knobs.items() if not has_knobs]
        if without:
            examples = f"{', '.join(without[:_MAX_LISTED])}{', ...' * (len(without) > _MAX_LISTED)}"
            yield f"{self._database.path} has nothing better than the model's choice for {examples}", None

    def description(self) -> object:
        """See `tlx.lower.knobs.DescribedKnobSource`."""
        best = {name: entry.get("best") for name, entry in self._loaded().items()}
        return str(self._database.path), self._cpu, self._threads, best

    def _loaded(self) -> dict[str, Entry]:
        """The entries, which are read once."""
        if self._entries is None:
            self._entries = self._database.entries()
        return self._entries

    def _best(self, query: KnobQuery) -> Knobs:
        for problem in self._similar(query.text):
            knobs = self._best_of(query, problem)
            if knobs and FUSED in query.text and FUSED not in problem:
                settings = {name: value for name, value in knobs.settings.items() if name != "kc"}
                return Knobs(**settings, origin=knobs.origin)
            if knobs:
                return knobs
        return NO_KNOBS

    def _similar(self, text: str) -> Iterator[str]:
        """The problems whose knobs suit a query, best match first."""
        sequential = text.removesuffix(f" {OPENMP}")
        for problem in dict.fromkeys((sequential, sequential.removesuffix(f" {FUSED}"))):
            if text != sequential:
                yield f"{problem} {OPENMP}={self._threads}"
            yield problem

    def _best_of(self, query: KnobQuery, problem: str) -> Knobs:
        target = query.target.partition(".")[0]  # a version is named `target.features`
        key = EntryKey(problem, target, query.features, self._cpu)
        best = best_of(self._loaded().get(str(key), {}))
        return parse_knobs(best.knobs, KnobOrigin(best.text, binding=False)) if best else NO_KNOBS


def tuned_knobs(path: str | None = None) -> TunedKnobs:
    """Tuned knobs for this machine, from a file or the user's cache: `Options(knobs=tuned_knobs())`.

    The number of threads is that of OpenMP: OMP_NUM_THREADS, or the processors that this process may use.

    Raises:
        UsageError: There is no such file; only the user's cache may be missing.
    """
    from tlx.tuning.machine import processor

    if path and not Path(path).exists():
        raise UsageError(f"no tuning database '{path}'; 'tlx tune --database={path}' would write it")
    requested = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    threads = int(requested) if requested.isdecimal() else len(os.sched_getaffinity(0))
    return TunedKnobs(Database(Path(path) if path else None), processor(), threads)


def best_of(entry: Entry) -> BestKnobs | None:
    """The best knobs of an entry; None if the model's choice is the best known."""
    best = entry.get("best")
    return BestKnobs(**best) if best else None


def key_of(entry: Entry) -> EntryKey:
    """The key of an entry."""
    return EntryKey(entry["problem"], entry["target"], tuple(entry["features"]), entry["cpu"])


def _entries(source: Source) -> dict[str, Entry]:
    try:
        content: Any = json.loads(source.text)
    except json.JSONDecodeError as error:
        raise _damaged(source, error.msg[:1].lower() + error.msg[1:], error.pos) from None
    except ValueError:
        raise _damaged(source, TOO_MANY_DIGITS, place_of_digits(source)) from None
    except RecursionError:
        raise _damaged(source, "objects are nested too deeply") from None
    if not isinstance(content, dict) or not isinstance(cast("Any", content).get("schema"), int):
        raise _damaged(source, "there is no schema")
    table = cast("dict[str, Any]", content)
    if table["schema"] > SCHEMA:
        message = f"the tuning database has schema {table['schema']}, this TLX supports {SCHEMA}: update TLX"
        raise UsageError(message, source.span(0))
    entries = table.get("entries")
    if not isinstance(entries, dict):
        raise _damaged(source, "there are no entries")
    for name, entry in cast("dict[str, Any]", entries).items():
        if not _is_entry(entry):
            raise _damaged(source, f"the entry '{name}' is not valid", max(source.text.find(json.dumps(name)), 0))
    return cast("dict[str, Entry]", entries)


def _is_entry(entry: Any) -> bool:
    if not _has(entry, _FIELDS) or not all(_has(trial, _TRIAL) for trial in entry["trials"].values()):
        return False
    best = entry.get("best")
    if best is None:
        return True
    if not _has(best, _BEST) or len(best) != len(_BEST):
        return False
    try:
        parse_knobs(best["knobs"])
    except UsageError:
        return False
    return True


def _has(values: Any, fields: Mapping[str, type | tuple[type, ...]]) -> bool:
    if not isinstance(values, dict):
        return False
    return all(isinstance(cast("Entry", values).get(name), type_) for name, type_ in fields.items())


def _damaged(source: Source, what: str, offset: int = 0) -> UsageError:
    message = f"the tuning database is damaged: {what}; repair it, or 'tlx tune --clear' starts anew and keeps this"
    return UsageError(message, source.span(min(offset, max(len(source.text) - 1, 0))))
