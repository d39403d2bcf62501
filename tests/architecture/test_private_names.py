"""Tests check behaviour: they neither use nor patch names that begin with an underscore."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT

TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if "Output" not in path.parts)
IMPORTED = ("tlx", "tools")
SETTERS = ("setattr", "delattr")


def private_names(path: Path) -> Iterator[str]:
    """Names of others that a file imports, reads or patches."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] in IMPORTED:
                yield from (alias.name for alias in names if is_private(alias.name))
            case ast.Attribute(value=ast.Name(id="self" | "cls" | "os" | "atexit")):
                pass
            case ast.Attribute(attr=name) if is_private(name):
                yield name
            case ast.Call(func=ast.Attribute(attr=setter), args=arguments) if setter in SETTERS:
                texts = [word.value for word in arguments[:2] if isinstance(word, ast.Constant)]
                yield from (part for text in texts for part in str(text).split(".") if is_private(part))
            case _:
                pass


def is_private(name: str) -> bool:
    return name == "__wrapped__" or (name.startswith("_") and not name.startswith("__"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_private_names(path: Path) -> None:
    assert set(private_names(path)) == set()
