"""Translation of a StableHLO program to a graph of tensors, operation by operation.

The rules are in `operations`: one function for each operation of StableHLO. This module applies them, follows calls of
functions, and locates every error at the operation in the user's Python program.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from tlx.diagnostics import Source, TlxError, UsageError
from tlx.frontends.jax.program import (
    StablehloModule,
    StablehloOperation,
    StablehloRegion,
    ValueType,
    live_operations,
    used_values,
)
from tlx.graph import Graph, Value
from tlx.ir.functions import NameScope

_MOST: Final = (1 << 31) - 1
"""Elements of a tensor: the IR has extents of 32 bits."""

LARGE: Final = 1 << 10
"""Bytes of a constant that is passed as a weight instead of written into the module, where weights can be passed.

A float takes 26 bytes of a module's text, which every stage reads and writes.
"""

_FEW: Final = 64


class TranslationError(UsageError):
    """An operation that cannot be translated, with its place in the Python program."""


Results: TypeAlias = Sequence[Value | None]
VisibleValues: TypeAlias = Mapping[int, Value | None]


@dataclass(frozen=True, slots=True)
class TranslationRule:
    """How an operation is translated.

    Attributes:
        translate: Makes the values of the results; None for those that are not needed.
        lowered_to: What it becomes, for the documentation.
    """

    translate: Callable[[OperationContext], Results]
    lowered_to: str


@dataclass(frozen=True, slots=True)
class OperationContext:
    """The operation that a rule translates, with its context.

    Attributes:
        translation: The program's translation.
        operation: The operation.
        operands: Values of its operands.
        visible: The values that its regions see.
        needed: Which results are needed.
    """

    translation: ProgramTranslation
    operation: StablehloOperation
    operands: Sequence[Value]
    visible: VisibleValues
    needed: Sequence[bool]

    @property
    def graph(self) -> Graph:
        """The graph that the program becomes."""
        return self.translation.graph

    @property
    def type(self) -> ValueType:
        """Type of the first result."""
        return self.operation.types[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        return self.operation.types[0].shape or ()

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or the default where it is left out."""
        return self.operation.attributes.get(name, default)

    def refuse(self, message: str) -> NoReturn:
        """Raise an error at the operation."""
        self.translation.refuse(self.operation, message)

    def region(self, index: int, *arguments: Value) -> list[Value]:
        """The values that one of the operation's regions returns for arguments."""
        return self.translation.inline_all(self.operation.regions[index], arguments, self.visible)


