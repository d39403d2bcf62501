"""Checks a syntax tree: functions, parameters, and each instruction by its rule.

`check_program` visits a program once and reports every error. The rules of an operation are in `operations`, after
its entry in the table. A rule is a public function, found by the annotation of its second parameter
(`operations.core.rules_of`):

    check_size(context, node: Size) -> None                         reports what is wrong with an instruction
    spread_of_cast(context, node: Cast) -> Spread | None            the spread of its result in an SPMD region
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tlx.diagnostics import Note
from tlx.frontends.tensor_language.errors import Reports
from tlx.frontends.tensor_language.operations.attributes import check_function_attributes, check_parameter_attributes
from tlx.frontends.tensor_language.operations.context import FunctionCheck, OpenRegion
from tlx.frontends.tensor_language.operations.core import RegionKind
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Parameter, Program, Region
from tlx.frontends.tensor_language.types import CoopMatrixType, MemrefType, Type

__all__ = ["InstructionChecker", "check_program"]

# Functions of the C and OpenMP libraries that compiled kernels may call.
_CALLED: Final = frozenset(
    """GOMP_parallel aligned_alloc fmod fmodf free malloc memcpy memmove memset omp_get_num_threads
    omp_get_thread_num pow powf""".split()
)


def check_program(program: Program) -> None:
    """Check all functions.

    Raises:
        ProgramError: Rules are broken; it has all errors, each with its location.
    """
    reports = Reports()
    seen: dict[str, Name] = {}
    for function in program.functions:
        first = seen.get(function.name.text)
        if first is not None:
            message = f"function @{function.name.text} is already defined: choose another name"
            reports.add(message, function.name.span, Note("declared here", first.span))
        if function.name.text in _CALLED:
            message = f"compiled kernels call a library function {function.name.text}: choose another name"
            reports.add(message, function.name.span)
        seen[function.name.text] = first or function.name
        _check_function(function, reports)
    reports.finish()


def _check_function(function: Function, reports: Reports) -> None:
    context = FunctionCheck(reports)
    _check_head(context, function)
    context.run(function)


def _check_head(context: FunctionCheck, function: Function) -> None:
    check_function_attributes(context, function)
    for parameter in function.parameters:
        _check_parameter(context, parameter)


class InstructionChecker:
    """Checks the instructions of a function one by one while they are built.

    An instruction is checked against the types of its operands. The rules about regions are checked by `check_program`
    when the function is complete.

    Raises:
        ProgramError: Attributes or parameters of the function break rules.
    """

    def __init__(self, function: Function) -> None:
        reports = Reports()
        context = FunctionCheck(reports)
        _check_head(context, function)
        reports.finish()
        self._function = context

    def check(self, node: Instruction, operands: Iterable[tuple[Name, Type, Instruction | None]]) -> None:
        """Check an instruction.

        Args:
            node: The instruction.
            operands: The name, type and defining instruction of each operand; None for operands without one.

        Raises:
            ProgramError: It breaks rules.
        """
        single = _SingleInstruction(Reports())
        single.subgroup_size = self._function.subgroup_size
        single.groups_without_size = self._function.groups_without_size
        single.wide_factors = self._function.wide_factors
        for name, type_, origin in operands:
            single.define(name, type_, origin, None)
        single.instruction(node)
        single.reports.finish()


class _SingleInstruction(FunctionCheck):
    """Checks single instructions: the enclosing region does not matter, and nested regions are not visited."""

    def __init__(self, reports: Reports) -> None:
        super().__init__(reports)
        self.frame = OpenRegion("spmd", converged=False)

    def region(self, region: Region, owner: Instruction, **_more: Any) -> None:
        """Do nothing."""

    def wrong_region(self, node: Instruction, required: RegionKind) -> None:
        """Do not report anything."""


def _check_parameter(context: FunctionCheck, parameter: Parameter) -> None:
    type_ = parameter.type.type
    context.check_type(parameter.type)
    if isinstance(type_, CoopMatrixType):
        message = f"a parameter cannot be a coopmatrix, but {parameter.name} is {type_}: load it from a memref"
        context.error(message, parameter.type.span)
    elif isinstance(type_, MemrefType) and type_.address_space == "local":
        message = f"{parameter.name} must be global: local memory is inside a work-group, alloca gives it"
        context.error(message, parameter.type.span)
    check_parameter_attributes(context, parameter)
    context.define(parameter.name, type_)
