"""Kernels: the objects that names in Numba's code refer to, which check arguments and call programs.

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
import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from tlx.api.arguments import ArgumentError, unsupported_error
from tlx.api.prototypes import prototypes
from tlx.api.signatures import CallParameter, Prototype
from tlx.diagnostics import Source, Span, TlxError, UsageError, counted
from tlx.frontends.numba.linking import address_of, caller, compiled, numba, numba_type, numba_types, register
from tlx.frontends.numba.program import Lowering, NumbaProgram
from tlx.frontends.numba.signatures import KernelSignature, NumbaType, parse_signature
from tlx.graph import Graph, Value
from tlx.graph.value import Operand
from tlx.intrinsics.numpy_types import memory_dtype
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse_fully
from tlx.ir.prepared import CONSTANT
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, VOID, PointerType, Type

_OUT: Final = "out"
_NUMBERS: Final[dict[Type, np.dtype[Any]]] = {
    I1: np.dtype(np.bool_),
    I8: np.dtype(np.int8),
    I16: np.dtype(np.int16),
    I32: np.dtype(np.int32),
    I64: np.dtype(np.int64),
    FLOAT: np.dtype(np.float32),
    DOUBLE: np.dtype(np.float64),
}


class ShapeError(TlxError, ValueError):
    """A kernel was called with arrays of shapes that it does not take.

    Args:
        text: What was expected and what was passed, with `{}` for each further argument.
        values: Those arguments, such as shapes.
    """

    def __init__(self, text: str, *values: object) -> None:
        super().__init__(text.format(*values) if values else text)


class NumbaKernel(ABC):
    """A function that Numba's code calls in nopython mode; Python can call it, too.

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

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        """Call the kernel.

        Raises:
            ArgumentError: An argument has the wrong type, or there are too few or too many.
            ShapeError: An array has another shape than the kernel takes.
        """
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
        kinds = inspect.Parameter
        names = [*self.parameters, *([_OUT] if self._takes_out else [])]
        empty = {_OUT: numba_types.none} if self._takes_out else {}
        parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=empty.get(name, kinds.empty)) for name in names]
        try:
            bound = inspect.Signature(parameters).bind(*args, **kws)
        except TypeError as error:
            listed = ", ".join(self.parameters)
            takes = (
                f"takes {counted(len(self.parameters), 'argument')} ({listed}){' and out' if self._takes_out else ''}"
            )
            raise ArgumentError(f"{self.name} {takes}: {error}") from None
        bound.apply_defaults()
        return self._split(bound.args)

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
    def key(self, which: Any) -> str | None:
        """The key of one of the programs; None if there is no such program."""


def _defined(name: str, parameters: Sequence[str], lines: Sequence[str], names: dict[str, Any]) -> Callable[..., Any]:
    """A function of Python source."""
    local = name if name.isidentifier() else "kernel"
    source = "\n".join([f"def {local}({', '.join(parameters)}):", *(f"    {line}" for line in lines)])
    exec(compile(source, f"<tlx.numba {name}>", "exec"), names)
    return names[local]


# Graphs -----------------------------------------------------------------------------------------------------------


