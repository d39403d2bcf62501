"""The tree explains itself: small folders, a sentence about each package, no name with two meanings."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.tree import ROOT, is_below, python_files

LARGEST: Final = 14
NAMES = python_files()
FOLDERS = sorted({path.parent for path in NAMES})


def in_tree(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", FOLDERS, ids=in_tree)
def test_folders_are_small(folder: Path) -> None:
    """Links do not count: they show what lies elsewhere."""
    entries = {path.name for path in folder.iterdir() if not path.is_symlink()}
    entries -= {"__init__.py", "__pycache__", "py.typed"}
    assert len(entries) <= LARGEST, sorted(entries)


@pytest.mark.parametrize("folder", FOLDERS, ids=in_tree)
def test_packages_have_a_sentence_of_documentation(folder: Path) -> None:
    """The sentence is the first line of the docstring; what follows is a list of the files, or how to use them."""
    first, *more = (ast.get_docstring(parsed(folder / "__init__.py")) or "").split("\n", 2)
    assert first.endswith("."), first
    assert not any(more[:1]), "the first line is the whole sentence"


@pytest.mark.parametrize("folder", FOLDERS, ids=in_tree)
def test_packages_list_files_that_exist(folder: Path) -> None:
    """A list has a line for each file or folder: its name, two spaces or more, and what it is about."""
    _, *lines = (ast.get_docstring(parsed(folder / "__init__.py")) or "").splitlines()
    listed = [found[1] for line in lines if (found := re.match(r"([a-z_0-9]+)/?  +[^ ]", line))]
    assert not [name for name in listed if not (folder / name).exists() and not (folder / f"{name}.py").exists()]


def test_the_architecture_page_shows_the_tree() -> None:
    printed = subprocess.run([sys.executable, ROOT / "tools/tree.py"], check=True, capture_output=True, text=True)
    assert printed.stdout in (ROOT / "docs/development/architecture.md").read_text(encoding="utf-8"), (
        "run tools/tree.py"
    )


def test_public_names_of_the_lowering_are_unique() -> None:
    homes: dict[str, list[str]] = {}
    for path, name in NAMES.items():
        if is_below(name, "tlx.lower"):
            for statement in parsed(path).body:
                if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                    homes.setdefault(statement.name, []).append(name)
    assert not {name: modules for name, modules in homes.items() if len(modules) > 1}
