"""Values of a kernel written in Python, with Python's operators, and places in the program that writes it.

c = a * 2.0 + b           mul, add; the number is a constant of the other operand's type
A[i, j]                   load, of a memref or a group
A[i, j] = c               store
a < b                     less_than; gives a `bool` of the kernel, for `if_`
"""

from __future__ import annotations

import inspect
import linecache
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Final, NoReturn

from tlx.diagnostics import Source, Span, UsageError
from tlx.frontends.tensor_language.operations.control import Yield
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region
from tlx.frontends.tensor_language.types import Type

_PACKAGE: Final = "tlx.frontends.tensor_language"


def place_of_call(sources: dict[str, Source] | None = None) -> Span | None:
    """The place in the Python program that calls the builder; None where its text cannot be had.

    Args:
        sources: The files that were seen before, so that places in one file are of one source.
    """
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith((_PACKAGE, "contextlib")):
        frame = frame.f_back
    return None if frame is None else _place(frame, {} if sources is None else sources)


def _place(frame: FrameType, sources: dict[str, Source]) -> Span | None:
    code = frame.f_code
    if code.co_filename not in sources:
        lines = linecache.getlines(code.co_filename, frame.f_globals)
        sources[code.co_filename] = Source(_shown(code.co_filename), "".join(lines))
    source = sources[code.co_filename]
    line, last, start, end = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    if not source.text or line is None or start is None or end is None:
        return None
    text = source.line(line).encode()
    begin = source.offset(line, len(text[:start].decode(errors="replace")) + 1)
    if last != line:
        return source.span(begin)
    return source.span(begin, source.offset(line, len(text[:end].decode(errors="replace")) + 1))


def _shown(path: str) -> str:
    """A path as a user names it: relative where it lies below the working directory."""
    with suppress(ValueError, OSError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


class Value:
    """A parameter of a kernel, or what an instruction gives.

    Attributes:
        name: What the language calls it.
        type: Its type.
        origin: The instruction that gives it; None for parameters, and for what regions begin with.
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

    def __add__(self, other: Operand) -> Value:
        return self._kernel.add(self, other)

    def __radd__(self, other: Operand) -> Value:
        return self._kernel.add(other, self)

    def __sub__(self, other: Operand) -> Value:
        return self._kernel.sub(self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self._kernel.sub(other, self)

    def __mul__(self, other: Operand) -> Value:
        return self._kernel.mul(self, other)

    def __rmul__(self, other: Operand) -> Value:
        return self._kernel.mul(other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self._kernel.div(self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._kernel.div(other, self)

    def __mod__(self, other: Operand) -> Value:
        return self._kernel.rem(self, other)

    def __rmod__(self, other: Operand) -> Value:
        return self._kernel.rem(other, self)

    def __pow__(self, other: Operand) -> Value:
        return self._kernel.pow(self, other)

    def __rpow__(self, other: Operand) -> Value:
        return self._kernel.pow(other, self)

    def __lshift__(self, other: Operand) -> Value:
        return self._kernel.shl(self, other)

    def __rlshift__(self, other: Operand) -> Value:
        return self._kernel.shl(other, self)

    def __rshift__(self, other: Operand) -> Value:
        return self._kernel.shr(self, other)

    def __rrshift__(self, other: Operand) -> Value:
        return self._kernel.shr(other, self)

    def __and__(self, other: Operand) -> Value:
        return self._kernel.and_(self, other)

    def __rand__(self, other: Operand) -> Value:
        return self._kernel.and_(other, self)

    def __or__(self, other: Operand) -> Value:
        return self._kernel.or_(self, other)

    def __ror__(self, other: Operand) -> Value:
        return self._kernel.or_(other, self)

    def __xor__(self, other: Operand) -> Value:
        return self._kernel.xor(self, other)

    def __rxor__(self, other: Operand) -> Value:
        return self._kernel.xor(other, self)

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

    def __lt__(self, other: Operand) -> Value:
        return self._kernel.less_than(self, other)

    def __le__(self, other: Operand) -> Value:
        return self._kernel.less_than_equal(self, other)

    def __gt__(self, other: Operand) -> Value:
        return self._kernel.greater_than(self, other)

    def __ge__(self, other: Operand) -> Value:
        return self._kernel.greater_than_equal(self, other)

    def __getitem__(self, indices: Any) -> Value:
        return self._kernel.load(self, *_listed(indices))

    def __setitem__(self, indices: Any, value: Operand) -> None:
        self._kernel.store(value, self, *_listed(indices))


class NoValue:
    """What a `with` block gives that holds values and is none itself; using it as one tells which to take.

    Attributes:
        USE: Says so.
    """

    __slots__ = ()
    USE: ClassVar[str] = ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _refuse(self, *_others: object) -> NoReturn:
        raise UsageError(f"{self!r} is no value of the kernel: {self.USE}", place_of_call())

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __mod__ = __rmod__ = __pow__ = __rpow__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __neg__ = __invert__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __setitem__ = _refuse


@dataclass(eq=False, slots=True)
class Frame:
    """A region that is being written.

    Attributes:
        region: The region.
        constants: Constants made for Python numbers in it.
        expected: Types that its yield gives, where they are known before it.
        yielded_types: Types of what its yield gives, none before it.
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
"""A value, or a number that becomes a constant."""


def _listed(indices: Any) -> tuple[Any, ...]:
    return indices if isinstance(indices, tuple) else (indices,)  # pyright: ignore[reportUnknownVariableType]
