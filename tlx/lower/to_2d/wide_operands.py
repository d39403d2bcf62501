"""Convolutions of half or bfloat whose operands are converted to float before, once.

Registers of the right operand are packed for dot products, or converted where there are none, in each 2-D product.
Where windows overlap and one or few filters meet them, that takes longer than the products::

    1 filter of 15 x 15, a row of 242 results       225 rows of 16 registers are packed, each for one product
    the input as float                              converted once, read where it lies

Sums that are rounded to narrow elements in the end are float until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import FLOAT, HALF, VectorType
from tlx.ir.values import Value
from tlx.lower.to_2d.block_choice import Blocking
from tlx.lower.to_2d.block_cost import estimate, narrow_packing_cycles
from tlx.lower.to_2d.blocking import is_narrow
from tlx.lower.to_2d.contraction import Epilogue, Leaf, Memory, Result
from tlx.lower.to_2d.convolution_problem import Problem
from tlx.lower.to_2d.images import Image
from tlx.lower.to_2d.reordered import Reordered
from tlx.lower.to_2d.ways import best_choice, unit_of

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

_CONVERTED: Final = 2.5
"""Cycles of a copy that converts, in those of one that does not, and what it takes longer to read twice the bytes."""


@dataclass(frozen=True)
class WideOperands:
    """Copies of a convolution's operands.

    Attributes:
        problem: The convolution.
        x, w: The copies.
    """

    problem: Problem
    x: Reordered
    w: Reordered

    @classmethod
    def of(cls, plan: Plan, problem: Problem) -> WideOperands | None:
        """The copies that may pay; None where there is nothing to convert, or loads do so."""
        elements = problem.x.element, problem.w.element
        target = plan.context.target_of(plan.module, plan.function)
        if not all(map(is_narrow, elements)) or (HALF in elements and target.converts_half):
            return None
        if problem.contraction.reduces:
            return None
        return cls(problem, Reordered.wider(problem.x, FLOAT), Reordered.wider(problem.w, FLOAT))

    @property
    def cycles(self) -> float:
        """About how many cycles the copies take, and reading them longer than narrow elements."""
        return _CONVERTED * (self.x.cycles + self.w.cycles)

    @property
    def estimated(self) -> Problem:
        """The convolution of the copies, wherever they lie."""
        x, w = (copied.view(Memory.of(copied.source)) for copied in (self.x, self.w))
        return replace(self.problem, x=x, w=w, result=_rounded(self.problem.result))

    def emit(self, plan: Plan, b: TensorBuilder, op: TensorOp) -> Problem:
        """Write the copies, and what is left to compute."""
        reason = "it would be converted for each product"
        x, w = (copied.emit(plan, b, op, name, reason) for copied, name in ((self.x, "x"), (self.w, "w")))
        return replace(self.problem, x=x, w=w, result=_rounded(self.problem.result))


def narrow_cycles(plan: Plan, problem: Problem, image: Image | None, *, by_vectors: bool = False) -> float:
    """About how many cycles a convolution takes with its operands as they are, their packing included.

    Args:
        plan: The plan of the function.
        problem: The convolution.
        image: The copy of its input.
        by_vectors: Whether vectors multiply the blocks, even those chosen for a matrix unit.
    """
    contraction = problem.contraction if image is None else image.contraction(Memory.of(problem.x))
    element, made = problem.result.element, 0.0 if image is None else image.cycles()
    choice, cycles = best_choice(plan, contraction, element)
    if not isinstance(choice, Blocking):
        return made + cycles
    unit = unit_of(plan, replace(contraction, by_vectors=True) if by_vectors else contraction, element)
    return made + estimate(choice, unit) * unit.share + narrow_packing_cycles(choice, unit)


def _rounded(result: Result) -> Result:
    """A result whose sums are float, rounded before what follows them if they were narrower."""
    element, inner = result.element, result.epilogue
    if not is_narrow(element):
        return result

    def emit(b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[Leaf]) -> Value:
        rounded = b.cast("fptrunc", vector, VectorType(rows * cols, element))
        return rounded if inner is None else inner.emit(b, rounded, rows, cols, leaves)

    strides, alone = ((), True) if inner is None else (inner.strides, inner.may_use_target)
    return replace(result, epilogue=Epilogue(strides, FLOAT, emit, alone))
