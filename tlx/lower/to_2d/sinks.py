"""Operations that run where their result is stored and write there, so that no temporary is needed.

Rewrite::

    %m = call <E x T> @llvm.tensor.matmul(token %a, token %b)        nothing
    ...                                                       ->     ...
    store <E x T> %m, ptr %c                                         the product, written to %c

The store must be the only use, in the same block; the operands must still be what they were, and apart from the
destination. An accumulator may be the destination itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tlx.ir.module import Instruction
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.safety import Range, shortened
from tlx.lower.to_2d.views import Place, View, tensor_bytes

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan


@dataclass(frozen=True)
class Sink:
    """An operation that runs where its result is stored, and writes there.

    Attributes:
        op: The operation.
        store: The store of its result.
        target: Where it writes.
        fills: Whether padding is written as well, as zeros: the store is of the whole flattened vector.
    """

    op: TensorOp
    store: Instruction
    target: View
    fills: bool


def find_sink(plan: Plan, op: TensorOp) -> Sink | None:
    """Where an operation and what is fused into it can run and write directly; None, with a remark, where they cannot.

    Args:
        plan: What is decided so far: liveness and views.
        op: The operation.
    """
    if op.result is None or not plan.is_live(op) or str(op.instruction.result) in plan.lazy:
        return None
    sink = _only_store(plan, op)
    if sink is None:
        return None
    reason = _obstacle(plan, sink)
    if reason is None:
        return sink
    plan.explain(op, reason)
    return None


def _only_store(plan: Plan, op: TensorOp) -> Sink | None:
    """The store that is the only use of a result, if it is in the operation's block and of the same shape."""
    assert op.result is not None
    users = plan.flats.uses.get(str(op.instruction.result), [])
    if len(users) != 1:
        return None
    user = users[0].instruction
    token = plan.tensors.tokens.get(user.result or "")
    if token is None:
        if not plan.flats.is_memory_store(user) or not _same_block(plan, op.instruction, user):
            return None
        return Sink(op, user, View.of(Place(user.operands[1]), op.result), op.result.is_padded)
    stores = plan.flats.uses.get(str(user.result), [])
    store = plan.tensors.op_of(stores[0].instruction) if len(stores) == 1 else None
    if store is None or store.pointer is None or not _same_block(plan, op.instruction, store.instruction):
        return None
    if (token.type.shape, token.type.padding) != (op.result.shape, op.result.padding):
        return None
    return Sink(op, store.instruction, View.of(Place(store.pointer), op.result, store.pitches), fills=False)


def _same_block(plan: Plan, first: Instruction, second: Instruction) -> bool:
    return plan.positions[id(first)][0] == plan.positions[id(second)][0]


def _obstacle(plan: Plan, sink: Sink) -> str | None:
    """Why an operation cannot write straight to where its result is stored; None if it can."""
    assert sink.op.result is not None
    written = tensor_bytes(sink.op.result) if sink.fills else sink.target.reach
    target = Range(sink.target.place.pointer, written)
    for reading in plan.readings(sink.op):
        view = reading.view
        if view.place.reading is None:
            continue
        start, here = plan.start_of(view.place), plan.positions[id(sink.op.instruction)]
        if plan.aliases.clobbered(Range.of(view), start, here) is not None:
            continue  # it will be copied when it is loaded
        writer = plan.aliases.clobbered(Range.of(view), here, plan.positions[id(sink.store)])
        if writer is not None:
            return f"'{shortened(writer)}' may change an operand before the result is stored"
        in_place = reading.allows(sink.target) and not sink.fills
        if not in_place and not plan.aliases.disjoint(Range.of(view), target):
            return f"{sink.target.place.pointer} may alias {view.place.pointer}"
    return None
