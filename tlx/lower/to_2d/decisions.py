"""Decisions: what to do with each tensor of a function, settled before any instruction or buffer is made.

1. which operations are computed together, and which transposes are only another view of the same memory (`fusion`);
2. which operations move down to the one store of their result and write there (`fusion.store_sinking`);
3. which loads read the user's memory in place, and which have to copy it (`analysis.reads`);
4. which values share a buffer (`memory.coalescing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tlx.diagnostics import LoweringError
from tlx.ir.types import I1
from tlx.ir.values import Value
from tlx.lower.operations import UNARY_INTRINSICS
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.liveness import find_live_results
from tlx.lower.to_2d.analysis.operands import OperandViews, SymbolicStorage
from tlx.lower.to_2d.analysis.reads import Snapshot, find_reads, find_snapshots
from tlx.lower.to_2d.analysis.tensor_operations import PRODUCTS
from tlx.lower.to_2d.fusion.groups import FusionGroups
from tlx.lower.to_2d.fusion.schedule import Schedule
from tlx.lower.to_2d.fusion.store_sinking import find_sinks
from tlx.lower.to_2d.fusion.view_operations import is_only_view
from tlx.lower.to_2d.memory.coalescing import coalesce
from tlx.lower.to_2d.rules.table import RULES


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions for one function.

    Attributes:
        schedule: Which operations run, and where.
        snapshots: Loads whose memory is copied when they run, by the id of the load.
        coalesced: For each value that lives in the buffer of another one: that one.
        vectors: The vectors that need memory.
    """

    schedule: Schedule
    snapshots: Mapping[int, Snapshot]
    coalesced: Mapping[Value, Value]
    vectors: Sequence[Value]


def decide(facts: Facts, remarks: Remarks) -> Decisions:
    """Make all decisions for a function.

    Raises:
        LoweringError: Something in the function is not lowered.
    """
    _check(facts)
    views = frozenset(str(op.instruction.result) for op in facts.tensors.ops if is_only_view(facts, op))
    groups = FusionGroups.of(facts)
    storage = SymbolicStorage()
    operands = OperandViews(facts, groups, views, storage)
    live = find_live_results(facts, groups)
    schedule = Schedule(operands, live, find_sinks(operands, live, remarks))
    reads = find_reads(schedule)
    snapshots = find_snapshots(facts, reads, remarks)
    coalesced = coalesce(schedule, reads)
    return Decisions(schedule, snapshots, coalesced, tuple(storage.vectors))


def _check(facts: Facts) -> None:
    for op in facts.tensors.ops:
        if op.pointer is None and op.intrinsic.name not in RULES:
            raise LoweringError(f"{op.intrinsic.full_name} is not lowered yet", op.instruction.span)
        if op.intrinsic.name in PRODUCTS | UNARY_INTRINSICS and any(t.type.element == I1 for t in op.tensors):
            message = f"{op.intrinsic.full_name} of i1 is not lowered: convert the operands, to i8 for instance"
            raise LoweringError(message, op.instruction.span)
    facts.vectors.check()
