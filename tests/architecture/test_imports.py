"""Imports point inwards: ``frontends -> tlx <- legalize``."""

from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.tree import ROOT, Import, imports_of, python_files

NAMES = python_files()
KNOWN = set(NAMES.values())
IMPORTS: dict[str, list[Import]] = {name: list(imports_of(path, KNOWN)) for path, name in NAMES.items()}

# No module of a part may import anything below these.
FORBIDDEN = {
    "tlx": ("tlx.frontends", "tlx.legalize"),
    "tlx.frontends": ("tlx.legalize",),
    "tlx.legalize": ("tlx.frontends",),
}


def is_below(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def side_of(module: str) -> str:
    return next((side for side in ("tlx.frontends", "tlx.legalize") if is_below(module, side)), "tlx")


def part_of(module: str) -> str:
    """The direct child of ``tlx`` that a module belongs to: ``tlx.ir.parser.module`` is of ``tlx.ir``.

    ``tlx.ir.types`` is a part of its own: the table of intrinsics speaks of LLVM types, and ``tlx.ir`` of the table.
    """
    if module == "tlx.ir.types":
        return module
    return ".".join(module.split(".")[:2])


def complain(found: list[tuple[str, Import]]) -> str:
    paths = {name: path.relative_to(ROOT) for path, name in NAMES.items()}
    return "\n".join(f"{paths[module]}:{item.line}: imports {item.target}" for module, item in found)


@pytest.mark.parametrize("side", FORBIDDEN)
def test_imports_point_inwards(side: str) -> None:
    found = [
        (module, item)
        for module, items in IMPORTS.items()
        if side_of(module) == side
        for item in items
        if any(is_below(item.target, package) for package in FORBIDDEN[side])
    ]
    assert not found, complain(found)


def test_imports_are_absolute() -> None:
    found = [(module, item) for module, items in IMPORTS.items() for item in items if item.target.startswith(".")]
    assert not found, complain(found)


def test_folders_are_imported_by_their_installed_names() -> None:
    found = [
        (module, item)
        for module, items in IMPORTS.items()
        for item in items
        if item.target.split(".")[0] in {"frontends", "legalize", "tests"}
    ]
    assert not found, complain(found)


def test_imported_modules_exist() -> None:
    found = [
        (module, item)
        for module, items in IMPORTS.items()
        for item in items
        if is_below(item.target, "tlx") and item.target not in KNOWN
    ]
    assert not found, complain(found)


def assert_acyclic(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_no_cycle_of_modules() -> None:
    assert_acyclic(
        {
            module: {item.target for item in items if item.at_start and item.target != module}
            for module, items in IMPORTS.items()
        }
    )


def test_no_cycle_of_parts() -> None:
    """Not between the packages and modules directly below ``tlx`` either, whichever of their files import."""
    graph: dict[str, set[str]] = {}
    for module, items in IMPORTS.items():
        targets = {part_of(item.target) for item in items if item.at_start}
        graph.setdefault(part_of(module), set()).update(targets - {part_of(module), "tlx"})
    assert_acyclic(graph)