class GraphKernel(NumbaKernel):
    """A kernel made of a function that builds a graph; for each signature and memory order of arguments, a program."""

    def __init__(self, function: Callable[..., Any], signatures: Sequence[str], lowering: Lowering) -> None:
        name = function.__name__
        self.__wrapped__ = function
        self.__module__ = function.__module__
        self._lowering = lowering
        self._place = _place(function)
        parameters = [p.name for p in inspect.signature(function).parameters.values()][1:]
        if _OUT in parameters:
            raise UsageError(f"tlx.numba: {name}: 'out' is the argument for results: rename the parameter", self._place)
        super().__init__(name, parameters, function.__doc__)
        if not signatures:
            raise UsageError(f"tlx.numba: {name}: there is no signature: pass float32[8,16], ...", self._place)
        self._signatures = [parse_signature(text) for text in signatures]
        self._traced: dict[tuple[int, str], _TracedGraph] = {}
        for index, signature in enumerate(self._signatures):
            if len(signature.arguments) != len(parameters):
                raise UsageError(
                    f"tlx.numba: {name} has {counted(len(parameters), 'parameter')} after the graph "
                    f"({', '.join(parameters)}), "
                    f"but the signature '{signature}' has {len(signature.arguments)}",
                    self._place,
                )
            self._program(index, "C" * len(parameters))

    def __reduce__(self) -> tuple[Any, ...]:
        """Numba hashes closure variables pickled, to find code in its cache."""
        programs = [
            self._program(index, "C" * len(self.parameters)).program.key for index in range(len(self._signatures))
        ]
        return _unpicklable, (self.name, *programs)

    @property
    def _takes_out(self) -> bool:
        return True

    def key(self, which: Any) -> str | None:
        """The key of the program of a signature and memory orders."""
        index, orders = which
        if index >= len(self._signatures) or len(orders) != len(self.parameters):
            return None
        return self._program(index, orders).program.key

    def ir(self, index: int = 0) -> str:
        """The TLX IR of a signature."""
        return self._program(index, "C" * len(self.parameters)).program.text

    def _program(self, index: int, orders: str) -> _TracedGraph:
        """The program of a signature, with the memory order of each argument: C, or F for Fortran's."""
        if (index, orders) not in self._traced:
            self._traced[index, orders] = self._trace(self._signatures[index], orders)
        return self._traced[index, orders]

    def _trace(self, signature: KernelSignature, orders: str) -> _TracedGraph:
        g = Graph(self.name)
        values: list[Value] = []
        for name, type_, order in zip(self.parameters, signature.arguments, orders, strict=True):
            if order == "F":
                values.append(g.parameter(name, type_.shape[::-1], type_.dtype).T)
            else:
                values.append(g.parameter(name, type_.shape, type_.dtype))
        returned = self.__wrapped__(g, *values)
        several = isinstance(returned, tuple | list)
        for value in cast("Sequence[Any]", returned) if several else [returned]:
            if not isinstance(value, Value | np.ndarray | float | int):
                raise UsageError(
                    f"tlx.numba: {self.name} returned {value!r}: return a tlx.graph.Value, or a tuple of values",
                    self._place,
                )
            g.output(cast("Operand", value))
        results = tuple(NumbaType(o.dtype, o.shape) for o in g.outputs)
        if signature.results is not None and signature.results != results:
            raise UsageError(
                f"tlx.numba: {self.name} returns {_listed(results)}, but the signature says "
                f"{_listed(signature.results)}",
                self._place,
            )
        for at, result in enumerate(results):
            if result.dtype.name in ("bfloat16", "float16"):
                raise UsageError(
                    f"tlx.numba: {self.name}: result {at} is {result.dtype.name}, which Numba has no arrays of: "
                    'convert it, as in x.astype("float32")',
                    self._place,
                )
        weights = {at: i.array for at, i in enumerate(g.inputs) if i.array is not None}
        parameters = [("ptr", "")] * (len(g.inputs) + len(g.outputs))
        text = g.text().replace(f" {CONSTANT}", "")  # the weights become constants of the module
        program = NumbaProgram(
            self.name, text, f"<graph {self.name}>", g.name, parameters, self._lowering, weights=weights
        )
        return _TracedGraph(program, results)

    def _function(self, types: Sequence[Any], outs: Sequence[Any]) -> Callable[..., Any]:
        problems = [self._mismatch(signature, types) for signature in self._signatures]
        fitting = [index for index, problem in enumerate(problems) if problem is None]
        if not fitting:
            remedies = [problem for problem in problems if problem is not None]
            if len(remedies) > 1:
                listed = "".join(f"\n  {s}: {r}" for s, r in zip(self._signatures, remedies, strict=True))
                raise ArgumentError(f"{self.name}: no signature fits the arguments:{listed}")
            raise ArgumentError(remedies[0])
        orders = "".join("F" if _is_fortran(type_) else "C" for type_ in types)
        names: dict[str, Any] = {"ShapeError": ShapeError, "empty": np.empty, "address": address_of}
        lines: list[str] = []
        is_array = [isinstance(type_, numba_types.Array) for type_ in types]
        first = self._program(fitting[0], orders).results
        for at, name in enumerate(self.parameters):
            if not is_array[at]:
                names[f"type_{name}"] = self._signatures[fitting[0]].arguments[at].dtype.type
                lines.append(f"{name} = type_{name}({name})")
        for index in fitting:
            traced = self._program(index, orders)
            if [(r.dtype, len(r.shape)) for r in traced.results] != [(r.dtype, len(r.shape)) for r in first]:
                raise ArgumentError(
                    f"{self.name}: the results of '{self._signatures[fitting[0]]}' and of '{self._signatures[index]}' "
                    "have different types, but the arguments have the same: make two kernels"
                )
            names[f"run{index}"] = caller(traced.program, (index, orders), numba_types.none)
            names |= {f"type{at}": r.dtype.type for at, r in enumerate(traced.results)}
            shapes = [t.shape for t in self._signatures[index].arguments]
            conditions = [
                f"{name}.shape == {_tuple(shape)}"
                for name, shape, array in zip(self.parameters, shapes, is_array, strict=True)
                if array
            ]
            lines.append(f"if {' and '.join(conditions) or 'True'}:")
            lines.extend(f"    {line}" for line in self._call(index, traced.results, is_array, bool(outs)))
        arrays = [name for name, array in zip(self.parameters, is_array, strict=True) if array]
        expected = " or ".join(
            ", ".join(
                f"{name} of shape {_tuple(t.shape)}"
                for name, t, array in zip(self.parameters, self._signatures[index].arguments, is_array, strict=True)
                if array
            )
            for index in fitting
        )
        text = f"{self.name}: expected {expected}; got {', '.join(f'{name} {{}}' for name in arrays)}"
        lines.append(f"raise ShapeError({', '.join([repr(text), *(f'{name}.shape' for name in arrays)])})")
        if outs:
            self._check_outs(outs, first)
        return _defined(self.name, [*self.parameters, _OUT if outs else f"{_OUT}=None"], lines, names)

    def _call(self, index: int, results: Sequence[NumbaType], is_array: Sequence[bool], has_out: bool) -> list[str]:
        """The lines that call a program and return its results."""
        lines: list[str] = []
        for at, result in enumerate(results):
            if not has_out:
                lines.append(f"result{at} = empty({_tuple(result.shape)}, type{at})")
                continue
            text = (
                f"{self.name}: expected {_OUT}{f'[{at}]' if len(results) > 1 else ''} of shape {result.shape}, got {{}}"
            )
            lines += [
                f"result{at} = {_OUT}{f'[{at}]' if len(results) > 1 else ''}",
                f"if result{at}.shape != {_tuple(result.shape)}:",
                f"    raise ShapeError({text!r}, result{at}.shape)",
            ]
        if has_out:
            arrays = [name for name, array in zip(self.parameters, is_array, strict=True) if array]
            for at in range(len(results)):
                for name in (*arrays, *(f"result{other}" for other in range(at))):
                    shown = name.replace("result", "out ")
                    text = f"{self.name}: {_OUT} overlaps {shown}: pass memory of its own"
                    begin, other = f"address(result{at})", f"address({name})"
                    lines += [
                        f"if {begin} < {other} + {name}.nbytes and {other} < {begin} + result{at}.nbytes:",
                        f"    raise ShapeError({text!r})",
                    ]
        passed = "".join(f"{name}, " for name in (*self.parameters, *(f"result{at}" for at in range(len(results)))))
        lines.append(f"run{index}(({passed}))")
        returned = [f"result{at}" if r.shape or has_out else f"result{at}[()]" for at, r in enumerate(results)]
        lines.append(f"return {returned[0] if len(returned) == 1 else ', '.join(returned)}")
        return lines

    def _mismatch(self, signature: KernelSignature, types: Sequence[Any]) -> str | None:
        """Why arguments of these types do not fit a signature; None if they do."""
        for at, (expected, type_) in enumerate(zip(signature.arguments, types, strict=True)):
            wanted = f"expected {_described(expected)}, got {type_}"
            if not isinstance(type_, numba_types.Array):
                is_number = isinstance(type_, numba_types.Number | numba_types.Boolean)
                if expected.shape or not is_number or not _converts(type_, expected.dtype):
                    return f"{self._argument(at)}: {wanted}"
                continue
            if type_.ndim != len(expected.shape) or type_.dtype != numba_type(expected.dtype):
                remedy = ""
                if type_.ndim == len(expected.shape):
                    remedy = f"; convert it: {self.parameters[at]}.astype(np.{expected.dtype.name})"
                return f"{self._argument(at)}: {wanted}{remedy}"
            if problem := _memory_problem(type_, allows_fortran=True):
                return f"{self._argument(at)}: {problem.format(self.parameters[at])}, got {type_}"
        return None

    def _check_outs(self, outs: Sequence[Any], results: Sequence[NumbaType]) -> None:
        """Reject arrays for results that have another type."""
        (out,) = outs
        types = list(out) if isinstance(out, numba_types.BaseTuple) else [out]
        if len(types) != len(results) or (len(results) > 1) != isinstance(out, numba_types.BaseTuple):
            wanted = f"a tuple of {len(results)} arrays" if len(results) > 1 else "an array"
            raise ArgumentError(f"{self.name}: out: expected {wanted}, got {out}")
        for type_, result in zip(types, results, strict=True):
            if (
                not isinstance(type_, numba_types.Array)
                or type_.ndim != len(result.shape)
                or type_.dtype != numba_type(result.dtype)
            ):
                raise ArgumentError(f"{self.name}: out: expected {_described(result)}, got {type_}")
            if not type_.mutable:
                raise ArgumentError(f"{self.name}: out: expected a writable array, got {type_}")
            if problem := _memory_problem(type_, allows_fortran=False):
                raise ArgumentError(f"{self.name}: out: {problem.partition(':')[0]}, got {type_}")


