"""Debug locations: the lines of a program that an instruction was compiled from.

%t = call i32 ... !dbg !30
!30 = !DILocation(line: 12, column: 7, scope: !20, inlinedAt: !31)
!20 = distinct !DISubprogram(..., file: !1, ...)       ->  program.c:12:7
!1 = !DIFile(filename: "program.c", directory: "/src")
!31 = distinct !DILocation(line: 40, column: 3, ...)   ->  program.c:40:3, the call that was inlined
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tlx.diagnostics import Span

_ATTACHMENT: Final = re.compile(r"!dbg (!\d+)")
_LOCATION: Final = re.compile(r"line: (\d+)(?:, column: (\d+))?, scope: (!\d+)(?:, inlinedAt: (!\d+))?")
_FILE: Final = re.compile(r"\bfile: (!\d+)")
_SCOPE: Final = re.compile(r"\bscope: (!\d+)")
_FILE_NAME: Final = re.compile(r'filename: "([^"]*)"(?:, directory: "([^"]*)")?')
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in a program.

    Attributes:
        file: The file, as the compiler was told.
        directory: The directory that the compiler ran in.
        line: The line, from 1; 0 for code that belongs to none.
        column: The column in bytes, from 1; 0 if it is not known.
    """

    file: str
    directory: str
    line: int
    column: int

    def __str__(self) -> str:
        """`file:line:column`, without what is not known."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


def source_places(span: Span | None) -> list[SourcePlace]:
    """Where an instruction of a module is in the program: its own place, then the calls that were inlined, inner first.

    Empty without debug information.
    """
    if span is None:
        return []
    text = span.source.text
    end = text.find("\n", span.end)
    attachment = _ATTACHMENT.search(text, span.start, end if end >= 0 else len(text))
    node = attachment[1] if attachment else None
    places: list[SourcePlace] = []
    while node is not None and len(places) < _DEEPEST:
        location = _LOCATION.search(_metadata(text, node))
        if location is None:
            break
        line, column, scope, node = location.groups()
        places.append(SourcePlace(*_file_of(text, scope), int(line), int(column or 0)))
    return places


def _metadata(text: str, name: str) -> str:
    """The text of a metadata node."""
    match = re.search(rf"(?m)^{re.escape(name)} = (.*)$", text)
    return match[1] if match else ""


def _file_of(text: str, scope: str) -> tuple[str, str]:
    """File and directory of a scope, or of the nearest enclosing scope that has one."""
    for _ in range(_DEEPEST):
        node = _metadata(text, scope)
        if (file := _FILE.search(node)) is not None:
            name = _FILE_NAME.search(_metadata(text, file[1]))
            return (name[1], name[2] or "") if name else ("", "")
        if (outer := _SCOPE.search(node)) is None:
            break
        scope = outer[1]
    return "", ""
