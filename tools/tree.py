"""Print the packages of TLX as a tree, each with the first sentence of its docstring.

    python tools/tree.py

`docs/development/architecture.md` contains the output: run this after changing the first sentence of a package.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDERS: Final = ("tlx", "frontends", "legalize")
_COLUMN: Final = 26
_WIDTH: Final = 118


def main() -> None:
    """Print the tree."""
    for folder in FOLDERS:
        print("\n".join(_lines(ROOT / folder, 0)))


def _lines(folder: Path, depth: int) -> Iterator[str]:
    module = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    sentence = (ast.get_docstring(module) or "").split("\n\n")[0]
    name = f"{'  ' * depth}{folder.name}/"
    hanging = " " * _COLUMN
    yield textwrap.fill(
        " ".join(sentence.split()), _WIDTH, initial_indent=f"{name:<{_COLUMN}}", subsequent_indent=hanging
    )
    for inner in sorted(folder.iterdir()):
        if (inner / "__init__.py").is_file() and not inner.is_symlink():
            yield from _lines(inner, depth + 1)


if __name__ == "__main__":
    main()
