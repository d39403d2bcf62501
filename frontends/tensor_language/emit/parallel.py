"""`parallel`, `foreach` and `foreach_tile`: subgroups run one after the other, with a lane for each work-item.

    parallel { ... }     ->     for s in 0 ... number of subgroups: the body, with all work-items active

    foreach (%i,%j)=(%a,%c),(%b,%d) { body }

      for j in c ... d                                 ; the last variable's loop is the outermost
        for k in 0 ... full, step S                    ; full = (b - a) rounded down to a multiple of S
          body with %i = a + k + <0, 1, ..., S-1>      ; all work-items
        if full < b - a
          body with %i = a + full + <0, 1, ..., S-1>   ; work-items 0 ... b - a - full

    foreach_tile (%i,%j)=(%a,%c),(%b,%d) as (%ti,%tj)<=(M,N) { body }

      for j in c ... d, step N
        for i in a ... b, step M
          body with %ti = min(M, b - i), %tj = min(N, d - j)   ; by one subgroup

Loop fission at barriers: if a body run by several subgroups contains barriers, all subgroups run the instructions
between two barriers before any of them continues. Values that are live across a barrier are kept in arrays with a slot
for each subgroup:

    parallel {                           for s in subgroups:
      %x = ... s ...                       x[s] = ... s ...
      barrier.local               ->     for s in subgroups:
      %y = ... %x ...                      ... x[s] ...
    }

All work-items reach a barrier, so they take the same path through an `if` or `for` that contains one: its branches are
emitted once, outside the loops over the subgroups, and the condition of work-item 0, or the trip count of its bounds,
decides. The variable of a `for` may differ between work-items, as starts and steps may:

    for %i=%from,%to,%step {             for trip in 0 ... trips of work-item 0:
      ... %i ...                           for s in subgroups:
      barrier.local               ->         ... from[s] + trip * step[s] ...
      ... %i ...                           for s in subgroups:
    }                                        ... from[s] + trip * step[s] ...

Values that such an instruction yields or carries are kept in slots as well. Each LLVM value of a slot has an array with
an entry for each subgroup; constants need none. Booleans take a byte each, because vectors of bits are slow to load and
store.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

from tlx.frontends.tensor_language.analysis.divergence import first_barrier
from tlx.frontends.tensor_language.emit.arithmetic.scalars import (
    constant,
    from_i64,
    lane_ids,
    linear_number,
    splat,
    to_i64,
)
from tlx.frontends.tensor_language.emit.emitter import (
    Emitted,
    Emitter,
    Interval,
    LinearLanes,
    Matrix,
    Memref,
    Number,
    loop_interval,
    register_type,
)
from tlx.frontends.tensor_language.emit.sequential import UniformLoop, as_varying, variable_in_trip
from tlx.frontends.tensor_language.emit.subgroups import run_if, to_uniform
from tlx.frontends.tensor_language.operations.control import Barrier, For, Foreach, ForeachTile, If, Parallel, Yield
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region
from tlx.frontends.tensor_language.types import LOCAL_ALIGNMENT, ScalarType
from tlx.ir.types import I1, I8, I32, I64, ArrayType, IntType, Type, VectorType
from tlx.ir.values import Constant, ConstInt, Value, const_int, const_ints
from tlx.target import thread_calls


@dataclass(frozen=True, slots=True)
class _VariableRange:
    """The values of a variable: `start + k` for `0 <= k < count`.

    Attributes:
        name: The variable.
        type: Its integer type.
        start: First value, i64.
        count: Number of values, i64, at least 0.
    """

    name: Name
    type: ScalarType
    start: Value
    count: Value


def foreach(e: Emitter, i: Foreach) -> None:
    """`foreach (%i,...)=(%from,...),(%to,...) { ... }`."""
    first, *others = _ranges(e, i)
    subgroup = const_int(I32, 0) if e.item is None else e.item.subgroup
    with _between_barriers(e), as_subgroup(e, subgroup), e.region():
        _nest(e, others, lambda: _in_lanes(e, i.body, first))


def foreach_tile(e: Emitter, i: ForeachTile) -> None:
    """`foreach_tile (%i,...)=(%from,...),(%to,...) as (%ti,...)<=(M,...) { ... }`."""
    ranges = _ranges(e, i)
    tiles = [_tile_count(e, r.count, extent) for r, extent in zip(ranges, i.tile_shape, strict=True)]
    modes = list(zip(ranges, i.sizes, i.tile_shape, strict=True))

    def one_tile(positions: Sequence[Value]) -> None:
        for (r, size, extent), position in zip(modes, positions, strict=True):
            offset = e.b.mul(position, extent)
            e.bind(r.name, _variable(e, r.type, e.b.add(r.start, offset)))
            e.bind(size, _variable(e, r.type, _size(e, r.count, offset, extent)))
        subgroup = _subgroup_of_tile(e, tiles, positions)
        own = None if e.item is None else e.b.icmp("eq", subgroup, e.item.subgroup)
        with run_if(e, own, "own", "others"), as_subgroup(e, subgroup):
            e.run(i.body)

    with _between_barriers(e), e.region():
        _nest_counts(e, tiles, one_tile)


def _ranges(e: Emitter, i: Foreach | ForeachTile) -> list[_VariableRange]:
    triples = zip(i.variables, e.numbers(i.starts), e.numbers(i.stops), strict=True)
    return [_range(e, name, start, stop) for name, start, stop in triples]


def _range(e: Emitter, name: Name, start: Number, stop: Number) -> _VariableRange:
    first, last = to_i64(e, start), to_i64(e, stop)
    if isinstance(first, ConstInt) and isinstance(last, ConstInt):
        return _VariableRange(name, start.type, first, const_int(I64, max(0, last.value - first.value)))
    distance = e.b.sub(last, first)
    count = e.b.select(e.b.icmp("slt", first, last), distance, const_int(I64, 0))
    return _VariableRange(name, start.type, first, count)


def _in_lanes(e: Emitter, body: Region, r: _VariableRange) -> None:
    """The loop over a range, with a lane for each value."""
    if e.item is not None:
        _in_threads(e, body, r)
        return
    full = _rounded_down(e, r.count, e.lanes)
    _loop(e, full, e.lanes, lambda k: _run_lanes(e, body, r, k, None))
    rest = e.b.sub(r.count, full)
    if isinstance(rest, ConstInt):
        if rest.value > 0:
            _run_lanes(e, body, r, full, const_ints(I1, [lane < rest.value for lane in range(e.lanes)]))
        return
    if e.lanes == 1:  # no remainder
        return
    with run_if(e, e.b.icmp("ne", rest, 0), "remainder", "endforeach"):
        mask = e.b.icmp("ult", lane_ids(e), splat(e, e.b.cast("trunc", rest, I32)))
        _run_lanes(e, body, r, full, mask)


def _in_threads(e: Emitter, body: Region, r: _VariableRange) -> None:
    """The loop over a range on a grid: each subgroup runs some vectors of values, by a thread for each of them."""
    assert e.item is not None
    b, size = e.b, e.launch.subgroup_size
    each = size * subgroup_count(e)
    first = b.mul(b.cast("zext", e.item.subgroup, I64), size)
    lane = b.cast("zext", e.item.lane, I64)
    with b.loop(0, b.ceil_div(r.count, each), name="round") as loop:
        k = b.add(b.mul(loop.index, each), first)
        with b.if_block(b.icmp("ult", k, r.count), "some"):
            _run_lanes(e, body, r, k, splat(e, b.icmp("ult", b.add(k, lane), r.count)))


def _run_lanes(e: Emitter, body: Region, r: _VariableRange, k: Value, mask: Value | None) -> None:
    """The body for a vector of values starting with the k-th."""
    base = _variable(e, r.type, e.b.add(r.start, k)).value
    with e.region(), e.masked(mask):
        e.bind(r.name, linear_number(e, r.type, LinearLanes(base, 1, exact=True)))
        e.instructions(body.instructions)


def _nest(e: Emitter, ranges: Sequence[_VariableRange], body: Callable[[], None]) -> None:
    """Loops over ranges, the last one outermost."""

    def bound(positions: Sequence[Value]) -> None:
        for r, position in zip(ranges, positions, strict=True):
            e.bind(r.name, _variable(e, r.type, e.b.add(r.start, position)))
        body()

    _nest_counts(e, [r.count for r in ranges], bound)


def _nest_counts(e: Emitter, counts: Sequence[Value], body: Callable[[Sequence[Value]], None]) -> None:
    """Loops from 0 to each count, the last one outermost."""
    if not counts:
        body(())
        return
    _loop(e, counts[-1], 1, lambda k: _nest_counts(e, counts[:-1], lambda inner: body((*inner, k))))


def _loop(e: Emitter, count: Value, step: int, body: Callable[[Value], None]) -> None:
    """A loop over 0, step, 2 * step, ... below a count, which may be 0."""
    if isinstance(count, ConstInt) and count.value <= 0:
        return
    with e.b.loop(0, count, step) as loop:
        body(loop.index)


def _rounded_down(e: Emitter, count: Value, multiple: int) -> Value:
    """The largest multiple of a power of two that is not greater than a count."""
    if isinstance(count, ConstInt):
        return const_int(I64, count.value // multiple * multiple)
    return e.b.binary("and", count, const_int(I64, -multiple))


def _tile_count(e: Emitter, count: Value, extent: int) -> Value:
    if isinstance(count, ConstInt):
        return const_int(I64, -(-count.value // extent))
    return e.b.binary("udiv", e.b.add(count, extent - 1), const_int(I64, extent))


def _size(e: Emitter, count: Value, offset: Value, extent: int) -> Value:
    """`min(extent, count - offset)`; the extent itself if it divides the count."""
    if isinstance(count, ConstInt) and count.value % extent == 0:
        return const_int(I64, extent)
    return e.b.umin(e.b.sub(count, offset), extent)


def _subgroup_of_tile(e: Emitter, tiles: Sequence[Value], positions: Sequence[Value]) -> Value:
    """The subgroup that runs a tile: its number modulo the number of subgroups."""
    subgroups = subgroup_count(e)
    if subgroups == 1:
        return const_int(I32, 0)
    number: Value = const_int(I64, 0)
    for count, position in zip(reversed(tiles), reversed(positions), strict=True):
        number = e.b.add(e.b.mul(number, count), position)
    return e.b.cast("trunc", e.b.binary("urem", number, const_int(I64, subgroups)), I32)


def _variable(e: Emitter, type_: ScalarType, value: Value) -> Number:
    """An i64 as a number of a variable's type, into which it fits."""
    integer = register_type(type_)
    assert isinstance(integer, IntType)
    return Number(type_, (from_i64(e, value, integer),))


