"""Bfloat expressions computed in float, where `--bf16-intermediates=float` allows it.

Leaves are extended once, intermediate results are floats, and the result is rounded once. Rewrite, y = x * (x + b):

    0 Leaf x         bfloat                0 Leaf x        bfloat      1 fpext 0     float
    1 Leaf b         bfloat          ->    2 Leaf b        bfloat      3 fpext 2     float
    2 fadd 0, 1      bfloat                4 fadd 1, 3     float
    3 fmul 0, 2      bfloat                5 fmul 1, 4     float       6 fptrunc 5   bfloat

A function whose result is only multiplied and divided until it is rounded is computed with an error of 2^-14, as
functions of bfloat are, also if the program computes it in float. A sum may cancel, as one of GELU and a residual does:
its operands have the accuracy of float.

In 1 + tanh u = 2 / (1 + e^-2u) nothing cancels. Where the sum needs the accuracy of float, the error of the sigmoid is
relative to 1, as the error of 1 + tanh u in float is. Where an error of 2^-14 is allowed, results below the normal
numbers may be zero, too: 1 + tanh u, rounded to float, has none. Sums of floats are rewritten only there.

    1 + tanh u            ->  2 sigmoid(2 u)
    (x / 2) (1 + tanh u)  ->  x sigmoid(2 u)
    -x c                  ->  x (-c), c a constant

A matrix product is an operation like others. A product of floats and a sum that uses it may be fused.

What the program rounds by itself stays rounded: results of conversions to bfloat. A conversion that only ends a
function computed in float (`!tlx.function_result`) is dropped where an error of 2^-14 is allowed. A `bitcast` takes the
bits of the rounded value.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Final

from tlx.ir.instructions import CAST_OPCODES
from tlx.ir.types import BFLOAT, FLOAT
from tlx.ir.values import ConstFloat, const_float
from tlx.lower.operations import MATH_INTRINSICS, Accuracy, ElementwiseOp
from tlx.lower.to_tiles.expression import Expression, InstructionNode, Node, ProductLeaf, SplatLeaf, UnaryNode
from tlx.lower.to_tiles.problem import Elementwise, Gemm, Problem, Reduction

_COMMUTE_WITH_ROUNDING: Final = frozenset(
    "select freeze fneg relu llvm.fabs llvm.copysign llvm.canonicalize llvm.minnum llvm.maxnum llvm.minimum "
    "llvm.maximum llvm.minimumnum llvm.maximumnum".split()
)
"""Operations that return an operand or a constant, with a changed sign at most: rounding before them or after them is
the same."""


_PASS_ERRORS_ON: Final = _COMMUTE_WITH_ROUNDING | {"fmul", "fdiv", "sqrt", "llvm.sqrt"}
"""Operations whose result has at most the sum of their operands' relative errors."""
_CONTRACTED: Final = frozenset({"fmul", "fadd", "fsub"})
"""Products that need not be rounded before they are added."""
_PRODUCT: Final = ElementwiseOp("fmul", ("contract",))
_MOST_USES_OF_SHORT: Final = 2
_LEAST: Final = 2.0**-100
"""Products of constants from it on, and up to its inverse, are far from underflow and overflow."""


def with_float_intermediates(problem: Problem) -> tuple[Problem, str]:
    """The problem with its expression in float, and the operations no longer rounded; none if that changes nothing."""
    if isinstance(problem, (Elementwise, Reduction)):
        value, names = in_float(problem.value)
        return replace(problem, value=value), names
    if isinstance(problem, Gemm) and problem.epilogue is not None:
        epilogue, names = in_float(problem.epilogue)
        return replace(problem, epilogue=epilogue), names
    return problem, ""


def in_float(expression: Expression) -> tuple[Expression, str]:
    """The expression with bfloat operations in float, and the operations that are no longer rounded to bfloat."""
    unrounded = _unrounded(expression.nodes)
    if not unrounded and not any(_short_sums_with_tanh(expression.nodes)):
        return _with_short_functions(expression), ""
    names = ", ".join(_name(expression.nodes[number]) for number in unrounded)
    return _with_short_functions(_ExpressionWidening(expression).result()), names


