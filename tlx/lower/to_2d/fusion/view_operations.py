"""View operations: transposes and broadcasts that are only another view of their operand's memory."""

from __future__ import annotations

from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import TensorOp
from tlx.lower.operations import UNARY_INTRINSICS
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import ORDINARY
from tlx.lower.to_2d.contraction.vnni_operands import is_interleaved, is_vnni_product

_VIEW_OPERATIONS: Final = frozenset({"transpose", "tovector"})


def is_only_view(facts: Facts, op: TensorOp) -> bool:
    """Whether every use of a transpose or a broadcast sees the same elements in its operand's memory."""
    if op.result is None or op.scalars or op.intrinsic.name not in _VIEW_OPERATIONS | {"broadcast", "reshape.permute"}:
        return False
    users = [u.instruction for u in facts.vectors.uses.get(str(op.instruction.result), [])]
    if op.intrinsic.name == "reshape.permute":
        return is_interleaved(op, facts.target) and all(_multiplies(facts, user, op.result) for user in users)
    return all(_sees_view(facts, user, op.result, op.intrinsic.name == "broadcast") for user in users)


def _multiplies(facts: Facts, user: Instruction, result: TensorType) -> bool:
    """Whether a use reads interleaved rows as the right operand of products only."""
    token = facts.tensors.tokens.get(user.result or "")
    if token is None or token.kind != "value" or token.type != result:
        return False
    readers = [facts.tensors.op_of(u.instruction) for u in facts.vectors.uses.get(str(user.result), [])]
    return all(is_vnni_product(reader, token) for reader in readers)


def _sees_view(facts: Facts, user: Instruction, result: TensorType, repeats: bool) -> bool:
    """Whether one use does; what is repeated can only be read pointwise."""
    own = facts.tensors.op_of(user)
    if own is not None:
        return own.intrinsic.name == ORDINARY and not result.is_padded
    token = facts.tensors.tokens.get(user.result or "")
    if token is None or token.kind != "value" or not _lies_like(token.type, result):
        return False
    if not repeats:
        return True
    readers = [facts.tensors.op_of(u.instruction) for u in facts.vectors.uses.get(str(user.result), [])]
    return not result.is_padded and all(r is not None and r.intrinsic.name in UNARY_INTRINSICS for r in readers)


def _lies_like(type_: TensorType, result: TensorType) -> bool:
    """Whether a token on a result reads no padding of the result as data, dimension by dimension."""
    pairs = zip(type_.padding, result.padding, strict=False)
    return type_.shape == result.shape and all(mine >= its for mine, its in pairs)
