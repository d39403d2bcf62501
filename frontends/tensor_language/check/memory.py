"""Memory: allocation, loads and stores, also atomic ones, and views.

The type of a view follows from its operand (`operations.memory`), except that a known stride may be written as `?`.
"""

from __future__ import annotations

import math
from typing import Final

from tlx.frontends.tensor_language.check.attributes import check_alloca_attributes
from tlx.frontends.tensor_language.check.context import (
    Context,
    check_result,
    constant,
    declaration_note,
    indices,
    memref,
    memref_or_group,
    number,
    operand_notes,
    report_operand,
)
from tlx.frontends.tensor_language.errors import counted
from tlx.frontends.tensor_language.operations.core import Semantics, UpdateOp, mnemonic
from tlx.frontends.tensor_language.operations.memory import (
    Alloca,
    Associated,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Expand,
    Fuse,
    LifetimeStop,
    Load,
    Size,
    Store,
    Subview,
)
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Slice
from tlx.frontends.tensor_language.types import GroupType, MemrefType, ScalarType, extent_product, extent_text


def check_alloca(context: Context, node: Alloca) -> None:
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
    check_alloca_attributes(context, node, type_)


def check_lifetime_stop(context: Context, node: LifetimeStop) -> None:
    """The result of an `alloca`."""
    value = context.value(node.memref)
    if value.type is not None and not isinstance(value.origin, Alloca):
        message = f"lifetime_stop: {node.memref} must be the result of an alloca"
        context.error(message, node.memref.span, declaration_note(value))


def check_load(context: Context, node: Load) -> None:
    """An element of a memref, or a memref of a group."""
    source = memref_or_group(context, node, node.source)
    indices(context, node, node.indices)
    if isinstance(source, GroupType):
        if len(node.indices) != 1:
            _wrong_count(context, node, node.source, 1, node.indices, "a group takes one index")
        check_result(context, node, f"the type of the members of {node.source}")
    elif source:
        check_position(context, node, node.source, source, node.indices)
        check_result(context, node, f"the element type of {node.source}")


def check_store(context: Context, node: Store) -> None:
    """A number of the memref's element type."""
    check_write(context, node, node.value, node.target, node.indices)


def check_write(
    context: Context, node: Instruction, value: Name, target: Name, position: tuple[Name, ...]
) -> MemrefType | None:
    """`type(value) = element_type(tensor)`, one index a mode; gives the type of the target."""
    stored, type_ = number(context, node, value), memref(context, node, target)
    indices(context, node, position)
    if type_ is None:
        return None
    check_position(context, node, target, type_, position)
    if stored and stored != type_.element:
        message = f"{value} has type {stored} but the elements of {target} have type {type_.element}; cast the value"
        report_operand(context, node, value, message, value, target)
    return type_


def check_position(
    context: Context, node: Instruction, name: Name, type_: MemrefType, position: tuple[Name, ...]
) -> None:
    """One index for each mode."""
    if len(position) != type_.order:
        _wrong_count(context, node, name, type_.order, position, "each mode takes one index")


def check_size(context: Context, node: Size) -> None:
    """An existing mode; 0 for a group."""
    type_ = memref_or_group(context, node, node.operand)
    check_result(context, node, "an extent")
    if isinstance(type_, GroupType) and type_.size is None and context.groups_without_size:
        message = f'size: {node.operand} is of unknown size, and "groups_without_size" says that sizes are not passed'
        context.error(f"{message}: write the size in its type, or drop the attribute", node.span)
        return
    order = 1 if isinstance(type_, GroupType) else type_.order if type_ else None
    if order is None or 0 <= node.mode < order:
        return
    modes = "the only mode of a group is 0" if isinstance(type_, GroupType) else f"the order is {order}"
    message = f"size: there is no mode {node.mode} of {node.operand}; {modes}, modes count from 0"
    context.error(message, node.span, *operand_notes(context, node.operand))


def check_associated(context: Context, node: Associated) -> None:
    """A memref or a group."""
    memref_or_group(context, node, node.operand)
    check_result(context, node, "a truth value")


def _wrong_count(
    context: Context, node: Instruction, name: Name, wanted: int, position: tuple[Name, ...], why: str
) -> None:
    message = f"{mnemonic(node)}: {name} takes {counted(wanted, 'index', 'indices')}, not {len(position)}: {why}"
    context.error(message, name.span, *operand_notes(context, name))


_NOT_FOR: Final[dict[str, tuple[Semantics, ...]]] = {
    "load": ("release", "acquire_release"),
    "store": ("acquire", "acquire_release"),
}
_INSTEAD: Final = {
    "load": "relaxed, acquire or sequentially_consistent",
    "store": "relaxed, release or sequentially_consistent",
}


def check_atomic_load(context: Context, node: AtomicLoad) -> None:
    """A number of a memref."""
    check_order(context, node, "load", node.semantics)
    type_ = memref(context, node, node.source)
    indices(context, node, node.indices)
    if type_:
        check_position(context, node, node.source, type_, node.indices)
        check_result(context, node, f"the element type of {node.source}")


def check_atomic_store(context: Context, node: AtomicStore) -> None:
    """`type(value) = element_type(tensor)`."""
    check_order(context, node, "store", node.semantics)
    check_write(context, node, node.value, node.target, node.indices)


def check_atomic_update(context: Context, node: AtomicUpdate) -> None:
    """`type(value) = element_type(tensor)`; complex numbers are not ordered."""
    type_ = check_write(context, node, node.value, node.target, node.indices)
    if type_:
        check_update(context, node, node.op, node.value, type_.element)
        check_result(context, node, f"the element type of {node.target}, as the old value is returned")


