"""Types and attributes of kernels written in Python: from strings and Python's own values to the syntax tree's."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from tlx.diagnostics import Span, UsageError
from tlx.frontends import tensor_language
from tlx.frontends.tensor_language.ast.base import Attribute, Dictionary, NamedAttribute, Parameter
from tlx.frontends.tensor_language.attributes import ATTRIBUTE_NAMES
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType, Type

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.ast.base import Function

TypeLike = str | Type


def type_of(spelled: TypeLike, span: Span | None) -> Type:
    """A type, from itself or from its spelling.

    Raises:
        UsageError: The text spells no type.
    """
    if isinstance(spelled, get_args(Type)):
        return cast("Type", spelled)
    parameter = parameter_of(spelled, span)
    if parameter.attributes.entries:
        raise UsageError(f"'{spelled}' is a type with attributes, which only parameters have", span)
    return parameter.type.type


def parameter_of(spelled: object, span: Span | None) -> Parameter:
    """The type and the attributes that a text such as `memref<f32x?> {alignment=64}` spells, of a parameter %x.

    Raises:
        UsageError: It does not spell a type.
    """
    if not isinstance(spelled, str):
        raise UsageError(f"expected a type such as 'memref<f32x4x8>', got {spelled!r}", span)
    found = _parsed(spelled)
    if isinstance(found, str):
        raise UsageError(f"'{spelled}' is no type: {found}", span)
    return found


@lru_cache(maxsize=256)
def _parsed(spelled: str) -> Parameter | str:
    """What a text spells as the type of a parameter, or why it spells none."""
    try:
        program = tensor_language.parse(f"func @f(%x: {spelled}\n) {{ }}")
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
        return _READERS[scalar.kind](value, scalar)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{value!r} is no constant of type {type_}", span) from None


def _bool(value: Any, _type: ScalarType) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError
    return bool(value)


def _int(value: Any, type_: ScalarType) -> int:
    if isinstance(value, bool):
        raise TypeError
    number = operator.index(value)
    if number not in type_.integers:
        raise OverflowError
    return number


def _float(value: Any, _type: ScalarType) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError
    return float(value)


def _complex(value: Any, _type: ScalarType) -> complex:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError
    return complex(value)


_READERS: Final = {"bool": _bool, "int": _int, "float": _float, "complex": _complex}


def dictionary_of(attributes: Mapping[str, Any], span: Span | None) -> Dictionary:
    """A dictionary of attributes, from Python's values.

    Raises:
        UsageError: A value is of another kind than attributes are.
    """
    return Dictionary(
        tuple(
            NamedAttribute(n, n not in ATTRIBUTE_NAMES, _attribute(v, span))
            for n, v in attributes.items()
            if v is not None
        )
    )


def _attribute(value: Any, span: Span | None) -> Attribute:
    if isinstance(value, (bool, int, str)):
        return Attribute(value)
    if isinstance(value, Mapping):
        return Attribute(dictionary_of(cast("Mapping[str, Any]", value), span))
    if isinstance(value, Sequence):
        return Attribute(tuple(_attribute(item, span) for item in cast("Sequence[Any]", value)))
    raise UsageError(
        f"an attribute is a truth value, an integer, a string, a list or a dictionary, not {value!r}", span
    )
