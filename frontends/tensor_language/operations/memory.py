"""Allocation, loads, stores, atomic accesses and views.

Types of views follow from the memref that is viewed; the address space and the element type stay:

    %A: memref<f32x32x16x8>            shape (32, 16, 8), stride (1, 32, 512)

    expand  %A[1->2x8]                 shape (32, 2, 8, 8), stride (1, 32, 64, 512)      16 = 2 * 8, 64 = 32 * 2
    fuse    %A[0,1]                    shape (512, 8), stride (1, 512)                   512 = 32 * 16
    subview %A[4:8,%i,0:%n]            shape (8, ?), stride (1, 512)                     mode 1 is dropped: no size

Sizes that are names are `?`. A stride after a `?` is `?` too. The type that is written may have `?` for a known stride.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import counted
from tlx.frontends.tensor_language.operations.attributes import check_alloca_attributes
from tlx.frontends.tensor_language.operations.context import FunctionCheck
from tlx.frontends.tensor_language.operations.core import (
    MEMORY,
    UPDATES,
    AtomicAccess,
    Semantics,
    TypeOf,
    UpdateOp,
    always,
    element_of,
    mnemonic,
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
from tlx.frontends.tensor_language.types import (
    BOOL,
    INDEX,
    Extent,
    GroupType,
    MemrefType,
    ScalarType,
    Type,
    extent_product,
    extent_text,
)


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
    modes = [(s.size, stride) for s, stride in zip(slices, type_.stride, strict=True) if s.size not in (None, 0)]
    shape = tuple(size if isinstance(size, int) else None for size, _ in modes)
    return MemrefType(type_.element, shape, tuple(stride for _, stride in modes), type_.address_space)


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


_WRITE: Final = (*operands(value="the value", destination="the memref"), indices())
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
class AtomicLoad(AtomicAccess):
    """`%r = atomic_load[.scope][.semantics] %memref[%i,...] : type`."""

    source: Name
    indices: tuple[Name, ...] = ()


@operation("atomic_store", *_WRITE, modifiers=MEMORY, results="none", writes="destination")
@dataclass(kw_only=True, slots=True)
class AtomicStore(AtomicAccess):
    """`atomic_store[.scope][.semantics] %value, %memref[%i,...]`."""

    value: Name
    destination: Name
    indices: tuple[Name, ...] = ()


@operation(
    spelt("atomic_{op}", op=UPDATES),
    *_WRITE,
    result(number_type),
    modifiers=MEMORY,
    writes="destination",
    gives=element_of("destination"),
)
@dataclass(kw_only=True, slots=True)
class AtomicUpdate(AtomicAccess):
    """`%old = atomic_add[.scope][.semantics] %value, %memref[%i,...] : type`."""

    op: UpdateOp
    value: Name
    destination: Name
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


@operation("store", *_WRITE, results="none", writes="destination")
@dataclass(kw_only=True, slots=True)
class Store(Instruction):
    """`store %value, %memref[%i,...]`."""

    value: Name
    destination: Name
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


def check_alloca(context: FunctionCheck, node: Alloca) -> None:
    """Local memory of static size."""
    reference = node.types[0]
    type_ = reference.type
    if not isinstance(type_, MemrefType):
        context.error(f"alloca: the result must be a memref, not {type_}", reference.span)
        return
    if not type_.is_static:
        part = "shape" if None in type_.shape else "stride"
        message = f"alloca: the size of {type_} must be known at compile time: its {part} must not contain ?"
        context.error(message, reference.span)
    if type_.address_space != "local":
        message = f"alloca: the address space must be local, but that of {type_} is global: add ,local to the type"
        context.error(message, reference.span)
    check_alloca_attributes(context, node.attributes, type_)


def check_lifetime_stop(context: FunctionCheck, node: LifetimeStop) -> None:
    """The result of an `alloca`."""
    value = context.value(node.memref)
    if value.type is not None and not isinstance(value.origin, Alloca):
        message = f"lifetime_stop: {node.memref} must be the result of an alloca"
        context.error(message, node.memref.span, value.note())


def check_load(context: FunctionCheck, node: Load) -> None:
    """An element of a memref, or a memref of a group."""
    source = context.memref_or_group(node, node.source)
    context.check_indices(node, node.indices)
    if isinstance(source, GroupType):
        if len(node.indices) != 1:
            _wrong_count(context, node, node.source, 1, node.indices, "a group takes one index")
        context.check_result(node, f"the type of the members of {node.source}")
    elif source:
        check_position(context, node, node.source, source, node.indices)
        context.check_result(node, f"the element type of {node.source}")


def check_store(context: FunctionCheck, node: Store) -> None:
    """A number of the memref's element type."""
    check_write(context, node, node.value, node.destination, node.indices)


