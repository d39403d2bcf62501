"""One rule for each tensor operation: how its result is written to a place. A new operation is one entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import TensorView
from tlx.lower.to_2d.analysis.tensor_operations import INSERT, POINTWISE, SHUFFLE
from tlx.lower.to_2d.rules.context import RuleContext
from tlx.lower.to_2d.rules.elements import lower_insert, lower_shuffle
from tlx.lower.to_2d.rules.movement import (
    lower_block,
    lower_broadcast,
    lower_concat,
    lower_pad,
    lower_permute,
    lower_transpose,
)
from tlx.lower.to_2d.rules.pointwise import lower_pointwise
from tlx.lower.to_2d.rules.products import PRODUCT_RULES, ProductRule
from tlx.lower.to_2d.rules.reduction import lower_reduce

Rule = Callable[[RuleContext, TensorBuilder, TensorOp, TensorView], None]


def _alone(rule: ProductRule) -> Rule:
    def write(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
        rule(context, b, op, target, None)

    return write


def _reduction(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    rule = lower_pointwise if context.groups.is_group(op) else lower_reduce
    rule(context, b, op, target)


RULES: Final[dict[str, Rule]] = {
    **{name: _alone(rule) for name, rule in PRODUCT_RULES.items()},
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
