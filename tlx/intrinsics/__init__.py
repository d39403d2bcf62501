"""THE table: each `llvm.tensor.*` intrinsic once. Everything else is derived from it.

Verifier, builder methods, canonical names and declarations, the evaluator, the C header and the reference pages read
`INTRINSICS`; adding an intrinsic is adding one row to the file of its family (and one lowering rule).

A row's `infer` is its typing rule and its `meaning` is what it computes, on logical arrays: dimension `d` of an array
is logical dimension `d` of the tensor, wherever memory has it, and holds data only, no padding.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tlx.intrinsics.contraction import CONTRACTIONS
from tlx.intrinsics.convolution import CONVOLUTIONS
from tlx.intrinsics.core import Intrinsic, Operand, OperandKind, RuleError, extents_text
from tlx.intrinsics.elementwise import ELEMENTWISE
from tlx.intrinsics.joining import JOINS
from tlx.intrinsics.memory import MEMORY
from tlx.intrinsics.movement import MOVES
from tlx.intrinsics.products import PRODUCTS
from tlx.intrinsics.reductions import REDUCTIONS
from tlx.intrinsics.reshapes import RESHAPES

__all__ = ["INTRINSICS", "Intrinsic", "Operand", "OperandKind", "RuleError", "extents_text", "is_tensor_name", "lookup"]

INTRINSICS: Final = (
    *MEMORY,
    *PRODUCTS,
    *CONTRACTIONS,
    *CONVOLUTIONS,
    *ELEMENTWISE,
    *REDUCTIONS,
    *MOVES,
    *JOINS,
    *RESHAPES,
)
_BY_NAME: Final = {row.prefix + name: row for row in INTRINSICS for name in (row.name, *row.aliases)}
_PREFIXES: Final = ("llvm.tensor.", "llvm.vector.")


@lru_cache(maxsize=4096)
def lookup(callee: str) -> Intrinsic | None:
    """The intrinsic that a function's name means, None if there is none.

    Any suffix is accepted, `llvm.tensor.load.p0i8.v2i32` as well as `llvm.tensor.load`; the longest name wins.
    """
    stem = callee.strip('"')
    while stem.startswith(_PREFIXES):
        if stem in _BY_NAME:
            return _BY_NAME[stem]
        stem = stem.rpartition(".")[0]
    return None


@lru_cache(maxsize=4096)
def is_tensor_name(callee: str) -> bool:
    """Whether a function's name is in our name space, known or not."""
    return callee.strip('"').startswith(("llvm.tensor.", "llvm.vector.totensor"))
