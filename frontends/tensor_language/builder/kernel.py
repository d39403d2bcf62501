"""Kernels written in Python: each method writes an instruction; the result is a syntax tree.

    from tlx import tensor_language as tl

    with tl.kernel("fused", alpha="f32", A="group<memref<f32x16x8>x?>", B="memref<f32x8x8>") as k:
        a = k.A[k.group_id("x")]
        tmp = k.alloca("memref<f32x16x8,local>")
        k.gemm(k.alpha, a, k.B, 0.0, tmp)
        k.axpby(1.0, tmp, 0.0, a)

    tl.compile(k).fused(2.0, arrays, b, groups=len(arrays))
    tl.text(k)                       # the kernel in the language

Python numbers become constants of the required type. Types of results follow from those of the operands. Regions are
`with` blocks. When the kernel's block ends it is checked like a text; errors point into the Python program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import TracebackType
from typing import Any, Self

from tlx.api.compiler import Namespace
from tlx.diagnostics import Span, UsageError
from tlx.frontends.tensor_language.builder.collective import Collective
from tlx.frontends.tensor_language.builder.core import checked
from tlx.frontends.tensor_language.builder.mixed import Arithmetic, Control, Mixed
from tlx.frontends.tensor_language.builder.spmd import Spmd
from tlx.frontends.tensor_language.builder.values import TypeLike, Value, dictionary_of, parameter_of, place_of_call
from tlx.frontends.tensor_language.check import InstructionChecker, check_program
from tlx.frontends.tensor_language.errors import did_you_mean
from tlx.frontends.tensor_language.syntax.nodes import Dictionary, Function, Name, Parameter, Program

ParameterLike = TypeLike | tuple[TypeLike, Mapping[str, Any]]
"""A type, or a type and attributes."""


class Kernel(Arithmetic, Collective, Control, Mixed, Spmd, Namespace[Value]):
    """A kernel under construction, and its parameters by name; see `kernel`.

    Attributes:
        name: Its name in the language.
        function: Its syntax tree.
    """

    def __init__(self, name: str, parameters: Mapping[str, ParameterLike], attributes: Mapping[str, Any]) -> None:
        super().__init__()
        span = self.here()
        self.name = name
        self.function = Function(
            name=Name(_identifier(name, span), span),
            parameters=tuple(self._parameter(n, parameter) for n, parameter in parameters.items()),
            attributes=dictionary_of(attributes, span),
            body=self._frame.region,
            span=span,
        )
        self._named = {p.name.text: Value(self, self._frame, p.name, p.type.type) for p in self.function.parameters}
        self._values |= self._named
        self._rules = InstructionChecker(self.function)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the kernel and check it.

        Raises:
            ProgramError: It breaks rules of the language.
        """
        self._frame.is_open = False
        if error is None:
            check_program(Program([self.function]))

    def __getitem__(self, name: str) -> Value:
        """The parameter of that name, which may also be the name of a method.

        Raises:
            UsageError: There is none.
        """
        if name not in self._named:
            message = f"@{self.name} has no parameter and the language no instruction {name}"
            near = did_you_mean(name, (*self._named, *instruction_methods()))
            raise UsageError(f"{message}{near or '; it has ' + (', '.join(self._named) or 'none')}", self.here())
        return self._named[name]

    def _parameter(self, name: str, type_: ParameterLike) -> Parameter:
        span = self.here()
        none: Mapping[str, Any] = {}
        spelled, attributes = type_ if isinstance(type_, tuple) else (type_, none)
        parsed = parameter_of(spelled, span)
        entries = (*parsed.attributes.entries, *dictionary_of(attributes, span).entries)
        return Parameter(
            name=Name(_identifier(name, span), span), type=parsed.type, attributes=Dictionary(entries, span)
        )


@cache
def instruction_methods() -> tuple[str, ...]:
    """The methods of kernels that write instructions."""
    return tuple(n for n in dir(Kernel) if not n.startswith("_") and n != "here" and callable(getattr(Kernel, n)))


@checked
def kernel(
    name: str,
    /,
    *,
    subgroup_size: int | None = None,
    work_group_size: Sequence[int] | None = None,
    attributes: Mapping[str, Any] | None = None,
    **parameters: ParameterLike,
) -> Kernel:
    """A new kernel, to be written in a `with` block.

    Args:
        name: Its name.
        subgroup_size: Work-items of a subgroup.
        work_group_size: Work-items of a work-group in its two modes.
        attributes: Further attributes of the function.
        parameters: Types of the parameters by name: `A="memref<f32x4x8>"`, `A="memref<f32x?> {alignment=64}"` or
            `A=("memref<f32x?>", {"alignment": 64})`.

    Raises:
        UsageError: A name or a type is wrong, or an attribute is given twice.
        ProgramError: Types or attributes break rules of the language.
    """
    sizes = {"subgroup_size": subgroup_size, "work_group_size": work_group_size}
    set_sizes = {attribute: value for attribute, value in sizes.items() if value is not None}
    if twice := [attribute for attribute in set_sizes if attribute in (attributes or {})]:
        raise UsageError(f"kernel: {twice[0]} is given twice, as an argument and in attributes", place_of_call())
    return Kernel(name, parameters, {**set_sizes, **(attributes or {})})


@checked
def program(*kernels: Kernel) -> Program:
    """The syntax tree of several kernels.

    Raises:
        ProgramError: Two kernels have the same name.
    """
    result = Program([k.function for k in kernels])
    check_program(result)
    return result


@checked
def text(source: Program | Kernel) -> str:
    """The text of a program or a kernel, in version 2 of the language."""
    from tlx.frontends.tensor_language.syntax.printer import print_program

    return print_program(source if isinstance(source, Program) else Program([source.function]))


def _identifier(name: str, span: Span | None) -> str:
    if not name.isascii() or not name.isidentifier() or name.startswith("_"):
        raise UsageError(f"'{name}' is not a name: a letter, then letters, digits and underscores", span)
    return name
