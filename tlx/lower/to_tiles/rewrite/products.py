"""Products computed as other problems, where that is faster: transposed, split, or as a reduction of rows.

alternative           is                                          considered
as it is              a recipe: `select`                          always
reduction of rows     a matrix-vector product along K             without knobs
transposed product    C^T = B^T @ A^T                             without knobs, outside of loops, B not constant
split fp16            a sum of bf16 products on a matrix unit     without knobs, outside of loops, for one target

What is selected is data that depends on nothing but the product and the targets, so it is cached.

A product of two column-major matrices is the transpose of a product of two row-major ones:

    C = A @ B  ->  C^T = B^T @ A^T           MxK KxN -> MxN   ->   NxK KxM -> NxM

The operands are then read in memory order, and only C is transposed, tile by tile, as it is stored. Otherwise A would
have to be packed by columns, and B transposed.

A matrix times a vector is a reduction along K, which reads each row of the matrix once, in registers along K:

Rewrite:
    C[i] = sum_k A[i, k] * b[k]      MxK K -> M      ->     the rows of A * b, reduced by addition
    C[j] = sum_k a[k] * B[k, j]      column-major B  ->     the rows of B^T * a, reduced by addition
    C[i] = f(c[i] + sum_k A[i, k] * b[k])            ->     the same, with f applied to several sums at a time

The lanes of a product's register tile hold columns of C, so a single column would fill only one lane.

A dot-product instruction sums adjacent products along K; for bfloat, two multiply-adds do the same. A dot product of
unsigned by signed bytes also serves factors of equal signedness: the signedness of A is changed, and the excess, a dot
product with constants, is subtracted:

    A' = A xor 128      (A + 128 unsigned, A - 128 signed)      A b = A' b - 0' b
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from tlx.ir.types import BFLOAT, FLOAT, I8, I16, FloatType, Type, bits_of
from tlx.ir.values import ConstInt
from tlx.lower.knobs import Knobs
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_tiles.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    MatrixView,
    Node,
    ProductLeaf,
    SplatLeaf,
    UnaryNode,
)
from tlx.lower.to_tiles.problem import (
    Gemm,
    KernelOperand,
    KernelSequence,
    KernelStep,
    Reduction,
    as_row_view,
    gemm_accumulator_type,
)
from tlx.lower.to_tiles.rewrite.fp16_split import split_fp16
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.select.recipe_cost import cost
from tlx.lower.to_tiles.select.selection import CACHE_SIZE, select
from tlx.target.costs.core import CoreModel
from tlx.target.instructions.dots import Dot, Sign
from tlx.target.target import Target


@lru_cache(maxsize=CACHE_SIZE)
def select_product(gemm: Gemm, versions: tuple[Target, ...], *, constant_b: bool) -> KernelSequence:
    """The fastest kernels for a product without knobs outside of loops, on all versions of a target.

    Args:
        gemm: The product.
        versions: The targets, each of which has to gain.
        constant_b: Whether B is a constant, which the compiler packs only as a right operand.
    """
    split = split_fp16(gemm, versions[0]) if len(versions) == 1 else None
    if split is not None:
        return split.sequence()
    other = None if constant_b else transposed_product(gemm)
    if other is not None and all(_cycles(other, version) < _cycles(gemm, version) for version in versions):
        return KernelSequence(
            (KernelStep(other, (KernelOperand(other.c, 0), KernelOperand(other.a, 2), KernelOperand(other.b, 1))),)
        )
    return KernelSequence.of(gemm)


def _cycles(gemm: Gemm, target: Target) -> float:
    return cost(gemm, select(gemm, target), target).total


@lru_cache(maxsize=CACHE_SIZE)
def select_kernel(gemm: Gemm, target: Target, knobs: Knobs) -> Recipe | Reduction:
    """How a kernel computes a product on a target: by a recipe or, without knobs, as a reduction of rows.

    Raises:
        UsageError: The knobs do not fit.
    """
    sums = None if knobs else as_row_reduction(gemm, target)
    return select(gemm, target, knobs) if sums is None else sums


def transposed_product(gemm: Gemm) -> Gemm | None:
    """The transposed product, whose operands are B and A; None if it is not equivalent or not faster."""
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
_OPPOSITE: Final[dict[Sign, Sign]] = {"s": "u", "u": "s"}
_CONVERTED: Final = 2  # instructions of a register of products without dot product: conversion and multiply-add

_OperandChange = Literal["none", "sign", "wider"]
_DotSignature = tuple[tuple[str, Sign], tuple[str, Sign], _OperandChange]


@dataclass(frozen=True, slots=True)
class _Factors:
    """The matrix with rows along K, the vector as a row, their signs, and the stride of the stored sums."""

    matrix: MatrixLeaf
    vector: MatrixLeaf
    signs: tuple[Sign, Sign]
    stride: int


def as_row_reduction(gemm: Gemm, target: Target) -> Reduction | None:
    """A matrix-vector product as a reduction of rows; None for other products, or if that is slower."""
    if len(gemm.term_offsets) > 1 or gemm.reduction is not None:
        return None
    accumulator = gemm_accumulator_type(gemm)
    factors = _factors(gemm)
    if factors is None or gemm.k * 8 < target.vector_bytes:
        return None
    width, change = _dot(factors, accumulator, target)
    rows = factors.matrix.view.rows
    zeros = SplatLeaf(factors.matrix.element, ConstInt(I8, 0))
    return Reduction(
        MatrixView(gemm.c.element, rows, 1, factors.stride, 1).broadcast(),
        _products(rows, gemm.k, factors.matrix, factors, change, accumulator),
        "add",
        1,
        width,
        _products(1, gemm.k, zeros, factors, change, accumulator) if change == "sign" else None,
        _epilogue(gemm, accumulator),
    )


def _factors(gemm: Gemm) -> _Factors | None:
    a, b, c = gemm.a, gemm.b, gemm.c
    if not a.is_row_major or b.row_stride != 1:
        return None
    if gemm.n == 1:
        vector = MatrixLeaf(b.element, MatrixView(b.element, 1, gemm.k, 0, 1), _B)
        return _Factors(MatrixLeaf(a.element, a, _A), vector, (gemm.lhs_sign, gemm.rhs_sign), c.row_stride)
    if gemm.m == 1:
        transposed = MatrixLeaf(b.element, MatrixView(b.element, gemm.n, gemm.k, b.col_stride, 1), _B)
        vector = MatrixLeaf(a.element, MatrixView(a.element, 1, gemm.k, 0, 1), _A)
        return _Factors(transposed, vector, (gemm.rhs_sign, gemm.lhs_sign), c.col_stride)
    return None


def _dot(factors: _Factors, accumulator: Type, target: Target) -> tuple[int, _OperandChange]:
    """How many adjacent products an instruction sums, and how its factors have to be changed."""
    dots = [dot for dot in target.usable_dots if dot.widening_loads is None and dot.accumulator == str(accumulator)]
    matrix, vector = factors.matrix.element, factors.vector.element
    sign, other = factors.signs
    signatures: list[_DotSignature] = [((str(matrix), sign), (str(vector), other), "none")]
    if matrix == vector == I8 and sign == other:
        signatures.append(((str(I8), _OPPOSITE[sign]), (str(I8), other), "sign"))
    if matrix == vector == I8:
        signatures.append(((str(I16), "s"), (str(I16), "s"), "wider"))
    for one, another, change in signatures:
        for dot in dots:
            if (dot.lhs, dot.rhs) == (another, one) and _is_profitable(dot, target.core):
                return dot.width, change
    is_pairs = matrix == vector == BFLOAT and accumulator == FLOAT
    return (2 if is_pairs else 1), "none"


def _is_profitable(dot: Dot, core: CoreModel) -> bool:
    """Whether a dot product takes no longer than conversions of its factors and multiply-adds."""
    return dot.cycles <= dot.width * _CONVERTED / core.fmas_per_cycle


def _products(
    rows: int, cols: int, matrix: Node, factors: _Factors, change: _OperandChange, accumulator: Type
) -> Expression:
    """The elementwise product of the matrix's rows and the vector."""
    nodes: list[Node] = [matrix, factors.vector]
    numbers = [0, 1]
    sign, other = factors.signs
    if change == "sign":
        nodes.append(SplatLeaf(I8, ConstInt(I8, -128)))
        nodes.append(InstructionNode(I8, ElementwiseOp("xor"), (0, 2)))
        numbers, sign = [3, 1], _OPPOSITE[sign]
    if change == "wider":
        numbers = [_widened(nodes, n, I16, s) for n, s in zip(numbers, factors.signs, strict=True)]
        sign = other = "s"
    last = _widened(nodes, numbers[1], accumulator, other), _widened(nodes, numbers[0], accumulator, sign)
    multiplication = "fmul" if isinstance(accumulator, FloatType) else "mul"
    nodes.append(InstructionNode(accumulator, ElementwiseOp(multiplication), last))
    return Expression(rows, cols, tuple(nodes))


