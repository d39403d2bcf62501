"""All installed targets: those of `tlx.legalize`, and those that other packages provide by entry points.

A target is a module with a `TARGET`: in `legalize/`, in its folder for an architecture, or in another package, which
names it under the entry point group `tlx.legalize`. The core finds targets by discovery and imports none by name.
"""

from __future__ import annotations

import importlib
from functools import cache

from tlx.diagnostics import UsageError
from tlx.target.discovery import TARGET_GROUP, load_entry_point, provided_entry_points, target_modules
from tlx.target.matrix_unit import MatrixEmulation
from tlx.target.target import Target


@cache
def targets(machine: str = "") -> dict[str, Target]:
    """Targets by name: the modules of `tlx.legalize`, then other packages' entry points.

    Args:
        machine: Architecture of the machines that they are for, as the system spells it; empty for any.

    Raises:
        UsageError: A target of another package cannot be loaded, or has the name of another target.
    """
    by_name: dict[str, Target] = {}
    for name in target_modules(machine):
        by_name |= targets_of_module(name)
    for target in _targets_of_packages():
        provided = _by_name(target)
        if taken := sorted(by_name.keys() & provided):
            raise UsageError(f"a package provides a target named '{taken[0]}', which is the name of another: rename it")
        by_name |= provided
    return {name: target for name, target in by_name.items() if not machine or target.is_for(machine)}


def _targets_of_packages() -> list[Target]:
    """The targets that other packages provide by entry points."""
    loaded = [load_entry_point(entry, "target") for entry in provided_entry_points(TARGET_GROUP)]
    return [target for target in loaded if isinstance(target, Target)]


def names_of_packages() -> frozenset[str]:
    """Names of the targets that other packages provide."""
    return frozenset(name for target in _targets_of_packages() for name in _by_name(target))


def matrix_emulations() -> list[MatrixEmulation]:
    """How LLVM emulates the matrix units of all targets."""
    units = (target.matrix for target in targets().values() if target.matrix is not None)
    return [unit.emulation for unit in units if unit.emulation is not None]


@cache
def targets_of_module(name: str) -> dict[str, Target]:
    """The targets in one of `target_modules`: none, or one and those for other lengths of its vectors."""
    target = getattr(importlib.import_module(target_modules()[name]), "TARGET", None)
    return _by_name(target) if isinstance(target, Target) else {}


def _by_name(target: Target) -> dict[str, Target]:
    """A target and those for other lengths of its vectors."""
    return {each.name: each for each in (target, *target.at_other_lengths())}
