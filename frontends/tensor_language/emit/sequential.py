"""`if` and `for`: branches where the condition is uniform, masks where it varies between the work-items of a subgroup.

Uniform:

    %x = if %c -> (f32) { ... yield (%a) } else { ... yield (%b) }

      br i1 %c, label %then, label %else
    then:   ...  br label %end
    else:   ...  br label %end
    end:    %x = phi float [ %a, %then ], [ %b, %else ]

    unroll=true      br i1 %again, label %for, label %endfor, !llvm.loop !0
                     !0 = distinct !{!0, !1}
                     !1 = !{!"llvm.loop.unroll.enable"}
    unroll=false     !1 = !{!"llvm.loop.unroll.disable"}
    unroll=4         !1 = !{!"llvm.loop.unroll.count", i32 4}

Varying: both arms of an `if` run one after the other, each with its own mask; an arm that no work-item takes is
skipped.

      %then.mask = select %mask, %c, false            %else.mask = select %mask, not %c, false
      br (any %then.mask), label %then, label %join
    then:  ...  br label %join                        ; under %then.mask
    join:  %a' = phi [ %a, %then ], [ undef, ... ]
      br (any %else.mask), label %else, label %endif
    else:  ...  br label %endif                       ; under %else.mask
    endif: %b' = phi [ %b, %else ], [ undef, ... ]
      %x = select %c, %a', %b'

Short arms of cheap arithmetic run unconditionally, without a mask or a branch. A `for` runs while any work-item has
iterations left; the others keep the values of their last iteration.

The loop of a subgroup over neighbouring elements, `for %k=%local_id,%n,%size`, mostly has *full* iterations, which all
work-items run. They come first, without masks and with a scalar counter, as long as the last lane is below the bound:

    while base + (S-1)*d < stop: the body for %k = base + <0, d, ..., (S-1)*d>; base += step
    then the remaining iterations, under masks
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from tlx.frontends.tensor_language.emit.arithmetic.registers import compare, undefined
from tlx.frontends.tensor_language.emit.arithmetic.scalars import (
    constant,
    is_int,
    linear_number,
    select,
    splat,
    unify_values,
    vary,
)
from tlx.frontends.tensor_language.emit.emitter import (
    Emitted,
    Emitter,
    Interval,
    LinearLanes,
    Matrix,
    Number,
    loop_interval,
)
from tlx.frontends.tensor_language.emit.subgroups import active_where, any_lane, inactive_where, run_if, to_uniform
from tlx.frontends.tensor_language.operations.control import For, If, Yield
from tlx.frontends.tensor_language.operations.scalars import ArithBinary, ArithUnary, Cast, Comparison, Constant
from tlx.frontends.tensor_language.operations.subgroups import Builtin
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType
from tlx.ir.instructions import Block
from tlx.ir.instructions import Instruction as LLVMInstruction
from tlx.ir.module import UnparsedText
from tlx.ir.rewrite import add_incoming
from tlx.ir.values import Value, const_int


class LoopBlocks:
    """The blocks of a `for`: code is emitted at the head of the body first, after the loop once it is closed.

    before:  br i1 %runs, label %for, label %endfor
    for:     ...
             br i1 %again, label %for, label %endfor
    endfor:

    Attributes:
        before: The block that branches to the loop or past it.
    """

    def __init__(self, e: Emitter, i: For, runs: Value) -> None:
        self._e = e
        self._for = i
        self.before = e.b.block
        self._body = e.b.new_block("for")
        self._end = e.b.new_block("endfor", self._body)
        e.b.branch_if(runs, self._body, self._end)
        e.b.at_end(self._body)

    def close(self, again: Value) -> Block:
        """Branch back if there is another iteration; returns the last block of the body."""
        latch = self._e.b.block
        branch_back(self._e, self._for, again, self._body, self._end)
        self._e.b.at_end(self._end)
        return latch


class UniformLoop:
    """A `for` with a uniform trip count, given by `start`, `stop` and `step`.

    Attributes:
        before: The block that branches to the loop or past it.
        variable: The variable, counted from `start`.
        trip: The number of the iteration, counted from 0; None if trips are not counted.
    """

    def __init__(self, e: Emitter, i: For, start: Number, stop: Number, step: Number, *, counts_trips: bool) -> None:
        self._e = e
        self._stop, self._step = stop.value, step.value
        self._blocks = LoopBlocks(e, i, e.b.icmp("slt", start.value, stop.value))
        self.before = self._blocks.before
        self._variable = open_phi(e, start.value, self.before)
        self._trip = open_phi(e, constant(start.type, 0).value, self.before) if counts_trips else None
        self.variable = self._variable.value
        self.trip = None if self._trip is None else self._trip.value

    def close(self) -> Block:
        """Advance to the next iteration; returns the last block of the body."""
        b = self._e.b
        following = b.add(self.variable, self._step)
        trips = b.add(self.trip, 1) if self.trip is not None else None
        latch = self._blocks.close(has_next_iteration(self._e, self.variable, following, self._stop, self._step))
        add_incoming(self._variable, following, latch.name)
        if self._trip is not None and trips is not None:
            add_incoming(self._trip, trips, latch.name)
        return latch


def branch_back(e: Emitter, i: For, again: Value, body: Block, end: Block) -> None:
    """The branch at the end of a loop."""
    e.b.branch_if(again, body, end)
    metadata = _unroll_metadata(i)
    if metadata is not None:
        branch = e.b.block.instructions[-1]
        branch.trailer = f", !llvm.loop !{_loop_node(e, metadata)}"
        branch.text += branch.trailer


def _unroll_metadata(i: For) -> str | None:
    attribute = i.attributes.get("unroll")
    if attribute is None:
        return None
    value = attribute.value
    if isinstance(value, bool):
        return f'!"llvm.loop.unroll.{"enable" if value else "disable"}"'
    assert isinstance(value, int), "the checker lets it be nothing else"
    return f'!"llvm.loop.unroll.count", i32 {value}'


def _loop_node(e: Emitter, metadata: str) -> int:
    """The number of a new node for a loop."""
    module = e.b.module
    number = len(re.findall(r"(?m)^!\d+ = ", module.raw_text()))
    module.items.append(
        UnparsedText(f"\n!{number} = distinct !{{!{number}, !{number + 1}}}\n!{number + 1} = !{{{metadata}}}\n")
    )
    return number


_T = TypeVar("_T", bound=Emitted)


def uniform_if(e: Emitter, i: If, condition: Value) -> None:
    """An `if` with a uniform condition."""
    b = e.b
    then = b.new_block("then")
    otherwise = b.new_block("else", then) if i.otherwise is not None else None
    end = b.new_block("endif", otherwise or then)
    b.branch_if(condition, then, otherwise or end)
    arms = [_arm(e, then, i.then)]
    if otherwise is not None and i.otherwise is not None:
        arms.append(_arm(e, otherwise, i.otherwise))
    columns = [[yields[k] for _, yields in arms] for k in range(len(i.results))]
    flags = [
        e.is_varying(name) or any(varies(v) for v in values) for name, values in zip(i.results, columns, strict=True)
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
    """A `for` with a uniform trip count; its variable may still vary."""
    start, stop, step = (to_uniform(e, number) for number in bounds)
    initial = [as_varying(e, e.scope[n.text], e.is_varying(c)) for n, c in zip(i.initial, i.carried, strict=True)]
    loop = UniformLoop(e, i, start, stop, step, counts_trips=bounds[0].is_varying or bounds[2].is_varying)
    opened = [open_value(e, value, loop.before) for value in initial]
    with e.region():
        interval = loop_interval(bounds[0], bounds[1])
        number = Number(start.type, (loop.variable,), interval=interval)
        if loop.trip is not None:
            number = variable_in_trip(e, bounds[0], bounds[2], loop.trip, interval)
        e.bind(i.variable, number)
        for name, (value, _) in zip(i.carried, opened, strict=True):
            e.bind(name, value)
        yields = e.instructions(i.body.instructions)
        yields = [as_varying(e, v, varies(value)) for v, (value, _) in zip(yields, opened, strict=True)]
    _finish(e, i, loop.before, loop.close(), initial, opened, yields)


def _finish(
    e: Emitter,
    i: For,
    before: Block,
    latch: Block,
    initial: Sequence[_T],
    opened: Sequence[tuple[_T, list[LLVMInstruction]]],
    yields: Sequence[_T],
) -> None:
    """Complete the phis of the carried values after a loop, and bind its results."""
    for (_, phis), value in zip(opened, yields, strict=True):
        close_value(phis, value, latch)
    for name, first, last in zip(i.results, initial, yields, strict=True):
        e.bind(name, merge_values(e, [(before, first), (latch, last)]))


def variable_in_trip(e: Emitter, start: Number, step: Number, trip: Value, known: Interval | None) -> Number:
    """The variable of a loop in a trip, counted from 0: `start + trip * step`."""
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
    remaining = e.b.sub(stop, variable)  # positive, and exact as an unsigned number
    return e.b.icmp("ugt", remaining, step)


def open_phi(e: Emitter, value: Value, block: Block) -> LLVMInstruction:
    """A phi with its first incoming value."""
    return e.b.emit("phi", value.type, [value, block.value], f"phi {value.type} [ {value}, %{block.name} ]")


def open_value(e: Emitter, value: _T, block: Block) -> tuple[_T, list[LLVMInstruction]]:
    """A value carried by a loop, and its phis with their first incoming values."""
    phis = [open_phi(e, part, block) for part in parts_of(value)]
    return with_parts(value, [phi.value for phi in phis]), phis


def close_value(phis: Sequence[LLVMInstruction], value: Emitted, block: Block) -> None:
    """Complete the phis of a carried value with the value at the end of the loop."""
    for phi, part in zip(phis, parts_of(value), strict=True):
        add_incoming(phi, part, block.name)


def _arm(e: Emitter, block: Block, region: Region) -> tuple[Block, Sequence[Emitted]]:
    """Emit a branch; returns its last block, still without a terminator, and the values that it yields."""
    e.b.at_end(block)
    yields = e.run(region)
    return e.b.block, yields


def merge_values(e: Emitter, incoming: Sequence[tuple[Block, _T]]) -> _T:
    """The phi of the values that come from several blocks."""
    columns = zip(*(parts_of(value) for _, value in incoming), strict=True)
    blocks = [block for block, _ in incoming]
    phis = [e.b.phi(parts[0].type, list(zip(parts, blocks, strict=True))) for parts in columns]
    return with_parts(incoming[0][1], phis)


def parts_of(value: Emitted) -> tuple[Value, ...]:
    """The LLVM values of a number or matrix."""
    assert isinstance(value, (Number, Matrix))
    return value.parts


def with_parts(like: _T, parts: Sequence[Value]) -> _T:
    """A number or matrix of the same type with other LLVM values; intervals and linear forms are dropped."""
    if isinstance(like, Matrix):
        return replace(like, parts=tuple(parts))
    assert isinstance(like, Number)
    return replace(like, parts=tuple(parts), linear=None, interval=None)


def varies(value: Emitted) -> bool:
    """Whether a value is a vector with a lane for each work-item."""
    return isinstance(value, Number) and value.is_varying


def as_varying(e: Emitter, value: Emitted, is_varying: bool) -> Emitted:
    """A value, as a vector with a lane for each work-item if `is_varying`."""
    return vary(e, value) if is_varying and isinstance(value, Number) else value


@dataclass(frozen=True, slots=True)
class LoopBounds:
    """`%i=%from,%to,%step` of a loop."""

    start: Number
    stop: Number
    step: Number


@dataclass(frozen=True, slots=True)
class MaskedLoopEntry:
    """The state at the start of the masked iterations.

    Attributes:
        start: The loop variable.
        mask: Which work-items run the first one.
        values: The carried values.
    """

    start: Number
    mask: Value
    values: Sequence[Number]


class LoopCounter:
    """The variable of a loop: lane 0's value if it is linear and the step is uniform, else a vector."""

    def __init__(self, e: Emitter, start: Number, bounds: LoopBounds) -> None:
        self._e = e
        self._bounds = bounds
        linear, step = start.linear, bounds.step
        if linear is not None and not step.is_varying:
            self._first, self._step = linear.base, step.value
            self._linear: LinearLanes | None = linear
        else:
            self._first, self._step = splat(e, start.value), splat(e, step.value)
            self._linear = None

    def open(self, before: Block) -> None:
        """Begin the loop, at the head of the body."""
        self._phi = open_phi(self._e, self._first, before)

    def number(self) -> Number:
        """The variable in the body. While a lane runs, it and the lanes before it have not wrapped around."""
        type_, value = self._bounds.start.type, self._phi.value
        known = loop_interval(self._bounds.start, self._bounds.stop)
        if self._linear is None:
            return Number(type_, (value,), interval=known)
        step = self._linear.step
        return linear_number(self._e, type_, LinearLanes(value, step, self._linear.exact and step >= 0), known)

    def close(self) -> None:
        """Advance to the next iteration, at the end of the body."""
        add_incoming(self._phi, self._e.b.add(self._phi.value, self._step), self._e.b.block.name)


