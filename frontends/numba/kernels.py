"""Kernels: the objects that Numba's code calls by name; they check arguments and call programs.

For the argument types of a call, a kernel makes a function in nopython mode, which Numba compiles into the caller:

    def layer(x, w, out=None):
        if x.shape == (8, 16) and w.shape == (16, 4):
            if out is None:
                result0 = empty((8, 4), float32)
            else: ...                                      # checks its shape, and that it overlaps nothing
            run0((x, w, result0))                          # the program: see `tlx.frontends.numba.linking`
            return result0
        raise ShapeError("layer: expected ..., got {}, {}", x.shape, w.shape)
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import numpy as np

from tlx.api.arguments import ArgumentError
from tlx.diagnostics import TlxError, UsageError, counted
from tlx.frontends.numba.linking import compiled, numba, numba_types, register

OUT: Final = "out"


class ShapeError(TlxError, ValueError):
    """A kernel was called with arrays of shapes that it does not take.

    Args:
        text: What was expected and what was passed, with `{}` for each further argument.
        values: Those arguments, such as shapes.
    """

    def __init__(self, text: str, *values: object) -> None:
        super().__init__(text.format(*values) if values else text)


class NumbaKernel(ABC):
    """A function for Numba's nopython mode, which Python can call as well.

    Attributes:
        name: Its name in messages.
        parameters: Names of its parameters.
    """

    def __init__(self, name: str, parameters: Sequence[str], documentation: str | None) -> None:
        self.name = self.__name__ = name
        self.__doc__ = documentation
        self.parameters = tuple(parameters)
        self._dispatchers: dict[tuple[Any, ...], Any] = {}
        register(self)

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(self.parameters)})>"

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        """The kernel itself, as for Python's functions."""
        return self

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Call the kernel.

        Raises:
            ArgumentError: An argument has the wrong type, or there are too few or too many.
            ShapeError: An array has another shape than the kernel takes.
        """
        out = None if OUT in self.parameters else named.pop(OUT, None)
        if named:
            arguments = self._in_order(arguments, named, {})
        types = self._types_of((*arguments, *(() if out is None else (out,))))
        dispatcher = self._dispatcher(types[: len(arguments)], types[len(arguments) :])
        return dispatcher(*arguments) if out is None else dispatcher(*arguments, out)

    def _types_of(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        types: list[Any] = []
        for at, argument in enumerate(arguments):
            try:
                types.append(numba.typeof(argument))
            except (ValueError, TypeError, numba.core.errors.NumbaError) as error:
                raise ArgumentError(f"{self._argument(at)}: Numba has no type for it: {error}") from None
        return tuple(types)

    # Numba's interface of functions: `numba.core.types.Dispatcher` refers to an object with these members.

    @property
    def _numba_type_(self) -> Any:
        return numba_types.Dispatcher(self)

    @property
    def is_compiling(self) -> bool:
        """Whether a call comes from the kernel itself."""
        return False

    @property
    def nopython_signatures(self) -> list[Any]:
        """The signatures that have been compiled."""
        return [signature for d in self._dispatchers.values() for signature in d.nopython_signatures]

    def get_call_template(self, args: Sequence[Any], kws: dict[str, Any]) -> Any:
        """The template by which Numba types a call.

        Raises:
            TypingError: The arguments do not fit.
        """
        try:
            positional, outs = self._bound(args, kws)
            dispatcher = self._dispatcher(positional, outs)
        except TlxError as error:
            message = error.message if error.span is None else str(error)
            raise numba.core.errors.TypingError(message) from None
        return dispatcher.get_call_template(args, kws)

    def get_overload(self, sig: Sequence[Any]) -> Any:
        """The entry point that was compiled for types of arguments."""
        positional, outs = self._split(sig)
        return self._dispatcher(positional, outs).get_overload(tuple(sig))

    def _bound(self, args: Sequence[Any], kws: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The types of the arguments in order, and that of `out` if it is passed."""
        return self._split(self._in_order(args, kws, {OUT: numba_types.none} if self._takes_out else {}))

    def _in_order(self, args: Sequence[Any], kws: dict[str, Any], further: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments by position and by name, in order, those with a default last."""
        kinds = inspect.Parameter
        parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in self.parameters]
        parameters += [kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=value) for name, value in further.items()]
        try:
            bound = inspect.Signature(parameters).bind(*args, **kws)
        except TypeError as error:
            listed = ", ".join(self.parameters)
            takes = (
                f"takes {counted(len(self.parameters), 'argument')} ({listed}){' and out' if self._takes_out else ''}"
            )
            raise ArgumentError(f"{self.name} {takes}: {error}") from None
        bound.apply_defaults()
        return bound.args

    def _split(self, types: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        count = len(self.parameters)
        outs = [t for t in types[count:] if t is not numba_types.none and not isinstance(t, numba_types.Omitted)]
        return tuple(types[:count]), tuple(outs)

    def _argument(self, at: int) -> str:
        named = at < len(self.parameters)
        return f"{self.name}: argument {at} ({self.parameters[at]})" if named else f"{self.name}: out"

    def _dispatcher(self, types: Sequence[Any], outs: Sequence[Any]) -> Any:
        """Numba's dispatcher of the function for types of arguments, and of `out` if it is passed.

        Raises:
            ArgumentError: The types do not fit.
        """
        plain: tuple[Any, ...] = tuple(numba_types.unliteral(type_) for type_ in (*types, *outs))
        key = (len(types), *plain)
        if key not in self._dispatchers:
            if len(types) != len(self.parameters):
                listed = ", ".join(self.parameters)
                takes = f"takes {counted(len(self.parameters), 'argument')} ({listed})"
                raise ArgumentError(f"{self.name} {takes}, got {len(types)}")
            self._dispatchers[key] = compiled(self._function(plain[: len(types)], plain[len(types) :]))
        return self._dispatchers[key]

    @property
    @abstractmethod
    def _takes_out(self) -> bool:
        """Whether results can be written to arrays of the caller."""

    @abstractmethod
    def _function(self, types: Sequence[Any], outs: Sequence[Any]) -> Callable[..., Any]:
        """The function for nopython mode.

        Raises:
            ArgumentError: The types of the arguments do not fit.
        """

    @abstractmethod
    def key(self, variant: Any) -> str | None:
        """The key of one of the programs; None if there is no such program."""


def function_of_source(
    name: str, parameters: Sequence[str], lines: Sequence[str], names: dict[str, Any]
) -> Callable[..., Any]:
    """A function of Python source."""
    local = name if name.isidentifier() else "kernel"
    source = "\n".join([f"def {local}({', '.join(parameters)}):", *(f"    {line}" for line in lines)])
    exec(compile(source, f"<tlx.numba {name}>", "exec"), names)
    return names[local]


def unpicklable(name: str, *_: str) -> NumbaKernel:
    """Stand-in for the constructor of a kernel that cannot be pickled.

    Raises:
        UsageError: Always.
    """
    raise UsageError(f"tlx.numba: the kernel {name} cannot be unpickled: import the module that makes it")


def memory_problem(type_: Any, *, allows_fortran: bool) -> str | None:
    """Why the memory of an array cannot be used, with `{}` for the array's name; None if it can."""
    if type_.layout == "A" or (type_.layout == "F" and not allows_fortran):
        return "expected a contiguous array: copy it, np.ascontiguousarray({})"
    if not type_.aligned:
        return "expected an aligned array: copy it, {}.copy()"
    return None


def converts(type_: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a number can be passed for one of an element type."""
    if isinstance(type_, numba_types.Complex):
        return False
    return dtype.kind == "f" or isinstance(type_, numba_types.Integer | numba_types.Boolean)
