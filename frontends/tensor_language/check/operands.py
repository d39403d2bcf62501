"""Operands of the kind that an instruction asks for; anything else is reported and gives None.

An operand whose type an earlier error left unknown gives None as well, without another error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tlx.diagnostics import Note
from tlx.frontends.tensor_language.check.context import Context, Value
from tlx.frontends.tensor_language.operations.core import mnemonic
from tlx.frontends.tensor_language.operations.scalars import Constant
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, TypeRef
from tlx.frontends.tensor_language.types import (
    BOOL,
    INDEX,
    CoopMatrixType,
    Extent,
    GroupType,
    MatrixUse,
    MemrefType,
    ScalarType,
    Type,
    extent_text,
)


def declaration_note(value: Value) -> Note:
    """Where an operand comes from, with its type."""
    return Note(f"declared here: {value.name} is {value.type}", value.name.span)


def operand_notes(context: Context, *names: Name) -> list[Note]:
    """Where other operands come from."""
    return [declaration_note(value) for name in names if (value := context.value(name)).type is not None]


def report_operand(context: Context, node: Instruction, at: Name, message: str, *others: Name) -> None:
    """Report an operand, with the declarations of it and of the operands it does not fit."""
    context.error(f"{mnemonic(node)}: {message}", at.span, *operand_notes(context, *others))


def report_wrong_kind(context: Context, node: Instruction, value: Value, name: Name, wanted: str) -> None:
    """Report an operand of the wrong kind."""
    if value.type is not None:
        context.error(
            f"{mnemonic(node)}: {name} must be {wanted}, but it is {value.type}", name.span, declaration_note(value)
        )


def memref(context: Context, node: Instruction, name: Name) -> MemrefType | None:
    """A memref."""
    value = context.value(name)
    if isinstance(value.type, MemrefType):
        return value.type
    hint = "a memref (load it from the group first)" if isinstance(value.type, GroupType) else "a memref"
    return report_wrong_kind(context, node, value, name, hint)


def memref_or_group(context: Context, node: Instruction, name: Name) -> MemrefType | GroupType | None:
    """A memref or a group of memrefs."""
    value = context.value(name)
    if isinstance(value.type, MemrefType | GroupType):
        return value.type
    return report_wrong_kind(context, node, value, name, "a memref or a group")


def number(context: Context, node: Instruction, name: Name) -> ScalarType | None:
    """A scalar of any type but `bool`."""
    value = context.value(name)
    if isinstance(value.type, ScalarType) and value.type is not BOOL:
        return value.type
    return report_wrong_kind(context, node, value, name, "a number")


def integer(context: Context, node: Instruction, name: Name) -> ScalarType | None:
    """A scalar of an integer type."""
    value = context.value(name)
    if isinstance(value.type, ScalarType) and value.type.kind == "int":
        return value.type
    return report_wrong_kind(context, node, value, name, "an integer")


def scalar_or_matrix(context: Context, node: Instruction, name: Name) -> ScalarType | CoopMatrixType | None:
    """What arithmetic works on."""
    value = context.value(name)
    if isinstance(value.type, ScalarType | CoopMatrixType):
        return value.type
    return report_wrong_kind(context, node, value, name, "a scalar or a coopmatrix")


def matrix(context: Context, node: Instruction, name: Name, use: MatrixUse | None = None) -> CoopMatrixType | None:
    """A cooperative matrix."""
    value = context.value(name)
    if isinstance(value.type, CoopMatrixType) and use in {None, value.type.use}:
        return value.type
    return report_wrong_kind(context, node, value, name, f"a coopmatrix of use {use}" if use else "a coopmatrix")


def exactly(context: Context, node: Instruction, name: Name, wanted: Type) -> None:
    """An operand of one certain type."""
    value = context.value(name)
    if value.type != wanted:
        report_wrong_kind(context, node, value, name, f"of type {wanted}")


def indices(context: Context, node: Instruction, names: Iterable[Name], role: str = "an index of type index") -> None:
    """Positions in memory: each of type `index`."""
    for name in names:
        value = context.value(name)
        if value.type != INDEX:
            report_wrong_kind(context, node, value, name, f"{role} (cast it)")


def constant(context: Context, name: Name) -> bool | int | float | complex | None:
    """The value of an operand that a `constant` instruction gives."""
    origin = context.value(name).origin
    return origin.value if isinstance(origin, Constant) else None


def uniform(context: Context, node: Instruction, *names: Name) -> None:
    """Operands that all work-items of a subgroup must agree on; only what is certainly otherwise is reported."""
    if not context.frame.converged:
        return
    for name in names:
        value = context.value(name)
        if value.spread is not None and value.spread.varies:
            context.error(
                f"{mnemonic(node)}: {name} must be dynamically uniform, but it differs between the work-items of a "
                "subgroup: let subgroup_broadcast choose one of its values",
                name.span,
                declaration_note(value),
            )


@dataclass(frozen=True, slots=True)
class Side:
    """An extent that must be equal to another.

    Attributes:
        name: The operand that has it.
        text: What messages call it, such as `rows(%A)`.
        extent: The extent.
    """

    name: Name
    text: str
    extent: Extent


def equal_extents(context: Context, node: Instruction, left: Side, right: Side, what: str = "the extents") -> None:
    """Two extents that must be equal, or both `?`; the second one is at fault."""
    if left.extent == right.extent:
        return
    sides = f"{left.text} = {extent_text(left.extent)} but {right.text} = {extent_text(right.extent)}"
    message = f"{sides}; {what} must be equal"
    if None in {left.extent, right.extent}:
        message += ", or both ? (subview or an argument's type can change one)"
    report_operand(context, node, right.name, message, left.name, right.name)


def result_is(context: Context, node: Instruction, wanted: Type, reason: str) -> None:
    """The one result type an instruction can have."""
    reference: TypeRef = node.types[0]
    if reference.type != wanted:
        context.error(f"{mnemonic(node)}: the result must be {wanted}, {reason}, not {reference}", reference.span)
