"""Tokens of LLVM assembly.

One regular expression finds them all; comments and white space are skipped, offsets are kept, so every token
knows its place in the text. A plain vector type (`<4 x i32>`) and a constant vector of integers (`<i32 1, i32 2>`),
of which a tensor's calls are full, are one token each where they are spelled as LLVM spells them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, cast

from tlx.diagnostics import ParseError, Source

_NAME: Final = r"(?:[-a-zA-Z$._0-9\x80-\U0010ffff]+|\"[^\"]*\")"

# A label may begin like nearly anything else (`$x:`, `7:`, `"a b":`), so it is tried before those.
_TOKEN: Final = re.compile(
    rf"""
    (?:[ \t\r\n\f\v]+|;[^\n]*)*+
    (?:
      (?P<local>%{_NAME})
    | (?P<label>(?:[-a-zA-Z$._0-9]++|\"[^\"]*\"):(?!:))
    | (?P<number>[us]?0x[KLMHR]?[0-9a-fA-F]+|[-+]?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?)
    | (?P<string>c?\"[^\"]*\")
    | (?P<word>[a-zA-Z_][a-zA-Z0-9_.]*)
    | (?P<vector><\d{{1,10}}[ ]x[ ](?:i\d{{1,8}}|half|bfloat|float|double)>)
    | (?P<integers><i\d{{1,8}}[ ]-?\d{{1,20}}(?:,[ ]i\d{{1,8}}[ ]-?\d{{1,20}})*>)
    | (?P<punct>[=,*()\[\]{{}}<>|^:])
    | (?P<global>@{_NAME})
    | (?P<meta>!(?:[-a-zA-Z$._\\][-a-zA-Z$._0-9\\]*|\d+|\"[^\"]*\")?)
    | (?P<group>\#(?:\d+|[a-z_]+))
    | (?P<comdat>\${_NAME})
    | (?P<dots>\.\.\.)
    | (?P<end>\Z)
    | (?P<wrong>)
    )
    """,
    re.VERBOSE,
)
_KINDS: Final = ("", *_TOKEN.groupindex)
_END: Final = _TOKEN.groupindex["end"]
_WRONG: Final = _TOKEN.groupindex["wrong"]
_BLANK: Final = re.compile(r"(?:[ \t\r\n\f\v]+|;[^\n]*)*+")


class Token(NamedTuple):
    """A token: its kind, its spelling, where it starts."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset behind the last character."""
        return self.start + len(self.text)


# What `Token(...)` does, in half the time.
_token: Final = cast("Callable[[tuple[str, str, int]], Token]", partial(tuple.__new__, Token))  # pyright: ignore[reportUnknownMemberType]


def tokenize(source: Source, start: int = 0, end: int | None = None) -> list[Token]:
    """All tokens of `source.text[start:end]`, with a last token of kind `end`.

    Raises:
        ParseError: A character that begins no token, such as an unfinished string.
    """
    stop = len(source.text) if end is None else end
    tokens: list[Token] = []
    append = tokens.append
    for found in _TOKEN.finditer(source.text, start, stop):
        group = found.lastindex or 0
        append(_token((_KINDS[group], found[group], found.start(group))))
        if group >= _END:
            break
    if tokens[-1].kind == "wrong":
        raise _no_token(source, tokens[-1].start, stop)
    return tokens


class LazyTokens:
    """Tokens from a place on, found when they are asked for: for text whose end only parsing tells."""

    def __init__(self, source: Source, start: int) -> None:
        self._source = source
        self._position = start
        self._tokens: list[Token] = []

    def __getitem__(self, index: int) -> Token:
        """The token of that number.

        Raises:
            ParseError: A character that begins no token stands before it or there.
        """
        tokens = self._tokens
        while index >= len(tokens):
            if tokens and tokens[-1].kind == "end":
                return tokens[-1]
            found = _TOKEN.match(self._source.text, self._position)
            group = (found.lastindex or 0) if found is not None else _WRONG
            if found is None or group == _WRONG:
                raise _no_token(self._source, self._position, len(self._source.text))
            tokens.append(Token(_KINDS[group], found[group], found.start(group)))
            self._position = found.end()
        return tokens[index]


def _no_token(source: Source, position: int, stop: int) -> ParseError:
    blank = _BLANK.match(source.text, position, stop)
    place = blank.end() if blank else position
    what = "unfinished string" if '"' in source.text[place : place + 2] else "unexpected character"
    return ParseError(f"{what} in LLVM assembly", source.span(place))
