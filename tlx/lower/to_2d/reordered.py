"""Copies of whole operands with their dimensions in another order in memory, or with wider elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import Type, bytes_of
from tlx.lower.to_2d.buffers import size_text
from tlx.lower.to_2d.contraction import Memory
from tlx.lower.to_2d.copies import convert, copy
from tlx.lower.to_2d.copy_cost import copy_cycles
from tlx.lower.to_2d.operand_copies import strided_view
from tlx.lower.to_2d.views import Dim, View, squeezed
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan


class Reordered(NamedTuple):
    """A copy.

    Attributes:
        source: The operand.
        order: Its dimensions in the copy, outermost first.
        element: Type of the copy's elements.
    """

    source: View
    order: tuple[int, ...]
    element: Type

    @classmethod
    def of(cls, source: View, order: Sequence[int]) -> Reordered | None:
        """A copy in an order, None where the operand has it already."""
        copied = cls(source, tuple(order), source.element)
        return None if squeezed(copied.view(Memory.of(source)).dims) == squeezed(source.dims) else copied

    @classmethod
    def wider(cls, source: View, element: Type) -> Reordered:
        """A copy with wider elements, its dimensions in the order that they have."""
        dims = source.dims
        return cls(source, tuple(sorted(range(len(dims)), key=lambda d: dims[d].stride, reverse=True)), element)

    @property
    def type(self) -> TensorType:
        """The copy's type."""
        return TensorType.dense(self.element, [self.source.dims[d].extent for d in self.order])

    def view(self, memory: Memory) -> View:
        """The copy, its dimensions as those of the operand."""
        strides = dict(zip(self.order, self.type.strides(), strict=True))
        dims = [Dim(dim.extent, strides[d]) for d, dim in enumerate(self.source.dims)]
        return strided_view(memory._replace(element=self.element), dims)

    @property
    def cycles(self) -> float:
        """About how many cycles the copy takes."""
        return copy_cycles([self.source.dims[d] for d in self.order], self.element)

    def emit(self, plan: Plan, b: TensorBuilder, op: TensorOp, name: str, reason: str) -> View:
        """Write the copy.

        Args:
            plan: The plan of the function; it gives memory.
            b: Where.
            op: The operation whose operand it is.
            name: The operand's name.
            reason: Why it is copied.
        """
        note_copy(plan, op, self.type, reason, name)
        target = self.view(Memory(plan.new_place(self.element, self.type.count, name).pointer, self.element))
        write = copy if self.element == self.source.element else convert
        write(b, self.source.row_major, target)
        return target


def note_copy(plan: Plan, op: TensorOp, type_: TensorType, reason: str, name: str = "x") -> None:
    """Say that an operand is copied, and why."""
    size = size_text(type_.count * bytes_of(type_.element))
    plan.missed(f"copy of {size} of operand {name}, because {reason}", op.instruction.span)
