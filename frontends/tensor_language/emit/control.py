"""`if` and `for` where all work-items of a subgroup go the same way: branches and phis.

%x = if %c -> (f32) { ... yield (%a) } else { ... yield (%b) }

  br i1 %c, label %then, label %else
then:   ...  br label %end
else:   ...  br label %end
end:    %x = phi float [ %a, %then ], [ %b, %else ]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.frontends.tensor_language.ast.base import Region
from tlx.frontends.tensor_language.ast.mixed import For, If
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import constant, vary
from tlx.frontends.tensor_language.emit.values import Emitted, Matrix, Number
from tlx.ir.module import Block, Instruction
from tlx.ir.rewriter import add_incoming
from tlx.ir.values import Value


def if_rule(e: Emitter, i: If) -> None:
    """`%r,... = if %condition -> (type,...) { ... } else { ... }`."""
    condition = e.number(i.condition)
    uniform_if(e, i, condition.value)


def uniform_if(e: Emitter, i: If, condition: Value) -> None:
    """An `if` that all active work-items take the same way."""
    b = e.b
    before = b.block
    then = b.new_block("then")
    otherwise = b.new_block("else", then) if i.otherwise is not None else None
    end = b.new_block("endif", otherwise or then)
    b.at_end(before)
    b.branch_if(condition, then, otherwise or end)
    arms = [_arm(e, then, i.then)]
    if otherwise is not None and i.otherwise is not None:
        arms.append(_arm(e, otherwise, i.otherwise))
    merged = [[yields[k] for _, yields in arms] for k in range(len(i.results))]
    flags = [
        e.is_varying(name) or any(_varies(v) for v in values) for name, values in zip(i.results, merged, strict=True)
    ]
    finished: list[tuple[Block, list[Emitted]]] = []
    for block, yields in arms:
        b.at_end(block)
        finished.append((block, [_as(e, v, flag) for v, flag in zip(yields, flags, strict=False)]))
        b.branch(end)
    b.at_end(end)
    for k, name in enumerate(i.results):
        e.bind(name, _merged(e, [(block, values[k]) for block, values in finished]))


def for_rule(e: Emitter, i: For) -> None:
    """`%r,... = for %i=%from,%to[,%step] init(%x=%x0,...)->(type,...) { ... }`."""
    b = e.b
    start, stop = e.number(i.start), e.number(i.stop)
    step = e.number(i.step).value if i.step is not None else constant(start.type, 1).value
    initial: list[Emitted] = [
        _as(e, e.scope[n.text], e.is_varying(c)) for n, c in zip(i.initial, i.carried, strict=True)
    ]
    before = b.block
    body = b.new_block("for")
    end = b.new_block("endfor", body)
    b.at_end(before)
    b.branch_if(b.icmp("slt", start.value, stop.value), body, end)
    b.at_end(body)
    variable = open_phi(e, start.value, before)
    opened = [open_value(e, value, before) for value in initial]
    with e.region():
        e.bind(i.variable, Number(start.type, (variable.value,)))
        for name, (value, _) in zip(i.carried, opened, strict=True):
            e.bind(name, value)
        yields = e.instructions(i.body.instructions)
        yields = [_as(e, v, _varies(value)) for v, (value, _) in zip(yields, opened, strict=True)]
    following = b.add(variable.value, step)
    latch = b.block
    remaining = b.sub(stop.value, variable.value)  # positive, as an unsigned number exact; a sum might wrap
    b.branch_if(b.icmp("ugt", remaining, step), body, end)
    add_incoming(variable, following, latch.name)
    for (_, phis), value in zip(opened, yields, strict=True):
        for phi, part in zip(phis, _parts(value), strict=True):
            add_incoming(phi, part, latch.name)
    b.at_end(end)
    for name, first, last in zip(i.results, initial, yields, strict=True):
        e.bind(name, _merged(e, [(before, first), (latch, last)]))


def open_phi(e: Emitter, value: Value, block: Block) -> Instruction:
    """A phi with its first incoming value."""
    return e.b.emit("phi", value.type, [value, block.value], f"phi {value.type} [ {value}, %{block.name} ]")


def open_value(e: Emitter, value: Emitted, block: Block) -> tuple[Emitted, list[Instruction]]:
    """A value carried by a loop, and its phis, which have their first incoming value."""
    phis = [open_phi(e, part, block) for part in _parts(value)]
    return _with_parts(value, [phi.value for phi in phis]), phis


def _arm(e: Emitter, block: Block, region: Region) -> tuple[Block, Sequence[Emitted]]:
    """Write a branch; gives the block it ends in, which has no terminator yet, and what it yields."""
    e.b.at_end(block)
    yields = e.run(region)
    return e.b.block, yields


def _merged(e: Emitter, incoming: list[tuple[Block, Emitted]]) -> Emitted:
    """One value of the values that blocks bring along."""
    columns = zip(*(_parts(value) for _, value in incoming), strict=True)
    blocks = [block for block, _ in incoming]
    phis = [e.b.phi(parts[0].type, list(zip(parts, blocks, strict=True))) for parts in columns]
    return _with_parts(incoming[0][1], list(phis))


def _parts(value: Emitted) -> tuple[Value, ...]:
    assert isinstance(value, (Number, Matrix))
    return value.parts


def _with_parts(like: Emitted, parts: list[Value]) -> Emitted:
    if isinstance(like, Matrix):
        return Matrix(like.type, tuple(parts))
    assert isinstance(like, Number)
    return Number(like.type, tuple(parts))


def _varies(value: Emitted) -> bool:
    return isinstance(value, Number) and value.is_varying


def _as(e: Emitter, value: Emitted, varies: bool) -> Emitted:
    """A value with one lane each work-item where it has to be."""
    return vary(e, value) if varies and isinstance(value, Number) else value


RULES: Final = {If: if_rule, For: for_rule}