def subgroup_count(e: Emitter) -> int:
    """Subgroups of a work-group."""
    return math.prod(e.launch.num_subgroups)


@contextmanager
def as_subgroup(e: Emitter, number: Value) -> Generator[None]:
    """Code emitted inside is run by a subgroup (linear id, i32), with all of its work-items active."""
    before, e.subgroup = e.subgroup, number
    with e.masked(None):
        yield
    e.subgroup = before


@contextmanager
def _between_barriers(e: Emitter) -> Generator[None]:
    """Orders the code emitted inside after all earlier and before all later code; on a grid, this takes barriers."""
    if e.item is not None:
        thread_calls.barrier(e.b)
    yield
    if e.item is not None:
        thread_calls.barrier(e.b)


@contextmanager
def each_subgroup(e: Emitter) -> Generator[Value]:
    """Code emitted inside runs for each subgroup; yields its linear id, i64."""
    count = subgroup_count(e)
    with e.b.loop(0, count, name="subgroup") as loop:
        number = const_int(I32, 0) if count == 1 else e.b.cast("trunc", loop.index, I32)
        with as_subgroup(e, number):
            yield loop.index if count > 1 else const_int(I64, 0)


_UNALIGNED: Final = 1  # entries of an array may be of any size


class SubgroupSlot:
    """The value of a name for each subgroup.

    Args:
        e: The emitter.
        like: A value; others of the same form can be kept.
        constants: Whether constants in `like` are the same in all values that will be kept.
    """

    def __init__(self, e: Emitter, like: Emitted, *, constants: bool) -> None:
        self._like = like
        self._arrays = [_array(e, v, constants=constants) for v in _values(like)]

    @property
    def is_constant(self) -> bool:
        """Whether nothing needs to be stored: all subgroups have the same constants."""
        return all(array is None for array in self._arrays)

    def store(self, e: Emitter, subgroup: Value, value: Emitted) -> None:
        """Store a subgroup's value."""
        for array, part in zip(self._arrays, _values(value), strict=True):
            if array is not None:
                bits = e.b.cast("zext", part, _memory_type(part.type))
                e.b.store(bits, e.b.gep(bits.type, array, subgroup), _UNALIGNED)

    def load(self, e: Emitter, subgroup: Value) -> Emitted:
        """A subgroup's value."""
        pairs = zip(self._arrays, _values(self._like), strict=True)
        return _rebuilt(self._like, [_loaded(e, array, part, subgroup) for array, part in pairs])


