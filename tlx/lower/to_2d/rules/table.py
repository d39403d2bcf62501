"""The rule of each tensor operation, which writes its result to memory. A new operation is one entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import TensorView
from tlx.lower.to_2d.analysis.tensor_operations import INSERT, POINTWISE, SHUFFLE
from tlx.lower.to_2d.emission import RuleContext
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
from tlx.lower.to_2d.rules.reduction import lower_reduce

Rule = Callable[[RuleContext, TensorBuilder, TensorOp, TensorView], None]


def _reduction(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    rule = lower_pointwise if context.memory.groups.is_group(op) else lower_reduce
    rule(context, b, op, target)


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
    **{f"reduce.{kind}": _reduction for kind in ("add", "mul", "max", "min", "and", "or", "xor")},
}
