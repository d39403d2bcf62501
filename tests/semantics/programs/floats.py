"""Products of arbitrary floating-point numbers, and how far a result may be from the exact one.

The sum of an accumulator and K products in any order, each operation rounded with unit roundoff u or fused, is within
gamma(K + 1) * S of the exact one, where

    S = |acc| + |A| @ |B|        gamma(n) = n * u / (1 - n * u)

(Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, sections 3.1 and 3.5). Sums are kept in float, in
double for a result of double, and rounded once to the result's type with unit roundoff v: that adds v * |exact| and
half a subnormal. Numbers are drawn so that no product or sum is subnormal, which matrix units flush.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tlx.fuzz.generation.model import BufferAddress, Choices
from tlx.fuzz.generation.writer import FunctionWriter
from tlx.intrinsics.numpy_types import Array, dtype_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, Type

TYPES: Final = (
    (HALF, HALF),
    (HALF, FLOAT),
    (BFLOAT, BFLOAT),
    (BFLOAT, FLOAT),
    (BFLOAT, DOUBLE),
    (FLOAT, FLOAT),
    (FLOAT, DOUBLE),
    (DOUBLE, DOUBLE),
)
"""Element types of the operands and the result."""
SHAPES: Final = ((1, 1, 1), (17, 33, 100), (32, 64, 256), (5, 7, 4097), (31, 48, 700), (100, 1, 63))
_ROUNDOFF: Final[dict[Type, float]] = {HALF: 2.0**-11, BFLOAT: 2.0**-8, FLOAT: 2.0**-24, DOUBLE: 2.0**-53}
_HALF_SUBNORMAL: Final[dict[Type, float]] = {HALF: 2.0**-25, BFLOAT: 2.0**-134, FLOAT: 2.0**-150, DOUBLE: 0.0}


@dataclass(frozen=True)
class Product:
    """One product as a function `@NAME(c, a, b)`: `c += a @ b` or `c = a @ b`.

    Attributes:
        name: The function.
        operand: Element type of `a` and `b`.
        result: Element type of `c`.
        shape: M, N, K.
        adds: Whether `c` is added to.
    """

    name: str
    operand: Type
    result: Type
    shape: tuple[int, int, int]
    adds: bool

    @property
    def text(self) -> str:
        """The function."""
        writer = FunctionWriter(Choices(self.name), self.name, typed=False, suffixes=False)
        types = [TensorType.dense(element, shape) for element, shape in self._matrices()]
        buffers = [writer.buffer(type_.element, type_.count) for type_ in types]
        loaded = list(zip(buffers, types, strict=True))[0 if self.adds else 1 :]
        tokens = [writer.load(BufferAddress(buffer), type_, (0, 0)) for buffer, type_ in loaded]
        vector = writer.operation("smma" if self.adds else "matmul", tokens, types[0])
        writer.store(BufferAddress(buffers[0]), writer.typeinfo(vector, types[0]), (0, 0))
        return writer.text

    def _matrices(self) -> list[tuple[Type, tuple[int, int]]]:
        m, n, k = self.shape
        return [(self.result, (m, n)), (self.operand, (m, k)), (self.operand, (k, n))]

    def operands(self, generator: np.random.Generator) -> list[Array]:
        """C, A and B: magnitudes from 1/256 to 4, any mantissa."""
        return [
            (generator.choice([-1.0, 1.0], shape) * 2.0 ** generator.uniform(-8, 2, shape)).astype(dtype_of(element))
            for element, shape in self._matrices()
        ]

    def error(self, before: list[Array], got: Array) -> float:
        """The largest error of any element, as a share of what is allowed."""
        wide: Any = np.longdouble if self.result == DOUBLE else np.float64
        c, a, b = (array.astype(wide) for array in before)
        exact, size = a @ b, np.abs(a) @ np.abs(b)
        if self.adds:
            exact, size = exact + c, size + np.abs(c)
        u, v = _ROUNDOFF[DOUBLE if self.result == DOUBLE else FLOAT], _ROUNDOFF[self.result]
        count = self.shape[2] + 1
        gamma = count * u / (1 - count * u)
        rounding = v * np.abs(exact) + _HALF_SUBNORMAL[self.result] if v != u else 0.0
        reference = count * float(np.finfo(wide).eps) * size
        allowed = (1 + v) * gamma * size + rounding + reference
        return float(np.max(np.abs(got.astype(wide) - exact) / allowed))


def products(types: Sequence[tuple[Type, Type]] = TYPES) -> list[Product]:
    """Each pair of types with each shape; every other one adds to its result."""
    pairs = [(operand, result, shape) for operand, result in types for shape in SHAPES]
    return [Product(f"f{n}", *pair, adds=(n + n // len(SHAPES)) % 2 == 1) for n, pair in enumerate(pairs)]