def check_write(
    context: FunctionCheck, node: Instruction, value: Name, destination: Name, position: tuple[Name, ...]
) -> MemrefType | None:
    """`type(value) = element_type(tensor)`, one index a mode; gives the type of the destination."""
    stored, type_ = context.number(node, value), context.memref(node, destination)
    context.check_indices(node, position)
    if type_ is None:
        return None
    check_position(context, node, destination, type_, position)
    if stored and stored != type_.element:
        message = (
            f"{value} has type {stored} but the elements of {destination} have type {type_.element}; cast the value"
        )
        context.report_operand(node, value, message, value, destination)
    return type_


def check_position(
    context: FunctionCheck, node: Instruction, name: Name, type_: MemrefType, position: tuple[Name, ...]
) -> None:
    """One index for each mode."""
    if len(position) != type_.order:
        _wrong_count(context, node, name, type_.order, position, "each mode takes one index")


def check_size(context: FunctionCheck, node: Size) -> None:
    """An existing mode; 0 for a group."""
    type_ = context.memref_or_group(node, node.operand)
    context.check_result(node, "an extent")
    if isinstance(type_, GroupType) and type_.size is None and context.groups_without_size:
        message = f'size: {node.operand} is of unknown size, and "groups_without_size" says that sizes are not passed'
        context.error(f"{message}: write the size in its type, or drop the attribute", node.span)
        return
    order = 1 if isinstance(type_, GroupType) else type_.order if type_ else None
    if order is None or 0 <= node.mode < order:
        return
    modes = "the only mode of a group is 0" if isinstance(type_, GroupType) else f"the order is {order}"
    message = f"size: there is no mode {node.mode} of {node.operand}; {modes}, modes count from 0"
    context.error(message, node.span, *context.notes(node.operand))


def check_associated(context: FunctionCheck, node: Associated) -> None:
    """A memref or a group."""
    context.memref_or_group(node, node.operand)
    context.check_result(node, "a truth value")


def _wrong_count(
    context: FunctionCheck, node: Instruction, name: Name, order: int, position: tuple[Name, ...], why: str
) -> None:
    message = f"{mnemonic(node)}: {name} takes {counted(order, 'index', 'indices')}, not {len(position)}: {why}"
    context.error(message, name.span, *context.notes(name))


_NOT_FOR: Final[dict[str, tuple[Semantics, ...]]] = {
    "load": ("release", "acquire_release"),
    "store": ("acquire", "acquire_release"),
}
_INSTEAD: Final = {
    "load": "relaxed, acquire or sequentially_consistent",
    "store": "relaxed, release or sequentially_consistent",
}


def check_atomic_load(context: FunctionCheck, node: AtomicLoad) -> None:
    """A number of a memref."""
    check_order(context, node, "load", node.semantics)
    type_ = context.memref(node, node.source)
    context.check_indices(node, node.indices)
    if type_:
        check_position(context, node, node.source, type_, node.indices)
        context.check_result(node, f"the element type of {node.source}")


def check_atomic_store(context: FunctionCheck, node: AtomicStore) -> None:
    """`type(value) = element_type(tensor)`."""
    check_order(context, node, "store", node.semantics)
    check_write(context, node, node.value, node.destination, node.indices)


def check_atomic_update(context: FunctionCheck, node: AtomicUpdate) -> None:
    """`type(value) = element_type(tensor)`; complex numbers are not ordered."""
    type_ = check_write(context, node, node.value, node.destination, node.indices)
    if type_:
        check_update(context, node, node.op, node.value, type_.element)
        context.check_result(node, f"the element type of {node.destination}, as the old value is returned")


def check_order(context: FunctionCheck, node: Instruction, access: str, semantics: Semantics) -> None:
    """A load cannot release, a store cannot acquire."""
    if semantics in _NOT_FOR[access]:
        message = f"{mnemonic(node)}: a {access} cannot have memory semantics {semantics}; use {_INSTEAD[access]}"
        context.error(message, node.span)


def check_update(context: FunctionCheck, node: Instruction, op: UpdateOp, value: Name, scalar: ScalarType) -> None:
    """Maximum and minimum are not defined for complex numbers."""
    if op != "add" and scalar.kind == "complex":
        context.report_operand(node, value, f"{op} is not defined for complex numbers, but {value} is {scalar}")


def check_expand(context: FunctionCheck, node: Expand) -> None:
    """The product of the new extents is the old one; strides follow the packed layout."""
    type_ = context.memref(node, node.operand)
    context.check_indices(node, (e for e in node.shape if isinstance(e, Name)), "of type index")
    if type_ is None or not _has_modes(context, node, node.operand, type_, node.mode):
        return
    if len(node.shape) < 2:
        context.error("expand: the new shape needs at least 2 entries", node.span)
        return
    bad = next((e for e in node.shape if isinstance(e, int) and e < 1), None)
    if bad is not None:
        context.error(f"expand: extents must be at least 1, but one is {bad}", node.span)
        return
    if not _has_product(context, node, type_):
        return
    _check_view(context, node)