def _values(value: Emitted) -> tuple[Value, ...]:
    """The LLVM values of a value."""
    match value:
        case Number():
            return value.parts if value.linear is None else (*value.parts, value.linear.base)
        case Matrix():
            return value.parts
        case Memref():
            return value.pointer, *value.shape, *value.stride
        case _:
            raise AssertionError("groups are parameters of the kernel")


def _rebuilt(like: Emitted, values: Sequence[Value]) -> Emitted:
    """A value of the same form with other LLVM values."""
    match like:
        case Number():
            count = len(like.parts)
            linear = None if like.linear is None else replace(like.linear, base=values[count])
            return replace(like, parts=tuple(values[:count]), linear=linear)
        case Matrix():
            return Matrix(like.type, tuple(values))
        case Memref():
            order = len(like.shape)
            shape, stride = tuple(values[1 : order + 1]), tuple(values[order + 1 :])
            return replace(like, pointer=values[0], shape=shape, stride=stride)
        case _:
            raise AssertionError("groups are parameters of the kernel")


def _array(e: Emitter, value: Value, *, constants: bool) -> Value | None:
    if constants and isinstance(value, Constant):
        return None
    type_ = _memory_type(value.type)
    return e.b.alloca(ArrayType(subgroup_count(e), type_), "slots", LOCAL_ALIGNMENT)


