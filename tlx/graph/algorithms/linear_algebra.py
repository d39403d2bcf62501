"""Factorizations of matrices, and triangular systems of equations.

Each is a loop over the rows or columns of one matrix, and an outer loop over all matrices. Step `k` of Cholesky's
factor and of a triangular system subtracts the contribution of the rows before `k` as one product, so that every step
reads the finished part once:

    column k of L  =  (A[:, k] - L @ L[k, :]) / sqrt(...)           L is 0 from column k on
    row k of X     =  (B[k, :] - A[k, :k] @ X[:k, :]) / A[k, k]     X is 0 from row k on

An LU factorization exchanges rows, so each step subtracts an outer product from what is left of the matrix.

Source: Golub and Van Loan, Matrix Computations, sections 3.1, 3.4 and 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tlx.graph.algorithms.random_bits import RandomBits
from tlx.graph.core import listed
from tlx.graph.value import DType, Operand, Value
from tlx.intrinsics.numpy_types import is_float

_INDEX: Final = np.dtype(np.int32)


class LinearAlgebra(RandomBits):
    """Operations on matrices, the last two dimensions of a tensor."""

    def cholesky(self, x: Operand, *, lower: bool = True) -> Value:
        """The triangular factor of positive definite matrices: `x = L @ L.T` or, upper, `x = U.T @ U`.

        Elements of a matrix that is not positive definite are NaN from some column or row on.

        Args:
            x: Symmetric matrices, of which only one triangle is read.
            lower: Whether that triangle, and the factor, is the lower one.
        """
        value = self._matrices("cholesky", x, square=True)
        if not value.view.count:
            return value
        source = value if lower else self._matrix_transpose(value)
        (factor,) = self._each_matrix(self._cholesky, [source], [(source.shape[-2:], value.dtype)])
        return factor if lower else self._matrix_transpose(factor)

    def triangular_solve(
        self, a: Operand, b: Operand, *, lower: bool = True, transposed: bool = False, unit_diagonal: bool = False
    ) -> Value:
        """The solution x of `a @ x = b` for triangular matrices.

        Args:
            a: Square matrices, of which only one triangle is read.
            b: Right-hand sides, a column each: matrices, as many as `a` has.
            lower: Whether the triangle of `a` is the lower one.
            transposed: Whether `a.T @ x = b` is solved.
            unit_diagonal: Whether the diagonal counts as 1 and is not read.
        """
        operation = "triangular_solve"
        matrix, sides = self._pair_types(operation, a, b)
        matrix = self._matrices(operation, matrix, square=True)
        sides = self._matrices(operation, sides)
        if sides.shape[:-1] != matrix.shape[:-1]:
            self._fail(
                operation, f"a is {listed(matrix.shape)} and b {listed(sides.shape)}: all but the last extent differ"
            )
        if not sides.view.count:
            return sides
        if transposed:
            matrix, lower = self._matrix_transpose(matrix), not lower

        def solve(a: Value, b: Value) -> list[Value]:
            return [self._triangular_solve(a, b, lower=lower, unit_diagonal=unit_diagonal)]

        return self._each_matrix(solve, [matrix, sides], [(sides.shape[-2:], sides.dtype)])[0]

    def lu(self, x: Operand) -> tuple[Value, Value]:
        """`P @ x = L @ U` with partial pivoting.

        Args:
            x: Matrices of shape (..., m, n).

        Returns:
            L below the diagonal, which is 1, and U from the diagonal on, in one matrix; and int32 of shape
            (..., min(m, n)): the row that step k exchanges with row k.
        """
        value = self._matrices("lu", x)
        steps = min(value.shape[-2:])
        if not value.view.count:
            return value, self._empty((*value.shape[:-2], steps), _INDEX)
        results = [(value.shape[-2:], value.dtype), ((steps,), _INDEX)]
        factors, pivots = self._each_matrix(self._lu, [value], results)
        return factors, pivots

    # One matrix ------------------------------------------------------------------------------------------------

    def _cholesky(self, x: Value) -> list[Value]:
        n = x.shape[0]
        rows = self.iota((n, 1), 0, _INDEX)

        def step(k: Value, factor: Value) -> tuple[Value, Value]:
            row = self.dynamic_slice(factor, (k, 0), (1, n))
            column = self.dynamic_slice(x, (0, k), (n, 1)) - factor @ row.T
            pivot = self.sqrt(self.dynamic_slice(column, (k, 0), (1, 1)))
            column = self.where(rows >= k, column / pivot, 0.0)
            return k + 1, self.dynamic_update_slice(factor, column, (0, k))

        return [self._steps(n, step, self.full((n, n), 0.0, x.dtype))[0]]

    def _triangular_solve(self, a: Value, b: Value, *, lower: bool, unit_diagonal: bool) -> Value:
        n, width = b.shape
        columns = self.iota((1, n), 1, _INDEX)

        def step(k: Value, solution: Value) -> tuple[Value, Value]:
            index = k if lower else (n - 1) - k
            row = self.dynamic_slice(a, (index, 0), (1, n))
            solved = columns < index if lower else columns > index
            side = self.dynamic_slice(b, (index, 0), (1, width)) - self.where(solved, row, 0.0) @ solution
            if not unit_diagonal:
                side = side / self.dynamic_slice(a, (index, index), (1, 1))
            return k + 1, self.dynamic_update_slice(solution, side, (index, 0))

        return self._steps(n, step, self.full(b.shape, 0.0, b.dtype))[0]

    def _lu(self, x: Value) -> list[Value]:
        (m, n), steps = x.shape, min(x.shape)
        rows, columns = self.iota((m, 1), 0, _INDEX), self.iota((1, n), 1, _INDEX)

        def step(k: Value, matrix: Value, pivots: Value) -> tuple[Value, Value, Value]:
            column = self.dynamic_slice(matrix, (0, k), (m, 1))
            magnitudes = self.where(rows >= k, self.unary("abs", column), -1.0)
            pivot_row = self.convert(self.argmax(magnitudes.reshape(m), axis=0), _INDEX)
            above = self.dynamic_slice(matrix, (k, 0), (1, n))
            row = self.dynamic_slice(matrix, (pivot_row, 0), (1, n))
            matrix = self.dynamic_update_slice(matrix, above, (pivot_row, 0))
            matrix = self.dynamic_update_slice(matrix, row, (k, 0))
            column = self.dynamic_slice(matrix, (0, k), (m, 1))
            pivot = self.dynamic_slice(row, (0, k), (1, 1))
            below = (rows > k) & (pivot != 0.0)
            factor = self.where(below, column / pivot, column)
            matrix = self.where(below & (columns > k), matrix - factor * row, matrix)
            matrix = self.where(columns == k, factor, matrix)
            return k + 1, matrix, self.dynamic_update_slice(pivots, pivot_row.reshape(1), (k,))

        return list(self._steps(steps, step, x, self.full((steps,), 0, _INDEX)))

    # Loops -----------------------------------------------------------------------------------------------------

    def _steps(self, count: int, step: Callable[..., Any], *initial: Value) -> tuple[Value, ...]:
        """The state after some steps; a step takes its number and the state, and returns the next ones."""

        def continues(k: Value, *_: Value) -> Value:
            return k < count

        return self.while_loop(continues, step, self.full((), 0, _INDEX), *initial)[1:]

    def _each_matrix(
        self,
        function: Callable[..., Sequence[Value]],
        operands: Sequence[Value],
        results: Sequence[tuple[tuple[int, ...], DType]],
    ) -> list[Value]:
        """The results of a function for each matrix of some tensors.

        Args:
            function: A function of one matrix of each operand.
            operands: Tensors whose leading dimensions are the same.
            results: Shape and element type of each result for one matrix.
        """
        outer = operands[0].shape[:-2]
        count = math.prod(outer)
        flat = [x.reshape(count, *x.shape[-2:]) for x in operands]
        if count == 1:
            values: Sequence[Value] = function(*(x[0] for x in flat))
        else:

            def step(k: Value, *state: Value) -> tuple[Value, ...]:
                matrices = [self.dynamic_slice(x, (k, 0, 0), (1, *x.shape[1:])).reshape(*x.shape[1:]) for x in flat]
                new = zip(state, function(*matrices), strict=True)
                return k + 1, *(
                    self.dynamic_update_slice(all_, one.reshape(1, *one.shape), (k, *[0] * one.rank))
                    for all_, one in new
                )

            values = self._steps(count, step, *(self.full((count, *shape), 0, dtype) for shape, dtype in results))
        return [x.reshape(*outer, *shape) for x, (shape, _) in zip(values, results, strict=True)]

    def _matrices(self, operation: str, x: Operand, *, square: bool = False) -> Value:
        """An operand that is a matrix, or several."""
        value = self._value(operation, x)
        if not is_float(value.dtype) or value.dtype.itemsize < 4:
            self._fail(operation, f"not defined for {value.dtype.name}: convert the operand to float32")
        if value.rank < 2 or (square and value.shape[-2] != value.shape[-1]):
            kind = "square matrices" if square else "matrices"
            self._fail(operation, f"the operand has shape {listed(value.shape)}: expected {kind}")
        return value

    def _pair_types(self, operation: str, a: Operand, b: Operand) -> tuple[Value, Value]:
        """Two operands of one element type, whose shapes need not be the same."""
        x, y = self._value(operation, a), self._value(operation, b)
        if x.dtype != y.dtype:
            self._fail(operation, f"the operands are {x.dtype.name} and {y.dtype.name}: convert one of them")
        return x, y

    def _matrix_transpose(self, x: Value) -> Value:
        return self.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])
