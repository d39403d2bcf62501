"""Products and transposes.

Rewrite:
    %c = call <8 x float> @llvm.matrix.multiply.v8f32.v6f32.v12f32(<6 x float> %a, <12 x float> %b, i32 2, i32 3, i32 4)
    ->
    %x = call token @llvm.tensor.typeinfo(<12 x float> %b, <4, 3>, <0, 1>, <0, 0>)
    %y = call token @llvm.tensor.typeinfo(<6 x float> %a, <3, 2>, <0, 1>, <0, 0>)
    %c = call <8 x float> @llvm.tensor.matmul(token %x, token %y)

(A @ B)^T = B^T @ A^T: what lies column by column is the transpose row by row, so that nothing is moved about.
     CxR      CxK   KxR
"""

from __future__ import annotations

from tlx.frontends.matrix.shapes import flipped, numbers
from tlx.ir.module import Instruction
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.values import Value


def multiply(b: TensorBuilder, call: Instruction) -> Value | None:
    """`llvm.matrix.multiply(A, B, rows, inner, columns)`; None if it is malformed or no tensor operation."""
    extents = numbers(call.args[2:])
    if len(extents) != 3:
        return None
    rows, inner, columns = extents
    lhs, rhs = call.args[:2]
    types = flipped(rhs.type, inner, columns), flipped(lhs.type, rows, inner), flipped(call.type, rows, columns)
    x, y, result = types
    if x is None or y is None or result is None or not x.element == y.element == result.element:
        return None
    return b.matmul(b.typeinfo(rhs, x), b.typeinfo(lhs, y), result)


def transpose(b: TensorBuilder, call: Instruction) -> Value | None:
    """`llvm.matrix.transpose(A, rows, columns)`; None if it is malformed or no tensor operation."""
    extents = numbers(call.args[1:])
    if len(extents) != 2:
        return None
    type_ = flipped(call.args[0].type, *extents)
    if type_ is None or call.type != call.args[0].type:
        return None
    return b.transpose(b.typeinfo(call.args[0], type_), (1, 0), type_.transposed((1, 0)))