def run_iteration(e: Emitter, i: For, variable: Number, carried: Sequence[Number]) -> Sequence[Number]:
    """Emit the body; returns the values that it yields, as vectors."""
    with e.region():
        e.bind(i.variable, variable)
        for name, value in zip(i.carried, carried, strict=True):
            e.bind(name, value)
        yields = e.instructions(i.body.instructions)
        return [vary(e, value) for value in yields if isinstance(value, Number)]


def can_run_full_iterations(e: Emitter, i: For, bounds: LoopBounds) -> bool:
    """Whether lane 0 tells which iterations are full, and the body has no loop that would be duplicated."""
    linear = bounds.start.linear
    if e.item is not None or e.mask is not None or linear is None or bounds.stop.is_varying or bounds.step.is_varying:
        return False
    span = linear.step * (e.lanes - 1)
    return 0 < span < 1 << (bounds.start.type.bits - 1) and not any(_has_loop(inner) for inner in i.body.instructions)


def full_iterations(e: Emitter, i: For, bounds: LoopBounds) -> MaskedLoopEntry:
    """Emit the full iterations; returns the state at the start of the masked ones."""
    b, linear = e.b, bounds.start.linear
    assert linear is not None
    stop, step = bounds.stop.value, bounds.step.value
    span = const_int(linear.base.type, linear.step * (e.lanes - 1))
    initial = [vary(e, e.number(name)) for name in i.initial]
    counter = LoopCounter(e, bounds.start, bounds)
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
    """A predecessor of the masked iterations.

    Attributes:
        block: Its last block.
        base: Lane 0's value of the variable.
        mask: Which work-items run.
        values: The carried values.
    """

    block: Block
    base: Value
    mask: Value
    values: Sequence[Number]


