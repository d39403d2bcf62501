"""Barriers between the subgroups of a work-group, which one thread runs: loop fission.

What stands between two barriers is run by all subgroups, one after the other, before what follows. Values that are
needed behind a barrier are kept in arrays with a slot for each subgroup:

    parallel {                           for s in subgroups:
      %x = ... s ...                       x[s] = ... s ...
      barrier.local               ->     for s in subgroups:
      %y = ... %x ...                      ... x[s] ...
    }

All work-items meet at a barrier, so an `if` or `for` that contains one goes the same way for all of them: its branches
are written once, outside of the loops over the subgroups, and the condition of work-item 0, or the number of trips that
its bounds make, decides. The variable of a `for` is each work-item's own, as starts and steps may differ:

    for %i=%from,%to,%step {             for trip in 0 ... trips of work-item 0:
      ... %i ...                           for s in subgroups:
      barrier.local               ->         ... from[s] + trip * step[s] ...
      ... %i ...                           for s in subgroups:
    }                                        ... from[s] + trip * step[s] ...

Values that such an instruction yields or carries live in slots too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from tlx.frontends.tensor_language.ast.base import Instruction, Name, Region
from tlx.frontends.tensor_language.ast.mixed import Barrier, For, If, Yield
from tlx.frontends.tensor_language.emit.divergence import first_barrier
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.intervals import of_loop
from tlx.frontends.tensor_language.emit.masks import uniform
from tlx.frontends.tensor_language.emit.numbers import constant
from tlx.frontends.tensor_language.emit.slots import Slot
from tlx.frontends.tensor_language.emit.subgroup_loop import each_subgroup
from tlx.frontends.tensor_language.emit.uniform_control import as_varying, goes_on, in_trip, open_phi
from tlx.frontends.tensor_language.emit.values import Emitted, Interval, Number
from tlx.ir.rewriter import add_incoming
from tlx.ir.types import I64
from tlx.ir.values import Value, const_int


class _Kept(Protocol):
    """What gives the value of a name for each subgroup."""

    def load(self, e: Emitter, subgroup: Value) -> Emitted:
        """The value of a subgroup, whose linear id is an i64."""
        ...


@dataclass(frozen=True, slots=True)
class _LoopVariable:
    """The variable of a loop that work-items start or step differently, computed where it is read.

    Attributes:
        start: The first value.
        step: The step.
        trip: Number of the trip, counted from 0, in the variable's type.
        interval: What is known of the variable.
    """

    start: _Kept
    step: _Kept
    trip: Value
    interval: Interval | None

    def load(self, e: Emitter, subgroup: Value) -> Emitted:
        """The value of a subgroup."""
        start, step = (kept.load(e, subgroup) for kept in (self.start, self.step))
        assert isinstance(start, Number)
        assert isinstance(step, Number)
        return in_trip(e, start, step, self.trip, self.interval)


@dataclass(frozen=True, slots=True)
class _Common:
    """A number that is the same in the whole work-group."""

    number: Number

    def load(self, e: Emitter, subgroup: Value) -> Emitted:  # noqa: ARG002
        """The value of any subgroup."""
        return self.number


class Fission:
    """Writes the body of a `parallel` that has barriers, for several subgroups."""

    def __init__(self, e: Emitter, body: Region) -> None:
        self._e = e
        self._body = body
        self._reads = _reads(body.instructions)
        self._slots: dict[str, _Kept] = {}

    def run(self) -> None:
        """Write it."""
        self._region(self._body)

    def _region(self, region: Region) -> Sequence[Name]:
        """Write a region; gives the names that it yields."""
        pending: list[Instruction] = []
        for i in region.instructions:
            if isinstance(i, Yield):
                self._segment(pending)
                return i.values
            if first_barrier(i) is None:
                pending.append(i)
                continue
            self._segment(pending)
            pending = []
            self._split(i)
        self._segment(pending)
        return ()

    def _split(self, i: Instruction) -> None:
        match i:
            case If():
                self._if(i)
            case For():
                self._for(i)
            case _:
                assert isinstance(i, Barrier), "no other instruction has a barrier inside"

    def _segment(self, instructions: Sequence[Instruction]) -> None:
        """Instructions without barriers: all of them by one subgroup after the other."""
        if not instructions:
            return
        own = _reads(instructions)
        kept = [name for i in instructions for name in i.results if self._reads[name.text] > own[name.text]]
        slots: dict[str, Slot] = {}
        with self._each_subgroup(own) as subgroup:
            self._e.instructions(list(instructions))
            for name in kept:
                value = self._e.scope[name.text]
                slots[name.text] = Slot(self._e, value, constants=True)
                slots[name.text].store(self._e, subgroup, value)
        self._slots.update(slots)

    # Control flow that contains barriers -----------------------------------------------------------------------

    def _if(self, i: If) -> None:
        b = self._e.b
        condition = uniform(self._e, self._number(i.condition)).value
        flags = [self._e.is_varying(name) for name in i.results]
        then = b.new_block("then")
        otherwise = b.new_block("else", then)
        end = b.new_block("endif", otherwise)
        b.branch_if(condition, then, otherwise)
        b.at_end(then)
        slots = self._arm(i.then, flags, None)
        b.branch(end)
        b.at_end(otherwise)
        if i.otherwise is not None:
            self._arm(i.otherwise, flags, slots)
        b.branch(end)
        b.at_end(end)
        self._slots.update(zip((name.text for name in i.results), slots, strict=True))

    def _arm(self, region: Region, flags: Sequence[bool], slots: Sequence[Slot] | None) -> Sequence[Slot]:
        """A branch, and what it yields put into slots."""
        with self._scope():
            return self._copy(self._region(region), flags, slots)

    def _for(self, i: For) -> None:
        e, b = self._e, self._e.b
        numbers = [self._number(name) for name in (i.start, i.stop)]
        numbers.append(self._number(i.step) if i.step is not None else constant(numbers[0].type, 1))
        known = of_loop(*numbers[:2])
        start, stop, step = (uniform(e, number) for number in numbers)
        flags = [e.is_varying(name) for name in i.carried]
        slots = self._copy(i.initial, flags, None)
        before = b.block
        body = b.new_block("for")
        end = b.new_block("endfor", body)
        b.branch_if(b.icmp("slt", start.value, stop.value), body, end)
        b.at_end(body)
        variable = open_phi(e, start.value, before)
        kept = [self._kept(i.start), self._kept(i.step) if i.step is not None else _Common(step)]
        trip = None if all(isinstance(k, _Common) for k in kept) else open_phi(e, constant(start.type, 0).value, before)
        with e.region(), self._scope():
            if trip is not None:
                self._slots[i.variable.text] = _LoopVariable(kept[0], kept[1], trip.value, known)
            else:
                e.bind(i.variable, Number(start.type, (variable.value,), interval=known))
            self._slots.update(zip((name.text for name in i.carried), slots, strict=True))
            self._copy(self._region(i.body), flags, slots)
        following = b.add(variable.value, step.value)
        add_incoming(variable, following, b.block.name)
        if trip is not None:
            add_incoming(trip, b.add(trip.value, 1), b.block.name)
        b.branch_if(goes_on(e, variable.value, following, stop.value, step.value), body, end)
        b.at_end(end)
        self._slots.update(zip((name.text for name in i.results), slots, strict=True))

    # Slots -----------------------------------------------------------------------------------------------------

    def _copy(self, names: Sequence[Name], flags: Sequence[bool], slots: Sequence[Slot] | None) -> Sequence[Slot]:
        """Put values of names into slots: into new ones where there are none yet."""
        if not names:
            return ()
        e = self._e
        with self._each_subgroup(name.text for name in names) as subgroup:
            values = [as_varying(e, e.scope[n.text], flag) for n, flag in zip(names, flags, strict=True)]
            values = [replace(v, linear=None, interval=None) if isinstance(v, Number) else v for v in values]
            slots = slots or [Slot(e, value, constants=False) for value in values]
            for slot, value in zip(slots, values, strict=True):
                slot.store(e, subgroup, value)
        return slots

    def _number(self, name: Name) -> Number:
        """A number as subgroup 0 holds it."""
        value = self._kept(name).load(self._e, const_int(I64, 0))
        assert isinstance(value, Number)
        return value

    def _kept(self, name: Name) -> _Kept:
        """What gives a number for each subgroup; `_Common` where all work-items certainly hold the same."""
        slot = self._slots.get(name.text)
        if slot is None:
            return _Common(self._e.number(name))
        if isinstance(slot, Slot) and slot.is_constant:
            value = slot.load(self._e, const_int(I64, 0))
            if isinstance(value, Number) and not value.is_varying:
                return _Common(value)
        return slot

    @contextmanager
    def _each_subgroup(self, names: Iterable[str]) -> Generator[Value]:
        """A loop over the subgroups in which the names that have slots are bound."""
        with each_subgroup(self._e) as subgroup, self._e.region():
            for text in names:
                if text in self._slots:
                    self._e.scope[text] = self._slots[text].load(self._e, subgroup)
            yield subgroup

    @contextmanager
    def _scope(self) -> Generator[None]:
        """Names that get slots inside are forgotten behind it."""
        before = dict(self._slots)
        yield
        self._slots = before


def _reads(instructions: Iterable[Instruction]) -> Counter[str]:
    """How often each name is read, in nested regions too."""
    found: Counter[str] = Counter()
    for i in instructions:
        found.update(name.text for name in i.operands())
        for region in i.regions():
            found.update(_reads(region.instructions))
    return found
