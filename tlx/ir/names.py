"""Names that are taken, and fresh ones."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

_UNQUOTED: Final = re.compile(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*")


@dataclass(eq=False)
class NameScope:
    """Names that are taken; gives fresh ones."""

    taken: set[str] = field(default_factory=set[str])
    _next: dict[str, int] = field(default_factory=dict[str, int])

    def fresh(self, stem: str) -> str:
        """`stem`, or `stem.1`, `stem.2`, ... if that is taken."""
        name = stem = _plain(stem)
        number = self._next.get(stem, 0)
        while name in self.taken:
            number += 1
            name = f"{stem}.{number}"
        self._next[stem] = number
        self.taken.add(name)
        return name


@lru_cache(maxsize=4096)
def _plain(stem: str) -> str:
    """A stem as a name that needs no quotes."""
    stem = stem.strip('"')
    return stem if _UNQUOTED.fullmatch(stem) else "v" + re.sub(r"[^-a-zA-Z$._0-9]", ".", stem)
