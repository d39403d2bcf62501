"""The names that are bound while a function is read, region by region."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from tlx.diagnostics import Note, Span
from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.errors import Reports
from tlx.frontends.tensor_language.types import Type


@dataclass(frozen=True, slots=True)
class Definition:
    """What is known of a name.

    Attributes:
        type: Its type in version 2; None where an error was reported when it was bound.
        span: Where it was bound.
    """

    type: Type | None
    span: Span | None = None

    def note(self) -> list[Note]:
        """A note that points at it."""
        return [] if self.span is None else [Note("declared here", self.span)]


class Scope:
    """Names of the open regions, innermost last.

    Args:
        reports: Where names that are not bound are reported.
        lost: Names that are not reported: something that could not be read may bind them.
    """

    def __init__(self, reports: Reports, lost: set[str]) -> None:
        self._reports = reports
        self._lost = lost
        self._open: list[dict[str, Definition]] = [{}]
        self._closed: dict[str, Definition] = {}
        self._unknown: set[str] = set()

    @contextmanager
    def region(self) -> Generator[None]:
        """Names bound in the block end with it."""
        self._open.append({})
        yield
        self._closed |= self._open.pop()

    def bind(self, name: Name, type_: Type | None) -> None:
        """Bind a name in the innermost region."""
        self._open[-1][name.text] = Definition(type_, name.span)

    def find(self, name: Name) -> Definition:
        """What is known of a name; one that is not bound is reported, once."""
        for names in reversed(self._open):
            if name.text in names:
                return names[name.text]
        if name.text in self._lost:
            return Definition(None)
        closed = self._closed.get(name.text)
        visible = [text for names in self._open for text in names if text not in self._unknown]
        self._reports.undefined(name, None if closed is None else closed.span, visible)
        self._unknown.add(name.text)
        self._open[0][name.text] = Definition(None)
        return Definition(None)
