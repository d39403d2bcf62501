"""Loops, calls and memory as statements of dataflow functions."""

from __future__ import annotations

from typing import Final

from tlx.fuzz.arrays import Buffer
from tlx.fuzz.dataflow import ELEMENTS, Dataflow, facts_of
from tlx.fuzz.flows import Facts, Flow, unknown
from tlx.fuzz.model import Place, reach
from tlx.fuzz.operation import Operation
from tlx.fuzz.writer import Carried


def _loop(flow: Dataflow) -> Flow | None:
    """A loop that carries vectors: a phi each, and a value of the same type that follows it."""
    if flow.is_in_loop:
        return None
    rounds = flow.random.choice([2, 1, 3])
    starts = [flow.number() for _ in range(flow.random.choice([1, 1, 2]))]
    carried = [flow.carry(start.vector) for start in starts]
    with flow.loop(rounds, carried), flow.body():
        phis = [Flow(c.phi, _carried_facts(start)) for c, start in zip(carried, starts, strict=True)]
        flow.add(*phis)
        flow.statements(1, 4)
        following = [_following(flow, c, phi) for c, phi in zip(carried, phis, strict=True)]
    return following[0]


def _carried_facts(start: Flow) -> Facts:
    """What holds in every round: nothing but that results are exact."""
    return unknown(start.element) if not start.is_float else Facts(zeros=False)


def _following(flow: Dataflow, carried: Carried, phi: Flow) -> Flow:
    found = flow.found(lambda v: v.type.vector == phi.type.vector and v.facts.is_exact and v is not phi)
    if found is None or not found.vector.name.startswith("%"):
        other = flow.partner(phi)
        name = "fadd" if phi.is_float else "add"
        found = flow.instruction(f"{name} {{}}, {{}}", [phi, other], phi.element, _carried_facts(phi))
    carried.following.append(found.vector)
    flow.add(found)
    return found


def _call(flow: Dataflow) -> Flow | None:
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
    return Flow(flow.load_vector(Place(buffer), type_), _read_facts(buffer))


def _read_facts(buffer: Buffer) -> Facts:
    if not buffer.is_float:
        return unknown(buffer.element)
    return Facts(ulps=buffer.ulps, zeros=buffer.zeros)


def _reload(flow: Dataflow) -> Flow | None:
    """A value on its way through memory: stored with pitches, loaded again as it is or as another tensor."""
    x = flow.number(ELEMENTS)
    token = flow.any_token_of(x)
    pitches = flow.pitches(token.type, overlap=False)
    buffer = flow.buffer(x.element, reach(token.type, pitches))
    buffer.zeros = x.facts.zeros
    flow.store(Place(buffer), token, pitches)
    loaded = flow.load(Place(buffer), token.type, pitches)
    vector = flow.call(f"{token.type.vector} {flow.callee('tovector')}(token {loaded.name})", token.type)
    return Flow(vector, x.facts.with_zero(), loaded)


def _update(flow: Dataflow) -> Flow | None:
    """An array that is read, computed with, and written again in place."""
    if flow.is_in_loop:
        return None
    type_ = flow.type_of(flow.extents(), flow.random.choice(ELEMENTS))
    pitches = flow.pitches(type_, overlap=False)
    contents = flow.contents(type_.element)
    place = flow.filled_place(type_, pitches, contents)
    token = flow.load(place, type_, pitches)
    vector = flow.call(f"{type_.vector} {flow.callee('tovector')}(token {token.name})", type_)
    old = Flow(vector, facts_of(type_.element, contents).with_zero(), token)
    new = flow.partner(old)
    name = flow.random.choice(["fadd", "fsub"] if old.is_float else ["add", "sub", "xor"])
    facts = unknown(type_.element) if not old.is_float else Facts(zeros=old.facts.zeros and new.facts.zeros)
    result = flow.instruction(f"{name} {{}}, {{}}", [old, new], type_.element, facts)
    place.buffer.zeros = facts.zeros
    flow.store(place, flow.typeinfo(result.vector, type_), pitches)
    return result


CONTROL: Final[dict[str, Operation]] = {"loop": _loop, "call": _call, "reload": _reload, "update": _update}
