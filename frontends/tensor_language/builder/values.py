"""Values, types and attributes of a kernel written in Python, and the source location of each call.

c = a * 2.0 + b           mul, add; the number is a constant of the other operand's type
A[i, j]                   load, from a memref or a group
A[i, j] = c               store
a < b                     less_than; gives a `bool` of the kernel, for `if_`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, cast

from tlx.diagnostics import Source, Span, UsageError, python_call
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.operations.context import type_problem
from tlx.frontends.tensor_language.operations.control import Yield
from tlx.frontends.tensor_language.syntax.annotations import AnnotationMismatch, coerce, field_problem
from tlx.frontends.tensor_language.syntax.nodes import (
    ATTRIBUTE_NAMES,
    Attribute,
    Dictionary,
    Instruction,
    Name,
    NamedAttribute,
    Parameter,
    Region,
    TypeRef,
    is_printable,
)
from tlx.frontends.tensor_language.translation import parse
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType, Type, number_of_kind

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.syntax.nodes import Function

TypeLike = str | Type


def type_of(spelled: TypeLike, span: Span | None) -> Type:
    """A type, or the type that a string denotes.

    Raises:
        UsageError: The string denotes no type.
    """
    parameter = parameter_of(spelled, span)
    if parameter.attributes.entries:
        raise UsageError(f"'{spelled}' is a type with attributes, which only parameters have", span)
    return parameter.type.type


def parameter_of(spelled: TypeLike, span: Span | None) -> Parameter:
    """The type and the attributes of a parameter %x, from a type or from a text such as `memref<f32x?> {alignment=64}`.

    Raises:
        UsageError: The string denotes no type, or the type is invalid.
    """
    if isinstance(spelled, str):
        parameter = _parsed(spelled)
        if isinstance(parameter, str):
            raise UsageError(f"'{spelled}' is not a type: {parameter}", span)
        return Parameter(
            name=parameter.name, type=TypeRef(parameter.type.type, span), attributes=_moved(parameter.attributes, span)
        )
    malformed = field_problem(spelled) or type_problem(spelled)
    if malformed:
        raise UsageError(f"{spelled!r} is not a type: {malformed}", span)
    return Parameter(name=Name("x", span), type=TypeRef(spelled, span))


def _moved(dictionary: Dictionary, span: Span | None) -> Dictionary:
    """Attributes read from a string, with spans in the Python program."""

    def at(attribute: Attribute) -> Attribute:
        value = attribute.value
        if isinstance(value, Dictionary):
            return Attribute(_moved(value, span), span)
        return Attribute(tuple(map(at, value)) if isinstance(value, tuple) else value, span)

    return Dictionary(tuple(NamedAttribute(e.name, e.quoted, at(e.value), span) for e in dictionary.entries), span)


@lru_cache(maxsize=256)
def _parsed(spelled: str) -> Parameter | str:
    """The parameter type that a string denotes, or an error message."""
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
        UsageError: It is not a number, or no value of the type.
    """
    scalar = scalar_of(type_)
    if scalar is None:
        raise UsageError(f"expected a value of type {type_}, got the number {value!r}", span)
    try:
        return number_of_kind(value, scalar)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{value!r} is not a constant of type {type_}", span) from None


def dictionary_of(attributes: Mapping[str, Any], span: Span | None) -> Dictionary:
    """A dictionary of attributes, from Python values.

    Raises:
        UsageError: A name or a value has the wrong kind.
    """
    entries = [
        NamedAttribute(_text(n, "the name of an attribute", span), n not in ATTRIBUTE_NAMES, _attribute(v, span), span)
        for n, v in attributes.items()
    ]
    return Dictionary(tuple(entries), span)


def _text(text: object, what: str, span: Span | None) -> str:
    """A string that the language can represent."""
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


_PACKAGE: Final = "tlx.frontends.tensor_language"


def place_of_call(sources: dict[str, Source] | None = None) -> Span | None:
    """The place in the Python program that calls the builder; None if its source is not available.

    Args:
        sources: Files that were seen before, so that spans in one file share a source.
    """
    return python_call(_PACKAGE, sources)


def _operator(name: str) -> Callable[[Value, Operand], Value]:
    """A binary operator of Python: the method of the kernel that has a name."""
    return lambda value, other: getattr(value.kernel, name)(value, other)


