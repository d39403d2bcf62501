"""Arguments that are passed in memory by value (`byval`): the callee gets copies, whoever calls it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tlx.evaluate.layout import Layout
from tlx.evaluate.memory import Memory, Region
from tlx.evaluate.values import Value
from tlx.ir.abi import attributes, memory_type
from tlx.ir.types import Type


@dataclass(frozen=True, slots=True)
class Copy:
    """An argument that the callee gets a copy of.

    Attributes:
        position: Which argument it is.
        size: Its size in bytes.
        room: The same with padding.
        align: Alignment of the copy.
        label: What errors call the copy.
    """

    position: int
    size: int
    room: int
    align: int
    label: str


def copies(layout: Layout, callee: str, parameters: Iterable[tuple[Type, str]]) -> tuple[Copy, ...]:
    """What must be copied for a call, given the types and attributes of the parameters or arguments."""
    found: list[Copy] = []
    for position, (type_, text) in enumerate(parameters):
        pointee = memory_type(type_, text, "byval")
        if pointee is not None:
            align = next((a.number for a in attributes(text) if a.name == "align"), layout.align(pointee))
            label = f"argument {position} of @{callee}, which is passed by value"
            found.append(Copy(position, layout.store_size(pointee), layout.size(pointee), align, label))
    return tuple(found)


def with_copies(memory: Memory, stack: list[Region], made: Sequence[Copy], arguments: Sequence[Value]) -> list[Value]:
    """The arguments with copies in the places of some; the copies are on a stack."""
    passed = list(arguments)
    for copy in made:
        data = memory.read(passed[copy.position], copy.size, f"copy of {copy.label},")
        region = memory.allocate(copy.room, copy.label, copy.align)
        region.data[: copy.size] = data
        stack.append(region)
        passed[copy.position] = region.base
    return passed
