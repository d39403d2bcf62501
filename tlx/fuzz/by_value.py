"""Functions that take and return flattened vectors of any size by value, as statements of dataflow functions.

    define <600 x float> @f0.0(<600 x float> %x, <600 x float> %y) {
      %z = fadd <600 x float> %x, %y
      ret <600 x float> %z
    }
    define void @f0(...) {
      ...
      %v9 = call <600 x float> @f0.0(<600 x float> %v7, <600 x float> %v8)

Those of more than 4096 elements are passed by pointer once the program is lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.fuzz.calling import OF_VECTORS
from tlx.fuzz.dataflow import ELEMENTS, Dataflow
from tlx.fuzz.flows import Facts, Flow, unknown
from tlx.fuzz.operation import Operation
from tlx.fuzz.tensor_operations import unary_facts
from tlx.fuzz.writer import dims

_LARGE: Final = ((4097,), (65, 64), (5, 1000))


def _by_value(flow: Dataflow) -> Flow | None:
    """A call of a function of one or two vectors."""
    x = _large(flow) if flow.chance(0.3) else flow.number(ELEMENTS)
    kind = flow.random.choice([_same, _positive, _sum, _either])
    return kind(flow, x)


def _large(flow: Dataflow) -> Flow:
    """A new value that no signature holds as it is."""
    return flow.leaf_of(flow.type_of(flow.random.choice(_LARGE), flow.random.choice(ELEMENTS)))


def _same(flow: Dataflow, x: Flow) -> Flow:
    """What is taken is returned."""
    return _called(flow, [x], [f"ret {x.type.vector} %x"], x.facts)


def _positive(flow: Dataflow, x: Flow) -> Flow:
    """A tensor operation of what is taken."""
    vector, type_ = x.type.vector, x.type
    shown = ", ".join(map(dims, (type_.shape, type_.layout, type_.padding)))
    lines = [
        f"%t = call token {flow.callee('typeinfo')}({vector} %x, {shown})",
        f"%z = call {vector} {flow.callee('relu')}(token %t)",
        f"ret {vector} %z",
    ]
    facts = unary_facts("relu", x)
    return _called(flow, [x], lines, facts.with_zero() if type_.is_padded else facts)


def _sum(flow: Dataflow, x: Flow) -> Flow:
    """An instruction on two that are taken."""
    y = flow.partner(x)
    opcode = "fadd" if x.is_float else flow.random.choice(["add", "xor", "sub"])
    lines = [f"%z = {opcode} {x.type.vector} %x, %y", f"ret {x.type.vector} %z"]
    zeros = x.facts.zeros and y.facts.zeros
    return _called(flow, [x, y], lines, Facts(zeros=zeros) if x.is_float else unknown(x.element))


def _either(flow: Dataflow, x: Flow) -> Flow:
    """One of two that are taken, by way of branches."""
    y = flow.partner(x)
    vector = x.type.vector
    lines = [
        f"%c = icmp eq i32 %n, {flow.random.choice([1, 2])}",
        "br i1 %c, label %yes, label %no",
        "yes:",
        f"ret {vector} %x",
        "no:",
        f"ret {vector} %y",
    ]
    return _called(flow, [x, y], lines, x.facts.joined(y.facts), "i32 1")


def _called(flow: Dataflow, operands: Sequence[Flow], lines: Sequence[str], facts: Facts, *scalars: str) -> Flow:
    """A call of a new function with these lines."""
    first = operands[0].type
    parameters = [f"{first.vector} %{name}" for name, _ in zip("xy", operands, strict=False)]
    parameters += ["i32 %n" for _ in scalars]
    convention = flow.random.choice(OF_VECTORS)
    name = flow.define(first.vector, parameters, lines, convention)
    given = ", ".join([*(f"{first.vector} {operand.vector.name}" for operand in operands), *scalars])
    return Flow(
        flow.call(f"{convention} {first.vector} @{name}({given})".lstrip(), first), replace(facts, moderate=False)
    )


BY_VALUE: Final[dict[str, Operation]] = {"by-value": _by_value}
