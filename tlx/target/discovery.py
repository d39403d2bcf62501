"""What is installed: the modules of targets, found without importing them, and what other packages provide."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tlx.diagnostics import UsageError
from tlx.llvm.triples import architecture

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

TARGET_GROUP: Final = "tlx.legalize"
FRONT_END_GROUP: Final = "tlx.frontends"
SEMANTICS_GROUP: Final = "tlx.semantics"
"""The groups of entry points: a target, the module of a front end, the meaning of a machine's instructions.

The first two are also the packages in which TLX's own ones are.
"""
SEMANTICS_MODULE: Final = "semantics"
"""Module of an architecture's folder that defines its instructions for the evaluator; it is not a target."""
HOST_MODULE: Final = "host"
"""Module of an architecture's folder with `detect_features`: features of this machine that the system does not list."""
_NO_TARGETS: Final = (SEMANTICS_MODULE, HOST_MODULE)


@cache
def target_modules(machine: str = "") -> dict[str, str]:
    """The modules that may hold a target, by their last names: `avx2` -> `tlx.legalize.x86.avx2`.

    They are in `tlx.legalize` or in one of its folders, each of which is for the machines of its `TRIPLES`. A module
    whose name begins with an underscore is not a target.

    Args:
        machine: Architecture of the machines that the modules are for, as the system spells it; empty for any.
    """
    modules = {name.rpartition(".")[2]: name for name in _target_module_names(machine)}
    return {name: modules[name] for name in sorted(modules) if not name.startswith("_") and name not in _NO_TARGETS}


def semantics_modules() -> list[str]:
    """The modules that define the instructions of an architecture for the evaluator."""
    return [name for name in _target_module_names() if name.endswith(f".{SEMANTICS_MODULE}")]


def host_modules(machine: str) -> list[str]:
    """The modules that find features of this machine, of an architecture as the system spells it."""
    return [name for name in _target_module_names(machine) if name.endswith(f".{HOST_MODULE}")]


@cache
def _target_module_names(machine: str = "") -> tuple[str, ...]:
    """The modules in `tlx.legalize` and in its folders for a machine."""
    names: list[str] = []
    package = importlib.import_module(TARGET_GROUP)
    for info in pkgutil.iter_modules(package.__path__):
        name = f"{TARGET_GROUP}.{info.name}"
        if info.ispkg:
            folder = importlib.import_module(name)
            if machine and architecture(machine) not in map(architecture, folder.TRIPLES):
                continue
            names += [f"{name}.{module.name}" for module in pkgutil.iter_modules(folder.__path__)]
        else:
            names.append(name)
    return tuple(names)


@cache
def provided_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, by which other packages provide targets, front ends, or instructions' meaning."""
    if not _may_have_entry_points(group):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def load_entry_point(entry: EntryPoint, what: str) -> Any:
    """What an entry point names.

    Args:
        entry: The entry point.
        what: What an error calls it, such as `target`.

    Raises:
        UsageError: It cannot be imported, such as a target written for another version of TLX.
    """
    try:
        return entry.load()
    except Exception as error:
        message = f"{named_entry_point(entry, what)} cannot be loaded: {error}"
        remedy = "update or uninstall the package; CHANGELOG.md lists names of TLX that have changed"
        raise UsageError(f"{message}; {remedy}") from error


def named_entry_point(entry: EntryPoint, what: str) -> str:
    """An entry point in messages: `target 'sse' of package tlx-sse 1.0`."""
    package = f" of package {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
    return f"{what} '{entry.name}'{package}"


def _may_have_entry_points(group: str) -> bool:
    """Whether some package may have entry points of a group; importing `importlib.metadata` takes 20 ms.

    Packages are folders with a file of entry points in the folders of `sys.path`; where other kinds may exist, the
    answer is yes.
    """
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    if "importlib.metadata" in sys.modules or finders != [PathFinder]:
        return True
    for path in sys.path:
        folder = Path(path)
        if folder.is_file():
            return True
        with suppress(OSError):
            files = [*folder.glob("*.dist-info/entry_points.txt"), *folder.glob("*.egg-info/entry_points.txt")]
            if any(f"[{group}]" in file.read_text(encoding="utf-8", errors="replace") for file in files):
                return True
    return False