def _with_short_functions(expression: Expression) -> Expression:
    """The expression with an error of 2^-14 in functions of float that are factors of a result rounded to bfloat."""
    nodes = expression.nodes
    return replace(expression, nodes=tuple(map(_shortened, nodes, _float_error_factors(nodes))))


def _shortened(node: Node, error_factor: float) -> Node:
    """A function with an error of 2^-14 if its error is part of a rounded result's at most twice; else the node."""
    name = _name(node).removeprefix("llvm.")
    if node.element != FLOAT or name not in MATH_INTRINSICS or error_factor > _MOST_USES_OF_SHORT:
        return node
    if isinstance(node, UnaryNode):
        return replace(node, accuracy=replace(node.accuracy, short=True))
    return UnaryNode(FLOAT, name, node.operands, Accuracy(short=True)) if isinstance(node, InstructionNode) else node


def _unrounded(nodes: Sequence[Node]) -> list[int]:
    """Numbers of the bfloat operations that round, and whose rounding another operation would see."""
    seen, factors = [False] * len(nodes), _bfloat_error_factors(nodes)
    for number, node in reversed(list(enumerate(nodes))):
        if isinstance(node, (InstructionNode, UnaryNode)) and _name(node) != "bitcast":
            commutes = node.element == BFLOAT and _name(node) in _COMMUTE_WITH_ROUNDING
            for operand in node.operands:
                seen[operand] |= seen[number] or not commutes
    return [
        number
        for number, node in enumerate(nodes)
        if seen[number]
        and (
            (_is_widened(node) and _name(node) not in _COMMUTE_WITH_ROUNDING)
            or _may_keep_float(nodes, number, factors[number])
        )
    ]


def _bfloat_error_factors(nodes: Sequence[Node]) -> list[float]:
    """The error factors of operations on bfloat."""

    def passes_on(node: Node) -> bool:
        return _is_widened(node) and _name(node) in _PASS_ERRORS_ON

    return _error_factors(nodes, passes_on, is_rounded=_is_widened(nodes[-1]))


def _float_error_factors(nodes: Sequence[Node]) -> list[float]:
    """The error factors of operations on float before the rounding of the result to bfloat, if it is rounded."""
    last = nodes[-1]

    def passes_on(node: Node) -> bool:
        return node is last or (node.element == FLOAT and _name(node) in _PASS_ERRORS_ON)

    return _error_factors(nodes, passes_on, is_rounded=_name(last) == "fptrunc" and last.element == BFLOAT)


def _error_factors(nodes: Sequence[Node], passes_on: Callable[[Node], bool], *, is_rounded: bool) -> list[float]:
    """For each node how often its relative error is part of the result's; infinite where a sum may cancel.

    Args:
        nodes: The nodes of an expression.
        passes_on: Whether the result of an operation has at most the sum of its operands' relative errors.
        is_rounded: Whether the result is rounded to bfloat.
    """
    factors = [0.0] * len(nodes)
    factors[-1] = 1.0 if is_rounded else math.inf
    for number, node in reversed(list(enumerate(nodes))):
        if isinstance(node, (InstructionNode, UnaryNode)):
            factor = factors[number] if passes_on(node) else math.inf
            for operand in node.operands:
                factors[operand] += factor
    return factors


