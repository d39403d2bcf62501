"""The syntax tree without the operations: names, types, attributes, regions, functions, and their text.

Comparisons ignore spans: two texts with equal meaning have equal trees. Nodes made by the builder have spans in the
Python file that called it, if its source is available; other nodes built by programs may have none.

`ATTRIBUTE_NAMES` are the attributes of the language. Any other name is written as a string and has no meaning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Final

from tlx.diagnostics import Span, UsageError
from tlx.frontends.tensor_language.types import Type


@dataclass(frozen=True, slots=True)
class Name:
    """A local or global identifier, without its `%` or `@`."""

    text: str
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"%{self.text}"


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type as written somewhere."""

    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.type)


@dataclass(frozen=True, slots=True)
class Attribute:
    """The value of an attribute: a boolean, a number, a string, a list or a dictionary."""

    value: bool | int | str | tuple[Attribute, ...] | Dictionary
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if isinstance(self.value, tuple):
            return f"[{', '.join(map(str, self.value))}]"
        if isinstance(self.value, str):
            return _quoted(self.value)
        return str(self.value) if isinstance(self.value, Dictionary) else constant_text(self.value)


@dataclass(frozen=True, slots=True)
class NamedAttribute:
    """`name = value` of a dictionary.

    Attributes:
        name: Its name, without quotes.
        quoted: Whether the name was written as a string.
        value: Its value.
    """

    name: str
    quoted: bool
    value: Attribute
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_quoted(self.name) if self.quoted else self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class Dictionary:
    """`{name = value, ...}`; the entries as written, including duplicate names."""

    entries: tuple[NamedAttribute, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """The dictionary as text.

        Raises:
            UsageError: A string contains characters that the language cannot represent.
        """
        return f"{{{', '.join(map(str, self.entries))}}}"

    def get(self, name: str) -> Attribute | None:
        """The value of an attribute, None if it is missing."""
        return next((e.value for e in self.entries if e.name == name), None)

    def is_set(self, name: str) -> bool:
        """Whether an attribute is `true`."""
        attribute = self.get(name)
        return attribute is not None and attribute.value is True


@dataclass(kw_only=True, slots=True)
class Instruction:
    """Base of all instructions.

    Attributes:
        results: Names of its results.
        types: Their types, as written after the colon or the arrow.
        span: The instruction without its results and regions.
    """

    results: tuple[Name, ...] = ()
    types: tuple[TypeRef, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def result(self) -> Name:
        """The only result."""
        (name,) = self.results
        return name

    @property
    def type(self) -> Type:
        """The type of the only result."""
        (reference,) = self.types
        return reference.type

    def operands(self) -> Iterator[Name]:
        """The names that the instruction reads, in the order of its fields, without those in its regions."""
        for item in fields(self):
            if item.name not in _DEFINING:
                yield from _names(getattr(self, item.name))

    def regions(self) -> Iterator[Region]:
        """The regions it contains."""
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Region):
                yield value


@dataclass(slots=True)
class Region:
    """`{ instruction* }`."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(kw_only=True, slots=True)
class Parameter:
    """`%name: type {attributes}` of a function."""

    name: Name
    type: TypeRef
    attributes: Dictionary = field(default_factory=Dictionary)


@dataclass(kw_only=True, slots=True)
class Function:
    """`func @name(parameters) attributes {...} { body }`."""

    name: Name
    parameters: tuple[Parameter, ...]
    attributes: Dictionary = field(default_factory=Dictionary)
    body: Region
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class Program:
    """The functions of a file, in order."""

    functions: list[Function] = field(default_factory=list[Function])


# Fields with names that the instruction defines, for its regions or as results.
_DEFINING = frozenset(
    {"results", "types", "span", "variables", "variable", "sizes", "carried", "row", "column", "value_name"}
)


def _names(value: object) -> Iterator[Name]:
    if isinstance(value, Name):
        yield value
    elif isinstance(value, tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _names(item)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, Slice):
        yield from _names(value.offset)
        yield from _names(value.size)


@dataclass(frozen=True, slots=True)
class Slice:
    """`offset:size` of a subview; no size (or the constant 0) removes the mode."""

    offset: int | Name
    size: int | Name | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


OF_FUNCTIONS: Final = ("subgroup_size", "work_group_size")
OF_PARAMETERS: Final = ("alignment", "shape_gcd", "stride_gcd")  # memrefs and groups
OF_ALLOCA: Final = ("alignment",)
OF_FOR: Final = ("unroll",)

ATTRIBUTE_NAMES: Final = tuple(sorted({*OF_FUNCTIONS, *OF_PARAMETERS, *OF_ALLOCA, *OF_FOR}))

GROUPS_WITHOUT_SIZE: Final = "groups_without_size"
"""A quoted attribute of functions converted from version 1: they are not passed the sizes of their groups."""

WIDE_FACTORS: Final = "wide_factors"
"""A quoted attribute of functions converted from version 1: alpha may have any type that the output can represent, and
beta of `.atomic` updates may be any number."""


def names_text(names: Iterable[Name]) -> str:
    """Local names with commas between them."""
    return ", ".join(map(str, names))


def constant_text(value: bool | complex) -> str:
    """A constant; floating-point numbers have as many digits as are needed to distinguish them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _floating(value)
    return f"[{_floating(value.real)}, {_floating(value.imag)}]"


def _floating(value: float) -> str:
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    return repr(float(value))  # numpy's float64 is a float, too


_STRING: Final = re.compile("[\\x20-\\x21\\x23-\\x7e]*")


def is_printable(text: str) -> bool:
    """Whether a text can be a string of the language."""
    return _STRING.fullmatch(text) is not None


def _quoted(text: str) -> str:
    if not is_printable(text):
        raise UsageError(f"the attribute string {text!a} has no text: only printable ASCII without '\"' does")
    return f'"{text}"'
