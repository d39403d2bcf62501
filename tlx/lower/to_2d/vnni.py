"""Right operands of products that the program has interleaved for dot products (VNNI): read as they lie.

    %b = call token @llvm.tensor.load(ptr %p, <K/v, N, v>, ...)
    %f = call <K*N x bfloat> @llvm.tensor.reshape.permute(token %b, <0, 2, 1>, <K, N>)
    %t = call token @llvm.tensor.typeinfo(<K*N x bfloat> %f, <K, N>, ...)
    %p = call <M*N x float> @llvm.tensor.matmul(token %a, token %t)

A matrix unit takes such operands, and the permutation stays a part of the product; otherwise it is a copy.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import bits_of
from tlx.lower.to_2d.groups import PRODUCTS
from tlx.target import Target

VNNI: Final = (0, 2, 1)
_WORD_BITS: Final = 32


def is_interleaved(op: TensorOp, target: Target) -> bool:
    """Whether a `reshape.permute` makes a K x N matrix of whole groups of rows that the matrix unit reads."""
    source, result = op.tensors[0], op.result
    if op.intrinsic.name != "reshape.permute" or result is None or target.matrix is None or target.versions:
        return False
    type_ = source.type
    plain = source.kind == "load" and type_.rank == len(VNNI) and not type_.is_padded and not any(source.pitches or ())
    if not plain or op.dims[0] != VNNI or type_.layout != tuple(range(type_.rank)):
        return False
    groups, columns, width = type_.shape
    fits = any(d.lhs[0] == d.rhs[0] == str(type_.element) and d.width == width for d in target.usable_matrix_dots)
    return fits and result.shape == (groups * width, columns)


def multiplies(product: TensorOp | None, operand: Tensor) -> bool:
    """Whether an operation is a 2-D product on the matrix unit with this right operand, and nothing else of it."""
    if product is None or product.intrinsic.name not in PRODUCTS or product.result is None:
        return False
    *others, rhs = product.tensors
    same = rhs is operand and all(o is not operand for o in others) and others[-1].type.element == rhs.type.element
    return same and rhs.type.rank == 2 and product.result.rank == 2 and bits_of(product.result.element) <= _WORD_BITS
