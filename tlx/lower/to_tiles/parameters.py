"""Parameters of kernels: pointers to leaves and results, scalars, and which pointers may be the same."""

from __future__ import annotations

from tlx.ir.types import Type, bits_of
from tlx.lower.to_tiles.evaluate import passed_as
from tlx.lower.to_tiles.expression import Expression, Leaf
from tlx.lower.to_tiles.view import View


def expression_parameters(value: Expression) -> tuple[list[tuple[str, Type, str]], list[tuple[str, Type]]]:
    """Parameters of a kernel for the leaves and for the scalars of an expression."""
    elements = {leaf.pointer: leaf.element for leaf in value.leaves()}
    pointers = [(f"x{number}", elements[number], "") for number in sorted(elements)]
    kinds = {scalar.number: scalar.element for scalar in value.scalars()}
    return pointers, [(f"s{number}", passed_as(kinds[number])) for number in sorted(kinds)]


def may_be_leaf(value: Expression, destination: View) -> bool:
    """Whether a leaf may lie where the destination does."""
    return bool(same_places(value, destination))


def same_places(value: Expression, destination: View) -> list[Leaf]:
    """The leaves that may lie where the destination does: they have the same elements at the same places."""
    to = destination.repeated()
    leaves = [leaf for leaf in value.leaves() if bits_of(leaf.element) == bits_of(to.element)]
    return [leaf for leaf in leaves if _place(leaf.view.repeated()) == _place(to)]


def _place(view: View) -> tuple[int, int, int, int]:
    return view.rows, view.cols, view.row_stride, view.col_stride
