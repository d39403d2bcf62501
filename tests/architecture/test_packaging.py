"""The installed packages are those of the tree."""

import json
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tlx
from tests.architecture.tree import LINKS, ROOT, SOURCES, python_files
from tests.support.tools import HANG_S

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS: dict[str, Any] = PROJECT["tool"]["setuptools"]
MODULES = set(python_files().values())
STUBS = "tlx-stubs"
IN_TREE = {name for path, name in python_files().items() if path.name == "__init__.py"}


def test_packages_are_those_of_the_tree() -> None:
    assert sorted(SETUPTOOLS["packages"]) == sorted({*IN_TREE, STUBS})


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in python_files()}
    assert not sorted(str(folder) for folder in folders if not (folder / "__init__.py").is_file())


def test_package_dirs_are_the_source_folders() -> None:
    assert SETUPTOOLS["package-dir"] == {
        **{package: folder for folder, package in SOURCES.items()},
        STUBS: "frontends/stubs",
    }


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


def test_every_front_end_has_a_stub_for_its_short_name() -> None:
    stubs = ROOT / "frontends/stubs"
    front_ends = [path.parent.name for path in sorted((ROOT / "frontends").glob("*/__init__.py"))]
    texts = {path.stem: path.read_text(encoding="utf-8") for path in stubs.glob("*.pyi")}
    assert texts == {name: f"from tlx.frontends.{name} import *\n" for name in front_ends}
    assert (stubs / "py.typed").read_text(encoding="utf-8") == "partial\n"


def test_type_checkers_resolve_the_short_names_of_front_ends(tmp_path: Path) -> None:
    (tmp_path / "tlx").symlink_to(ROOT / "tlx")
    (tmp_path / STUBS).symlink_to(ROOT / "frontends/stubs")
    program = """\
import tlx.onnx
from tlx import matrix
from tlx.jax import jit

reveal_type(jit)
reveal_type(tlx.onnx.InferenceSession)
reveal_type(matrix.to_matrix)
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    settings = {"extraPaths": ["."], "reportMissingModuleSource": "none"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    pyright = Path(sys.executable).with_name("pyright")
    done = subprocess.run(
        [pyright, "--outputjson", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    messages = [diagnostic["message"] for diagnostic in json.loads(done.stdout)["generalDiagnostics"]]
    assert len(messages) == 3, done.stdout
    assert all(message.startswith("Type of") and "Unknown" not in message for message in messages), messages
