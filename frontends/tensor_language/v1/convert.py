"""From version 1 to version 2: scopes, names, and the writer of instructions.

Version 1 writes the types of operands, version 2 those of results. Result types are derived from the types of the
values, not from the text, because the memory of an `alloca` is local in version 2, which the text cannot express.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final

from tlx.diagnostics import Note, Span
from tlx.frontends.tensor_language.errors import Reports
from tlx.frontends.tensor_language.operations.scalars import Constant as ConstantInstruction
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region, TypeRef
from tlx.frontends.tensor_language.types import BOOL, INDEX, GroupType, MemrefType, ScalarType, Type, extent_text

_PLAIN: Final = re.compile(r"\d{1,12}(\.\d{1,6})?")


@dataclass(frozen=True, slots=True)
class ConstantOperand:
    """A constant operand, which version 2 has no syntax for; `true` and `false` are integers."""

    value: bool | int | float
    span: Span | None = field(default=None, compare=False, repr=False)


Operand = Name | ConstantOperand


@dataclass(kw_only=True, slots=True)
class V1Instruction(Instruction):
    """An instruction of version 1 that has been read.

    Attributes:
        convert: Gives the instruction of version 2, None if an error was reported; instructions that it needs are
            written first.
    """

    convert: Callable[[Converter], Instruction | None]


def constant_name(value: bool | float, type_: ScalarType) -> str:
    """A readable name for a constant: `c4`, `c0_5_f32`, `c_minus_1_i32`, `true`."""
    if isinstance(value, bool):
        return str(value).lower()
    digits = str(abs(value)).removesuffix(".0")
    if not _PLAIN.fullmatch(digits):
        return f"c_{type_}"
    sign = "_minus_" if str(value).startswith("-") else ""
    suffix = "" if type_ == INDEX else f"_{type_}"
    return f"c{sign}{digits.replace('.', '_')}{suffix}"


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a name.

    Attributes:
        type: Its type in version 2; None where an error was reported when it was bound.
        span: Where it was bound.
    """

    type: Type | None
    span: Span | None = None


class Scope:
    """Names of the open regions, innermost last.

    Args:
        reports: Where names that are not bound are reported.
        unparsed: Names that are not reported, because text that could not be parsed may define them.
    """

    def __init__(self, reports: Reports, unparsed: set[str]) -> None:
        self._reports = reports
        self._unparsed = unparsed
        self._open: list[dict[str, Definition]] = [{}]
        self._closed: dict[str, Definition] = {}
        self._unknown: set[str] = set()

    @contextmanager
    def region(self) -> Generator[None]:
        """Names bound in the block end with it."""
        self._open.append({})
        yield
        self._closed |= self._open.pop()

    def bind(self, name: Name, type_: Type | None) -> None:
        """Bind a name in the innermost region."""
        self._open[-1][name.text] = Definition(type_, name.span)

    def find(self, name: Name) -> Definition:
        """The definition of a name; an undefined name is reported once."""
        for names in reversed(self._open):
            if name.text in names:
                return names[name.text]
        if name.text in self._unparsed:
            return Definition(None)
        closed = self._closed.get(name.text)
        visible = [text for names in self._open for text in names if text not in self._unknown]
        self._reports.undefined(name, None if closed is None else closed.span, visible)
        self._unknown.add(name.text)
        self._open[0][name.text] = Definition(None)
        return Definition(None)


def without_space(type_: Type) -> Type:
    """The type with all memory in the global address space, as a text of version 1 can express it."""
    if isinstance(type_, MemrefType):
        return replace(type_, address_space="global")
    return type_


def spell(type_: Type) -> str:
    """The spelling of a type in version 1."""
    if type_ == BOOL:
        return "i1"
    if isinstance(type_, GroupType):
        offset = "" if type_.offset == 0 else f",offset:{extent_text(type_.offset)}"
        return f"group<{type_.memref}{offset}>"
    return str(without_space(type_))


