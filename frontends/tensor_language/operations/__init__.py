"""The table of operations: each operation of the language once. Everything else is derived from it.

Parser, printer, checker, analyses and builder read the entry of an operation, which decorates the class of its nodes in
the syntax tree; its rules follow in the same file (`check.py` describes how they are found):

    @operation(
        "store", *operands(value="the value", destination="the memref"), indices(), results="none", writes="destination"
    )
    @dataclass(kw_only=True, slots=True)
    class Store(Instruction):
        value: Name
        destination: Name
        indices: tuple[Name, ...] = ()

core            the entries; names of operations in messages; how rules are found
context         what the rules share: visible names, the open region, operands of a certain kind
attributes      rules about attributes
blas, control, memory, scalars, subgroups     the operations, by subject
"""

from __future__ import annotations

from inspect import getdoc
from textwrap import fill
from typing import Final

from tlx.frontends.tensor_language.operations import blas, control, memory, scalars, subgroups
from tlx.frontends.tensor_language.operations.core import Operation, entries
from tlx.frontends.tensor_language.syntax.nodes import Instruction

__all__ = ["OPERATIONS", "Operation", "blas", "control", "memory", "scalars", "subgroups"]

_SUBJECTS: Final = (blas, memory, scalars, control, subgroups)

OPERATIONS: Final = {name: entry for subject in _SUBJECTS for name, entry in entries(subject.__name__)}
"""The entries by name; messages suggest the first of several names that a misspelt one is equally near to."""


def forms() -> str:
    """The form of each operation, by the regions in which it may stand, with the other names of the same form."""
    lines: list[str] = []
    for region, title in (("collective", "Collective"), (None, "Mixed"), ("spmd", "SPMD")):
        lines.append(f"\n{title}:\n")
        names: dict[type[Instruction], list[str]] = {}
        for name, entry in OPERATIONS.items():
            if entry.region == region:
                names.setdefault(entry.node, []).append(name)
        for node, all_ in names.items():
            lines.append(f"    {getdoc(node)}")
            if len(all_) > 1:
                lines.append(fill(", ".join(all_), 112, initial_indent=" " * 8, subsequent_indent=" " * 8))
    return "\n".join(lines)
