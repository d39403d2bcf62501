"""Statements for control flow and memory: loops, calls, loads and stores; calls that pass vectors by value.

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
from tlx.fuzz.generation.writer import TokenValue, dims_operand
from tlx.ir.types import I64


def _loop(writer: DataflowWriter) -> KnownValue | None:
    """A loop that carries vectors by phis."""
    if writer.is_in_loop:
        return None
    count = writer.random.choice([2, 1, 3])
    starts = [writer.number() for _ in range(writer.random.choice([1, 1, 2]))]
    carried = [writer.carry(start.vector) for start in starts]
    with writer.loop(count, carried), writer.body():
        phis = [KnownValue(c.phi, _carried_facts(start)) for c, start in zip(carried, starts, strict=True)]
        writer.add(*phis)
        writer.statements(1, 4)
        following = [_following(writer, phi) for phi in phis]
        for c, value in zip(carried, following, strict=True):
            c.following.append(value.vector)
    return following[0]


def _while(writer: DataflowWriter) -> KnownValue | None:
    """A loop whose trip count, possibly 0, is read from memory; only what it carries is used after it."""
    if writer.is_in_loop:
        return None
    start = writer.number()
    trips = writer.number_in_memory(I64, writer.random.choice([2, 0, 1, 3]))
    index, following, again = (writer.fresh(stem) for stem in ("i", "next", "again"))
    head, body, done = (writer.fresh(stem)[1:] for stem in ("while", "body", "done"))
    before, phi = writer.label, writer.vector("phi", start.type)
    writer.line(f"br label %{head}")
    writer.begin(head)
    phis = writer.deferred()
    writer.line(f"{again} = icmp ult i64 {index}, {trips}")
    writer.line(f"br i1 {again}, label %{body}, label %{done}")
    writer.begin(body)
    value = KnownValue(phi, _carried_facts(start))
    with writer.scope(), writer.body():
        writer.add(value)
        writer.statements(1, 3)
        changed = _following(writer, value)
    writer.line(f"{following} = add i64 {index}, 1")
    writer.line(f"br label %{head}")
    phis(
        f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{writer.label} ]",
        f"{phi.name} = phi {writer.vector_type(phi.type)} "
        f"[ {start.vector.name}, %{before} ], [ {changed.vector.name}, %{writer.label} ]",
    )
    writer.begin(done)
    return value


def _branch(writer: DataflowWriter) -> KnownValue | None:
    """A vector from either of two branches, whose other results are stored in them."""
    if writer.is_in_loop:
        return None
    start = writer.number()
    condition = writer.condition()
    yes, no, join = (writer.fresh(stem)[1:] for stem in ("yes", "no", "join"))
    writer.line(f"br i1 {condition}, label %{yes}, label %{no}")
    results: list[tuple[KnownValue, str]] = []
    for label in (yes, no):
        writer.begin(label)
        with writer.scope(), writer.body():
            if label == yes or writer.chance(0.5):
                writer.statements(1, 3)
            result = _following(writer, start) if label == yes or writer.chance(0.5) else start
        results.append((result, writer.label))
        writer.line(f"br label %{join}")
    writer.begin(join)
    incoming = ", ".join(f"[ {result.vector.name}, %{label} ]" for result, label in results)
    vector = writer.let(f"phi {writer.vector_type(start.type)} {incoming}", start.type)
    return KnownValue(vector, _carried_facts(start).joined(start.facts))


def _carried_facts(start: KnownValue) -> ValueFacts:
    """The facts that hold in every iteration: only that results are exact."""
    return unknown_facts(start.element) if not start.is_float else ValueFacts(zeros=False)


def _following(writer: DataflowWriter, phi: KnownValue) -> KnownValue:
    """Another vector of the same type as a loop's phi, or as a vector before a branch."""
    following = writer.existing(lambda v: v.type.vector == phi.type.vector and v.facts.is_exact and v is not phi)
    if following is None or not following.vector.name.startswith("%"):
        other = writer.partner(phi)
        name = "fadd" if phi.is_float else "add"
        following = writer.instruction(f"{name} {{}}, {{}}", [phi, other], phi.element, _carried_facts(phi))
    writer.add(following)
    return following


