"""Which results anything needs in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlx.ir.types import VectorType
from tlx.ir.values import Local, Value

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan


def find_live(plan: Plan) -> set[str]:
    """Names of the results (operations and loop-carried tensors) that something needs in memory."""
    live: set[str] = set()
    pending: list[Value] = []
    seen: set[str] = set()
    for instruction in plan.function.instructions():
        op = plan.tensors.op_of(instruction)
        if op is not None and op.pointer is not None:
            pending.extend(t.source for t in op.tensors if t.kind == "value")
        elif plan.flats.is_memory_store(instruction) or plan.flats.is_memory_extract(instruction):
            pending.append(instruction.operands[0])
        elif instruction.result is not None and _is_home(plan, instruction.value):
            pending.extend([instruction.value] if plan.flats.needs_ssa(instruction.result) else [])
    while pending:
        root = plan.flats.root(pending.pop())
        if not isinstance(root, Local) or root.name in seen or not _is_home(plan, root):
            continue
        seen.add(root.name)
        if plan.flats.kind(root) == "phi":
            live.add(root.name)
            pending.extend(v for v, _ in plan.flats.definitions[root.name].incoming)
            continue
        op = plan.op_of(root)
        if not plan.groups.is_fused(op):
            live.add(root.name)
        pending.extend(t.source for t in op.tensors if t.kind == "value" and not plan.groups.is_written(op, t))
    return live


def _is_home(plan: Plan, value: Value) -> bool:
    return isinstance(value.type, VectorType) and plan.flats.kind(value) in ("op", "phi")
