"""Errors with a location: sources, spans, and the one family of exceptions that the project raises.

Every error a user can cause is a `TlxError`. It renders the way LLVM's tools do:

    file.ll:3:14: error: expected 12 elements for shape 3x4, got <9 x float>
      %a = call token @llvm.tensor.typeinfo(<9 x float> %v, ...
                 ^~~~~
    file.ll:1:30: note: declared here
"""

from __future__ import annotations

import bisect
import warnings
from array import array
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Final

_CONTEXT_COLUMNS: Final = 160
_LONGEST_COMPARED: Final = 64  # characters of a word that is compared with others
_TIED: Final = 4  # words that are as near as each other, at most


@dataclass(frozen=True, eq=False)
class Source:
    """A named text; translates offsets to lines and columns.

    Attributes:
        name: What the user calls the text: a path, `<stdin>`, `<string>`.
        text: The text, newlines as in the file.
    """

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> array[int]:
        starts = array("q", [0])
        find = self.text.find
        position = find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = find("\n", position + 1)
        return starts

    def location(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both counted from 1."""
        line = bisect.bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Text of line `number` (from 1), without its newline."""
        starts = self._line_starts
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def offset(self, line: int, column: int) -> int:
        """Offset of a line and column, both from 1; clipped to the text."""
        starts = self._line_starts
        line = min(max(line, 1), len(starts))
        return min(starts[line - 1] + max(column, 1) - 1, len(self.text))

    def span(self, start: int, end: int | None = None) -> Span:
        """The span from `start` to `end` (one character where `end` is left out)."""
        return Span(self, start, start + 1 if end is None else end)


@dataclass(frozen=True)
class Span:
    """A range of characters of a source."""

    source: Source
    start: int
    end: int

    def render(self) -> str:
        """The source line and a caret line below it."""
        line, column = self.source.location(self.start)
        text = self.source.line(line)
        width = max(1, min(self.end - self.start, len(text) - column + 1))
        cut = max(0, column - _CONTEXT_COLUMNS // 2) if len(text) > _CONTEXT_COLUMNS else 0
        shown = text[cut : cut + _CONTEXT_COLUMNS].expandtabs(1)
        width = min(width, max(1, len(shown) - (column - 1 - cut)))
        return f"{shown}\n{' ' * (column - 1 - cut)}^{'~' * (width - 1)}"

    @property
    def place(self) -> str:
        """`file:line:col`."""
        line, column = self.source.location(self.start)
        return f"{self.source.name}:{line}:{column}"


@dataclass(frozen=True)
class Note:
    """A second place that explains an error."""

    message: str
    span: Span | None = None

    def render(self) -> str:
        """`file:line:col: note: message`, with source line and caret where there is a span."""
        return _render("note", self.message, self.span, None)


@dataclass(eq=False)
class TlxError(Exception):
    """Anything a user can cause: bad input, an impossible request, an unwritable file.

    Attributes:
        message: What is wrong, naming both sides, and what to do.
        span: Where, if the error has a place in a text.
        notes: Further places.
        name: The prefix of `error:` where there is no span (a file, a tool).
    """

    message: str
    span: Span | None = None
    notes: list[Note] = field(default_factory=list[Note])
    name: str | None = None

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def render(self) -> str:
        """The whole diagnostic as a tool prints it, without a trailing newline."""
        parts = [_render("error", self.message, self.span, self.name)]
        parts.extend(note.render() for note in self.notes)
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.render()


class TlxWarning(UserWarning):
    """A warning: legal input that is probably a mistake. `warnings.warn` shows it; programs print it like an error.

    Attributes:
        message: What may go wrong, and what to do.
        span: Where.
        notes: Further places.
    """

    def __init__(self, message: str, span: Span | None = None, notes: Sequence[Note] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.notes = tuple(notes)

    def render(self) -> str:
        """`file:line:col: warning: message`, source line and caret, then the notes."""
        return "\n".join((_render("warning", self.message, self.span, None), *(note.render() for note in self.notes)))

    def __str__(self) -> str:
        return self.render()


_given: Final[ContextVar[list[TlxWarning] | None]] = ContextVar("given warnings", default=None)


def warn(warning: TlxWarning, stacklevel: int = 1) -> None:
    """Give a warning to the user, and to `recorded_warnings`; `stacklevel` as for `warnings.warn`."""
    given = _given.get()
    if given is not None and str(warning) not in map(str, given):
        given.append(warning)
    warnings.warn(warning, stacklevel=stacklevel + 1)


@contextmanager
def recorded_warnings() -> Generator[list[TlxWarning]]:
    """The warnings that `warn` gives inside, each once; those of other threads are not among them."""
    given: list[TlxWarning] = []
    token = _given.set(given)
    try:
        yield given
    finally:
        _given.reset(token)


class ParseError(TlxError):
    """The text is not LLVM assembly that the reader knows."""


class VerifyError(TlxError):
    """The module breaks a rule of LLVM IR or of the tensor intrinsics."""


class LoweringError(TlxError):
    """The lowering cannot handle this function; nothing of it was lowered."""


class UsageError(TlxError):
    """Wrong options, files or arguments."""


class EvaluationError(TlxError):
    """The evaluator met undefined behaviour or something it does not run."""


def python_call(package: str, sources: dict[str, Source] | None = None) -> Span | None:
    """The place in the user's Python program that calls a package; None if its source is not available.

    Args:
        package: Name of the package, whose own frames are skipped.
        sources: Files that were seen before, so that spans in one file share a source.
    """
    import inspect

    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith((__name__, package, "contextlib")):
        frame = frame.f_back
    return None if frame is None else _place(frame, {} if sources is None else sources)


def _place(frame: FrameType, sources: dict[str, Source]) -> Span | None:
    import linecache

    code = frame.f_code
    if code.co_filename not in sources:
        lines = linecache.getlines(code.co_filename, frame.f_globals)
        sources[code.co_filename] = Source(shown_path(code.co_filename), "".join(lines))
    source = sources[code.co_filename]
    line, last, start, end = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    if not source.text or line is None or start is None or end is None:
        return None
    text = source.line(line).encode()
    begin = source.offset(line, len(text[:start].decode(errors="replace")) + 1)
    if last != line:
        return source.span(begin)
    return source.span(begin, source.offset(line, len(text[:end].decode(errors="replace")) + 1))


def shown_path(path: str) -> str:
    """A path as a user names it: relative if it is below the working directory."""
    with suppress(ValueError, OSError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 index`, `2 indices`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def size_text(size: int) -> str:
    """`4.0 MiB`, `64 bytes`."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """`; did you mean '...'?` with the `nearest` word; empty where none is near."""
    near = nearest(word, known, cutoff)
    return suggestion(f"'{near}'" if near else None)


def suggestion(name: str | None) -> str:
    """`; did you mean ...?`, which ends a message; empty without a name."""
    return f"; did you mean {name}?" if name else ""


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that a misspelt one was probably meant to be: in other case, misspelt, or cut short.

    Args:
        word: What was written.
        known: What can be written there; of words that are equally near, the first.
        cutoff: How alike they must be, from 0 to 1.
    """
    return _nearest(word, tuple(dict.fromkeys(known)), cutoff) if len(word) <= _LONGEST_COMPARED else None


@lru_cache(maxsize=256)
def _nearest(word: str, known: tuple[str, ...], cutoff: float) -> str | None:
    from difflib import get_close_matches

    folded = {k.lower(): k for k in known if k != word}
    lower = word.lower()
    if lower in folded:
        return folded[lower]
    close = get_close_matches(lower, folded, n=_TIED, cutoff=cutoff)
    if close:
        return folded[min((k for k in folded if k in close), key=lambda k: _unlikeness(k, lower))]
    longer = [k for k in folded if k.startswith(lower)] if len(lower) > 2 else []
    return folded[longer[0]] if len(longer) == 1 else None


def _unlikeness(known: str, word: str) -> tuple[float, int]:
    """How unlike two words are; among equally similar words, a longer common prefix comes first."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, known, word)
    first = matcher.get_matching_blocks()[0]
    return -matcher.ratio(), -first.size if first.a == first.b == 0 else 0


def _render(kind: str, message: str, span: Span | None, name: str | None) -> str:
    if span is None:
        prefix = f"{name}: " if name else ""
        return f"{prefix}{kind}: {message}"
    return f"{span.place}: {kind}: {message}\n{span.render()}"
