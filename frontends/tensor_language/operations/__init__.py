"""THE table: each operation of the language once. Everything else is derived from it.

Parser, printer, checker, analyses and builder read an operation's entry, which stands on the class of the operation's
nodes in the syntax tree:

    @operation("store", *operands(value="the value", target="the memref"), indices(), results="none", writes="target")
    @dataclass(kw_only=True, slots=True)
    class Store(Instruction):
        value: Name
        target: Name
        indices: tuple[Name, ...] = ()

core            what an entry is; names in messages; the tables of rules that other packages have
blas, control, matrices, memory, scalars, subgroups     the operations, by subject
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.operations import blas, control, matrices, memory, scalars, subgroups
from tlx.frontends.tensor_language.operations.core import Operation, entries

__all__ = ["OPERATIONS", "Operation", "blas", "control", "matrices", "memory", "scalars", "subgroups"]

_SUBJECTS: Final = (blas, matrices, memory, scalars, control, subgroups)

OPERATIONS: Final = {name: entry for subject in _SUBJECTS for name, entry in entries(subject.__name__)}
"""The entries by name; messages suggest the first of several names that a misspelt one is equally near to."""
