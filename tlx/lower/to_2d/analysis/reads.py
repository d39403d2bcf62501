"""What operations read from memory, and whether it is still unchanged when they do: else the load copies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import Type, VectorType
from tlx.ir.values import Keyword
from tlx.lower.memory.aliases import MemoryLocation, quoted_instruction
from tlx.lower.memory.buffers import PrivateBuffer, size_text
from tlx.lower.memory.views import Storage, TensorView
from tlx.lower.to_2d.analysis.tensor_operations import INSERT, MMA

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan


@dataclass(frozen=True)
class OperandRead:
    """A view that an operation reads.

    Attributes:
        view: The view.
        role: `leaf`: each position in memory order is read before the result at that position is written, and not
            again; `acc`: each logical position likewise; `factor`: at any time.
    """

    view: TensorView
    role: Literal["leaf", "acc", "factor"]

    def allows(self, target: TensorView) -> bool:
        """Whether the result may be written over what is read."""
        if self.role == "leaf":
            return self.view.is_pointwise(target)
        return self.role == "acc" and self.view.is_same(target)


def operand_reads(plan: Plan, op: TensorOp) -> list[OperandRead]:
    """What an operation reads from memory, with all that is fused into it."""
    product = plan.groups.product_of(op) or (None if plan.groups.is_group(op) else op)
    found = [OperandRead(plan.view(tensor), "leaf") for tensor in plan.groups.leaves(op)]
    if product is not None and product.intrinsic.name == INSERT:
        found.extend(OperandRead(view, "acc") for view in plan.operands(product) if view is not None)
    elif product is not None:
        acc, *factors = plan.operands(product) if product.intrinsic.name in MMA else [None, *plan.operands(product)]
        if acc is not None:
            found.append(OperandRead(acc, "acc") if product is op else OperandRead(acc.row_major, "leaf"))
        found.extend(OperandRead(view, "factor") for view in factors if view is not None)
    return found


def record_reads(plan: Plan) -> None:
    """Note where each place is read, but for phis."""
    for op in plan.tensors.ops:
        if not plan.is_live(op) or str(op.instruction.result) in plan.lazy or id(op.instruction) in plan.sinks:
            continue
        for reading in operand_reads(plan, op):
            plan.note_read(reading.view.place, plan.position_of(op))
    for instruction in plan.function.instructions():
        if id(instruction) in plan.sinks:
            continue
        is_store = plan.flats.is_memory_store(instruction)
        if is_store or plan.flats.is_memory_extract(instruction):
            root = plan.flats.root(instruction.operands[0])
            if not (is_store and isinstance(root, Keyword)):
                plan.note_read(plan.place_of(root), plan.positions[id(instruction)])


def snapshot_if_clobbered(plan: Plan, place: Storage) -> None:
    """Leave what a load reads where it is, or have it copied when the load runs."""
    if place.reading is None:
        return
    start = plan.start_of(place)
    view = _read_view(plan, place)
    for position in plan.reads[place]:
        writer = plan.aliases.clobbered(MemoryLocation.of(view), start, position)
        if writer is not None:
            _snapshot(plan, place, view, writer)
            return


def _read_view(plan: Plan, place: Storage) -> TensorView:
    """What a load reads: its tensor, or the whole flattened vector."""
    assert place.reading is not None
    tensor = plan.tensors.tokens.get(place.reading.result or "")
    if tensor is None:
        type_ = place.reading.type
        assert isinstance(type_, VectorType)
        return TensorView.of(place, TensorType.dense(type_.element, (type_.count,)))
    if tensor.kind == "load":
        return TensorView.of(place, tensor.type, tensor.pitches)
    return TensorView.of(place, TensorType.dense(tensor.type.element, (tensor.type.count,)))


def _snapshot(plan: Plan, place: Storage, view: TensorView, writer: Instruction) -> None:
    assert place.reading is not None
    tensor = plan.tensors.tokens.get(place.reading.result or "")
    count = tensor.type.count if tensor is not None else _elements_of(place.reading.type)
    name = place.reading.result or "tensor"
    stem = f"{name}.copy" if not name.isdecimal() else "copy"
    span = place.reading.span
    buffer: PrivateBuffer = plan.buffers.new(view.element, count, stem, span)
    source = TensorView(Storage(place.pointer), view.element, view.sizes, view.data, view.steps, view.layout)
    plan.snapshots[id(place.reading)] = source
    place.move(buffer)
    message = (
        f"copy of {size_text(buffer.bytes)}, because '{quoted_instruction(writer)}' may change {source.place.pointer}"
    )
    plan.missed(message, span)


def _elements_of(type_: Type) -> int:
    """Elements of a vector."""
    return type_.count if isinstance(type_, VectorType) else 1
