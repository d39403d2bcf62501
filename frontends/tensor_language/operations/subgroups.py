"""Built-in values, and what the work-items of a subgroup compute together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from tlx.frontends.tensor_language.operations.core import UPDATES, Modifier, UpdateOp, operation, spelt
from tlx.frontends.tensor_language.syntax.forms import operand, operands, result
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name
from tlx.frontends.tensor_language.syntax.parser_types import integer_type, number_type
from tlx.frontends.tensor_language.types import I32, INDEX, ScalarType

BuiltinName = Literal[
    "group_id", "num_groups", "num_subgroups", "subgroup_size",
    "subgroup_id", "subgroup_linear_id", "subgroup_local_id",
]  # fmt: skip
Component = Literal["x", "y", "z"]
ScanKind = Literal["exclusive_scan", "inclusive_scan", "reduce"]

_COMPONENT: Final = Modifier("component", get_args(Component), None, is_required=True, is_named=True)
_TYPE: Final = result(integer_type)


def type_of_builtin(name: BuiltinName) -> ScalarType:
    """`index` for groups, `i32` for what is inside of one."""
    return INDEX if name in ("group_id", "num_groups") else I32


@operation(spelt("{name}", name=("subgroup_linear_id", "subgroup_local_id")), _TYPE, modifiers=(), region="spmd")
@operation(spelt("{name}", name=("subgroup_id",)), _TYPE, modifiers=(_COMPONENT,), region="spmd")
@operation(spelt("{name}", name=("subgroup_size",)), _TYPE, modifiers=())
@operation(spelt("{name}", name=("group_id", "num_groups", "num_subgroups")), _TYPE, modifiers=(_COMPONENT,))
@dataclass(kw_only=True, slots=True)
class Builtin(Instruction):
    """`%r = group_id.x : index` and the like; the `subgroup_id`s stand in SPMD regions only."""

    name: BuiltinName
    component: Component | None = None


@operation(
    "subgroup_broadcast", *operands(value="the value", lane="the work-item's number"), result(number_type),
    region="spmd",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class SubgroupBroadcast(Instruction):
    """`%r = subgroup_broadcast %value, %lane : type`."""

    value: Name
    lane: Name


@operation(
    spelt("subgroup_{kind}_{op}", kind=get_args(ScanKind), op=UPDATES), operand("value", "the value"),
    result(number_type), region="spmd",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class SubgroupOperation(Instruction):
    """`%r = subgroup_inclusive_scan_add %value : type` and the like."""

    kind: ScanKind
    op: UpdateOp
    value: Name
