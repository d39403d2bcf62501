"""`if` and `for` where work-items of a subgroup may go different ways: masks.

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

Arms of a little arithmetic run without any mask or branch. A `for` runs while any work-item has rounds left; the others
keep the values that they left with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.frontends.tensor_language.ast.base import Instruction, Name, Region
from tlx.frontends.tensor_language.ast.mixed import (
    ArithBinary,
    ArithUnary,
    Builtin,
    Cast,
    Comparison,
    Constant,
    For,
    If,
    Yield,
)
from tlx.frontends.tensor_language.emit.control import (
    goes_on,
    open_phi,
    open_value,
    parts_of,
    uniform_for,
    uniform_if,
    with_parts,
)
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masks import any_lane, inverted, uniform, where
from tlx.frontends.tensor_language.emit.numbers import compare, constant, select, splat, undefined, vary
from tlx.frontends.tensor_language.emit.values import Emitted, Linear, Number
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType
from tlx.ir.module import Block
from tlx.ir.rewriter import add_incoming
from tlx.ir.types import IntType
from tlx.ir.values import Value, const_int, const_vector

_CHEAP: Final = (ArithBinary, ArithUnary, Builtin, Cast, Comparison, Constant, Yield)
_CHEAP_LENGTH: Final = 6  # instructions that cost less than finding out whether any work-item wants them


def if_rule(e: Emitter, i: If) -> None:
    """`%r,... = if %condition -> (type,...) { ... } else { ... }`."""
    condition = e.number(i.condition)
    if not condition.is_varying:
        uniform_if(e, i, condition.value)
    elif _gives_matrices(i):  # of which there is one for all work-items, so that they all go the same way
        uniform_if(e, i, any_lane(e, where(e, e.mask, condition.value)))
    elif i.otherwise is not None and _is_cheap(i.then) and _is_cheap(i.otherwise):
        _bind_chosen(e, i.results, condition.value, e.run(i.then), e.run(i.otherwise))
    else:
        varying_if(e, i, condition.value)


def for_rule(e: Emitter, i: For) -> None:
    """`%r,... = for %i=%from,%to[,%step] init(%x=%x0,...)->(type,...) { ... }`."""
    start, stop = e.number(i.start), e.number(i.stop)
    step = e.number(i.step) if i.step is not None else constant(start.type, 1)
    bounds = (start, stop, step)
    if not any(n.is_varying for n in bounds):
        uniform_for(e, i, *bounds)
    elif _gives_matrices(i):
        uniform_for(e, i, *(uniform(e, n) for n in bounds))
    else:
        varying_for(e, i, *bounds)


def varying_if(e: Emitter, i: If, condition: Value) -> None:
    """An `if` whose arms run under masks."""
    masks = [where(e, e.mask, condition), where(e, e.mask, inverted(e, condition))]
    regions = [i.then, i.otherwise] if i.otherwise is not None else [i.then]
    arms = [_masked_arm(e, mask, region) for mask, region in zip(masks, regions, strict=False)]
    if i.results:
        _bind_chosen(e, i.results, condition, *arms)


def varying_for(e: Emitter, i: For, start: Number, stop: Number, step: Number) -> None:
    """A `for` that runs while any work-item has rounds left."""
    b = e.b
    initial = [vary(e, e.number(name)) for name in i.initial]
    limit, stride = splat(e, stop.value), splat(e, step.value)
    entering = where(e, e.mask, compare(e, "icmp", "slt", splat(e, start.value), limit))
    runs = any_lane(e, entering)
    counter = _Counter(e, start, step)
    before = b.block
    body = b.new_block("for")
    end = b.new_block("endfor", body)
    b.at_end(before)
    b.branch_if(runs, body, end)
    b.at_end(body)
    counter.open(before)
    active = open_phi(e, entering, before)
    opened = [open_value(e, value, before) for value in initial]
    variable = counter.number()
    with e.region(), e.masked(active.value):
        e.bind(i.variable, variable)
        for name, (value, _) in zip(i.carried, opened, strict=True):
            e.bind(name, value)
        yields = e.instructions(i.body.instructions)
        kept = [_kept(e, active.value, new, old) for new, (old, _) in zip(yields, opened, strict=True)]
    current = variable.value
    going = where(e, active.value, goes_on(e, current, b.add(current, stride), limit, stride))
    again = any_lane(e, going)
    latch = b.block
    counter.close(latch)
    add_incoming(active, going, latch.name)
    for (_, phis), value in zip(opened, kept, strict=True):
        for phi, part in zip(phis, value.parts, strict=True):
            add_incoming(phi, part, latch.name)
    b.branch_if(again, body, end)
    b.at_end(end)
    for name, first, last in zip(i.results, initial, kept, strict=True):
        pairs = zip(first.parts, last.parts, strict=True)
        e.bind(name, with_parts(first, [b.phi(x.type, [(x, before), (y, latch)]) for x, y in pairs]))


class _Counter:
    """The variable of a loop: lane 0's value where lanes grow evenly and step alike, else a vector."""

    def __init__(self, e: Emitter, start: Number, step: Number) -> None:
        self._e = e
        self._type = start.type
        if start.linear is not None and not step.is_varying:
            self._first, self._distance, self._step = start.linear.base, start.linear.step, step.value
        else:
            self._first, self._distance, self._step = splat(e, start.value), None, splat(e, step.value)

    def open(self, before: Block) -> None:
        """Begin the loop, at the head of the body."""
        self._phi = open_phi(self._e, self._first, before)

    def number(self) -> Number:
        """The variable, in the body."""
        value = self._phi.value
        if self._distance is None:
            return Number(self._type, (value,))
        return linear_number(self._e, self._type, value, self._distance, exact=False)

    def close(self, latch: Block) -> None:
        """Make the step to the next round, at the end of the body."""
        add_incoming(self._phi, self._e.b.add(self._phi.value, self._step), latch.name)


