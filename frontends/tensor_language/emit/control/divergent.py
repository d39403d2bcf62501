"""`if` and `for` where work-items of a subgroup may go different ways: masks, and full iterations without them.

The loop of a subgroup over neighbouring elements, `for %k=%local_id,%n,%size`, mostly has *full* iterations, which all
work-items run. They come first, without masks and with one number as the counter, as long as the last lane is below the
bound:

    while base + (S-1)*d < stop: the body for %k = base + <0, d, ..., (S-1)*d>; base += step
    then the iterations that some work-items run, under masks

Both arms of an `if` run one after the other, each with its own mask; an arm that no work-item takes is skipped.

    %x = if %c -> (f32) { ... yield (%a) } else { ... yield (%b) }

      %then.mask = select %mask, %c, false            %else.mask = select %mask, not %c, false
      br (any %then.mask), label %then, label %join
    then:  ...  br label %join                        ; under %then.mask
    join:  %a' = phi [ %a, %then ], [ undef, ... ]
      br (any %else.mask), label %else, label %endif
    else:  ...  br label %endif                       ; under %else.mask
    endif: %b' = phi [ %b, %else ], [ undef, ... ]
      %x = select %c, %a', %b'

Arms of a little arithmetic run without any mask or branch. A `for` runs while any work-item has iterations left; the
others keep the values that they left with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tlx.frontends.tensor_language.emit.control.uniform import (
    branch_back,
    close_value,
    has_next_iteration,
    merge_values,
    open_phi,
    open_value,
    parts_of,
    uniform_for,
    uniform_if,
    with_parts,
)
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masks import active_where, any_lane, inactive_where, run_if
from tlx.frontends.tensor_language.emit.numbers import compare, constant, linear_number, select, splat, undefined, vary
from tlx.frontends.tensor_language.emit.values import Emitted, Linear, Number, loop_interval
from tlx.frontends.tensor_language.operations.control import For, If, Yield
from tlx.frontends.tensor_language.operations.scalars import ArithBinary, ArithUnary, Cast, Comparison, Constant
from tlx.frontends.tensor_language.operations.subgroups import Builtin
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType
from tlx.ir.instructions import Block
from tlx.ir.transform.rewrite import add_incoming
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
        known = loop_interval(self._bounds.start, self._bounds.stop)
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
    going = has_next_iteration(e, variable.value, b.add(variable.value, stride), limit, stride)
    b.branch(join)
    b.at_end(skipped)
    entering = compare(e, "icmp", "slt", bounds.start.value, limit)
    b.branch(join)
    b.at_end(join)
    return _joined(
        e, bounds.start, _LoopExit(skipped, linear.base, entering, initial), _LoopExit(after, following, going, yields)
    )


@dataclass(frozen=True, slots=True)
class _LoopExit:
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


def _joined(e: Emitter, start: Number, *ways: _LoopExit) -> Entry:
    """How the rest begins: as the whole loop would where no iteration was full, else behind the last one."""
    base = e.b.phi(ways[0].base.type, [(way.base, way.block) for way in ways])
    mask = e.b.phi(ways[0].mask.type, [(way.mask, way.block) for way in ways])
    columns = zip(*(way.values for way in ways), strict=True)
    values = [merge_values(e, [(way.block, value) for way, value in zip(ways, same, strict=True)]) for same in columns]
    assert start.linear is not None
    return Entry(linear_number(e, start.type, replace(start.linear, base=base)), mask, values)


def _has_loop(i: Instruction) -> bool:
    return isinstance(i, For) or any(_has_loop(inner) for region in i.regions() for inner in region.instructions)


_CHEAP: Final = (ArithBinary, ArithUnary, Builtin, Cast, Comparison, Constant, Yield)
_COSTLY: Final = ("div", "rem", "pow", "tanh")  # arithmetic that is not
_CHEAP_LENGTH: Final = 6  # instructions that cost less than finding out whether any work-item wants them


def if_rule(e: Emitter, i: If) -> None:
    """`%r,... = if %condition -> (type,...) { ... } else { ... }`."""
    condition = e.number(i.condition)
    if not condition.is_varying:
        uniform_if(e, i, condition.value)
    elif _gives_matrices(i):  # of which there is one for all work-items, so that they all go the same way
        uniform_if(e, i, any_lane(e, active_where(e, e.mask, condition.value)))
    elif i.otherwise is not None and _is_cheap(i.then) and _is_cheap(i.otherwise):
        _bind_chosen(e, i.results, condition.value, e.run(i.then), e.run(i.otherwise))
    else:
        _varying_if(e, i, condition.value)


def for_rule(e: Emitter, i: For) -> None:
    """`%r,... = for %i=%from,%to[,%step] init(%x=%x0,...)->(type,...) { ... }`."""
    start, stop = e.number(i.start), e.number(i.stop)
    step = e.number(i.step) if i.step is not None else constant(start.type, 1)
    bounds = (start, stop, step)
    if not any(n.is_varying for n in bounds) or _gives_matrices(i):  # matrices: as in an `if`
        uniform_for(e, i, *bounds)
    else:
        _varying_for(e, i, *bounds)


def _varying_if(e: Emitter, i: If, condition: Value) -> None:
    """An `if` whose arms run under masks."""
    masks = [active_where(e, e.mask, condition), active_where(e, e.mask, inactive_where(e, condition))]
    regions = [i.then, i.otherwise] if i.otherwise is not None else [i.then]
    arms = [_masked_arm(e, mask, region) for mask, region in zip(masks, regions, strict=False)]
    if i.results:
        _bind_chosen(e, i.results, condition, *arms)


def _varying_for(e: Emitter, i: For, start: Number, stop: Number, step: Number) -> None:
    """A `for` that runs while any work-item has iterations left."""
    bounds = Bounds(start, stop, step)
    if can_run_full_iterations(e, i, bounds):
        entry = full_iterations(e, i, bounds)
    else:
        entering = active_where(e, e.mask, compare(e, "icmp", "slt", splat(e, start.value), splat(e, stop.value)))
        entry = Entry(start, entering, [vary(e, e.number(name)) for name in i.initial])
    _masked_iterations(e, i, bounds, entry)


def _masked_iterations(e: Emitter, i: For, bounds: Bounds, entry: Entry) -> None:
    """Rounds that some work-items run, until there are none left."""
    b = e.b
    limit, stride = splat(e, bounds.stop.value), splat(e, bounds.step.value)
    counter = Counter(e, entry.start, bounds)
    runs = any_lane(e, entry.mask)
    before = b.block
    body = b.new_block("for")
    end = b.new_block("endfor", body)
    b.branch_if(runs, body, end)
    b.at_end(body)
    counter.open(before)
    active = open_phi(e, entry.mask, before)
    opened = [open_value(e, value, before) for value in entry.values]
    variable = counter.number()
    with e.masked(active.value):
        yields = run_iteration(e, i, variable, [value for value, _ in opened])
    kept = [select(e, active.value, new, old) for new, (old, _) in zip(yields, opened, strict=True)]
    going = active_where(
        e, active.value, has_next_iteration(e, variable.value, b.add(variable.value, stride), limit, stride)
    )
    again = any_lane(e, going)
    counter.close()
    add_incoming(active, going, b.block.name)
    latch = b.block
    for (_, phis), value in zip(opened, kept, strict=True):
        close_value(phis, value, latch)
    branch_back(e, i, again, body, end)
    b.at_end(end)
    for name, first, last in zip(i.results, entry.values, kept, strict=True):
        e.bind(name, merge_values(e, [(before, first), (latch, last)]))


def _masked_arm(e: Emitter, mask: Value, region: Region) -> Sequence[Emitted]:
    """Write an arm that is skipped where its mask is empty; gives what it yields, undefined where it was skipped."""
    b = e.b
    before = b.block
    with run_if(e, any_lane(e, mask), "arm", "endarm"):
        with e.masked(mask):
            yields = [vary(e, v) for v in e.run(region) if isinstance(v, Number)]
        last = b.block
    return [
        with_parts(value, [b.phi(p.type, [(p, last), (undefined(p.type), before)]) for p in parts_of(value)])
        for value in yields
    ]


def _bind_chosen(
    e: Emitter, names: tuple[Name, ...], condition: Value, then: Sequence[Emitted], otherwise: Sequence[Emitted]
) -> None:
    for name, one, other in zip(names, then, otherwise, strict=True):
        assert isinstance(one, Number)
        assert isinstance(other, Number)
        e.bind(name, select(e, condition, one, other))


def _gives_matrices(i: Instruction) -> bool:
    return any(isinstance(t.type, CoopMatrixType) for t in i.types)


def _is_cheap(region: Region) -> bool:
    return len(region.instructions) <= _CHEAP_LENGTH and all(_is_cheap_instruction(i) for i in region.instructions)


def _is_cheap_instruction(i: Instruction) -> bool:
    """Whether an instruction may run for work-items that do not want it, and is fast."""
    if not isinstance(i, _CHEAP) or not all(isinstance(t.type, ScalarType) for t in i.types):
        return False
    return not (isinstance(i, ArithBinary | ArithUnary) and i.op in _COSTLY)


RULES: Final = {If: if_rule, For: for_rule}
