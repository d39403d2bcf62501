"""Figures of a kernel: operations, bytes and predicted cycles, as the cost model sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.lower.remarks import ArithmeticUnit
from tlx.lower.to_tiles.expression import Expression, InstructionNode, UnaryNode
from tlx.lower.to_tiles.kernels import KernelFacts
from tlx.lower.to_tiles.problem import Copy, Elementwise, Gemm, LineShuffle, Reduction, RowFusion
from tlx.lower.to_tiles.select.elementwise import roofline
from tlx.lower.to_tiles.select.recipe_cost import cost

UNITS: Final[dict[ArithmeticUnit, str]] = {"fma": "multiply-add", "dot": "dot product", "matrix": "matrix unit"}


@dataclass(frozen=True, slots=True)
class Figures:
    """What one call to a kernel does on one thread.

    Attributes:
        operations: Arithmetic operations; a multiply-add is two.
        bytes: Bytes of each matrix once, read and written.
        cycles: Predicted cycles; 0 if nothing is predicted.
        peak: Operations per cycle of the unit that multiplies; 0 without a product.
        unit: That unit.
    """

    operations: int
    bytes: int
    cycles: float
    peak: float = 0.0
    unit: ArithmeticUnit | None = None

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.bytes if self.bytes else 0.0

    @property
    def rate(self) -> float:
        """Predicted operations per cycle."""
        return self.operations / self.cycles if self.cycles else 0.0


def figures(facts: KernelFacts) -> Figures:
    """The figures of a kernel."""
    problem = facts.problem
    if isinstance(problem, Gemm):
        return _of_product(problem, facts)
    if isinstance(problem, Copy):
        return Figures(0, problem.bytes_moved, 0.0)
    if isinstance(problem, LineShuffle):
        return Figures(0, 0, problem.cycles)
    bound = roofline(problem, facts.target)
    return Figures(_operations(problem), bound.bytes_moved, max(bound.transfer, bound.compute))


def _of_product(gemm: Gemm, facts: KernelFacts) -> Figures:
    terms = gemm.total_k * gemm.products_per_operand
    operations = 2 * gemm.m * gemm.n * terms
    matrices = [gemm.a, gemm.b, *([gemm.acc] if gemm.acc is not None else [])]
    moved = gemm.c.bytes_moved + sum(view.bytes_moved for view in matrices)
    moved += (len(gemm.term_offsets) - 1) * (gemm.a.bytes_moved + gemm.b.bytes_moved) * (not gemm.all_pairs)
    if gemm.epilogue is not None:
        moved += gemm.epilogue.bytes_moved
    if facts.recipe is None:
        return Figures(operations, moved, 0.0)
    share = facts.recipe.efficiency
    cycles = cost(gemm, facts.recipe, facts.target).total
    return Figures(operations, moved, cycles, operations / cycles / share if share else 0.0, facts.recipe.mma.unit)


def _operations(problem: Elementwise | Reduction | RowFusion) -> int:
    if isinstance(problem, RowFusion):
        return sum(_operations(part.problem) for part in problem.parts)
    count = _arithmetic(problem.value) + isinstance(problem, Reduction)
    return count * problem.value.rows * problem.value.cols


def _arithmetic(value: Expression) -> int:
    """Operations on each element."""
    return sum(isinstance(node, InstructionNode | UnaryNode) for node in value.nodes)