def _widened(nodes: list[Node], number: int, element: Type, sign: Sign) -> int:
    """The number of a node that widens another node."""
    if nodes[number].element == element:
        return number
    nodes.append(InstructionNode(element, ElementwiseOp(_EXTENSIONS[sign]), (number,)))
    return len(nodes) - 1


# Epilogue ------------------------------------------------------------------------------------------------------------


def _epilogue(gemm: Gemm, accumulator: Type) -> Expression | None:
    """The epilogue on a row of sums, with Acc as a leaf; None where the sums are the result."""
    nodes: list[Node] = [ProductLeaf(accumulator)]
    count = 2
    if gemm.acc is not None:
        nodes.append(MatrixLeaf(gemm.acc.element, as_row_view(gemm.acc), count))
        initial = _converted(nodes, 1, accumulator)
        nodes.append(InstructionNode(accumulator, ElementwiseOp("fadd" if gemm.is_float else "add"), (0, initial)))
        count += 1
    sums = _converted(nodes, len(nodes) - 1, gemm.result)
    numbers: list[int] = []
    for node in gemm.epilogue.nodes if gemm.epilogue is not None else ():
        if isinstance(node, ProductLeaf):
            numbers.append(sums)
            continue
        numbers.append(len(nodes))
        nodes.append(_renumbered_node(node, numbers, count))
    return Expression(1, gemm.m * gemm.n, tuple(nodes)) if len(nodes) > 1 else None


def _renumbered_node(node: Node, numbers: Sequence[int], pointers: int) -> Node:
    """An epilogue's node with its operands renumbered; a leaf becomes a row, numbered after `pointers` pointers."""
    if isinstance(node, MatrixLeaf):
        return replace(node, view=as_row_view(node.view), pointer=node.pointer + pointers)
    if isinstance(node, (InstructionNode, UnaryNode)):
        return replace(node, operands=tuple(numbers[n] for n in node.operands))
    return node


def _converted(nodes: list[Node], number: int, element: Type) -> int:
    """The number of a node that converts another node to an element type."""
    source = nodes[number].element
    if bits_of(source) < bits_of(element):
        return _widened(nodes, number, element, "f" if isinstance(source, FloatType) else "s")
    if source == element:
        return number
    nodes.append(
        InstructionNode(element, ElementwiseOp("fptrunc" if isinstance(source, FloatType) else "trunc"), (number,))
    )
    return len(nodes) - 1
