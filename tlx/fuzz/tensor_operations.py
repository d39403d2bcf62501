"""Tensor intrinsics as statements of dataflow functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.fuzz.dataflow import FLOATS, INTEGERS, Dataflow
from tlx.fuzz.flows import Facts, Flow
from tlx.fuzz.operation import Operation
from tlx.fuzz.products import PRODUCTS
from tlx.fuzz.shapes import SHAPES
from tlx.fuzz.tensor_calls import called, token_words
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, Type

_ULPS: Final = 5.0
"""What the language allows (4), and the evaluator's own rounding."""
_NARROW_ULPS: Final = 2.0
"""Half and bfloat: computed in float and rounded."""


def ulps_of(element: Type) -> float:
    """By how many units in the last place results of elementary functions may differ."""
    return _NARROW_ULPS if element in (HALF, BFLOAT) else _ULPS


def _unary(name: str) -> Operation:
    def operation(flow: Dataflow) -> Flow | None:
        x = flow.number((*FLOATS, *INTEGERS) if name == "relu" else FLOATS)
        token = flow.any_token_of(x)
        return called(flow, name, token.type, token_words([token]), unary_facts(name, x))

    return operation


def unary_facts(name: str, x: Flow) -> Facts:
    """What is known of a function of one number."""
    facts = x.facts
    if name == "relu":
        return replace(facts, low=max(facts.low, 0), high=max(facts.high, 0), zeros=not x.is_float)
    if name in ("floor", "ceil"):
        return facts
    if name == "fabs":
        return replace(facts, low=0, high=facts.bound)
    if name == "sqrt":
        return Facts(zeros=facts.zeros)
    moderate = facts.integral and facts.bound <= 20 and x.element in (FLOAT, DOUBLE)
    return Facts(ulps=ulps_of(x.element), zeros=facts.zeros, moderate=moderate)


TENSORS: Final[dict[str, Operation]] = {
    **PRODUCTS,
    **{name: _unary(name) for name in "relu fabs sqrt floor ceil tanh sigmoid sin cos exp exp2 log log2 log10".split()},
    **SHAPES,
}
