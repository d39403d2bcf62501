"""Operands of a group of pointwise operations that lie in memory, as its loop nest sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import Tensor, TensorOp
from tlx.lower.to_2d.copies import copy
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.strides import strides_in
from tlx.lower.to_2d.views import View
from tlx.types import TensorType


@dataclass
class GroupLeaf:
    """An operand in memory, and its strides along the dimensions of the loop nest."""

    tensor: Tensor
    view: View
    strides: tuple[int, ...] = ()

    def settle(self, plan: Plan, b: TensorBuilder, op: TensorOp, sizes: Sequence[int]) -> None:
        """Find its strides along dimensions; an operand that has none is copied first."""
        strides = strides_in(self.view.sizes, self.view.steps, sizes)
        if strides is None:
            self.view = dense_copy(plan, b, op, self.view)
            strides = strides_in(self.view.sizes, self.view.steps, sizes)
            assert strides is not None
        self.strides = strides


def dense_copy(plan: Plan, b: TensorBuilder, op: TensorOp, source: View) -> View:
    """A dense copy of an operand, its positions in the same order."""
    type_ = TensorType.dense(source.element, source.sizes)
    dense = View.of(plan.dense_operand(op)(source.element, type_.count, "tensor"), type_)
    copy(b, memory_order(source), replace(dense, data=source.data))
    return dense


def memory_order(view: View) -> View:
    """The view as a tensor whose logical dimensions are its memory dimensions, for copies position by position."""
    return replace(view, layout=tuple(range(len(view.sizes))))
