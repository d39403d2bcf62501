"""LLVM's matrices: `clang -fenable-matrix` writes `llvm.matrix.*`, and `RAISE` turns them into tensor operations.

    typedef float m4x4 __attribute__((matrix_type(4, 4)));
    m4x4 c = a * b;                 ->  %c = call <16 x float> @llvm.matrix.multiply(<16 x float> %a, %b, 4, 4, 4)
                                    ->  %c = call <16 x float> @llvm.tensor.matmul(token %b', token %a')

A matrix is a flattened vector, column by column. clang's own passes expand the intrinsics to vector code at every level
of optimisation: `-Xclang -disable-llvm-passes` keeps them. `to_matrix` is the inverse conversion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tlx.ir.module import Module
    from tlx.lower.remarks import Remarks

MARKERS: Final = ("@llvm.matrix.",)


def RAISE(module: Module) -> Module | None:  # noqa: N802 (front ends are discovered by this name)
    """The module with calls to `llvm.matrix.*` turned into tensor operations, None if it has no such calls."""
    from tlx.frontends.matrix.raising import raise_module

    return raise_module(module)


def to_matrix(module: Module, remarks: Remarks | None = None) -> Module:
    """The module with `llvm.matrix.*` instead of the tensor operations that they can express.

    These are loads, stores, transposes and products of matrices without padding, of elements of one type. A row-major
    matrix is the transpose of LLVM's: `(A @ B)^T = B^T @ A^T`. Everything else is unchanged.

    Args:
        module: A module as read; it is not changed.
        remarks: Collects which tensor operations are not converted, and why.

    Raises:
        ParseError, VerifyError: The input is not valid IR, or breaks a rule of the tensor intrinsics.
    """
    from tlx.frontends.matrix.writing import write_module
    from tlx.lower.remarks import Remarks

    return write_module(module, Remarks() if remarks is None else remarks)
