"""Reading sums of products: a chain through accumulators, whose operands lie at constant distances.

%p = matmul(load %a, load %b)
%q = smma(%p, load (%a + 64), load (%b + 512))         one product, of two terms: (0, 0) and (64, 512)
"""

from __future__ import annotations

from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import Type
from tlx.ir.values import ConstInt, Value
from tlx.lower.signs import PRODUCT_SIGNS
from tlx.lower.to_tiles.reading import Listing, left_over
from tlx.lower.to_tiles.view import View


def chain_of(listing: Listing, last: TensorOp) -> list[TensorOp]:
    """The products that are added up, the first one first, given the last one.

    Raises:
        LoweringError: They do not differ in nothing but where their operands lie.
    """
    found = [last]
    while (before := _added_to(listing, found[0])) is not None:
        found.insert(0, before)
    if len({PRODUCT_SIGNS[op.intrinsic.name] for op in found}) > 1 or len({_shapes(op) for op in found}) > 1:
        raise left_over(last)
    return found


def _added_to(listing: Listing, op: TensorOp) -> TensorOp | None:
    """The product that is an operation's accumulator."""
    acc = op.tensors[0]
    return listing.tensors.maker(acc) if len(op.tensors) > 2 and acc.kind == "value" else None


def _shapes(op: TensorOp) -> tuple[View, ...]:
    return tuple(View.of(t.type, t.pitches) for t in op.tensors[-2:])


def offsets_of(listing: Listing, chain: list[TensorOp]) -> tuple[tuple[int, int], ...]:
    """Elements from the first product's operands to those of each product."""
    if len(chain) == 1:
        return ((0, 0),)
    a, b = chain[0].tensors[-2:]
    return tuple((_distance(listing, op, a, op.tensors[-2]), _distance(listing, op, b, op.tensors[-1])) for op in chain)


def _distance(listing: Listing, op: TensorOp, first: Tensor, other: Tensor) -> int:
    element = first.type.element
    (base, start), (same, end) = (_place(listing, tensor.source, element) for tensor in (first, other))
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
