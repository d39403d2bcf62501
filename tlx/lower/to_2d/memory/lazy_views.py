"""Lazy views: crops and permutations that are read from the operand's memory, with an offset or other strides.

Rewrite of a sum of two columns of a matrix::

    %a = pad(%x), columns 1 to 3 cropped of 0 to 3          nothing
    %b = pad(%x), columns 0 to 2 cropped                ->  nothing
    %s = fadd %a, %b                                        a map that reads %x.buf and %x.buf + 3, rows 4 apart

Rewrite of the scores of two heads, whose queries are the columns of one matrix::

    %q = reshape.permute(%x), 128 x 2 x 64 as 2 x 128 x 64  nothing
    %s = contract(%q, %k)                               ->  products that read %x.buf, heads 64 and rows 128 apart

A permutation is copied if its result has no strides in the operand's memory, or if several readers are not products and
neighbours in a row of the result are not neighbours in memory.

A part or permutation of a result may be stored as well: the store copies it from where it lies. One that is only stored
is none of these views, as it is written where it is stored; nor is one of a load, whose memory the store may change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import has_dense_rows
from tlx.lower.to_2d.analysis.tensor_operations import PRODUCTS
from tlx.lower.to_2d.memory.derived_views import permuted_view
from tlx.lower.to_2d.memory.operand_views import OperandViews, SymbolicStorage
from tlx.lower.to_2d.memory.padding import is_crop

_LEAST_SHARE: Final = 8
"""A smaller part of a result is copied, so that the memory of the rest is free."""


def find_lazy_views(operands: OperandViews) -> frozenset[str]:
    """Names of the crops and permutations that all users read as views."""
    estimated = replace(operands, storage=SymbolicStorage())
    lazy: set[str] = set()
    for op in operands.facts.tensors.ops:
        name = str(op.instruction.result)
        if name in operands.views or not (_is_large_crop(estimated, op) or _is_cheap_permutation(estimated, op)):
            continue
        candidate = replace(estimated, views=estimated.views | {name})
        users = [use.instruction for use in operands.facts.vectors.uses.get(name, [])]
        if users and all(candidate.readers(user) is not None for user in users) and _suits_stores(estimated, op):
            lazy.add(name)
            estimated = candidate
    return frozenset(lazy)


def _is_large_crop(operands: OperandViews, op: TensorOp) -> bool:
    """Whether an operation crops a large part of a result, or a part of memory that is not a temporary."""
    if not is_crop(op):
        return False
    assert op.result is not None
    source = op.tensors[0]
    return op.result.count * _LEAST_SHARE >= source.type.count or operands.view(source).storage.load is not None


def _is_cheap_permutation(operands: OperandViews, op: TensorOp) -> bool:
    """Whether an operation permutes dimensions, and reading its operand takes no longer than copying it first."""
    if op.intrinsic.name != "reshape.permute" or op.result is None or op.result.is_padded:
        return False
    view = permuted_view(operands.view(op.tensors[0]), op)
    if view is None:
        return False
    return has_dense_rows(view.dims) or len([r for r in _readers(operands, op) if not _multiplies(r)]) <= 1


def _readers(operands: OperandViews, op: TensorOp) -> list[TensorOp | None]:
    """The operations that read a result."""
    facts = operands.facts
    users = [use.instruction for use in facts.vectors.uses.get(str(op.instruction.result), [])]
    tokens = [user for user in users if user.result in facts.tensors.tokens]
    others = [use.instruction for user in tokens for use in facts.vectors.uses.get(str(user.result), [])]
    return [facts.tensors.op_of(user) for user in (*(u for u in users if u not in tokens), *others)]


def _suits_stores(operands: OperandViews, op: TensorOp) -> bool:
    """Whether no store reads a result, or others read it as well and no store can change its operand."""
    stores = [reader is not None and reader.pointer is not None for reader in _readers(operands, op)]
    return not any(stores) or (not all(stores) and operands.view(op.tensors[0]).storage.load is None)


def _multiplies(op: TensorOp | None) -> bool:
    return op is not None and op.intrinsic.name in PRODUCTS
