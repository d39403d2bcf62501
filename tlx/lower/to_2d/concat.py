"""`llvm.tensor.concat`: one copy for each operand, into its part of the result.

Rewrite along the columns::

    %u = call <24 x float> @llvm.tensor.concat(token %a, token %b, i32 1)              ; 3 x 2 and 3 x 6
    ->
    %rows = call token @llvm.tensor.load(ptr %a.ptr, <3, 2>, <0, 1>, <0, 0>, <0, 2>)
    call void @llvm.tensor.store(ptr %u.buf, token %rows, <0, 8>)
    %to = getelementptr inbounds float, ptr %u.buf, i64 2
    %rows.1 = call token @llvm.tensor.load(ptr %b.ptr, <3, 6>, <0, 1>, <0, 0>, <0, 6>)
    call void @llvm.tensor.store(ptr %to, token %rows.1, <0, 8>)
"""

from __future__ import annotations

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.copies import box, copy
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.views import View


def lower_concat(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write the operands to `target`, one after the other along the axis."""
    ((axis,),) = op.dims
    first = 0
    for tensor in op.tensors:
        source = plan.view(tensor)
        ranges = [(first if d == axis else 0, dim.extent) for d, dim in enumerate(source.dims)]
        copy(b, source, box(b, target, ranges))
        first += source.dims[axis].extent