def _joined(e: Emitter, start: Number, *exits: _LoopExit) -> MaskedLoopEntry:
    """The state at the start of the masked iterations: the initial one, or that after the last full iteration."""
    base = e.b.phi(exits[0].base.type, [(leaving.base, leaving.block) for leaving in exits])
    mask = e.b.phi(exits[0].mask.type, [(leaving.mask, leaving.block) for leaving in exits])
    columns = zip(*(leaving.values for leaving in exits), strict=True)
    blocks = [leaving.block for leaving in exits]
    values = [merge_values(e, list(zip(blocks, column, strict=True))) for column in columns]
    assert start.linear is not None
    return MaskedLoopEntry(linear_number(e, start.type, replace(start.linear, base=base)), mask, values)


def _has_loop(i: Instruction) -> bool:
    return isinstance(i, For) or any(_has_loop(inner) for region in i.regions() for inner in region.instructions)


_CHEAP: Final = (ArithBinary, ArithUnary, Builtin, Cast, Comparison, Constant, Yield)
_COSTLY: Final = ("div", "rem", "pow", "tanh")  # arithmetic that is expensive
_CHEAP_LENGTH: Final = 6  # instructions that cost less than testing whether any work-item is active


def if_rule(e: Emitter, i: If) -> None:
    """`%r,... = if %condition -> (type,...) { ... } else { ... }`."""
    condition = e.number(i.condition)
    if not condition.is_varying:
        uniform_if(e, i, condition.value)
    elif _returns_matrices(i):  # shared by all work-items, which therefore take the same branch
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
    if not any(n.is_varying for n in bounds) or _returns_matrices(i):  # matrices: as in an `if`
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
    bounds = LoopBounds(start, stop, step)
    if can_run_full_iterations(e, i, bounds):
        entry = full_iterations(e, i, bounds)
    else:
        entering = active_where(e, e.mask, compare(e, "icmp", "slt", splat(e, start.value), splat(e, stop.value)))
        entry = MaskedLoopEntry(start, entering, [vary(e, e.number(name)) for name in i.initial])
    _masked_iterations(e, i, bounds, entry)


