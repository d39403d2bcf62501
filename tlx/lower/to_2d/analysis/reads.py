"""The memory that operations read, and the loads that need a snapshot because it may change before it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tlx.diagnostics import size_text
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import VectorType, bytes_of
from tlx.ir.values import Keyword
from tlx.lower.memory.aliases import MemoryLocation, Position, quoted_instruction
from tlx.lower.memory.views import Storage, TensorView
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import INSERT, MMA, STAGE
from tlx.lower.to_2d.memory.operand_views import OperandViews
from tlx.lower.to_2d.memory.phi_elimination import edge_reads
from tlx.lower.to_2d.memory.schedule import Schedule

Reads = Mapping[Storage, Sequence[Position]]
"""The positions at which each storage is read."""


@dataclass(frozen=True)
class OperandRead:
    """A view that an operation reads.

    Attributes:
        view: The view.
        role: When elements are read. `leaf`: an element is last read before the result at the same position in memory
            is written; `acc`: the same by logical position; `factor`: at any time.
    """

    view: TensorView
    role: Literal["leaf", "acc", "factor"]

    def may_be_overwritten_by(self, destination: TensorView) -> bool:
        """Whether the result may overwrite the operand."""
        if self.role == "leaf":
            return self.view.is_pointwise(destination)
        return self.role == "acc" and self.view.aliases_exactly(destination)


def operand_reads(operands: OperandViews, op: TensorOp) -> list[OperandRead]:
    """The views that an operation and those fused into it read."""
    groups = operands.groups
    product = groups.product_of(op) or (None if groups.is_group(op) else op)
    reads = [OperandRead(operands.view(tensor), "leaf") for tensor in groups.leaves(op)]
    if product is None:
        return reads
    views = operands.operands(product)
    if product.intrinsic.name == INSERT:
        return [*reads, *(OperandRead(view, "acc") for view in views if view is not None)]
    acc, *factors = views if product.intrinsic.name in MMA else [None, *views]
    if acc is not None:
        reads.append(OperandRead(acc, "acc") if product is op else OperandRead(acc.row_major, "leaf"))
    return [*reads, *(OperandRead(view, "factor") for view in factors if view is not None)]


def find_reads(schedule: Schedule) -> Reads:
    """The positions at which each storage is read.

    Raises:
        LoweringError: A loop-carried tensor flows along an edge that cannot be split.
    """
    facts, operands, sunk_stores = schedule.facts, schedule.operands, schedule.sunk_stores
    reads: dict[Storage, list[Position]] = {}
    for op in facts.tensors.ops:
        is_needed = op.pointer is not None or op.instruction.result in schedule.live
        is_sunk = id(op.instruction) in sunk_stores.by_store
        if is_needed and not is_sunk and str(op.instruction.result) not in operands.views:
            for read in operand_reads(operands, op):
                reads.setdefault(read.view.storage, []).append(schedule.position_of(op))
    for instruction in facts.function.instructions():
        is_store = facts.vectors.is_memory_store(instruction)
        if id(instruction) not in sunk_stores.by_store and (is_store or facts.vectors.is_memory_extract(instruction)):
            root = facts.vectors.root(instruction.operands[0])
            if not (is_store and isinstance(root, Keyword)):
                position = facts.positions[id(instruction)]
                reads.setdefault(operands.storage_of(root), []).append(position)
    for root, position in edge_reads(facts, schedule.live):
        reads.setdefault(operands.storage_of(root), []).append(position)
    return reads


@dataclass(frozen=True, eq=False)
class LoadSnapshot:
    """A copy of the memory that a load reads, made at the load.

    Attributes:
        load: The load.
        source: The user's memory.
        count: Elements of the copy.
    """

    load: Instruction
    source: TensorView
    count: int


def find_snapshots(facts: Facts, reads: Reads, remarks: Remarks) -> dict[int, LoadSnapshot]:
    """The loads, by id, whose memory may change between the load and the last read of its value."""
    snapshots: dict[int, LoadSnapshot] = {}
    for storage, positions in reads.items():
        load = storage.load
        if load is None:
            continue
        tensor = facts.tensors.tokens.get(load.result or "")
        view = _read_view(storage, load, tensor)
        writers = (
            facts.aliases.clobbering_instruction(MemoryLocation.of(view), facts.positions[id(load)], position)
            for position in positions
        )
        writer = next((writer for writer in writers if writer is not None), None)
        if writer is None:
            continue
        count = tensor.type.count if tensor is not None else _vector_type(load).count
        snapshots[id(load)] = LoadSnapshot(load, view, count)
        size = size_text(count * bytes_of(view.element))
        message = f"copy of {size}, because '{quoted_instruction(writer)}' may change {storage.pointer}"
        remarks.add("missed", STAGE, message, load.span)
    return snapshots


def _read_view(storage: Storage, load: Instruction, tensor: Tensor | None) -> TensorView:
    """The memory that a load reads: its tensor, or the whole flattened vector."""
    if tensor is None:
        type_ = _vector_type(load)
        return TensorView.of(storage, TensorType.dense(type_.element, (type_.count,)))
    if tensor.kind == "load":
        return TensorView.of(storage, tensor.type, tensor.pitches)
    return TensorView.of(storage, TensorType.dense(tensor.type.element, (tensor.type.count,)))


def _vector_type(load: Instruction) -> VectorType:
    assert isinstance(load.type, VectorType)
    return load.type
