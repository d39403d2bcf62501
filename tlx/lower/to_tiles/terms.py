"""Reading sums of products: a chain through accumulators, whose operands lie at constant distances.

%p = matmul(load %a, load %b)
%q = smma(%p, load (%a + 64), load (%b + 512))         one product, of two terms: (0, 0) and (64, 512)
"""

from __future__ import annotations

from typing import Final

from tlx.ir.tensors import TensorOp
from tlx.ir.types import Type
from tlx.ir.values import ConstInt, Value
from tlx.lower.signs import PRODUCT_SIGNS
from tlx.lower.to_tiles.reading import Listing, left_over
from tlx.lower.to_tiles.view import View

_STRIPS: Final = 4
"""Dimensions of interleaved rows in strips."""


def chain_of(listing: Listing, last: TensorOp) -> list[TensorOp]:
    """The products that are added up, the first one first, given the last one.

    Raises:
        LoweringError: They do not differ in nothing but where their operands lie.
    """
    found = [last]
    while (before := _added_to(listing, found[0])) is not None:
        found.insert(0, before)
    if len({PRODUCT_SIGNS[op.intrinsic.name] for op in found}) > 1 or len({_shapes(listing, op) for op in found}) > 1:
        raise left_over(last)
    return found


def _added_to(listing: Listing, op: TensorOp) -> TensorOp | None:
    """The product that is an operation's accumulator."""
    acc = op.tensors[0]
    return listing.tensors.maker(acc) if len(op.tensors) > 2 and acc.kind == "value" else None


def _shapes(listing: Listing, op: TensorOp) -> tuple[View, View]:
    (_, a), (_, b) = operands_of(listing, op)
    return a, b


def operands_of(listing: Listing, op: TensorOp) -> tuple[tuple[Value, View], tuple[Value, View]]:
    """Where the operands of a product lie; the right one may have interleaved rows that are permuted back.

    Raises:
        LoweringError: They are something else.
    """
    a, b = op.tensors[-2:]
    if a.kind != "load":
        raise left_over(op)
    lhs = a.source, View.of(a.type, a.pitches)
    if b.kind == "load":
        return lhs, (b.source, View.of(b.type, b.pitches))
    maker = listing.tensors.maker(b)
    if maker is None or maker.intrinsic.name != "reshape.permute" or maker.tensors[0].kind != "load":
        raise left_over(op)
    packed = maker.tensors[0]
    if packed.type.rank == _STRIPS:
        return lhs, (packed.source, View.strips(packed.type, b.type.extents[1]))
    return lhs, (packed.source, View.interleaved(packed.type, packed.pitches))


def offsets_of(listing: Listing, chain: list[TensorOp]) -> tuple[tuple[int, int], ...]:
    """Elements from the first product's operands to those of each product."""
    if len(chain) == 1:
        return ((0, 0),)
    (a, _), (b, _) = places = operands_of(listing, chain[0])
    elements = [view.element for _, view in places]
    found: list[tuple[int, int]] = []
    for op in chain:
        (x, _), (y, _) = operands_of(listing, op)
        found.append((_distance(listing, op, elements[0], a, x), _distance(listing, op, elements[1], b, y)))
    return tuple(found)


def _distance(listing: Listing, op: TensorOp, element: Type, first: Value, other: Value) -> int:
    (base, start), (same, end) = (_place(listing, pointer, element) for pointer in (first, other))
    if base != same:
        raise left_over(op)
    return end - start


def _place(listing: Listing, pointer: Value, element: Type) -> tuple[str, int]:
    """A pointer as another one and elements behind that."""
    _, made = listing.made.get(str(pointer)[1:], (0, None))
    if made is None:
        return str(pointer), 0
    if made.opcode == "bitcast":
        return _place(listing, made.operands[0], element)
    if made.opcode == "getelementptr" and made.source_type == element and len(made.operands) == 2:
        index = made.operands[1]
        if isinstance(index, ConstInt):
            base, start = _place(listing, made.operands[0], element)
            return base, start + index.value
    return str(pointer), 0
