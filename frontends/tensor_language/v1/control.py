"""Instructions with regions, and those that have no operands to speak of."""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast import collective, mixed
from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.types import BOOL
from tlx.frontends.tensor_language.v1 import tree as v1
from tlx.frontends.tensor_language.v1.builder import Builder
from tlx.frontends.tensor_language.wording import counted


def barrier(_: Builder, _i: v1.Barrier) -> mixed.Barrier:
    """`barrier`: what was written before is seen behind it, in version 2 only where the fences are named."""
    return mixed.Barrier(fence_global=True, fence_local=True)


def for_(b: Builder, i: v1.For) -> mixed.For:
    """`for`."""
    (type_,) = i.types
    start, stop = b.operand(i.start, type_), b.operand(i.stop, type_)
    step = None if i.step is None else b.operand(i.step, type_)
    body = b.region(i.body, (i.variable, type_.type))
    return mixed.For(variable=i.variable, start=start, stop=stop, step=step, body=body)


def foreach(b: Builder, i: v1.Foreach) -> collective.Foreach:
    """`foreach`, over one dimension."""
    (type_,) = i.types
    start, stop = b.operand(i.start, type_), b.operand(i.stop, type_)
    body = b.region(i.body, (i.variable, type_.type))
    return collective.Foreach(variables=(i.variable,), starts=(start,), stops=(stop,), body=body)


def if_(b: Builder, i: v1.If) -> mixed.If:
    """`if`."""
    given = i.condition
    condition = b.known(given) if isinstance(given, Name) else b.constant(given, BOOL)
    then = b.region(i.then)
    otherwise = None if i.otherwise is None else b.region(i.otherwise)
    return mixed.If(condition=condition, then=then, otherwise=otherwise, types=i.types)


def yield_(b: Builder, i: v1.Yield) -> mixed.Yield | None:
    """`yield`."""
    if len(i.values) != len(i.types):
        got = f"{counted(len(i.values), 'value')} and {counted(len(i.types), 'type')}"
        b.reports.add(f"yield takes a type for each value, got {got}", i.span)
        return None
    return mixed.Yield(values=tuple(b.operand(v, t) for v, t in zip(i.values, i.types, strict=True)))


RULES: Final = {
    v1.Barrier: barrier,
    v1.For: for_,
    v1.Foreach: foreach,
    v1.If: if_,
    v1.Yield: yield_,
}