def linear_number(e: Emitter, type_: ScalarType, base: Value, step: int, *, exact: bool) -> Number:
    """A number of which lane `i` holds `base + i * step`; see `Linear`."""
    integer = base.type
    assert isinstance(integer, IntType)
    half = 1 << (integer.bits - 1)
    offsets = [(lane * step + half) % (2 * half) - half for lane in range(e.lanes)]
    steps = const_vector([const_int(integer, offset) for offset in offsets])
    return Number(type_, (e.b.binary("add", splat(e, base), steps),), Linear(base, step, exact))


def _masked_arm(e: Emitter, mask: Value, region: Region) -> Sequence[Emitted]:
    """Write an arm that is skipped where its mask is empty; gives what it yields, undefined where it was skipped."""
    b = e.b
    runs = any_lane(e, mask)
    before = b.block
    arm = b.new_block("arm")
    end = b.new_block("endarm", arm)
    b.at_end(before)
    b.branch_if(runs, arm, end)
    b.at_end(arm)
    with e.masked(mask):
        yields = [vary(e, v) for v in e.run(region) if isinstance(v, Number)]
    last = b.block
    b.branch(end)
    b.at_end(end)
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


def _kept(e: Emitter, active: Value, new: Emitted, old: Emitted) -> Number:
    assert isinstance(new, Number)
    assert isinstance(old, Number)
    return select(e, active, new, old)


def _gives_matrices(i: Instruction) -> bool:
    return any(isinstance(t.type, CoopMatrixType) for t in i.types)


def _is_cheap(region: Region) -> bool:
    return len(region.instructions) <= _CHEAP_LENGTH and all(_is_cheap_instruction(i) for i in region.instructions)


def _is_cheap_instruction(i: Instruction) -> bool:
    """Whether an instruction may run for work-items that do not want it, and is fast."""
    if not isinstance(i, _CHEAP) or not all(isinstance(t.type, ScalarType) for t in i.types):
        return False
    return not (isinstance(i, ArithBinary) and i.op in ("div", "rem"))


RULES: Final = {If: if_rule, For: for_rule}
