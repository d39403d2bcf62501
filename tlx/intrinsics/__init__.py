"""The table of all `llvm.tensor.*` intrinsics, from which everything else about them is derived.

Verifier, builder methods, canonical names and declarations, the evaluator, the C header and the reference pages read
`INTRINSICS`. A new intrinsic is a row in the file of its family, listed in `INTRINSICS`, and a rule in
`tlx.lower.to_2d.rules`; docs/development/add_an_intrinsic.md adds one step by step.

core         the classes of rows and operands, and typing rules that families share
memory       `typeinfo`, `load`, `store`, `tovector`
products     `matmul`, the `mma` family, `contract`
convolution  `convolution`
elementwise  `relu`, `exp`, ...; `reduce.*`
layout       `transpose`, `broadcast`, `pad`, `concat`, `reshape.*`

A row's `infer` is its typing rule; its `meaning` computes the result from logical arrays. Dimension `d` of a logical
array is logical dimension `d` of the tensor, whatever the memory order, and holds data only, no padding.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tlx.intrinsics.convolution import CONVOLUTIONS
from tlx.intrinsics.core import Intrinsic, Operand, OperandKind, RuleError, extents_text
from tlx.intrinsics.elementwise import ELEMENTWISE, REDUCTIONS
from tlx.intrinsics.layout import JOINS, MOVES, RESHAPES
from tlx.intrinsics.memory import MEMORY
from tlx.intrinsics.products import CONTRACTIONS, PRODUCTS

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
    """The intrinsic of a function's name; None if there is none.

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
    """Whether a function's name is in the name space of tensor intrinsics, known or not."""
    return callee.strip('"').startswith(("llvm.tensor.", "llvm.vector.totensor"))
