"""Rules about attributes: kinds of values, duplicate names, alignments, divisors and work-group sizes."""

from __future__ import annotations

from tlx.diagnostics import Note
from tlx.frontends.tensor_language.operations.context import FunctionCheck
from tlx.frontends.tensor_language.syntax.nodes import (
    ATTRIBUTE_NAMES,
    GROUPS_WITHOUT_SIZE,
    OF_ALLOCA,
    OF_FOR,
    OF_FUNCTIONS,
    OF_PARAMETERS,
    WIDE_FACTORS,
    Attribute,
    Dictionary,
    Function,
    NamedAttribute,
    Parameter,
)
from tlx.frontends.tensor_language.types import (
    LARGEST_LOCAL_ALIGNMENT,
    MAX_INTEGER,
    Extent,
    GroupType,
    MemrefType,
    extent_text,
)
from tlx.frontends.tensor_language.work_items import LARGEST_SUBGROUP, LARGEST_WORK_GROUP, default_subgroup_size


def check_function_attributes(context: FunctionCheck, function: Function) -> None:
    """Check the sizes of groups and the attributes of converted programs, and store them in the context."""
    dictionary = function.attributes
    for name in (GROUPS_WITHOUT_SIZE, WIDE_FACTORS):
        flag = dictionary.get(name)
        if flag is not None and not isinstance(flag.value, bool):
            context.error(f'"{name}" must be true or false, not {_kind(flag)}', flag.span)
    context.groups_without_size = dictionary.is_set(GROUPS_WITHOUT_SIZE)
    context.wide_factors = dictionary.is_set(WIDE_FACTORS)
    _check_dictionary(context, dictionary, OF_FUNCTIONS, "a function")
    size = dictionary.get("subgroup_size")
    if size is not None:
        _check_subgroup_size(context, size)
    shape = dictionary.get("work_group_size")
    if shape is not None:
        _check_work_group_size(context, shape, size)


def _check_subgroup_size(context: FunctionCheck, attribute: Attribute) -> None:
    value = _integer(attribute)
    if value is None:
        context.error(f"subgroup_size must be an integer, not {_kind(attribute)}", attribute.span)
    elif not 1 <= value <= LARGEST_SUBGROUP or value & (value - 1):
        message = f"subgroup_size must be a power of two from 1 to {LARGEST_SUBGROUP}, but it is {value}"
        context.error(message, attribute.span)
    else:
        context.subgroup_size = value


def _check_work_group_size(context: FunctionCheck, attribute: Attribute, size: Attribute | None) -> None:
    entries = _integers(context, attribute, "work_group_size")
    if entries is None:
        return
    if len(entries) != 2:
        message = f"work_group_size must be an array of 2 integers, but it has {len(entries)}: [rows,columns]"
        context.error(message, attribute.span)
        return
    if size is None:
        context.subgroup_size = default_subgroup_size(entries[0])
    elif entries[0] % context.subgroup_size:
        message = (
            f"the first entry of work_group_size must be a multiple of the subgroup size, {context.subgroup_size}, "
            f"but it is {entries[0]}"
        )
        context.error(message, attribute.span, Note("the subgroup size is set here", size.span))
    if entries[0] * entries[1] > LARGEST_WORK_GROUP:
        message = f"a work-group has at most {LARGEST_WORK_GROUP} work-items, not {entries[0]} * {entries[1]}"
        context.error(message, attribute.span)


def check_parameter_attributes(context: FunctionCheck, parameter: Parameter) -> None:
    """`alignment`, `shape_gcd` and `stride_gcd` of a memref or a group."""
    type_ = parameter.type.type
    memref = type_.memref if isinstance(type_, GroupType) else type_
    dictionary = parameter.attributes
    if not isinstance(memref, MemrefType):
        _check_dictionary(context, dictionary, (), f"a parameter of type {type_}")
        return
    _check_dictionary(context, dictionary, OF_PARAMETERS, "a parameter")
    alignment = dictionary.get("alignment")
    if alignment is not None:
        _check_alignment(context, alignment, memref)
    for name, extents in (("shape_gcd", memref.shape), ("stride_gcd", memref.stride)):
        divisors = dictionary.get(name)
        if divisors is not None:
            _check_divisors(context, name, divisors, extents, memref)


