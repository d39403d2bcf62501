"""Tokens of LLVM assembly.

One regular expression finds them all; comments and white space are skipped, offsets are kept, so every token
knows its place in the text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tlx.diagnostics import ParseError, Source

_NAME: Final = r"(?:[-a-zA-Z$._0-9\x80-\U0010ffff]+|\"[^\"]*\")"

_TOKEN: Final = re.compile(
    rf"""
      (?P<skip>[ \t\r\n\f\v]+|;[^\n]*)
    | (?P<local>%{_NAME})
    | (?P<global>@{_NAME})
    | (?P<comdat>\${_NAME})
    | (?P<group>\#(?:\d+|[a-z_]+))
    | (?P<meta>!(?:[-a-zA-Z$._\\][-a-zA-Z$._0-9\\]*|\d+|\"[^\"]*\")?)
    | (?P<label>(?:[-a-zA-Z$._0-9]+|\"[^\"]*\"):(?!:))
    | (?P<string>c?\"[^\"]*\")
    | (?P<number>[us]?0x[KLMHR]?[0-9a-fA-F]+|[-+]?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?)
    | (?P<word>[a-zA-Z_][a-zA-Z0-9_.]*)
    | (?P<dots>\.\.\.)
    | (?P<punct>[=,*()\[\]{{}}<>|^:])
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A token: its kind, its spelling, where it starts."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset behind the last character."""
        return self.start + len(self.text)


def tokenize(source: Source, start: int = 0, end: int | None = None) -> list[Token]:
    """All tokens of `source.text[start:end]`, with a last token of kind `end`.

    Raises:
        ParseError: A character that begins no token, such as an unfinished string.
    """
    text = source.text
    stop = len(text) if end is None else end
    tokens: list[Token] = []
    position = start
    match = _TOKEN.match
    while position < stop:
        found = match(text, position, stop)
        if found is None:
            what = "unfinished string" if '"' in text[position : position + 2] else "unexpected character"
            raise ParseError(f"{what} in LLVM assembly", source.span(position))
        kind = found.lastgroup or ""
        if kind != "skip":
            tokens.append(Token(kind, found.group(), position))
        position = found.end()
    tokens.append(Token("end", "", stop))
    return tokens
