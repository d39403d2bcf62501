"""Views of 2-D matrices in memory, and elementwise expressions on them.

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

from tlx.diagnostics import counted
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, HALF, I16, FloatType, Type, bits_of, bytes_of
from tlx.ir.values import Value
from tlx.lower.operations import (
    DIVISIONS,
    FULL_ACCURACY,
    LIBRARY_FUNCTIONS,
    MATH_INTRINSICS,
    Accuracy,
    ElementwiseOp,
    is_mask,
    unary_bits,
    working_bits,
)
from tlx.target.target import Target


@dataclass(frozen=True, slots=True)
class MatrixView:
    """A logical matrix in memory.

    With `interleave` v > 1, groups of v rows are interleaved (VNNI): element (k, n) is at
    `k // v * v * row_stride + n * v + k % v`. A matrix in strips stores a few columns in this layout for all rows, then
    the next few; `col_stride` is then the distance between strips divided by the columns of a strip.

    Attributes:
        element: Element type.
        rows, cols: Its extents.
        row_stride, col_stride: In elements; one of them is 1, or the extent along it is.
        interleave: Rows of a group; 1 if rows are not interleaved.
        readable_columns: Columns of an interleaved matrix that may be read, if they are more than it has.
    """

    element: Type
    rows: int
    cols: int
    row_stride: int
    col_stride: int
    interleave: int = 1
    readable_columns: int = 0

    @classmethod
    def interleaved(cls, type_: TensorType, pitches: tuple[int, ...] | None) -> MatrixView:
        """The K x N matrix of a tensor of shape K/v x N x v."""
        groups, columns, width = type_.data_shape
        pitch = type_.strides(pitches)[0] // width
        return cls(type_.element, groups * width, columns, pitch, width, width, type_.shape[1])

    @classmethod
    def strips(cls, type_: TensorType, columns: int) -> MatrixView:
        """The K x N matrix of a dense tensor of shape strips x K/v x (columns of a strip) x v."""
        strips, groups, line, width = type_.shape
        return cls(type_.element, groups * width, columns, line, groups * width, width, strips * line)

    @property
    def in_strips(self) -> bool:
        """Whether the interleaved rows are stored strip by strip."""
        return self.interleave > 1 and self.col_stride != self.interleave

    @classmethod
    def of(cls, type_: TensorType, pitches: tuple[int, ...] | None) -> MatrixView:
        """The view of a 2-D tensor in memory."""
        rows, cols = type_.extents
        row_stride, col_stride = type_.logical_strides(pitches)
        return cls(type_.element, rows, cols, row_stride, col_stride)

    @property
    def is_row_major(self) -> bool:
        """Whether each row is contiguous."""
        return self.interleave == 1 and (self.col_stride == 1 or self.cols == 1)

    @property
    def transposed(self) -> MatrixView:
        """The transpose of a matrix whose rows are not interleaved."""
        return MatrixView(self.element, self.cols, self.rows, self.col_stride, self.row_stride)

    def broadcast(self) -> MatrixView:
        """The view with stride 0 along extents of 1, so that equal matrices have equal views."""
        row_stride = self.row_stride if self.rows > 1 else 0
        return MatrixView(self.element, self.rows, self.cols, row_stride, self.col_stride if self.cols > 1 else 1)

    def as_row(self) -> MatrixView:
        """The view of a dense row-major matrix as one row."""
        return MatrixView(self.element, 1, self.rows * self.cols, 0, 1)

    @property
    def is_dense(self) -> bool:
        """Whether the rows follow each other without a gap."""
        return self.is_row_major and (self.rows == 1 or self.row_stride == self.cols)

    @property
    def pitch(self) -> int:
        """Elements from a row, or a column of a column-major matrix, to the next."""
        return self.row_stride if self.is_row_major else self.col_stride

    @property
    def order(self) -> str:
        """The layout in a knob key: `n` row-major, `t` column-major, `v2` with interleaved pairs of rows."""
        if self.interleave > 1:
            return f"v{self.interleave}"
        return "n" if self.is_row_major else "t"

    @property
    def has_gaps(self) -> bool:
        """Whether there are gaps between the rows, or between the columns of a column-major matrix."""
        if self.interleave > 1:
            return False
        lines, length = (self.rows, self.cols) if self.is_row_major else (self.cols, self.rows)
        return lines > 1 and self.pitch != length

    @property
    def size(self) -> int:
        """Elements from the first through the last, gaps included."""
        return (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1

    @property
    def bytes_moved(self) -> int:
        """Bytes of all elements."""
        return self.rows * self.cols * bytes_of(self.element)

    @property
    def layout(self) -> str:
        """`32x8 f32`, with the layout if it is not row-major, for remarks."""
        order = " interleaved" if self.interleave > 1 else "" if self.is_row_major else " column-major"
        return f"{self.rows}x{self.cols} {self.element}{order}"


_MATH_CALLS: Final = frozenset(f"llvm.{name}" for name in MATH_INTRINSICS | LIBRARY_FUNCTIONS)
_LONG_OPERATIONS: Final = DIVISIONS | {"frem"}
_MATH_COST: Final = 20
_ERFC_COST: Final = 48
_SHORT_ERFC_COST: Final = 32
"""Those of `erfc`, 38 and 22 with AVX-512, and ten more for what waits: with these, exact GELU behind products with AMX
takes the least time (from 20 to 70, Xeon 6/167/1, 2026-12-01)."""
_CONVERTED_COST: Final = 6
"""Instructions of an operation on half or bfloat that is computed in float."""
_BRANCHING: Final = frozenset({"sin", "cos"})


class _OperandlessNode:
    """A node without operands."""

    __slots__ = ()

    @property
    def operands(self) -> tuple[int, ...]:
        """None."""
        return ()


@dataclass(frozen=True, slots=True)
class MatrixLeaf(_OperandlessNode):
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
class ScalarLeaf(_OperandlessNode):
    """A scalar parameter, the same for all elements; `number` is its position among the scalars."""

    element: Type
    number: int


@dataclass(frozen=True, slots=True)
class SplatLeaf(_OperandlessNode):
    """A constant, the same for all elements."""

    element: Type
    value: Value


@dataclass(frozen=True, slots=True)
class ProductLeaf(_OperandlessNode):
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
    """A unary tensor operation by its name: relu, tanh, ...

    Attributes:
        element: Element type of the result.
        name: The operation.
        operands: The number of its operand node.
        accuracy: How accurate the result must be.
    """

    element: Type
    name: str
    operands: tuple[int, ...]
    accuracy: Accuracy = FULL_ACCURACY


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

    def parameters(self) -> tuple[dict[int, Type], dict[int, Type]]:
        """Element types of the leaves, by the number of their pointer, and of the scalars, by theirs; in order."""
        leaves = {leaf.pointer: leaf.element for leaf in self.leaves()}
        scalars = {scalar.number: scalar.element for scalar in self.scalars()}
        return dict(sorted(leaves.items())), dict(sorted(scalars.items()))

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
        levels: list[int] = []
        for node in self.nodes:
            if isinstance(node, MatrixLeaf):
                levels.append(self.level(node))
            elif isinstance(node, ProductLeaf):
                levels.append(2)
            else:
                levels.append(max((levels[n] for n in node.operands), default=0))
        return tuple(levels)

    @cached_property
    def row_invariant(self) -> frozenset[int]:
        """The nodes that do not depend on the row."""
        invariant: set[int] = set()
        for number, node in enumerate(self.nodes):
            if isinstance(node, MatrixLeaf):
                invariant |= {number} if node.view.rows == 1 else set()
            elif not isinstance(node, ProductLeaf) and invariant.issuperset(node.operands):
                invariant.add(number)
        return frozenset(invariant)

    def bits(self, target: Target) -> int:
        """Bits of the widest element in its computations."""
        return max(8, *(self._bits(node, target) for node in self.nodes))

    def lanes(self, target: Target) -> int:
        """Elements that a register holds in its computations."""
        return max(1, target.vector_bytes * 8 // self.bits(target))

    def _bits(self, node: Node, target: Target) -> int:
        if isinstance(node, InstructionNode):
            return node.operation.bits([node.element, *(self.nodes[n].element for n in node.operands)], target)
        if isinstance(node, UnaryNode):
            return unary_bits(node.name, node.element, target)
        return working_bits(node.element, moved=True)

    def cost(self, target: Target) -> int:
        """Estimated instructions per register, loads and stores excluded."""
        return sum(self._cost(node, target) for node in self.nodes)

    def _cost(self, node: Node, target: Target) -> int:
        if isinstance(node, UnaryNode):
            if node.name == "erfc":
                is_short = node.accuracy.short and node.accuracy.no_subnormals
                return _SHORT_ERFC_COST if is_short else _ERFC_COST
            return _MATH_COST if node.name in MATH_INTRINSICS else 1
        if not isinstance(node, InstructionNode):
            return 0
        if node.operation.callee in _MATH_CALLS or node.operation.opcode in _LONG_OPERATIONS:
            return _MATH_COST
        narrow = isinstance(node.element, FloatType) and bits_of(node.element) == 16
        in_half = node.operation.is_half_arithmetic([node.element], target)
        return _CONVERTED_COST if narrow and not is_mask(node.element) and not in_half else 1

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
        """The register pressure when nodes are computed in order: the most values that are live at once."""
        last = {number: user for user, node in enumerate(self.nodes) for number in node.operands}
        last_uses = Counter(last.values())
        return max(
            at + 1 - dead for at, dead in enumerate(accumulate(last_uses[at - 1] for at in range(len(self.nodes))))
        )

    @property
    def summary(self) -> str:
        """Its operations, for remarks: `fadd, relu (2 extra operands)`; empty if it only reads its leaves."""
        titles = [title for node in self.nodes if (title := _title(node))]
        if not titles:
            return ""
        extra = sum(isinstance(n, (MatrixLeaf, ScalarLeaf)) for n in self.nodes)
        operands = f" ({counted(extra, 'extra operand')})" if extra else ""
        return f"{', '.join(titles)}{operands}"


def _title(node: Node) -> str:
    if isinstance(node, InstructionNode):
        return node.operation.title
    return node.name if isinstance(node, UnaryNode) else ""


def scalar_parameter_type(element: Type) -> Type:
    """The type of a kernel's scalar parameter: an integer for types that some LLVM versions cannot pass."""
    return I16 if element in (BFLOAT, HALF) else element


def may_alias_leaf(value: Expression, destination: MatrixView) -> bool:
    """Whether a leaf may alias the destination."""
    return bool(in_place_leaves(value, destination))


def in_place_leaves(value: Expression, destination: MatrixView) -> list[MatrixLeaf]:
    """The leaves that may be the destination itself, since they have its layout."""
    to = destination.broadcast()
    leaves = [leaf for leaf in value.leaves() if bits_of(leaf.element) == bits_of(to.element)]
    return [leaf for leaf in leaves if _element_layout(leaf.view.broadcast()) == _element_layout(to)]


def _element_layout(view: MatrixView) -> tuple[int, int, int, int]:
    return view.rows, view.cols, view.row_stride, view.col_stride
