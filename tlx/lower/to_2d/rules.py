"""One rule for each tensor operation: how its result is written to a place. A new operation is one entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.broadcast import lower_broadcast
from tlx.lower.to_2d.concat import lower_concat
from tlx.lower.to_2d.contract import lower_contract
from tlx.lower.to_2d.contraction import MMA, Epilogue
from tlx.lower.to_2d.convolution import lower_convolution
from tlx.lower.to_2d.elementwise import INSERT, SHUFFLE
from tlx.lower.to_2d.groups import POINTWISE
from tlx.lower.to_2d.insert import lower_insert
from tlx.lower.to_2d.matmul import lower_matmul
from tlx.lower.to_2d.mma import lower_mma
from tlx.lower.to_2d.pad import lower_pad
from tlx.lower.to_2d.pointwise import lower_pointwise
from tlx.lower.to_2d.reduce import lower_reduce
from tlx.lower.to_2d.reshape import lower_block, lower_permute
from tlx.lower.to_2d.shuffle import lower_shuffle
from tlx.lower.to_2d.transpose import lower_transpose
from tlx.lower.to_2d.views import View

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

Rule = Callable[["Plan", TensorBuilder, TensorOp, View], None]
ProductRule = Callable[["Plan", TensorBuilder, TensorOp, View, Epilogue | None], None]

PRODUCT_RULES: Final[dict[str, ProductRule]] = {
    "matmul": lower_matmul,
    **dict.fromkeys(MMA, lower_mma),
    "contract": lower_contract,
    "convolution": lower_convolution,
}
"""Those that take what is done to the product before it is stored."""


def _alone(rule: ProductRule) -> Rule:
    def write(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
        rule(plan, b, op, target, None)

    return write


def _reduction(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    rule = lower_pointwise if plan.groups.is_group(op) else lower_reduce
    rule(plan, b, op, target)


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
