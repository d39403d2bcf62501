"""Pointwise groups: one loop nest around one 2-D tree, or the epilogue of a product.

Rewrite of `relu(x + bias)`, the bias a row for every row, where the sum has no other use::

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

Dimensions that are equally spaced in every operand are merged. The dimension that is dense in the result becomes the
row, its neighbour the second dimension of the tree, and the others become loops.

On a product, the group becomes its epilogue: each block goes through the group's tree before it is stored.

%p = matmul %a, %b                                for each block of %p that the product's rule makes:
%s = fadd %p, %bias                       ->        %v = load the block's part of %bias
%r = relu %s                                        store relu(block + %v) to %r.buf
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.values import Value
from tlx.lower.memory.views import StridedDim, TensorView, reshaped_strides
from tlx.lower.to_2d.contraction.problem import ContractionEpilogue, EpilogueOperand, EpilogueReduction
from tlx.lower.to_2d.fusion.expression import FusedOperand, GroupExpression, dense_copy, in_memory_order, remark_fused
from tlx.lower.to_2d.fusion.groups import is_reduction, reduced_in, row_dim, row_length
from tlx.lower.to_2d.loops import INDEX_LIMIT, LoopDim, collapse_dims, loop_nest
from tlx.lower.to_2d.memory.block_access import store_block
from tlx.lower.to_2d.memory.copies import copy
from tlx.lower.to_2d.rules.context import RuleContext
from tlx.lower.to_2d.rules.products import PRODUCT_RULES


def lower_pointwise(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write a group, whose root is `op`, to `target`."""
    product = context.groups.product_of(op)
    if product is None:
        remark_fused(context.remarks, op, context.groups.members(op))
        _LoopFrame(context, b, op, target).emit()
    else:
        emit_fused_product(context, b, op, product, target)


