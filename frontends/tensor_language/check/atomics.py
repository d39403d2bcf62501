"""Atomic loads, stores and updates of single elements."""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.base import Instruction, Name
from tlx.frontends.tensor_language.ast.mixed import AtomicLoad, AtomicStore, AtomicUpdate, Semantics, UpdateOp
from tlx.frontends.tensor_language.check.context import Context, Rule, Rules
from tlx.frontends.tensor_language.check.memory import check_position, check_write
from tlx.frontends.tensor_language.check.operands import complain, indices, memref, result_is
from tlx.frontends.tensor_language.types import ScalarType
from tlx.frontends.tensor_language.wording import mnemonic

_NOT_FOR: Final[dict[str, tuple[Semantics, ...]]] = {
    "load": ("release", "acquire_release"),
    "store": ("acquire", "acquire_release"),
}
_INSTEAD: Final = {
    "load": "relaxed, acquire or sequentially_consistent",
    "store": "relaxed, release or sequentially_consistent",
}


def check_atomic_load(context: Context, node: AtomicLoad) -> None:
    """A number of a memref."""
    check_order(context, node, "load", node.semantics)
    type_ = memref(context, node, node.source)
    indices(context, node, node.indices)
    if type_:
        check_position(context, node, node.source, type_, node.indices)
        result_is(context, node, type_.element, f"the element type of {node.source}")


def check_atomic_store(context: Context, node: AtomicStore) -> None:
    """`type(value) = element_type(tensor)`."""
    check_order(context, node, "store", node.semantics)
    check_write(context, node, node.value, node.target, node.indices)


def check_atomic_update(context: Context, node: AtomicUpdate) -> None:
    """`type(value) = element_type(tensor)`; complex numbers have no order."""
    type_ = check_write(context, node, node.value, node.target, node.indices)
    if type_:
        check_update(context, node, node.op, node.value, type_.element)
        result_is(context, node, type_.element, f"the element type of {node.target}, as the old value is returned")


def check_order(context: Context, node: Instruction, access: str, semantics: Semantics) -> None:
    """A load does not release, a store does not acquire."""
    if semantics in _NOT_FOR[access]:
        message = f"{mnemonic(node)}: a {access} cannot have memory semantics {semantics}; use {_INSTEAD[access]}"
        context.error(message, node.span)


def check_update(context: Context, node: Instruction, op: UpdateOp, value: Name, scalar: ScalarType) -> None:
    """Maximum and minimum are not defined for complex numbers."""
    if op != "add" and scalar.kind == "complex":
        complain(context, node, value, f"{op} is not defined for complex numbers, but {value} is {scalar}", value)


RULES: Final[Rules] = {
    AtomicLoad: Rule(check_atomic_load),
    AtomicStore: Rule(check_atomic_store, None, 0),
    AtomicUpdate: Rule(check_atomic_update),
}
