"""Allocation, loads, stores, atomic accesses and views.

Types of views follow from the memref that is viewed; the address space and the element type stay:

    %A: memref<f32x32x16x8>            shape (32, 16, 8), stride (1, 32, 512)

    expand  %A[1->2x8]                 shape (32, 2, 8, 8), stride (1, 32, 64, 512)      16 = 2 * 8, 64 = 32 * 2
    fuse    %A[0,1]                    shape (512, 8), stride (1, 512)                   512 = 32 * 16
    subview %A[4:8,%i,0:%n]            shape (8, ?), stride (1, 512)                     mode 1 is dropped: no size

Sizes that are names are `?`. A stride after a `?` is `?` too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tlx.frontends.tensor_language.operations.core import (
    MEMORY,
    UPDATES,
    Ordered,
    TypeOf,
    UpdateOp,
    always,
    element_of,
    operation,
    spelt,
)
from tlx.frontends.tensor_language.syntax.forms import (
    attributes,
    bracketed,
    comma,
    expand_shape,
    indices,
    integer,
    mark,
    operand,
    operands,
    result,
    slices,
)
from tlx.frontends.tensor_language.syntax.nodes import Dictionary, Instruction, Name, Slice
from tlx.frontends.tensor_language.syntax.productions import (
    boolean_type,
    index_type,
    memref_type,
    number_type,
    scalar_or_memref_type,
)
from tlx.frontends.tensor_language.types import BOOL, INDEX, Extent, MemrefType, Type, extent_product


def expanded_type(type_: MemrefType, mode: int, sizes: Iterable[int | Name]) -> MemrefType:
    """The type of a memref with one mode split into several, the first with the smallest stride."""
    shape = tuple(size if isinstance(size, int) else None for size in sizes)
    strides: list[Extent] = [type_.stride[mode]]
    for extent in shape[:-1]:
        strides.append(extent_product(strides[-1], extent))
    return _replaced(type_, mode, mode, shape, tuple(strides))


def fused_type(type_: MemrefType, first: int, last: int) -> MemrefType:
    """The type of a memref with the modes `first` to `last`, inclusive, merged into one."""
    extent: Extent = 1
    for one in type_.shape[first : last + 1]:
        extent = extent_product(extent, one)
    return _replaced(type_, first, last, (extent,), (type_.stride[first],))


def sliced_type(type_: MemrefType, slices: Iterable[Slice]) -> MemrefType:
    """The type of a part of a memref, given by a slice for each mode; slices without a size, or of size 0, drop it."""
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


_WRITE: Final = (*operands(value="the value", target="the memref"), indices())
_BRACKET: Final = mark("[", "after the memref")


def _type_of_expand(node: Expand, type_of: TypeOf) -> Type | None:
    type_ = type_of(node.operand)
    return expanded_type(type_, node.mode, node.shape) if isinstance(type_, MemrefType) else None


def _type_of_fuse(node: Fuse, type_of: TypeOf) -> Type | None:
    type_ = type_of(node.operand)
    return fused_type(type_, node.first, node.last) if isinstance(type_, MemrefType) else None


def _type_of_subview(node: Subview, type_of: TypeOf) -> Type | None:
    type_ = type_of(node.operand)
    return sliced_type(type_, node.slices) if isinstance(type_, MemrefType) else None


@operation("alloca", attributes("attributes"), result(memref_type), region="collective")
@dataclass(kw_only=True, slots=True)
class Alloca(Instruction):
    """`%r = alloca {attributes} : memref-type`."""

    attributes: Dictionary = field(default_factory=Dictionary)


@operation("lifetime_stop", operand("memref", "the memref"), results="none", region="collective")
@dataclass(kw_only=True, slots=True)
class LifetimeStop(Instruction):
    """`lifetime_stop %memref`."""

    memref: Name


@operation("associated", operand("operand", "the memref or group"), result(boolean_type), gives=always(BOOL))
@dataclass(kw_only=True, slots=True)
class Associated(Instruction):
    """`%r = associated %memref_or_group : bool`: whether the base address is not null."""

    operand: Name


@operation(
    "atomic_load",
    operand("source", "the memref"),
    indices(),
    result(number_type),
    modifiers=MEMORY,
    gives=element_of("source"),
)
@dataclass(kw_only=True, slots=True)
class AtomicLoad(Ordered):
    """`%r = atomic_load[.scope][.semantics] %memref[%i,...] : type`."""

    source: Name
    indices: tuple[Name, ...] = ()


@operation("atomic_store", *_WRITE, modifiers=MEMORY, results="none", writes="target")
@dataclass(kw_only=True, slots=True)
class AtomicStore(Ordered):
    """`atomic_store[.scope][.semantics] %value, %memref[%i,...]`."""

    value: Name
    target: Name
    indices: tuple[Name, ...] = ()


@operation(
    spelt("atomic_{op}", op=UPDATES),
    *_WRITE,
    result(number_type),
    modifiers=MEMORY,
    writes="target",
    gives=element_of("target"),
)
@dataclass(kw_only=True, slots=True)
class AtomicUpdate(Ordered):
    """`%old = atomic_add[.scope][.semantics] %value, %memref[%i,...] : type`."""

    op: UpdateOp
    value: Name
    target: Name
    indices: tuple[Name, ...] = ()


@operation(
    "expand", operand("operand", "the memref"), _BRACKET, integer("mode", "the mode"), mark("->", "after the mode"),
    expand_shape("shape"), mark("]", "after the sizes of the new modes"), result(memref_type), views="operand",
    gives=_type_of_expand,
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class Expand(Instruction):
    """`%r = expand %memref[mode->4 x %n] : memref-type`."""

    operand: Name
    mode: int
    shape: tuple[int | Name, ...]


@operation(
    "fuse", operand("operand", "the memref"), _BRACKET, integer("first", "the first mode"), comma("the last mode", ","),
    integer("last", "the last mode"), mark("]", "after the last mode"), result(memref_type),
    views="operand", gives=_type_of_fuse,
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class Fuse(Instruction):
    """`%r = fuse %memref[first,last] : memref-type`; both modes belong to the interval."""

    operand: Name
    first: int
    last: int


@operation(
    "load",
    operand("source", "the memref or group"),
    indices(),
    result(scalar_or_memref_type),
    views="source",
    gives=element_of("source"),
)
@dataclass(kw_only=True, slots=True)
class Load(Instruction):
    """`%r = load %memref_or_group[%i,...] : type`."""

    source: Name
    indices: tuple[Name, ...] = ()


@operation(
    "size",
    operand("operand", "the memref or group"),
    bracketed("mode", "the mode"),
    result(index_type),
    gives=always(INDEX),
)
@dataclass(kw_only=True, slots=True)
class Size(Instruction):
    """`%r = size %memref_or_group[mode] : index`."""

    operand: Name
    mode: int


@operation("store", *_WRITE, results="none", writes="target")
@dataclass(kw_only=True, slots=True)
class Store(Instruction):
    """`store %value, %memref[%i,...]`."""

    value: Name
    target: Name
    indices: tuple[Name, ...] = ()


@operation(
    "subview",
    operand("operand", "the memref"),
    _BRACKET,
    slices("slices"),
    result(memref_type),
    views="operand",
    gives=_type_of_subview,
)
@dataclass(kw_only=True, slots=True)
class Subview(Instruction):
    """`%r = subview %memref[%offset:%size, 4, ...] : memref-type`."""

    operand: Name
    slices: tuple[Slice, ...] = ()
