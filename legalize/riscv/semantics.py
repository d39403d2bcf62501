"""The meaning of RISC-V's vector instructions in numpy. Source: riscv-dot-product, version 0.0.3, Zvqdotq.

A scalable vector is an array of as many elements as the code knows of; see `tlx.legalize.riscv.rvv`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tlx.evaluate.context import FunctionTable, ImplementationFactory, TargetSemantics, type_independent
from tlx.intrinsics.numpy_types import Array


def _quad_dot(lhs: type[Any], rhs: type[Any]) -> ImplementationFactory:
    """`vqdot*`: each i32 of acc plus the products of the 4 bytes in its place, modulo 2^32."""

    def run(acc: Array, a: Array, b: Array, length: int, _policy: int) -> Array:
        products = a.view(lhs).astype(np.int64) * b.view(rhs).astype(np.int64)
        total = acc.copy()
        total[:length] += products.reshape(-1, 4).sum(1).astype(np.uint32)[:length]
        return total

    return type_independent(run)


INSTRUCTIONS: Final[FunctionTable] = {
    "riscv.vqdot": _quad_dot(np.int8, np.int8),
    "riscv.vqdotu": _quad_dot(np.uint8, np.uint8),
    "riscv.vqdotsu": _quad_dot(np.int8, np.uint8),
}

SEMANTICS: Final = TargetSemantics(intrinsics=INSTRUCTIONS)
