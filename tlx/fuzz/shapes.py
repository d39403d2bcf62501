"""Tensor intrinsics that move or reduce elements, as statements of dataflow functions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from tlx.fuzz.arrays import EXACT
from tlx.fuzz.dataflow import ELEMENTS, INTEGERS, Dataflow, facts_of
from tlx.fuzz.flows import Facts, Flow, ranged, unknown
from tlx.fuzz.operation import Operation
from tlx.fuzz.tensor_calls import called, finished, token_words, typed_result
from tlx.fuzz.writer import Token, dims


def _moved(flow: Dataflow) -> tuple[Flow, Token]:
    x = flow.mask() if flow.chance(0.1) else flow.number(ELEMENTS, exact=False)
    return x, flow.any_token_of(x)


def _transpose(flow: Dataflow) -> Flow | None:
    x, token = _moved(flow)
    if token.type.rank > 1 and flow.chance(0.3):
        return finished(flow, "transpose", x.element, [token], x.facts)
    layout = tuple(flow.random.sample(range(token.type.rank), token.type.rank))
    return finished(flow, "transpose", x.element, [token], x.facts, [layout])


def _tovector(flow: Dataflow) -> Flow | None:
    x, token = _moved(flow)
    return finished(flow, "tovector", x.element, [token], x.facts)


def _broadcast(flow: Dataflow) -> Flow | None:
    x, token = _moved(flow)
    if flow.chance(0.3):
        scalar, facts = flow.scalar(x.element)
        result = typed_result(flow, "broadcast", [token.type], x.element)
        return result and called(flow, "broadcast", result, [*token_words([token]), f"{x.element} {scalar}"], facts)
    extents = token.type.extents
    rank = flow.random.randint(len(extents), 4) if len(extents) < 4 else len(extents)
    places = flow.random.sample(range(rank), len(extents))
    room = max(1, flow.profile.room // token.type.count)
    shape = [flow.random.choice([e for e in (2, 1, 3, 5, 16) if e <= room]) if room > 1 else 1 for _ in range(rank)]
    for place, extent in zip(places, extents, strict=True):
        shape[place] = extent if extent > 1 else shape[place]
    if math.prod(shape) > 2 * flow.profile.room:
        return None
    return finished(flow, "broadcast", x.element, [token], x.facts, [tuple(shape), tuple(places)])


def _pad(flow: Dataflow) -> Flow | None:
    x, token = _moved(flow)
    extents = token.type.extents
    interior = [0 if flow.chance(0.6) else flow.random.choice([0, 1, 2]) for _ in extents]
    low = [flow.random.choice([1, 0, 2, 5, -1]) for _ in extents]
    high = [flow.random.choice([0, 1, 3, -1, -2]) for _ in extents]
    sizes = [lo + e + (e - 1) * i + hi for lo, e, i, hi in zip(low, extents, interior, high, strict=True)]
    if min(sizes) < 1 or math.prod(sizes) > 2 * flow.profile.room:
        return None
    operands = [tuple(low), tuple(high)] + ([tuple(interior)] if any(interior) or flow.chance(0.2) else [])
    result = typed_result(flow, "pad", [token.type], x.element, operands)
    if result is None:
        return None
    scalar, facts = flow.scalar(x.element)
    shown = [*map(dims, operands[:2]), f"{x.element} {scalar}", *map(dims, operands[2:])]
    return called(flow, "pad", result, [*token_words([token]), *shown], x.facts.joined(facts))


def _concat(flow: Dataflow) -> Flow | None:
    x, token = _moved(flow)
    axis = flow.random.randrange(token.type.rank)
    tokens, facts = [token], x.facts
    for _ in range(flow.random.randint(1, 3)):
        extents = list(token.type.extents)
        extents[axis] = flow.random.choice([1, extents[axis], 3])
        contents = flow.contents(x.element)
        tokens.append(flow.loaded(flow.type_of(extents, x.element), contents))
        facts = facts.joined(facts_of(x.element, contents))
    if sum(t.type.count for t in tokens) > 2 * flow.profile.room:
        return None
    result = typed_result(flow, "concat", [t.type for t in tokens], x.element, [(axis,)])
    return result and called(flow, "concat", result, [*token_words(tokens), f"i32 {axis}"], facts)


def _block(flow: Dataflow) -> Flow | None:
    x, token = _moved(flow)
    listed = [flow.random.randrange(token.type.rank) for _ in range(flow.random.choice([1, 1, 2, 3]))]
    sizes = [flow.random.choice([2, 4, 1, 3, 16]) for _ in listed]
    if token.type.rank + len(listed) > 6 or token.type.count * math.prod(sizes) > 4 * flow.profile.room:
        return None
    return finished(flow, "reshape.block", x.element, [token], x.facts.with_zero(), [tuple(listed), tuple(sizes)])


def _permute(flow: Dataflow) -> Flow | None:
    x, token = _moved(flow)
    order = tuple(flow.random.sample(range(token.type.rank), token.type.rank))
    count = math.prod(token.type.extents)
    shape = flow.factored(count) if flow.chance(0.6) else tuple(token.type.extents[d] for d in order)
    return finished(flow, "reshape.permute", x.element, [token], x.facts, [order, shape])


def _reduce(name: str) -> Operation:
    elements = INTEGERS if name in ("and", "or", "xor") else ELEMENTS

    def operation(flow: Dataflow) -> Flow | None:
        sums = name in ("add", "mul")
        x = flow.mask() if flow.chance(0.1) else flow.number(elements, integral=sums)
        token = flow.any_token_of(x)
        window = tuple(
            flow.random.choice([extent, 1, min(extent, 2), max(1, extent // 2), min(extent, 3)])
            for extent in token.type.extents
        )
        strides = tuple(flow.random.choice([1, w, 2, 3]) for w in window)
        facts = _reduced(name, x, math.prod(window))
        return facts and finished(flow, f"reduce.{name}", x.element, [token], facts, [window, strides])

    return operation


def _reduced(name: str, x: Flow, count: int) -> Facts | None:
    """What is known of a reduction; None where floats would be rounded."""
    if not x.is_float:
        return x.facts if name in ("max", "min") else unknown(x.element)
    if name in ("max", "min"):
        return replace(x.facts, zeros=False)
    bound = max(1, x.facts.bound)
    if name == "mul" and bound > 1 and count > 60:
        return None
    most = count * bound if name == "add" else bound**count
    return ranged(x.element, -most, most, zeros=False) if most <= EXACT[x.element] else None


SHAPES: Final[dict[str, Operation]] = {
    "transpose": _transpose,
    "tovector": _tovector,
    "broadcast": _broadcast,
    **{f"reduce.{name}": _reduce(name) for name in "add mul max min and or xor".split()},
    "pad": _pad,
    "concat": _concat,
    "reshape.block": _block,
    "reshape.permute": _permute,
}
