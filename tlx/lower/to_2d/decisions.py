"""The decisions for one function, made in order, before anything is changed."""

from __future__ import annotations

from tlx.diagnostics import LoweringError
from tlx.ir.types import I1
from tlx.lower.operations import UNARY_INTRINSICS
from tlx.lower.to_2d.analysis.liveness import find_live_results
from tlx.lower.to_2d.analysis.reads import record_reads, snapshot_if_clobbered
from tlx.lower.to_2d.analysis.tensor_operations import PRODUCTS
from tlx.lower.to_2d.fusion.store_sinking import find_sink
from tlx.lower.to_2d.fusion.view_operations import is_only_view
from tlx.lower.to_2d.memory.coalescing import coalesce
from tlx.lower.to_2d.memory.phi_elimination import record_edge_reads
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.rules.table import RULES


def decide(plan: Plan) -> None:
    """Make all decisions.

    Raises:
        LoweringError: Something in the function is not lowered.
    """
    _check(plan)
    plan.lazy = {str(op.instruction.result) for op in plan.tensors.ops if is_only_view(plan, op)}
    plan.groups.find()
    plan.live = find_live_results(plan)
    for op in plan.tensors.ops:
        sink = find_sink(plan, op)
        if sink is not None:
            plan.note_sink(sink)
    record_reads(plan)
    record_edge_reads(plan)
    for place in list(plan.reads):
        snapshot_if_clobbered(plan, place)
    coalesce(plan)


def _check(plan: Plan) -> None:
    for op in plan.tensors.ops:
        if op.pointer is None and op.intrinsic.name not in RULES:
            raise LoweringError(f"{op.intrinsic.full_name} is not lowered yet", op.instruction.span)
        if op.intrinsic.name in PRODUCTS | UNARY_INTRINSICS and any(t.type.element == I1 for t in op.tensors):
            message = f"{op.intrinsic.full_name} of i1 is not lowered: convert the operands, to i8 for instance"
            raise LoweringError(message, op.instruction.span)
    plan.flats.check()
