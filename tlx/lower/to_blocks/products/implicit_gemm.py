"""Loops around a product that become rows or columns of a larger one, as those of a convolution (implicit GEMM).

    for y: C[y] = A[y] @ B           rows of C: those of C[0], then those of C[1], ...
    for y: C[y] = A @ B[y]           columns of C: those of C[0], ...

Tiles of blocks are then filled, where those of each product would not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tlx.ir.types import I8
from tlx.ir.values import Value
from tlx.lower.to_blocks.kernel import GridKernel, Iterations
from tlx.lower.to_tiles.problem import Gemm


@dataclass(frozen=True, slots=True)
class MergedProduct:
    """A product and what is merged into it.

    Attributes:
        gemm: The product of an iteration.
        outer: The loops that blocks are iterations of.
        inner: The merged loops.
        by_rows: Whether they add rows, rather than columns.
    """

    gemm: Gemm
    outer: Iterations
    inner: Iterations
    by_rows: bool

    @classmethod
    def of(cls, gemm: Gemm, iterations: Iterations) -> MergedProduct:
        """Merge the inner loops in which B, or else A, stays."""
        rows, columns = (_unmoved_inner_loops(iterations, operand) for operand in (2, 1))
        by_rows = rows >= columns
        return cls(gemm, *iterations.split(max(rows, columns)), by_rows)

    @property
    def rows(self) -> int:
        """Rows of C."""
        return self.gemm.m * (prod(self.inner.trips) if self.by_rows else 1)

    @property
    def columns(self) -> int:
        """Columns of C."""
        return self.gemm.n * (1 if self.by_rows else prod(self.inner.trips))

    def position_of(self, kernel: GridKernel, row: Value, column: Value) -> tuple[Value | None, Value, Value]:
        """The iteration, row and column of an element of C; all are i32; no iteration if nothing is merged."""
        if not self.inner.trips:
            return None, row, column
        if self.by_rows:
            iteration, row = kernel.divided(row, self.gemm.m)
        else:
            iteration, column = kernel.divided(column, self.gemm.n)
        return iteration, row, column

    def moved(self, kernel: GridKernel, pointer: Value, number: int, iteration: Value | None) -> Value:
        """The pointer with a number in an iteration."""
        if iteration is None:
            return pointer
        return kernel.b.gep(I8, pointer, kernel.distance(iteration, self.inner.trips, self.inner.steps[number]))


def _unmoved_inner_loops(iterations: Iterations, number: int) -> int:
    """How many inner loops do not move a pointer."""
    count = 0
    for step in reversed(iterations.steps[number]):
        if step:
            break
        count += 1
    return count
