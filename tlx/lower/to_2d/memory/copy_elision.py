"""Copy elision: operations write their results where a concatenation, padding or permutation would copy them.

Rewrite of two maps that are concatenated::

    %a = fmul <16 x float> %x, %x                          the map, written to %u.buf
    %b = fadd <8 x float> %y, %y                           the map, written to %u.buf + 16
    %u = concat(%a, %b)                                    nothing
    %p = pad(%u)                                           fills of the border, and a copy of %u
    %s = fadd %b, %z                                       the map, which reads %u.buf + 16

The concatenation must be in the same block, and may see the result in other dimensions. Parts nest: `%u` may be a part
of `%p`, whose buffer then holds all of them. Other readers read the part where it is; a result that one of them needs
as a flattened vector is no part. Of several places to move a result to, one is saved, and the others copy it. An
operation whose result is permuted writes rows where neighbours stay neighbours; only a product writes elements that are
apart. A convolution with windows of one element may be an exception: padding splits its products of whole planes into
products of rows, which may take longer than a copy, by the estimated cycles. For the same reason, none reads a part
among padding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain
from typing import Final

from tlx.intrinsics.convolution import Windows, spatial_rank
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.lower.memory.views import (
    NO_ADDRESS,
    Storage,
    StridedDim,
    TensorView,
    has_dense_rows,
    reshaped_strides,
    without_unit_dims,
)
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.contraction.problem import ContractionResult
from tlx.lower.to_2d.convolution.borders import padded_source
from tlx.lower.to_2d.convolution.dense import best_layout
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.fusion import has_dilated_input, is_product
from tlx.lower.to_2d.memory.copies import copy_cycles
from tlx.lower.to_2d.memory.derived_views import PERMUTATIONS, Part, has_elements_of
from tlx.lower.to_2d.memory.operand_views import OperandViews, SymbolicStorage
from tlx.lower.to_2d.memory.schedule import SunkStores

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
    parts = dict(sunk_stores.parts)
    estimated = replace(operands, storage=SymbolicStorage(), parts=parts)
    for op in reversed(operands.facts.tensors.ops):  # a whole is placed before its parts
        name = str(op.instruction.result)
        if name not in live or name in operands.views or id(op.instruction) in sunk_stores.by_op:
            continue
        candidates = [p for p in _candidates(operands, op) if id(p.whole.instruction) not in sunk_stores.by_op]
        for part in sorted(candidates, key=lambda part: part.whole.intrinsic.name == "pad"):  # a border splits rows
            if (
                _is_writable(estimated, part)
                and _suits_readers(estimated, part)
                and not _is_faster_moved(estimated, part)
            ):
                parts[id(op.instruction)] = part
                break
    return parts


def _candidates(operands: OperandViews, op: TensorOp) -> list[Part]:
    """The places in other results of the same block that a result is moved to."""
    facts, result = operands.facts, op.result
    if result is None or result.is_padded:
        return []
    block = facts.positions[id(op.instruction)][0]
    parts: list[Part] = []
    for token, reader in _token_readers(facts, op):
        whole = facts.tensors.op_of(reader)
        if whole is None or facts.positions[id(reader)][0] != block or not _is_mover(operands, whole):
            continue
        if has_elements_of(token.type, result):
            parts += [Part(op, whole, number) for number, tensor in enumerate(whole.tensors) if tensor is token]
    return parts


def _token_readers(facts: Facts, op: TensorOp) -> list[tuple[Tensor, Instruction]]:
    """The tokens of a result, each with an instruction that reads it."""
    uses = facts.vectors.uses
    users = [use.instruction for use in uses.get(str(op.instruction.result), ())]
    tokens = [(user, facts.tensors.tokens.get(user.result or "")) for user in users]
    return [
        (token, use.instruction)
        for user, token in tokens
        if token is not None and token.kind == "value"
        for use in uses.get(str(user.result), ())
    ]


def _is_mover(operands: OperandViews, whole: TensorOp) -> bool:
    """Whether an operation only moves its operands into a buffer of its own, next to each other."""
    facts, name = operands.facts, str(whole.instruction.result)
    if whole.result is None or whole.result.is_padded or whole.intrinsic.name not in _MOVERS or name in operands.views:
        return False
    if any(use.instruction.opcode in _SHARING for use in facts.vectors.uses.get(name, ())):
        return False
    return whole.intrinsic.name != "pad" or _surrounds(whole)


def _is_writable(operands: OperandViews, part: Part) -> bool:
    """Whether a result has strides in the memory of a part, and unless it is a product's, dense rows."""
    place = operands.place(part)
    if place is None:
        return False
    is_moved_whole = part.whole.intrinsic.name not in PERMUTATIONS
    return is_moved_whole or is_product(operands.groups, part.op) or has_dense_rows(place.dims)


def _suits_readers(operands: OperandViews, part: Part) -> bool:
    """Whether all other readers of a result can read it as a part, and no slower than from a buffer of its own."""
    users = [use.instruction for use in operands.facts.vectors.uses.get(str(part.op.instruction.result), ())]
    if len(users) == len(_token_readers(operands.facts, part.op)) == 1:
        return True
    place = operands.place(part)
    if part.whole.intrinsic.name in PERMUTATIONS or place is None or not _has_neighbours(place):
        return False
    candidate = replace(operands, parts={**operands.parts, id(part.op.instruction): part})
    return all(_reads_part(candidate, user) for user in users)


def _reads_part(operands: OperandViews, user: Instruction) -> bool:
    """Whether a use of a result can read it as a part of another one."""
    readers = operands.readers(user)
    return readers is not None and all(not _has_unit_windows(op) or _has_planes(view, op) for view, op in readers)


def _has_planes(view: TensorView, convolution: TensorOp) -> bool:
    """Whether all positions of a channel are next to each other."""
    planes = view.dims[-spatial_rank(convolution.tensors[0].type.rank) :]
    extents, strides = [dim.extent for dim in planes], [dim.stride for dim in planes]
    return reshaped_strides(extents, strides, [math.prod(extents)]) is not None


def _has_neighbours(view: TensorView) -> bool:
    """Whether neighbours along some dimension are neighbours in memory."""
    dims = without_unit_dims(view.dims)
    return not dims or any(dim.stride == 1 for dim in dims)


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


def _is_faster_moved(operands: OperandViews, part: Part) -> bool:
    """Whether a convolution by 1 x 1 filters writes planes, and a copy of them, faster than rows among padding."""
    op, pad = part.op, _pad_around(part, operands.parts)
    product = operands.groups.product_of(op) or op
    if pad is None or pad.result is None or product.result is None:
        return False
    if not _has_unit_windows(product) or has_dilated_input(product):
        return False
    (x, w), target, type_ = product.tensors, operands.facts.target, product.result
    if padded_source(operands, x) is not None or type_.rank != pad.result.rank:
        return False
    padded = operands.result_view(pad).dims
    rows = [StridedDim(extent, dim.stride) for extent, dim in zip(type_.extents, padded, strict=True)]
    dense = operands.product_view(product)
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
    moved = sorted(dense.dims, key=lambda dim: dim.stride, reverse=True)
    return whole + copy_cycles(moved, type_.element, target) < split


def _has_unit_windows(op: TensorOp) -> bool:
    """Whether an operation is a convolution by 1 x 1 filters."""
    if op.intrinsic.name != "convolution":
        return False
    w = op.tensors[1].type
    return math.prod(w.extents[-spatial_rank(w.rank) :]) == 1
