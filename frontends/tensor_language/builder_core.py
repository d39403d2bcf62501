"""What all methods that write an instruction share: regions, names, constants, places in the Python program."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Final, cast

from tlx.diagnostics import Source, Span, UsageError
from tlx.frontends.tensor_language.ast.base import Instruction, Name, TypeRef
from tlx.frontends.tensor_language.ast.mixed import Constant
from tlx.frontends.tensor_language.builder_types import TypeLike, number_of, type_of
from tlx.frontends.tensor_language.builder_values import Frame, Operand, Value
from tlx.frontends.tensor_language.types import GroupType, MemrefType, Type

_PACKAGE: Final = "tlx.frontends.tensor_language"


class Core:
    """Base of the builder of kernels."""

    def __init__(self) -> None:
        self._frames = [Frame()]
        self._count = 0
        self._sources: dict[str, Source] = {}

    def here(self) -> Span | None:
        """The place in the Python program that calls the builder; None where its text cannot be had."""
        frame = inspect.currentframe()
        while frame is not None and str(frame.f_globals.get("__name__")).startswith((_PACKAGE, "contextlib")):
            frame = frame.f_back
        return None if frame is None else self._place(frame)

    def _place(self, frame: FrameType) -> Span | None:
        code = frame.f_code
        if code.co_filename not in self._sources:
            lines = linecache.getlines(code.co_filename, frame.f_globals)
            self._sources[code.co_filename] = Source(_shown(code.co_filename), "".join(lines))
        source = self._sources[code.co_filename]
        line, last, start, end = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
        if not source.text or line is None or start is None or end is None:
            return None
        text = source.line(line).encode()
        begin = source.offset(line, len(text[:start].decode(errors="replace")) + 1)
        if last != line:
            return source.span(begin)
        return source.span(begin, source.offset(line, len(text[:end].decode(errors="replace")) + 1))

    @property
    def _frame(self) -> Frame:
        return self._frames[-1]

    @contextmanager
    def _region(self, expected: tuple[Type, ...] | None = None) -> Generator[Frame]:
        """Write a region: what is written in the block goes there."""
        frame = Frame(expected=expected)
        self._frames.append(frame)
        try:
            yield frame
        finally:
            frame.is_open = False
            self._frames.pop()

    def _value(self, type_: Type, span: Span | None = None) -> Value:
        """A new value, of the region that is being written."""
        self._count += 1
        return Value(self, self._frame, Name(str(self._count - 1), span or self.here()), type_)

    def _write(self, instruction: Instruction, types: Sequence[Type] = (), span: Span | None = None) -> list[Value]:
        """Add an instruction that gives values of these types."""
        span = span or self.here()
        if self._frame.is_complete:
            raise UsageError("nothing may follow yield_() in a region", span)
        values = [self._value(type_, span) for type_ in types]
        self._give(instruction, values)
        instruction.span = span
        self._frame.region.instructions.append(instruction)
        return values

    def _write_one(self, instruction: Instruction, type_: Type) -> Value:
        (value,) = self._write(instruction, (type_,))
        return value

    def _give(self, instruction: Instruction, values: Sequence[Value]) -> None:
        instruction.results = tuple(value.name for value in values)
        instruction.types = tuple(TypeRef(value.type, value.name.span) for value in values)

    def _type(self, spelled: TypeLike) -> Type:
        return type_of(spelled, self.here())

    def _name(self, value: object) -> Name:
        """The name of a value that must not be a number, with the place it is used at."""
        return Name(self._checked(value).name.text, self.here())

    def _checked(self, value: object) -> Value:
        if not isinstance(value, Value):
            raise UsageError(f"expected a value of the kernel, got {value!r}", self.here())
        if value.kernel is not self:
            raise UsageError(f"{value.name} belongs to another kernel, @{value.kernel.name}", self.here())
        if not value.is_visible:
            raise UsageError(f"{value.name} was made in a region that has ended: yield it from there", self.here())
        return value

    def _operand(self, value: Operand, type_: Type | None) -> Name:
        """The name of a value, or of the constant that a number becomes."""
        return self._name(self._given(value, type_))

    def _given(self, value: Operand, type_: Type | None) -> Value:
        """A value, or the constant that a number becomes."""
        if isinstance(value, Value):
            return self._checked(value)
        if type_ is None:
            raise UsageError(f"the type of {value!r} is not known here: write constant({value!r}, type)", self.here())
        return self.constant(value, type_)

    def _operands(self, values: Iterable[Operand], type_: Type) -> tuple[Name, ...]:
        return tuple(self._operand(value, type_) for value in values)

    def constant(self, value: bool | complex, type_: TypeLike) -> Value:
        """`constant`: a number as a value; every entry of a cooperative matrix. Equal ones are made once."""
        span = self.here()
        type_ = type_of(type_, span)
        number = number_of(value, type_, span)
        key = (type_, repr(number))
        for frame in self._frames:
            if key in frame.constants:
                return frame.constants[key]
        made = self._write_one(Constant(value=number), type_)
        self._frame.constants[key] = made
        return made

    def _memref(self, value: object, what: str) -> MemrefType:
        """The type of what must be a memref."""
        type_ = self._checked(value).type
        if not isinstance(type_, MemrefType):
            hint = "; load a member of the group first" if isinstance(type_, GroupType) else ""
            raise UsageError(f"{what} must be a memref, got {cast('Value', value)!r}{hint}", self.here())
        return type_

    def _common_type(self, values: Iterable[Operand], otherwise: Type | None = None) -> Type | None:
        """The type of the first that is no number."""
        return next((v.type for v in values if isinstance(v, Value)), otherwise)


def _shown(path: str) -> str:
    """A path as a user names it: relative where it lies below the working directory."""
    with suppress(ValueError, OSError):
        return str(Path(path).relative_to(Path.cwd()))
    return path
