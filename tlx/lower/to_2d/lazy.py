"""Which transposes and broadcasts are only another view of their operand's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.module import Instruction
from tlx.ir.tensors import TensorOp
from tlx.lower.ordinary import UNARY
from tlx.lower.to_2d.elementwise import NAME
from tlx.lower.to_2d.vnni import is_interleaved, multiplies
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

_VIEWS: Final = frozenset({"transpose", "tovector"})


def is_lazy(plan: Plan, op: TensorOp) -> bool:
    """Whether every use of a transpose or a broadcast sees the same elements in its operand's memory."""
    if op.result is None or op.scalars or op.intrinsic.name not in _VIEWS | {"broadcast", "reshape.permute"}:
        return False
    users = [u.instruction for u in plan.flats.uses.get(str(op.instruction.result), [])]
    if op.intrinsic.name == "reshape.permute":
        target = plan.context.target_of(plan.module, plan.function)
        return is_interleaved(op, target) and all(_multiplies(plan, user, op.result) for user in users)
    return all(_sees_view(plan, user, op.result, op.intrinsic.name == "broadcast") for user in users)


def _multiplies(plan: Plan, user: Instruction, result: TensorType) -> bool:
    """Whether a use reads interleaved rows as the right operand of products only."""
    token = plan.tensors.tokens.get(user.result or "")
    if token is None or token.kind != "value" or token.type != result:
        return False
    readers = [plan.tensors.op_of(u.instruction) for u in plan.flats.uses.get(str(user.result), [])]
    return all(multiplies(reader, token) for reader in readers)


def _sees_view(plan: Plan, user: Instruction, result: TensorType, repeats: bool) -> bool:
    """Whether one use does; what is repeated can only be read pointwise."""
    own = plan.tensors.op_of(user)
    if own is not None:
        return own.intrinsic.name == NAME and not result.is_padded
    token = plan.tensors.tokens.get(user.result or "")
    if token is None or token.kind != "value" or not _lies_like(token.type, result):
        return False
    if not repeats:
        return True
    readers = [plan.tensors.op_of(u.instruction) for u in plan.flats.uses.get(str(user.result), [])]
    return not result.is_padded and all(r is not None and r.intrinsic.name in UNARY for r in readers)


def _lies_like(type_: TensorType, result: TensorType) -> bool:
    """Whether a token on a result reads no padding of the result as data, dimension by dimension."""
    pairs = zip(type_.padding, result.padding, strict=False)
    return type_.shape == result.shape and all(mine >= its for mine, its in pairs)
