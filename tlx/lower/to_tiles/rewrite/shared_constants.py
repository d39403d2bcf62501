"""Constants in which products differ become scalars, so that these products share a kernel.

Rewrite, convolutions with one filter each, whose biases are constants of the program:

    c = a b + 1.5     kernel with 1.5                             kernel(c, a, b, 1.5)
    z = x y - 2.5     kernel with -2.5, else the same     ->      kernel(z, x, y, -2.5)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tlx.ir.values import ConstFloat, Keyword
from tlx.lower.to_tiles.expression import Expression, Node, ScalarLeaf, SplatLeaf
from tlx.lower.to_tiles.match import Match
from tlx.lower.to_tiles.problem import Gemm


def share_constants(matches: Sequence[Match]) -> None:
    """Make scalars of the floats in which epilogues of products differ that are the same otherwise."""
    alike: dict[Gemm, list[tuple[Match, Expression]]] = defaultdict(list)
    for match in matches:
        if isinstance(match.problem, Gemm) and match.problem.epilogue is not None:
            epilogue = match.problem.epilogue
            unknown = replace(epilogue, nodes=tuple(map(_without_number, epilogue.nodes)))
            alike[replace(match.problem, epilogue=unknown)].append((match, epilogue))
    for group in alike.values():
        columns = zip(*(epilogue.nodes for _, epilogue in group), strict=True)
        differing = [number for number, nodes in enumerate(columns) if len(set(nodes)) > 1]
        for match, epilogue in group if differing else ():
            _pass_constants(match, epilogue, differing)


def _without_number(node: Node) -> Node:
    """The node, without its number if it is a float."""
    if isinstance(node, SplatLeaf) and isinstance(node.value, ConstFloat):
        return replace(node, value=Keyword(node.element, "undef"))
    return node


def _pass_constants(match: Match, epilogue: Expression, numbers: Sequence[int]) -> None:
    """Make scalars of some constants of a product's epilogue."""
    nodes = list(epilogue.nodes)
    for number in numbers:
        node = nodes[number]
        assert isinstance(node, SplatLeaf)
        nodes[number] = ScalarLeaf(node.element, len(match.scalars))
        match.scalars.append(node.value)
    match.problem = replace(match.problem, epilogue=replace(epilogue, nodes=tuple(nodes)))
