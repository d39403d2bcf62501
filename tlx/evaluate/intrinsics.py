"""Intrinsics and library functions by name: the tables of the files beside this one, searched."""

from __future__ import annotations

from functools import cache

from tlx.evaluate.float_functions import FLOATS
from tlx.evaluate.integer_functions import INTEGERS
from tlx.evaluate.libc_functions import LIBRARY
from tlx.evaluate.matrix_functions import MATRICES
from tlx.evaluate.memory_functions import MEMORY
from tlx.evaluate.site import Factory, Table
from tlx.evaluate.team_functions import TEAMS
from tlx.evaluate.vector_functions import VECTORS
from tlx.evaluate.x86_amx import AMX
from tlx.evaluate.x86_avx import AVX

_INTRINSICS: Table = {**FLOATS, **INTEGERS, **VECTORS, **MEMORY, **MATRICES, **AMX, **AVX}


@cache
def find(name: str) -> Factory | None:
    """The entry of a function's name; of an intrinsic, whatever suffix its overload has.

    `llvm.vector.reduce.fadd.v4f32` is looked up as itself, then without `.v4f32`, and so on.
    """
    if not name.startswith("llvm."):
        return LIBRARY.get(name) or TEAMS.get(name)
    base = name.removeprefix("llvm.").replace("experimental.vector.reduce.v2.", "vector.reduce.")
    base = base.replace("experimental.vector.reduce.", "vector.reduce.")
    while base:
        if base in _INTRINSICS:
            return _INTRINSICS[base]
        base = base.rpartition(".")[0]
    return None