def _loaded(e: Emitter, array: Value | None, part: Value, subgroup: Value) -> Value:
    if array is None:
        return part
    type_ = _memory_type(part.type)
    value = e.b.load(type_, e.b.gep(type_, array, subgroup), _UNALIGNED)
    return e.b.cast("trunc", value, part.type)


def _memory_type(type_: Type) -> Type:
    """The type itself, with bytes for bits."""
    if isinstance(type_, VectorType):
        return VectorType(type_.count, _memory_type(type_.element))
    return I8 if type_ == I1 else type_


class _SavedValue(Protocol):
    """Gives the value of a name for each subgroup."""

    def load(self, e: Emitter, subgroup: Value) -> Emitted:
        """The value of a subgroup, whose linear id is an i64."""
        ...


@dataclass(frozen=True, slots=True)
class _LoopVariable:
    """The variable of a loop whose start or step varies, computed where it is read.

    Attributes:
        start: The first value.
        step: The step.
        trip: Number of the trip, counted from 0, in the variable's type.
        interval: What is known of the variable.
    """

    start: _SavedValue
    step: _SavedValue
    trip: Value
    interval: Interval | None

    def load(self, e: Emitter, subgroup: Value) -> Emitted:
        """The value of a subgroup."""
        start, step = (slot.load(e, subgroup) for slot in (self.start, self.step))
        assert isinstance(start, Number)
        assert isinstance(step, Number)
        return variable_in_trip(e, start, step, self.trip, self.interval)


