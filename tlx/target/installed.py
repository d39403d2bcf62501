"""All installed targets: those of `tlx.legalize`, and those that other packages provide by entry points.

A target is a module with a `TARGET`: in `legalize/`, in its folder for an architecture, or in another package, which
names it under the entry point group `tlx.legalize`. The core finds targets by discovery and imports none by name.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from tlx.diagnostics import UsageError
from tlx.target.discovery import target_entry_points, target_modules
from tlx.target.matrix_unit import MatrixEmulation
from tlx.target.target import Target

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


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
    loaded = map(_loaded, target_entry_points())
    return [target for target in loaded if isinstance(target, Target)]


def _loaded(entry: EntryPoint) -> object:
    """What an entry point names.

    Raises:
        UsageError: It cannot be imported, such as a target written for another version of TLX.
    """
    try:
        return entry.load()
    except Exception as error:
        package = f" of package {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
        message = f"target '{entry.name}'{package} cannot be loaded: {error}"
        remedy = "update or uninstall the package; CHANGELOG.md lists names of TLX that have changed"
        raise UsageError(f"{message}; {remedy}") from error


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
