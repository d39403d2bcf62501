"""Errors of a tensor language text, many in one run, and the words in them: plurals, lists, spelling hints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tlx import diagnostics
from tlx.diagnostics import Note, Span, TlxError, suggestion
from tlx.frontends.tensor_language.syntax.nodes import Name

LIMIT: Final = 50  # errors shown of one text
_COMPARED: Final = 200  # names that an unknown one is compared with
_LONGER: Final = 2  # by how many characters the length of a misspelt name may differ


class ProgramError(TlxError):
    """All errors of a text.

    Attributes:
        errors: The errors in the order of the text, each with its location.
    """

    def __init__(self, errors: list[TlxError]) -> None:
        super().__init__(errors[0].message, errors[0].span, errors[0].notes)
        self.errors = errors

    def render(self) -> str:
        """All diagnostics, one after the other, up to a limit."""
        parts = [error.render() for error in self.errors[:LIMIT]]
        if len(self.errors) > LIMIT:
            parts.append(f"error: too many errors: {len(self.errors) - LIMIT} more")
        return "\n".join(parts)


class Reports:
    """Collects errors while a text is processed."""

    def __init__(self) -> None:
        self.errors: list[TlxError] = []

    def add(self, message: str, span: Span | None, *notes: Note) -> None:
        """Add an error; a second one at the same place follows from the first and is dropped."""
        if span is not None and any(e.span is not None and _same(e.span, span) for e in self.errors[-8:]):
            return
        self.errors.append(TlxError(message, span, list(notes)))

    def undefined(self, name: Name, closed: Span | None, visible: Iterable[str]) -> None:
        """Report the use of an undefined name.

        Args:
            name: The name.
            closed: Its definition in a region that has ended, if there is one.
            visible: The names that are defined there.
        """
        notes = () if closed is None else (Note("declared here, in a region that has closed", closed),)
        near = (
            "" if closed is not None or name.text.isdigit() or len(self.errors) >= LIMIT else _suggestion(name, visible)
        )
        remedy = near or ": define it above, in this or an enclosing region"
        self.add(f"{name} is not defined here{remedy}", name.span, *notes)

    def finish(self) -> None:
        """Raise the errors that were collected.

        Raises:
            ProgramError: There are errors.
        """
        if self.errors:
            raise ProgramError(sorted(self.errors, key=lambda e: e.span.start if e.span else -1))


def _suggestion(name: Name, visible: Iterable[str]) -> str:
    """`; did you mean '%...'?` with one of the most recent names of similar length."""
    alike = [f"%{v}" for v in visible if not v.isdigit() and abs(len(v) - len(name.text)) <= _LONGER]
    return did_you_mean(str(name), alike[-_COMPARED:]) if len(name.text) > 1 else ""


def _same(one: Span, other: Span) -> bool:
    return one.source is other.source and one.start == other.start


def listed(words: Iterable[object], last: str) -> str:
    """`0, 1 or 2`."""
    *first, final = map(str, words)
    return f"{', '.join(first)} {last} {final}" if first else final


_SYNONYMS: Final = {  # names of the modifiers in LLVM and elsewhere
    "acq_rel": "acquire_release",
    "monotonic": "relaxed",
    "seq_cst": "sequentially_consistent",
    "system": "cross_device",
}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean '...'?` with a similar word, or with a modifier that has another name in LLVM."""
    known = tuple(known)
    synonym = "." * word.startswith(".") + _SYNONYMS.get(word.lower().lstrip("."), "")
    return diagnostics.did_you_mean(word, known) or suggestion(f"'{synonym}'" if synonym in known else None)
