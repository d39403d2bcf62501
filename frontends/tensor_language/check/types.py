"""Which types there can be: extents, strides, element types."""

from __future__ import annotations

from functools import lru_cache

from tlx.frontends.tensor_language.syntax.annotations import field_problem
from tlx.frontends.tensor_language.types import (
    MAX_INTEGER,
    CoopMatrixType,
    GroupType,
    MemrefType,
    ScalarType,
    Type,
    extent_text,
    is_known,
)


@lru_cache(maxsize=4096)
def type_problem(type_: Type) -> str | None:
    """What is wrong with a type, None where it is a type of the language."""
    if malformed := field_problem(type_):
        return malformed
    scalar = type_.component if isinstance(type_, CoopMatrixType) else _element(type_)
    if not is_known(scalar):
        return f"there is no type {scalar}"
    if isinstance(type_, MemrefType):
        return _of_memref(type_)
    if isinstance(type_, GroupType):
        return _of_group(type_)
    return _of_matrix(type_) if isinstance(type_, CoopMatrixType) else None


def _element(type_: ScalarType | MemrefType | GroupType) -> ScalarType:
    if isinstance(type_, ScalarType):
        return type_
    return type_.element if isinstance(type_, MemrefType) else type_.memref.element


def _of_memref(type_: MemrefType) -> str | None:
    if not type_.element.is_number:
        return f"elements of a memref must be numbers, not {type_.element}"
    bad = next((e for e in type_.shape if e is not None and e < 1), None)
    if bad is not None:
        return f"extents of a memref must be at least 1, but one is {bad}: write ? for what is known when it runs"
    if len(type_.stride) != type_.order:
        return f"strided<> needs an entry for each of the {type_.order} modes, but has {len(type_.stride)}"
    return _of_strides(type_) or _of_size(type_)


def _of_strides(type_: MemrefType) -> str | None:
    for mode, stride in enumerate(type_.stride):
        if stride is not None and stride < 1:
            return f"strides must be at least 1, but that of mode {mode} is {stride}"
        if mode == 0:
            continue
        before, extent = type_.stride[mode - 1], type_.shape[mode - 1]
        if None not in {before, extent, stride} and (before or 0) * (extent or 0) > (stride or 0):
            return (
                f"the stride of mode {mode} must be at least stride times extent of mode {mode - 1}, "
                f"{extent_text(before)} * {extent_text(extent)} = {(before or 0) * (extent or 0)}, but it is {stride}"
            )
    return None


def _of_size(type_: MemrefType) -> str | None:
    """Offsets are counted in 64 bits."""
    last = 0
    for extent, stride in zip(type_.shape, type_.stride, strict=True):
        if extent is not None and stride is not None:
            last += (extent - 1) * stride
    if (last + 1) * type_.element.size > MAX_INTEGER:
        return "a memref must be smaller than 2^63 bytes"
    return None


def _of_group(type_: GroupType) -> str | None:
    if type_.size is not None and type_.size < 1:
        return f"a group must have at least 1 member, but its size is {type_.size}"
    if type_.offset is not None and type_.offset < 0:
        return f"the offset of a group must not be negative, but it is {type_.offset}"
    if type_.memref.address_space == "local":
        return "members of a group lie in global memory, not in local memory"
    return type_problem(type_.memref)


def _of_matrix(type_: CoopMatrixType) -> str | None:
    if not type_.component.is_number:
        return f"components of a coopmatrix must be numbers, not {type_.component}"
    if type_.rows < 1 or type_.columns < 1:
        return f"extents of a coopmatrix must be at least 1, but it has {type_.rows} rows and {type_.columns} columns"
    return None
