"""What older LLVMs wrote and today's LLVM cannot read any more, respelled for it.

LLVM reads typed pointers, old attributes and old names of intrinsics to this day. Two spellings it has given up:

* `inrange` in front of an index of a constant `getelementptr` (LLVM 4 to 18), which only helped optimisers:
  blanks take its place, so that lines and columns stay;
* `byval`, `sret` and `inalloca` without the pointee's type (up to LLVM 11): `%struct.S* byval %x` becomes
  `%struct.S* byval(%struct.S) %x`.
"""

from __future__ import annotations

import re
from typing import Final

_INRANGE: Final = re.compile(r'(?P<skipped>"[^"]*"|;[^\n]*)|(?<=[\s,])inrange(?= i\d)')
_UNTYPED: Final = re.compile(r"(?<= )(?:byval|sret|inalloca)(?=[ ,)])")
_ATTRIBUTES: Final = re.compile(r"(?: (?:[a-z]+|align \d+|dereferenceable\(\d+\)))* $")
_LONGEST_TYPE: Final = 4096
_OPENING: Final = "([{<"
_CLOSING: Final = ")]}>"
_NUL: Final = re.compile(r'"[^"]*"|;[^\n]*|\0')


def escape_nul(text: str) -> str:
    """The text with characters NUL spelled otherwise: llvmlite takes the first one for the end of the text.

    LLVM reads one as blank space, except in a string, where it stands for itself.
    """
    return _NUL.sub(_nul, text) if "\0" in text else text


def _nul(found: re.Match[str]) -> str:
    piece = found.group()
    return piece.replace("\0", "\\00" if piece[0] == '"' else " ")


def upgrade_ir(text: str) -> str:
    """The text with what LLVM 22 cannot read respelled; the same text if nothing of that kind is in it."""
    if "inrange " in text:
        text = _INRANGE.sub(lambda m: m.group("skipped") or " " * len("inrange"), text)
    return _UNTYPED.sub(_typed, text)


def _typed(found: re.Match[str]) -> str:
    """`byval` with the type in front of it, or as it is where no typed pointer stands there."""
    before = found.string[max(0, found.start() - _LONGEST_TYPE) : found.start()]
    before = _ATTRIBUTES.sub("", before)
    if not before.endswith("*"):
        return found.group()
    return f"{found.group()}({_last_type(before[:-1])})"


def _last_type(text: str) -> str:
    """The type at the end of a text: back to the bracket, comma or space that it follows."""
    depth = 0
    quoted = False
    for index in range(len(text) - 1, -1, -1):
        character = text[index]
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _CLOSING:
            depth += 1
        elif depth == 0 and character in f"{_OPENING}, \n":
            return text[index + 1 :]
        elif character in _OPENING:
            depth -= 1
    return text
