"""Attention: six trees of stage 1, softmax between two products, that one kernel computes.

    S = f(Q @ K)        M = max of rows of S        E = exp(S - M)
    O = g(P @ V)        P = E / L, narrowed         L = sum of rows of E

S, M, E, L and P are temporaries that no other tree uses, and that f, g and V do not read. O lies apart from all that is
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.types import FLOAT
from tlx.ir.values import Value
from tlx.lower.to_tiles.expression import Expression, InstructionNode, MatrixLeaf, MatrixView, UnaryNode
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.problem import Elementwise, Gemm, Reduction

_TREES: Final = 6
_REASSOCIATED: Final = frozenset({"reassoc", "fast"})
_NARROWED_QUOTIENT: Final = 4
"""Nodes: two leaves, their quotient, and that narrowed."""


@dataclass(frozen=True, slots=True)
class Attention:
    """`O = g(softmax(f(Q @ K)) @ V)`, whose scores f(Q @ K) are float; softmax is of rows.

    Attributes:
        scores: Q @ K with f.
        product: The product of the narrowed quotients with V, and g.
        is_reassociated: Whether the division may be done after the product.
    """

    scores: Gemm
    product: Gemm
    is_reassociated: bool


@dataclass(eq=False)
class AttentionMatch(Match):
    """The trees as one: the store and the problem are those of the last product.

    The pointers are O, Q, K, V, the leaves of f, and those of g.
    """

    attention: Attention


@dataclass(frozen=True, eq=False)
class AttentionSearch:
    """Finds attention among the trees of a function.

    Attributes:
        memory_of: The name of the temporary that a pointer points to; None if it points to none.
        users: How many trees access a temporary, by its name.
        disjoint: Whether two views in memory have no byte in common.
        is_supported: Whether the target has a kernel for such products.
    """

    memory_of: Callable[[Value, Match], str | None]
    users: Mapping[str, int]
    disjoint: Callable[[tuple[Value, MatrixView], tuple[Value, MatrixView]], bool]
    is_supported: Callable[[Attention], bool]

    def fused(self, matches: Sequence[Match]) -> list[Match]:
        """The trees of a block, with those of attention replaced by one."""
        result: list[Match] = []
        start = 0
        while start < len(matches):
            trees = matches[start : start + _TREES]
            found = self._matched(trees)
            result.append(found or matches[start])
            start += _TREES if found is not None else 1
        return result

    def _are_private(self, trees: Sequence[Match]) -> bool:
        """Whether only these trees use what each of them but the last one writes, and only as softmax does."""
        names = [self.memory_of(tree.pointers[0][0], tree) for tree in trees[:-1]]
        used = [{self.memory_of(pointer, tree) for pointer, _ in tree.pointers} for tree in trees]
        scores, product = trees[0], trees[-1]
        others = {self.memory_of(pointer, scores) for pointer, _ in scores.pointers[1:]}
        others |= {self.memory_of(pointer, product) for pointer, _ in product.pointers[2:]}
        return all(
            name is not None and name not in others and self.users[name] == sum(name in tree for tree in used)
            for name in names
        )

    def _matched(self, trees: Sequence[Match]) -> Match | None:
        """The trees as one, if they are attention."""
        if len(trees) < _TREES:
            return None
        scores, largest, powers, total, quotients, product = trees
        first, last = scores.problem, product.problem
        if not (isinstance(first, Gemm) and isinstance(last, Gemm) and _is_plain(first) and _is_plain(last)):
            return None
        if first.c.element != FLOAT or last.a != quotients.pointers[0][1] or not _same(product, 1, quotients):
            return None
        is_softmax = (
            _reduces(largest, "max", scores)
            and _computes_powers(powers, scores, largest)
            and _reduces(total, "add", powers)
        )
        divided = _divides(quotients, powers, total) if is_softmax else None
        if divided is None:
            return None
        pointers = [product.pointers[0], *scores.pointers[1:3], product.pointers[2]]
        pointers += [*scores.pointers[3:], *product.pointers[3:]]
        problem = Attention(first, last, divided)
        is_apart = all(self.disjoint(pointers[0], other) for other in pointers[1:])
        if not (is_apart and self._are_private(trees) and self.is_supported(problem)):
            return None
        consumed = [instruction for tree in trees for instruction in tree.consumed]
        scalars = [*scores.scalars, *product.scalars]
        return AttentionMatch(product.store, last, pointers, scalars, consumed, problem)


def _is_plain(gemm: Gemm) -> bool:
    is_one = len(gemm.term_offsets) == 1 and gemm.acc is None and gemm.reduction is None
    return is_one and gemm.c.is_row_major


def _same(tree: Match, number: int, written: Match) -> bool:
    """Whether a pointer of a tree is to the result of another tree."""
    return tree.pointers[number][0] == written.pointers[0][0]


def _reads(tree: Match, value: Expression, number: int, written: Match) -> bool:
    """Whether a node is the result of another tree, row by row."""
    leaf, (_, view) = value.nodes[number], written.pointers[0]
    return (
        isinstance(leaf, MatrixLeaf)
        and _same(tree, 1 + leaf.pointer, written)
        and leaf.view == view.broadcast()
        and view.rows == value.rows
    )


def _reduces(tree: Match, operation: str, written: Match) -> bool:
    problem = tree.problem
    if not isinstance(problem, Reduction) or (problem.operation, problem.axis) != (operation, 1):
        return False
    return len(problem.value.nodes) == 1 and _reads(tree, problem.value, 0, written)


def _computes_powers(tree: Match, scores: Match, largest: Match) -> bool:
    """Whether a tree is exp(S - M)."""
    problem = tree.problem
    if not isinstance(problem, Elementwise) or problem.destination.element != FLOAT:
        return False
    power, difference = problem.value.nodes[-1], problem.value.nodes[2:3]
    if not isinstance(power, UnaryNode) or (power.name, power.operands) != ("exp", (2,)):
        return False
    return all(
        isinstance(node, InstructionNode)
        and node.operation.opcode == "fsub"
        and _reads(tree, problem.value, node.operands[0], scores)
        and _reads(tree, problem.value, node.operands[1], largest)
        for node in difference
    )


def _divides(tree: Match, powers: Match, total: Match) -> bool | None:
    """Whether the division of a tree E / L may be done after the product; None if it is none."""
    problem = tree.problem
    if not isinstance(problem, Elementwise) or len(problem.value.nodes) != _NARROWED_QUOTIENT:
        return None
    quotient, narrowed = problem.value.nodes[2:]
    is_quotient = isinstance(quotient, InstructionNode) and quotient.operation.opcode == "fdiv"
    is_narrowed = isinstance(narrowed, InstructionNode) and narrowed.operation.opcode == "fptrunc"
    if not isinstance(quotient, InstructionNode) or not (is_quotient and is_narrowed):
        return None
    reads = _reads(tree, problem.value, quotient.operands[0], powers)
    reads = reads and _reads(tree, problem.value, quotient.operands[1], total)
    return bool(_REASSOCIATED & set(quotient.operation.flags)) if reads else None
