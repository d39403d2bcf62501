"""The expression of a group of pointwise operations, on a block of its rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tlx.ir.module import Instruction
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import I1, I8, VectorType
from tlx.ir.values import Value
from tlx.lower.ordinary import Operation
from tlx.lower.to_2d.elementwise import NAME, given
from tlx.lower.to_2d.groups import LeafKey
from tlx.lower.to_2d.leaves import leaf_vector, scalar_vector
from tlx.lower.to_2d.plan import STAGE, Plan, title
from tlx.lower.to_2d.reductions import is_reduction
from tlx.lower.to_2d.views import View
from tlx.types import TensorType


@dataclass(eq=False)
class Tree:
    """The expression of a group on a block of `rows` x `cols`.

    Attributes:
        plan: The plan.
        b: Where.
        rows, cols: Extents of the block.
        values: The vector of each operand that is read from memory.
        results: The vector of each operation, by id.
    """

    plan: Plan
    b: TensorBuilder
    rows: int
    cols: int
    values: dict[LeafKey, Value] = field(default_factory=dict[LeafKey, Value])
    results: dict[int, Value] = field(default_factory=dict[int, Value])

    def leaf(self, tensor: Tensor, view: View, pointer: Value, strides: tuple[int, int]) -> None:
        """Read an operand."""
        vector: Value = leaf_vector(self.b, pointer, view.element, self.rows, self.cols, *strides)
        if tensor.type.element == I1:
            vector = self.b.cast("trunc", vector, VectorType(self.rows * self.cols, I1))
        self.values[self.plan.groups.key(tensor)] = vector

    def operand(self, op: TensorOp) -> Value:
        """The vector of what the root takes, a reduction of one operation of the group."""
        inner = self.plan.groups.inner(op.tensors[0])
        assert inner is not None
        self.result(inner)
        return self._operand(op.tensors[0])

    def root(self, op: TensorOp) -> Value:
        """The vector that is stored: the root's; truth values as bytes."""
        vector = self.result(op)
        assert op.result is not None
        if op.result.element == I1:
            return self.b.cast("zext", vector, VectorType(self.rows * self.cols, I8))
        return vector

    def result(self, op: TensorOp) -> Value:
        """The vector of an operation of the group, made behind those of its operands; chains may be long."""
        pending = [op]
        while pending:
            inner = map(self.plan.groups.inner, pending[-1].tensors)
            missing = next((one for one in inner if one is not None and id(one) not in self.results), None)
            if missing is not None:
                pending.append(missing)
                continue
            current = pending.pop()
            if id(current) not in self.results:
                self.results[id(current)] = self._compute(current)
        return self.results[id(op)]

    def _compute(self, op: TensorOp) -> Value:
        vectors = [self._operand(tensor) for tensor in op.tensors]
        if op.intrinsic.name == NAME:
            return self._ordinary(op.instruction, vectors)
        type_ = TensorType.dense(op.tensors[0].type.element, (self.rows, self.cols))
        if is_reduction(op):
            token = self.b.typeinfo(vectors[0], type_)
            return self.b.reduce(op.intrinsic.name.removeprefix("reduce."), token, (1, self.cols), (1, 1))
        return self.b.unary(op.intrinsic.name, self.b.typeinfo(vectors[0], type_), type_)

    def _ordinary(self, instruction: Instruction, vectors: list[Value]) -> Value:
        """An ordinary instruction, on vectors of the block's size."""
        operation = Operation.of(instruction)
        assert operation is not None
        assert isinstance(instruction.type, VectorType)
        name = str(instruction.result)
        type_ = VectorType(self.rows * self.cols, instruction.type.element)
        operands = _operands(instruction, vectors)
        return operation.emit(self.b, type_, operands, instruction.opcode if name.isdecimal() else name)

    def _operand(self, tensor: Tensor) -> Value:
        inner = self.plan.groups.inner(tensor)
        if inner is not None:
            type_ = VectorType(self.rows * self.cols, tensor.type.element)
            return self.b.cast("bitcast", self.results[id(inner)], type_)
        scalar = self.plan.groups.scalar(tensor)
        if scalar is not None:
            return scalar_vector(self.b, self.b.cast("bitcast", scalar, tensor.type.element), self.rows, self.cols)
        return self.values[self.plan.groups.key(tensor)]


def _operands(instruction: Instruction, vectors: list[Value]) -> list[Value]:
    """The operands of an ordinary instruction with its vectors replaced, without the callee of a call."""
    replacements = iter(vectors)
    return [next(replacements) if isinstance(v.type, VectorType) else v for v in given(instruction)]


def remark_fused(plan: Plan, op: TensorOp, together: Sequence[TensorOp]) -> None:
    """Note operations that are computed together with the last of them."""
    members = [title(member) for member in together]
    if len(members) > 1:
        message = f"fused {', '.join(members[:-1])} into {members[-1]}: computed together, nothing between in memory"
        plan.context.remarks.add("applied", STAGE, message, op.instruction.span)
