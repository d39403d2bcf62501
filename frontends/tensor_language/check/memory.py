"""Memory: alloca, lifetime_stop, load, store, size, associated."""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.base import Instruction, Name
from tlx.frontends.tensor_language.ast.collective import Alloca, LifetimeStop
from tlx.frontends.tensor_language.ast.mixed import Associated, Load, Size, Store
from tlx.frontends.tensor_language.check.attributes import check_alloca_attributes
from tlx.frontends.tensor_language.check.context import Context, Rule, Rules
from tlx.frontends.tensor_language.check.operands import (
    complain,
    declared,
    indices,
    memref,
    memref_or_group,
    note_of,
    number,
    result_is,
)
from tlx.frontends.tensor_language.types import BOOL, INDEX, GroupType, MemrefType
from tlx.frontends.tensor_language.wording import counted, mnemonic


def check_alloca(context: Context, node: Alloca) -> None:
    """Local memory of a size that is known now."""
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
    """What `alloca` gave."""
    value = context.value(node.memref)
    if value.type is not None and not isinstance(value.origin, Alloca):
        message = f"lifetime_stop: {node.memref} must be the result of an alloca"
        context.error(message, node.memref.span, declared(value))


def check_load(context: Context, node: Load) -> None:
    """An element of a memref, or a memref of a group."""
    source = memref_or_group(context, node, node.source)
    indices(context, node, node.indices)
    if isinstance(source, GroupType):
        if len(node.indices) != 1:
            _wrong_count(context, node, node.source, 1, node.indices, "a group takes one index")
        result_is(context, node, source.memref, f"the type of the members of {node.source}")
    elif source:
        check_position(context, node, node.source, source, node.indices)
        result_is(context, node, source.element, f"the element type of {node.source}")


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
        complain(context, node, value, message, value, target)
    return type_


def check_position(
    context: Context, node: Instruction, name: Name, type_: MemrefType, position: tuple[Name, ...]
) -> None:
    """One index for each mode."""
    if len(position) != type_.order:
        _wrong_count(context, node, name, type_.order, position, "each mode takes one index")


def check_size(context: Context, node: Size) -> None:
    """A mode that is there; of a group 0."""
    type_ = memref_or_group(context, node, node.operand)
    result_is(context, node, INDEX, "an extent")
    if isinstance(type_, GroupType) and type_.size is None and context.groups_without_size:
        message = f'size: {node.operand} is of unknown size, and "groups_without_size" says that nobody passes it'
        context.error(f"{message}: write the size in its type, or drop the attribute", node.span)
        return
    order = 1 if isinstance(type_, GroupType) else type_.order if type_ else None
    if order is None or 0 <= node.mode < order:
        return
    modes = "the only mode of a group is 0" if isinstance(type_, GroupType) else f"the order is {order}"
    message = f"size: there is no mode {node.mode} of {node.operand}; {modes}, modes count from 0"
    context.error(message, node.span, *note_of(context, node.operand))


def check_associated(context: Context, node: Associated) -> None:
    """A memref or a group."""
    memref_or_group(context, node, node.operand)
    result_is(context, node, BOOL, "a truth value")


def _wrong_count(
    context: Context, node: Instruction, name: Name, wanted: int, position: tuple[Name, ...], why: str
) -> None:
    message = f"{mnemonic(node)}: {name} takes {counted(wanted, 'index', 'indices')}, not {len(position)}: {why}"
    context.error(message, name.span, *note_of(context, name))


RULES: Final[Rules] = {
    Alloca: Rule(check_alloca, "collective"),
    Associated: Rule(check_associated),
    LifetimeStop: Rule(check_lifetime_stop, "collective", 0),
    Load: Rule(check_load),
    Size: Rule(check_size),
    Store: Rule(check_store, None, 0),
}
