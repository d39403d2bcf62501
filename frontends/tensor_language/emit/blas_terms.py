"""BLAS instructions as sums of products: which index of the output, or of the sum, each mode of a factor has.

axpby      B[i,j] := a A[i,j]                  A(0, 1), with .t A(1, 0)
sum        b[i]   := a sum_k A[i,k]            A(0, K), with .t A(K, 0), of a vector A(K)
gemm       C[i,j] := a sum_k A[i,k] B[k,j]     A(0, K) B(K, 1)
gemv       c[i]   := a sum_k A[i,k] b[k]       A(0, K) b(K)
ger        C[i,j] := a a[i] b[j]               a(0) b(1)
hadamard   C[i,j] := a A[i,j] B[i,j]           A(0, 1) B(0, 1)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.frontends.tensor_language.ast.collective import Axpby, Blas, Gemm, Gemv, Ger, Hadamard, Sum, Transpose
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import is_int
from tlx.frontends.tensor_language.emit.values import Memref
from tlx.ir.values import Value

K: Final = -1  # the index that is summed over


@dataclass(frozen=True, slots=True)
class Factor:
    """A memref that is multiplied.

    Attributes:
        memref: What is read.
        modes: For each of its modes the mode of the output with the same index, or `K`.
    """

    memref: Memref
    modes: tuple[int, ...]

    def is_contiguous(self, index: int) -> bool:
        """Whether neighbours along an index are neighbours in memory, or the same element."""
        steps = [s for s, mode in zip(self.memref.stride, self.modes, strict=True) if mode == index]
        return all(is_int(step, 1) for step in steps)


@dataclass(frozen=True, slots=True)
class Terms:
    """The sum over `K`, if there is one, of the product of one or two factors."""

    factors: tuple[Factor, ...]

    @property
    def depth(self) -> Value | None:
        """Extent of `K`; None where nothing is summed."""
        for factor in self.factors:
            if K in factor.modes:
                return factor.memref.shape[factor.modes.index(K)]
        return None

    def is_contiguous(self, index: int) -> bool:
        """Whether all factors are, along an index."""
        return all(factor.is_contiguous(index) for factor in self.factors)


def terms_of(e: Emitter, i: Blas) -> Terms:
    """What an instruction other than `cumsum` computes."""
    a = e.memref(i.a)
    match i:
        case Axpby():
            plain = tuple(range(a.type.order))
            return Terms((Factor(a, _op(i.transpose, plain)),))
        case Sum():
            return Terms((Factor(a, (K,) if a.type.order == 1 else _op(i.transpose, (0, K))),))
        case Gemm():
            rhs = Factor(e.memref(i.b), _op(i.transpose_b, (K, 1)))
            return Terms((Factor(a, _op(i.transpose_a, (0, K))), rhs))
        case Gemv():
            return Terms((Factor(a, _op(i.transpose, (0, K))), Factor(e.memref(i.b), (K,))))
        case Ger():
            return Terms((Factor(a, (0,)), Factor(e.memref(i.b), (1,))))
        case _:
            assert isinstance(i, Hadamard)
            plain = tuple(range(a.type.order))
            return Terms((Factor(a, plain), Factor(e.memref(i.b), plain)))


def _op(transpose: Transpose, modes: tuple[int, ...]) -> tuple[int, ...]:
    return modes[::-1] if transpose == "t" else modes
