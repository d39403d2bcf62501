"""Elementwise expressions on matrices in memory.

An expression is a list of nodes, which refer to their operands by number:

    %y = x * sigmoid(x + bias)      0 Leaf x   1 Leaf bias (1 x C)   2 fadd 0, 1   3 sigmoid 2   4 fmul 0, 3

A node with several users is computed once. Expressions are compared by value, so equal ones share a kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from tlx.ir.types import BFLOAT, HALF, I16, FloatType, Type, bits_of
from tlx.ir.values import Value
from tlx.lower.operations import (
    DIVISIONS,
    LIBRARY_FUNCTIONS,
    MATH_INTRINSICS,
    ElementwiseOp,
    is_mask,
    unary_bits,
    working_bits,
)
from tlx.lower.to_tiles.problem.views import MatrixView

_MATH_CALLS: Final = frozenset(f"llvm.{name}" for name in MATH_INTRINSICS | LIBRARY_FUNCTIONS)
_MATH_COST: Final = 20
_BRANCHING: Final = frozenset({"sin", "cos"})


class _Source:
    """A node without operands."""

    __slots__ = ()

    @property
    def operands(self) -> tuple[int, ...]:
        """None."""
        return ()


@dataclass(frozen=True, slots=True)
class MatrixLeaf(_Source):
    """A matrix in memory; an extent of 1 is broadcast to the expression's.

    Attributes:
        element: Element type.
        view: Where its elements are.
        pointer: Number of the pointer to the first one.
    """

    element: Type
    view: MatrixView
    pointer: int


@dataclass(frozen=True, slots=True)
class ScalarLeaf(_Source):
    """A scalar parameter, the same for all elements; `number` is its position among the scalars."""

    element: Type
    number: int


@dataclass(frozen=True, slots=True)
class SplatLeaf(_Source):
    """A constant, the same for all elements."""

    element: Type
    value: Value


@dataclass(frozen=True, slots=True)
class ProductLeaf(_Source):
    """The matrix product that the kernel computes."""

    element: Type


@dataclass(frozen=True, slots=True)
class InstructionNode:
    """An ordinary instruction.

    Attributes:
        element: Element type of the result.
        operation: The instruction.
        operands: Numbers of its operand nodes.
        immediates: Scalar constants that follow the operands, such as the i1 of `llvm.abs`.
    """

    element: Type
    operation: ElementwiseOp
    operands: tuple[int, ...]
    immediates: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class UnaryNode:
    """A unary tensor operation by its name: relu, tanh, ..."""

    element: Type
    name: str
    operands: tuple[int, ...]


Node = MatrixLeaf | ScalarLeaf | SplatLeaf | ProductLeaf | InstructionNode | UnaryNode


@dataclass(frozen=True)
class Expression:
    """`rows` x `cols` elements; the last node is the result."""

    rows: int
    cols: int
    nodes: tuple[Node, ...]

    @property
    def element(self) -> Type:
        """Element type of the result."""
        return self.nodes[-1].element

    def leaves(self) -> Iterator[MatrixLeaf]:
        """The leaves in memory."""
        return (n for n in self.nodes if isinstance(n, MatrixLeaf))

    @property
    def bytes_moved(self) -> int:
        """Bytes of all leaves."""
        return sum(leaf.view.bytes_moved for leaf in self.leaves())

    def scalars(self) -> Iterator[ScalarLeaf]:
        """The scalar parameters."""
        return (n for n in self.nodes if isinstance(n, ScalarLeaf))

    def is_full(self, view: MatrixView) -> bool:
        """Whether a leaf has as many elements as the result: it is not broadcast."""
        return (view.rows, view.cols) == (self.rows, self.cols)

    def level(self, leaf: MatrixLeaf) -> int:
        """How often a leaf changes: 0 never, 1 with the row, 2 with the column."""
        if leaf.view.cols > 1:
            return 2
        return 1 if leaf.view.rows > 1 else 0

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """How often each node changes."""
        found: list[int] = []
        for node in self.nodes:
            if isinstance(node, MatrixLeaf):
                found.append(self.level(node))
            elif isinstance(node, ProductLeaf):
                found.append(2)
            else:
                found.append(max((found[n] for n in node.operands), default=0))
        return tuple(found)

    @cached_property
    def row_invariant(self) -> frozenset[int]:
        """The nodes that do not depend on the row."""
        found: set[int] = set()
        for number, node in enumerate(self.nodes):
            if isinstance(node, MatrixLeaf):
                found |= {number} if node.view.rows == 1 else set()
            elif not isinstance(node, ProductLeaf) and found.issuperset(node.operands):
                found.add(number)
        return frozenset(found)

    @cached_property
    def bits(self) -> int:
        """Bits of the widest element computed with; it sets how many elements a register holds."""
        return max(8, *(self._bits(node) for node in self.nodes))

    def _bits(self, node: Node) -> int:
        if isinstance(node, InstructionNode):
            return node.operation.bits([node.element, *(self.nodes[n].element for n in node.operands)])
        return unary_bits(node.element) if isinstance(node, UnaryNode) else working_bits(node.element, moved=True)

    @cached_property
    def cost(self) -> int:
        """Estimated instructions per register, loads and stores excluded."""
        return sum(_cost(node) for node in self.nodes)

    @property
    def may_trap(self) -> bool:
        """Whether it may trap on padding: it divides by something."""
        divisions = (n for n in self.nodes if isinstance(n, InstructionNode) and n.operation.opcode in DIVISIONS)
        return any(not isinstance(self.nodes[division.operands[1]], SplatLeaf) for division in divisions)

    @property
    def branches(self) -> bool:
        """Whether rare elements take a branch, so that the code of several registers cannot be interleaved."""
        return any(_title(node).removeprefix("llvm.") in _BRANCHING for node in self.nodes)

    @cached_property
    def max_live(self) -> int:
        """The most values that are live at once when nodes are computed in order."""
        last = {number: user for user, node in enumerate(self.nodes) for number in node.operands}
        ended = Counter(last.values())
        return max(
            at + 1 - before for at, before in enumerate(accumulate(ended[at - 1] for at in range(len(self.nodes))))
        )

    @property
    def summary(self) -> str:
        """Its operations, for remarks: `fadd, relu; 2 extra operands`; empty if it only reads its leaves."""
        done = [title for node in self.nodes if (title := _title(node))]
        if not done:
            return ""
        extra = sum(isinstance(n, (MatrixLeaf, ScalarLeaf)) for n in self.nodes)
        operands = f"; {extra} extra operand{'s' if extra > 1 else ''}" if extra else ""
        return f"{', '.join(done)}{operands}"


def _title(node: Node) -> str:
    if isinstance(node, InstructionNode):
        return node.operation.title
    return node.name if isinstance(node, UnaryNode) else ""


def _cost(node: Node) -> int:
    if isinstance(node, UnaryNode):
        return _MATH_COST if node.name in MATH_INTRINSICS else 1
    if not isinstance(node, InstructionNode):
        return 0
    if node.operation.callee in _MATH_CALLS or node.operation.opcode == "frem":
        return _MATH_COST
    if node.operation.opcode in DIVISIONS:
        return _MATH_COST
    narrow = isinstance(node.element, FloatType) and bits_of(node.element) == 16
    return 6 if narrow and not is_mask(node.element) else 1


def scalar_parameter_type(element: Type) -> Type:
    """The type of a kernel's scalar parameter: an integer for types that not every LLVM can pass."""
    return I16 if element in (BFLOAT, HALF) else element
