"""Parts: an operation writes its result to the place where a concatenation or padding would copy it.

Rewrite of two maps that are concatenated::

    %a = fmul <16 x float> %x, %x                          the map, written to %u.buf
    %b = fadd <8 x float> %y, %y                           the map, written to %u.buf + 16
    %u = concat(%a, %b)                                    nothing
    %p = pad(%u)                                           fills of the border, and a copy of %u

The concatenation must be the only use, in the same block. Parts nest: `%u` may be a part of `%p`, whose buffer then
holds all of them. A convolution with windows of one element is an exception: padding would split its products of whole
planes into products of rows, which takes longer than a copy (192 filters of 26 x 26 elements: 6 %, Zen 5, AVX2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Final

from tlx.intrinsics.convolution import spatial_rank
from tlx.ir.rewrite import only_user
from tlx.ir.tensors.model import TensorOp
from tlx.lower.to_2d.fusion import OperandViews, Part, SunkStores

_MOVERS: Final = frozenset({"concat", "pad"})
_SHARING: Final = frozenset({"phi", "insertelement"})
"""Instructions that share the buffer of an operand (`memory.coalescing`), which is better than parts."""


def find_parts(operands: OperandViews, live: AbstractSet[str], sunk_stores: SunkStores) -> Mapping[int, Part]:
    """The operations that write their results to a part of another result, by the id of their instruction.

    Args:
        operands: The operands of all operations.
        live: Names of the results that are needed in memory.
        sunk_stores: The operations that run where their result is stored.
    """
    parts: dict[int, Part] = {}
    for op in reversed(operands.facts.tensors.ops):  # so that it is known where a whole lies before its parts are
        name = str(op.instruction.result)
        if name not in live or name in operands.views or id(op.instruction) in sunk_stores.by_op:
            continue
        part = _part_of(operands, op)
        if part is None or id(part.whole.instruction) in sunk_stores.by_op:
            continue
        if not (_has_unit_windows(operands.groups.product_of(op) or op) and _is_padded(part, parts)):
            parts[id(op.instruction)] = part
    return parts


def _part_of(operands: OperandViews, op: TensorOp) -> Part | None:
    facts, result = operands.facts, op.result
    block = facts.positions[id(op.instruction)][0]
    user = only_user(facts.vectors.uses, op.instruction, block)
    token = facts.tensors.tokens.get(user.result or "") if user is not None else None
    if result is None or user is None or token is None or token.kind != "value" or token.type != result:
        return None
    reader = only_user(facts.vectors.uses, user, block)
    whole = facts.tensors.op_of(reader) if reader is not None else None
    if whole is None or whole.result is None or whole.intrinsic.name not in _MOVERS:
        return None
    name = str(whole.instruction.result)
    if result.is_padded or whole.result.is_padded or facts.vectors.needs_ssa(name):
        return None
    if {name, str(whole.instruction.result)} & operands.views:
        return None
    if any(use.instruction.opcode in _SHARING for use in facts.vectors.uses.get(name, ())):
        return None
    if whole.intrinsic.name == "pad" and not _surrounds(whole):
        return None
    return Part(whole, next(i for i, tensor in enumerate(whole.tensors) if tensor is token))


def _surrounds(pad: TensorOp) -> bool:
    """Whether all elements of a pad's operand are in its result, and stay neighbours."""
    low, high, *interior = pad.dims
    return min(*low, *high) >= 0 and not any(chain.from_iterable(interior))


def _is_padded(part: Part, parts: Mapping[int, Part]) -> bool:
    """Whether the result around a part is padded, or lies in one that is."""
    outer: Part | None = part
    while outer is not None and outer.whole.intrinsic.name != "pad":
        outer = parts.get(id(outer.whole.instruction))
    return outer is not None


def _has_unit_windows(op: TensorOp) -> bool:
    """Whether an operation is a convolution by 1 x 1 filters."""
    if op.intrinsic.name != "convolution":
        return False
    w = op.tensors[1].type
    return math.prod(w.extents[-spatial_rank(w.rank) :]) == 1
