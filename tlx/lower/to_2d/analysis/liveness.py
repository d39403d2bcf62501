"""Liveness: which results anything needs in memory, and the live range of a buffer."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tlx.ir.analysis.control_flow import ControlFlow
from tlx.ir.types import VectorType
from tlx.ir.values import Local, Value
from tlx.lower.memory.aliases import Position

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan


def find_live_results(plan: Plan) -> set[str]:
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
        elif instruction.result is not None and _has_storage(plan, instruction.value):
            pending.extend([instruction.value] if plan.flats.needs_ssa(instruction.result) else [])
    while pending:
        root = plan.flats.root(pending.pop())
        if not isinstance(root, Local) or root.name in seen or not _has_storage(plan, root):
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


def _has_storage(plan: Plan, value: Value) -> bool:
    return isinstance(value.type, VectorType) and plan.flats.kind(value) in ("op", "phi")


LiveInterval = tuple[int, int]
"""First and last point of a block at which a buffer holds a value: instruction `i` reads at 2i and writes at 2i + 1."""

_IN: Final = -2
_OUT: Final = sys.maxsize


# Live ranges ---------------------------------------------------------------------------------------------------------


def live_range(flow: ControlFlow, block: str, point: int, reads: Sequence[Position]) -> dict[str, list[LiveInterval]]:
    """The points of each block between the definition of a value and its last read, both included.

    Args:
        flow: Control flow of the function.
        block: Where it is defined.
        point: The point of the definition.
        reads: Blocks and indices of the instructions that read it; one behind the last is the end of the block.
    """
    last = point
    live_in: dict[str, int] = {}
    live_out: set[str] = set()
    pending: list[str] = []
    for name, index in reads:
        if name == block and 2 * index > point:
            last = max(last, 2 * index)
        else:
            pending += [] if name in live_in else flow.predecessors[name]
            live_in[name] = max(live_in.get(name, _IN), 2 * index)
    while pending:
        name = pending.pop()
        if name in live_out:
            continue
        live_out.add(name)
        if name == block:
            last = _OUT
            continue
        pending += [] if name in live_in else flow.predecessors[name]
        live_in[name] = _OUT
    ranges = {name: [(_IN, end)] for name, end in live_in.items()}
    add_interval(ranges.setdefault(block, []), (point, last))
    return ranges


def intervals_overlap(one: Sequence[LiveInterval], other: Iterable[LiveInterval]) -> bool:
    """Whether intervals in order have a point in common with others."""
    for start, end in other:
        at = bisect_left(one, (start, start))
        if (at < len(one) and one[at][0] <= end) or (at and one[at - 1][1] >= start):
            return True
    return False


def add_interval(ranges: list[LiveInterval], interval: LiveInterval) -> None:
    """Add an interval to some in order; those that touch become one."""
    start, end = interval
    low = bisect_left(ranges, (start, start))
    if low and ranges[low - 1][1] >= start - 1:
        low -= 1
    high = low
    while high < len(ranges) and ranges[high][0] <= end + 1:
        start, end = min(start, ranges[high][0]), max(end, ranges[high][1])
        high += 1
    ranges[low:high] = [(start, end)]