def _call(writer: DataflowWriter) -> KnownValue | None:
    """A call of an earlier function, followed by a load of an array that it wrote."""
    callees = [callee for callee in writer.callees if callee.steps is None]
    if not callees or writer.is_in_loop:
        return None
    callee = writer.random.choice(callees)
    buffers = [writer.forwarded(buffer) for buffer in callee.buffers]
    writer.call_function(callee, buffers)
    written = [b for b in buffers if b.written.all() and not b.ulps]
    if not written:
        return None
    buffer = writer.random.choice(written)
    type_ = writer.type_for(buffer.element, buffer.count)
    return KnownValue(writer.load_vector(BufferAddress(buffer), type_), _read_facts(buffer))


def _read_facts(buffer: ArrayParameter) -> ValueFacts:
    if not buffer.is_float:
        return unknown_facts(buffer.element)
    return ValueFacts(ulps=buffer.ulps, zeros=buffer.zeros)


def _reload(writer: DataflowWriter) -> KnownValue | None:
    """A value stored with pitches and loaded again, possibly with another type."""
    x = writer.number(ELEMENTS)
    token = writer.any_token_of(x)
    pitches = writer.pitches(token.type, overlap=False)
    count = extent_in_memory(token.type, pitches)
    if writer.chance(0.4) and not writer.is_run_time:
        place = writer.stack_array(x.element, count)
    else:
        place = BufferAddress(writer.buffer(x.element, count))
    place.buffer.zeros = x.facts.zeros
    writer.store(place, token, pitches)
    loaded = writer.load(place, token.type, pitches)
    vector = writer.call(
        f"{writer.vector_type(token.type)} {writer.callee('tovector')}(token {loaded.name})", token.type
    )
    return KnownValue(vector, x.facts.with_zero(), loaded)


def _update(writer: DataflowWriter) -> KnownValue | None:
    """An update of an array in place: load, compute, store."""
    if writer.is_in_loop:
        return None
    place, pitches, token = _loaded_from_array(writer, overlap=False)
    type_ = token.type
    old = KnownValue(writer.tovector(token), _facts_of_loaded(place), token)
    new = writer.partner(old)
    name = writer.random.choice(["fadd", "fsub"] if old.is_float else ["add", "sub", "xor"])
    facts = unknown_facts(type_.element) if not old.is_float else ValueFacts(zeros=old.facts.zeros and new.facts.zeros)
    result = writer.instruction(f"{name} {{}}, {{}}", [old, new], type_.element, facts)
    place.buffer.zeros = facts.zeros
    writer.store(place, writer.typeinfo(result.vector, type_), pitches)
    return result


def _overwritten(writer: DataflowWriter) -> KnownValue | None:
    """A tensor that is loaded before its memory is written: an element, or all bytes."""
    if writer.is_in_loop:
        return None
    place, _, token = _loaded_from_array(writer, overlap=True)
    early = writer.tovector(token) if writer.chance(0.3) else None
    if writer.chance(0.5):
        writer.clear(place.buffer)
    else:
        scalar, _ = writer.scalar(token.type.element)
        writer.store_scalar(BufferAddress(place.buffer, writer.random.randrange(place.buffer.count)), scalar)
    place.buffer.zeros = True
    return KnownValue(early or writer.tovector(token), _facts_of_loaded(place), token)


def _loaded_from_array(writer: DataflowWriter, *, overlap: bool) -> tuple[BufferAddress, list[int], TokenValue]:
    """A tensor loaded from a new array, with its address and pitches; whether its rows may overlap."""
    type_ = writer.type_of(writer.extents(), writer.random.choice(ELEMENTS))
    pitches = writer.pitches(type_, overlap=overlap)
    place = writer.filled_place(type_, pitches, writer.contents(type_.element))
    return place, pitches, writer.load(place, type_, pitches)


