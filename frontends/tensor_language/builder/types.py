"""Types and attributes of kernels written in Python: from strings and Python's own values to the syntax tree's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from tlx.diagnostics import Span, UsageError
from tlx.frontends.tensor_language.check.types import type_problem
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.syntax.annotations import AnnotationMismatch, coerce, field_problem
from tlx.frontends.tensor_language.syntax.nodes import (
    ATTRIBUTE_NAMES,
    Attribute,
    Dictionary,
    Name,
    NamedAttribute,
    Parameter,
    TypeRef,
    is_printable,
)
from tlx.frontends.tensor_language.translation import parse
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType, Type, number_of_kind

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.syntax.nodes import Function

TypeLike = str | Type


def type_of(spelled: TypeLike, span: Span | None) -> Type:
    """A type, from itself or from its spelling.

    Raises:
        UsageError: The text spells no type.
    """
    parameter = parameter_of(spelled, span)
    if parameter.attributes.entries:
        raise UsageError(f"'{spelled}' is a type with attributes, which only parameters have", span)
    return parameter.type.type


def parameter_of(given: TypeLike, span: Span | None) -> Parameter:
    """The type and the attributes of a parameter %x, from a type or from a text such as `memref<f32x?> {alignment=64}`.

    Raises:
        UsageError: The text spells no type, or the type is none of the language.
    """
    if isinstance(given, str):
        found = _parsed(given)
        if isinstance(found, str):
            raise UsageError(f"'{given}' is no type: {found}", span)
        return Parameter(
            name=found.name, type=TypeRef(found.type.type, span), attributes=_moved(found.attributes, span)
        )
    malformed = field_problem(given) or type_problem(given)
    if malformed:
        raise UsageError(f"{given!r} is no type: {malformed}", span)
    return Parameter(name=Name("x", span), type=TypeRef(given, span))


def _moved(dictionary: Dictionary, span: Span | None) -> Dictionary:
    """Attributes that were read from a string, at the place of the Python program that has the string."""

    def at(attribute: Attribute) -> Attribute:
        value = attribute.value
        if isinstance(value, Dictionary):
            return Attribute(_moved(value, span), span)
        return Attribute(tuple(map(at, value)) if isinstance(value, tuple) else value, span)

    return Dictionary(tuple(NamedAttribute(e.name, e.quoted, at(e.value), span) for e in dictionary.entries), span)


@lru_cache(maxsize=256)
def _parsed(spelled: str) -> Parameter | str:
    """What a text spells as the type of a parameter, or why it spells none."""
    try:
        program = parse(f"func @f(%x: {spelled}\n) {{ }}")
    except ProgramError as error:
        return error.message
    functions: list[Function] = program.functions
    if len(functions) != 1 or len(functions[0].parameters) != 1:
        return "more follows the type"
    return functions[0].parameters[0]


def scalar_of(type_: Type) -> ScalarType | None:
    """The type of a scalar, or of the components of a cooperative matrix; None for memory."""
    if isinstance(type_, CoopMatrixType):
        return type_.component
    return type_ if isinstance(type_, ScalarType) else None


def number_of(value: object, type_: Type, span: Span | None) -> bool | int | float | complex:
    """A Python number as a constant of a type.

    Raises:
        UsageError: It is none, or has no such value.
    """
    scalar = scalar_of(type_)
    if scalar is None:
        raise UsageError(f"expected a value of type {type_}, got the number {value!r}", span)
    try:
        return number_of_kind(value, scalar)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{value!r} is no constant of type {type_}", span) from None


def dictionary_of(attributes: Mapping[str, Any], span: Span | None) -> Dictionary:
    """A dictionary of attributes, from Python's values.

    Raises:
        UsageError: A name or a value is of another kind than attributes are.
    """
    entries = [
        NamedAttribute(_text(n, "the name of an attribute", span), n not in ATTRIBUTE_NAMES, _attribute(v, span), span)
        for n, v in attributes.items()
    ]
    return Dictionary(tuple(entries), span)


def _text(text: object, what: str, span: Span | None) -> str:
    """A string that the language can spell."""
    if not isinstance(text, str) or not is_printable(text):
        raise UsageError(f"{what} is a string of printable ASCII characters without '\"', not {text!a}", span)
    return text


def _attribute(value: Any, span: Span | None) -> Attribute:
    if isinstance(value, str):
        return Attribute(_text(value, "an attribute's string", span), span)
    if isinstance(value, Mapping):
        return Attribute(dictionary_of(cast("Mapping[str, Any]", value), span), span)
    if isinstance(value, Sequence):
        return Attribute(tuple(_attribute(item, span) for item in cast("Sequence[Any]", value)), span)
    with suppress(AnnotationMismatch):
        return Attribute(coerce(value, bool | int), span)
    raise UsageError(
        f"an attribute is a truth value, an integer, a string, a list or a dictionary, not {value!r}", span
    )
