"""Liveness: which results anything needs in memory."""

from __future__ import annotations

from tlx.ir.types import VectorType
from tlx.ir.values import Local, Value
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.values import FlatVectors
from tlx.lower.to_2d.fusion.groups import FusionGroups


def find_live_results(facts: Facts, groups: FusionGroups) -> set[str]:
    """Names of the results (operations and loop-carried tensors) that something needs in memory."""
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
