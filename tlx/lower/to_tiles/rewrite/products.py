"""Products computed as another problem: as their transpose, or a matrix-vector product as a reduction of rows.

A product of two column-major matrices is the transpose of a product of two row-major ones:

    C = A @ B  ->  C^T = B^T @ A^T           MxK KxN -> MxN   ->   NxK KxM -> NxM

Its operands are read in memory order, and only C is transposed, tile by tile, as it is stored. Otherwise A would be
packed by columns and B transposed.

A matrix times a vector is a reduction along K, which reads each row of the matrix once, in registers along K:

Rewrite:
    C[i] = sum_k A[i, k] * b[k]      MxK K -> M      ->     the rows of A * b, reduced by addition
    C[j] = sum_k a[k] * B[k, j]      column-major B  ->     the rows of B^T * a, reduced by addition
    C[i] = f(c[i] + sum_k A[i, k] * b[k])            ->     the same, with f applied to several sums at a time

A register tile of a product has columns of C in its lanes; a single column would fill one lane.

A dot-product instruction sums adjacent products along K; for bfloat, two multiply-adds do the same. A dot product of
unsigned by signed bytes also serves factors of the same sign: the signedness of A is changed, and the excess, a dot
product of constants, is subtracted:

    A' = A xor 128      (A + 128 unsigned, A - 128 signed)      A b = A' b - 0' b
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from tlx.ir.types import BFLOAT, FLOAT, I8, I16, FloatType, Type, bits_of
from tlx.ir.values import ConstInt
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_tiles.problem.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    Node,
    ProductLeaf,
    SplatLeaf,
    UnaryNode,
)
from tlx.lower.to_tiles.problem.problems import Gemm, Reduction, as_row_view, gemm_accumulator_type
from tlx.lower.to_tiles.problem.views import MatrixView
from tlx.target.hardware import Dot, Sign
from tlx.target.target import Target


def transposed_product(gemm: Gemm) -> Gemm | None:
    """The transposed product, whose operands are B and A; None where it computes something else or gains nothing."""
    if not _is_transposable(gemm):
        return None
    return replace(
        gemm,
        a=_transposed_view(gemm.b),
        b=_transposed_view(gemm.a),
        c=_transposed_view(gemm.c),
        lhs_sign=gemm.rhs_sign,
        rhs_sign=gemm.lhs_sign,
        term_offsets=tuple((b, a) for a, b in gemm.term_offsets),
    )


def _is_transposable(gemm: Gemm) -> bool:
    """Whether both operands are column-major, and C is the product alone."""
    by_columns = not gemm.a.is_row_major and not gemm.b.is_row_major and gemm.b.interleave == 1
    return by_columns and gemm.c.is_row_major and gemm.is_repeatable and gemm.batch is None and not gemm.all_pairs


def _transposed_view(view: MatrixView) -> MatrixView:
    return MatrixView(view.element, view.cols, view.rows, view.col_stride, view.row_stride)


_A, _B = 0, 1
_EXTENSIONS: Final[dict[Sign, str]] = {"f": "fpext", "s": "sext", "u": "zext"}
_OTHER: Final[dict[Sign, Sign]] = {"s": "u", "u": "s"}
_CONVERTED: Final = 2  # instructions of a register of products without dot product: conversion and multiply-add

_OperandChange = Literal["none", "sign", "wider"]
_DotSignature = tuple[tuple[str, Sign], tuple[str, Sign], _OperandChange]


@dataclass(frozen=True, slots=True)
class _Factors:
    """The matrix with rows along K, the vector as a row, their signs, and how far apart the sums are stored."""

    matrix: MatrixLeaf
    vector: MatrixLeaf
    signs: tuple[Sign, Sign]
    stride: int


def as_row_reduction(gemm: Gemm, target: Target) -> Reduction | None:
    """A matrix-vector product as a reduction of rows; None for other products, or where that is slower."""
    if len(gemm.term_offsets) > 1 or gemm.reduction is not None:
        return None
    accumulator = gemm_accumulator_type(gemm)
    found = _factors(gemm)
    if found is None or gemm.k * 8 < target.vector_bytes:
        return None
    width, change = _dot(found, accumulator, target)
    rows = found.matrix.view.rows
    zeros = SplatLeaf(found.matrix.element, ConstInt(I8, 0))
    return Reduction(
        MatrixView(gemm.c.element, rows, 1, found.stride, 1).broadcast(),
        _products(rows, gemm.k, found.matrix, found, change, accumulator),
        "add",
        1,
        width,
        _products(1, gemm.k, zeros, found, change, accumulator) if change == "sign" else None,
        _finish(gemm, accumulator),
    )


def _factors(gemm: Gemm) -> _Factors | None:
    a, b, c = gemm.a, gemm.b, gemm.c
    if not a.is_row_major or b.row_stride != 1:
        return None
    if gemm.n == 1:
        vector = MatrixLeaf(b.element, MatrixView(b.element, 1, gemm.k, 0, 1), _B)
        return _Factors(MatrixLeaf(a.element, a, _A), vector, (gemm.lhs_sign, gemm.rhs_sign), c.row_stride)
    if gemm.m == 1:
        turned = MatrixLeaf(b.element, MatrixView(b.element, gemm.n, gemm.k, b.col_stride, 1), _B)
        vector = MatrixLeaf(a.element, MatrixView(a.element, 1, gemm.k, 0, 1), _A)
        return _Factors(turned, vector, (gemm.rhs_sign, gemm.lhs_sign), c.col_stride)
    return None


def _dot(found: _Factors, accumulator: Type, target: Target) -> tuple[int, _OperandChange]:
    """How many adjacent products an instruction sums, and how the factors have to be changed for it."""
    dots = [dot for dot in target.usable_dots if dot.reads is None and dot.accumulator == str(accumulator)]
    matrix, vector = found.matrix.element, found.vector.element
    own, other = found.signs
    ways: list[_DotSignature] = [((str(matrix), own), (str(vector), other), "none")]
    if matrix == vector == I8 and own == other:
        ways.append(((str(I8), _OTHER[own]), (str(I8), other), "sign"))
    if matrix == vector == I8:
        ways.append(((str(I16), "s"), (str(I16), "s"), "wider"))
    for one, another, change in ways:
        for dot in dots:
            if (dot.lhs, dot.rhs) == (another, one) and _pays(dot, target):
                return dot.width, change
    is_pairs = matrix == vector == BFLOAT and accumulator == FLOAT
    return (2 if is_pairs else 1), "none"


def _pays(dot: Dot, target: Target) -> bool:
    """Whether a dot product takes no longer than converting its factors and multiply-adds."""
    return dot.cycles <= dot.width * _CONVERTED / target.core.products


def _products(
    rows: int, cols: int, matrix: Node, found: _Factors, change: _OperandChange, accumulator: Type
) -> Expression:
    """The elementwise product of the matrix's rows and the vector."""
    nodes: list[Node] = [matrix, found.vector]
    factors = [0, 1]
    own, other = found.signs
    if change == "sign":
        nodes.append(SplatLeaf(I8, ConstInt(I8, -128)))
        nodes.append(InstructionNode(I8, ElementwiseOp("xor"), (0, 2)))
        factors, own = [3, 1], _OTHER[own]
    if change == "wider":
        factors = [_widened(nodes, n, I16, sign) for n, sign in zip(factors, found.signs, strict=True)]
        own = other = "s"
    last = _widened(nodes, factors[1], accumulator, other), _widened(nodes, factors[0], accumulator, own)
    multiplication = "fmul" if isinstance(accumulator, FloatType) else "mul"
    nodes.append(InstructionNode(accumulator, ElementwiseOp(multiplication), last))
    return Expression(rows, cols, tuple(nodes))


