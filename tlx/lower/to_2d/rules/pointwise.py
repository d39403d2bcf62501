"""Pointwise groups: one loop nest around one 2-D tree, or the epilogue of a product.

Rewrite of `relu(x + bias)`, with the bias broadcast to all rows, and no other use of the sum::

    %s = fadd <600 x float> %x, %rows
    %t = call token @llvm.tensor.typeinfo(<600 x float> %s, <2, 3, 100>, ...)
    %r = call <600 x float> @llvm.tensor.relu(token %t)
    ->
    %xt = call token @llvm.tensor.load(ptr %x.buf, <6, 100>, ...)
    %xv = call <600 x float> @llvm.tensor.tovector(token %xt)
    %bt = call token @llvm.tensor.load(ptr %bias, <1, 100>, ...)
    %bv = call <600 x float> @llvm.tensor.broadcast(token %bt, <6, 100>, <0, 1>)
    %s = fadd <600 x float> %xv, %bv
    %st = call token @llvm.tensor.typeinfo(<600 x float> %s, <6, 100>, ...)
    %r = call <600 x float> @llvm.tensor.relu(token %st)
    ... stored to %r.buf

Neighbouring dimensions are merged if every operand allows it. The dimension that is dense in the result becomes the
row of the tree, its neighbour the tree's other dimension, and the others become loops.

A group with a product becomes the epilogue of the product: the group's expression is applied to each block before it is
stored.

%p = matmul %a, %b                                for each block of %p:
%s = fadd %p, %bias                       ->        %v = load the block's part of %bias
%r = relu %s                                        store relu(block + %v) to %r.buf
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import DOUBLE, FLOAT, I1, I8, VectorType
from tlx.ir.values import Value
from tlx.lower.memory.views import StridedDim, TensorView, reshaped_strides
from tlx.lower.operations import Accuracy, ElementwiseOp
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.tensor_operations import ORDINARY, STAGE, call_operands, operation_title
from tlx.lower.to_2d.contraction.problem import ContractionEpilogue, EpilogueOperand, EpilogueReduction
from tlx.lower.to_2d.emission import EmitContext, RuleContext
from tlx.lower.to_2d.fusion import FusionGroups, LeafKey, is_reduction, reduced_in, row_dim, row_length
from tlx.lower.to_2d.loop_nests import INDEX_LIMIT, LoopDim, collapse_dims, loop_nest
from tlx.lower.to_2d.memory.copies import copy, load_block, splat_block, store_block
from tlx.lower.to_2d.rules.products import PRODUCT_RULES, lower_accumulated


def lower_pointwise(context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
    """Write a group, whose root is `op`, to `destination`."""
    product = context.memory.groups.product_of(op)
    if product is None:
        remark_fused(context.remarks, op, context.memory.groups.members(op))
        _LoopFrame(context, b, op, destination).emit()
    else:
        emit_fused_product(context, b, op, product, destination)


class _LoopFrame:
    """The loop nest of a group, with dimensions in the memory order of its destination."""

    def __init__(self, context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView) -> None:
        self.context, self.b, self.op, self.destination = context, b, op, destination
        self.leaves = [FusedOperand(tensor, context.memory.view(tensor)) for tensor in context.memory.groups.leaves(op)]
        self.reduces = is_reduction(op)
        if self.reduces:
            self.sizes, self.steps = self._choose_rows()
        else:
            self.sizes, self.steps = self._choose()
        self.data = destination.data_shape if self.sizes == destination.shape else self.sizes

    def _choose(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Extents for which destination and leaves all have strides, and the destination's strides; else its own."""
        destination = self.destination
        choices = [destination.shape]
        if destination.shape == destination.data_shape:
            choices += [leaf.view.shape for leaf in self.leaves]
        for sizes in choices:
            steps = reshaped_strides(destination.shape, destination.strides, sizes)
            if steps is not None and all(reshaped_strides(lf.view.shape, lf.view.strides, sizes) for lf in self.leaves):
                return sizes, steps
        return destination.shape, destination.strides

    def _choose_rows(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Extents of a reduction's operand, with rows as one dimension, and the destination's strides."""
        outer = self.op.tensors[0].type.extents[: row_dim(self.op)]
        steps = reshaped_strides(self.destination.shape, self.destination.strides, outer)
        assert steps is not None
        return (*outer, row_length(self.op)), (*steps, 0)

    def emit(self) -> None:
        """Write the loops and the tree."""
        for leaf in self.leaves:
            leaf.set_strides(self.context, self.b, self.op, self.sizes)
        block = _InnerBlock.of(self._dims(), 1 + len(self.leaves), reduces=self.reduces)
        bad = block.unreadable()
        for index in bad:
            leaf = self.leaves[index]
            order = tuple(range(len(self.sizes)))
            view = TensorView(leaf.view.storage, leaf.view.element, self.sizes, self.data, leaf.strides, order)
            leaf.view = dense_copy(self.context, self.b, self.op, view)
            leaf.set_strides(self.context, self.b, self.op, self.sizes)
        if bad:
            block = _InnerBlock.of(self._dims(), 1 + len(self.leaves), reduces=self.reduces)
        with loop_nest(self.b, block.outer, 1 + len(self.leaves)) as offsets:
            self._tree(block, offsets)

    def _dims(self) -> list[LoopDim]:
        strides = zip(self.steps, *(leaf.strides for leaf in self.leaves), strict=True)
        return collapse_dims([LoopDim(*dim) for dim in zip(self.data, strides, strict=True)])

    def _tree(self, block: _InnerBlock, offsets: Sequence[Value]) -> None:
        b, rows, cols = self.b, block.rows.extent, block.cols.extent
        tree = GroupExpression(self.context.memory.groups, b, rows, cols)
        for index, leaf in enumerate(self.leaves):
            strides = block.rows.strides[index + 1], block.cols.strides[index + 1]
            pointer = b.gep(leaf.view.element, leaf.view.storage.pointer, offsets[index + 1], "operand")
            tree.leaf(leaf.tensor, leaf.view, pointer, strides)
        destination = b.gep(self.destination.element, self.destination.storage.pointer, offsets[0], "result")
        vector = tree.root(self.op)
        pitch = block.rows.strides[0]
        written = 1 if self.reduces else cols
        store_block(b, vector, destination, self.destination.element, rows, written, pitch)


@dataclass(frozen=True)
class _InnerBlock:
    """The dimensions of a loop nest: rows and columns of the tree, and the loops around it."""

    rows: LoopDim
    cols: LoopDim
    outer: list[LoopDim]

    @classmethod
    def of(cls, dims: list[LoopDim], operands: int, *, reduces: bool) -> _InnerBlock:
        """The dense dimension of the destination, or the reduced one, as columns; rows that loads can read."""
        one = LoopDim(1, (0,) * operands)
        cols = dims[-1] if reduces else next((dim for dim in reversed(dims) if dim.strides[0] == 1), None)
        others = [dim for dim in dims if dim is not cols]
        fitting = [dim for dim in others if max(dim.strides) < INDEX_LIMIT]
        if cols is None:
            rows = max(fitting, key=lambda dim: dim.extent, default=one)
            return cls(rows, one, [dim for dim in others if dim is not rows])
        rows = next((dim for dim in reversed(fitting) if not cls(dim, cols, []).unreadable()), None)
        if rows is None:
            rows = fitting[-1] if fitting else one
        return cls(rows, cols, [dim for dim in others if dim is not rows])

    def unreadable(self) -> list[int]:
        """The leaves that no 2-D load can read."""
        if self.cols.extent == 1:
            return []
        down = self.rows.strides[1:] if self.rows.extent > 1 else (1,) * len(self.cols.strides[1:])
        right = self.cols.strides[1:]
        return [i for i, (d, r) in enumerate(zip(down, right, strict=True)) if r > 1 and (d != 1 or r >= INDEX_LIMIT)]


def emit_fused_product(
    context: RuleContext, b: TensorBuilder, op: TensorOp, product: TensorOp, destination: TensorView
) -> None:
    """Write a product with its epilogue, whose last operation is `op`, to `destination`."""
    assert product.result is not None
    extents = product.result.shape
    reduced = reduced_in(op, extents) or ()
    steps = _steps(destination, extents, reduced)
    if steps is None:
        type_ = TensorType.dense(destination.element, destination.shape)
        dense = TensorView.of(context.allocate_copy(op, destination.element, type_.count, "result"), type_)
        emit_fused_product(context, b, op, product, dense)
        copy(b, in_memory_order(dense), in_memory_order(destination))
        return
    dims = [StridedDim(extent, stride) for extent, stride in zip(extents, steps, strict=True)]
    place = TensorView.strided(destination.storage, destination.element, dims)
    leaves = _epilogue_operands(context, b, op, place)
    b.span = product.instruction.span
    if _starts_sums(context.memory.groups, op, product, leaves, place):
        remark_fused(context.remarks, op, context.memory.groups.members(op))
        acc = leaves[0]
        dims = [StridedDim(extent, stride) for extent, stride in zip(extents, acc.strides, strict=True)]
        lower_accumulated(context, b, product, place, TensorView.strided(acc.view.storage, acc.view.element, dims))
        return
    blocks = _EpilogueBlocks(context, op, product, leaves)
    PRODUCT_RULES[product.intrinsic.name](context, b, product, place, blocks.epilogue(destination, bool(reduced)))


def _starts_sums(
    groups: FusionGroups, op: TensorOp, product: TensorOp, leaves: Sequence[FusedOperand], place: TensorView
) -> bool:
    """Whether an epilogue only adds a tensor, and its flags allow the sums of the product to start from it."""
    if product.intrinsic.name not in {"matmul", "contract"} or len(groups.members(op)) > 2 or len(leaves) != 1:
        return False
    assert product.result is not None
    if op.instruction.opcode != "fadd" or not {"reassoc", "fast"} & set(op.instruction.flags):
        return False
    acc = leaves[0]
    whole = all(step or extent == 1 for extent, step in zip(product.result.shape, acc.strides, strict=True))
    return whole and {acc.view.element, place.element, product.result.element} in ({FLOAT}, {DOUBLE})


def _epilogue_operands(context: RuleContext, b: TensorBuilder, op: TensorOp, place: TensorView) -> list[FusedOperand]:
    """The further operands of an epilogue, dense or broadcast along the dimension that is dense in the result."""
    leaves = [FusedOperand(tensor, context.memory.view(tensor)) for tensor in context.memory.groups.leaves(op)]
    order = sorted(range(len(place.dims)), key=lambda d: place.dims[d].stride, reverse=True)
    dense = next((d for d in reversed(order) if place.dims[d].extent > 1), -1)
    for leaf in leaves:
        leaf.set_strides(context, b, op, place.shape)
        if leaf.strides[dense] > 1:
            leaf.copy_in_order(context, b, op, place.shape, order)
    return leaves


@dataclass(frozen=True)
class _EpilogueBlocks:
    """Emits the epilogue of a product, block by block.

    Attributes:
        context: Operands, temporaries and remarks.
        op: The root of the group.
        product: The product in the group.
        leaves: The further operands.
    """

    context: RuleContext
    op: TensorOp
    product: TensorOp
    leaves: list[FusedOperand]

    def epilogue(self, destination: TensorView, is_reduced: bool) -> ContractionEpilogue:
        """The group as an epilogue; the contraction decides where a reduction at its root is computed."""
        assert self.product.result is not None
        strides, element = tuple(leaf.strides for leaf in self.leaves), self.product.result.element
        if is_reduced:
            return ContractionEpilogue(
                strides, element, self._unreduced, reduced=EpilogueReduction(self.op, self._emit_block)
            )
        alone = not any(leaf.view.storage.pointer == destination.storage.pointer for leaf in self.leaves)
        return ContractionEpilogue(strides, element, self._emit_block, may_use_destination=alone)

    def _emit_block(
        self, b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]
    ) -> Value:
        """Emit the group on a block."""
        remark_fused(self.context.remarks, self.op, self.context.memory.groups.members(self.op))
        return self._tree(b, vector, rows, cols, leaves).root(self.op)

    def _unreduced(
        self, b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]
    ) -> Value:
        """Emit the group on a block, without the reduction at its root."""
        remark_fused(self.context.remarks, self.op, self.context.memory.groups.members(self.op)[:-1])
        operand = self._tree(b, vector, rows, cols, leaves).operand(self.op)
        b.span = self.op.instruction.span
        return operand

    def _tree(
        self, b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]
    ) -> GroupExpression:
        tree = GroupExpression(self.context.memory.groups, b, rows, cols)
        tree.results[id(self.product)] = vector
        for leaf, block in zip(self.leaves, leaves, strict=True):
            element = leaf.view.element
            pointer = b.gep(element, b.gep(element, leaf.view.storage.pointer, block.start), block.offset, "operand")
            tree.leaf(leaf.tensor, leaf.view, pointer, (block.row_stride, block.col_stride))
        return tree


def _steps(destination: TensorView, extents: Sequence[int], reduced: Sequence[int]) -> tuple[int, ...] | None:
    """The destination's strides along a product's dimensions (0 along reduced ones); None if it has no strides."""
    remaining = [extent for d, extent in enumerate(extents) if d not in reduced]
    steps = reshaped_strides(destination.shape, destination.strides, remaining)
    if steps is None:
        return None
    pending = iter(steps)
    return tuple(0 if d in reduced else next(pending) for d in range(len(extents)))


@dataclass(eq=False)
class GroupExpression:
    """Emits the expression of a group on a block of `rows` x `cols`.

    Each instruction has the span of the operation that it computes, and the builder is left with the root's.

    Attributes:
        groups: The fusion groups.
        b: The builder.
        rows, cols: Extents of the block.
        values: The vector of each operand that is read from memory.
        results: The vector of each operation, by its id.
    """

    groups: FusionGroups
    b: TensorBuilder
    rows: int
    cols: int
    values: dict[LeafKey, Value] = field(default_factory=dict[LeafKey, Value])
    results: dict[int, Value] = field(default_factory=dict[int, Value])

    def leaf(self, tensor: Tensor, view: TensorView, pointer: Value, strides: tuple[int, int]) -> None:
        """Load an operand."""
        self.b.span = tensor.definition.span or self.b.span
        vector: Value = load_block(self.b, pointer, view.element, self.rows, self.cols, *strides)
        if tensor.type.element == I1:
            vector = self.b.cast("trunc", vector, VectorType(self.rows * self.cols, I1))
        self.values[self.groups.key(tensor)] = vector

    def operand(self, op: TensorOp) -> Value:
        """The vector of the operand of a root that is a reduction."""
        inner = self.groups.inner(op.tensors[0])
        assert inner is not None
        self.result(inner)
        return self._operand(op.tensors[0])

    def root(self, op: TensorOp) -> Value:
        """The vector of the root, as it is stored: i1 as bytes."""
        vector = self.result(op)
        assert op.result is not None
        if op.result.element == I1:
            return self.b.cast("zext", vector, VectorType(self.rows * self.cols, I8))
        return vector

    def result(self, op: TensorOp) -> Value:
        """The vector of an operation; a loop emits its operands first, as chains may be too long for recursion."""
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
        self.b.span = op.instruction.span
        vectors = [self._operand(tensor) for tensor in op.tensors]
        if op.intrinsic.name == ORDINARY:
            return self._ordinary(op.instruction, vectors)
        type_ = TensorType.dense(op.tensors[0].type.element, (self.rows, self.cols))
        if is_reduction(op):
            token = self.b.typeinfo(vectors[0], type_)
            return self.b.reduce(op.intrinsic.name.removeprefix("reduce."), token, (1, self.cols), (1, 1))
        metadata = Accuracy.of(op.instruction).metadata
        return self.b.unary(op.intrinsic.name, self.b.typeinfo(vectors[0], type_), type_, metadata=metadata)

    def _ordinary(self, instruction: Instruction, vectors: list[Value]) -> Value:
        """Emit an ordinary instruction on vectors of the block's size."""
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
    """Add a remark on operations that are computed together with the last of them."""
    members = [operation_title(member) for member in together]
    if len(members) > 1:
        message = f"fused {', '.join(members[:-1])} into {members[-1]}: no intermediate result goes through memory"
        remarks.add("applied", STAGE, message, op.instruction.span)


@dataclass
class FusedOperand:
    """An operand in memory, with its strides along the dimensions of the loop nest."""

    tensor: Tensor
    view: TensorView
    strides: tuple[int, ...] = ()

    def set_strides(self, context: EmitContext, b: TensorBuilder, op: TensorOp, sizes: Sequence[int]) -> None:
        """Compute its strides along dimensions of some extents; an operand that has none is copied first."""
        strides = reshaped_strides(self.view.shape, self.view.strides, sizes)
        if strides is None:
            self.view = dense_copy(context, b, op, self.view)
            strides = reshaped_strides(self.view.shape, self.view.strides, sizes)
            assert strides is not None
        self.strides = strides

    def copy_in_order(
        self, context: EmitContext, b: TensorBuilder, op: TensorOp, sizes: Sequence[int], order: Sequence[int]
    ) -> None:
        """Read a dense copy with dimensions of some extents in an order, the outermost first."""
        dims = [StridedDim(extent, stride) for extent, stride in zip(sizes, self.strides, strict=True)]
        source = TensorView.strided(self.view.storage, self.view.element, dims)
        type_ = TensorType.dense(self.view.element, [sizes[d] for d in order])
        place = context.allocate_copy(op, self.view.element, type_.count, "tensor")
        strides = dict(zip(order, type_.strides(), strict=True))
        self.strides = tuple(strides[d] for d in range(len(sizes)))
        copied = [StridedDim(extent, stride) for extent, stride in zip(sizes, self.strides, strict=True)]
        self.view = TensorView.strided(place, self.view.element, copied)
        copy(b, source, self.view)


def dense_copy(context: EmitContext, b: TensorBuilder, op: TensorOp, source: TensorView) -> TensorView:
    """A dense copy of an operand, with elements in the same order."""
    type_ = TensorType.dense(source.element, source.shape)
    dense = TensorView.of(context.allocate_copy(op, source.element, type_.count, "tensor"), type_)
    copy(b, in_memory_order(source), replace(dense, data_shape=source.data_shape))
    return dense


def in_memory_order(view: TensorView) -> TensorView:
    """The view with its memory dimensions as logical ones, for copies in memory order."""
    return replace(view, layout=tuple(range(len(view.shape))))
