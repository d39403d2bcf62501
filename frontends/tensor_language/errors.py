"""Errors of a tensor language text: many in one run."""

from __future__ import annotations

from typing import Final

from tlx.diagnostics import Note, Span, TlxError
from tlx.frontends.tensor_language.ast.base import Name

LIMIT: Final = 50  # errors shown of one text


class ProgramError(TlxError):
    """What is wrong with a text, everything that was found.

    Attributes:
        errors: The errors in the order of the text, each with its place.
    """

    def __init__(self, errors: list[TlxError]) -> None:
        super().__init__(errors[0].message, errors[0].span, errors[0].notes)
        self.errors = errors

    def render(self) -> str:
        """The diagnostics one below the other, and how many are left out."""
        parts = [error.render() for error in self.errors[:LIMIT]]
        if len(self.errors) > LIMIT:
            parts.append(f"error: too many errors: {len(self.errors) - LIMIT} more")
        return "\n".join(parts)


class Reports:
    """Collects errors while a text is worked on."""

    def __init__(self) -> None:
        self.errors: list[TlxError] = []

    def add(self, message: str, span: Span | None, *notes: Note) -> None:
        """Note an error; a second one at the same place is a consequence of the first and is left out."""
        if span is not None and any(e.span is not None and _same(e.span, span) for e in self.errors[-8:]):
            return
        self.errors.append(TlxError(message, span, list(notes)))

    def undefined(self, name: Name, closed: Span | None) -> None:
        """Report a name that nothing defines where it is used.

        Args:
            name: The name.
            closed: Where a region that has ended defines it.
        """
        notes = () if closed is None else (Note("declared here, in a region that has closed", closed),)
        self.add(f"{name} is not defined here: define it above, in this or an enclosing region", name.span, *notes)

    def finish(self) -> None:
        """Raise what was collected.

        Raises:
            ProgramError: There was something.
        """
        if self.errors:
            raise ProgramError(sorted(self.errors, key=lambda e: e.span.start if e.span else -1))


def _same(one: Span, other: Span) -> bool:
    return one.source is other.source and one.start == other.start