@dataclass(frozen=True, slots=True)
class _TracedGraph:
    """A graph as a program, and the types of its results."""

    program: NumbaProgram
    results: tuple[NumbaType, ...]


def _unpicklable(name: str, *_: str) -> NumbaKernel:
    raise UsageError(f"tlx.numba: the kernel {name} cannot be unpickled: import the module that makes it")


def _place(function: Callable[..., Any]) -> Span | None:
    """The line of a function's definition."""
    code = function.__code__
    try:
        text = Path(code.co_filename).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    source = Source(Path(code.co_filename).name, text)
    line = code.co_firstlineno
    if function.__name__.isidentifier():  # the first line is that of a decorator
        lines = text.splitlines()
        line = next((n for n in range(line, len(lines) + 1) if lines[n - 1].lstrip().startswith("def ")), line)
    shown = source.line(line)
    start = source.offset(line, len(shown) - len(shown.lstrip()) + 1)
    return source.span(start, start + len(shown.strip()))


def _is_fortran(type_: Any) -> bool:
    return isinstance(type_, numba_types.Array) and type_.layout == "F"


def _memory_problem(type_: Any, *, allows_fortran: bool) -> str | None:
    """What is wrong with the memory of an array, with `{}` for its name; None if nothing is."""
    if type_.layout == "A" or (type_.layout == "F" and not allows_fortran):
        return "expected a contiguous array: copy it, np.ascontiguousarray({})"
    if not type_.aligned:
        return "expected an aligned array: copy it, {}.copy()"
    return None


