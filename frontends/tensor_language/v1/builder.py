"""Writes the instructions of the second version, and compares the types a text names with those its names have.

The first version names the types of operands, the second those of results: the types of results follow here from the
types of what is read, which come from the values themselves, since memory of an `alloca` is local in version 2 and the
text cannot say so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from tlx.frontends.tensor_language.ast import base, mixed
from tlx.frontends.tensor_language.ast.base import Name, TypeRef
from tlx.frontends.tensor_language.errors import Reports
from tlx.frontends.tensor_language.types import BOOL, INDEX, MemrefType, ScalarType, Type
from tlx.frontends.tensor_language.v1 import tree as v1
from tlx.frontends.tensor_language.v1.names import FreshNames, constant_name
from tlx.frontends.tensor_language.v1.scope import Scope
from tlx.frontends.tensor_language.v1.spelling import spell, without_space


class Builder:
    """A function of version 2 in the making.

    Args:
        reports: Where errors go.
        names: Gives out names for values that the text does not name.
        scope: The names of the text that are bound.
        convert: Converts one instruction; regions are converted with it.

    Attributes:
        reports: As given.
        scope: As given.
        has_wide_factors: Whether an instruction takes an alpha or a beta that version 2 refuses.
    """

    def __init__(
        self, reports: Reports, names: FreshNames, scope: Scope, convert: Callable[[Builder, base.Instruction], None]
    ) -> None:
        self.reports = reports
        self.scope = scope
        self.has_wide_factors = False
        self._names = names
        self._convert = convert
        self._written: list[base.Instruction] = []
        self._constants: dict[tuple[str, ScalarType], Name] = {}

    @contextmanager
    def block(self) -> Generator[list[base.Instruction]]:
        """What is written inside goes to the list."""
        outer = self._written, self._constants
        self._written, self._constants = [], {}
        yield self._written
        self._written, self._constants = outer

    def region(self, region: base.Region, *variables: tuple[Name, Type]) -> base.Region:
        """A region with its instructions converted, and names that are bound in it."""
        with self.block() as written, self.scope.region():
            for name, type_ in variables:
                self.scope.bind(name, type_)
            for instruction in region.instructions:
                self._constants.clear()
                self._convert(self, instruction)
        return base.Region(written, region.span)

    def add(self, instruction: base.Instruction) -> None:
        """Write an instruction."""
        self._written.append(instruction)

    def value(self, stem: str, instruction: base.Instruction, type_: ScalarType) -> Name:
        """Write an instruction that gives a value which the text does not name.

        Args:
            stem: What to name it.
            instruction: The instruction, without results.
            type_: The value's type.
        """
        name = Name(self._names.fresh(stem), instruction.span)
        instruction.results, instruction.types = (name,), (TypeRef(type_, instruction.span),)
        self.add(instruction)
        return name

    def known(self, name: Name) -> Name:
        """A name of the text, reported where it is not bound."""
        self.scope.find(name)
        return name

    def operand(self, operand: v1.Operand, reference: TypeRef) -> Name:
        """An operand of the scalar type that the text says, a constant one as a value."""
        if isinstance(operand, Name):
            self.expect(operand, reference)
            return operand
        assert isinstance(reference.type, ScalarType), "the grammar has constants only where the type is scalar"
        return self.constant(operand, reference.type)

    def index(self, operand: v1.Operand) -> Name:
        """An operand among indices: the text says no type there."""
        return self.known(operand) if isinstance(operand, Name) else self.constant(operand, INDEX)

    def constant(self, constant: v1.Constant, type_: ScalarType) -> Name:
        """A constant as a value."""
        value = self._fitting(constant, type_)
        key = repr(value), type_
        if key not in self._constants:
            instruction = mixed.Constant(value=value, span=constant.span)
            self._constants[key] = self.value(constant_name(value, type_), instruction, type_)
        return self._constants[key]

    def _fitting(self, constant: v1.Constant, type_: ScalarType) -> bool | int | float:
        """The value as version 2 has it: `true` and `false` are of `bool` only, and nothing else is."""
        value = constant.value
        if type_ != BOOL:
            return int(value) if isinstance(value, bool) else value
        if isinstance(value, float) or value not in {0, 1}:
            self.reports.add(f"a constant of type i1 is true, false, 0 or 1, not {value}", constant.span)
        return bool(value)

    def expect(self, name: Name, reference: TypeRef) -> Type:
        """The type of a name, which the text must have right; where it does not, what the text says."""
        found = self.scope.find(name)
        if found.type is None:
            return reference.type
        if without_space(found.type) == without_space(reference.type):
            return found.type
        message = f"{name} is {spell(found.type)}, but is written as {spell(reference.type)} here"
        self.reports.add(message, reference.span or name.span, *found.note())
        return reference.type

    def memref(self, name: Name, reference: TypeRef) -> MemrefType:
        """`expect` where the grammar has a memref type."""
        type_ = self.expect(name, reference)
        assert isinstance(type_, MemrefType)
        return type_
