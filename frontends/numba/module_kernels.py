"""Kernels of modules: a function of LLVM IR or of the tensor language, with the parameters that it declares."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tlx.api.arguments import ArgumentError, unsupported_error
from tlx.api.lowering import choose_function
from tlx.api.prototypes import prototypes
from tlx.api.signatures import CallParameter, Prototype
from tlx.diagnostics import UsageError
from tlx.frontends.numba.kernels import (
    NumbaKernel,
    ShapeError,
    converts,
    function_of_source,
    memory_problem,
    unpicklable,
)
from tlx.frontends.numba.linking import address_of, caller, numba_type, numba_types
from tlx.frontends.numba.program import Lowering, NumbaProgram
from tlx.intrinsics.numpy_types import memory_dtype
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse_fully
from tlx.ir.prepared import CONSTANT
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, VOID, PointerType, Type

_NUMBERS: Final[dict[Type, np.dtype[Any]]] = {
    I1: np.dtype(np.bool_),
    I8: np.dtype(np.int8),
    I16: np.dtype(np.int16),
    I32: np.dtype(np.int32),
    I64: np.dtype(np.int64),
    FLOAT: np.dtype(np.float32),
    DOUBLE: np.dtype(np.float64),
}


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
        return unpicklable, (self.name, self._program.key)

    @property
    def _takes_out(self) -> bool:
        return False

    def key(self, variant: Any) -> str | None:  # noqa: ARG002 (there is one)
        """The key of the program."""
        return self._program.key

    def _function(self, types: Sequence[Any], outs: Sequence[Any]) -> Callable[..., Any]:
        if outs:
            raise ArgumentError(f"{self.name} does not take 'out': the module's function writes to its arguments")
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
        return function_of_source(self.name, self.parameters, lines, names)

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
        if problem := memory_problem(type_, allows_fortran=False):
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
        if not is_number or not converts(type_, dtype):
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
    chosen = choose_function(defined, name, "name the function with entry=", module.source.name)
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
