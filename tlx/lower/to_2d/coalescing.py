"""Buffer coalescing: values that are never needed at the same time share a buffer, so that nothing is copied.

Rewrite of an element that is replaced in every round of a loop::

    loop:
      %v = phi <8192 x float> [ %first, %entry ], [ %w, %loop ]
      %w = insertelement <8192 x float> %v, float %x, i64 %i
    ->
    loop:                                             ; %first, %v and %w share a buffer
      store float %x, ptr (%v.buf + %i)

Candidates are a phi and what it takes, and an `insertelement` and its vector. They are coalesced, innermost loops
first, unless their live ranges overlap, or an operation would read what it writes by other means than element by
element. As in the coalescing of registers before their allocation, values that share a buffer are one class from then
on: its live range is the union of theirs.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tlx.ir.dominance import ControlFlow, natural_loops
from tlx.ir.module import Instruction
from tlx.ir.values import Local, Value
from tlx.lower.to_2d.elementwise import INSERT
from tlx.lower.to_2d.phis import live_phis
from tlx.lower.to_2d.readings import readings_of
from tlx.lower.to_2d.safety import Position
from tlx.lower.to_2d.views import Place, View

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

Interval = tuple[int, int]
"""First and last point of a block at which a buffer holds a value: instruction `i` reads at 2i and writes at 2i + 1."""

_IN: Final = -2
_PHI: Final = -1
_OUT: Final = sys.maxsize


def coalesce(plan: Plan) -> None:
    """Give phis, what they take, and vectors with one element replaced one buffer, where that is safe."""
    pairs = _pairs(plan)
    if not pairs:
        return
    classes = _classes(plan, {value.name: value for pair in pairs for value in pair})
    of = {name: class_ for class_ in classes for name in class_.members}
    for one, other in pairs:
        first, second = of[one.name], of[other.name]
        if first is second or not first.fits(second):
            continue
        if len(first.members) < len(second.members):
            first, second = second, first
        first.absorb(second)
        of.update(dict.fromkeys(second.members, first))
    _share(plan, {id(class_): class_ for class_ in of.values()}.values())


# Candidates ----------------------------------------------------------------------------------------------------------


def _pairs(plan: Plan) -> list[tuple[Local, Local]]:
    """Values that would otherwise be copied one into the other, those that are copied most often first."""
    found: list[tuple[str, Local, Local]] = []
    for block in plan.function.blocks:
        for phi in live_phis(plan, block):
            found += [(name, phi.value, root) for value, name in phi.incoming if (root := _candidate(plan, value, phi))]
    for op in plan.tensors.ops:
        instruction = op.instruction
        if op.intrinsic.name == INSERT and _candidate(plan, instruction.value, instruction):
            root = _candidate(plan, instruction.operands[0], instruction)
            found += [(plan.position_of(op)[0], instruction.value, root)] if root else []
    if not found:
        return []
    depths = Counter(name for loop in natural_loops(plan.flow) for name in loop.blocks)
    return [(one, other) for _, one, other in sorted(found, key=lambda pair: -depths[pair[0]])]


def _candidate(plan: Plan, value: Value, user: Instruction) -> Local | None:
    """The vector behind a value if it has a buffer that others may share."""
    root = plan.flats.root(value)
    if not isinstance(root, Local) or root.name not in plan.live or root.type != user.type:
        return None
    if plan.flats.kind(root) == "phi":
        return root
    op = plan.op_of(root)
    is_apart = op.result is None or op.result.is_padded or root.name in plan.lazy or plan.is_sunk(op)
    return None if is_apart else root


# Classes -------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Class:
    """Values that share a buffer.

    Attributes:
        members: Their names.
        ranges: Points of each block at which the buffer holds one of them, in order.
        reads: Pairs of operations in the class and values that these may not overwrite while they read them.
        readers: Pairs of values in the class and operations that may not overwrite them.
    """

    members: list[str]
    ranges: dict[str, list[Interval]]
    reads: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    readers: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def fits(self, other: _Class) -> bool:
        """Whether one buffer does for both."""
        small, large = sorted((self, other), key=lambda class_: len(class_.ranges))
        if any(_overlaps(large.ranges.get(name, ()), ranges) for name, ranges in small.ranges.items()):
            return False
        return self.reads.isdisjoint(other.readers) and other.reads.isdisjoint(self.readers)

    def absorb(self, other: _Class) -> None:
        """Add the values of another class."""
        self.members += other.members
        self.reads |= other.reads
        self.readers |= other.readers
        for name, ranges in other.ranges.items():
            for interval in ranges:
                _add(self.ranges.setdefault(name, []), interval)


def _classes(plan: Plan, values: dict[str, Local]) -> list[_Class]:
    """A class for each value."""
    owners = {plan.place_of(value): name for name, value in values.items()}
    found = {
        name: _Class([name], live_range(plan.flow, *_definition(plan, value), plan.reads.get(plan.place_of(value), [])))
        for name, value in values.items()
    }
    for name, value in values.items():
        for owner in _not_overwritten(plan, value, owners):
            found[name].reads.add((name, owner))
            found[owner].readers.add((name, owner))
    return list(found.values())


def _definition(plan: Plan, value: Local) -> tuple[str, int]:
    """The block in which a value is written, and the point; a phi is at the end of every predecessor."""
    if plan.flats.kind(value) == "phi":
        return plan.positions[id(plan.flats.definitions[value.name])][0], _PHI
    name, index = plan.position_of(plan.op_of(value))
    return name, 2 * index + 1


def _not_overwritten(plan: Plan, value: Local, owners: dict[Place, str]) -> Iterator[str]:
    """What an operation reads and may not write over: all that it does not read element by element."""
    if plan.flats.kind(value) == "phi":
        return
    op = plan.op_of(value)
    assert op.result is not None
    for reading in readings_of(plan, op):
        owner = owners.get(reading.view.place)
        if owner is not None and not reading.allows(View.of(reading.view.place, op.result)):
            yield owner


def _share(plan: Plan, classes: Iterable[_Class]) -> None:
    """Let the members of each class live in the buffer of the first phi among them, or of what is written first."""
    order = {name: index for index, name in enumerate(plan.flats.definitions)}
    unused: set[str] = set()
    for class_ in classes:
        values = [plan.flats.definitions[name].value for name in class_.members]
        first = min(values, key=lambda value: (plan.flats.kind(value) != "phi", order[value.name]))
        for value in values:
            if value != first:
                unused.add(plan.share(value, plan.place_of(first)))
    plan.buffers.discard(unused)


# Live ranges ---------------------------------------------------------------------------------------------------------


def live_range(flow: ControlFlow, block: str, point: int, reads: Sequence[Position]) -> dict[str, list[Interval]]:
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
    _add(ranges.setdefault(block, []), (point, last))
    return ranges


def _overlaps(one: Sequence[Interval], other: Iterable[Interval]) -> bool:
    """Whether intervals in order have a point in common with others."""
    for start, end in other:
        at = bisect_left(one, (start, start))
        if (at < len(one) and one[at][0] <= end) or (at and one[at - 1][1] >= start):
            return True
    return False


def _add(ranges: list[Interval], interval: Interval) -> None:
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
