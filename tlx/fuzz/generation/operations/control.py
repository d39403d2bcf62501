"""Loops, calls and memory as statements, and calls that pass vectors by value.

    define <600 x float> @f0.0(<600 x float> %x, <600 x float> %y) {
      %z = fadd <600 x float> %x, %y
      ret <600 x float> %z
    }
    define void @f0(...) {
      ...
      %v9 = call <600 x float> @f0.0(<600 x float> %v7, <600 x float> %v8)

The lowering passes vectors of more than 4096 elements by pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.fuzz.generation.dataflow import (
    ELEMENTS,
    DataflowWriter,
    KnownValue,
    Operation,
    ValueFacts,
    facts_from_memory,
    unknown_facts,
)
from tlx.fuzz.generation.model import VECTOR_CONVENTIONS, ArrayParameter, BufferAddress, extent_in_memory
from tlx.fuzz.generation.operations.tensor import unary_facts
from tlx.fuzz.generation.writer import LoopCarried, dims_operand


def _loop(flow: DataflowWriter) -> KnownValue | None:
    """A loop that carries vectors: a phi each, and a value of the same type that follows it."""
    if flow.is_in_loop:
        return None
    rounds = flow.random.choice([2, 1, 3])
    starts = [flow.number() for _ in range(flow.random.choice([1, 1, 2]))]
    carried = [flow.carry(start.vector) for start in starts]
    with flow.loop(rounds, carried), flow.body():
        phis = [KnownValue(c.phi, _carried_facts(start)) for c, start in zip(carried, starts, strict=True)]
        flow.add(*phis)
        flow.statements(1, 4)
        following = [_following(flow, c, phi) for c, phi in zip(carried, phis, strict=True)]
    return following[0]


def _carried_facts(start: KnownValue) -> ValueFacts:
    """What holds in every round: nothing but that results are exact."""
    return unknown_facts(start.element) if not start.is_float else ValueFacts(zeros=False)


def _following(flow: DataflowWriter, carried: LoopCarried, phi: KnownValue) -> KnownValue:
    found = flow.found(lambda v: v.type.vector == phi.type.vector and v.facts.is_exact and v is not phi)
    if found is None or not found.vector.name.startswith("%"):
        other = flow.partner(phi)
        name = "fadd" if phi.is_float else "add"
        found = flow.instruction(f"{name} {{}}, {{}}", [phi, other], phi.element, _carried_facts(phi))
    carried.following.append(found.vector)
    flow.add(found)
    return found


def _call(flow: DataflowWriter) -> KnownValue | None:
    """A call of a function made before: its arrays are passed on; one that it wrote is read."""
    callees = [callee for callee in flow.callees if callee.steps is None]
    if not callees or flow.is_in_loop:
        return None
    callee = flow.random.choice(callees)
    buffers = [flow.forwarded(buffer) for buffer in callee.buffers]
    flow.call_function(callee, buffers)
    written = [b for b in buffers if b.written.all() and not b.ulps]
    if not written:
        return None
    buffer = flow.random.choice(written)
    type_ = flow.type_for(buffer.element, buffer.count)
    return KnownValue(flow.load_vector(BufferAddress(buffer), type_), _read_facts(buffer))


def _read_facts(buffer: ArrayParameter) -> ValueFacts:
    if not buffer.is_float:
        return unknown_facts(buffer.element)
    return ValueFacts(ulps=buffer.ulps, zeros=buffer.zeros)


def _reload(flow: DataflowWriter) -> KnownValue | None:
    """A value on its way through memory: stored with pitches, loaded again as it is or as another tensor."""
    x = flow.number(ELEMENTS)
    token = flow.any_token_of(x)
    pitches = flow.pitches(token.type, overlap=False)
    buffer = flow.buffer(x.element, extent_in_memory(token.type, pitches))
    buffer.zeros = x.facts.zeros
    flow.store(BufferAddress(buffer), token, pitches)
    loaded = flow.load(BufferAddress(buffer), token.type, pitches)
    vector = flow.call(f"{token.type.vector} {flow.callee('tovector')}(token {loaded.name})", token.type)
    return KnownValue(vector, x.facts.with_zero(), loaded)


def _update(flow: DataflowWriter) -> KnownValue | None:
    """An array that is read, computed with, and written again in place."""
    if flow.is_in_loop:
        return None
    type_ = flow.type_of(flow.extents(), flow.random.choice(ELEMENTS))
    pitches = flow.pitches(type_, overlap=False)
    contents = flow.contents(type_.element)
    place = flow.filled_place(type_, pitches, contents)
    token = flow.load(place, type_, pitches)
    vector = flow.call(f"{type_.vector} {flow.callee('tovector')}(token {token.name})", type_)
    old = KnownValue(vector, facts_from_memory(type_.element, contents).with_zero(), token)
    new = flow.partner(old)
    name = flow.random.choice(["fadd", "fsub"] if old.is_float else ["add", "sub", "xor"])
    facts = unknown_facts(type_.element) if not old.is_float else ValueFacts(zeros=old.facts.zeros and new.facts.zeros)
    result = flow.instruction(f"{name} {{}}, {{}}", [old, new], type_.element, facts)
    place.buffer.zeros = facts.zeros
    flow.store(place, flow.typeinfo(result.vector, type_), pitches)
    return result


CONTROL: Final[dict[str, Operation]] = {"loop": _loop, "call": _call, "reload": _reload, "update": _update}
_LARGE: Final = ((4097,), (65, 64), (5, 1000))


def _by_value(flow: DataflowWriter) -> KnownValue | None:
    """A call of a function of one or two vectors."""
    x = _large(flow) if flow.chance(0.3) else flow.number(ELEMENTS)
    kind = flow.random.choice([_same, _positive, _sum, _either])
    return kind(flow, x)


def _large(flow: DataflowWriter) -> KnownValue:
    """A new value that no signature holds as it is."""
    return flow.leaf_of(flow.type_of(flow.random.choice(_LARGE), flow.random.choice(ELEMENTS)))


def _same(flow: DataflowWriter, x: KnownValue) -> KnownValue:
    """What is taken is returned."""
    return _called(flow, [x], [f"ret {x.type.vector} %x"], x.facts)


def _positive(flow: DataflowWriter, x: KnownValue) -> KnownValue:
    """A tensor operation of what is taken."""
    vector, type_ = x.type.vector, x.type
    shown = ", ".join(map(dims_operand, (type_.shape, type_.layout, type_.padding)))
    lines = [
        f"%t = call token {flow.callee('typeinfo')}({vector} %x, {shown})",
        f"%z = call {vector} {flow.callee('relu')}(token %t)",
        f"ret {vector} %z",
    ]
    facts = unary_facts("relu", x)
    return _called(flow, [x], lines, facts.with_zero() if type_.is_padded else facts)


def _sum(flow: DataflowWriter, x: KnownValue) -> KnownValue:
    """An instruction on two that are taken."""
    y = flow.partner(x)
    opcode = "fadd" if x.is_float else flow.random.choice(["add", "xor", "sub"])
    lines = [f"%z = {opcode} {x.type.vector} %x, %y", f"ret {x.type.vector} %z"]
    zeros = x.facts.zeros and y.facts.zeros
    return _called(flow, [x, y], lines, ValueFacts(zeros=zeros) if x.is_float else unknown_facts(x.element))


def _either(flow: DataflowWriter, x: KnownValue) -> KnownValue:
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


def _called(
    flow: DataflowWriter, operands: Sequence[KnownValue], lines: Sequence[str], facts: ValueFacts, *scalars: str
) -> KnownValue:
    """A call of a new function with these lines."""
    first = operands[0].type
    parameters = [f"{first.vector} %{name}" for name, _ in zip("xy", operands, strict=False)]
    parameters += ["i32 %n" for _ in scalars]
    convention = flow.random.choice(VECTOR_CONVENTIONS)
    name = flow.define(first.vector, parameters, lines, convention)
    given = ", ".join([*(f"{first.vector} {operand.vector.name}" for operand in operands), *scalars])
    return KnownValue(
        flow.call(f"{convention} {first.vector} @{name}({given})".lstrip(), first), replace(facts, moderate=False)
    )


BY_VALUE: Final[dict[str, Operation]] = {"by-value": _by_value}
