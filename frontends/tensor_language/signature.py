"""The calling convention: which C parameters a kernel's parameters become.

    %A: memref<f32x8x?,strided<1,?>>          ->  float *A, int64_t A_shape1, int64_t A_stride1
    %B: group<memref<f32x8x?>x?,offset:?>     ->  float **B, int64_t *B_shape1, int64_t B_size, int64_t B_offset
    %c: c32                                   ->  two floats, as one vector by value

A memref is its pointer, then an i64 for each `?` of the shape and one for each `?` of the stride, left to right. A
group is a pointer to pointers, then for each `?` of shape and stride a pointer to an array with an entry each member,
then its size and its offset where they are `?`. Behind the kernel's own parameters come the numbers of groups; the
function that runs one group takes its id before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tlx.frontends.tensor_language.ast.base import Function
from tlx.frontends.tensor_language.types import I64, Extent, GroupType, MemrefType, ScalarType, Type

Role = Literal["scalar", "pointer", "pointers", "shape", "stride", "shapes", "strides", "size", "offset", "launch"]

_IDS: Final = ("group_id_x", "group_id_y", "group_id_z")
_COUNTS: Final = ("num_groups_x", "num_groups_y", "num_groups_z")
GROUP_SUFFIX: Final = ".group"


@dataclass(frozen=True, slots=True)
class CParameter:
    """One parameter of the compiled function.

    Attributes:
        name: Its name in C and in the LLVM function.
        role: What it carries. `pointer` and `pointers` point to elements of `type`, `shapes` and `strides` to i64
            with one entry each member of a group; all others are passed by value.
        type: The scalar type passed or pointed to.
        parameter: Position of the kernel's parameter that it belongs to, -1 for ids and numbers of groups.
        mode: Mode of a shape or stride, or the dimension of an id or number of groups, else 0.
    """

    name: str
    role: Role
    type: ScalarType
    parameter: int
    mode: int = 0


def c_parameters(function: Function, *, one_group: bool) -> list[CParameter]:
    """The parameters of a compiled kernel.

    Args:
        function: The kernel.
        one_group: Whether of the function that runs one work-group, or of the one that runs all.
    """
    found = [c for i, p in enumerate(function.parameters) for c in _flattened(_c_name(p.name.text), i, p.type.type)]
    names = (*_IDS, *_COUNTS) if one_group else _COUNTS
    return found + [CParameter(name, "launch", I64, -1, i % 3) for i, name in enumerate(names)]


def _c_name(name: str) -> str:
    """A parameter's name as an identifier of C: unnamed ones are numbers."""
    return f"arg{name}" if name[0].isdigit() else name


def _flattened(name: str, position: int, type_: Type) -> list[CParameter]:
    if isinstance(type_, MemrefType):
        return [CParameter(name, "pointer", type_.element, position), *_extents(name, position, type_, grouped=False)]
    if isinstance(type_, GroupType):
        found = [CParameter(name, "pointers", type_.memref.element, position)]
        found += _extents(name, position, type_.memref, grouped=True)
        if type_.size is None:
            found.append(CParameter(f"{name}_size", "size", I64, position))
        if type_.offset is None:
            found.append(CParameter(f"{name}_offset", "offset", I64, position))
        return found
    assert isinstance(type_, ScalarType), "the checker lets no cooperative matrix be a parameter"
    return [CParameter(name, "scalar", type_, position)]


def _extents(name: str, position: int, type_: MemrefType, *, grouped: bool) -> list[CParameter]:
    def dynamic(role: Role, word: str, extents: tuple[Extent, ...]) -> list[CParameter]:
        return [CParameter(f"{name}_{word}{m}", role, I64, position, m) for m, e in enumerate(extents) if e is None]

    shape: Role = "shapes" if grouped else "shape"
    stride: Role = "strides" if grouped else "stride"
    return dynamic(shape, "shape", type_.shape) + dynamic(stride, "stride", type_.stride)