class ProgramTranslation:
    """The translation of a program.

    Attributes:
        graph: The graph that it becomes.
    """

    def __init__(
        self,
        program: StablehloModule,
        graph: Graph,
        rules: Mapping[str, TranslationRule],
        refused: Mapping[str, str],
        *,
        has_weights: bool,
    ) -> None:
        """Prepare a translation.

        Args:
            program: The program.
            graph: The graph to write to.
            rules: How operations are translated, by name.
            refused: Reasons why other operations are not supported, by name.
            has_weights: Whether large constants may become weights of the graph, which its caller passes.
        """
        self.graph = graph
        self._program = program
        self._rules = rules
        self._refused = refused
        self._has_weights = has_weights
        self._names = NameScope()  # of parameters; leaves of different arguments can have one name
        self._sources: dict[str, Source] = {}
        self._constants: dict[tuple[Any, ...], Value] = {}
        self._definitions: dict[int, StablehloOperation] = {}
        self._users: dict[int, list[StablehloOperation | None]] = {}
        self._calls: list[StablehloOperation] = []

    def parameter(self, name: str, type_: ValueType, *, donated: bool = False) -> Value:
        """A parameter of the main function.

        Raises:
            UsageError: Its type is not supported.
        """
        reason = _unsupported(type_)
        if reason or type_.shape is None or type_.dtype is None:
            raise UsageError(f"parameter {name}: {type_.text} {reason}")
        return self.graph.parameter(self._names.fresh(name), type_.shape, type_.dtype, donated=donated)

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """A constant; equal ones are one value, but for those that are weights."""
        if not (array.size and any(array.strides)):  # one number, repeated
            return self.graph.full(array.shape, array.flat[0] if array.size else 0, array.dtype)
        if self._has_weights and array.nbytes > LARGE and not _is_uniform(array):
            return self.graph.weight("constant", array)
        key = (array.shape, array.dtype, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.graph.constant(array)
        return self._constants[key]

    def definition(self, value: int) -> StablehloOperation | None:
        """The operation that defines a value; None for parameters."""
        return self._definitions.get(value)

    def call(
        self, by: StablehloOperation, name: str, arguments: Sequence[Value], needed: Sequence[bool]
    ) -> list[Value | None]:
        """The results of a function of the program, translated in place; None for those that are not needed.

        Args:
            by: The operation that calls it.
            name: Its name.
            arguments: Its arguments.
            needed: Which of its results are needed.
        """
        body = self.body(name)
        if any(call is by for call in self._calls):
            raise UsageError(f"@{name} calls itself")
        self._calls.append(by)
        results = self.inline(body, arguments, {}, needed)
        self._calls.pop()
        return results

    def body(self, name: str) -> StablehloRegion:
        """The body of a function of the program."""
        if name not in self._program.functions:
            raise UsageError(f"the module has no function @{name}")
        return self._program.functions[name].body

    def inline(
        self,
        region: StablehloRegion,
        arguments: Sequence[Value],
        visible: VisibleValues,
        needed: Sequence[bool] | None = None,
    ) -> list[Value | None]:
        """The values that a region returns, translated in place; None for those that are not needed.

        Args:
            region: The region.
            arguments: Its parameters.
            visible: The values that are visible at the region.
            needed: Which of its values are needed; all by default.
        """
        values: dict[int, Value | None] = {**visible, **dict(zip(region.parameters, arguments, strict=True))}
        flags = [True] * len(region.returned) if needed is None else needed
        wanted = {v for v, is_needed in zip(region.returned, flags, strict=True) if is_needed}
        operations = live_operations(region, wanted)
        used = used_values(operations) | wanted
        self._record_users(operations, wanted)
        for operation in operations:
            results = self._translated(operation, values, [v in used for v in operation.results])
            values.update(zip(operation.results, results, strict=True))
            self._definitions.update(dict.fromkeys(operation.results, operation))
        return [values[v] if v in wanted else None for v in region.returned]

    def _record_users(self, operations: Sequence[StablehloOperation], wanted: AbstractSet[int]) -> None:
        """Record which operations of a region use its values; None stands for the region's end."""
        users: dict[int, list[StablehloOperation | None]] = {v: [None] for v in wanted}
        for operation in operations:
            for v in used_values([operation]):
                users.setdefault(v, []).append(operation)
        self._users.update(users)

    def users(self, value: int) -> list[StablehloOperation | None]:
        """The operations that use a value, in its region or in those inside; None if the region returns it."""
        return self._users.get(value, [None])

    def inline_all(self, region: StablehloRegion, arguments: Sequence[Value], visible: VisibleValues) -> list[Value]:
        """All values that a region returns, translated in place."""
        return [value for value in self.inline(region, arguments, visible) if value is not None]

    def refuse(self, operation: StablehloOperation, message: str) -> NoReturn:
        """Raise an error at an operation or, if its location is unknown, at a user or the enclosing call."""
        users = [user for v in operation.results for user in self.users(v) if user is not None]
        locations = [o.location for o in (operation, *users, *reversed(self._calls))]
        spans = (location.span(self._sources) for location in locations)
        by = f" of {operation.location.name}" if operation.location.name else ""
        span = next((span for span in spans if span is not None), None)
        raise TranslationError(f"{operation.name}{by}: {message}", span)

    def _translated(self, operation: StablehloOperation, values: VisibleValues, needed: Sequence[bool]) -> Results:
        rule = self._rules.get(operation.name)
        if rule is None:
            self.refuse(operation, self._refused.get(operation.name, "TLX does not know this operation"))
        for type_ in operation.types if operation.name != "func.call" else ():  # its function says more
            self._check_type(operation, type_)
        empty = [self.graph.full(t.shape or (), 0, t.dtype) for t in operation.types if t.dtype and not t.count]
        if len(empty) == len(operation.types):
            return empty
        operands = [value for v in operation.operands if (value := values[v]) is not None]
        with self._errors_at(operation):
            results = rule.translate(OperationContext(self, operation, operands, values, needed))
        for value, type_ in zip(results, operation.types, strict=True):
            is_scalar = type_.shape == ()  # in the region of a reduction, which may be applied to tensors
            is_right = value is None or (value.dtype == type_.dtype and (is_scalar or value.shape == type_.shape))
            assert is_right, f"{operation.name}: {value} is not {type_.text}"
        return results

    def _check_type(self, operation: StablehloOperation, type_: ValueType) -> None:
        if reason := _unsupported(type_):
            self.refuse(operation, f"{type_.text} {reason}")

    @contextmanager
    def _errors_at(self, operation: StablehloOperation) -> Generator[None]:
        """Locates errors of the graph at an operation."""
        try:
            yield
        except TranslationError:
            raise
        except TlxError as error:
            self.refuse(operation, error.message.removeprefix("tlx.graph: "))


def _is_uniform(array: np.ndarray[Any, Any]) -> bool:
    """Whether all elements are equal. Of most weights few are read: numpy compares 0.3 GB/s of bfloat."""
    flat = array.reshape(-1)
    return all(bool((part == flat[0]).all()) for part in (flat[:_FEW], flat))


def _unsupported(type_: ValueType) -> str | None:
    """Why a type is not supported, and what to do; None if it is."""
    if type_.shape is None and "tensor" in type_.text:
        return "is not static: export the function for fixed shapes"
    if type_.shape is None or type_.dtype is None:
        types = "booleans, integers, floats of 16 to 64 bits, float8_e4m3fn or float8_e5m2"
        return f"is not supported: use arrays of {types}"
    return f"has more than {_MOST} elements: split it" if type_.count > _MOST else None