def _widened(nodes: list[Node], number: int, element: Type, sign: Sign) -> int:
    """The number of a node that widens another one."""
    if nodes[number].element == element:
        return number
    nodes.append(InstructionNode(element, ElementwiseOp(_EXTENSIONS[sign]), (number,)))
    return len(nodes) - 1


# What is done to sums ------------------------------------------------------------------------------------------------


def _finish(gemm: Gemm, accumulator: Type) -> Expression | None:
    """The epilogue on a row of sums, with Acc as a leaf; None where the sums are the result."""
    nodes: list[Node] = [ProductLeaf(accumulator)]
    count = 2
    if gemm.acc is not None:
        nodes.append(MatrixLeaf(gemm.acc.element, as_row_view(gemm.acc), count))
        old = _converted(nodes, 1, accumulator)
        nodes.append(InstructionNode(accumulator, ElementwiseOp("fadd" if gemm.is_float else "add"), (0, old)))
        count += 1
    sums = _converted(nodes, len(nodes) - 1, gemm.result)
    places: list[int] = []
    for node in gemm.epilogue.nodes if gemm.epilogue is not None else ():
        if isinstance(node, ProductLeaf):
            places.append(sums)
            continue
        places.append(len(nodes))
        nodes.append(_renumbered_node(node, places, count))
    return Expression(1, gemm.m * gemm.n, tuple(nodes)) if len(nodes) > 1 else None


def _renumbered_node(node: Node, places: Sequence[int], pointers: int) -> Node:
    """An epilogue's node appended to others: its operands renumbered, a leaf as a row after `pointers` pointers."""
    if isinstance(node, MatrixLeaf):
        return replace(node, view=as_row_view(node.view), pointer=node.pointer + pointers)
    if isinstance(node, (InstructionNode, UnaryNode)):
        return replace(node, operands=tuple(places[n] for n in node.operands))
    return node


def _converted(nodes: list[Node], number: int, element: Type) -> int:
    """The number of a node that converts another one to the accumulator's type, or rounds it to the result's."""
    own = nodes[number].element
    if bits_of(own) < bits_of(element):
        return _widened(nodes, number, element, "f" if isinstance(own, FloatType) else "s")
    if own == element:
        return number
    nodes.append(
        InstructionNode(element, ElementwiseOp("fptrunc" if isinstance(own, FloatType) else "trunc"), (number,))
    )
    return len(nodes) - 1
