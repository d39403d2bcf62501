"""What all methods that write an instruction share: checked arguments, regions, names and constants.

Each call checks its arguments against the annotations of the method before anything is written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from keyword import iskeyword
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast, get_args, get_type_hints

from tlx.diagnostics import Source, Span, UsageError
from tlx.frontends.tensor_language.builder.values import (
    Frame,
    NoValue,
    Operand,
    TypeLike,
    Value,
    number_of,
    place_of_call,
    type_of,
)
from tlx.frontends.tensor_language.check import InstructionChecker
from tlx.frontends.tensor_language.errors import did_you_mean
from tlx.frontends.tensor_language.operations import OPERATIONS
from tlx.frontends.tensor_language.operations.control import Yield
from tlx.frontends.tensor_language.operations.core import operation_of
from tlx.frontends.tensor_language.operations.scalars import Constant
from tlx.frontends.tensor_language.syntax.annotations import AnnotationMismatch, coerce, expectation
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region, TypeRef
from tlx.frontends.tensor_language.types import CoopMatrixType, GroupType, MemrefType, ScalarType, Type

_TYPE: Final = "a type such as 'memref<f32x4x8>'"
_NAMES: Final[Mapping[Any, str]] = {
    Value: "a value of the kernel",
    Mapping: "a dictionary",
    **dict.fromkeys((ScalarType, MemrefType, GroupType, CoopMatrixType), _TYPE),
}
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class ArgumentChecks:
    """Base of classes whose public methods check their arguments against their annotations."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and not name.startswith("_"):
                setattr(cls, name, checked(method))


def checked(function: _Function) -> _Function:
    """A function that raises a `UsageError` at the call if an argument does not match its annotation."""

    @wraps(function)
    def compared(*arguments: Any, **named: Any) -> Any:
        signature, hints = _signature(function)
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            unknown = next((name for name in named if name not in signature.parameters), "")
            near = did_you_mean(unknown, signature.parameters)
            message = f"{function.__name__}: {error}{near}"
            raise UsageError(message, place_of_call()) from None
        for name, value in bound.arguments.items():
            if name != "self":
                parameter = signature.parameters[name]
                bound.arguments[name] = _compared(function.__name__, parameter, hints.get(name, Any), value)
        return function(*bound.args, **bound.kwargs)

    return cast("_Function", compared)


