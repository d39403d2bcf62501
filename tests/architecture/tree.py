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
    at_start: bool  # executed when the importing module is: neither in a function nor under TYPE_CHECKING


def python_files() -> dict[Path, str]:
    """Map every Python file of the three source folders to the name it is imported by."""
    return {path: name for folder, package in SOURCES.items() for path, name in _files_below(ROOT / folder, package)}


def imports_of(path: Path, known: set[str]) -> Iterator[Import]:
    """Every import statement of a file; ``known`` tells ``from package import module`` from an imported name."""
    yield from _imports_in(ast.parse(path.read_text(encoding="utf-8")), known, at_start=True)


def _files_below(folder: Path, package: str) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            continue
        if path.is_dir():
            yield from _files_below(path, f"{package}.{path.name}")
        elif path.suffix == ".py":
            yield path, package if path.stem == "__init__" else f"{package}.{path.stem}"


def _imports_in(node: ast.AST, known: set[str], *, at_start: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, at_start) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (Import(target, child.lineno, at_start) for target in _targets(child, known))
        else:
            yield from _imports_in(child, known, at_start=at_start and not _is_deferred(child))


def _targets(statement: ast.ImportFrom, known: set[str]) -> set[str]:
    base = "." * statement.level + (statement.module or "")
    modules = {f"{base}.{alias.name}" for alias in statement.names}
    return {module if module in known else base for module in modules}


def _is_deferred(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
