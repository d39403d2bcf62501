"""Facts about a kernel that checker, emitter, header and run time share.

Types of views follow from the memref that is viewed; the address space and the element type stay:

    %A: memref<f32x32x16x8>            shape (32, 16, 8), stride (1, 32, 512)

    expand  %A[1->2x8]                 shape (32, 2, 8, 8), stride (1, 32, 64, 512)      16 = 2 * 8, 64 = 32 * 2
    fuse    %A[0,1]                    shape (512, 8), stride (1, 512)                   512 = 32 * 16
    subview %A[4:8,%i,0:%n]            shape (8, ?), stride (1, 512)                     mode 1 has no size and goes

Sizes that are names are `?`. A stride behind a `?` is `?` too.

The subgroup size is the function's attribute. Without one it is 16, or the largest power of two that divides the first
mode of the work-group where that is no multiple of 16. Without a work-group size, a work-group is one subgroup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tlx.frontends.tensor_language.operations.core import entry_of
from tlx.frontends.tensor_language.operations.memory import Associated
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region, Slice
from tlx.frontends.tensor_language.types import Extent, MemrefType, extent_product


def expanded_type(type_: MemrefType, mode: int, sizes: Iterable[int | Name]) -> MemrefType:
    """The memref with one mode seen as several, the first of which lies closest together."""
    shape = tuple(size if isinstance(size, int) else None for size in sizes)
    strides: list[Extent] = [type_.stride[mode]]
    for extent in shape[:-1]:
        strides.append(extent_product(strides[-1], extent))
    return _replaced(type_, mode, mode, shape, tuple(strides))


def fused_type(type_: MemrefType, first: int, last: int) -> MemrefType:
    """The memref with the modes `first` to `last`, both of them included, seen as one."""
    extent: Extent = 1
    for one in type_.shape[first : last + 1]:
        extent = extent_product(extent, one)
    return _replaced(type_, first, last, (extent,), (type_.stride[first],))


def sliced_type(type_: MemrefType, slices: Iterable[Slice]) -> MemrefType:
    """The part of a memref that a slice each mode describes; modes without a size, or with the size 0, go."""
    kept = [(s.size, stride) for s, stride in zip(slices, type_.stride, strict=True) if s.size not in (None, 0)]
    shape = tuple(size if isinstance(size, int) else None for size, _ in kept)
    return MemrefType(type_.element, shape, tuple(stride for _, stride in kept), type_.address_space)


def _replaced(
    type_: MemrefType, first: int, last: int, shape: tuple[Extent, ...], stride: tuple[Extent, ...]
) -> MemrefType:
    """The memref with other modes in place of `first` to `last`."""
    before, after = slice(0, first), slice(last + 1, None)
    return MemrefType(
        type_.element,
        (*type_.shape[before], *shape, *type_.shape[after]),
        (*type_.stride[before], *stride, *type_.stride[after]),
        type_.address_space,
    )


DEFAULT_SUBGROUP_SIZE: Final = 16
LARGEST_SUBGROUP: Final = 128
LARGEST_WORK_GROUP: Final = 1 << 16


def default_subgroup_size(rows: int) -> int:
    """The subgroup size of a work-group with that many work-items in its first mode."""
    return math.gcd(rows, DEFAULT_SUBGROUP_SIZE)


def work_group_sizes(kernel: Function) -> tuple[int, tuple[int, int]]:
    """Subgroup size and work-group size of a kernel that keeps the rules."""
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
        tested: Those that it asks whether they are null.
    """

    written: set[int] = field(default_factory=set[int])
    tested: set[int] = field(default_factory=set[int])


def parameter_uses(function: Function) -> ParameterUses:
    """What a kernel does with its parameters, through all views of them."""
    found = ParameterUses()
    _visit(function.body, {p.name.text: i for i, p in enumerate(function.parameters)}, found)
    return found


def _visit(region: Region, roots: dict[str, int], found: ParameterUses) -> None:
    roots = dict(roots)  # a name may mean another thing in the next region
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
