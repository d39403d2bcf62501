"""The expression of a fusion group on a block of rows and columns, and its operands in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import I1, I8, VectorType
from tlx.ir.values import Value
from tlx.lower.memory.views import TensorView, reshaped_strides
from tlx.lower.operations import ElementwiseOp
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.tensor_operations import ORDINARY, STAGE, call_operands, operation_title
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.fusion.groups import FusionGroups, LeafKey, is_reduction
from tlx.lower.to_2d.memory.block_access import load_block, splat_block
from tlx.lower.to_2d.memory.copies import copy


@dataclass(eq=False)
class GroupExpression:
    """The expression of a group on a block of `rows` x `cols`.

    Attributes:
        groups: What is fused.
        b: Where.
        rows, cols: Extents of the block.
        values: The vector of each operand that is read from memory.
        results: The vector of each operation, by id.
    """

    groups: FusionGroups
    b: TensorBuilder
    rows: int
    cols: int
    values: dict[LeafKey, Value] = field(default_factory=dict[LeafKey, Value])
    results: dict[int, Value] = field(default_factory=dict[int, Value])

    def leaf(self, tensor: Tensor, view: TensorView, pointer: Value, strides: tuple[int, int]) -> None:
        """Read an operand."""
        vector: Value = load_block(self.b, pointer, view.element, self.rows, self.cols, *strides)
        if tensor.type.element == I1:
            vector = self.b.cast("trunc", vector, VectorType(self.rows * self.cols, I1))
        self.values[self.groups.key(tensor)] = vector

    def operand(self, op: TensorOp) -> Value:
        """The vector of what the root takes, a reduction of one operation of the group."""
        inner = self.groups.inner(op.tensors[0])
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
            inner = map(self.groups.inner, pending[-1].tensors)
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
        if op.intrinsic.name == ORDINARY:
            return self._ordinary(op.instruction, vectors)
        type_ = TensorType.dense(op.tensors[0].type.element, (self.rows, self.cols))
        if is_reduction(op):
            token = self.b.typeinfo(vectors[0], type_)
            return self.b.reduce(op.intrinsic.name.removeprefix("reduce."), token, (1, self.cols), (1, 1))
        return self.b.unary(op.intrinsic.name, self.b.typeinfo(vectors[0], type_), type_)

    def _ordinary(self, instruction: Instruction, vectors: list[Value]) -> Value:
        """An ordinary instruction, on vectors of the block's size."""
        operation = ElementwiseOp.of(instruction)
        assert operation is not None
        assert isinstance(instruction.type, VectorType)
        name = str(instruction.result)
        type_ = VectorType(self.rows * self.cols, instruction.type.element)
        operands = _operands(instruction, vectors)
        return operation.emit(self.b, type_, operands, instruction.opcode if name.isdecimal() else name)

    def _operand(self, tensor: Tensor) -> Value:
        inner = self.groups.inner(tensor)
        if inner is not None:
            type_ = VectorType(self.rows * self.cols, tensor.type.element)
            return self.b.cast("bitcast", self.results[id(inner)], type_)
        scalar = self.groups.scalar(tensor)
        if scalar is not None:
            return splat_block(self.b, self.b.cast("bitcast", scalar, tensor.type.element), self.rows, self.cols)
        return self.values[self.groups.key(tensor)]


def _operands(instruction: Instruction, vectors: list[Value]) -> list[Value]:
    """The operands of an ordinary instruction with its vectors replaced, without the callee of a call."""
    replacements = iter(vectors)
    return [next(replacements) if isinstance(v.type, VectorType) else v for v in call_operands(instruction)]


def remark_fused(remarks: Remarks, op: TensorOp, together: Sequence[TensorOp]) -> None:
    """Note operations that are computed together with the last of them."""
    members = [operation_title(member) for member in together]
    if len(members) > 1:
        message = f"fused {', '.join(members[:-1])} into {members[-1]}: computed together, nothing between in memory"
        remarks.add("applied", STAGE, message, op.instruction.span)


@dataclass
class FusedOperand:
    """An operand in memory, and its strides along the dimensions of the loop nest."""

    tensor: Tensor
    view: TensorView
    strides: tuple[int, ...] = ()

    def settle(self, context: EmitContext, b: TensorBuilder, op: TensorOp, sizes: Sequence[int]) -> None:
        """Find its strides along dimensions; an operand that has none is copied first."""
        strides = reshaped_strides(self.view.shape, self.view.strides, sizes)
        if strides is None:
            self.view = dense_copy(context, b, op, self.view)
            strides = reshaped_strides(self.view.shape, self.view.strides, sizes)
            assert strides is not None
        self.strides = strides


def dense_copy(context: EmitContext, b: TensorBuilder, op: TensorOp, source: TensorView) -> TensorView:
    """A dense copy of an operand, its positions in the same order."""
    type_ = TensorType.dense(source.element, source.shape)
    dense = TensorView.of(context.allocate_copy(op, source.element, type_.count, "tensor"), type_)
    copy(b, in_memory_order(source), replace(dense, data_shape=source.data_shape))
    return dense


def in_memory_order(view: TensorView) -> TensorView:
    """The view as a tensor whose logical dimensions are its memory dimensions, for copies position by position."""
    return replace(view, layout=tuple(range(len(view.shape))))
