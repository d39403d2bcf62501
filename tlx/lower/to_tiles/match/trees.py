"""Trees: each instruction that a stored value depends on becomes a node of an expression, in the block's order.

A tree is within one block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.diagnostics import LoweringError
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import Type, VectorType, scalar_of
from tlx.ir.values import Aggregate, Constant, Keyword, Local, Splat, Value, zero
from tlx.lower.operations import PRODUCT_SIGNS, UNARY_INTRINSICS, Accuracy, ElementwiseOp
from tlx.lower.to_tiles.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    MatrixView,
    Node,
    ProductLeaf,
    ScalarLeaf,
    SplatLeaf,
    UnaryNode,
)


@dataclass(eq=False)
class StoreTree:
    """The tree whose root is a store.

    Attributes:
        value: The expression that it computes.
        pointers: First element and view of each leaf, by the leaves' pointer numbers.
        scalars: The scalars, by their numbers.
        product: Its product, if it has one.
        instructions: Instructions that only compute the value; they are removed with the tree.
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
        function: The function.
        tensors: Its tensors.
        block_of: The block of each instruction, by the instruction's id.
        definitions: The instruction that defines each value, and its number in the function, by the value's name.
    """

    function: Function
    tensors: FunctionTensors
    block_of: dict[int, Block] = field(default_factory=dict[int, Block])
    definitions: dict[str, tuple[int, Instruction]] = field(default_factory=dict[str, tuple[int, Instruction]])

    def __post_init__(self) -> None:
        for block in self.function.blocks:
            for instruction in block.instructions:
                self.block_of[id(instruction)] = block
                if instruction.result is not None:
                    self.definitions[instruction.result] = len(self.block_of), instruction


@dataclass(eq=False)
class TreeReader:
    """Reads the tree whose root is a token.

    Attributes:
        snapshot: The function's instructions.
        store: The store; the tree is in its block.
        root: The token of the value: the stored one, or the one that is reduced.
        nodes: The nodes read so far, with their numbers.
        numbers: The node of each instruction, by its result's name.
        pointers: The number of each leaf's pointer, by its spelling and element type.
        places: First element and view of each pointer.
        scalars: The number of each scalar, by its spelling.
        scalar_values: The scalars, by their numbers.
        product: The tree's product, if it has one.
        inserts: Instructions that put scalars into vectors to broadcast them.
    """

    snapshot: FunctionSnapshot
    store: TensorOp
    root: Tensor
    nodes: dict[Node, int] = field(default_factory=dict[Node, int])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    pointers: dict[tuple[str, Type], int] = field(default_factory=dict[tuple[str, Type], int])
    places: list[tuple[Value, MatrixView]] = field(default_factory=list[tuple[Value, MatrixView]])
    scalars: dict[str, int] = field(default_factory=dict[str, int])
    scalar_values: list[Value] = field(default_factory=list[Value])
    product: TensorOp | None = None
    inserts: list[Instruction] = field(default_factory=list[Instruction])

    def read(self) -> StoreTree:
        """The tree.

        Raises:
            LoweringError: An instruction cannot be part of a tree.
        """
        instructions = self._instructions()
        for instruction in instructions:
            self.numbers[str(instruction.result)] = self._instruction(instruction)
        last = self._number_of_token(self.root)
        rows, cols = self.root.type.extents
        value = Expression(rows, cols, tuple(self.nodes)[: last + 1])
        return StoreTree(value, self.places, self.scalar_values, self.product, [*instructions, *self.inserts])

    def _instructions(self) -> list[Instruction]:
        """The instructions that the value depends on through vectors, in the block's order."""
        block = self.snapshot.block_of[id(self.store.instruction)]
        needed: dict[str, tuple[int, Instruction]] = {}
        pending = self._sources(self.root)
        while pending:
            name = pending.pop()
            if name in needed:
                continue
            number, instruction = self.snapshot.definitions.get(name, (0, None))
            if instruction is None or self.snapshot.block_of[id(instruction)] is not block:
                raise unlowered_operation(self.store)
            needed[name] = number, instruction
            pending += self._dependencies(instruction)
        return [instruction for _, instruction in sorted(needed.values(), key=lambda definition: definition[0])]

    def _dependencies(self, instruction: Instruction) -> list[str]:
        op = self.snapshot.tensors.op_of(instruction)
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
        op = self.snapshot.tensors.op_of(instruction)
        if op is None:
            return self._elementwise(instruction)
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
            operands, accuracy = (self._number_of_token(op.tensors[0]),), Accuracy.of(instruction)
            return self._node(UnaryNode(op.result.element, name, operands, accuracy))
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
        _, definition = self.snapshot.definitions.get(str(value)[1:], (0, None))
        if definition is None or definition.opcode != "insertelement":
            raise unlowered_operation(op)
        self.inserts.append(definition)
        return self._scalar(definition.operands[1])

    def _scalar(self, value: Value) -> int:
        if isinstance(value, Constant):
            return self._node(SplatLeaf(value.type, value))
        if str(value) not in self.scalars:
            self.scalars[str(value)] = len(self.scalars)
            self.scalar_values.append(value)
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
            scalar = zero(element) if value.word == "zeroinitializer" else Keyword(element, value.word)
        elif isinstance(value, Splat):
            scalar = value.element
        elif isinstance(value, Aggregate) and len(set(value.elements)) == 1:
            scalar = value.elements[0]
        else:
            raise LoweringError("a constant that is not a splat is not lowered to tiles here", user.span)
        return self._node(SplatLeaf(element, scalar))

    def _elementwise(self, instruction: Instruction) -> int:
        operation = ElementwiseOp.of(instruction)
        if operation is None:
            raise LoweringError(f"'{instruction.opcode}' is not lowered to tiles here", instruction.span)
        values, immediates = ElementwiseOp.operands_of(instruction)
        if any(isinstance(i, Local) for i in immediates):
            raise LoweringError(f"{operation.title} with a variable operand is not lowered to tiles", instruction.span)
        operands = tuple(self._operand(v, instruction) for v in values)
        return self._node(InstructionNode(scalar_of(instruction.type), operation, operands, immediates))


def unlowered_operation(op: TensorOp) -> LoweringError:
    """The error for an operation that stage 1 should not have left."""
    return LoweringError(f"{op.intrinsic.full_name} is not lowered to tiles here", op.instruction.span)
