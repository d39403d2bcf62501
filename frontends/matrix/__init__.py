"""LLVM's own matrices: `clang -fenable-matrix` writes `llvm.matrix.*`, and `RAISE` turns them into tensor operations.

    typedef float m4x4 __attribute__((matrix_type(4, 4)));
    m4x4 c = a * b;                 ->  %c = call <16 x float> @llvm.matrix.multiply(<16 x float> %a, %b, 4, 4, 4)
                                    ->  %c = call <16 x float> @llvm.tensor.matmul(token %b', token %a')

A matrix is a flattened vector, column by column. clang's own passes expand the intrinsics to vector code at every level
of optimisation: `-Xclang -disable-llvm-passes` keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tlx.ir.module import Module

MARKERS: Final = ("@llvm.matrix.",)


def RAISE(module: Module) -> Module | None:  # noqa: N802 (the name front ends are found by)
    """The module with calls of `llvm.matrix.*` turned into tensor operations, None if it has no such calls."""
    from tlx.frontends.matrix.raising import raise_module

    return raise_module(module)
