"""Who may import whom. Every import counts: at the top of a file, in a function and under ``TYPE_CHECKING``."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Final

import pytest

from tests.architecture.tree import ROOT, Import, imports_of, is_below, python_files

NAMES = python_files()
KNOWN = set(NAMES.values())
IMPORTS: dict[str, list[Import]] = {name: list(imports_of(path, KNOWN)) for path, name in NAMES.items()}
Edge = tuple[str, str]
EDGES: set[Edge] = {(name, item.target) for name, items in IMPORTS.items() for item in items if item.target != name}

# No module of a part may import anything below these.
FORBIDDEN: Final = {
    "tlx": ("tlx.frontends", "tlx.legalize"),
    "tlx.frontends": ("tlx.legalize",),
    "tlx.legalize": ("tlx.frontends",),
    "tlx.lower.to_tiles": ("tlx.lower.to_2d", "tlx.lower.dynamic"),
    "tlx.lower.to_2d": ("tlx.lower.to_tiles",),
    "tlx.lower.legalize": ("tlx.lower.to_2d", "tlx.lower.to_tiles", "tlx.lower.dynamic"),
}
# Modules of TLX that the modules of a part may import, its own aside.
ALLOWED: Final = {
    "tlx.legalize": (
        "tlx.lower.legalize",
        "tlx.lower.memory.allocation",
        "tlx.target",
        "tlx.ir",
        "tlx.diagnostics",
    )
}
# What a machine's instructions mean, in numpy, is said in terms of the evaluator.
FOR_SEMANTICS: Final = ("tlx.evaluate", "tlx.intrinsics.numpy_types")
# Only these may import the part.
IMPORTERS: Final = {"tlx.bench": ("tlx.cli",), "tlx.explain": ("tlx.cli",), "tlx.fuzz": ("tlx.cli",)}

# What the rules do not hold for yet. The lists only become shorter: a line that matches no import is an error.
EXCEPTIONS: Final[set[Edge]] = set()
# Imports that close a cycle of modules, and of the parts directly below `tlx`.
CYCLIC: Final[set[Edge]] = set()
CYCLIC_PARTS: Final[set[Edge]] = set()


def part_of(module: str) -> str:
    """The direct child of ``tlx`` that a module belongs to: ``tlx.ir.parser.module`` is of ``tlx.ir``.

    ``tlx.ir.types`` is a part of its own: the table of intrinsics speaks of LLVM types, and ``tlx.ir`` of the table.
    """
    if module == "tlx.ir.types":
        return module
    return ".".join(module.split(".")[:2])


PARTS: set[Edge] = {
    (part_of(module), part_of(target))
    for module, target in EDGES
    if part_of(module) != part_of(target) and is_below(target, "tlx") and "tlx" not in {module, target}
}


def is_within(module: str, packages: Iterable[str]) -> bool:
    return any(is_below(module, package) for package in packages)


def breaks_a_border(edge: Edge) -> bool:
    module, target = edge
    if not is_below(target, "tlx") or target == "tlx":
        return False
    side = next((side for side in ("tlx.frontends", "tlx.legalize") if is_below(module, side)), "tlx")
    forbidden = [part for part in FORBIDDEN if part == side or (part != "tlx" and is_below(module, part))]
    if any(is_within(target, FORBIDDEN[part]) for part in forbidden):
        return True
    if ".semantics" in module and is_within(target, FOR_SEMANTICS):
        return False
    if any(is_below(module, part) and not is_within(target, (part, *ALLOWED[part])) for part in ALLOWED):
        return True
    return any(is_below(target, part) and not is_within(module, (part, *IMPORTERS[part])) for part in IMPORTERS)


def complain(edges: Iterable[Edge]) -> str:
    paths = {name: path.relative_to(ROOT) for path, name in NAMES.items()}
    lines = {(module, item.target): item.line for module, items in IMPORTS.items() for item in reversed(items)}
    return "\n".join(f"{paths[edge[0]]}:{lines[edge]}: imports {edge[1]}" for edge in sorted(edges))


def cycle_of(edges: Iterable[Edge]) -> str:
    """A cycle, from an importer to what it imports; empty if there is none."""
    graph: dict[str, set[str]] = {}
    for module, target in edges:
        graph.setdefault(module, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return ""


def test_imports_stay_within_the_borders() -> None:
    violations = {edge for edge in EDGES if breaks_a_border(edge)} - EXCEPTIONS
    assert not violations, complain(violations)


@pytest.mark.parametrize("edge", sorted(EXCEPTIONS), ids=" ".join)
def test_exceptions_are_needed(edge: Edge) -> None:
    assert edge in EDGES, "it is gone: remove it from EXCEPTIONS"
    assert breaks_a_border(edge), "no rule forbids it: remove it from EXCEPTIONS"


def test_imports_are_absolute() -> None:
    violations = {edge for edge in EDGES if edge[1].startswith(".")}
    assert not violations, complain(violations)


def test_folders_are_imported_by_their_installed_names() -> None:
    violations = {edge for edge in EDGES if edge[1].split(".")[0] in {"frontends", "legalize", "tests"}}
    assert not violations, complain(violations)


def test_imported_modules_exist() -> None:
    violations = {edge for edge in EDGES if is_below(edge[1], "tlx") and edge[1] not in KNOWN}
    assert not violations, complain(violations)


@pytest.mark.parametrize(("edges", "listed"), [(EDGES, CYCLIC), (PARTS, CYCLIC_PARTS)], ids=["modules", "parts"])
def test_no_cycle(edges: set[Edge], listed: set[Edge]) -> None:
    cycle = cycle_of(edges - listed)
    assert not cycle, cycle


@pytest.mark.parametrize(
    ("edges", "listed", "edge"),
    [
        pytest.param(edges, listed, edge, id=" ".join(edge))
        for edges, listed in ((EDGES, CYCLIC), (PARTS, CYCLIC_PARTS))
        for edge in sorted(listed)
    ],
)
def test_listed_cycles_exist(edges: set[Edge], listed: set[Edge], edge: Edge) -> None:
    assert edge in edges, "it is gone: remove it from the list"
    assert cycle_of(edges - listed | {edge}), "it closes no cycle any more: remove it from the list"
