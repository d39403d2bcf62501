"""VNNI operands: right operands that the program has interleaved itself are read as they lie.

    %b = call token @llvm.tensor.load(ptr %p, <K/v, N, v>, ...)
    %f = call <K*N x bfloat> @llvm.tensor.reshape.permute(token %b, <0, 2, 1>, <K, N>)
    %t = call token @llvm.tensor.typeinfo(<K*N x bfloat> %f, <K, N>, ...)
    %p = call <M*N x float> @llvm.tensor.matmul(token %a, token %t)

A matrix unit takes such operands, or a dot product of vectors where there is none, and the permutation stays a part of
the product; otherwise it is a copy. A contraction over the groups and over the rows in them is the same product:

    %a = call token @llvm.tensor.load(ptr %x, <M, K/v, v>, ...)
    %p = call <M*N x float> @llvm.tensor.contract(token %a, token %b, <1, 2>, <0, 2>)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import Type, bits_of
from tlx.lower.to_2d.analysis.tensor_operations import PRODUCTS
from tlx.lower.to_2d.contraction.problem import LHS, OUT, RHS, Contraction
from tlx.lower.to_2d.loops import LoopDim
from tlx.target.hardware import Dot
from tlx.target.target import Target

VNNI: Final = (0, 2, 1)
VNNI_STRIPS: Final = (1, 3, 0, 2)
"""Of strips x K/v x columns x v: to K x N."""
_WORD_BITS: Final = 32


def is_interleaved(op: TensorOp, target: Target) -> bool:
    """Whether a `reshape.permute` makes a K x N matrix of whole groups of rows that products read."""
    source, result = op.tensors[0], op.result
    if op.intrinsic.name != "reshape.permute" or result is None or target.versions:
        return False
    type_ = source.type
    plain = source.kind == "load" and type_.rank == len(VNNI) and not type_.is_padded and not any(source.pitches or ())
    if not plain or op.dims[0] != VNNI or type_.layout != tuple(range(type_.rank)):
        return False
    groups, columns, width = type_.shape
    return _is_read(type_.element, width, target) and result.shape == (groups * width, columns)


def _is_read(element: Type, width: int, target: Target) -> bool:
    """Whether the matrix unit, or dot products, read right operands of a type of which `width` rows are interleaved."""
    return any(d.lhs[0] == d.rhs[0] == str(element) and d.width == width for d in _dots(target))


def _dots(target: Target) -> Iterable[Dot]:
    """The matrix unit's products; without one those of vectors that multiply all signs, some with corrections."""
    if target.matrix is not None:
        return target.usable_matrix_dots
    dots = [dot for dot in target.usable_dots if dot.reads is None and dot.pays(target.core)]
    kinds = {(dot.lhs, dot.rhs, dot.width) for dot in dots}
    return [d for d in dots if "f" in d.lhs or ((d.lhs[0], "u"), (d.rhs[0], "s"), d.width) in kinds]


def with_vnni_rows(c: Contraction, target: Target) -> Contraction | None:
    """A contraction with the two dimensions of an interleaved right operand's rows as one; None if there are none.

    Rewrite of 64 x 16 x 4 times 16 x 32 x 4 bytes, strides in lhs, rhs, out::

        n 32 (0, 4, 1)    k 16 (4, 128, 0), 4 (1, 1, 0)
        ->
        n 32 (0, 1, 1)    k 64 (1, 32, 0)                    group 4
    """
    n, inner = [walk for walk in c.n if walk[0] > 1], [walk for walk in c.k if _steps(walk) == (1, 1)]
    known = not target.versions and c.kind == "matmul" and c.lhs.element == c.rhs.element
    if not known or len(n) != 1 or len(inner) != 1 or c.reduces or bits_of(c.out.element) > _WORD_BITS:
        return None
    (columns, at), width = n[0], inner[0][0]
    groups = next((walk for walk in c.k if _steps(walk) == (width, width * columns)), None)
    if groups is None or at[RHS] != width or at[OUT] != 1 or not _is_read(c.rhs.element, width, target):
        return None
    rows = LoopDim(groups.extent * width, (1, columns, *groups.strides[OUT:]))
    others = [walk for walk in c.k if walk not in (groups, inner[0])]
    whole = LoopDim(columns, (at[LHS], 1, *at[OUT:]))
    return replace(c, rhs=c.rhs._replace(vnni_group=width), n=(whole,), k=(*others, rows))


def has_dense_vnni_rows(c: Contraction) -> bool:
    """Whether nothing lies between a right operand's interleaved rows."""
    return c.k[-1][1][RHS] == c.n[-1][0]


def without_vnni_rows(c: Contraction) -> Contraction:
    """A contraction whose right operand's interleaved rows are two dimensions: the inverse of `with_vnni_rows`."""
    width = c.rhs.vnni_group
    if width == 1:
        return c
    (columns, at), (rows, steps) = c.n[-1], c.k[-1]
    groups = LoopDim(rows // width, (steps[LHS] * width, columns * width, *steps[OUT:]))
    inner = LoopDim(width, (steps[LHS], 1, *steps[OUT:]))
    apart = LoopDim(columns, (at[LHS], width, *at[OUT:]))
    return replace(c, rhs=c.rhs._replace(vnni_group=1), n=(*c.n[:-1], apart), k=(*c.k[:-1], groups, inner))


def _steps(walk: LoopDim) -> tuple[int, int]:
    return walk[1][LHS], walk[1][RHS]


def is_vnni_product(product: TensorOp | None, operand: Tensor) -> bool:
    """Whether an operation is a 2-D product with this right operand, and nothing else of it."""
    if product is None or product.intrinsic.name not in PRODUCTS or product.result is None:
        return False
    *others, rhs = product.tensors
    same = rhs is operand and all(o is not operand for o in others) and others[-1].type.element == rhs.type.element
    return same and rhs.type.rank == 2 and product.result.rank == 2 and bits_of(product.result.element) <= _WORD_BITS
