"""Discovery of targets: the modules of `tlx.legalize`, and the entry points of other packages."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Final

from tlx.target.matrix_unit import MatrixEmulation
from tlx.target.target import Target

ENTRY_POINT_GROUP: Final = "tlx.legalize"


SEMANTICS_MODULE: Final = "semantics"
"""Module of an architecture's folder that defines its instructions for the evaluator; no target."""


@cache
def target_modules() -> dict[str, str]:
    """The modules that may hold a target, by their last names: `avx2` -> `tlx.legalize.x86.avx2`.

    They are in `tlx.legalize` or in one of its folders, each of which is an architecture. A module whose name begins
    with an underscore is no target.
    """
    found = {name.rpartition(".")[2]: name for name in _modules()}
    return {name: found[name] for name in sorted(found) if not name.startswith("_") and name != SEMANTICS_MODULE}


def semantics_modules() -> list[str]:
    """The modules that define the instructions of an architecture for the evaluator."""
    return [name for name in _modules() if name.endswith(f".{SEMANTICS_MODULE}")]


@cache
def _modules() -> tuple[str, ...]:
    """The modules in `tlx.legalize` and in its folders."""
    found: list[str] = []
    package = importlib.import_module(ENTRY_POINT_GROUP)
    for info in pkgutil.iter_modules(package.__path__):
        name = f"{ENTRY_POINT_GROUP}.{info.name}"
        if info.ispkg:
            folder = importlib.import_module(name)
            found += [f"{name}.{module.name}" for module in pkgutil.iter_modules(folder.__path__)]
        else:
            found.append(name)
    return tuple(found)


@cache
def targets() -> dict[str, Target]:
    """All targets by name: the modules of `tlx.legalize`, then other packages' entry points."""
    from importlib.metadata import entry_points

    found: dict[str, Target] = {}
    for name in target_modules():
        target = target_of_module(name)
        if target is not None:
            found[target.name] = target
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        target = entry.load()
        if isinstance(target, Target):
            found[target.name] = target
    return found


def matrix_emulations() -> list[MatrixEmulation]:
    """How LLVM runs the matrix units of all targets without them."""
    units = (target.matrix for target in targets().values() if target.matrix is not None)
    return [unit.emulation for unit in units if unit.emulation is not None]


def target_of_module(name: str) -> Target | None:
    """The target in one of `target_modules`, None where there is none."""
    target = getattr(importlib.import_module(target_modules()[name]), "TARGET", None)
    return target if isinstance(target, Target) else None
