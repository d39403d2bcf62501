"""Text to tokens, for both versions of the language.

A token is a kind, a text and an offset, kept in three parallel lists: a text of 10,000 lines has some 150,000 of them.

    %name %0                local          0.5 1. 2e-3 0x1.8p3 -inf nan   float
    @name @0                global         "text"                         string
    word                    word           = , : ( ) [ ] { } < > ? x -> <=
    .modifier               modifier           each a kind of its own
    12 -7                   integer

Shapes are written without spaces, so two rules come before that of words: a scalar type is cut before an `x` that a
size follows, and an `x` is cut from what follows unless that is a letter. `f32x4x?` gives `f32`, `x`, `4`, `x`, `?`,
and `2x8` gives `2`, `x`, `8`. Comments run from `;` to the end of the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import Source

_HEX: Final = "[0-9a-fA-F]"
_PATTERN: Final = re.compile(
    rf"""
    (?:[ \t\r\n\f\v]++ | ;[^\n]*+)*+
    (?: (?P<local> %(?:\d+|[A-Za-z]\w*))
      | (?P<punctuation> -> | <= | [=,:()\[\]{{}}<>?] | x(?![A-Za-z_]))
      | (?P<type> (?:index|bool|[a-z]+\d+)(?=x[-+\d?%\s]))
      | (?P<float> [+-]? (?:
            0[xX](?: (?:{_HEX}*\.{_HEX}+ | {_HEX}+\.) (?:[pP][+-]?\d+)? | {_HEX}+[pP][+-]?\d+ )
          | (?:\d*\.\d+|\d+\.) (?:[eE][+-]?\d+)?
          | \d+[eE][+-]?\d+
          | (?:inf|nan)(?!\w) ))
      | (?P<integer> [+-]?\d+)
      | (?P<word> [A-Za-z_]\w*)
      | (?P<modifier> \.[A-Za-z_]\w*)
      | (?P<global> @(?:\d+|[A-Za-z]\w*))
      | (?P<string> "[\x20-\x21\x23-\x7e]*")
      | (?P<bad> "[^"\n]*"? | [%@] | [-+.] | [^\s\w%@"=,:()\[\]{{}}<>?;.+-]+ | .)
      | (?P<end> \Z)
    )
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)


@dataclass(slots=True)
class Tokens:
    """The tokens of a text; the last one has kind `end` and stands right behind the one before it.

    Attributes:
        kinds: What each is: a group's name, or the punctuation itself.
        texts: As written, with `%`, `@`, `.` and quotes.
        starts: Offsets in the text.
        bad: Why, by offset, what is no token at all; these have kind `bad`.
    """

    kinds: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    starts: list[int] = field(default_factory=list[int])
    bad: dict[int, str] = field(default_factory=dict[int, str])


def tokenize(source: Source) -> Tokens:
    """The tokens of a text; never fails."""
    tokens = Tokens()
    kinds, texts, starts = tokens.kinds, tokens.texts, tokens.starts
    end = 0
    for match in _PATTERN.finditer(source.text):
        kind = match.lastgroup or "end"
        text = match[kind]
        start = match.start(kind)
        if kind == "punctuation":
            kind = text
        elif kind == "type":
            kind = "word"
        elif kind == "bad":
            tokens.bad[start] = _why_bad(text)
        elif kind == "end":
            break
        kinds.append(kind)
        texts.append(text)
        starts.append(start)
        end = start + len(text)
    kinds.append("end")
    texts.append("")
    starts.append(end)
    return tokens


def _why_bad(text: str) -> str:
    first = text[0]
    if first == '"':
        return _why_bad_string(text)
    if first in "%@":
        return f"expected a name behind '{first}': a number, or a letter with letters, digits and '_' behind it"
    if first.isascii() and first.isprintable():
        return f"unexpected character '{first}'" + (": comments begin with ';'" if first in "#/" else "")
    return f"unexpected character U+{ord(first):04X}"


def _why_bad_string(text: str) -> str:
    if len(text) == 1 or text[-1] != '"':
        return "expected '\"' at the end of the string: strings end on the line they begin on"
    other = next(c for c in text[1:-1] if not " " <= c <= "~")
    return f"a string holds printable ASCII characters only, found U+{ord(other):04X}"
