"""Methods for conditions, sequential loops, and `yield`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.builder.core import UNWRITTEN, Core
from tlx.frontends.tensor_language.builder.values import NoValue, Operand, TypeLike, Value, dictionary_of
from tlx.frontends.tensor_language.errors import counted
from tlx.frontends.tensor_language.operations.control import For, If, Yield
from tlx.frontends.tensor_language.types import INDEX, Type


@dataclass(eq=False, slots=True, repr=False)
class Results(NoValue):
    """The results of a condition or a loop, once its region has ended."""

    USE: ClassVar[str] = "write .result for the value that it gives, .results for several"
    values: list[Value] = field(default_factory=list[Value])

    @property
    def results(self) -> tuple[Value, ...]:
        """Its results."""
        return tuple(self.values)

    @property
    def result(self) -> Value:
        """Its only result.

        Raises:
            UsageError: It has none or several.
        """
        if len(self.values) != 1:
            got = counted(len(self.values), "result")
            raise UsageError(f"expected one result, got {got}: .results has all, once the block has ended")
        return self.values[0]


@dataclass(eq=False, slots=True, kw_only=True, repr=False)
class Loop(Results):
    """A sequential loop.

    Attributes:
        index: The loop's variable.
        carried: The values carried into the iteration.
    """

    USE: ClassVar[str] = "write .index for the loop's variable, .carried for the values carried, .result after it"

    index: Value
    carried: tuple[Value, ...]


class Control(Core):
    """`if`, `for` and `yield`."""

    @contextmanager
    def if_(self, condition: Operand, *types: TypeLike) -> Generator[Results]:
        """`if`: the block runs where the condition holds; `otherwise` may follow.

        Args:
            condition: A `bool` of the kernel.
            types: Types of the results; needed if only Python numbers are yielded.

        Raises:
            TlxError: The condition is not a bool, or values of other types are yielded.
        """
        span = self.here()
        if not isinstance(condition, Value):
            raise UsageError(f"expected a bool of the kernel, got {condition!r}: Python's own if will do", span)
        name = self._name(condition)
        expected = tuple(map(self._type, types)) if types else None
        results = Results()
        written = If(condition=name, then=UNWRITTEN)
        self._check(written, (), span)
        with self._region(expected) as frame:
            yield results
        given = frame.yielded_types
        if expected is not None and given != expected:
            raise UsageError(f"if_() is to yield {_listed(expected)}, but yields {_listed(given)}", span)
        written.then = frame.region
        results.values.extend(self._add(written, given, span))

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """`else` of the `if` right before it; its block yields values of the same types.

        Raises:
            TlxError: There is no `if` right before it, or other types are yielded.
        """
        span = self.here()
        last = self._frame.region.instructions[-1] if self._frame.region.instructions else None
        if not isinstance(last, If) or last.otherwise is not None:
            raise UsageError("otherwise() must come right after the block of if_()", span)
        types = tuple(reference.type for reference in last.types)
        with self._region(types) as frame:
            yield
        given = frame.yielded_types
        if given != types:
            raise UsageError(f"if_() yields {_listed(types)}, otherwise() yields {_listed(given)}", span)
        last.otherwise = frame.region

    @contextmanager
    def for_(
        self,
        start: Operand,
        stop: Operand,
        step: Operand | None = None,
        *,
        init: Sequence[Operand] = (),
        unroll: bool | int | None = None,
    ) -> Generator[Loop]:
        """`for`: the block runs for each index in order, and yields the values carried to the next iteration.

        with k.for_(0, n, init=[total]) as loop:
            k.yield_(loop.carried[0] + x[loop.index])
        total = loop.result

        Args:
            start: The first index, an integer.
            stop: The index after the last; of the type of start.
            step: The step; 1 by default.
            init: The values carried into the first iteration; the results if there is none.
            unroll: Whether to unroll the loop, or by which factor.

        Raises:
            TlxError: Bounds are not integers of one type, the step is the constant 0, unroll is below 1, or other
                types are yielded.
        """
        span = self.here()
        bounds = (start, stop) if step is None else (start, stop, step)
        type_ = self._common_type(bounds, INDEX) or INDEX
        first, last, *rest = self._operands(bounds, type_)
        initial = [self._given(value, None) for value in init]
        names = tuple(self._name(value) for value in initial)
        types = tuple(value.type for value in initial)
        with self._region(types) as frame:
            index = self._value(type_)
            loop = Loop(index=index, carried=tuple(self._value(t) for t in types))
            written = For(
                variable=index.name,
                start=first,
                stop=last,
                step=rest[0] if rest else None,
                carried=tuple(value.name for value in loop.carried),
                initial=names,
                body=UNWRITTEN,
                attributes=dictionary_of({} if unroll is None else {"unroll": unroll}, span),
            )
            self._check(written, types, span)
            yield loop
        given = frame.yielded_types
        if given != types:
            raise UsageError(f"the loop carries {_listed(types)}, but yields {_listed(given)}", span)
        written.body = frame.region
        loop.values.extend(self._add(written, types, span))

    def yield_(self, *values: Operand) -> None:
        """`yield`: the results of the enclosing `if`, `for` or `cooperative_matrix_apply`; ends the region.

        Args:
            values: The values, of the number and types of the results.

        Raises:
            TlxError: Their number or types are different.
        """
        expected = self._frame.expected
        if expected is not None and len(expected) != len(values):
            raise UsageError(
                f"expected {_listed(expected)} to be yielded, got {counted(len(values), 'value')}", self.here()
            )
        types: Sequence[Type | None] = expected if expected is not None else [None] * len(values)
        given = [self._given(value, type_) for value, type_ in zip(values, types, strict=True)]
        self._add(Yield(values=tuple(self._name(value) for value in given)), (), self.here())
        self._frame.yielded_types = tuple(value.type for value in given)


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"
