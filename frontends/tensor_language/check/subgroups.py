"""Builtin values, and what the work-items of a subgroup do together."""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.mixed import Builtin
from tlx.frontends.tensor_language.ast.spmd import SubgroupBroadcast, SubgroupOperation
from tlx.frontends.tensor_language.check.atomics import check_update
from tlx.frontends.tensor_language.check.context import Context, Rule, Rules
from tlx.frontends.tensor_language.check.operands import complain, constant, exactly, number, result_is, uniform
from tlx.frontends.tensor_language.check.spread import UNIFORM, Spread, known, lanes
from tlx.frontends.tensor_language.types import I32, INDEX

_THREE_DIMENSIONAL: Final = {"group_id", "num_groups", "num_subgroups", "subgroup_id"}
_OF_INDEX_TYPE: Final = {"group_id", "num_groups"}
_SPMD: Final = {"subgroup_id", "subgroup_linear_id", "subgroup_local_id"}


def check_builtin(context: Context, node: Builtin) -> None:
    """`index` for groups, `i32` for subgroups; ids of subgroups in SPMD regions only."""
    if node.name in _SPMD and context.frame.kind != "spmd":
        context.wrong_region(node, "spmd")
    if (node.component is not None) != (node.name in _THREE_DIMENSIONAL):
        message = "needs .x, .y or .z" if node.component is None else "has no .x, .y and .z"
        context.error(f"{node.name} {message}", node.span)
    result_is(context, node, INDEX if node.name in _OF_INDEX_TYPE else I32, "the type of this builtin")


def check_broadcast(context: Context, node: SubgroupBroadcast) -> None:
    """The value of one work-item, which all of them agree on."""
    type_ = number(context, node, node.value)
    exactly(context, node, node.lane, I32)
    uniform(context, node, node.lane)
    lane = constant(context, node.lane)
    if isinstance(lane, int) and not 0 <= lane < context.subgroup_size:
        message = f"{node.lane} is the constant {lane}, but work-items count from 0 to {context.subgroup_size - 1}"
        complain(context, node, node.lane, message, node.lane)
    if type_:
        result_is(context, node, type_, f"the type of {node.value}")


def check_operation(context: Context, node: SubgroupOperation) -> None:
    """A scan or reduction of numbers; complex ones have no order."""
    type_ = number(context, node, node.value)
    if type_:
        check_update(context, node, node.op, node.value, type_)
        result_is(context, node, type_, f"the type of {node.value}")


def _spread_of_builtin(context: Context, node: Builtin) -> Spread | None:
    if node.name == "subgroup_local_id":
        return lanes(context.subgroup_size, exact=True)
    return known(context.subgroup_size) if node.name == "subgroup_size" else UNIFORM


def _spread_of_operation(_context: Context, node: SubgroupOperation) -> Spread | None:
    return UNIFORM if node.kind == "reduce" else None


def _uniform(_context: Context, _node: SubgroupBroadcast) -> Spread | None:
    return UNIFORM


RULES: Final[Rules] = {
    Builtin: Rule(check_builtin, spread=_spread_of_builtin),
    SubgroupBroadcast: Rule(check_broadcast, "spmd", spread=_uniform),
    SubgroupOperation: Rule(check_operation, "spmd", spread=_spread_of_operation),
}
