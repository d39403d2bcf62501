"""TLX's messages about LLVM IR, located in the source that clang compiled it from, in clang's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tlx.diagnostics import Note, Source, Span
from tlx.ir.parser.debug_locations import SourcePlace, source_places


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        kind: `error`, `warning`, `note` or `remark`.
        text: What it says.
        place: Where in the source; None if that is not known.
        name: The source.
        notes: Further messages.
    """

    kind: str
    text: str
    place: SourcePlace | None
    name: str
    notes: tuple[Message, ...] = ()

    def render(self) -> str:
        """`file:line:column: kind: text`, the line and a caret, then the notes."""
        place = self.place or self.name
        lines = [f"{place}: {self.kind}: {self.text}" if place else f"{self.kind}: {self.text}"]
        if self.place is not None and (shown := _shown(self.place)):
            lines.append(shown)
        return "\n".join([*lines, *(note.render() for note in self.notes)])


def message_of(kind: str, text: str, span: Span | None, notes: Sequence[Note], name: str) -> Message:
    """A message about LLVM IR as one about the source."""
    places = source_places(span)
    further: list[Message] = [Message("note", "in code that is inlined here", outer, "") for outer in places[1:]]
    for note in notes:
        note_places = source_places(note.span)
        if note.span is None and places and str(places[0]) in note.message:
            continue  # it only names the place
        further.append(Message("note", note.message, note_places[0] if note_places else None, ""))
    return Message(kind, text, places[0] if places else None, name, tuple(further))


def _shown(place: SourcePlace) -> str:
    """The line of a place and a caret below it; empty if the file cannot be read."""
    try:
        source = Source(place.file, (Path(place.directory) / place.file).read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return ""
    if not place.line or not place.column or not source.line(place.line):
        return ""
    return source.span(source.offset(place.line, place.column)).render()
