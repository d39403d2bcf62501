"""Copies of whole convolution operands, with dimensions in another order or with wider elements.

Convolutions of half or bfloat whose operands are converted to float before, once.

Registers of the right operand are packed for dot products, or converted where there are none, in each 2-D product.
Where windows overlap and one or few filters meet them, that takes longer than the products::

    1 filter of 15 x 15, a row of 242 results       225 rows of 16 registers are packed, each for one product
    the input as float                              converted once, read where it lies

Sums that are rounded to narrow elements in the end are float until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import FLOAT, HALF, Type, VectorType
from tlx.ir.values import Value
from tlx.lower.memory.views import StridedDim, TensorView, without_unit_dims
from tlx.lower.to_2d.contraction.blocking import Blocking
from tlx.lower.to_2d.contraction.cost import blocking_cycles, narrow_packing_cycles
from tlx.lower.to_2d.contraction.operand_copies import strided_view
from tlx.lower.to_2d.contraction.problem import (
    ContractionEpilogue,
    ContractionResult,
    EpilogueOperand,
    OperandMemory,
    rounds_sums,
)
from tlx.lower.to_2d.contraction.strategy import best_blocking, compute_unit
from tlx.lower.to_2d.convolution.layouts import InputLayout
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.memory.copies import convert, copy, copy_cycles
from tlx.target.target import Target


class ReorderedCopy(NamedTuple):
    """A copy.

    Attributes:
        source: The operand.
        order: Its dimensions in the copy, outermost first.
        element: Type of the copy's elements.
    """

    source: TensorView
    order: tuple[int, ...]
    element: Type

    @classmethod
    def of(cls, source: TensorView, order: Sequence[int]) -> ReorderedCopy | None:
        """A copy in an order, None where the operand has it already."""
        copied = cls(source, tuple(order), source.element)
        return (
            None
            if without_unit_dims(copied.view(OperandMemory.of(source)).dims) == without_unit_dims(source.dims)
            else copied
        )

    @classmethod
    def widened(cls, source: TensorView, element: Type) -> ReorderedCopy:
        """A copy with wider elements, its dimensions in the order that they have."""
        dims = source.dims
        return cls(source, tuple(sorted(range(len(dims)), key=lambda d: dims[d].stride, reverse=True)), element)

    @property
    def type(self) -> TensorType:
        """The copy's type."""
        return TensorType.dense(self.element, [self.source.dims[d].extent for d in self.order])

    def view(self, memory: OperandMemory) -> TensorView:
        """The copy, its dimensions as those of the operand."""
        strides = dict(zip(self.order, self.type.strides(), strict=True))
        dims = [StridedDim(dim.extent, strides[d]) for d, dim in enumerate(self.source.dims)]
        return strided_view(memory._replace(element=self.element), dims)

    @property
    def cycles(self) -> float:
        """About how many cycles the copy takes."""
        return copy_cycles([self.source.dims[d] for d in self.order], self.element)

    def emit(self, context: EmitContext, b: TensorBuilder, op: TensorOp, name: str, reason: str) -> TensorView:
        """Write the copy.

        Args:
            context: Target, temporaries and remarks.
            b: Where.
            op: The operation whose operand it is.
            name: The operand's name.
            reason: Why it is copied.
        """
        place = context.allocate_copy(op, self.element, self.type.count, name, reason)
        target = self.view(OperandMemory(place.pointer, self.element))
        write = copy if self.element == self.source.element else convert
        write(b, self.source.row_major, target)
        return target


_CONVERTED: Final = 2.5
"""Cycles of a copy that converts, in those of one that does not, and what it takes longer to read twice the bytes."""


@dataclass(frozen=True)
class WideOperands:
    """Copies of a convolution's operands.

    Attributes:
        problem: The convolution.
        x, w: The copies.
    """

    problem: DenseConvolution
    x: ReorderedCopy
    w: ReorderedCopy

    @classmethod
    def of(cls, target: Target, problem: DenseConvolution) -> WideOperands | None:
        """The copies that may pay; None where there is nothing to convert, or loads do so."""
        elements = problem.x.element, problem.w.element
        if not all(map(rounds_sums, elements)) or (HALF in elements and target.converts_half):
            return None
        if problem.contraction.reduces:
            return None
        return cls(problem, ReorderedCopy.widened(problem.x, FLOAT), ReorderedCopy.widened(problem.w, FLOAT))

    @property
    def cycles(self) -> float:
        """About how many cycles the copies take, and reading them longer than narrow elements."""
        return _CONVERTED * (self.x.cycles + self.w.cycles)

    @property
    def estimated(self) -> DenseConvolution:
        """The convolution of the copies, wherever they lie."""
        x, w = (copied.view(OperandMemory.of(copied.source)) for copied in (self.x, self.w))
        return replace(self.problem, x=x, w=w, result=_rounding_result(self.problem.result))

    def emit(self, context: EmitContext, b: TensorBuilder, op: TensorOp) -> DenseConvolution:
        """Write the copies, and what is left to compute."""
        reason = "it would be converted for each product"
        x, w = (copied.emit(context, b, op, name, reason) for copied, name in ((self.x, "x"), (self.w, "w")))
        return replace(self.problem, x=x, w=w, result=_rounding_result(self.problem.result))


def cycles_of_narrow_operands(
    target: Target, problem: DenseConvolution, image: InputLayout | None, *, by_vectors: bool = False
) -> float:
    """About how many cycles a convolution takes with its operands as they are, their packing included.

    Args:
        target: The machine to choose for.
        problem: The convolution.
        image: The copy of its input.
        by_vectors: Whether vectors multiply the blocks, even those chosen for a matrix unit.
    """
    contraction = problem.contraction if image is None else image.contraction(OperandMemory.of(problem.x))
    element, made = problem.result.element, 0.0 if image is None else image.cycles()
    choice, cycles = best_blocking(target, contraction, element)
    if not isinstance(choice, Blocking):
        return made + cycles
    unit = compute_unit(target, replace(contraction, ignore_matrix_unit=True) if by_vectors else contraction, element)
    return made + blocking_cycles(choice, unit) * unit.dot_share + narrow_packing_cycles(choice, unit)


def _rounding_result(result: ContractionResult) -> ContractionResult:
    """A result whose sums are float, rounded before what follows them if they were narrower."""
    element, inner = result.element, result.epilogue
    if not rounds_sums(element):
        return result

    def emit(b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]) -> Value:
        rounded = b.cast("fptrunc", vector, VectorType(rows * cols, element))
        return rounded if inner is None else inner.emit(b, rounded, rows, cols, leaves)

    strides, alone = ((), True) if inner is None else (inner.strides, inner.may_use_target)
    return replace(result, epilogue=ContractionEpilogue(strides, FLOAT, emit, alone))
