"""A matrix times a vector as sums along K: each row of the matrix is read once, in registers along K.

Rewrite:
    C[i] = sum_k A[i, k] * b[k]      MxK K -> M      ->     the rows of A * b, reduced by addition
    C[j] = sum_k a[k] * B[k, j]      column-major B  ->     the rows of B^T * a, reduced by addition

The register tiles of products have columns in registers: a single one would fill one lane.
"""

from __future__ import annotations

from tlx.ir.types import FloatType, Type
from tlx.lower.ordinary import Operation
from tlx.lower.to_tiles.choose import accumulator_type
from tlx.lower.to_tiles.expression import Expression, Leaf, Node, Ordinary
from tlx.lower.to_tiles.problem import Gemm, Reduction
from tlx.lower.to_tiles.view import View
from tlx.target import Target

_A, _B = 0, 1


def as_row_sums(gemm: Gemm, target: Target) -> Reduction | None:
    """The reduction that a product with a vector is; None where it is something else or had better stay a product."""
    if (
        len(gemm.sums) > 1
        or gemm.acc is not None
        or gemm.epilogue is not None
        or gemm.reduction is not None
        or not gemm.is_float
    ):
        return None
    accumulator = accumulator_type(gemm)
    found = _matrix_and_vector(gemm)
    if found is None or gemm.c.element != accumulator or gemm.k * 8 < target.vector_bytes:
        return None
    matrix, vector, stride = found
    nodes: list[Node] = [matrix, vector]
    factors = [_widened(nodes, number, accumulator) for number in (0, 1)]
    nodes.append(Ordinary(accumulator, Operation("fmul"), (factors[0], factors[1])))
    rows = matrix.view.rows
    return Reduction(View(accumulator, rows, 1, stride, 1).repeated(), Expression(rows, gemm.k, tuple(nodes)), "add", 1)


def _matrix_and_vector(gemm: Gemm) -> tuple[Leaf, Leaf, int] | None:
    """The matrix with rows along K, the vector as a row, and how far apart the sums are stored."""
    a, b, c = gemm.a, gemm.b, gemm.c
    if gemm.n == 1 and a.is_row_major and b.row_stride == 1:
        return Leaf(a.element, a, _A), Leaf(b.element, View(b.element, 1, gemm.k, 0, 1), _B), c.row_stride
    if gemm.m == 1 and gemm.n > 1 and b.row_stride == 1 and a.is_row_major:
        turned = View(b.element, gemm.n, gemm.k, b.col_stride, 1)
        return Leaf(b.element, turned, _B), Leaf(a.element, View(a.element, 1, gemm.k, 0, 1), _A), c.col_stride
    return None


def _widened(nodes: list[Node], number: int, accumulator: Type) -> int:
    """The node with the leaf's elements in the accumulator's type."""
    if nodes[number].element == accumulator:
        return number
    assert isinstance(accumulator, FloatType)
    nodes.append(Ordinary(accumulator, Operation("fpext"), (number,)))
    return len(nodes) - 1