def check_alloca_attributes(context: FunctionCheck, attributes: Dictionary, type_: MemrefType) -> None:
    """`alignment`, a power of two that stack and heap support."""
    _check_dictionary(context, attributes, OF_ALLOCA, "alloca")
    alignment = attributes.get("alignment")
    if alignment is None or not _check_alignment(context, alignment, type_):
        return
    value = _integer(alignment) or 1
    if value > LARGEST_LOCAL_ALIGNMENT or value & (value - 1):
        message = f"alloca: alignment must be a power of two and at most {LARGEST_LOCAL_ALIGNMENT}, but it is {value}"
        context.error(message, alignment.span)


def check_for_attributes(context: FunctionCheck, attributes: Dictionary) -> None:
    """`unroll`, a boolean or a factor."""
    _check_dictionary(context, attributes, OF_FOR, "for")
    unroll = attributes.get("unroll")
    if unroll is None or isinstance(unroll.value, bool):
        return
    if not isinstance(unroll.value, int):
        context.error(f"unroll must be true, false or an integer, not {_kind(unroll)}", unroll.span)
    elif unroll.value < 1:
        context.error(f"unroll must be at least 1, but it is {unroll.value}: write false for none", unroll.span)


def _check_alignment(context: FunctionCheck, attribute: Attribute, memref: MemrefType) -> bool:
    value, size = _integer(attribute), memref.element.size
    if value is None:
        message = f"alignment must be an integer, not {_kind(attribute)}"
    elif value < 1 or value % size:
        message = f"alignment must be a positive multiple of {size}, the bytes of {memref.element}, but it is {value}"
    else:
        return True
    context.error(message, attribute.span)
    return False


def _check_divisors(
    context: FunctionCheck, name: str, attribute: Attribute, extents: tuple[Extent, ...], memref: MemrefType
) -> None:
    divisors = _integers(context, attribute, name)
    if divisors is None:
        return
    if len(divisors) > len(extents):
        message = f"{name} has {len(divisors)} entries, more than the order {memref.order} of {memref}"
        context.error(message, attribute.span)
        return
    for mode, (divisor, extent) in enumerate(zip(divisors, extents, strict=False)):
        if extent is not None and extent % divisor:
            what = "extent" if name == "shape_gcd" else "stride"
            message = f"{name}: {divisor} does not divide {extent_text(extent)}, the {what} of mode {mode} of {memref}"
            context.error(message, attribute.span)
            return


def _check_dictionary(context: FunctionCheck, dictionary: Dictionary, allowed: tuple[str, ...], owner: str) -> None:
    """Each name occurs once, and known names only where they apply; unknown names in quotes are allowed."""
    _check_doubled(context, dictionary)
    for entry in dictionary.entries:
        if entry.name in allowed:
            continue
        if entry.name in ATTRIBUTE_NAMES:
            known = ", ".join(allowed) or "none"
            context.error(f"{entry.name} is not an attribute of {owner}; it takes {known}", entry.span)
        elif not entry.quoted:
            context.error(f"there is no attribute {entry.name}: write a name of your own as a string", entry.span)


def _check_doubled(context: FunctionCheck, dictionary: Dictionary) -> None:
    first: dict[str, NamedAttribute] = {}
    for entry in dictionary.entries:
        before = first.get(entry.name)
        if before is not None:
            message = f"attribute {entry.name} is given twice: leave one out"
            context.error(message, entry.span, Note("given here first", before.span))
        first[entry.name] = before or entry
        _check_value(context, entry.value)


def _check_value(context: FunctionCheck, attribute: Attribute) -> None:
    value = attribute.value
    if isinstance(value, Dictionary):
        _check_doubled(context, value)
    elif isinstance(value, tuple):
        for item in value:
            _check_value(context, item)
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        context.error(f"integers lie between -2^63+1 and 2^63-1, but this is {value}", attribute.span)


def _integers(context: FunctionCheck, attribute: Attribute, name: str) -> list[int] | None:
    """The entries of an array of positive integers; anything else is reported."""
    if not isinstance(attribute.value, tuple):
        context.error(f"{name} must be an array of integers, not {_kind(attribute)}", attribute.span)
        return None
    values: list[int] = []
    for item in attribute.value:
        value = _integer(item)
        if value is None:
            context.error(f"{name} must be an array of integers, but an entry is {_kind(item)}", item.span)
            return None
        if value < 1:
            context.error(f"entries of {name} must be at least 1, but one is {value}", item.span)
            return None
        values.append(value)
    return values


def _integer(attribute: Attribute) -> int | None:
    value = attribute.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _kind(attribute: Attribute) -> str:
    value = attribute.value
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, Dictionary):
        return "a dictionary"
    if isinstance(value, tuple):
        return "an array"
    return "a string" if isinstance(value, str) else "an integer"
