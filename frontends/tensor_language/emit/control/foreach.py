"""`foreach` and `foreach_tile`.

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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.frontends.tensor_language.emit.control.parallel import as_subgroup, subgroup_count
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masks import run_if
from tlx.frontends.tensor_language.emit.numbers import from_i64, lane_ids, linear_number, splat, to_i64
from tlx.frontends.tensor_language.emit.values import Linear, Number, register_type
from tlx.frontends.tensor_language.operations.control import Foreach, ForeachTile
from tlx.frontends.tensor_language.syntax.nodes import Name, Region
from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.types import I1, I32, I64, IntType
from tlx.ir.values import ConstInt, Value, const_int, const_ints


@dataclass(frozen=True, slots=True)
class _Range:
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
    with as_subgroup(e, const_int(I32, 0)), e.region():
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
        with as_subgroup(e, _turn(e, tiles, positions)):
            e.run(i.body)

    with e.region():
        _nest_counts(e, tiles, one_tile)


def _ranges(e: Emitter, i: Foreach | ForeachTile) -> list[_Range]:
    triples = zip(i.variables, e.numbers(i.starts), e.numbers(i.stops), strict=True)
    return [_range(e, name, start, stop) for name, start, stop in triples]


def _range(e: Emitter, name: Name, start: Number, stop: Number) -> _Range:
    first, last = to_i64(e, start), to_i64(e, stop)
    if isinstance(first, ConstInt) and isinstance(last, ConstInt):
        return _Range(name, start.type, first, const_int(I64, max(0, last.value - first.value)))
    distance = e.b.sub(last, first)
    count = e.b.select(e.b.icmp("slt", first, last), distance, const_int(I64, 0))
    return _Range(name, start.type, first, count)


def _in_lanes(e: Emitter, body: Region, r: _Range) -> None:
    """The loop over a range, a lane each value."""
    full = _rounded_down(e, r.count, e.lanes)
    _loop(e, full, e.lanes, lambda k: _run_lanes(e, body, r, k, None))
    rest = e.b.sub(r.count, full)
    if isinstance(rest, ConstInt):
        if rest.value > 0:
            _run_lanes(e, body, r, full, const_ints(I1, [lane < rest.value for lane in range(e.lanes)]))
        return
    if e.lanes == 1:  # every value had its own iteration
        return
    with run_if(e, e.b.icmp("ne", rest, 0), "remainder", "endforeach"):
        mask = e.b.icmp("ult", lane_ids(e), splat(e, e.b.cast("trunc", rest, I32)))
        _run_lanes(e, body, r, full, mask)


def _run_lanes(e: Emitter, body: Region, r: _Range, k: Value, mask: Value | None) -> None:
    """The body for the values from the k-th on."""
    base = _variable(e, r.type, e.b.add(r.start, k)).value
    with e.region(), e.masked(mask):
        e.bind(r.name, linear_number(e, r.type, Linear(base, 1, exact=True)))
        e.instructions(body.instructions)


def _nest(e: Emitter, ranges: Sequence[_Range], body: Callable[[], None]) -> None:
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
    """`min(extent, count - offset)`; the extent itself where it divides the count."""
    if isinstance(count, ConstInt) and count.value % extent == 0:
        return const_int(I64, extent)
    return e.b.umin(e.b.sub(count, offset), extent)


def _turn(e: Emitter, tiles: Sequence[Value], positions: Sequence[Value]) -> Value:
    """The subgroup that runs a tile: the number of the tile modulo that of subgroups."""
    subgroups = subgroup_count(e)
    if subgroups == 1:
        return const_int(I32, 0)
    number: Value = const_int(I64, 0)
    for count, position in zip(reversed(tiles), reversed(positions), strict=True):
        number = e.b.add(e.b.mul(number, count), position)
    return e.b.cast("trunc", e.b.binary("urem", number, const_int(I64, subgroups)), I32)


def _variable(e: Emitter, type_: ScalarType, value: Value) -> Number:
    """An i64 as a number of a variable's type, which holds it."""
    integer = register_type(type_)
    assert isinstance(integer, IntType)
    return Number(type_, (from_i64(e, value, integer),))


RULES: Final = {Foreach: foreach, ForeachTile: foreach_tile}
