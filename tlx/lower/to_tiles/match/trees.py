"""Reads the tree behind a store, from the store to its leaves, as an expression.

A tree is one block's instructions; each of them that the stored value depends on becomes a node, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.diagnostics import LoweringError
from tlx.ir.instructions import Block, Instruction
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import Type, VectorType, scalar_of
from tlx.ir.values import Aggregate, Constant, Keyword, Local, Splat, Value, zero
from tlx.lower.operations import PRODUCT_SIGNS, UNARY_INTRINSICS, ElementwiseOp
from tlx.lower.to_tiles.problem.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    Node,
    ProductLeaf,
    ScalarLeaf,
    SplatLeaf,
    UnaryNode,
)
from tlx.lower.to_tiles.problem.view import MatrixView


@dataclass(eq=False)
class StoreTree:
    """What a store's tree says.

    Attributes:
        value: What it computes.
        pointers: First element and view of each leaf, by the leaves' pointer numbers.
        scalars: The numbers, by the scalars' numbers.
        product: Its product, if it has one.
        instructions: Those that only compute the value: they go with the tree.
    """

    value: Expression
    pointers: list[tuple[Value, MatrixView]]
    scalars: list[Value]
    product: TensorOp | None
    instructions: list[Instruction]


@dataclass(eq=False)
class FunctionSnapshot:
    """A function's instructions as they stood before any of its trees was replaced.

    Attributes:
        tensors: The function's tensors.
        block_of: The block of each instruction, by the instruction's id.
        made: The instruction that makes each result, and its number among all, by the result's name.
    """

    tensors: FunctionTensors
    block_of: dict[int, Block] = field(default_factory=dict[int, Block])
    made: dict[str, tuple[int, Instruction]] = field(default_factory=dict[str, tuple[int, Instruction]])

    def __post_init__(self) -> None:
        for block in self.tensors.function.blocks:
            for instruction in block.instructions:
                self.block_of[id(instruction)] = block
                if instruction.result is not None:
                    self.made[instruction.result] = len(self.block_of), instruction


def read_tree(listing: FunctionSnapshot, store: TensorOp, root: Tensor) -> StoreTree:
    """The tree behind a token.

    Args:
        listing: The function's instructions.
        store: The store; the tree stands in its block.
        root: The token of the value: the stored one, or the one that is reduced.

    Raises:
        LoweringError: Something in it is no part of a tree.
    """
    return _TreeReader(listing, listing.tensors, store, root).read()


@dataclass(eq=False)
class _TreeReader:
    listing: FunctionSnapshot
    tensors: FunctionTensors
    store: TensorOp
    root: Tensor
    nodes: dict[Node, int] = field(default_factory=dict[Node, int])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    pointers: dict[tuple[str, Type], int] = field(default_factory=dict[tuple[str, Type], int])
    places: list[tuple[Value, MatrixView]] = field(default_factory=list[tuple[Value, MatrixView]])
    scalars: dict[str, int] = field(default_factory=dict[str, int])
    numbers_given: list[Value] = field(default_factory=list[Value])
    product: TensorOp | None = None
    inserts: list[Instruction] = field(default_factory=list[Instruction])

    def read(self) -> StoreTree:
        instructions = self._instructions()
        for instruction in instructions:
            self.numbers[str(instruction.result)] = self._instruction(instruction)
        last = self._number_of_token(self.root)
        rows, cols = self.root.type.extents
        value = Expression(rows, cols, tuple(self.nodes)[: last + 1])
        return StoreTree(value, self.places, self.numbers_given, self.product, [*instructions, *self.inserts])

    def _instructions(self) -> list[Instruction]:
        """The instructions that make vectors which the value depends on, in the block's order."""
        block = self.listing.block_of[id(self.store.instruction)]
        needed: dict[str, tuple[int, Instruction]] = {}
        pending = self._sources(self.root)
        while pending:
            name = pending.pop()
            if name in needed:
                continue
            number, instruction = self.listing.made.get(name, (0, None))
            if instruction is None or self.listing.block_of[id(instruction)] is not block:
                raise unlowered_operation(self.store)
            needed[name] = number, instruction
            pending += self._dependencies(instruction)
        return [instruction for _, instruction in sorted(needed.values(), key=lambda made: made[0])]

    def _dependencies(self, instruction: Instruction) -> list[str]:
        op = self.tensors.op_of(instruction)
        if op is None:
            return [o.name for o in instruction.operands if isinstance(o, Local) and isinstance(o.type, VectorType)]
        if op.intrinsic.name in PRODUCT_SIGNS or op.intrinsic.name == "broadcast":
            return []
        return [name for tensor in op.tensors for name in self._sources(tensor)]

    def _sources(self, tensor: Tensor) -> list[str]:
        if tensor.kind == "load":
            return []
        if tensor.kind == "value" and isinstance(tensor.source, Local):
            return [tensor.source.name]
        if tensor.kind == "value" and isinstance(tensor.source, Constant):
            return []
        raise unlowered_operation(self.store)

    # Nodes -----------------------------------------------------------------------------------------------------

    def _node(self, node: Node) -> int:
        return self.nodes.setdefault(node, len(self.nodes))

    def _instruction(self, instruction: Instruction) -> int:
        op = self.tensors.op_of(instruction)
        if op is None:
            return self._ordinary(instruction)
        name = op.intrinsic.name
        if name in ("tovector", "transpose"):
            if name == "transpose" and op.dims != ((0, 1),):
                raise unlowered_operation(op)
            return self._number_of_token(op.tensors[0])
        if name == "broadcast":
            return self._broadcast(op)
        if name in PRODUCT_SIGNS and self.product in (None, op):
            self.product = op
            return self._node(ProductLeaf(scalar_of(instruction.type)))
        if name in UNARY_INTRINSICS and op.result is not None and op.result.is_row_major:
            return self._node(UnaryNode(op.result.element, name, (self._number_of_token(op.tensors[0]),)))
        raise unlowered_operation(op)

    def _number_of_token(self, tensor: Tensor) -> int:
        if tensor.kind == "load":
            return self._leaf(tensor)
        return self._operand(tensor.source, tensor.definition)

    def _leaf(self, tensor: Tensor) -> int:
        element = tensor.type.element
        key = str(tensor.source), element
        view = MatrixView.of(tensor.type, tensor.pitches).broadcast()
        if key not in self.pointers:
            self.pointers[key] = len(self.pointers)
            self.places.append((tensor.source, view))
        return self._node(MatrixLeaf(element, view, self.pointers[key]))

    def _broadcast(self, op: TensorOp) -> int:
        tensor = op.tensors[0]
        if tensor.kind == "load" and op.dims and op.dims[1] == (0, 1):
            return self._leaf(tensor)
        if tensor.kind != "value" or tensor.type.count != 1 or len(op.dims) != 2:
            raise unlowered_operation(op)
        value = tensor.source
        if isinstance(value, Constant):
            return self._constant(value, op.instruction)
        _, made = self.listing.made.get(str(value)[1:], (0, None))
        if made is None or made.opcode != "insertelement":
            raise unlowered_operation(op)
        self.inserts.append(made)
        return self._scalar(made.operands[1])

    def _scalar(self, value: Value) -> int:
        if isinstance(value, Constant):
            return self._node(SplatLeaf(value.type, value))
        if str(value) not in self.scalars:
            self.scalars[str(value)] = len(self.scalars)
            self.numbers_given.append(value)
        return self._node(ScalarLeaf(value.type, self.scalars[str(value)]))

    def _operand(self, value: Value, user: Instruction) -> int:
        if isinstance(value, Local) and isinstance(value.type, VectorType):
            return self.numbers[value.name]
        if isinstance(value.type, VectorType):
            return self._constant(value, user)
        return self._scalar(value)

    def _constant(self, value: Value, user: Instruction) -> int:
        element = scalar_of(value.type)
        if isinstance(value, Keyword):
            same = zero(element) if value.word == "zeroinitializer" else Keyword(element, value.word)
        elif isinstance(value, Splat):
            same = value.element
        elif isinstance(value, Aggregate) and len(set(value.elements)) == 1:
            same = value.elements[0]
        else:
            raise LoweringError("a constant of different elements is not lowered to tiles here", user.span)
        return self._node(SplatLeaf(element, same))

    def _ordinary(self, instruction: Instruction) -> int:
        operation = ElementwiseOp.of(instruction)
        if operation is None:
            raise LoweringError(f"'{instruction.opcode}' is not lowered to tiles here", instruction.span)
        values = instruction.args if operation.opcode == "call" else instruction.operands
        count = len(values)
        while operation.opcode == "call" and not isinstance(values[count - 1].type, VectorType):
            count -= 1
        immediates = tuple(values[count:])
        if any(isinstance(i, Local) for i in immediates):
            raise LoweringError(f"{operation.title} with a variable operand is not lowered to tiles", instruction.span)
        operands = tuple(self._operand(v, instruction) for v in values[:count])
        return self._node(InstructionNode(scalar_of(instruction.type), operation, operands, immediates))


def unlowered_operation(op: TensorOp) -> LoweringError:
    """The diagnostic for an operation that stage 1 should not have left."""
    return LoweringError(f"{op.intrinsic.full_name} is not lowered to tiles here", op.instruction.span)
