"""The source tree as the architecture tests see it: packages, modules and who imports whom."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Installed name of each source folder. The links inside tlx/ show the other two again and are not followed.
SOURCES = {"tlx": "tlx", "frontends": "tlx.frontends", "legalize": "tlx.legalize"}
LINKS = {"tlx/frontends": "../frontends", "tlx/legalize": "../legalize"}


@dataclass(frozen=True)
class Import:
    """One imported module: ``target`` is absolute, but for relative imports, which keep their dots."""

    target: str
    line: int


def is_below(module: str, package: str) -> bool:
    """Whether a module is the package, or in it or in a package in it."""
    return module == package or module.startswith(f"{package}.")


def python_files() -> dict[Path, str]:
    """Map every Python file of the three source folders to the name it is imported by."""
    return {path: name for folder, package in SOURCES.items() for path, name in _files_below(ROOT / folder, package)}


def imports_of(path: Path, known: set[str]) -> Iterator[Import]:
    """Every import statement of a file; ``known`` tells ``from package import module`` from an imported name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (Import(target, node.lineno) for target in _targets(node, known))


def _files_below(folder: Path, package: str) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            continue
        if path.is_dir():
            yield from _files_below(path, f"{package}.{path.name}")
        elif path.suffix == ".py":
            yield path, package if path.stem == "__init__" else f"{package}.{path.stem}"


def _targets(statement: ast.ImportFrom, known: set[str]) -> set[str]:
    base = "." * statement.level + (statement.module or "")
    modules = {f"{base}.{alias.name}" for alias in statement.names}
    return {module if module in known else base for module in modules}
