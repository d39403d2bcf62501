"""Calls of tensor intrinsics in dataflow functions."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.fuzz.dataflow import Dataflow
from tlx.fuzz.flows import Facts, Flow
from tlx.fuzz.writer import Token, dims
from tlx.intrinsics import RuleError, lookup
from tlx.ir.types import Type
from tlx.types import TensorType


def typed_result(
    flow: Dataflow,
    name: str,
    types: Sequence[TensorType],
    element: Type,
    operands: Sequence[tuple[int, ...]] = (),
) -> TensorType | None:
    """One of the results that a call may have; None where the operands do not go together."""
    row = lookup(f"llvm.tensor.{name}")
    if row is None:
        return None
    try:
        allowed = row.infer(types, operands, element)
    except RuleError:
        return None
    counts = [type_.count for type_ in allowed]
    told = [t for at, t in enumerate(allowed) if at == 0 or counts.count(t.count) == 1]
    return flow.random.choice([told[0], flow.random.choice(told)])


def called(flow: Dataflow, name: str, result: TensorType, operands: Sequence[str], facts: Facts) -> Flow:
    """The call of an operation."""
    text = f"{result.vector} {flow.callee(name)}({', '.join(operands)})"
    return Flow(flow.call(text, result), facts.with_zero() if result.is_padded else facts)


def token_words(tokens: Sequence[Token]) -> list[str]:
    """Tokens as arguments."""
    return [f"token {token.name}" for token in tokens]


def finished(
    flow: Dataflow,
    name: str,
    element: Type,
    tokens: list[Token],
    facts: Facts,
    operands: Sequence[tuple[int, ...]] = (),
) -> Flow | None:
    """An operation on tokens and constant vectors; None where they do not go together."""
    result = typed_result(flow, name, [token.type for token in tokens], element, operands)
    if result is None:
        return None
    return called(flow, name, result, [*token_words(tokens), *map(dims, operands)], facts)
