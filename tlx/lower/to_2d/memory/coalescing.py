"""Buffer coalescing: values with disjoint live ranges share a buffer, so that nothing is copied.

Rewrite of an element that is replaced in every iteration of a loop::

    loop:
      %v = phi <8192 x float> [ %first, %entry ], [ %w, %loop ]
      %w = insertelement <8192 x float> %v, float %x, i64 %i
    ->
    loop:                                             ; %first, %v and %w share a buffer
      store float %x, ptr (%v.buf + %i)

Candidates are a phi and its incoming values, and an `insertelement` and its vector. They are coalesced, innermost loops
first, unless their live ranges interfere, or an operation would overwrite an operand that it does not read element by
element. As in register coalescing, values that share a buffer form one class, whose live range is the union of theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.control_flow import natural_loops
from tlx.ir.instructions import Instruction
from tlx.ir.values import Local, Value
from tlx.lower.memory.lifetimes import LiveInterval, add_interval, intervals_overlap, live_range
from tlx.lower.memory.views import Storage, TensorView
from tlx.lower.to_2d.analysis.facts import FlatVectors
from tlx.lower.to_2d.analysis.reads import Reads, operand_reads
from tlx.lower.to_2d.analysis.tensor_operations import INSERT
from tlx.lower.to_2d.memory.phi_elimination import live_phis
from tlx.lower.to_2d.memory.schedule import Schedule

_PHI: Final = -1


def coalesce(schedule: Schedule, reads: Reads) -> dict[Value, Value]:
    """Maps phis, their incoming values, and vectors with a replaced element to the value whose buffer they share.

    Args:
        schedule: Which operations run, and where.
        reads: The positions at which each value is read.
    """
    pairs = _candidate_pairs(schedule)
    if not pairs:
        return {}
    classes = _classes(schedule, reads, {value.name: value for pair in pairs for value in pair})
    class_of = {name: class_ for class_ in classes for name in class_.members}
    for one, other in pairs:
        first, second = class_of[one.name], class_of[other.name]
        if first is second or not first.fits(second):
            continue
        if len(first.members) < len(second.members):
            first, second = second, first
        first.absorb(second)
        class_of.update(dict.fromkeys(second.members, first))
    return _owners(schedule.facts.vectors, {id(class_): class_ for class_ in class_of.values()}.values())


# Candidates ----------------------------------------------------------------------------------------------------------


def _candidate_pairs(schedule: Schedule) -> list[tuple[Local, Local]]:
    """Pairs of values that would otherwise be copied, those that are copied most often first."""
    pairs: list[tuple[str, Local, Local]] = []
    for block in schedule.facts.function.blocks:
        for phi in live_phis(schedule.facts.vectors, schedule.live, block):
            pairs += [
                (name, phi.value, root) for value, name in phi.incoming if (root := _candidate_of(schedule, value, phi))
            ]
    for op in schedule.facts.tensors.ops:
        instruction = op.instruction
        if op.intrinsic.name == INSERT and _candidate_of(schedule, instruction.value, instruction):
            root = _candidate_of(schedule, instruction.operands[0], instruction)
            pairs += [(schedule.position_of(op)[0], instruction.value, root)] if root else []
    if not pairs:
        return []
    depths = Counter(name for loop in natural_loops(schedule.facts.flow) for name in loop.blocks)
    return [(one, other) for _, one, other in sorted(pairs, key=lambda pair: -depths[pair[0]])]


def _candidate_of(schedule: Schedule, value: Value, user: Instruction) -> Local | None:
    """The vector that a value renames, if it has a buffer that others may share."""
    root = schedule.facts.vectors.root(value)
    if not isinstance(root, Local) or root.name not in schedule.live or root.type != user.type:
        return None
    if schedule.facts.vectors.kind(root) == "phi":
        return root
    op = schedule.facts.op_of(root)
    assert op.result is not None
    if any(part.whole is op for part in schedule.parts.values()):
        return None  # its buffer is written earlier
    return root if schedule.has_buffer(op) and not op.result.is_padded else None


# Classes -------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Class:
    """Values that share a buffer.

    Attributes:
        members: Their names.
        ranges: Points of each block at which the buffer holds one of them, in order.
        reads: Pairs of an operation in the class and a value that it must not overwrite while reading it.
        readers: Pairs of an operation and a value in the class that it must not overwrite while reading it.
    """

    members: list[str]
    ranges: dict[str, list[LiveInterval]]
    reads: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    readers: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def fits(self, other: _Class) -> bool:
        """Whether both may share a buffer."""
        small, large = sorted((self, other), key=lambda class_: len(class_.ranges))
        if any(intervals_overlap(large.ranges.get(name, ()), ranges) for name, ranges in small.ranges.items()):
            return False
        return self.reads.isdisjoint(other.readers) and other.reads.isdisjoint(self.readers)

    def absorb(self, other: _Class) -> None:
        """Add the values of another class."""
        self.members += other.members
        self.reads |= other.reads
        self.readers |= other.readers
        for name, ranges in other.ranges.items():
            for interval in ranges:
                add_interval(self.ranges.setdefault(name, []), interval)


def _classes(schedule: Schedule, reads: Reads, values: dict[str, Local]) -> list[_Class]:
    """A class for each value."""
    owners = {schedule.operands.storage_of(value): name for name, value in values.items()}
    classes = {
        name: _Class(
            [name],
            live_range(
                schedule.facts.flow, *_definition(schedule, value), reads.get(schedule.operands.storage_of(value), [])
            ),
        )
        for name, value in values.items()
    }
    for name, value in values.items():
        for owner in _not_overwritten(schedule, value, owners):
            classes[name].reads.add((name, owner))
            classes[owner].readers.add((name, owner))
    return list(classes.values())


def _definition(schedule: Schedule, value: Local) -> tuple[str, int]:
    """The block and the point at which a value is written; a phi is written at the end of every predecessor."""
    if schedule.facts.vectors.kind(value) == "phi":
        return schedule.facts.positions[id(schedule.facts.vectors.definitions[value.name])][0], _PHI
    name, index = schedule.position_of(schedule.facts.op_of(value))
    return name, 2 * index + 1


def _not_overwritten(schedule: Schedule, value: Local, owners: dict[Storage, str]) -> Iterator[str]:
    """The values that an operation reads and must not overwrite: all that it does not read element by element."""
    if schedule.facts.vectors.kind(value) == "phi":
        return
    op = schedule.facts.op_of(value)
    assert op.result is not None
    for reading in operand_reads(schedule.operands, op):
        owner = owners.get(reading.view.storage)
        if owner is not None and not reading.may_be_overwritten_by(TensorView.of(reading.view.storage, op.result)):
            yield owner


def _owners(vectors: FlatVectors, classes: Iterable[_Class]) -> dict[Value, Value]:
    """For each member of a class the value whose buffer it shares: the first phi, or else the first value written."""
    order = {name: index for index, name in enumerate(vectors.definitions)}
    owners: dict[Value, Value] = {}
    for class_ in classes:
        values = [vectors.definitions[name].value for name in class_.members]
        first = min(values, key=lambda value: (vectors.kind(value) != "phi", order[value.name]))
        owners.update((value, first) for value in values if value != first)
    return owners
