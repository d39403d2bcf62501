"""From the syntax tree of the first version to that of the second, instruction by instruction.

The rules stand by topic in `blas`, `control`, `scalars` and `views`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any, Final

from tlx.frontends.tensor_language.calling.signature import GROUPS_WITHOUT_SIZE
from tlx.frontends.tensor_language.errors import Reports
from tlx.frontends.tensor_language.rules import rules_of
from tlx.frontends.tensor_language.syntax.ast.base import (
    WIDE_FACTORS,
    Attribute,
    Dictionary,
    Function,
    Instruction,
    NamedAttribute,
    Program,
    TypeRef,
)
from tlx.frontends.tensor_language.types import GroupType
from tlx.frontends.tensor_language.v1.context import Converter, FreshNames, Scope

Rule = Callable[[Converter, Any], Instruction | None]
"""Gives the instruction of version 2, None where an error was reported; what it needs before it is written at once."""

_PACKAGE: Final = "tlx.frontends.tensor_language.v1"


def convert(program: Program, taken: frozenset[str], lost: set[str], reports: Reports) -> Program:
    """The program in version 2.

    Args:
        program: A program whose regions hold instructions of version 1.
        taken: Names of its text, which are not used for new values.
        lost: Names that may be bound by parts of the text that could not be read.
        reports: Where errors go; where there are any, parts of the result are missing.
    """
    return Program(
        [_function(function, FreshNames(taken), Scope(reports, lost), reports) for function in program.functions]
    )


def _function(function: Function, names: FreshNames, scope: Scope, reports: Reports) -> Function:
    b = Converter(reports, names, scope, _instruction)
    body = b.region(function.body, *((p.name, p.type.type) for p in function.parameters))
    return Function(
        name=function.name,
        parameters=function.parameters,
        attributes=_attributes(function, wide_factors=b.has_wide_factors),
        body=body,
        span=function.span,
    )


def _attributes(function: Function, *, wide_factors: bool) -> Dictionary:
    """The attributes, and what version 2 must be told: nobody passes the sizes of groups, factors may be wide."""
    has_groups = any(isinstance(p.type.type, GroupType) for p in function.parameters)
    more = [name for name, given in ((GROUPS_WITHOUT_SIZE, has_groups), (WIDE_FACTORS, wide_factors)) if given]
    if not more:
        return function.attributes
    entries = [NamedAttribute(name, quoted=True, value=Attribute(True)) for name in more]
    return Dictionary((*function.attributes.entries, *entries), function.attributes.span)


def _instruction(b: Converter, i: Instruction) -> None:
    rule: Rule = rules_of(_PACKAGE)[type(i)]
    converted = rule(b, i)
    types = () if converted is None else converted.types
    for name, type_ in zip_longest(i.results, types[: len(i.results)]):
        b.scope.bind(name, None if type_ is None else type_.type)
    if converted is not None:
        converted.results, converted.span = i.results, i.span
        converted.types = tuple(TypeRef(t.type, t.span or i.span) for t in types)
        b.add(converted)
