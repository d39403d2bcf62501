"""The text of constants, attributes and names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.ast.base import Attribute, Dictionary, Name, NamedAttribute

_STRING: Final = re.compile("[\\x20-\\x21\\x23-\\x7e]*")


def names(of: Iterable[Name]) -> str:
    """Local names with commas between them."""
    return ", ".join(map(str, of))


def constant_text(value: bool | complex) -> str:
    """A constant; floating-point numbers get as many digits as tell them from their neighbours."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _floating(value)
    return f"[{_floating(value.real)}, {_floating(value.imag)}]"


def dictionary(of: Dictionary) -> str:
    """`{name=value, ...}`.

    Raises:
        UsageError: A string holds characters that no string of the language can.
    """
    return f"{{{', '.join(map(_named, of.entries))}}}"


def _floating(value: float) -> str:
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    return repr(float(value))  # of a number of numpy, which is one of Python, too


def _named(entry: NamedAttribute) -> str:
    return f"{_quoted(entry.name) if entry.quoted else entry.name}={_value(entry.value)}"


def _value(attribute: Attribute) -> str:
    value = attribute.value
    if isinstance(value, Dictionary):
        return dictionary(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return _quoted(value) if isinstance(value, str) else constant_text(value)


def is_printable(text: str) -> bool:
    """Whether the language has a string for a text."""
    return _STRING.fullmatch(text) is not None


def _quoted(text: str) -> str:
    if not is_printable(text):
        raise UsageError(f"the attribute string {text!a} has no text: only printable ASCII without '\"' does")
    return f'"{text}"'