def check_order(context: Context, node: Instruction, access: str, semantics: Semantics) -> None:
    """A load cannot release, a store cannot acquire."""
    if semantics in _NOT_FOR[access]:
        message = f"{mnemonic(node)}: a {access} cannot have memory semantics {semantics}; use {_INSTEAD[access]}"
        context.error(message, node.span)


def check_update(context: Context, node: Instruction, op: UpdateOp, value: Name, scalar: ScalarType) -> None:
    """Maximum and minimum are not defined for complex numbers."""
    if op != "add" and scalar.kind == "complex":
        report_operand(context, node, value, f"{op} is not defined for complex numbers, but {value} is {scalar}", value)


def check_expand(context: Context, node: Expand) -> None:
    """The product of the new extents is the old one; strides follow the packed layout."""
    type_ = memref(context, node, node.operand)
    indices(context, node, (e for e in node.shape if isinstance(e, Name)), "of type index")
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


def _has_product(context: Context, node: Expand, type_: MemrefType) -> bool:
    extent = type_.shape[node.mode]
    if extent is None:
        return True
    values = [constant(context, e) if isinstance(e, Name) else e for e in node.shape]
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
    context.error(message, node.span, *operand_notes(context, node.operand))
    return False


def check_fuse(context: Context, node: Fuse) -> None:
    """`S(k) s(k) = S(k+1)` for the fused modes."""
    type_ = memref(context, node, node.operand)
    if type_ is None or not _has_modes(context, node, node.operand, type_, node.first, node.last):
        return
    if node.first >= node.last:
        message = f"fuse: the first mode must be below the last, but the interval is [{node.first},{node.last}]"
        context.error(message, node.span)
        return
    if _is_packed(context, node, type_):
        _check_view(context, node)


def _is_packed(context: Context, node: Fuse, type_: MemrefType) -> bool:
    for mode in range(node.first, node.last):
        end, following = extent_product(type_.stride[mode], type_.shape[mode]), type_.stride[mode + 1]
        if end is None or following is None or end == following:
            continue
        message = (
            f"fuse: modes {mode} and {mode + 1} of {node.operand} do not lie packed: stride times extent of mode "
            f"{mode} is {end}, but the stride of mode {mode + 1} is {following}"
        )
        context.error(message, node.span, *operand_notes(context, node.operand))
        return False
    return True


def check_subview(context: Context, node: Subview) -> None:
    """One slice for each mode; modes of size 0 are dropped."""
    type_ = memref(context, node, node.operand)
    for item in node.slices:
        _check_slice(context, node, item)
    if type_ is None:
        return
    if len(node.slices) != type_.order:
        given = counted(len(node.slices), "slice")
        message = f"{node.operand} has order {type_.order}, but the brackets hold {given}; each mode takes one"
        report_operand(context, node, node.operand, message, node.operand)
        return
    _check_view(context, node)


def _check_slice(context: Context, node: Subview, item: Slice) -> None:
    for what, entry in (("offset", item.offset), ("size", item.size)):
        if isinstance(entry, Name):
            indices(context, node, (entry,), "of type index")
        value = constant(context, entry) if isinstance(entry, Name) else entry
        at = entry.span if isinstance(entry, Name) else item.span or node.span
        if isinstance(value, int) and value < 0:
            context.error(f"subview: the {what} must not be negative, but it is {value}", at)
        elif what == "size" and isinstance(entry, Name) and value == 0:
            message = f"subview: the size {entry} is the constant 0: leave the size out to drop the mode"
            context.error(message, at, *operand_notes(context, entry))


def _has_modes(context: Context, node: Instruction, name: Name, type_: MemrefType, *modes: int) -> bool:
    for mode in modes:
        if not 0 <= mode < type_.order:
            message = (
                f"{mnemonic(node)}: there is no mode {mode} of {name}; the order is {type_.order}, modes count from 0"
            )
            context.error(message, node.span, *operand_notes(context, name))
            return False
    return True


def _check_view(context: Context, node: Instruction) -> None:
    """The annotated type is the one that follows from the operand, with some strides weakened to `?`."""
    reference, wanted = node.types[0], context.result_type(node)
    found = reference.type
    assert isinstance(wanted, MemrefType)
    if found == wanted:
        return
    problem = f"must be {wanted}" if not isinstance(found, MemrefType) else _difference(found, wanted)
    if problem:
        message = f"{mnemonic(node)}: the result {problem}, not {reference}"
        context.error(message, reference.span, *operand_notes(context, next(node.operands())))


def _difference(found: MemrefType, wanted: MemrefType) -> str | None:
    if found.element != wanted.element:
        return f"must have the operand's element type, {wanted.element}: expected {wanted}"
    if found.address_space != wanted.address_space:
        return f"must lie in the operand's address space, {wanted.address_space}: expected {wanted}"
    if found.order != wanted.order:
        return f"must have order {wanted.order}: expected {wanted}"
    for mode, (got, extent) in enumerate(zip(found.shape, wanted.shape, strict=True)):
        if got != extent:
            return f"must have extent {extent_text(extent)} in mode {mode}: expected {wanted}"
    for mode, (got, stride) in enumerate(zip(found.stride, wanted.stride, strict=False)):
        if got not in {stride, None}:
            allowed = "?" if stride is None else f"{stride} or ?"
            return f"must have stride {allowed} in mode {mode}: expected {wanted}"
    return None