def _masked_iterations(e: Emitter, i: For, bounds: LoopBounds, entry: MaskedLoopEntry) -> None:
    """Iterations under a mask, until no work-item is active."""
    b = e.b
    limit, stride = splat(e, bounds.stop.value), splat(e, bounds.step.value)
    counter = LoopCounter(e, entry.start, bounds)
    loop = LoopBlocks(e, i, any_lane(e, entry.mask))
    counter.open(loop.before)
    active = open_phi(e, entry.mask, loop.before)
    opened = [open_value(e, value, loop.before) for value in entry.values]
    variable = counter.number()
    with e.masked(active.value):
        yields = run_iteration(e, i, variable, [value for value, _ in opened])
    selected = [select(e, active.value, new, old) for new, (old, _) in zip(yields, opened, strict=True)]
    going = active_where(
        e, active.value, has_next_iteration(e, variable.value, b.add(variable.value, stride), limit, stride)
    )
    again = any_lane(e, going)
    counter.close()
    latch = loop.close(again)
    add_incoming(active, going, latch.name)
    _finish(e, i, loop.before, latch, entry.values, opened, selected)


def _masked_arm(e: Emitter, mask: Value, region: Region) -> Sequence[Emitted]:
    """Emit an arm that is skipped if its mask is empty; returns the yielded values, undefined if it is skipped."""
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


def _returns_matrices(i: Instruction) -> bool:
    return any(isinstance(t.type, CoopMatrixType) for t in i.types)


def _is_cheap(region: Region) -> bool:
    return len(region.instructions) <= _CHEAP_LENGTH and all(_is_cheap_instruction(i) for i in region.instructions)


def _is_cheap_instruction(i: Instruction) -> bool:
    """Whether an instruction is cheap and may run for inactive work-items."""
    if not isinstance(i, _CHEAP) or not all(isinstance(t.type, ScalarType) for t in i.types):
        return False
    return not (isinstance(i, ArithBinary | ArithUnary) and i.op in _COSTLY)
