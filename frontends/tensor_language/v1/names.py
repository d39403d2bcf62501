"""Names for values that a text of the first version does not name: its constants and the sizes it leaves to infer."""

from __future__ import annotations

import re
from typing import Final

from tlx.frontends.tensor_language.types import INDEX, ScalarType

_PLAIN: Final = re.compile(r"\d{1,12}(\.\d{1,6})?")


def names_in(text: str) -> frozenset[str]:
    """All local identifiers of a text, without `%`."""
    return frozenset(re.findall(r"%(\w+)", text, re.ASCII))


class FreshNames:
    """Gives out names that a function does not use.

    Args:
        taken: Names that are never given out.
    """

    def __init__(self, taken: frozenset[str]) -> None:
        self._taken = taken
        self._given: set[str] = set()
        self._next: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """The stem itself, or the stem and the first number that makes it unused."""
        name = stem
        while name in self._taken or name in self._given:
            self._next[stem] = self._next.get(stem, 0) + 1
            name = f"{stem}_{self._next[stem]}"
        self._given.add(name)
        return name


def constant_name(value: bool | float, type_: ScalarType) -> str:
    """What a reader would call a constant: `c4`, `c0_5_f32`, `c_minus_1_i32`, `true`."""
    if isinstance(value, bool):
        return str(value).lower()
    digits = str(abs(value)).removesuffix(".0")
    if not _PLAIN.fullmatch(digits):
        return f"c_{type_}"
    sign = "_minus_" if str(value).startswith("-") else ""
    suffix = "" if type_ == INDEX else f"_{type_}"
    return f"c{sign}{digits.replace('.', '_')}{suffix}"
