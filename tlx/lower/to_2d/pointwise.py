"""Groups of pointwise operations: one loop nest around one 2-D tree.

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

Dimensions that every operand walks through as one are merged; of what is left the one that is dense in the result is
the row, its neighbour makes the second dimension, the others become loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.values import Value
from tlx.lower.to_2d.group_leaves import GroupLeaf, dense_copy
from tlx.lower.to_2d.group_tree import Tree, remark_fused
from tlx.lower.to_2d.leaves import store_vector
from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk, merged, nest
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.product_epilogue import emit_epilogue
from tlx.lower.to_2d.reductions import is_reduction, row_dim, row_length
from tlx.lower.to_2d.strides import strides_in
from tlx.lower.to_2d.views import View


def lower_pointwise(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write a group, whose root is `op`, to `target`."""
    product = plan.groups.product_of(op)
    if product is None:
        remark_fused(plan, op, plan.groups.members(op))
        _Frame(plan, b, op, target).emit()
    else:
        emit_epilogue(plan, b, op, product, target)


class _Frame:
    """The dimensions of a group's loop nest, in the memory order of its target."""

    def __init__(self, plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
        self.plan, self.b, self.op, self.target = plan, b, op, target
        self.leaves = [GroupLeaf(tensor, plan.view(tensor)) for tensor in plan.groups.leaves(op)]
        self.reduces = is_reduction(op)
        if self.reduces:
            self.sizes, self.steps = self._choose_rows()
        else:
            self.sizes, self.steps = self._choose()
        self.data = target.data if self.sizes == target.sizes else self.sizes

    def _choose(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Dimensions that target and leaves can all be seen with; the target's where there are none."""
        target = self.target
        choices = [target.sizes]
        if target.sizes == target.data:
            choices += [leaf.view.sizes for leaf in self.leaves]
        for sizes in choices:
            steps = strides_in(target.sizes, target.steps, sizes)
            if steps is not None and all(strides_in(lf.view.sizes, lf.view.steps, sizes) for lf in self.leaves):
                return sizes, steps
        return target.sizes, target.steps

    def _choose_rows(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The dimensions of a reduction's operand, those of its rows as the last one."""
        outer = self.op.tensors[0].type.extents[: row_dim(self.op)]
        steps = strides_in(self.target.sizes, self.target.steps, outer)
        assert steps is not None
        return (*outer, row_length(self.op)), (*steps, 0)

    def emit(self) -> None:
        """The loops and the tree."""
        for leaf in self.leaves:
            leaf.settle(self.plan, self.b, self.op, self.sizes)
        block = _Block.of(self._walks(), 1 + len(self.leaves), reduces=self.reduces)
        bad = block.unreadable()
        for index in bad:
            leaf = self.leaves[index]
            order = tuple(range(len(self.sizes)))
            seen = View(leaf.view.place, leaf.view.element, self.sizes, self.data, leaf.strides, order)
            leaf.view = dense_copy(self.plan, self.b, self.op, seen)
            leaf.settle(self.plan, self.b, self.op, self.sizes)
        if bad:
            block = _Block.of(self._walks(), 1 + len(self.leaves), reduces=self.reduces)
        with nest(self.b, block.outer, 1 + len(self.leaves)) as offsets:
            self._tree(block, offsets)

    def _walks(self) -> list[Walk]:
        strides = zip(self.steps, *(leaf.strides for leaf in self.leaves), strict=True)
        return merged(list(zip(self.data, strides, strict=True)))

    def _tree(self, block: _Block, offsets: Sequence[Value]) -> None:
        b, rows, cols = self.b, block.rows[0], block.cols[0]
        tree = Tree(self.plan, b, rows, cols)
        for index, leaf in enumerate(self.leaves):
            strides = block.rows[1][index + 1], block.cols[1][index + 1]
            pointer = b.gep(leaf.view.element, leaf.view.place.pointer, offsets[index + 1], "operand")
            tree.leaf(leaf.tensor, leaf.view, pointer, strides)
        destination = b.gep(self.target.element, self.target.place.pointer, offsets[0], "result")
        vector = tree.root(self.op)
        pitch = block.rows[1][0]
        written = 1 if self.reduces else cols
        store_vector(b, vector, destination, self.target.element, rows, written, pitch)


@dataclass(frozen=True)
class _Block:
    """The two inner dimensions of a loop nest, and the outer ones."""

    rows: Walk
    cols: Walk
    outer: list[Walk]

    @classmethod
    def of(cls, walks: list[Walk], operands: int, *, reduces: bool) -> _Block:
        """The target's dense dimension, or the reduced one, inside; around it one along which the leaves are dense."""
        one: Walk = (1, (0,) * operands)
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