def _reflected(name: str) -> Callable[[Value, Operand], Value]:
    """The same operator where the value is the right operand."""
    return lambda value, other: getattr(value.kernel, name)(other, value)


class Value:
    """A parameter of a kernel, or the result of an instruction.

    Attributes:
        name: Its name in the language.
        type: Its type.
        origin: The instruction that defines it; None for parameters and for variables of regions.
    """

    __slots__ = ("_frame", "_kernel", "name", "origin", "type")

    def __init__(self, kernel: Any, frame: Frame, name: Name, type_: Type) -> None:
        self._kernel = kernel
        self._frame = frame
        self.name = name
        self.type = type_
        self.origin: Instruction | None = None

    @property
    def kernel(self) -> Any:
        """The kernel it belongs to."""
        return self._kernel

    @property
    def is_visible(self) -> bool:
        """Whether the region it was made in is still being written."""
        return self._frame.is_open

    def __repr__(self) -> str:
        return f"<{self.name}: {self.type}>"

    def __bool__(self) -> NoReturn:
        message = f"{self.name} is known only when the kernel runs: use if_() and otherwise(), and_(), or_(), not_()"
        raise UsageError(message, self._kernel.here())

    def __iter__(self) -> NoReturn:
        raise UsageError(f"{self.name} cannot be iterated over: use for_() or foreach()", self._kernel.here())

    def __hash__(self) -> int:
        return id(self)

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("sub"), _reflected("sub")
    __mul__, __rmul__ = _operator("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _operator("div"), _reflected("div")
    __mod__, __rmod__ = _operator("rem"), _reflected("rem")
    __pow__, __rpow__ = _operator("pow"), _reflected("pow")
    __lshift__, __rlshift__ = _operator("shl"), _reflected("shl")
    __rshift__, __rrshift__ = _operator("shr"), _reflected("shr")
    __and__, __rand__ = _operator("and_"), _reflected("and_")
    __or__, __ror__ = _operator("or_"), _reflected("or_")
    __xor__, __rxor__ = _operator("xor"), _reflected("xor")
    __lt__, __le__ = _operator("less_than"), _operator("less_than_equal")
    __gt__, __ge__ = _operator("greater_than"), _operator("greater_than_equal")

    def __neg__(self) -> Value:
        return self._kernel.neg(self)

    def __invert__(self) -> Value:
        return self._kernel.not_(self)

    def __abs__(self) -> Value:
        return self._kernel.abs(self)

    def __eq__(self, other: Operand) -> Value:  # pyright: ignore[reportIncompatibleMethodOverride] (a value of the kernel)
        return self._kernel.equal(self, other)

    def __ne__(self, other: Operand) -> Value:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._kernel.not_equal(self, other)

    def __getitem__(self, indices: Any) -> Value:
        return self._kernel.load(self, *_listed(indices))

    def __setitem__(self, indices: Any, value: Operand) -> None:
        self._kernel.store(value, self, *_listed(indices))


class NoValue:
    """The object of a `with` block, which contains values but is not one; using it as one raises an error with a hint.

    Attributes:
        USE: The hint.
    """

    __slots__ = ()
    USE: ClassVar[str] = ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _refuse(self, *_others: object) -> NoReturn:
        raise UsageError(f"{self!r} is not a value of the kernel: {self.USE}", place_of_call())

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __mod__ = __rmod__ = __pow__ = __rpow__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __neg__ = __invert__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __setitem__ = _refuse


@dataclass(eq=False, slots=True)
class Frame:
    """A region that is being written.

    Attributes:
        region: The region.
        constants: Constants in it that were written for Python numbers.
        expected: Types that it must yield, if they are known in advance.
        yielded_types: Types that it has yielded.
        is_open: Whether it is still being written.
    """

    region: Region = field(default_factory=Region)
    constants: dict[tuple[Type, str], Value] = field(default_factory=dict[tuple[Type, str], Value])
    expected: tuple[Type, ...] | None = None
    yielded_types: tuple[Type, ...] = ()
    is_open: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether the region ends with a yield."""
        return bool(self.region.instructions) and isinstance(self.region.instructions[-1], Yield)


Operand = Value | bool | int | float | complex
"""A value, or a Python number that becomes a constant."""


def _listed(indices: Any) -> tuple[Any, ...]:
    return indices if isinstance(indices, tuple) else (indices,)  # pyright: ignore[reportUnknownVariableType]
