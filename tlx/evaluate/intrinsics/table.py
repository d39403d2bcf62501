"""Implementations by name: LLVM's own intrinsics, library functions, and what targets bring for their instructions."""

from __future__ import annotations

from functools import cache

from tlx.evaluate.context import FunctionTable, ImplementationFactory
from tlx.evaluate.intrinsics.library import C_LIBRARY, MEMORY_INTRINSICS, OPENMP_LIBRARY, POSIX_LIBRARY
from tlx.evaluate.intrinsics.scalars import FLOAT_INTRINSICS, INTEGER_INTRINSICS
from tlx.evaluate.intrinsics.vectors import MATRIX_INTRINSICS, VECTOR_INTRINSICS
from tlx.evaluate.target_semantics import target_semantics

_INTRINSICS: FunctionTable = {
    **FLOAT_INTRINSICS,
    **INTEGER_INTRINSICS,
    **VECTOR_INTRINSICS,
    **MEMORY_INTRINSICS,
    **MATRIX_INTRINSICS,
}


@cache
def find_implementation(name: str) -> ImplementationFactory | None:
    """The entry of a function's name; of an intrinsic, whatever suffix its overload has.

    `llvm.vector.reduce.fadd.v4f32` is looked up as itself, then without `.v4f32`, and so on.
    """
    if not name.startswith("llvm."):
        return C_LIBRARY.get(name) or OPENMP_LIBRARY.get(name) or POSIX_LIBRARY.get(name)
    base = name.removeprefix("llvm.").replace("experimental.vector.reduce.v2.", "vector.reduce.")
    base = base.replace("experimental.vector.reduce.", "vector.reduce.")
    return _without_suffixes(base, _INTRINSICS) or _without_suffixes(base, target_semantics().intrinsics)


def _without_suffixes(name: str, table: FunctionTable) -> ImplementationFactory | None:
    """The entry of the longest prefix of a dotted name."""
    while name and name not in table:
        name = name.rpartition(".")[0]
    return table.get(name)
