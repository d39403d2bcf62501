"""The meaning of Hexagon's vector instructions in numpy.

Source: Qualcomm Hexagon V68 HVX Programmer's Reference Manual, 80-N2040-47, VRMPY.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tlx.evaluate.context import FunctionTable, ImplementationFactory, TargetSemantics, type_independent
from tlx.intrinsics.numpy_types import Array


def _reducing_multiply(lhs: type[Any], rhs: type[Any]) -> ImplementationFactory:
    """`vrmpy`: each i32 of acc plus the products of the 4 bytes in its place, modulo 2^32."""

    def run(acc: Array, a: Array, b: Array) -> Array:
        products = a.view(lhs).astype(np.int64) * b.view(rhs).astype(np.int64)
        return acc + products.reshape(-1, 4).sum(1).astype(np.uint32)

    return type_independent(run)


INSTRUCTIONS: Final[FunctionTable] = {
    "hexagon.V6.vrmpybusv.acc": _reducing_multiply(np.uint8, np.int8),
    "hexagon.V6.vrmpybv.acc": _reducing_multiply(np.int8, np.int8),
    "hexagon.V6.vrmpyubv.acc": _reducing_multiply(np.uint8, np.uint8),
}

SEMANTICS: Final = TargetSemantics(intrinsics=INSTRUCTIONS)
