"""Rules: the code for each tensor operation, one file for each family of operations.

A rule writes the result of an operation to memory. `RULES` lists the rule of each; a new operation is one entry there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import TensorView
from tlx.lower.to_2d.analysis.tensor_operations import INSERT, POINTWISE, SHUFFLE
from tlx.lower.to_2d.emission import RuleContext
from tlx.lower.to_2d.reductions import TypedPointer, WindowAxis, reduce_axes
from tlx.lower.to_2d.rules.movement import (
    lower_block,
    lower_broadcast,
    lower_concat,
    lower_insert,
    lower_pad,
    lower_permute,
    lower_shuffle,
    lower_transpose,
)
from tlx.lower.to_2d.rules.pointwise import lower_pointwise
from tlx.lower.to_2d.rules.products import PRODUCT_RULES

Rule = Callable[[RuleContext, TensorBuilder, TensorOp, TensorView], None]


def lower_reduce(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write the reduction of each window of the operand to `destination`."""
    if context.memory.groups.is_group(op):
        lower_pointwise(context, b, op, destination)
        return
    source = context.memory.view(op.tensors[0])
    sizes = zip(source.dims, destination.dims, *op.dims, strict=True)
    axes = [WindowAxis(out.extent, dim.stride, out.stride, window, step) for dim, out, window, step in sizes]
    reduce_axes(context, b, op, axes, TypedPointer.of(source), TypedPointer.of(destination))


RULES: Final[dict[str, Rule]] = {
    **PRODUCT_RULES,
    "transpose": lower_transpose,
    "tovector": lower_transpose,
    **dict.fromkeys(POINTWISE, lower_pointwise),
    INSERT: lower_insert,
    SHUFFLE: lower_shuffle,
    "broadcast": lower_broadcast,
    "reshape.block": lower_block,
    "reshape.permute": lower_permute,
    "pad": lower_pad,
    "concat": lower_concat,
    **{f"reduce.{kind}": lower_reduce for kind in ("add", "mul", "max", "min", "and", "or", "xor")},
}
