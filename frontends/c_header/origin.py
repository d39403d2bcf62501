"""Where in the C program an instruction comes from: clang -g says so.

%t = call i32 ... !dbg !30
!30 = !DILocation(line: 12, column: 7, scope: !20)
!20 = distinct !DISubprogram(..., file: !1, ...)       ->  program.c:12:7
!1 = !DIFile(filename: "program.c", directory: "/src")
"""

from __future__ import annotations

import re
from typing import Final

from tlx.diagnostics import Note, Span

_DEBUG: Final = re.compile(r"!dbg (!\d+)")
_LOCATION: Final = re.compile(r"line: (\d+)(?:, column: (\d+))?, scope: (!\d+)")
_FILE: Final = re.compile(r"\bfile: (!\d+)")
_SCOPE: Final = re.compile(r"\bscope: (!\d+)")
_NAME: Final = re.compile(r'filename: "([^"]*)"')


def origin(span: Span | None) -> Note | None:
    """A note that names the line of the C program, None if the file has no debug information for the place."""
    if span is None:
        return None
    text = span.source.text
    end = text.find("\n", span.end)
    debug = _DEBUG.search(text, span.start, end if end >= 0 else len(text))
    location = _LOCATION.search(_node(text, debug.group(1))) if debug else None
    if location is None:
        return None
    line, column, scope = location.groups()
    place = ":".join(part for part in (_file(text, scope), line, column) if part)
    return Note(f"this is {place} of the C program")


def _node(text: str, name: str) -> str:
    """The text of a metadata node."""
    found = re.search(rf"(?m)^{re.escape(name)} = (.*)$", text)
    return found.group(1) if found else ""


def _file(text: str, scope: str) -> str:
    """The file of a scope, or of the nearest scope around it that has one."""
    for _ in range(100):
        node = _node(text, scope)
        file = _FILE.search(node)
        if file is not None:
            name = _NAME.search(_node(text, file.group(1)))
            return name.group(1) if name else ""
        outer = _SCOPE.search(node)
        if outer is None:
            break
        scope = outer.group(1)
    return ""
