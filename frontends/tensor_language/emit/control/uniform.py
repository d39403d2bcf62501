"""`if` and `for` where all work-items of a subgroup go the same way: branches, phis, metadata for unrolling.

unroll=true      br i1 %again, label %for, label %endfor, !llvm.loop !0
                 !0 = distinct !{!0, !1}
                 !1 = !{!"llvm.loop.unroll.enable"}
unroll=false     !1 = !{!"llvm.loop.unroll.disable"}
unroll=4         !1 = !{!"llvm.loop.unroll.count", i32 4}

%x = if %c -> (f32) { ... yield (%a) } else { ... yield (%b) }

  br i1 %c, label %then, label %else
then:   ...  br label %end
else:   ...  br label %end
end:    %x = phi float [ %a, %then ], [ %b, %else ]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masks import to_uniform
from tlx.frontends.tensor_language.emit.numbers import constant, is_int, linear_number, unify_values, vary
from tlx.frontends.tensor_language.emit.values import Emitted, Interval, Matrix, Number, loop_interval
from tlx.frontends.tensor_language.operations.control import For, If
from tlx.frontends.tensor_language.syntax.nodes import Region
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Raw
from tlx.ir.transform.rewrite import add_incoming
from tlx.ir.values import Value


def branch_back(e: Emitter, i: For, again: Value, body: Block, end: Block) -> None:
    """The branch at the end of a loop."""
    e.b.branch_if(again, body, end)
    wish = _wish(i)
    if wish is not None:
        branch = e.b.block.instructions[-1]
        branch.trailer = f", !llvm.loop !{_loop_node(e, wish)}"
        branch.text += branch.trailer


def _wish(i: For) -> str | None:
    attribute = i.attributes.get("unroll")
    if attribute is None:
        return None
    value = attribute.value
    if isinstance(value, bool):
        return f'!"llvm.loop.unroll.{"enable" if value else "disable"}"'
    assert isinstance(value, int), "the checker lets it be nothing else"
    return f'!"llvm.loop.unroll.count", i32 {value}'


def _loop_node(e: Emitter, wish: str) -> int:
    """The number of a new node for a loop."""
    module = e.b.module
    number = len(re.findall(r"(?m)^!\d+ = ", module.raw_text()))
    module.items.append(Raw(f"\n!{number} = distinct !{{!{number}, !{number + 1}}}\n!{number + 1} = !{{{wish}}}\n"))
    return number


_T = TypeVar("_T", bound=Emitted)


def uniform_if(e: Emitter, i: If, condition: Value) -> None:
    """An `if` that all active work-items take the same way."""
    b = e.b
    then = b.new_block("then")
    otherwise = b.new_block("else", then) if i.otherwise is not None else None
    end = b.new_block("endif", otherwise or then)
    b.branch_if(condition, then, otherwise or end)
    arms = [_arm(e, then, i.then)]
    if otherwise is not None and i.otherwise is not None:
        arms.append(_arm(e, otherwise, i.otherwise))
    given = [[yields[k] for _, yields in arms] for k in range(len(i.results))]
    flags = [
        e.is_varying(name) or any(varies(v) for v in values) for name, values in zip(i.results, given, strict=True)
    ]
    finished: list[tuple[Block, list[Emitted]]] = []
    for block, yields in arms:
        b.at_end(block)
        finished.append((block, [as_varying(e, v, flag) for v, flag in zip(yields, flags, strict=False)]))
        b.branch(end)
    b.at_end(end)
    for k, name in enumerate(i.results):
        e.bind(name, merge_values(e, [(block, values[k]) for block, values in finished]))


def uniform_for(e: Emitter, i: For, *bounds: Number) -> None:
    """A `for` that all active work-items run equally often; its variable may still differ between them."""
    b = e.b
    start, stop, step = (to_uniform(e, number) for number in bounds)
    initial = [as_varying(e, e.scope[n.text], e.is_varying(c)) for n, c in zip(i.initial, i.carried, strict=True)]
    before = b.block
    body = b.new_block("for")
    end = b.new_block("endfor", body)
    b.branch_if(b.icmp("slt", start.value, stop.value), body, end)
    b.at_end(body)
    variable = open_phi(e, start.value, before)
    differs = bounds[0].is_varying or bounds[2].is_varying
    trip = open_phi(e, constant(start.type, 0).value, before) if differs else None
    opened = [open_value(e, value, before) for value in initial]
    with e.region():
        known = loop_interval(bounds[0], bounds[1])
        number = Number(start.type, (variable.value,), interval=known)
        e.bind(i.variable, variable_in_trip(e, bounds[0], bounds[2], trip.value, known) if trip is not None else number)
        for name, (value, _) in zip(i.carried, opened, strict=True):
            e.bind(name, value)
        yields = e.instructions(i.body.instructions)
        yields = [as_varying(e, v, varies(value)) for v, (value, _) in zip(yields, opened, strict=True)]
    following = b.add(variable.value, step.value)
    if trip is not None:
        add_incoming(trip, b.add(trip.value, 1), b.block.name)
    latch = b.block
    branch_back(e, i, has_next_iteration(e, variable.value, following, stop.value, step.value), body, end)
    add_incoming(variable, following, latch.name)
    for (_, phis), value in zip(opened, yields, strict=True):
        close_value(phis, value, latch)
    b.at_end(end)
    for name, first, last in zip(i.results, initial, yields, strict=True):
        e.bind(name, merge_values(e, [(before, first), (latch, last)]))


def variable_in_trip(e: Emitter, start: Number, step: Number, trip: Value, known: Interval | None) -> Number:
    """The variable of a loop in a trip, counted from 0, that all work-items make: `start + trip * step`."""
    if start.linear is not None and not step.is_varying:
        base = e.b.add(start.linear.base, e.b.mul(trip, step.value))
        return linear_number(e, start.type, replace(start.linear, base=base), known)
    factor, width = unify_values(e, trip, step.value)
    first, distance = unify_values(e, start.value, e.b.mul(factor, width))
    return Number(start.type, (e.b.add(first, distance),), interval=known)


def has_next_iteration(e: Emitter, variable: Value, following: Value, stop: Value, step: Value) -> Value:
    """Whether there is another iteration after one with `variable < stop`; the sum `following` may have wrapped."""
    if is_int(step, 1):
        return e.b.icmp("slt", following, stop)
    remaining = e.b.sub(stop, variable)  # positive, exact as an unsigned number
    return e.b.icmp("ugt", remaining, step)


def open_phi(e: Emitter, value: Value, block: Block) -> Instruction:
    """A phi with its first incoming value."""
    return e.b.emit("phi", value.type, [value, block.value], f"phi {value.type} [ {value}, %{block.name} ]")


def open_value(e: Emitter, value: _T, block: Block) -> tuple[_T, list[Instruction]]:
    """A value carried by a loop, and its phis, which have their first incoming values."""
    phis = [open_phi(e, part, block) for part in parts_of(value)]
    return with_parts(value, [phi.value for phi in phis]), phis


def close_value(phis: Sequence[Instruction], value: Emitted, block: Block) -> None:
    """Give the phis of a carried value what comes from the end of the loop."""
    for phi, part in zip(phis, parts_of(value), strict=True):
        add_incoming(phi, part, block.name)


def _arm(e: Emitter, block: Block, region: Region) -> tuple[Block, Sequence[Emitted]]:
    """Write a branch; gives the block it ends in, which has no terminator yet, and what it yields."""
    e.b.at_end(block)
    yields = e.run(region)
    return e.b.block, yields


def merge_values(e: Emitter, incoming: Sequence[tuple[Block, _T]]) -> _T:
    """One value of the values that blocks bring along."""
    columns = zip(*(parts_of(value) for _, value in incoming), strict=True)
    blocks = [block for block, _ in incoming]
    phis = [e.b.phi(parts[0].type, list(zip(parts, blocks, strict=True))) for parts in columns]
    return with_parts(incoming[0][1], phis)


def parts_of(value: Emitted) -> tuple[Value, ...]:
    """The LLVM values of a number or matrix."""
    assert isinstance(value, (Number, Matrix))
    return value.parts


def with_parts(like: _T, parts: Sequence[Value]) -> _T:
    """A number or matrix of the same type with other LLVM values, of which nothing is known."""
    if isinstance(like, Matrix):
        return replace(like, parts=tuple(parts))
    assert isinstance(like, Number)
    return replace(like, parts=tuple(parts), linear=None, interval=None)


def varies(value: Emitted) -> bool:
    """Whether a value is one lane each work-item."""
    return isinstance(value, Number) and value.is_varying


def as_varying(e: Emitter, value: Emitted, wanted: bool) -> Emitted:
    """A value with one lane each work-item where it has to be."""
    return vary(e, value) if wanted and isinstance(value, Number) else value