def _has_product(context: FunctionCheck, node: Expand, type_: MemrefType) -> bool:
    extent = type_.shape[node.mode]
    if extent is None:
        return True
    values = [context.constant(e) if isinstance(e, Name) else e for e in node.shape]
    product = math.prod(v for v in values if isinstance(v, int))
    text = "x".join(str(e) for e in node.shape)
    if None not in values and product != extent:
        message = (
            f"expand: the product of {text} is {product}, but mode {node.mode} of {node.operand} has extent {extent}"
        )
    elif None in values and (product < 1 or extent % product):
        message = (
            f"expand: the product of {text} is a multiple of {product}, which mode {node.mode} of {node.operand} "
            f"with extent {extent} is not"
        )
    else:
        return True
    context.error(message, node.span, *context.notes(node.operand))
    return False


def check_fuse(context: FunctionCheck, node: Fuse) -> None:
    """`S(k) s(k) = S(k+1)` for the fused modes."""
    type_ = context.memref(node, node.operand)
    if type_ is None or not _has_modes(context, node, node.operand, type_, node.first, node.last):
        return
    if node.first >= node.last:
        message = f"fuse: the first mode must be below the last, but the interval is [{node.first},{node.last}]"
        context.error(message, node.span)
        return
    if _is_packed(context, node, type_):
        _check_view(context, node)


def _is_packed(context: FunctionCheck, node: Fuse, type_: MemrefType) -> bool:
    for mode in range(node.first, node.last):
        end, following = extent_product(type_.stride[mode], type_.shape[mode]), type_.stride[mode + 1]
        if end is None or following is None or end == following:
            continue
        message = (
            f"fuse: modes {mode} and {mode + 1} of {node.operand} do not lie packed: stride times extent of mode "
            f"{mode} is {end}, but the stride of mode {mode + 1} is {following}"
        )
        context.error(message, node.span, *context.notes(node.operand))
        return False
    return True


def check_subview(context: FunctionCheck, node: Subview) -> None:
    """One slice for each mode; modes of size 0 are dropped."""
    type_ = context.memref(node, node.operand)
    for item in node.slices:
        _check_slice(context, node, item)
    if type_ is None:
        return
    if len(node.slices) != type_.order:
        count = counted(len(node.slices), "slice")
        message = f"{node.operand} has order {type_.order}, but the brackets hold {count}; each mode takes one"
        context.report_operand(node, node.operand, message)
        return
    _check_view(context, node)


def _check_slice(context: FunctionCheck, node: Subview, item: Slice) -> None:
    for what, entry in (("offset", item.offset), ("size", item.size)):
        if isinstance(entry, Name):
            context.check_indices(node, (entry,), "of type index")
        value = context.constant(entry) if isinstance(entry, Name) else entry
        at = entry.span if isinstance(entry, Name) else item.span or node.span
        if isinstance(value, int) and value < 0:
            context.error(f"subview: the {what} must not be negative, but it is {value}", at)
        elif what == "size" and isinstance(entry, Name) and value == 0:
            message = f"subview: the size {entry} is the constant 0: leave the size out to drop the mode"
            context.error(message, at, *context.notes(entry))


def _has_modes(context: FunctionCheck, node: Instruction, name: Name, type_: MemrefType, *modes: int) -> bool:
    for mode in modes:
        if not 0 <= mode < type_.order:
            message = (
                f"{mnemonic(node)}: there is no mode {mode} of {name}; the order is {type_.order}, modes count from 0"
            )
            context.error(message, node.span, *context.notes(name))
            return False
    return True


def _check_view(context: FunctionCheck, node: Instruction) -> None:
    """The annotated type is the one that follows from the operand, with some strides weakened to `?`."""
    reference, expected = node.types[0], context.result_type(node)
    written = reference.type
    assert isinstance(expected, MemrefType)
    if written == expected:
        return
    problem = f"must be {expected}" if not isinstance(written, MemrefType) else _difference(written, expected)
    if problem:
        message = f"{mnemonic(node)}: the result {problem}, not {reference}"
        context.error(message, reference.span, *context.notes(next(node.operands())))


def _difference(written: MemrefType, expected: MemrefType) -> str | None:
    if written.element != expected.element:
        return f"must have the operand's element type, {expected.element}: expected {expected}"
    if written.address_space != expected.address_space:
        return f"must lie in the operand's address space, {expected.address_space}: expected {expected}"
    if written.order != expected.order:
        return f"must have order {expected.order}: expected {expected}"
    for mode, (got, extent) in enumerate(zip(written.shape, expected.shape, strict=True)):
        if got != extent:
            return f"must have extent {extent_text(extent)} in mode {mode}: expected {expected}"
    for mode, (got, stride) in enumerate(zip(written.stride, expected.stride, strict=False)):
        if got not in {stride, None}:
            allowed = "?" if stride is None else f"{stride} or ?"
            return f"must have stride {allowed} in mode {mode}: expected {expected}"
    return None