class _LoopFrame:
    """The dimensions of a group's loop nest, in the memory order of its target."""

    def __init__(self, context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
        self.context, self.b, self.op, self.target = context, b, op, target
        self.leaves = [FusedOperand(tensor, context.view(tensor)) for tensor in context.groups.leaves(op)]
        self.reduces = is_reduction(op)
        if self.reduces:
            self.sizes, self.steps = self._choose_rows()
        else:
            self.sizes, self.steps = self._choose()
        self.data = target.data_shape if self.sizes == target.shape else self.sizes

    def _choose(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Dimensions that target and leaves can all be seen with; the target's where there are none."""
        target = self.target
        choices = [target.shape]
        if target.shape == target.data_shape:
            choices += [leaf.view.shape for leaf in self.leaves]
        for sizes in choices:
            steps = reshaped_strides(target.shape, target.strides, sizes)
            if steps is not None and all(reshaped_strides(lf.view.shape, lf.view.strides, sizes) for lf in self.leaves):
                return sizes, steps
        return target.shape, target.strides

    def _choose_rows(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The dimensions of a reduction's operand, those of its rows as the last one."""
        outer = self.op.tensors[0].type.extents[: row_dim(self.op)]
        steps = reshaped_strides(self.target.shape, self.target.strides, outer)
        assert steps is not None
        return (*outer, row_length(self.op)), (*steps, 0)

    def emit(self) -> None:
        """The loops and the tree."""
        for leaf in self.leaves:
            leaf.settle(self.context, self.b, self.op, self.sizes)
        block = _InnerBlock.of(self._walks(), 1 + len(self.leaves), reduces=self.reduces)
        bad = block.unreadable()
        for index in bad:
            leaf = self.leaves[index]
            order = tuple(range(len(self.sizes)))
            seen = TensorView(leaf.view.storage, leaf.view.element, self.sizes, self.data, leaf.strides, order)
            leaf.view = dense_copy(self.context, self.b, self.op, seen)
            leaf.settle(self.context, self.b, self.op, self.sizes)
        if bad:
            block = _InnerBlock.of(self._walks(), 1 + len(self.leaves), reduces=self.reduces)
        with loop_nest(self.b, block.outer, 1 + len(self.leaves)) as offsets:
            self._tree(block, offsets)

    def _walks(self) -> list[LoopDim]:
        strides = zip(self.steps, *(leaf.strides for leaf in self.leaves), strict=True)
        return collapse_dims([LoopDim(*dim) for dim in zip(self.data, strides, strict=True)])

    def _tree(self, block: _InnerBlock, offsets: Sequence[Value]) -> None:
        b, rows, cols = self.b, block.rows[0], block.cols[0]
        tree = GroupExpression(self.context.groups, b, rows, cols)
        for index, leaf in enumerate(self.leaves):
            strides = block.rows[1][index + 1], block.cols[1][index + 1]
            pointer = b.gep(leaf.view.element, leaf.view.storage.pointer, offsets[index + 1], "operand")
            tree.leaf(leaf.tensor, leaf.view, pointer, strides)
        destination = b.gep(self.target.element, self.target.storage.pointer, offsets[0], "result")
        vector = tree.root(self.op)
        pitch = block.rows[1][0]
        written = 1 if self.reduces else cols
        store_block(b, vector, destination, self.target.element, rows, written, pitch)


@dataclass(frozen=True)
class _InnerBlock:
    """The two inner dimensions of a loop nest, and the outer ones."""

    rows: LoopDim
    cols: LoopDim
    outer: list[LoopDim]

    @classmethod
    def of(cls, walks: list[LoopDim], operands: int, *, reduces: bool) -> _InnerBlock:
        """The target's dense dimension, or the reduced one, inside; around it one along which the leaves are dense."""
        one = LoopDim(1, (0,) * operands)
        cols = walks[-1] if reduces else next((w for w in reversed(walks) if w[1][0] == 1), None)
        others = [w for w in walks if w is not cols]
        fitting = [w for w in others if max(w[1]) < INDEX_LIMIT]
        if cols is None:
            rows = max(fitting, key=lambda w: w[0], default=one)
            return cls(rows, one, [w for w in others if w is not rows])
        rows = next((w for w in reversed(fitting) if not cls(w, cols, []).unreadable()), None)
        if rows is None:
            rows = fitting[-1] if fitting else one
        return cls(rows, cols, [w for w in others if w is not rows])

    def unreadable(self) -> list[int]:
        """The leaves that no 2-D load reads."""
        if self.cols[0] == 1:
            return []
        down = self.rows[1][1:] if self.rows[0] > 1 else (1,) * len(self.cols[1][1:])
        right = self.cols[1][1:]
        return [i for i, (d, r) in enumerate(zip(down, right, strict=True)) if r > 1 and (d != 1 or r >= INDEX_LIMIT)]


def emit_fused_product(
    context: RuleContext, b: TensorBuilder, op: TensorOp, product: TensorOp, target: TensorView
) -> None:
    """The product with all that is done to it, up to `op`, written to `target`."""
    assert product.result is not None
    extents = product.result.shape
    reduced = reduced_in(op, extents) or ()
    steps = _steps(target, extents, reduced)
    if steps is None:
        type_ = TensorType.dense(target.element, target.shape)
        dense = TensorView.of(context.allocate_copy(op, target.element, type_.count, "result"), type_)
        emit_fused_product(context, b, op, product, dense)
        copy(b, in_memory_order(dense), in_memory_order(target))
        return
    blocks = _EpilogueBlocks(context, op, product, _epilogue_operands(context, b, op, extents))
    dims = [StridedDim(extent, stride) for extent, stride in zip(extents, steps, strict=True)]
    place = TensorView.strided(target.storage, target.element, dims)
    PRODUCT_RULES[product.intrinsic.name](context, b, product, place, blocks.epilogue(target, bool(reduced)))


def _epilogue_operands(
    context: RuleContext, b: TensorBuilder, op: TensorOp, extents: Sequence[int]
) -> list[FusedOperand]:
    """The operands beside the product, dense or repeated along its last dimension."""
    leaves = [FusedOperand(tensor, context.view(tensor)) for tensor in context.groups.leaves(op)]
    for leaf in leaves:
        leaf.settle(context, b, op, extents)
        if leaf.strides[-1] > 1:
            leaf.view = dense_copy(context, b, op, leaf.view)
            leaf.settle(context, b, op, extents)
    return leaves


@dataclass(frozen=True)
class _EpilogueBlocks:
    """What becomes of blocks of a product.

    Attributes:
        context: Operands, temporaries and remarks.
        op: The root of the group.
        product: The product in it.
        leaves: The other operands.
    """

    context: RuleContext
    op: TensorOp
    product: TensorOp
    leaves: list[FusedOperand]

    def epilogue(self, target: TensorView, is_reduced: bool) -> ContractionEpilogue:
        """The group as an epilogue of the product; a reduction at its root is for the product's rule to place."""
        assert self.product.result is not None
        strides, element = tuple(leaf.strides for leaf in self.leaves), self.product.result.element
        if is_reduced:
            return ContractionEpilogue(
                strides, element, self._unreduced, reduced=EpilogueReduction(self.op, self._whole)
            )
        alone = not any(leaf.view.storage.pointer == target.storage.pointer for leaf in self.leaves)
        return ContractionEpilogue(strides, element, self._whole, may_use_target=alone)

    def _whole(self, b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]) -> Value:
        """The results of a block."""
        remark_fused(self.context.remarks, self.op, self.context.groups.members(self.op))
        return self._tree(b, vector, rows, cols, leaves).root(self.op)

    def _unreduced(
        self, b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]
    ) -> Value:
        """What the reduction at the root is to reduce."""
        remark_fused(self.context.remarks, self.op, self.context.groups.members(self.op)[:-1])
        return self._tree(b, vector, rows, cols, leaves).operand(self.op)

    def _tree(
        self, b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]
    ) -> GroupExpression:
        tree = GroupExpression(self.context.groups, b, rows, cols)
        tree.results[id(self.product)] = vector
        for leaf, block in zip(self.leaves, leaves, strict=True):
            element = leaf.view.element
            pointer = b.gep(element, b.gep(element, leaf.view.storage.pointer, block.start), block.offset, "operand")
            tree.leaf(leaf.tensor, leaf.view, pointer, (block.row_stride, block.col_stride))
        return tree


def _steps(target: TensorView, extents: Sequence[int], reduced: Sequence[int]) -> tuple[int, ...] | None:
    """The target's strides along a product's dimensions, 0 along those that are reduced; None if it has none."""
    kept = [extent for d, extent in enumerate(extents) if d not in reduced]
    steps = reshaped_strides(target.shape, target.strides, kept)
    if steps is None:
        return None
    pending = iter(steps)
    return tuple(0 if d in reduced else next(pending) for d in range(len(extents)))
