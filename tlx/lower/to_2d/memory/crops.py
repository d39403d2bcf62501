"""Crops: pads that only crop, and that others read where the operand lies, from the first element of the part on.

Rewrite of a sum of two columns of a matrix::

    %a = pad(%x), columns 1 to 3 cropped of 0 to 3          nothing
    %b = pad(%x), columns 0 to 2 cropped                ->  nothing
    %s = fadd %a, %b                                        a map that reads %x.buf and %x.buf + 3, rows 4 apart
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import TensorOp
from tlx.lower.to_2d.analysis.tensor_operations import ORDINARY
from tlx.lower.to_2d.fusion import OperandViews, SymbolicStorage
from tlx.lower.to_2d.memory.padding import is_crop

_LEAST_SHARE: Final = 8
"""A smaller part of a result is copied, so that the memory of the rest is free."""


def find_crops(operands: OperandViews) -> frozenset[str]:
    """Names of the crops that all users read as views."""
    estimated = replace(operands, storage=SymbolicStorage())
    crops: set[str] = set()
    for op in operands.facts.tensors.ops:
        if is_crop(op) and _is_large(estimated, op):
            name = str(op.instruction.result)
            candidate = replace(estimated, views=estimated.views | {name})
            users = [use.instruction for use in operands.facts.vectors.uses.get(name, [])]
            if users and all(_sees_view(candidate, user) for user in users):
                crops.add(name)
                estimated = candidate
    return frozenset(crops)


def _is_large(operands: OperandViews, crop: TensorOp) -> bool:
    """Whether a crop is a large part of a result, or a part of memory that is not a temporary."""
    assert crop.result is not None
    source = crop.tensors[0]
    return crop.result.count * _LEAST_SHARE >= source.type.count or operands.view(source).storage.load is not None


def _sees_view(operands: OperandViews, user: Instruction) -> bool:
    """Whether a use can read the operand's memory, in its own shape; a store copies it."""
    facts = operands.facts
    own = facts.tensors.op_of(user)
    if own is not None:
        return own.intrinsic.name == ORDINARY
    token = facts.tensors.tokens.get(user.result or "")
    if token is None or token.kind != "value" or operands.view(token).shape != token.type.shape:
        return False
    readers = [facts.tensors.op_of(use.instruction) for use in facts.vectors.uses.get(str(user.result), [])]
    return all(reader is not None and reader.pointer is None for reader in readers)