def _converts(type_: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a number can be passed for one of an element type."""
    if isinstance(type_, numba_types.Complex):
        return False
    return dtype.kind == "f" or isinstance(type_, numba_types.Integer | numba_types.Boolean)


def _described(type_: NumbaType) -> str:
    if not type_.shape:
        return f"a {type_.dtype.name} number"
    return f"a {type_.dtype.name} array of shape {_tuple(type_.shape)}"


def _listed(types: Sequence[NumbaType]) -> str:
    return ", ".join(map(str, types))


def _tuple(shape: Sequence[int]) -> str:
    return str(tuple(shape))


# Modules ----------------------------------------------------------------------------------------------------------


class ModuleKernel(NumbaKernel):
    """A kernel made of a function of a module."""

    def __init__(self, module: Module, entry: str | None, lowering: Lowering) -> None:
        self._prototype, function = _entry(module, entry)
        parameters = [_identifier(p.name, at) for at, p in enumerate(self._prototype.parameters)]
        self._result = _NUMBERS.get(self._prototype.result)
        super().__init__(self._prototype.name, parameters, None)
        self._program = NumbaProgram(
            self.name,
            str(module),
            module.source.name,
            function.name,
            [(str(p.type), p.abi_attributes) for p in self._prototype.parameters],
            lowering,
            (str(self._prototype.result), self._prototype.abi_attributes),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Numba hashes closure variables pickled, to find code in its cache."""
        return _unpicklable, (self.name, self._program.key)

    @property
    def _takes_out(self) -> bool:
        return False

    def key(self, which: Any) -> str | None:  # noqa: ARG002 (there is one)
        """The key of the program."""
        return self._program.key

    def _function(self, types: Sequence[Any], outs: Sequence[Any]) -> Callable[..., Any]:
        if outs:
            raise ArgumentError(f"{self.name} takes no out: the module's function writes to its arguments")
        result = numba_types.none if self._result is None else numba_type(self._result)
        names: dict[str, Any] = {
            "ShapeError": ShapeError,
            "address": address_of,
            "run": caller(self._program, (), result),
        }
        lines: list[str] = []
        for at, (parameter, type_) in enumerate(zip(self._prototype.parameters, types, strict=True)):
            name = self.parameters[at]
            if isinstance(parameter.type, PointerType):
                lines += self._checked_array(at, parameter, type_)
            else:
                lines += self._checked_number(at, parameter, type_)
                names[f"type_{name}"] = _NUMBERS[parameter.type].type
        passed = "".join(f"{name}, " for name in self.parameters)
        lines.append(f"return run(({passed}))")
        return _defined(self.name, self.parameters, lines, names)

    def _checked_array(self, at: int, parameter: CallParameter, type_: Any) -> list[str]:
        """Check an array's type; returns the lines that check its size and alignment."""
        dtypes = _element_dtypes(parameter.element)
        wanted = f"expected {' or '.join(d.name for d in dtypes[:1]) if dtypes else 'any'} array, got {type_}"
        if not isinstance(type_, numba_types.Array):
            raise ArgumentError(f"{self._argument(at)}: {wanted}")
        if dtypes and type_.dtype not in [numba_type(dtype) for dtype in dtypes]:
            half = parameter.element in (BFLOAT, HALF)
            note = f" (the bits of {parameter.element}, which Numba has no arrays of on CPUs)" if half else ""
            raise ArgumentError(f"{self._argument(at)}: {wanted}{note}")
        if parameter.written and not type_.mutable:
            raise ArgumentError(f"{self._argument(at)}: expected a writable array, got {type_}")
        name = self.parameters[at]
        if problem := _memory_problem(type_, allows_fortran=False):
            raise ArgumentError(f"{self._argument(at)}: {problem.format(name)}, got {type_}")
        lines: list[str] = []
        if parameter.count is not None and dtypes:
            text = f"{self._argument(at)}: expected {parameter.count} elements or more, got shape {{}}"
            lines += [f"if {name}.size < {parameter.count}:", f"    raise ShapeError({text!r}, {name}.shape)"]
        if parameter.size:
            text = f"{self._argument(at)}: expected {parameter.size} bytes or more, got shape {{}}"
            lines += [f"if {name}.nbytes < {parameter.size}:", f"    raise ShapeError({text!r}, {name}.shape)"]
        if parameter.align > type_.dtype.bitwidth // 8:
            text = f"{self._argument(at)}: expected an array aligned to {parameter.align} bytes"
            lines += [f"if address({name}) % {parameter.align}:", f"    raise ShapeError({text!r})"]
        return lines

    def _checked_number(self, at: int, parameter: CallParameter, type_: Any) -> list[str]:
        """Check a number's type; returns the lines that convert it."""
        dtype = _NUMBERS[parameter.type]
        is_number = isinstance(type_, numba_types.Number | numba_types.Boolean)
        if not is_number or not _converts(type_, dtype):
            raise ArgumentError(f"{self._argument(at)}: expected a number for {parameter.type}, got {type_}")
        name = self.parameters[at]
        if dtype.kind == "f" or not isinstance(type_, numba_types.Integer):
            return [f"{name} = type_{name}({name})"]
        text = f"{self._argument(at)}: expected an integer of {parameter.type}, got {{}}"
        return [
            f"narrow_{name} = type_{name}({name})",
            f"if narrow_{name} != {name}:",
            f"    raise ShapeError({text!r}, {name})",
            f"{name} = narrow_{name}",
        ]


def _entry(module: Module, name: str | None) -> tuple[Prototype, Function]:
    """The function of a module that a kernel calls.

    Raises:
        UsageError: There is none of that name, there are several, or Numba cannot call it.
    """
    whole = parse_fully(str(module), module.source.name)
    defined = prototypes(whole)
    listed = ", ".join(f"@{known}" for known in defined) or "nothing"
    if name is None and len(defined) != 1:
        raise UsageError(f"tlx.numba: name the function with entry=: one of {listed}", name=module.source.name)
    chosen = next(iter(defined)) if name is None else name
    if chosen not in defined:
        message = f"tlx.numba: the module defines no function @{chosen}; it defines {listed}"
        raise UsageError(message, name=module.source.name)
    prototype = defined[chosen]
    if error := unsupported_error(prototype):
        raise error
    types: list[Type] = [p.type for p in prototype.parameters if not isinstance(p.type, PointerType)]
    types += [prototype.result] if prototype.result != VOID else []
    if unknown := [type_ for type_ in types if type_ not in _NUMBERS]:
        message = (
            f"tlx.numba: @{chosen} passes {unknown[0]} by value, which Numba has no number type for; use a pointer"
        )
        raise UsageError(message, prototype.span)
    if prototype.convention or prototype.variadic or any(p.byval_bytes or p.is_result for p in prototype.parameters):
        message = f"tlx.numba: @{chosen} has a calling convention, '...', byval or sret; call it from a plain function"
        raise UsageError(message, prototype.span)
    if any(p.is_constant for p in prototype.parameters):
        message = f"tlx.numba: @{chosen} takes prepared arguments: remove the attribute {CONSTANT}"
        raise UsageError(message, prototype.span)
    return prototype, next(f for f in whole.functions if f.span == prototype.span)


def _identifier(name: str, at: int) -> str:
    """A parameter's name in Python."""
    plain = name.removeprefix("%")
    return plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"argument{at}"


def _element_dtypes(element: Type | None) -> list[np.dtype[Any]]:
    """The element types of arrays for a pointer, the usual one first; none if any will do."""
    if element is None:
        return []
    if element in (BFLOAT, HALF):
        return [np.dtype(np.uint16), np.dtype(np.int16)]
    dtype = memory_dtype(element)
    if dtype is None or dtype.kind == "f":
        return [] if dtype is None else [dtype]
    kinds = "iub" if dtype.itemsize == 1 else "iu"
    return [np.dtype(f"{kind}{dtype.itemsize}") for kind in kinds]
