"""Intrinsics and library functions by name: the tables of the files beside this one, and of the machines, searched."""

from __future__ import annotations

from functools import cache

from tlx.evaluate.context import FunctionTable, ImplementationFactory
from tlx.evaluate.intrinsics.floats import FLOAT_INTRINSICS
from tlx.evaluate.intrinsics.integers import INTEGER_INTRINSICS
from tlx.evaluate.intrinsics.library import C_LIBRARY, OPENMP_LIBRARY
from tlx.evaluate.intrinsics.memory import MEMORY_INTRINSICS
from tlx.evaluate.intrinsics.vectors import MATRIX_INTRINSICS, VECTOR_INTRINSICS
from tlx.evaluate.x86.amx import AMX_INSTRUCTIONS
from tlx.evaluate.x86.avx import AVX_INSTRUCTIONS

_INTRINSICS: FunctionTable = {
    **FLOAT_INTRINSICS,
    **INTEGER_INTRINSICS,
    **VECTOR_INTRINSICS,
    **MEMORY_INTRINSICS,
    **MATRIX_INTRINSICS,
    **AMX_INSTRUCTIONS,
    **AVX_INSTRUCTIONS,
}


@cache
def find_implementation(name: str) -> ImplementationFactory | None:
    """The entry of a function's name; of an intrinsic, whatever suffix its overload has.

    `llvm.vector.reduce.fadd.v4f32` is looked up as itself, then without `.v4f32`, and so on.
    """
    if not name.startswith("llvm."):
        return C_LIBRARY.get(name) or OPENMP_LIBRARY.get(name)
    base = name.removeprefix("llvm.").replace("experimental.vector.reduce.v2.", "vector.reduce.")
    base = base.replace("experimental.vector.reduce.", "vector.reduce.")
    while base:
        if base in _INTRINSICS:
            return _INTRINSICS[base]
        base = base.rpartition(".")[0]
    return None
