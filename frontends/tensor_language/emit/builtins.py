"""Where a work-item stands: group ids, subgroup ids, sizes."""

from __future__ import annotations

import math
from typing import Final

from tlx.frontends.tensor_language.ast.mixed import Builtin
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import index, lane_ids
from tlx.frontends.tensor_language.emit.values import Linear, Number
from tlx.frontends.tensor_language.types import I32 as LANGUAGE_I32
from tlx.ir.types import I32
from tlx.ir.values import Value, const_int


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
    assert e.subgroup is not None, "the checker lets it stand in SPMD regions only"
    return e.subgroup


def _subgroup_id(e: Emitter, mode: int) -> Value:
    """`linear = x + y * num_subgroups.x`."""
    columns = e.launch.num_subgroups
    if columns[mode] == 1:
        return const_int(I32, 0)
    opcode = "urem" if mode == 0 else "udiv"
    return e.b.binary(opcode, _linear_id(e), const_int(I32, columns[0]))


def _number(value: Value, count: int | None = None) -> Number:
    """An i32; one of the numbers below a count, where that is known."""
    return Number(LANGUAGE_I32, (value,), interval=None if count is None else (0, count - 1))


RULES: Final = {Builtin: builtin}