class Converter:
    """Builds a function of version 2.

    Args:
        reports: Where errors go.
        names: Names of the text, which are not used for new values.
        unparsed: Names that may be defined by parts of the text that could not be parsed.

    Attributes:
        span: The instruction that is being converted.
        has_wide_factors: Whether an instruction has an alpha or a beta that version 2 refuses.
    """

    def __init__(self, reports: Reports, names: frozenset[str], unparsed: set[str]) -> None:
        self.span: Span | None = None
        self.has_wide_factors = False
        self._reports = reports
        self._scope = Scope(reports, unparsed)
        self._used_names = set(names)
        self._numbers: dict[str, int] = {}
        self._written: list[Instruction] = []
        self._constants: dict[tuple[str, ScalarType], Name] = {}

    @contextmanager
    def block(self) -> Generator[list[Instruction]]:
        """Instructions written inside are added to the list."""
        outer = self._written, self._constants
        self._written, self._constants = [], {}
        yield self._written
        self._written, self._constants = outer

    def region(self, region: Region, *variables: tuple[Name, Type]) -> Region:
        """Convert a region, with variables defined in it."""
        with self.block() as written, self._scope.region():
            for name, type_ in variables:
                self._scope.bind(name, type_)
            for instruction in region.instructions:
                assert isinstance(instruction, V1Instruction)
                self._constants.clear()
                self._instruction(instruction)
        return Region(written, region.span)

    def _instruction(self, i: V1Instruction) -> None:
        outer, self.span = self.span, i.span
        converted = i.convert(self)
        self.span = outer
        types = () if converted is None else converted.types
        for name, reference in zip_longest(i.results, types[: len(i.results)]):
            self._scope.bind(name, None if reference is None else reference.type)
        if converted is not None:
            converted.results, converted.span = i.results, i.span
            converted.types = tuple(TypeRef(t.type, t.span or i.span) for t in types)
            self.add(converted)

    def error(self, message: str, span: Span | None = None) -> None:
        """Report an error, by default of the whole instruction."""
        self._reports.add(message, span or self.span)

    def add(self, instruction: Instruction) -> None:
        """Write an instruction."""
        self._written.append(instruction)

    def value(self, stem: str, instruction: Instruction, type_: ScalarType) -> Name:
        """Write an instruction whose result has no name in the text.

        Args:
            stem: The stem of its name.
            instruction: The instruction, without results.
            type_: The value's type.
        """
        name = Name(self._fresh(stem), instruction.span)
        instruction.results, instruction.types = (name,), (TypeRef(type_, instruction.span),)
        self.add(instruction)
        return name

    def _fresh(self, stem: str) -> str:
        """An unused name: the stem, or the stem and the first number that makes it one."""
        name = stem
        while name in self._used_names:
            self._numbers[stem] = self._numbers.get(stem, 0) + 1
            name = f"{stem}_{self._numbers[stem]}"
        self._used_names.add(name)
        return name

    def bound_name(self, name: Name) -> Name:
        """A name of the text, reported where it is not bound."""
        self._scope.find(name)
        return name

    def operand(self, operand: Operand, reference: TypeRef) -> Name:
        """An operand of the scalar type given in the text; a constant becomes a value."""
        if isinstance(operand, Name):
            self.expect(operand, reference)
            return operand
        assert isinstance(reference.type, ScalarType), "the grammar has constants only where the type is scalar"
        return self.constant(operand, reference.type)

    def index(self, operand: Operand) -> Name:
        """An index operand; the text gives no type for it."""
        return self.bound_name(operand) if isinstance(operand, Name) else self.constant(operand, INDEX)

    def constant(self, constant: ConstantOperand, type_: ScalarType) -> Name:
        """A constant as a value."""
        value = self._as_version_2(constant, type_)
        key = repr(value), type_
        if key not in self._constants:
            instruction = ConstantInstruction(value=value, span=constant.span)
            self._constants[key] = self.value(constant_name(value, type_), instruction, type_)
        return self._constants[key]

    def _as_version_2(self, constant: ConstantOperand, type_: ScalarType) -> bool | int | float:
        """The value in version 2, where `true` and `false` are the only values of `bool`."""
        value = constant.value
        if type_ != BOOL:
            return int(value) if isinstance(value, bool) else value
        if isinstance(value, float) or value not in {0, 1}:
            self.error(f"a constant of type i1 is true, false, 0 or 1, not {value}", constant.span)
        return bool(value)

    def expect(self, name: Name, reference: TypeRef) -> Type:
        """The type of a name, checked against the text; the type in the text if they differ."""
        definition = self._scope.find(name)
        if definition.type is None:
            return reference.type
        if without_space(definition.type) == without_space(reference.type):
            return definition.type
        message = f"{name} is {spell(definition.type)}, but is written as {spell(reference.type)} here"
        notes = [] if definition.span is None else [Note("declared here", definition.span)]
        self._reports.add(message, reference.span or name.span, *notes)
        return reference.type

    def memref(self, name: Name, reference: TypeRef) -> MemrefType:
        """`expect` where the grammar has a memref type."""
        type_ = self.expect(name, reference)
        assert isinstance(type_, MemrefType)
        return type_
