"""THE table: each operation of the language once. Everything else is derived from it.

Parser, printer, checker, analyses and builder read the entry of an operation, which decorates the class of its nodes in
the syntax tree:

    @operation("store", *operands(value="the value", target="the memref"), indices(), results="none", writes="target")
    @dataclass(kw_only=True, slots=True)
    class Store(Instruction):
        value: Name
        target: Name
        indices: tuple[Name, ...] = ()

core            the entries; names of operations in messages; tables of rules in other packages
blas, control, memory, scalars, subgroups     the operations, by subject
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.operations import blas, control, memory, scalars, subgroups
from tlx.frontends.tensor_language.operations.core import Operation, entries

__all__ = ["OPERATIONS", "Operation", "blas", "control", "memory", "scalars", "subgroups"]

_SUBJECTS: Final = (blas, memory, scalars, control, subgroups)

OPERATIONS: Final = {name: entry for subject in _SUBJECTS for name, entry in entries(subject.__name__)}
"""The entries by name; messages suggest the first of several names that a misspelt one is equally near to."""
