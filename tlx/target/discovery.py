"""The targets there are: the modules of `tlx.legalize`, and the entry points of other packages."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Final

from tlx.target.target import Target

ENTRY_POINT_GROUP: Final = "tlx.legalize"


@cache
def target_modules() -> dict[str, str]:
    """The modules that may hold a target, by their last names: `avx2` -> `tlx.legalize.x86.avx2`.

    They lie in `tlx.legalize`, or in one of its folders, each of which is an architecture. A module whose name begins
    with an underscore is none.
    """
    found: dict[str, str] = {}
    package = importlib.import_module(ENTRY_POINT_GROUP)
    for info in pkgutil.iter_modules(package.__path__):
        if info.ispkg:
            folder = importlib.import_module(f"{ENTRY_POINT_GROUP}.{info.name}")
            inner = [f"{info.name}.{module.name}" for module in pkgutil.iter_modules(folder.__path__)]
        else:
            inner = [info.name]
        found |= {name.rpartition(".")[2]: f"{ENTRY_POINT_GROUP}.{name}" for name in inner}
    return {name: found[name] for name in sorted(found) if not name.startswith("_")}


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


def target_of_module(name: str) -> Target | None:
    """The target in one of `target_modules`, None where there is none."""
    target = getattr(importlib.import_module(target_modules()[name]), "TARGET", None)
    return target if isinstance(target, Target) else None
