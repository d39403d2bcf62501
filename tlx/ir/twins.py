"""Functions that differ by their names only: one is lowered, the others are written as that one under their own names.

    define void @f(ptr %x) { A }            define void @f(ptr %x) { B }
                                     ->
    define void @g(ptr %x) { A }            define void @g(ptr %x) { B }, never looked at

In a module of equal functions, all but the first are then as cheap as their text. A function may have twins if

- its text mentions its name once: it does not call itself;
- no large vector stands in its header: such a vector is passed by pointer, which changes the calls as well.

All else is compared as text: functions with subprograms, comdats or sections of their own are different.
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r'@("[^"]*"|[-a-zA-Z$._0-9]+)\s*\(')
_LARGE: Final = re.compile(r"<\s*\d{4,}\s+x\b")


def nameless(text: str, opening: int) -> tuple[str, str] | None:
    """The name of a function, and its text without it; None for a function that has no twins.

    Args:
        text: The function, from `define` to the closing brace.
        opening: Where its opening brace is.
    """
    found = _NAME.search(text, 0, opening)
    if found is None or _LARGE.search(text, 0, opening) or text.count(f"@{found[1]}") > 1:
        return None
    return found[1], text[: found.start(1)] + text[found.end(1) :]
