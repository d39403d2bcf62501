"""Constants in which products differ become scalars, so that these products share a kernel.

Rewrite, convolutions with one filter each, whose biases are constants of the program:

    c = a b + 1.5     kernel with 1.5                             kernel(c, a, b, 1.5)
    z = x y - 2.5     kernel with -2.5, else the same     ->      kernel(z, x, y, -2.5)

Divisors stay constants: LLVM multiplies by the reciprocal of a power of two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tlx.ir.values import ConstFloat, Keyword
from tlx.lower.to_tiles.expression import Expression, InstructionNode, ScalarLeaf, SplatLeaf
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.problem import Gemm


def share_constants(matches: Sequence[Match]) -> None:
    """Pass the floats in which otherwise equal epilogues of products differ as scalars."""
    alike: dict[Gemm, list[tuple[Match, Expression]]] = defaultdict(list)
    for match in matches:
        if isinstance(match.problem, Gemm) and match.problem.epilogue is not None:
            epilogue = match.problem.epilogue
            alike[replace(match.problem, epilogue=_without_numbers(epilogue))].append((match, epilogue))
    for group in alike.values():
        columns = zip(*(epilogue.nodes for _, epilogue in group), strict=True)
        differing = [number for number, nodes in enumerate(columns) if len(set(nodes)) > 1]
        for match, epilogue in group if differing else ():
            _pass_constants(match, epilogue, differing)


def _without_numbers(epilogue: Expression) -> Expression:
    """The epilogue, without the floats that may become scalars."""
    nodes = list(epilogue.nodes)
    divisors = {
        node.operands[1] for node in nodes if isinstance(node, InstructionNode) and node.operation.opcode == "fdiv"
    }
    for number, node in enumerate(nodes):
        if isinstance(node, SplatLeaf) and isinstance(node.value, ConstFloat) and number not in divisors:
            nodes[number] = replace(node, value=Keyword(node.element, "undef"))
    return replace(epilogue, nodes=tuple(nodes))


def _pass_constants(match: Match, epilogue: Expression, numbers: Sequence[int]) -> None:
    """Pass constants of a product's epilogue, given by the numbers of their nodes, as scalars."""
    nodes = list(epilogue.nodes)
    for number in numbers:
        node = nodes[number]
        assert isinstance(node, SplatLeaf)
        nodes[number] = ScalarLeaf(node.element, len(match.scalars))
        match.scalars.append(node.value)
    match.problem = replace(match.problem, epilogue=replace(epilogue, nodes=tuple(nodes)))
