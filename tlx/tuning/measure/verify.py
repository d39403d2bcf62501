"""Checks of the output of a workload.

ElementwiseCheck    compares every element with numpy's, in float64
FreivaldsCheck      checks a large product in time independent of K: a few rows elementwise, and all rows by their
                    products with random vectors (Freivalds' algorithm)

    c = a @ b   ->   c @ x == a @ (b @ x)        MxN NxP == MxK KxN NxP

The vectors have random signs, so that a single wrong element always changes its row of `c @ x`. Integers are exact.
Rounding errors of floats add up like random walks: an element's is 2^-24 sqrt(K) times the sum of its terms'
magnitudes (Higham and Mary, 2019), a row's sqrt(N) times that; the tolerance is eight times as large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tlx.intrinsics.numpy_types import Array
from tlx.tuning.measure.workload import Element

_CHUNK: Final = 1 << 20
_BLOCK: Final = 256
_ROWS: Final = 16
_VECTORS: Final = 8
_DEVIATIONS: Final = 8
_ROUNDING: Final = 5  # deviations of a rounding, in halves of the last place: 8 / sqrt(3)


@dataclass(frozen=True)
class ElementwiseCheck:
    """Compares all elements of an output.

    Attributes:
        values: The expected elements, in float64 or int64.
        magnitude: Sums of the terms' absolute values, to which rounding errors are relative; None for exact results.
        terms: Maximum number of roundings of a result.
    """

    values: Array
    magnitude: Array | None = None
    terms: int = 1

    def mistakes(self, element: Element, got: Array) -> str:
        """Describe the first wrong element and the number of them; empty if there are none."""
        wrong: list[int] = [
            start + index for start in range(0, got.size, _CHUNK) for index in self._wrong(element, got, start)
        ]
        if not wrong:
            return ""
        place = tuple(map(int, np.unravel_index(wrong[0], self.values.shape)))
        value = element.widen(got.reshape(-1)[wrong[:1]])[0]
        return (
            f"element {place} is {value}, expected {self.values[place]}; {len(wrong)} of {got.size} elements are wrong"
        )

    def _wrong(self, element: Element, got: Array, start: int) -> Any:
        """The wrong elements of a chunk; checking by chunks saves memory."""
        part = slice(start, start + _CHUNK)
        values, expected = element.widen(got.reshape(-1)[part]), self.values.reshape(-1)[part]
        if self.magnitude is None:
            return np.flatnonzero(values != expected)
        bound = self.terms * 2 * _rounding_unit(element) * self.magnitude.reshape(-1)[part]
        bound = bound + 2.0 ** (1 - element.precision) * np.abs(expected)
        return np.flatnonzero(~(np.abs(values - expected) <= bound))


@dataclass(frozen=True)
class FreivaldsCheck:
    """Checks a product by its products with random vectors and by a few of its rows.

    Attributes:
        sample: Indices of the known rows.
        rows: The known rows.
        vectors: The random vectors, NxP, of 1 and -1.
        products: Expected products with them, MxP.
        magnitude: Sum of the terms' absolute values for each of the M rows; None for exact results.
        terms: Number of terms of an element, K.
    """

    sample: Array
    rows: ElementwiseCheck
    vectors: Array
    products: Array
    magnitude: Array | None
    terms: int

    def mistakes(self, element: Element, got: Array) -> str:
        """Describe the first wrong row; empty if there is none."""
        if text := self.rows.mistakes(element, got[self.sample]):
            return f"in rows {', '.join(map(str, self.sample))}: {text}"
        found = [start + index for start in range(0, len(got), _BLOCK) for index in self._wrong(element, got, start)]
        if not found:
            return ""
        return f"row {found[0]} is wrong, by products with random vectors; {len(found)} of {len(got)} rows are"

    def _wrong(self, element: Element, got: Array, start: int) -> Any:
        part = slice(start, start + _BLOCK)
        values = element.widen(got[part]).astype(np.float64)
        difference = np.abs(values @ self.vectors - self.products[part]).max(1)
        if self.magnitude is None:
            return np.flatnonzero(difference != 0)
        bound = _DEVIATIONS * _rounding_unit(element) * (self.terms / got.shape[1]) ** 0.5 * self.magnitude[part]
        bound = bound + _ROUNDING * 2.0**-element.precision * np.linalg.norm(values, axis=1)
        return np.flatnonzero(~(difference <= bound))


def freivalds_check(a: Array, b: Array, lhs: Element, rhs: Element, *, exact: bool) -> FreivaldsCheck:
    """The check for `a @ b`, given the arrays in memory order; `exact`: the sums are integers."""
    rows, columns, k = len(a), b.shape[1], a.shape[1]
    generator = np.random.default_rng(rows)
    sample = np.unique([0, rows - 1, *generator.integers(0, rows, _ROWS)])
    x = generator.choice([-1.0, 1.0], (columns, _VECTORS))
    some = lhs.widen(a[sample]).astype(np.float64)
    values, sizes, bx, sums = [np.zeros(s) for s in ((len(sample), columns),) * 2 + ((k, _VECTORS), (k,))]
    for part, block in _row_blocks(b, rhs):
        bx[part], sums[part] = block @ x, np.abs(block).sum(1)
        values += some[:, part] @ block
        sizes += np.abs(some[:, part]) @ np.abs(block)
    products, magnitude = np.zeros((rows, _VECTORS)), np.zeros(rows)
    for part, block in _row_blocks(a, lhs):
        products[part], magnitude[part] = block @ bx, np.abs(block) @ sums
    truth = ElementwiseCheck(values, None if exact else sizes, k)
    return FreivaldsCheck(sample, truth, x, products, None if exact else magnitude, k)


def _row_blocks(matrix: Array, element: Element) -> Iterator[tuple[slice, Array]]:
    """Blocks of rows in float64, so that a large matrix is never converted as a whole."""
    for start in range(0, len(matrix), _BLOCK):
        part = slice(start, start + _BLOCK)
        yield part, element.widen(matrix[part]).astype(np.float64)


def _rounding_unit(element: Element) -> float:
    """The unit roundoff of sums; those of narrow types are in float."""
    return 2.0**-24 if element.precision != 53 else 2.0**-53
