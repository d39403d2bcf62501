"""Ids of work-items, and broadcasts, scans and reductions of a subgroup.

An inclusive scan of n lanes takes ceil(log2 n) steps; in step d = 1, 2, 4, ... lane i adds the value of lane i - d:

    x0      x1          x2                  x3
    x0      x0+x1       x1+x2               x2+x3
    x0      x0+x1       x0+x1+x2            x0+x1+x2+x3

A reduction is a tree: in each step the upper half of the lanes is added to the lower. Inactive lanes
contribute nothing. Narrow floats are rounded once, at the end.
"""

from __future__ import annotations

import math
from typing import Final

from tlx.frontends.tensor_language.emit.arithmetic import binary, reduce_lanes
from tlx.frontends.tensor_language.emit.emitter import Emitter, Linear, Number
from tlx.frontends.tensor_language.emit.masks import extract_lane, first_active
from tlx.frontends.tensor_language.emit.numbers import full_like, index, lane_ids, round_to_type, vary
from tlx.frontends.tensor_language.operations.core import UpdateOp
from tlx.frontends.tensor_language.operations.subgroups import Builtin, ScanKind, SubgroupBroadcast, SubgroupOperation
from tlx.frontends.tensor_language.types import F32, ScalarType
from tlx.frontends.tensor_language.types import I32 as LANGUAGE_I32
from tlx.ir.types import I32, VectorType
from tlx.ir.values import ConstInt, Value, const_int


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
            e.bind(i.result, _number(const_int(I32, e.lanes)))
        case "subgroup_local_id":
            lanes = Linear(const_int(I32, 0), 1, exact=True)
            e.bind(i.result, Number(LANGUAGE_I32, (lane_ids(e),), lanes, (0, e.lanes - 1)))
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
    parts = (_lane(e, part, lane) if value.is_varying else part for part in value.parts)
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
    found = (reduce_lanes(e, op, _wide(type_), _only_active(e, part, neutral)) for part in number.parts)
    return Number(number.type, tuple(round_to_type(e, part, type_) for part in found))


def scan_subgroup(e: Emitter, kind: ScanKind, op: UpdateOp, number: Number) -> Number:
    """For each work-item, `op` of its value and those of the work-items before it; an exclusive scan omits its own."""
    type_ = number.type.part
    is_exclusive = kind == "exclusive_scan"
    neutral = _identity(op, type_) if is_exclusive else _neutral(op, type_)
    parts: list[Value] = []
    for part in number.parts:
        found = _steps(e, op, type_, _only_active(e, part, neutral))
        if is_exclusive:
            found = _moved_up(e, found, full_like(found, _identity(op, type_)))
        parts.append(round_to_type(e, found, type_))
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
    count, distance = _count(lanes), 1
    while distance < count:
        before = e.b.shuffle(lanes, None, [k - distance if k >= distance else -1 for k in range(count)])
        (joined,) = binary(e, op, _wide(type_), (before,), (lanes,))
        lanes = e.b.shuffle(lanes, joined, [k if k < distance else count + k for k in range(count)])
        distance *= 2
    return lanes


def _moved_up(e: Emitter, lanes: Value, first: Value) -> Value:
    """Each lane's value in the next lane, and `first` in lane 0."""
    count = _count(lanes)
    return e.b.shuffle(lanes, first, [count, *range(count - 1)])


def _wide(type_: ScalarType) -> ScalarType:
    """The type for intermediate results: f32 for narrow floats."""
    return F32 if type_.is_narrow_float else type_


def _lane(e: Emitter, lanes: Value, lane: Value) -> Value:
    return e.b.extract_element(lanes, lane.value) if isinstance(lane, ConstInt) else extract_lane(e, lanes, lane)


def _count(lanes: Value) -> int:
    assert isinstance(lanes.type, VectorType)
    return lanes.type.count
