"""Iterations of a `for` whose bounds differ between work-items.

The loop of a subgroup over neighbouring elements, `for %k=%local_id,%n,%size`, mostly has *full* iterations, which all
work-items run. They come first, without masks and with one number as the counter, as long as the last lane is below the
bound:

    while base + (S-1)*d < stop: the body for %k = base + <0, d, ..., (S-1)*d>; base += step
    then the iterations that some work-items run, under masks
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tlx.frontends.tensor_language.ast.base import Instruction
from tlx.frontends.tensor_language.ast.mixed import For
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.intervals import of_loop
from tlx.frontends.tensor_language.emit.numbers import compare, linear_number, splat, vary
from tlx.frontends.tensor_language.emit.uniform_control import close_value, goes_on, merged, open_phi, open_value
from tlx.frontends.tensor_language.emit.unroll import branch_back
from tlx.frontends.tensor_language.emit.values import Linear, Number
from tlx.ir.module import Block
from tlx.ir.rewriter import add_incoming
from tlx.ir.values import Value, const_int


@dataclass(frozen=True, slots=True)
class Bounds:
    """`%i=%from,%to,%step` of a loop."""

    start: Number
    stop: Number
    step: Number


@dataclass(frozen=True, slots=True)
class Entry:
    """How the iterations that some work-items run begin.

    Attributes:
        start: The variable in the first of them.
        mask: Which work-items run it.
        values: The carried values.
    """

    start: Number
    mask: Value
    values: Sequence[Number]


class Counter:
    """The variable of a loop: lane 0's value where lanes grow evenly and step alike, else a vector."""

    def __init__(self, e: Emitter, start: Number, bounds: Bounds) -> None:
        self._e = e
        self._bounds = bounds
        linear, step = start.linear, bounds.step
        if linear is not None and not step.is_varying:
            self._first, self._step = linear.base, step.value
            self._linear: Linear | None = linear
        else:
            self._first, self._step = splat(e, start.value), splat(e, step.value)
            self._linear = None

    def open(self, before: Block) -> None:
        """Begin the loop, at the head of the body."""
        self._phi = open_phi(self._e, self._first, before)

    def number(self) -> Number:
        """The variable, in the body: while a lane runs, it and the lanes before it have not wrapped around."""
        type_, value = self._bounds.start.type, self._phi.value
        known = of_loop(self._bounds.start, self._bounds.stop)
        if self._linear is None:
            return Number(type_, (value,), interval=known)
        step = self._linear.step
        return linear_number(self._e, type_, Linear(value, step, self._linear.exact and step >= 0), known)

    def close(self) -> None:
        """Make the step to the next iteration, at the end of the body."""
        add_incoming(self._phi, self._e.b.add(self._phi.value, self._step), self._e.b.block.name)


def run_iteration(e: Emitter, i: For, variable: Number, carried: Sequence[Number]) -> Sequence[Number]:
    """Write the body; gives what it yields, a lane each work-item."""
    with e.region():
        e.bind(i.variable, variable)
        for name, value in zip(i.carried, carried, strict=True):
            e.bind(name, value)
        yields = e.instructions(i.body.instructions)
        return [vary(e, value) for value in yields if isinstance(value, Number)]


def can_run_full_iterations(e: Emitter, i: For, bounds: Bounds) -> bool:
    """Whether full iterations are easily told, and the body is no loop that would be written twice."""
    linear = bounds.start.linear
    if e.mask is not None or linear is None or bounds.stop.is_varying or bounds.step.is_varying:
        return False
    span = linear.step * (e.lanes - 1)
    return 0 < span < 1 << (bounds.start.type.bits - 1) and not any(_has_loop(inner) for inner in i.body.instructions)


def full_iterations(e: Emitter, i: For, bounds: Bounds) -> Entry:
    """The full iterations; gives how the others begin."""
    b, linear = e.b, bounds.start.linear
    assert linear is not None
    stop, step = bounds.stop.value, bounds.step.value
    span = const_int(linear.base.type, linear.step * (e.lanes - 1))
    initial = [vary(e, e.number(name)) for name in i.initial]
    counter = Counter(e, bounds.start, bounds)
    below = b.icmp("slt", linear.base, stop)
    limit, stride = splat(e, stop), splat(e, step)
    runs = b.binary("and", below, b.icmp("ugt", b.sub(stop, linear.base), span))
    before = b.block
    body = b.new_block("full")
    skipped = b.new_block("nofull", body)
    join = b.new_block("rest", skipped)
    b.branch_if(runs, body, skipped)
    b.at_end(body)
    counter.open(before)
    opened = [open_value(e, value, before) for value in initial]
    variable = counter.number()
    yields = run_iteration(e, i, variable, [value for value, _ in opened])
    assert variable.linear is not None
    base = variable.linear.base
    following = b.add(base, step)
    left = b.sub(stop, base)
    more = b.binary("and", b.icmp("ugt", left, step), b.icmp("ugt", b.sub(left, step), span))
    counter.close()
    for (_, phis), value in zip(opened, yields, strict=True):
        close_value(phis, value, b.block)
    after = b.new_block("endfull")
    branch_back(e, i, more, body, after)
    b.at_end(after)
    going = goes_on(e, variable.value, b.add(variable.value, stride), limit, stride)
    b.branch(join)
    b.at_end(skipped)
    entering = compare(e, "icmp", "slt", bounds.start.value, limit)
    b.branch(join)
    b.at_end(join)
    return _joined(
        e, bounds.start, _Way(skipped, linear.base, entering, initial), _Way(after, following, going, yields)
    )


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to the iterations that some work-items run.

    Attributes:
        block: The last block on it.
        base: Lane 0's value of the variable.
        mask: Which work-items run.
        values: The carried values.
    """

    block: Block
    base: Value
    mask: Value
    values: Sequence[Number]


def _joined(e: Emitter, start: Number, *ways: _Way) -> Entry:
    """How the rest begins: as the whole loop would where no iteration was full, else behind the last one."""
    base = e.b.phi(ways[0].base.type, [(way.base, way.block) for way in ways])
    mask = e.b.phi(ways[0].mask.type, [(way.mask, way.block) for way in ways])
    columns = zip(*(way.values for way in ways), strict=True)
    values = [merged(e, [(way.block, value) for way, value in zip(ways, same, strict=True)]) for same in columns]
    assert start.linear is not None
    return Entry(linear_number(e, start.type, replace(start.linear, base=base)), mask, values)


def _has_loop(i: Instruction) -> bool:
    return isinstance(i, For) or any(_has_loop(inner) for region in i.regions() for inner in region.instructions)
