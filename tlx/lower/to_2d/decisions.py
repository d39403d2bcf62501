"""Decisions: what is fused, what is only a view of its operand, which loads are copied, which results need memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import I1, VectorType
from tlx.ir.values import Local, Value
from tlx.lower.operations import UNARY_INTRINSICS
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.facts import Facts, FlatVectors
from tlx.lower.to_2d.analysis.reads import LoadSnapshot, find_reads, find_snapshots
from tlx.lower.to_2d.analysis.tensor_operations import ORDINARY, PRODUCTS
from tlx.lower.to_2d.contraction.vnni import is_interleaved, is_vnni_product
from tlx.lower.to_2d.convolution.borders import find_borders
from tlx.lower.to_2d.fusion import FusionGroups
from tlx.lower.to_2d.memory.coalescing import coalesce
from tlx.lower.to_2d.memory.copy_elision import find_parts
from tlx.lower.to_2d.memory.layouts import find_layouts
from tlx.lower.to_2d.memory.lazy_views import find_lazy_views
from tlx.lower.to_2d.memory.operand_views import OperandViews, SymbolicStorage
from tlx.lower.to_2d.memory.schedule import Schedule
from tlx.lower.to_2d.memory.small_float_operands import find_small_float_operands
from tlx.lower.to_2d.memory.store_sinking import sink_stores
from tlx.lower.to_2d.rules import RULES


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions for one function.

    Attributes:
        schedule: Which operations run, and where.
        snapshots: The loads whose memory is copied, by the id of the load.
        coalesced: For each value that shares the buffer of another value, the other value.
        vectors: The vectors that need memory.
    """

    schedule: Schedule
    snapshots: Mapping[int, LoadSnapshot]
    coalesced: Mapping[Value, Value]
    vectors: Sequence[Value]


def decide(facts: Facts, remarks: Remarks) -> Decisions:
    """Make the decisions for a function.

    Raises:
        LoweringError: Something in the function is not lowered.
    """
    _check(facts)
    views = frozenset(str(op.instruction.result) for op in facts.tensors.ops if is_only_view(facts, op))
    groups = FusionGroups.of(facts)
    storage = SymbolicStorage()
    converted = find_small_float_operands(OperandViews(facts, groups, views, storage), remarks)
    groups, views = FusionGroups.of(facts, converted) if converted else groups, views | converted
    views |= find_lazy_views(OperandViews(facts, groups, views, storage))
    live = find_live_results(facts, groups)
    operands = OperandViews(facts, groups, views, storage)
    operands = replace(operands, layouts=find_layouts(operands, live, remarks))
    operands = replace(operands, views=views | find_borders(operands))
    sunk_stores = sink_stores(operands, live, remarks)
    operands = replace(operands, views=operands.views | sunk_stores.permuted)
    operands = replace(operands, parts=find_parts(operands, live, sunk_stores))
    schedule = Schedule(operands, live, sunk_stores)
    reads = find_reads(schedule)
    snapshots = find_snapshots(facts, reads, remarks)
    coalesced = coalesce(schedule, reads)
    vectors = [root for root in storage.vectors if operands.part_of(root) is None]
    return Decisions(schedule, snapshots, coalesced, vectors)


def _check(facts: Facts) -> None:
    for op in facts.tensors.ops:
        if op.pointer is None and op.intrinsic.name not in RULES:
            raise LoweringError(f"{op.intrinsic.full_name} is not lowered yet", op.instruction.span)
        if op.intrinsic.name in PRODUCTS | UNARY_INTRINSICS and any(t.type.element == I1 for t in op.tensors):
            message = f"{op.intrinsic.full_name} of i1 is not lowered: convert the operands, for instance to i8"
            raise LoweringError(message, op.instruction.span)
    facts.vectors.check()


_VIEW_OPERATIONS: Final = frozenset({"transpose", "tovector"})


def is_only_view(facts: Facts, op: TensorOp) -> bool:
    """Whether every use of a transpose, broadcast or permutation can read the operand's memory with other strides."""
    if op.result is None or op.scalars or op.intrinsic.name not in _VIEW_OPERATIONS | {"broadcast", "reshape.permute"}:
        return False
    users = [u.instruction for u in facts.vectors.uses.get(str(op.instruction.result), [])]
    if op.intrinsic.name == "reshape.permute":
        return is_interleaved(op, facts.target) and all(_multiplies(facts, user, op.result) for user in users)
    return all(_sees_view(facts, user, op.result, op.intrinsic.name == "broadcast") for user in users)


def _multiplies(facts: Facts, user: Instruction, result: TensorType) -> bool:
    """Whether a use reads interleaved rows only as the right operand of products."""
    token = facts.tensors.tokens.get(user.result or "")
    if token is None or token.kind != "value" or token.type != result:
        return False
    readers = [facts.tensors.op_of(u.instruction) for u in facts.vectors.uses.get(str(user.result), [])]
    return all(is_vnni_product(reader, token) for reader in readers)


def _sees_view(facts: Facts, user: Instruction, result: TensorType, repeats: bool) -> bool:
    """Whether a use can read the operand's memory; broadcast elements can only be read pointwise."""
    own = facts.tensors.op_of(user)
    if own is not None:
        return own.intrinsic.name == ORDINARY and not result.is_padded
    token = facts.tensors.tokens.get(user.result or "")
    if token is None or token.kind != "value" or not _has_data_of(token.type, result):
        return False
    if not repeats:
        return True
    readers = [facts.tensors.op_of(u.instruction) for u in facts.vectors.uses.get(str(user.result), [])]
    return not result.is_padded and all(r is not None and r.intrinsic.name in UNARY_INTRINSICS for r in readers)


def _has_data_of(type_: TensorType, result: TensorType) -> bool:
    """Whether a token of a result has the result's shape and reads none of its padding as data."""
    pairs = zip(type_.padding, result.padding, strict=False)
    return type_.shape == result.shape and all(read >= padded for read, padded in pairs)


def find_live_results(facts: Facts, groups: FusionGroups) -> set[str]:
    """Names of the results, of operations and loop-carried tensors, that are needed in memory."""
    live: set[str] = set()
    pending: list[Value] = []
    seen: set[str] = set()
    for instruction in facts.function.instructions():
        op = facts.tensors.op_of(instruction)
        if op is not None and op.pointer is not None:
            pending.extend(t.source for t in op.tensors if t.kind == "value")
        elif facts.vectors.is_memory_store(instruction) or facts.vectors.is_memory_extract(instruction):
            pending.append(instruction.operands[0])
        elif instruction.result is not None and _has_storage(facts.vectors, instruction.value):
            pending.extend([instruction.value] if facts.vectors.needs_ssa(instruction.result) else [])
    while pending:
        root = facts.vectors.root(pending.pop())
        if not isinstance(root, Local) or root.name in seen or not _has_storage(facts.vectors, root):
            continue
        seen.add(root.name)
        if facts.vectors.kind(root) == "phi":
            live.add(root.name)
            pending.extend(v for v, _ in facts.vectors.definitions[root.name].incoming)
            continue
        op = facts.op_of(root)
        if not groups.is_fused(op):
            live.add(root.name)
        pending.extend(t.source for t in op.tensors if t.kind == "value" and not groups.is_scalar(op, t))
    return live


def _has_storage(vectors: FlatVectors, value: Value) -> bool:
    return isinstance(value.type, VectorType) and vectors.kind(value) in ("op", "phi")
