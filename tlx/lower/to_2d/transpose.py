"""`llvm.tensor.transpose` and `llvm.tensor.tovector`: copies into the order of the result.

Rewrite of a transpose to <2, 0, 1> whose result is needed in memory::

    %v = call <240 x float> @llvm.tensor.transpose(token %x, <3 x i32> <i32 2, i32 0, i32 1>)
    ->
    loops around 2-D copies, those that transpose among them (`tlx.lower.to_2d.copies`)

Where only tensor operations use the result, and see its dimensions as they are, there is no copy at all: they read the
operand's memory with its strides in the new order.
"""

from __future__ import annotations

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.copies import copy
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.views import View


def lower_transpose(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write the operand to `target`, which has the same logical dimensions."""
    copy(b, plan.view(op.tensors[0]), target)