def _sums_with_tanh(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    """Nodes 1 + tanh u, and their tanh, which has no other user."""
    uses = Counter(n for node in nodes if isinstance(node, (InstructionNode, UnaryNode)) for n in node.operands)
    for number, node in enumerate(nodes):
        if isinstance(node, InstructionNode) and _name(node) == "fadd":
            for one, tanh in permutations(node.operands):
                if _name(nodes[tanh]) == "tanh" and uses[tanh] == 1 and _number(nodes[one]) == 1.0:
                    yield number, tanh


def _short_sums_with_tanh(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    """Those that the program computes in float, and that may have an error of 2^-14."""
    factors = _float_error_factors(nodes)
    for number, tanh in _sums_with_tanh(nodes):
        if nodes[number].element == FLOAT and factors[number] <= _MOST_USES_OF_SHORT:
            yield number, tanh


def _may_keep_float(nodes: Sequence[Node], number: int, error_factor: float) -> bool:
    """Whether a node rounds the result of a function of bfloat, computed in float, that need not be rounded."""
    node = nodes[number]
    if node.element != BFLOAT or not isinstance(node, InstructionNode) or not node.operation.is_function_result:
        return False
    return nodes[node.operands[0]].element == FLOAT and error_factor <= _MOST_USES_OF_SHORT


def _is_widened(node: Node) -> bool:
    """Whether a node is an operation with a bfloat result, but no conversion, which rounds as the program says."""
    if node.element != BFLOAT or not isinstance(node, (InstructionNode, UnaryNode, ProductLeaf)):
        return False
    return _name(node) not in CAST_OPCODES


def _name(node: Node) -> str:
    if isinstance(node, InstructionNode):
        return node.operation.title
    if isinstance(node, ProductLeaf):
        return "product"
    return node.name if isinstance(node, UnaryNode) else ""


def _number(node: Node) -> float | None:
    """The number of a constant."""
    if isinstance(node, SplatLeaf) and isinstance(node.value, ConstFloat):
        return node.value.value
    return None


def _without_unused(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes that the last one depends on."""
    used = {len(nodes) - 1}
    for number in reversed(range(len(nodes))):
        if number in used:
            used.update(nodes[number].operands)
    place = {old: new for new, old in enumerate(sorted(used))}
    return tuple(
        replace(node, operands=tuple(place[n] for n in node.operands))
        if isinstance(node := nodes[old], (InstructionNode, UnaryNode))
        else node
        for old in place
    )


class _ExpressionWidening:
    """Rewrites an expression.

    Attributes:
        nodes: The new nodes, with their numbers.
        same: For each old node, the new node of its value and type, if there is one.
        floats: For each old node of bfloat, the new node of its value as float, if there is one.
        error_factors: For each old node how often its relative error is part of the result's.
        tanhs: For each old node 1 + tanh u that becomes a sigmoid, the node of tanh.
        products: Old nodes of float that multiply such a sum, and whose errors it may pass on.
        halves: For each new node 2 y with such a sigmoid y, the node y.
    """

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        nodes = expression.nodes
        self.error_factors = _bfloat_error_factors(nodes)
        self.nodes: dict[Node, int] = {}
        self.same: dict[int, int] = {}
        self.floats: dict[int, int] = {}
        self.halves: dict[int, int] = {}
        self.tanhs = {number: tanh for number, tanh in _sums_with_tanh(nodes) if _is_widened(nodes[number])}
        short = dict(_short_sums_with_tanh(nodes))
        self.tanhs |= short
        self.products = {n for n, node in enumerate(nodes) if node.element == FLOAT and short.keys() & node.operands}

    def result(self) -> Expression:
        """The new expression."""
        for number, node in enumerate(self.expression.nodes):
            self._rewrite(number, node)
        last = self._as_is(len(self.expression.nodes) - 1)
        return replace(self.expression, nodes=_without_unused(tuple(self.nodes)[: last + 1]))

    def _rewrite(self, number: int, node: Node) -> None:
        if isinstance(node, SplatLeaf) or number in self.tanhs.values():
            return  # the one is bfloat or float, as its users need it; the other becomes part of a sigmoid
        if isinstance(node, ProductLeaf) and _is_widened(node):
            self.floats[number] = self._node(ProductLeaf(FLOAT))
        elif number in self.tanhs:
            values = self.floats if self._is_bfloat(number) else self.same
            values[number] = self._one_plus_tanh(number, self.expression.nodes[self.tanhs[number]].operands[0])
        elif not isinstance(node, (InstructionNode, UnaryNode)):
            self.same[number] = self._node(node)
        elif _may_keep_float(self.expression.nodes, number, self.error_factors[number]):
            self.floats[number] = self._as_is(node.operands[0])
        elif _is_widened(node):
            scaled = self._scaled(node)
            self.floats[number] = self._node(self._widened(node)) if scaled is None else scaled
        elif number in self.products and (scaled := self._scaled(node)) is not None:
            self.same[number] = scaled
        elif _name(node) == "bitcast":
            self.same[number] = self._node(replace(node, operands=(self._as_is(node.operands[0]),)))
        elif _name(node) == "fpext" and node.element == FLOAT and self._is_bfloat(node.operands[0]):
            self.same[number] = self._as_float(node.operands[0])
        else:
            self.same[number] = self._node(replace(node, operands=self._operands(node)))

    def _widened(self, node: InstructionNode | UnaryNode) -> Node:
        if isinstance(node, InstructionNode) and _name(node) in _CONTRACTED:
            flags = tuple(dict.fromkeys((*node.operation.flags, "contract")))
            return InstructionNode(FLOAT, replace(node.operation, flags=flags), self._operands(node))
        return replace(node, element=FLOAT, operands=self._operands(node))

    def _one_plus_tanh(self, number: int, u: int) -> int:
        """The old node 1 + tanh u, from the old node u."""
        argument = self._operand(u)
        is_short = not self._is_bfloat(number) or self.error_factors[number] <= _MOST_USES_OF_SHORT
        accuracy = Accuracy(short=is_short, no_subnormals=is_short, absolute=not is_short)
        sigmoid = self._node(UnaryNode(FLOAT, "sigmoid", (self._times(argument, 2.0),), accuracy))
        result = self._times(sigmoid, 2.0)
        self.halves[result] = sigmoid
        return result

    def _scaled(self, node: Node) -> int | None:
        """A product with fewer operations: None if a node is something else.

        2 y times a constant is y times twice that, and x c times 2 y is x times 2 c, times y; -x times a constant is x
        times minus that.
        """
        if _name(node) != "fmul" or not isinstance(node, InstructionNode):
            return None
        for factor, other in permutations(node.operands):
            negative, number = self.expression.nodes[other], _number(self.expression.nodes[factor])
            if number is not None and _name(negative) == "fneg" and isinstance(negative, InstructionNode):
                return self._times(self._operand(negative.operands[0]), -number)
            doubled = (self.floats if self._is_bfloat(other) else self.same).get(other)
            if doubled not in self.halves:
                continue
            if number is not None:
                return self._times(self.halves[doubled], 2.0 * number)
            if self._factors(self._operand(factor)) is not None:
                twice = self._times(self._operand(factor), 2.0)
                return self._node(InstructionNode(FLOAT, _PRODUCT, (twice, self.halves[doubled])))
        return None

    def _factors(self, x: int) -> tuple[int, float] | None:
        """A new node and a constant whose product another one is; None if it is something else."""
        node = tuple(self.nodes)[x]
        if isinstance(node, InstructionNode) and _name(node) == "fmul":
            for constant, other in permutations(node.operands):
                number = _number(tuple(self.nodes)[constant])
                if number is not None:
                    return other, number
        return None

    def _times(self, x: int, factor: float) -> int:
        """A new node times a number, exact if that is a power of two."""
        factors = self._factors(x)
        if factors is not None and _LEAST < abs(factor * factors[1]) < 1 / _LEAST:
            x, factor = factors[0], factor * factors[1]
        if factor == 1.0:
            return x
        number = self._node(SplatLeaf(FLOAT, const_float(FLOAT, factor)))
        return self._node(InstructionNode(FLOAT, _PRODUCT, (x, number)))

    def _operands(self, node: InstructionNode | UnaryNode) -> tuple[int, ...]:
        return tuple(map(self._operand, node.operands))

    def _operand(self, number: int) -> int:
        """The new node of an old one's value, as float if it is bfloat."""
        return self._as_float(number) if self._is_bfloat(number) else self._as_is(number)

    def _is_bfloat(self, number: int) -> bool:
        return self.expression.nodes[number].element == BFLOAT

    def _as_float(self, number: int) -> int:
        if number not in self.floats:
            node = self.expression.nodes[number]
            if isinstance(node, SplatLeaf) and isinstance(node.value, ConstFloat):
                wide: Node = SplatLeaf(FLOAT, const_float(FLOAT, node.value.value))
            else:
                wide = InstructionNode(FLOAT, ElementwiseOp("fpext"), (self._as_is(number),))
            self.floats[number] = self._node(wide)
        return self.floats[number]

    def _as_is(self, number: int) -> int:
        if number not in self.same:
            node = self.expression.nodes[number]
            if not isinstance(node, SplatLeaf):
                node = InstructionNode(BFLOAT, ElementwiseOp("fptrunc"), (self.floats[number],))
            self.same[number] = self._node(node)
        return self.same[number]

    def _node(self, node: Node) -> int:
        return self.nodes.setdefault(node, len(self.nodes))
