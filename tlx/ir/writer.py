"""Writing functions back to text: keeping LLVM's numbers in order.

LLVM numbers unnamed values one by one and wants the numbers in a text to follow that order (before LLVM 20 without
gaps). Where lowering took numbered values away or put named ones between them, the remaining numbers are counted
anew; a function whose numbers are in order comes out as it went in.

Directives that keep the order of use lists (`opt -preserve-ll-uselistorder`) count the uses of a value. They hold for
the text they were written for only, and are left out of any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_NUMBERED: Final = re.compile(
    r"""(?P<comment>;[^\n]*) | "[^"]*" | %(?P<local>\d+)(?![-a-zA-Z$._0-9])
      | (?<![-a-zA-Z$._0-9"%@!\#])(?P<label>\d+):""",
    re.VERBOSE,
)
_IN_COMMENT: Final = re.compile(r"%(\d+)(?![-a-zA-Z$._0-9])")
_MODULE_USE_LISTS: Final = re.compile(r"(?m)^(?:; uselistorder directives|uselistorder(?:_bb)?\b[^\n]*)\n?")


def changed_numbers(order: Sequence[str]) -> dict[str, str]:
    """The new number of each name that is a number; empty where all stay.

    Args:
        order: The names that are numbers, in the order LLVM counts them.
    """
    numbers = {old: str(new) for new, old in enumerate(order)}
    return {} if all(old == new for old, new in numbers.items()) else numbers


def renumbered(text: str, numbers: Mapping[str, str]) -> str:
    """A text with other numbers for values and blocks, those in comments included."""

    def in_comment(found: re.Match[str]) -> str:
        return f"%{numbers.get(found[1], found[1])}"

    def replace(found: re.Match[str]) -> str:
        local, label, comment = found.group("local", "label", "comment")
        if local is not None:
            return f"%{numbers.get(local, local)}"
        if label is not None:
            return f"{numbers.get(label, label)}:"
        return _IN_COMMENT.sub(in_comment, comment) if comment is not None else found.group()

    return _NUMBERED.sub(replace, text)


def with_numbers(text: str, values: Sequence[tuple[tuple[int, int], str]], numbers: Mapping[str, str]) -> str:
    """An instruction's text with other numbers at the places (start, end) of its values, each spelled `%name`."""
    pieces: list[str] = []
    position = 0
    for (start, end), name in sorted(values):
        new = numbers.get(name[1:])
        if new is not None:
            pieces += [text[position:start], f"%{new}"]
            position = end
    return "".join([*pieces, text[position:]])


def without_use_lists(footer: str) -> str:
    """The end of a function without its `uselistorder` directives."""
    start = footer.find("uselistorder")
    return footer[:start].replace("; uselistorder directives", "").rstrip() + "\n}"


def without_module_use_lists(text: str) -> str:
    """A module without the `uselistorder` directives of its top level."""
    return _MODULE_USE_LISTS.sub("", text)
