"""`llvm.tensor.broadcast`: fills, and copies of what repeats along some dimensions.

Rewrite of a bias as each of R rows::

    %v = call <R*C x float> @llvm.tensor.broadcast(token %bias, <2 x i32> <i32 R, i32 C>, <1 x i32> <i32 1>)
    ->
    %part = call token @llvm.tensor.load(ptr %bias.ptr, <1, C>, <0, 1>, <0, 0>, <0, C>)
    %rows = call <R*C x float> @llvm.tensor.broadcast(token %part, <2 x i32> <i32 R, i32 C>, <2 x i32> <i32 0, i32 1>)
    %block = call token @llvm.tensor.typeinfo(<R*C x float> %rows, <R, C>, <0, 1>, <0, 0>)
    call void @llvm.tensor.store(ptr %v.buf, token %block, <0, C>)

and of the form with a scalar::

    %v = call <C x float> @llvm.tensor.broadcast(token %like, float %s)
    ->
    %one = insertelement <1 x float> undef, float %s, i32 0
    %scalar = call token @llvm.tensor.typeinfo(<1 x float> %one, <1, 1>, <0, 1>, <0, 0>)
    %all = call <C x float> @llvm.tensor.broadcast(token %scalar, <2 x i32> <i32 1, i32 C>, <2 x i32> <i32 0, i32 1>)
    ...
"""

from __future__ import annotations

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.copies import copy, fill
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.views import View


def lower_broadcast(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write the scalar, or the operand as often as it repeats, to `target`."""
    if op.scalars:
        fill(b, op.scalars[0], target)
        return
    assert op.result is not None
    copy(b, plan.view(op.tensors[0]).broadcast(op.result, op.dims[1]), target)
