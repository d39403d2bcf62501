"""The lanes of a subgroup: conditional blocks, masks of active work-items, ids, broadcasts, scans and reductions.

A mask is `<S x i1>`; None means that all work-items are active. Inactive lanes may be poison, which `and` would
propagate: masks are combined by `select`, which ignores the operand that it does not choose.

An inclusive scan of n lanes takes ceil(log2 n) steps; in step d = 1, 2, 4, ... lane i adds the value of lane i - d:

    x0      x1          x2                  x3
    x0      x0+x1       x1+x2               x2+x3
    x0      x0+x1       x0+x1+x2            x0+x1+x2+x3

A reduction is a tree: in each step the upper half of the lanes is added to the lower. Inactive lanes
contribute nothing. Narrow floats are rounded once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Final

from tlx.frontends.tensor_language.emit import threads
from tlx.frontends.tensor_language.emit.arithmetic.registers import full_like
from tlx.frontends.tensor_language.emit.arithmetic.scalars import (
    binary,
    index,
    lane_ids,
    reduce_lanes,
    round_to_type,
    splat,
    vary,
)
from tlx.frontends.tensor_language.emit.emitter import Emitter, LinearLanes, Memref, Number
from tlx.frontends.tensor_language.operations.core import UpdateOp
from tlx.frontends.tensor_language.operations.subgroups import Builtin, ScanKind, SubgroupBroadcast, SubgroupOperation
from tlx.frontends.tensor_language.types import F32, LOCAL_ALIGNMENT, ScalarType
from tlx.frontends.tensor_language.types import I32 as LANGUAGE_I32
from tlx.ir.types import I1, I32, I64, VOID, ArrayType, IntType, Type, VectorType
from tlx.ir.values import ConstInt, Keyword, Value, const_int


@contextmanager
def run_if(e: Emitter, condition: Value | None, name: str, end_name: str) -> Generator[None]:
    """Code emitted inside runs if a condition holds.

    Args:
        e: The emitter.
        condition: An i1, or None if it always runs.
        name: The name of its block.
        end_name: The name of the block after it.
    """
    if condition is None:
        yield
        return
    body = e.b.new_block(name)
    end = e.b.new_block(end_name, body)
    e.b.branch_if(condition, body, end)
    e.b.at_end(body)
    yield
    e.b.branch(end)
    e.b.at_end(end)


def all_of(e: Emitter, conditions: Sequence[Value]) -> Value:
    """Whether all conditions hold; there is at least one."""
    return reduce(lambda a, b: e.b.binary("and", a, b), conditions)


def if_else(e: Emitter, condition: Value, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """`if (condition) then else otherwise`."""
    one = e.b.new_block("then")
    other = e.b.new_block("else", one)
    end = e.b.new_block("endif", other)
    e.b.branch_if(condition, one, other)
    for block, write in ((one, then), (other, otherwise)):
        e.b.at_end(block)
        write()
        e.b.branch(end)
    e.b.at_end(end)


def trap_if_null(e: Emitter, pointer: Value) -> None:
    """Trap if an allocation failed: a kernel cannot report an error to its caller."""
    short = e.b.new_block("no.memory")
    rest = e.b.new_block("allocated", short)
    e.b.branch_if(e.b.icmp("eq", pointer, Keyword(pointer.type, "null")), short, rest)
    e.b.at_end(short)
    e.b.call_named("llvm.trap", VOID, [])
    e.b.emit("unreachable", VOID, [], "unreachable")
    e.b.at_end(rest)


def active_where(e: Emitter, mask: Value | None, condition: Value) -> Value:
    """The active lanes in which a condition holds."""
    condition = splat(e, condition)
    return condition if mask is None else e.b.select(mask, condition, full_like(mask, 0))


def inactive_where(e: Emitter, condition: Value) -> Value:
    """The lanes in which a condition does not hold."""
    return e.b.binary("xor", condition, full_like(condition, -1))


def any_lane(e: Emitter, mask: Value) -> Value:
    """Whether any lane of a mask is set."""
    bits = _lane_bits(e, mask) if e.item is None else threads.ballot(e, mask)
    return e.b.icmp("ne", bits, 0)


def _lane_bits(e: Emitter, mask: Value) -> Value:
    """A mask as an integer; lane 0 is the lowest bit."""
    assert isinstance(mask.type, VectorType)
    return e.b.cast("bitcast", mask, IntType(mask.type.count))


def first_active(e: Emitter, value: Value) -> Value:
    """The value in the first active lane; a scalar is returned as it is."""
    if not isinstance(value.type, VectorType):
        return value
    if e.mask is None:
        return extract_lane(e, value, const_int(I32, 0))
    return extract_lane(e, value, _first_lane(e, e.mask))


def to_uniform(e: Emitter, number: Number) -> Number:
    """A number that is uniform in the active lanes, as a scalar."""
    if not number.is_varying:
        return number
    return Number(number.type, tuple(first_active(e, part) for part in number.parts))


def to_uniform_memref(e: Emitter, memref: Memref) -> Memref:
    """A memref that is uniform in the active lanes, with scalar components."""
    if not memref.is_varying:
        return memref
    shape = tuple(first_active(e, extent) for extent in memref.shape)
    stride = tuple(first_active(e, step) for step in memref.stride)
    return replace(memref, pointer=first_active(e, memref.pointer), shape=shape, stride=stride)


def extract_lane(e: Emitter, vector: Value, lane: Value) -> Value:
    """The value of a lane, which may be known only at run time."""
    assert isinstance(vector.type, VectorType)
    if e.item is not None:
        return threads.shuffle(e, e.b.extract_element(vector, 0), lane)
    if isinstance(lane, ConstInt):
        return e.b.extract_element(vector, lane.value)
    body = f"extractelement {vector.typed}, {lane.typed}"
    return e.b.value("extractelement", vector.type.element, [vector, lane], body)


def for_each_active(
    e: Emitter,
    values: Sequence[Value],
    results: Sequence[Type],
    body: Callable[[tuple[Value, ...]], Sequence[Value]],
) -> tuple[Value, ...]:
    """Emit a loop over the active lanes, lowest first.

    Args:
        e: The emitter.
        values: Scalars, and vectors of which the body gets one lane.
        results: Types of the results of the body.
        body: Emits the body, given the values of one lane.

    Returns:
        A vector for each of the results, undefined in inactive lanes.
    """
    spilled = [_spilled(e, value) for value in values]
    arrays = [_array(e, type_) for type_ in results]
    bits = _lane_bits(e, e.mask) if e.mask is not None else None
    with e.b.loop(0, e.lanes, name="lane") as loop:
        is_active = _bit(e, bits, loop.index) if bits is not None else None
        with run_if(e, is_active, "active", "inactive"):
            lane = tuple(_entry(e, memory, value, loop.index) for memory, value in zip(spilled, values, strict=True))
            for memory, value in zip(arrays, body(lane), strict=True):
                e.b.store(value, e.b.gep(value.type, memory, loop.index), 1)
    vectors = (VectorType(e.lanes, type_) for type_ in results)
    return tuple(e.b.load(type_, memory, LOCAL_ALIGNMENT) for type_, memory in zip(vectors, arrays, strict=True))


def _first_lane(e: Emitter, mask: Value) -> Value:
    bits = _lane_bits(e, mask) if e.item is None else threads.ballot(e, mask)
    lane = e.b.call_intrinsic("llvm.cttz", [bits.type], bits.type, [bits, const_int(I1, 1)])
    if bits.type == I32:
        return lane
    assert isinstance(bits.type, IntType)
    return e.b.cast("zext" if bits.type.bits < I32.bits else "trunc", lane, I32)


def _array(e: Emitter, element: Type) -> Value:
    return e.b.alloca(ArrayType(e.lanes, element), "lanes", LOCAL_ALIGNMENT)


def _spilled(e: Emitter, value: Value) -> Value | None:
    """A vector in memory, where single lanes can be loaded."""
    if not isinstance(value.type, VectorType):
        return None
    memory = _array(e, value.type.element)
    e.b.store(value, memory, LOCAL_ALIGNMENT)
    return memory


def _entry(e: Emitter, memory: Value | None, value: Value, lane: Value) -> Value:
    if memory is None or not isinstance(value.type, VectorType):
        return value
    element = value.type.element
    return e.b.load(element, e.b.gep(element, memory, lane), 1)


def _bit(e: Emitter, bits: Value, lane: Value) -> Value:
    """The bit of a lane (i64)."""
    assert isinstance(bits.type, IntType)
    wide = IntType(max(I64.bits, bits.type.bits))
    return e.b.cast("trunc", e.b.binary("lshr", e.b.cast("zext", bits, wide), e.b.cast("zext", lane, wide)), I1)


def builtin(e: Emitter, i: Builtin) -> None:
    """`%r = group_id.x : index` and the like."""
    mode = "xyz".index(i.component or "x")
    match i.name:
        case "group_id":
            e.bind(i.result, index(e.launch.group_id[mode]))
        case "num_groups":
            e.bind(i.result, index(e.launch.num_groups[mode]))
        case "num_subgroups":
            e.bind(i.result, _number(const_int(I32, e.launch.num_subgroups[mode])))
        case "subgroup_size":
            e.bind(i.result, _number(const_int(I32, e.launch.subgroup_size)))
        case "subgroup_local_id":
            lanes = LinearLanes(const_int(I32, 0), 1, exact=True)
            e.bind(i.result, Number(LANGUAGE_I32, (lane_ids(e),), lanes, (0, e.launch.subgroup_size - 1)))
        case "subgroup_linear_id":
            e.bind(i.result, _number(_linear_id(e), math.prod(e.launch.num_subgroups)))
        case "subgroup_id":
            e.bind(i.result, _number(_subgroup_id(e, mode), e.launch.num_subgroups[mode]))


def _linear_id(e: Emitter) -> Value:
    assert e.subgroup is not None, "the checker allows it in SPMD regions only"
    return e.subgroup


def _subgroup_id(e: Emitter, mode: int) -> Value:
    """`linear = x + y * num_subgroups.x`."""
    columns = e.launch.num_subgroups
    if columns[mode] == 1:
        return const_int(I32, 0)
    opcode = "urem" if mode == 0 else "udiv"
    return e.b.binary(opcode, _linear_id(e), const_int(I32, columns[0]))


def _number(value: Value, count: int | None = None) -> Number:
    """An i32; its interval is [0, count - 1] if a count is given."""
    return Number(LANGUAGE_I32, (value,), interval=None if count is None else (0, count - 1))


_INFINITY: Final = float("inf")
_NAN: Final = float("nan")


def broadcast(e: Emitter, i: SubgroupBroadcast) -> None:
    """`%r = subgroup_broadcast %value, %lane : type`."""
    value = e.number(i.value)
    lane = first_active(e, e.number(i.lane).value)
    parts = (extract_lane(e, part, lane) if value.is_varying else part for part in value.parts)
    e.bind(i.result, Number(value.type, tuple(parts)))


def operation(e: Emitter, i: SubgroupOperation) -> None:
    """`%r = subgroup_inclusive_scan_add %value : type` and the like."""
    number = vary(e, e.number(i.value))
    if i.kind == "reduce":
        e.bind(i.result, reduce_subgroup(e, i.op, number))
    else:
        e.bind(i.result, scan_subgroup(e, i.kind, i.op, number))


def reduce_subgroup(e: Emitter, op: UpdateOp, number: Number) -> Number:
    """`op` of the values of all active work-items."""
    type_ = number.type.part
    neutral = _neutral(op, type_)
    reduced = (_reduced(e, op, _wide(type_), _only_active(e, part, neutral)) for part in number.parts)
    return Number(number.type, tuple(round_to_type(e, part, type_) for part in reduced))


def _reduced(e: Emitter, op: UpdateOp, type_: ScalarType, lanes: Value) -> Value:
    """`op` of all lanes, in the order of a tree."""
    if e.item is None:
        return reduce_lanes(e, op, type_, lanes)
    value, distance = e.b.extract_element(lanes, 0), e.launch.subgroup_size // 2
    while distance:
        other = threads.shuffle(e, value, e.b.binary("xor", e.item.lane, const_int(I32, distance)))
        (value,) = binary(e, op, type_, (value,), (other,))
        distance //= 2
    return value


def scan_subgroup(e: Emitter, kind: ScanKind, op: UpdateOp, number: Number) -> Number:
    """For each work-item, `op` of its value and those of the work-items before it; an exclusive scan omits its own."""
    type_ = number.type.part
    is_exclusive = kind == "exclusive_scan"
    neutral = _identity(op, type_) if is_exclusive else _neutral(op, type_)
    parts: list[Value] = []
    for part in number.parts:
        lanes = _steps(e, op, type_, _only_active(e, part, neutral))
        if is_exclusive:
            lanes = _moved_up(e, lanes, full_like(lanes, _identity(op, type_)))
        parts.append(round_to_type(e, lanes, type_))
    return Number(number.type, tuple(parts))


def _identity(op: UpdateOp, type_: ScalarType) -> float:
    """The result of an exclusive scan in the first work-item: 0, the smallest or the largest value."""
    if op == "add":
        return 0
    if type_.kind == "float":
        return -_INFINITY if op == "max" else _INFINITY
    return -(1 << (type_.bits - 1)) if op == "max" else (1 << (type_.bits - 1)) - 1


def _neutral(op: UpdateOp, type_: ScalarType) -> float:
    """The value of inactive lanes, which leaves any other operand unchanged.

    The identity would not: `-0.0 + 0.0` is not `-0.0`, and the maximum of NaN and minus infinity is not NaN.
    """
    if type_.kind == "float":
        return -0.0 if op == "add" else _NAN
    return _identity(op, type_)


def _only_active(e: Emitter, lanes: Value, neutral: float) -> Value:
    """The lanes, with a neutral value in inactive ones."""
    return lanes if e.mask is None else e.b.select(e.mask, lanes, full_like(lanes, neutral))


def _steps(e: Emitter, op: UpdateOp, type_: ScalarType, lanes: Value) -> Value:
    """An inclusive scan."""
    count, distance = e.launch.subgroup_size, 1
    while distance < count:
        if e.item is not None:
            before = splat(e, _below(e, lanes, distance))
            (joined,) = binary(e, op, _wide(type_), (before,), (lanes,))
            lanes = e.b.select(e.b.icmp("ult", e.item.lane, distance), lanes, joined)
            distance *= 2
            continue
        before = e.b.shuffle(lanes, None, [k - distance if k >= distance else -1 for k in range(count)])
        (joined,) = binary(e, op, _wide(type_), (before,), (lanes,))
        lanes = e.b.shuffle(lanes, joined, [k if k < distance else count + k for k in range(count)])
        distance *= 2
    return lanes


def _moved_up(e: Emitter, lanes: Value, first: Value) -> Value:
    """Each lane's value in the next lane, and `first` in lane 0."""
    if e.item is not None:
        return e.b.select(e.b.icmp("eq", e.item.lane, 0), first, splat(e, _below(e, lanes, 1)))
    count = e.launch.subgroup_size
    return e.b.shuffle(lanes, first, [count, *range(count - 1)])


def _wide(type_: ScalarType) -> ScalarType:
    """The type for intermediate results: f32 for narrow floats."""
    return F32 if type_.is_narrow_float else type_


def _below(e: Emitter, lanes: Value, distance: int) -> Value:
    """The value of the lane that many below, which the first lanes do not have."""
    assert e.item is not None
    return threads.shuffle(e, e.b.extract_element(lanes, 0), e.b.sub(e.item.lane, distance))
