"""Groups of pointwise operations on a product: its blocks go through the group's tree before they are stored.

%p = matmul %a, %b                                for each block of %p that the product's rule makes:
%s = fadd %p, %bias                       ->        %v = load the block's part of %bias
%r = relu %s                                        store relu(block + %v) to %r.buf
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.values import Value
from tlx.lower.to_2d.contraction import Epilogue, Leaf, Reduced
from tlx.lower.to_2d.copies import copy
from tlx.lower.to_2d.group_leaves import GroupLeaf, dense_copy, memory_order
from tlx.lower.to_2d.group_tree import Tree, remark_fused
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.reductions import reduced_in
from tlx.lower.to_2d.strides import strides_in
from tlx.lower.to_2d.views import View
from tlx.types import TensorType


def emit_epilogue(plan: Plan, b: TensorBuilder, op: TensorOp, product: TensorOp, target: View) -> None:
    """The product with all that is done to it, up to `op`, written to `target`."""
    from tlx.lower.to_2d.rules import PRODUCT_RULES

    assert product.result is not None
    extents = product.result.shape
    reduced = reduced_in(op, extents) or ()
    steps = _steps(target, extents, reduced)
    if steps is None:
        type_ = TensorType.dense(target.element, target.sizes)
        dense = View.of(plan.dense_operand(op)(target.element, type_.count, "result"), type_)
        emit_epilogue(plan, b, op, product, dense)
        copy(b, memory_order(dense), memory_order(target))
        return
    blocks = _Blocks(plan, op, product, _leaves(plan, b, op, extents))
    place = View(target.place, target.element, extents, extents, steps, tuple(range(len(extents))))
    PRODUCT_RULES[product.intrinsic.name](plan, b, product, place, blocks.epilogue(target, bool(reduced)))


def _leaves(plan: Plan, b: TensorBuilder, op: TensorOp, extents: Sequence[int]) -> list[GroupLeaf]:
    """The operands beside the product, dense or repeated along its last dimension."""
    leaves = [GroupLeaf(tensor, plan.view(tensor)) for tensor in plan.groups.leaves(op)]
    for leaf in leaves:
        leaf.settle(plan, b, op, extents)
        if leaf.strides[-1] > 1:
            leaf.view = dense_copy(plan, b, op, leaf.view)
            leaf.settle(plan, b, op, extents)
    return leaves


@dataclass(frozen=True)
class _Blocks:
    """What becomes of blocks of a product.

    Attributes:
        plan: The plan.
        op: The root of the group.
        product: The product in it.
        leaves: The other operands.
    """

    plan: Plan
    op: TensorOp
    product: TensorOp
    leaves: list[GroupLeaf]

    def epilogue(self, target: View, is_reduced: bool) -> Epilogue:
        """The group as an epilogue of the product; a reduction at its root is for the product's rule to place."""
        assert self.product.result is not None
        strides, element = tuple(leaf.strides for leaf in self.leaves), self.product.result.element
        if is_reduced:
            return Epilogue(strides, element, self._unreduced, reduced=Reduced(self.op, self._whole))
        alone = not any(leaf.view.place.pointer == target.place.pointer for leaf in self.leaves)
        return Epilogue(strides, element, self._whole, may_use_target=alone)

    def _whole(self, b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[Leaf]) -> Value:
        """The results of a block."""
        remark_fused(self.plan, self.op, self.plan.groups.members(self.op))
        return self._tree(b, vector, rows, cols, leaves).root(self.op)

    def _unreduced(self, b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[Leaf]) -> Value:
        """What the reduction at the root is to reduce."""
        remark_fused(self.plan, self.op, self.plan.groups.members(self.op)[:-1])
        return self._tree(b, vector, rows, cols, leaves).operand(self.op)

    def _tree(self, b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[Leaf]) -> Tree:
        tree = Tree(self.plan, b, rows, cols)
        tree.results[id(self.product)] = vector
        for leaf, block in zip(self.leaves, leaves, strict=True):
            element = leaf.view.element
            pointer = b.gep(element, b.gep(element, leaf.view.place.pointer, block.start), block.offset, "operand")
            tree.leaf(leaf.tensor, leaf.view, pointer, (block.row_stride, block.col_stride))
        return tree


def _steps(target: View, extents: Sequence[int], reduced: Sequence[int]) -> tuple[int, ...] | None:
    """The target's strides along a product's dimensions, 0 along those that are reduced; None if it has none."""
    kept = [extent for d, extent in enumerate(extents) if d not in reduced]
    steps = strides_in(target.sizes, target.steps, kept)
    if steps is None:
        return None
    pending = iter(steps)
    return tuple(0 if d in reduced else next(pending) for d in range(len(extents)))
