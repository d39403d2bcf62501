"""`llvm.tensor.umma smma usmma summa`: a 2-D product added to an accumulator in memory.

Rewrite where the result is stored over its accumulator::

    %c = call token @llvm.tensor.load(ptr elementtype(i32) %p, <M, N>, <0, 1>, <0, 0>, <0, ldc>)
    %s = call <M*N x i32> @llvm.tensor.smma(token %c, token %a, token %b)
    %t = call token @llvm.tensor.typeinfo(<M*N x i32> %s, <M, N>, <0, 1>, <0, 0>)
    call void @llvm.tensor.store(ptr %p, token %t, <0, ldc>)
    ->
    %acc = call token @llvm.tensor.load(ptr elementtype(i32) %p, <M, N>, <0, 1>, <0, 0>, <0, ldc>)
    %lhs = call token @llvm.tensor.load(...)
    %rhs = call token @llvm.tensor.load(...)
    %smma = call <M*N x i32> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
    %sum = call token @llvm.tensor.typeinfo(<M*N x i32> %smma, <M, N>, <0, 1>, <0, 0>)
    call void @llvm.tensor.store(ptr %p, token %sum, <0, ldc>)

An accumulator that is not row-major is first copied to where the result goes. One of zeros needs no memory where
`matmul` computes the same.
"""

from __future__ import annotations

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.contraction import Epilogue
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.products import Product, emit_product
from tlx.lower.to_2d.views import View


def lower_mma(plan: Plan, b: TensorBuilder, op: TensorOp, target: View, epilogue: Epilogue | None = None) -> None:
    """Write `target = L(acc) + L(lhs) @ L(rhs)`."""
    acc, lhs, rhs = plan.operands(op)
    assert lhs is not None
    assert rhs is not None
    emit_product(plan, b, op, Product(op.intrinsic.name, lhs, rhs, target, acc), epilogue)
