"""Views of memrefs: expand, fuse, subview.

The type of a view follows from its operand (`view_types`) but for one freedom: a stride that is known may be written
as `?`.
"""

from __future__ import annotations

import math
from typing import Final

from tlx.frontends.tensor_language.ast.base import Instruction, Name, Slice
from tlx.frontends.tensor_language.ast.mixed import Expand, Fuse, Subview
from tlx.frontends.tensor_language.check.context import Context, Rule, Rules
from tlx.frontends.tensor_language.check.operands import complain, constant, indices, memref, note_of
from tlx.frontends.tensor_language.types import MemrefType, extent_text, times
from tlx.frontends.tensor_language.view_types import expanded, fused, sliced
from tlx.frontends.tensor_language.wording import counted, mnemonic


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
    _check_view(context, node, expanded(type_, node.mode, node.shape))


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
    context.error(message, node.span, *note_of(context, node.operand))
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
        _check_view(context, node, fused(type_, node.first, node.last))


def _is_packed(context: Context, node: Fuse, type_: MemrefType) -> bool:
    for mode in range(node.first, node.last):
        end, following = times(type_.stride[mode], type_.shape[mode]), type_.stride[mode + 1]
        if end is None or following is None or end == following:
            continue
        message = (
            f"fuse: modes {mode} and {mode + 1} of {node.operand} do not lie packed: stride times extent of mode "
            f"{mode} is {end}, but the stride of mode {mode + 1} is {following}"
        )
        context.error(message, node.span, *note_of(context, node.operand))
        return False
    return True


def check_subview(context: Context, node: Subview) -> None:
    """A slice for each mode; modes of size 0 fall away."""
    type_ = memref(context, node, node.operand)
    for item in node.slices:
        _check_slice(context, node, item)
    if type_ is None:
        return
    if len(node.slices) != type_.order:
        given = counted(len(node.slices), "slice")
        message = f"{node.operand} has order {type_.order}, but the brackets hold {given}; each mode takes one"
        complain(context, node, node.operand, message, node.operand)
        return
    _check_view(context, node, sliced(type_, node.slices))


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
            context.error(message, at, *note_of(context, entry))


def _has_modes(context: Context, node: Instruction, name: Name, type_: MemrefType, *modes: int) -> bool:
    for mode in modes:
        if not 0 <= mode < type_.order:
            message = (
                f"{mnemonic(node)}: there is no mode {mode} of {name}; the order is {type_.order}, modes count from 0"
            )
            context.error(message, node.span, *note_of(context, name))
            return False
    return True


def _check_view(context: Context, node: Instruction, wanted: MemrefType) -> None:
    """The annotated type is the one that follows, some strides weakened to `?`."""
    reference = node.types[0]
    found = reference.type
    if found == wanted:
        return
    problem = f"must be {wanted}" if not isinstance(found, MemrefType) else _difference(found, wanted)
    if problem:
        message = f"{mnemonic(node)}: the result {problem}, not {reference}"
        context.error(message, reference.span, *note_of(context, next(node.operands())))


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


RULES: Final[Rules] = {
    Expand: Rule(check_expand),
    Fuse: Rule(check_fuse),
    Subview: Rule(check_subview),
}
