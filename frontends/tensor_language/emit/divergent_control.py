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

Arms of a little arithmetic run without any mask or branch. A `for` runs while any work-item has iterations left; the
others keep the values that they left with.
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
from tlx.frontends.tensor_language.emit.branches import run_if
from tlx.frontends.tensor_language.emit.divergent_loops import (
    Bounds,
    Counter,
    Entry,
    can_run_full_iterations,
    full_iterations,
    run_iteration,
)
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masks import active_where, any_lane, inverted
from tlx.frontends.tensor_language.emit.numbers import compare, constant, select, splat, undefined, vary
from tlx.frontends.tensor_language.emit.uniform_control import (
    close_value,
    goes_on,
    merged,
    open_phi,
    open_value,
    parts_of,
    uniform_for,
    uniform_if,
    with_parts,
)
from tlx.frontends.tensor_language.emit.unroll import branch_back
from tlx.frontends.tensor_language.emit.values import Emitted, Number
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType
from tlx.ir.rewriter import add_incoming
from tlx.ir.values import Value

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
    masks = [active_where(e, e.mask, condition), active_where(e, e.mask, inverted(e, condition))]
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
    going = active_where(e, active.value, goes_on(e, variable.value, b.add(variable.value, stride), limit, stride))
    again = any_lane(e, going)
    counter.close()
    add_incoming(active, going, b.block.name)
    latch = b.block
    for (_, phis), value in zip(opened, kept, strict=True):
        close_value(phis, value, latch)
    branch_back(e, i, again, body, end)
    b.at_end(end)
    for name, first, last in zip(i.results, entry.values, kept, strict=True):
        e.bind(name, merged(e, [(before, first), (latch, last)]))


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