def _facts_of_loaded(place: BufferAddress) -> ValueFacts:
    """The facts about a tensor loaded from an array; its padding is zero."""
    return facts_from_memory(place.buffer.element, place.buffer.contents).with_zero()


CONTROL: Final[dict[str, Operation]] = {
    "loop": _loop,
    "while": _while,
    "branch": _branch,
    "call": _call,
    "reload": _reload,
    "update": _update,
    "overwritten": _overwritten,
}
_LARGE: Final = ((4097,), (65, 64), (5, 1000))


def _by_value(writer: DataflowWriter) -> KnownValue | None:
    """A call of a function that takes one or two vectors by value."""
    x = _large(writer) if writer.chance(0.3) else writer.number(ELEMENTS)
    kind = writer.random.choice([_same, _positive, _sum, _either])
    return kind(writer, x)


def _large(writer: DataflowWriter) -> KnownValue:
    """A new value of more than 4096 elements, which signatures pass by pointer."""
    return writer.leaf_of(writer.type_of(writer.random.choice(_LARGE), writer.random.choice(ELEMENTS)))


def _same(writer: DataflowWriter, x: KnownValue) -> KnownValue:
    """A function that returns its argument."""
    return _called(writer, [x], [f"ret {x.type.vector} %x"], x.facts)


def _positive(writer: DataflowWriter, x: KnownValue) -> KnownValue:
    """A function that applies a tensor operation to its argument."""
    vector, type_ = x.type.vector, x.type
    shown = ", ".join(map(dims_operand, (type_.shape, type_.layout, type_.padding)))
    lines = [
        f"%t = call token {writer.callee('typeinfo')}({vector} %x, {shown})",
        f"%z = call {vector} {writer.callee('relu')}(token %t)",
        f"ret {vector} %z",
    ]
    facts = unary_facts("relu", x)
    return _called(writer, [x], lines, facts.with_zero() if type_.is_padded else facts)


def _sum(writer: DataflowWriter, x: KnownValue) -> KnownValue:
    """A function that applies an instruction to its two arguments."""
    y = writer.partner(x)
    opcode = "fadd" if x.is_float else writer.random.choice(["add", "xor", "sub"])
    lines = [f"%z = {opcode} {x.type.vector} %x, %y", f"ret {x.type.vector} %z"]
    zeros = x.facts.zeros and y.facts.zeros
    return _called(writer, [x, y], lines, ValueFacts(zeros=zeros) if x.is_float else unknown_facts(x.element))


def _either(writer: DataflowWriter, x: KnownValue) -> KnownValue:
    """A function that returns one of its two arguments, by a branch."""
    y = writer.partner(x)
    vector = x.type.vector
    lines = [
        f"%c = icmp eq i32 %n, {writer.random.choice([1, 2])}",
        "br i1 %c, label %yes, label %no",
        "yes:",
        f"ret {vector} %x",
        "no:",
        f"ret {vector} %y",
    ]
    return _called(writer, [x, y], lines, x.facts.joined(y.facts), "i32 1")


def _called(
    writer: DataflowWriter, operands: Sequence[KnownValue], lines: Sequence[str], facts: ValueFacts, *scalars: str
) -> KnownValue:
    """A call of a new function with this body."""
    first = operands[0].type
    parameters = [f"{first.vector} %{name}" for name, _ in zip("xy", operands, strict=False)]
    parameters += ["i32 %n" for _ in scalars]
    convention = writer.random.choice(VECTOR_CONVENTIONS)
    name = writer.define(first.vector, parameters, lines, convention)
    arguments = ", ".join([*(f"{first.vector} {operand.vector.name}" for operand in operands), *scalars])
    return KnownValue(
        writer.call(f"{convention} {first.vector} @{name}({arguments})".lstrip(), first), replace(facts, moderate=False)
    )


BY_VALUE: Final[dict[str, Operation]] = {"by-value": _by_value}
