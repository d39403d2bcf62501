"""Parts: an operation writes its result to the place where a concatenation, padding or permutation would copy it.

Rewrite of two maps that are concatenated::

    %a = fmul <16 x float> %x, %x                          the map, written to %u.buf
    %b = fadd <8 x float> %y, %y                           the map, written to %u.buf + 16
    %u = concat(%a, %b)                                    nothing
    %p = pad(%u)                                           fills of the border, and a copy of %u

The concatenation must be the only use, in the same block. Parts nest: `%u` may be a part of `%p`, whose buffer then
holds all of them. An operation whose result is permuted writes rows where neighbours stay neighbours; only a product
writes elements that are apart. A convolution with windows of one element may be an exception: padding splits its
products of whole planes into products of rows, which may take longer than a copy, by the estimated cycles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain
from typing import Final

from tlx.intrinsics.convolution import Windows, spatial_rank
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.rewrite import only_user
from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import NO_ADDRESS, Storage, StridedDim, TensorView, has_dense_rows
from tlx.lower.to_2d.contraction.problem import ContractionResult
from tlx.lower.to_2d.convolution.borders import padded_source
from tlx.lower.to_2d.convolution.dense import best_layout
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.fusion import OperandViews, Part, SunkStores, SymbolicStorage, has_dilated_input, is_product
from tlx.lower.to_2d.memory.copies import copy_cycles
from tlx.lower.to_2d.memory.padding import padded_dims, spread_dims
from tlx.lower.to_2d.memory.permutations import PERMUTATIONS, unpermuted_view

_MOVERS: Final = frozenset({"concat", "pad"}) | PERMUTATIONS
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
    estimated = replace(operands, storage=SymbolicStorage())
    for op in reversed(operands.facts.tensors.ops):  # so that it is known where a whole lies before its parts are
        name = str(op.instruction.result)
        if name not in live or name in operands.views or id(op.instruction) in sunk_stores.by_op:
            continue
        part = _part_of(operands, op)
        if part is None or id(part.whole.instruction) in sunk_stores.by_op:
            continue
        if not _is_writable(operands, op, part, parts):
            continue
        pad = _pad_around(part, parts)
        if pad is None or not _is_faster_copied(estimated, op, pad):
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


def _is_writable(operands: OperandViews, op: TensorOp, part: Part, parts: Mapping[int, Part]) -> bool:
    """Whether a result has strides in the memory of a part, and unless it is a product's, dense rows."""
    place = _place(part, parts)
    if place is None:
        return False
    is_moved_whole = part.whole.intrinsic.name not in PERMUTATIONS
    return is_moved_whole or is_product(operands.groups, op) or has_dense_rows(place.dims)


def _place(part: Part, parts: Mapping[int, Part]) -> TensorView | None:
    """The memory of a part in the outermost result around it, its dimensions in logical order."""
    outer = parts.get(id(part.whole.instruction))
    assert part.whole.result is not None
    target = TensorView.of(Storage(NO_ADDRESS), part.whole.result) if outer is None else _place(outer, parts)
    return None if target is None else part_view(part.whole, part.operand, target)


def part_view(whole: TensorOp, operand: int, target: TensorView) -> TensorView | None:
    """The part of `target`, the result of an operation that moves elements, to which one of its operands is moved.

    Returns:
        The part with its dimensions in logical order; None if a permuted operand has no strides in the result.
    """
    if whole.intrinsic.name in PERMUTATIONS:
        return unpermuted_view(target, whole)
    if whole.intrinsic.name == "pad":
        dims, offset = spread_dims(target, padded_dims(whole))
    else:
        ((axis,),) = whole.dims
        offset = sum(tensor.type.extents[axis] for tensor in whole.tensors[:operand]) * target.dims[axis].stride
        extents = whole.tensors[operand].type.extents
        dims = [StridedDim(extent, dim.stride) for extent, dim in zip(extents, target.dims, strict=True)]
    return replace(TensorView.strided(target.storage, target.element, dims), offset=target.offset + offset)


def _surrounds(pad: TensorOp) -> bool:
    """Whether all elements of a pad's operand are in its result, and stay neighbours."""
    low, high, *interior = pad.dims
    return min(*low, *high) >= 0 and not any(chain.from_iterable(interior))


def _pad_around(part: Part, parts: Mapping[int, Part]) -> TensorOp | None:
    """The padding that a part lies in, if the result around it is padded, or lies in one that is."""
    outer: Part | None = part
    while outer is not None and outer.whole.intrinsic.name != "pad":
        outer = parts.get(id(outer.whole.instruction))
    return None if outer is None else outer.whole


def _is_faster_copied(operands: OperandViews, op: TensorOp, pad: TensorOp) -> bool:
    """Whether a convolution by 1 x 1 filters writes planes, and a copy of them, faster than rows among padding."""
    product = operands.groups.product_of(op) or op
    if not _has_unit_windows(product) or has_dilated_input(product) or product.result is None or pad.result is None:
        return False
    (x, w), target, type_ = product.tensors, operands.facts.target, product.result
    if padded_source(operands, x) is not None or type_.rank != pad.result.rank:
        return False
    around = TensorView.of(Storage(NO_ADDRESS), pad.result).dims
    rows = [StridedDim(extent, dim.stride) for extent, dim in zip(type_.extents, around, strict=True)]
    dense = TensorView.of(Storage(NO_ADDRESS), TensorType.dense(type_.element, type_.extents))
    apart = TensorView.strided(Storage(NO_ADDRESS), type_.element, rows)
    whole, split = (
        best_layout(
            target,
            DenseConvolution(
                operands.view(x), operands.view(w), Windows.of(x.type.rank, product.dims), ContractionResult(place)
            ),
            type_.element,
        )[1]
        for place in (dense, apart)
    )
    moved = [(dim.extent, dim.stride) for dim in dense.dims]
    return whole + copy_cycles(moved, type_.element, target) < split


def _has_unit_windows(op: TensorOp) -> bool:
    """Whether an operation is a convolution by 1 x 1 filters."""
    if op.intrinsic.name != "convolution":
        return False
    w = op.tensors[1].type
    return math.prod(w.extents[-spatial_rank(w.rank) :]) == 1