@cache
def _signature(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    return inspect.signature(function), get_type_hints(function)


def _compared(function: str, parameter: inspect.Parameter, hint: Any, value: Any) -> Any:
    if parameter.kind == parameter.VAR_POSITIONAL:
        return tuple(_argument(function, parameter.name, hint, item) for item in value)
    if parameter.kind == parameter.VAR_KEYWORD:
        return {name: _argument(function, name, hint, item) for name, item in value.items()}
    return _argument(function, parameter.name, hint, value)


def _argument(function: str, name: str, hint: Any, value: Any) -> Any:
    try:
        return coerce(value, hint)
    except AnnotationMismatch:
        use = f": {value.USE}" if isinstance(value, NoValue) else ""
        names = {**_NAMES, str: _TYPE} if ScalarType in get_args(hint) else _NAMES  # strings denote types there
        raise UsageError(f"{function}: {name} {expectation(hint, names, value)}{use}", place_of_call()) from None


def method(
    template: Callable[Concatenate[Any, str, _Parameters], _Result], name: str, documented: Callable[[str], str]
) -> Callable[Concatenate[Any, _Parameters], _Result]:
    """A method that writes one operation, from a template that several operations share.

    Args:
        template: A method that takes the operation's name before its other arguments.
        name: The operation's name; the method's is the same, with an underscore where it is a keyword of Python.
        documented: Gives the docstring of an operation, without its name.
    """
    signature = inspect.signature(template)
    self, _, *parameters = signature.parameters.values()

    def write(self: Any, *arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        return template(self, name, *arguments, **named)

    write.__name__ = f"{name}_" if iskeyword(name) else name
    write.__doc__ = f"`{name}`: {documented(name)}"
    write.__annotations__ = get_type_hints(template)
    vars(write)["__signature__"] = signature.replace(parameters=[self, *parameters])
    return write


def document(text: str, arguments: Mapping[str, str], refused: str) -> str:
    """The docstring of an operation, without its name."""
    lines = "".join(f"\n    {argument}: {meaning}" for argument, meaning in arguments.items())
    return f"{text}\n\n{'Args:' * bool(lines)}{lines}\n\nRaises:\n    TlxError: {refused}\n"


def access_meanings(name: str) -> dict[str, str]:
    """What scope and semantics of an access to memory mean."""
    orders = {"load": ": neither release nor acquire_release", "store": ": neither acquire nor acquire_release"}
    order = next((text for access, text in orders.items() if name.endswith(access)), "")
    scope = "Who else can see the access; all scopes are the same on a CPU."
    return {"scope": scope, "semantics": f"The memory order{order}."}


UNWRITTEN: Final = Region([Yield()])
"""The region of an instruction that is checked before its region has been written."""


class KernelBase(ArgumentChecks):
    """Base of the builder of kernels."""

    _rules: InstructionChecker  # of the kernel's function

    def __init__(self) -> None:
        self._frames = [Frame()]
        self._count = 0
        self._sources: dict[str, Source] = {}
        self._values: dict[str, Value] = {}

    def here(self) -> Span | None:
        """The place in the Python program that calls the builder; None if its source is not available."""
        return place_of_call(self._sources)

    @property
    def _frame(self) -> Frame:
        return self._frames[-1]

    @contextmanager
    def _region(self, expected: tuple[Type, ...] | None = None) -> Generator[Frame]:
        """A region that receives the instructions written in the block."""
        frame = Frame(expected=expected)
        self._frames.append(frame)
        try:
            yield frame
        finally:
            frame.is_open = False
            self._frames.pop()

    def _value(self, type_: Type, span: Span | None = None) -> Value:
        """A new value in the current region."""
        name = Name(str(self._count), span or self.here())
        self._count += 1
        self._values[name.text] = Value(self, self._frame, name, type_)
        return self._values[name.text]

    def _write(self, instruction: Instruction, types: Sequence[Type] = ()) -> list[Value]:
        """Check an instruction with results of these types, and add it."""
        span = self.here()
        self._check(instruction, types, span)
        return self._add(instruction, types, span)

    def _add(self, instruction: Instruction, types: Sequence[Type], span: Span | None) -> list[Value]:
        """Add an instruction that has been checked."""
        if self._frame.is_complete:
            raise UsageError("nothing may follow yield_() in a region", span)
        values = [self._value(type_, span) for type_ in types]
        for value in values:
            value.origin = instruction
        instruction.span = span
        instruction.results = tuple(value.name for value in values)
        instruction.types = tuple(TypeRef(value.type, span) for value in values)
        self._frame.region.instructions.append(instruction)
        return values

    def _check(self, instruction: Instruction, types: Sequence[Type], span: Span | None) -> None:
        """Check the operands of an instruction with results of these types.

        Raises:
            TlxError: It breaks some.
        """
        instruction.span = span
        instruction.results = tuple(Name(f".{k}", span) for k in range(len(types)))
        instruction.types = tuple(TypeRef(type_, span) for type_ in types)
        values = {name.text: self._values[name.text] for name in instruction.operands()}
        self._rules.check(instruction, [(v.name, v.type, v.origin) for v in values.values()])

    def _write_named(self, name: str, **fields: Any) -> Value:
        """Write the operation of a name, whose result type follows from its operands."""
        return self._write_one(self._node(name, **fields))

    def _node(self, name: str, **fields: Any) -> Instruction:
        """A node of the operation of a name, with the fields that the name does not determine."""
        entry = OPERATIONS[name]
        return entry.node(**{**entry.spellings[name], **fields})

    def _write_one(self, instruction: Instruction, type_: Type | None = None) -> Value:
        """Write an instruction with one result; its type follows from the operands if none is given."""
        if type_ is None:
            type_ = operation_of(instruction).gives(instruction, lambda name: self._values[name.text].type)
            assert type_ is not None, "operands of the wrong kind are refused before"
        (value,) = self._write(instruction, (type_,))
        return value

    def _type(self, spelled: TypeLike) -> Type:
        return type_of(spelled, self.here())

    def _name(self, value: object) -> Name:
        """The name of a value, with the place of its use; numbers are refused."""
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
        """The name of a value, or of a constant for a number."""
        return self._name(self._as_value(value, type_))

    def _as_value(self, value: Operand, type_: Type | None) -> Value:
        """A value, or a constant for a number."""
        if isinstance(value, Value):
            return self._checked(value)
        if type_ is None:
            raise UsageError(f"the type of {value!r} is not known here: write constant({value!r}, type)", self.here())
        return self.constant(value, type_)

    def _operands(self, values: Iterable[Operand], type_: Type) -> tuple[Name, ...]:
        return tuple(self._operand(value, type_) for value in values)

    def constant(self, value: bool | complex, type_: TypeLike) -> Value:
        """`constant`: a number as a value, or in every entry of a cooperative matrix. Equal constants are written once.

        Args:
            value: A Python number, or True or False.
            type_: A number type, bool, or a coopmatrix.

        Raises:
            TlxError: The number is not a value of the type.
        """
        span = self.here()
        type_ = type_of(type_, span)
        number = number_of(value, type_, span)
        key = (type_, repr(number))
        for frame in self._frames:
            if key in frame.constants:
                return frame.constants[key]
        self._frame.constants[key] = self._write_one(Constant(value=number), type_)
        return self._frame.constants[key]

    def _memref(self, value: object, what: str) -> MemrefType:
        """The type of a value that must be a memref."""
        type_ = self._checked(value).type
        if not isinstance(type_, MemrefType):
            hint = "; load a member of the group first" if isinstance(type_, GroupType) else ""
            raise UsageError(f"{what} must be a memref, got {cast('Value', value)!r}{hint}", self.here())
        return type_

    def _common_type(self, values: Iterable[Operand], otherwise: Type | None = None) -> Type | None:
        """The type of the first operand that is not a Python number."""
        return next((v.type for v in values if isinstance(v, Value)), otherwise)