@dataclass(frozen=True, slots=True)
class _UniformNumber:
    """A number that is uniform in the work-group."""

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
        self._slots: dict[str, _SavedValue] = {}

    def run(self) -> None:
        """Write it."""
        self._region(self._body)

    def _region(self, region: Region) -> Sequence[Name]:
        """Emit a region; returns the names that it yields."""
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
        """Instructions without barriers, in one loop over the subgroups."""
        if not instructions:
            return
        own = _reads(instructions)
        live_out = [name for i in instructions for name in i.results if self._reads[name.text] > own[name.text]]
        slots: dict[str, SubgroupSlot] = {}
        with self._each_subgroup(own) as subgroup:
            self._e.instructions(list(instructions))
            for name in live_out:
                value = self._e.scope[name.text]
                slots[name.text] = SubgroupSlot(self._e, value, constants=True)
                slots[name.text].store(self._e, subgroup, value)
        self._slots.update(slots)

    # Control flow that contains barriers -----------------------------------------------------------------------

    def _if(self, i: If) -> None:
        b = self._e.b
        condition = to_uniform(self._e, self._number(i.condition)).value
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

    def _arm(
        self, region: Region, flags: Sequence[bool], slots: Sequence[SubgroupSlot] | None
    ) -> Sequence[SubgroupSlot]:
        """Emit a branch, and store the values that it yields in slots."""
        with self._scope():
            return self._copy(self._region(region), flags, slots)

    def _for(self, i: For) -> None:
        e = self._e
        numbers = [self._number(name) for name in (i.start, i.stop)]
        numbers.append(self._number(i.step) if i.step is not None else constant(numbers[0].type, 1))
        interval = loop_interval(*numbers[:2])
        start, stop, step = (to_uniform(e, number) for number in numbers)
        flags = [e.is_varying(name) for name in i.carried]
        slots = self._copy(i.initial, flags, None)
        bounds = [self._saved(i.start), self._saved(i.step) if i.step is not None else _UniformNumber(step)]
        are_common = all(isinstance(bound, _UniformNumber) for bound in bounds)
        loop = UniformLoop(e, i, start, stop, step, counts_trips=not are_common)
        with e.region(), self._scope():
            if loop.trip is not None:
                self._slots[i.variable.text] = _LoopVariable(bounds[0], bounds[1], loop.trip, interval)
            else:
                e.bind(i.variable, Number(start.type, (loop.variable,), interval=interval))
            self._slots.update(zip((name.text for name in i.carried), slots, strict=True))
            self._copy(self._region(i.body), flags, slots)
        loop.close()
        self._slots.update(zip((name.text for name in i.results), slots, strict=True))

    # Slots -----------------------------------------------------------------------------------------------------

    def _copy(
        self, names: Sequence[Name], flags: Sequence[bool], slots: Sequence[SubgroupSlot] | None
    ) -> Sequence[SubgroupSlot]:
        """Store values of names in slots; new slots are created if there are none yet."""
        if not names:
            return ()
        e = self._e
        with self._each_subgroup(name.text for name in names) as subgroup:
            values = [as_varying(e, e.scope[n.text], flag) for n, flag in zip(names, flags, strict=True)]
            values = [replace(v, linear=None, interval=None) if isinstance(v, Number) else v for v in values]
            slots = slots or [SubgroupSlot(e, value, constants=False) for value in values]
            for slot, value in zip(slots, values, strict=True):
                slot.store(e, subgroup, value)
        return slots

    def _number(self, name: Name) -> Number:
        """A number as subgroup 0 holds it."""
        value = self._saved(name).load(self._e, const_int(I64, 0))
        assert isinstance(value, Number)
        return value

    def _saved(self, name: Name) -> _SavedValue:
        """The number for each subgroup; `_UniformNumber` if it is certainly uniform in the work-group."""
        slot = self._slots.get(name.text)
        if slot is None:
            return _UniformNumber(self._e.number(name))
        if isinstance(slot, SubgroupSlot) and slot.is_constant:
            value = slot.load(self._e, const_int(I64, 0))
            if isinstance(value, Number) and not value.is_varying:
                return _UniformNumber(value)
        return slot

    @contextmanager
    def _each_subgroup(self, names: Iterable[str]) -> Generator[Value]:
        """A loop over the subgroups in which names with slots are bound to their values."""
        with each_subgroup(self._e) as subgroup, self._e.region():
            for text in names:
                if text in self._slots:
                    self._e.scope[text] = self._slots[text].load(self._e, subgroup)
            yield subgroup

    @contextmanager
    def _scope(self) -> Generator[None]:
        """Slots created inside go out of scope at the end."""
        before = dict(self._slots)
        yield
        self._slots = before


def _reads(instructions: Iterable[Instruction]) -> Counter[str]:
    """How often each name is read, including nested regions."""
    counts: Counter[str] = Counter()
    for i in instructions:
        counts.update(name.text for name in i.operands())
        for region in i.regions():
            counts.update(_reads(region.instructions))
    return counts


def parallel(e: Emitter, i: Parallel) -> None:
    """`parallel { ... }`."""
    if e.item is not None:
        with _between_barriers(e), as_subgroup(e, e.item.subgroup):
            e.run(i.body)
        return
    if subgroup_count(e) > 1 and first_barrier(i) is not None:
        Fission(e, i.body).run()
        return
    with each_subgroup(e):
        e.run(i.body)


def barrier(e: Emitter, _i: Barrier) -> None:
    """`barrier[.global][.local]`; nothing when one thread runs the whole work-group."""
    if e.item is not None:
        thread_calls.barrier(e.b)
