"""`llvm.tensor.matmul`: loops over the batch around a 2-D product.

Rewrite of a batched product, 10 x (M x K) times 10 x (K x N)::

    %c = call <10*M*N x float> @llvm.tensor.matmul(token %a, token %b)
    ->
    i.loop:                                                                   ; i from 0 to 10
      %pa = getelementptr inbounds float, ptr %a.ptr, i64 (%i * M*K)
      %pb = getelementptr inbounds float, ptr %b.ptr, i64 (%i * K*N)
      %pc = getelementptr inbounds float, ptr %c.buf, i64 (%i * M*N)
      %lhs = call token @llvm.tensor.load(ptr elementtype(float) %pa, <M, K>, <0, 1>, <0, 0>, <0, K>)
      %rhs = call token @llvm.tensor.load(ptr elementtype(float) %pb, <K, N>, <0, 1>, <0, 0>, <0, N>)
      %matmul = call <M*N x float> @llvm.tensor.matmul(token %lhs, token %rhs)
      %product = call token @llvm.tensor.typeinfo(<M*N x float> %matmul, <M, N>, <0, 1>, <0, 0>)
      call void @llvm.tensor.store(ptr %pc, token %product, <0, N>)

A column-major operand is loaded with layout <1, 0>; padding is left out of the loads' shapes. An operand neither of
whose last two dimensions is dense in memory (batch innermost) is copied first.
"""

from __future__ import annotations

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.contraction import Epilogue
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.products import Product, emit_product
from tlx.lower.to_2d.views import View


def lower_matmul(plan: Plan, b: TensorBuilder, op: TensorOp, target: View, epilogue: Epilogue | None = None) -> None:
    """Write `target = L(lhs) @ L(rhs)`."""
    lhs, rhs = (plan.view(tensor) for tensor in op.tensors)
    emit_product(plan, b, op, Product("matmul", lhs, rhs, target), epilogue)
