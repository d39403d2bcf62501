"""Operations that run where their result is stored and write there, so that no temporary is needed.

Rewrite::

    %m = call <E x T> @llvm.tensor.matmul(token %a, token %b)        nothing
    ...                                                       ->     ...
    store <E x T> %m, ptr %c                                         the product, written to %c

The store must be the only use, in the same block; the operands must still be what they were, and apart from the
destination. An accumulator may be the destination itself. Where only the program's run can tell whether an operand is
apart from the destination, it is asked then::

    %overlap = ...                                          ; of the operands' and the destination's bytes
    %to = select i1 %overlap, ptr %apart.buf, ptr %c
    ... the product, written to %to
    br i1 %overlap, label %overlaps, label %apart           ; overlaps: copy %apart.buf to %c
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tlx.ir.module import Instruction
from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import PointerType, Type
from tlx.lower.to_2d.groups import PRODUCTS
from tlx.lower.to_2d.readings import Reading, readings_of
from tlx.lower.to_2d.safety import Range, shortened
from tlx.lower.to_2d.strides import strides_in
from tlx.lower.to_2d.views import Place, View, stored, tensor_bytes
from tlx.types import TensorType

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
        doubts: Operands that may overlap the target, as far as anyone can tell before the program runs.
        stays: Whether an operand is what is written over.
    """

    op: TensorOp
    store: Instruction
    target: View
    fills: bool
    doubts: tuple[View, ...] = ()
    stays: bool = False

    @property
    def range(self) -> Range:
        """The bytes that are written."""
        assert self.op.result is not None
        written = tensor_bytes(self.op.result) if self.fills else self.target.reach
        return Range(self.target.place.pointer, written)


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
    readings = readings_of(plan, op)
    read = _read_in_place(plan, op, readings)
    reason = _obstacle(plan, sink, read)
    if reason is not None:
        plan.explain(op, reason)
        return None
    doubts = _doubts(plan, sink, read)
    if not doubts:
        return sink
    if not _is_default(sink.target.place.pointer.type):
        plan.explain(op, "only pointers of the default address space are compared when the program runs")
        return None
    return replace(sink, doubts=doubts, stays=any(reading.allows(sink.target) for reading in readings))


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
    used = plan.tensors.op_of(stores[0].instruction) if len(stores) == 1 else None
    if used is not None and used.pointer is None:
        return _behind_transpose(plan, op, token, used)
    if used is None or not _same_block(plan, op.instruction, used.instruction):
        return None
    assert used.pointer is not None
    target = _target(op.result, token.type, Place(used.pointer), used.pitches)
    return None if target is None else Sink(op, used.instruction, target, fills=False)


def _behind_transpose(plan: Plan, op: TensorOp, seen: Tensor, transpose: TensorOp) -> Sink | None:
    """The store of a product's transpose, if only that is stored: the product is written in the other order.

    memory of the transpose   0 1 2 3        of the product   order[0] order[1] order[2] order[3]
    """
    type_, result = op.result, transpose.result
    is_product = op.intrinsic.name in PRODUCTS or plan.groups.product_of(op) is not None
    if str(transpose.instruction.result) not in plan.lazy or transpose.intrinsic.name != "transpose" or not is_product:
        return None
    if type_ is None or result is None or type_.is_padded or result.is_padded or seen.type.shape != type_.shape:
        return None
    sink = _only_store(plan, transpose)
    if sink is None or not _same_block(plan, op.instruction, sink.store):
        return None
    steps = [0] * type_.rank
    for dimension, step in zip(result.layout, sink.target.steps, strict=True):
        steps[seen.type.position(dimension)] = step
    target = View(sink.target.place, stored(type_.element), type_.shape, type_.shape, tuple(steps), type_.layout)
    return Sink(op, sink.store, target, fills=False)


def _target(result: TensorType, seen: TensorType, place: Place, pitches: Sequence[int] | None) -> View | None:
    """A result where it is stored as a tensor of another type: the same positions in memory order."""
    if (seen.shape, seen.padding) == (result.shape, result.padding):
        return View.of(place, result, pitches)
    if seen.is_padded or result.is_padded:
        return None
    steps = strides_in(seen.shape, seen.strides(pitches), result.shape)
    if steps is None:
        return None
    return View(place, stored(result.element), result.shape, result.shape, steps, result.layout)


def _same_block(plan: Plan, first: Instruction, second: Instruction) -> bool:
    return plan.positions[id(first)][0] == plan.positions[id(second)][0]


def _obstacle(plan: Plan, sink: Sink, read: Sequence[Reading]) -> str | None:
    """Why an operation cannot run where its result is stored, or cannot write there; None if nothing is known."""
    here, there = plan.positions[id(sink.op.instruction)], plan.positions[id(sink.store)]
    for reading in read:
        writer = plan.aliases.clobbered(Range.of(reading.view), here, there)
        if writer is not None:
            return f"'{shortened(writer)}' may change an operand before the result is stored"
        if reading.view.place.pointer == sink.target.place.pointer and not _may_stay(sink, reading):
            return f"{sink.target.place.pointer} is read as well"
    return None


def _is_default(pointer: Type) -> bool:
    return isinstance(pointer, PointerType) and not pointer.addrspace


def _doubts(plan: Plan, sink: Sink, read: Sequence[Reading]) -> tuple[View, ...]:
    """The operands that may overlap what is written."""
    views = [reading.view for reading in read if not _may_stay(sink, reading)]
    doubtful = [v for v in views if not plan.aliases.disjoint(Range.of(v), sink.range)]
    return tuple({Range.of(v): v for v in doubtful}.values())


def _read_in_place(plan: Plan, op: TensorOp, readings: Sequence[Reading]) -> list[Reading]:
    """The readings of memory of the user's that is not copied when it is loaded."""
    here = plan.positions[id(op.instruction)]
    own = [reading for reading in readings if reading.view.place.reading is not None]
    return [r for r in own if plan.aliases.clobbered(Range.of(r.view), plan.start_of(r.view.place), here) is None]


def _may_stay(sink: Sink, reading: Reading) -> bool:
    """Whether an operand may be what is written over, element by element."""
    return not sink.fills and reading.allows(sink.target)
