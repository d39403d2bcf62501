"""Facts about a kernel that checker, emitter, header and runtime share.

The subgroup size is the function's attribute. Without one it is 16, or the largest power of two that divides the first
extent of the work-group if that is no multiple of 16. Without a work-group size, a work-group is one subgroup.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from tlx.frontends.tensor_language.operations.core import entry_of
from tlx.frontends.tensor_language.operations.memory import Associated
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region

DEFAULT_SUBGROUP_SIZE: Final = 16
LARGEST_SUBGROUP: Final = 128
LARGEST_WORK_GROUP: Final = 1 << 16


def default_subgroup_size(rows: int) -> int:
    """The subgroup size of a work-group with that many work-items in its first mode."""
    return math.gcd(rows, DEFAULT_SUBGROUP_SIZE)


def work_group_sizes(kernel: Function) -> tuple[int, tuple[int, int]]:
    """Subgroup size and work-group size of a checked kernel."""
    size = kernel.attributes.get("subgroup_size")
    shape = kernel.attributes.get("work_group_size")
    lanes = size.value if size is not None and isinstance(size.value, int) else None
    if shape is None or not isinstance(shape.value, tuple):
        lanes = lanes or DEFAULT_SUBGROUP_SIZE
        return lanes, (lanes, 1)
    rows, columns = (entry.value for entry in shape.value)
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    return lanes or default_subgroup_size(rows), (rows, columns)


@dataclass(slots=True)
class ParameterUses:
    """Positions of parameters.

    Attributes:
        written: Those whose memory the kernel changes.
        tested: Those that it compares with null.
    """

    written: set[int] = field(default_factory=set[int])
    tested: set[int] = field(default_factory=set[int])


def parameter_uses(function: Function) -> ParameterUses:
    """Which parameters a kernel writes and tests, directly or through views."""
    found = ParameterUses()
    _visit(function.body, {p.name.text: i for i, p in enumerate(function.parameters)}, found)
    return found


def _visit(region: Region, roots: dict[str, int], found: ParameterUses) -> None:
    roots = dict(roots)  # another region may redefine a name
    for instruction in region.instructions:
        viewed = _operand(instruction, entry_of(type(instruction)).views)
        if viewed is not None and viewed.text in roots:
            roots[instruction.result.text] = roots[viewed.text]
        target = written_operand(instruction)
        if target is not None and target.text in roots:
            found.written.add(roots[target.text])
        if isinstance(instruction, Associated) and instruction.operand.text in roots:
            found.tested.add(roots[instruction.operand.text])
        for inner in instruction.regions():
            _visit(inner, roots, found)


def written_operand(instruction: Instruction) -> Name | None:
    """The memref whose memory an instruction changes; None for instructions that change none."""
    return _operand(instruction, entry_of(type(instruction)).writes)


def _operand(instruction: Instruction, field: str | None) -> Name | None:
    return None if field is None else getattr(instruction, field)
