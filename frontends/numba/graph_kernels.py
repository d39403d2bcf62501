"""Kernels of graphs: a function of tensors, traced for each set of argument types that it is called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from tlx.api.arguments import ArgumentError
from tlx.diagnostics import Source, Span, UsageError, counted
from tlx.frontends.numba.kernels import (
    OUT,
    NumbaKernel,
    ShapeError,
    converts,
    function_of_source,
    memory_problem,
    unpicklable,
)
from tlx.frontends.numba.linking import address_of, caller, numba_type, numba_types
from tlx.frontends.numba.program import Lowering, NumbaProgram
from tlx.frontends.numba.signatures import KernelSignature, NumbaType, parse_signature
from tlx.graph import Graph, Value
from tlx.graph.value import Operand
from tlx.ir.prepared import CONSTANT


class GraphKernel(NumbaKernel):
    """A kernel made of a function that builds a graph; for each signature and memory order of arguments, a program."""

    def __init__(self, function: Callable[..., Any], signatures: Sequence[str], lowering: Lowering) -> None:
        name = function.__name__
        self.__wrapped__ = function
        self.__module__ = function.__module__
        self._lowering = lowering
        self._place = _place(function)
        parameters = [p.name for p in inspect.signature(function).parameters.values()][1:]
        if OUT in parameters:
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
        return unpicklable, (self.name, *programs)

    @property
    def _takes_out(self) -> bool:
        return True

    def key(self, variant: Any) -> str | None:
        """The key of the program of a signature and memory orders."""
        index, orders = variant
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
        fitting = self._fitting(types)
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
            conditions = [f"{name}.shape == {shape}" for name, shape in self._shapes(index, is_array)]
            lines.append(f"if {' and '.join(conditions) or 'True'}:")
            lines.extend(f"    {line}" for line in self._call(index, traced.results, is_array, bool(outs)))
        lines.append(self._shape_error(fitting, is_array))
        if outs:
            self._check_outs(outs, first)
        return function_of_source(self.name, [*self.parameters, OUT if outs else f"{OUT}=None"], lines, names)

    def _fitting(self, types: Sequence[Any]) -> list[int]:
        """The signatures that arguments of these types fit, if their shapes do.

        Raises:
            ArgumentError: There is none.
        """
        problems = [self._mismatch(signature, types) for signature in self._signatures]
        fitting = [index for index, problem in enumerate(problems) if problem is None]
        if fitting:
            return fitting
        remedies = [problem for problem in problems if problem is not None]
        if len(remedies) > 1:
            listed = "".join(f"\n  {s}: {r}" for s, r in zip(self._signatures, remedies, strict=True))
            raise ArgumentError(f"{self.name}: no signature fits the arguments:{listed}")
        raise ArgumentError(remedies[0])

    def _shapes(self, index: int, is_array: Sequence[bool]) -> list[tuple[str, str]]:
        """The arrays that a signature takes: the name and the shape of each."""
        arguments = zip(self.parameters, self._signatures[index].arguments, is_array, strict=True)
        return [(name, _tuple(type_.shape)) for name, type_, array in arguments if array]

    def _shape_error(self, fitting: Sequence[int], is_array: Sequence[bool]) -> str:
        """The line that raises an error if no signature has the shapes of the arguments."""
        arrays = [name for name, array in zip(self.parameters, is_array, strict=True) if array]
        shapes = (self._shapes(index, is_array) for index in fitting)
        expected = " or ".join(", ".join(f"{name} of shape {shape}" for name, shape in wanted) for wanted in shapes)
        text = f"{self.name}: expected {expected}; got {', '.join(f'{name} {{}}' for name in arrays)}"
        return f"raise ShapeError({', '.join([repr(text), *(f'{name}.shape' for name in arrays)])})"

    def _call(self, index: int, results: Sequence[NumbaType], is_array: Sequence[bool], has_out: bool) -> list[str]:
        """The lines that call a program and return its results."""
        lines: list[str] = []
        for at, result in enumerate(results):
            if not has_out:
                lines.append(f"result{at} = empty({_tuple(result.shape)}, type{at})")
                continue
            text = (
                f"{self.name}: expected {OUT}{f'[{at}]' if len(results) > 1 else ''} of shape {result.shape}, got {{}}"
            )
            lines += [
                f"result{at} = {OUT}{f'[{at}]' if len(results) > 1 else ''}",
                f"if result{at}.shape != {_tuple(result.shape)}:",
                f"    raise ShapeError({text!r}, result{at}.shape)",
            ]
        if has_out:
            arrays = [name for name, array in zip(self.parameters, is_array, strict=True) if array]
            for at in range(len(results)):
                for name in (*arrays, *(f"result{other}" for other in range(at))):
                    shown = name.replace("result", "out ")
                    text = f"{self.name}: {OUT} overlaps {shown}: pass memory of its own"
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
                if expected.shape or not is_number or not converts(type_, expected.dtype):
                    return f"{self._argument(at)}: {wanted}"
                continue
            if type_.ndim != len(expected.shape) or type_.dtype != numba_type(expected.dtype):
                remedy = ""
                if type_.ndim == len(expected.shape):
                    remedy = f"; convert it: {self.parameters[at]}.astype(np.{expected.dtype.name})"
                return f"{self._argument(at)}: {wanted}{remedy}"
            if problem := memory_problem(type_, allows_fortran=True):
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
            if problem := memory_problem(type_, allows_fortran=False):
                raise ArgumentError(f"{self.name}: out: {problem.partition(':')[0]}, got {type_}")


@dataclass(frozen=True, slots=True)
class _TracedGraph:
    """A graph as a program, and the types of its results."""

    program: NumbaProgram
    results: tuple[NumbaType, ...]


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


def _described(type_: NumbaType) -> str:
    if not type_.shape:
        return f"a {type_.dtype.name} number"
    return f"a {type_.dtype.name} array of shape {_tuple(type_.shape)}"


def _listed(types: Sequence[NumbaType]) -> str:
    return ", ".join(map(str, types))


def _tuple(shape: Sequence[int]) -> str:
    return str(tuple(shape))
