"""What all SVG pictures share.

Colours come from classes in `templates/page.css`, so that pictures follow the page from light to dark.
"""

from __future__ import annotations

from collections.abc import Sequence

from tlx.explain.html import Markup, join, tag


def text(x: float, y: float, content: str, class_: str = "", anchor: str = "middle") -> Markup:
    """A text of a picture."""
    return tag("text", content, x=x, y=y, text_anchor=anchor, class_=class_ or None)


def picture(
    width: float, height: float, label: str, *content: Markup, class_: str = "", is_fixed: bool = False
) -> Markup:
    """A picture that screen readers announce by its label."""
    box = f"0 0 {width:.6g} {height:.6g}"
    style = f"width:{width:.6g}px" if is_fixed else f"max-width:{width:.6g}px"
    return tag(
        "svg", *content, viewBox=box, role="img", aria_label=label, style=style, class_=f"picture {class_}".strip()
    )


def legend(entries: Sequence[tuple[str, str]]) -> Markup:
    """Names of colours: pairs of a class and what it stands for."""
    return tag(
        "p",
        join([tag("span", tag("span", class_=f"swatch {kind}"), words) for kind, words in entries]),
        class_="legend",
    )
