"""The installed packages are those of the tree."""

import tomllib
from importlib import import_module
from typing import Any

import pytest

import tlx
from tests.architecture.tree import LINKS, ROOT, SOURCES, python_files

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS: dict[str, Any] = PROJECT["tool"]["setuptools"]
MODULES = set(python_files().values())
IN_TREE = {name for path, name in python_files().items() if path.name == "__init__.py"}


def test_packages_are_those_of_the_tree() -> None:
    assert sorted(SETUPTOOLS["packages"]) == sorted(IN_TREE)


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in python_files()}
    assert not sorted(str(folder) for folder in folders if not (folder / "__init__.py").is_file())


def test_package_dirs_are_the_source_folders() -> None:
    assert SETUPTOOLS["package-dir"] == {package: folder for folder, package in SOURCES.items()}


@pytest.mark.parametrize(("link", "target"), LINKS.items())
def test_links_are_relative(link: str, target: str) -> None:
    path = ROOT / link
    assert path.is_symlink()
    assert str(path.readlink()) == target


@pytest.mark.parametrize("package", sorted(IN_TREE))
def test_packages_can_be_imported(package: str) -> None:
    assert import_module(package).__doc__


def test_public_names_are_functions_and_classes_that_hide_no_module() -> None:
    """Importing ``tlx.x`` sets the attribute ``x``, so a function of that name would come and go."""
    public = {name for name in dir(tlx) if getattr(getattr(tlx, name), "__module__", "").startswith("tlx.")}
    assert {"compile", "parse", "Machine", "Options"} <= public
    assert not {name for name in public if f"tlx.{name}" in MODULES}


def test_types_are_published() -> None:
    assert (ROOT / "tlx/py.typed").is_file()
