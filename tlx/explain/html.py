"""HTML and SVG as text in which everything that is not built here is escaped.

tag("td", "a < b", **{"class": "n"})        ->  <td class="n">a &lt; b</td>
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final

_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""Characters that HTML does not allow, or that would show text in another order than it is written."""
_VOID: Final = frozenset({"br", "circle", "col", "line", "meta", "path", "polyline", "rect"})


class Markup(str):
    """Text that is HTML or SVG already."""

    __slots__ = ()


Content = str | Markup
Attribute = str | int | float | bool | None


def escape(text: str) -> str:
    """Text for the inside of an element or of a quoted attribute."""
    return html.escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))


def join(parts: Iterable[Content], separator: str = "") -> Markup:
    """Parts one after the other; those that are not markup are escaped."""
    return Markup(separator.join(part if isinstance(part, Markup) else escape(part) for part in parts))


def tag(name: str, *content: Content, **attributes: Attribute) -> Markup:
    """An element.

    Args:
        name: Its name.
        content: What is in it; text that is no `Markup` is escaped.
        attributes: Its attributes. An underscore at the end of a name is dropped (`class_`), others become hyphens.
            None and False leave an attribute out.
    """
    spelled = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID and not content:
        return Markup(f"<{name}{spelled}{'/' if name not in ('br', 'col', 'meta') else ''}>")
    return Markup(f"<{name}{spelled}>{join(content)}</{name}>")


def _value(value: str | float) -> str:
    if value is True:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
