"""What a workload computes, in the words that other libraries understand."""

from __future__ import annotations

from dataclasses import dataclass

from tlx.bench.elements import Element


@dataclass(frozen=True)
class Gemm:
    """`c = a @ b`, MxN = MxK KxN.

    Attributes:
        lhs, rhs, accumulator, out: Element types.
        columns: Operands that lie in memory column by column, of "a", "b", "c".
        vnni: Whether b lies in memory as [K/v][N][v], v elements being four bytes (two for wider sums of 8 bits).
    """

    m: int
    n: int
    k: int
    lhs: Element
    rhs: Element
    accumulator: Element
    out: Element
    columns: str = ""
    vnni: bool = False

    @property
    def factor(self) -> int:
        """Elements of b that lie beside each other along K: the VNNI factor."""
        return max(1, 4 // self.rhs.bytes) if self.vnni else 1

    @property
    def a_shape(self) -> tuple[int, int]:
        """In memory order."""
        return (self.k, self.m) if "a" in self.columns else (self.m, self.k)

    @property
    def b_shape(self) -> tuple[int, ...]:
        """In memory order."""
        if self.vnni:
            return (self.k // self.factor, self.n, self.factor)
        return (self.n, self.k) if "b" in self.columns else (self.k, self.n)

    @property
    def c_shape(self) -> tuple[int, int]:
        """In memory order."""
        return (self.n, self.m) if "c" in self.columns else (self.m, self.n)


@dataclass(frozen=True)
class Layer:
    """`y = relu(x @ w + bias)`: a product whose `c` is y, its a and b being x and w."""

    gemm: Gemm


@dataclass(frozen=True)
class Batch:
    """`count` products of one shape, one after the other in memory; all on the same c where `reduced`."""

    count: int
    gemm: Gemm
    reduced: bool = False


@dataclass(frozen=True)
class Convolution:
    """Images of `channels` x `rows` x `columns` (padded before) and filters: all steps alike, no holes.

    Attributes:
        groups: Groups of channels that are convolved by themselves.
    """

    images: int
    channels: int
    rows: int
    columns: int
    filters: int
    window: int
    stride: int
    groups: int
    lhs: Element
    rhs: Element
    out: Element

    @property
    def out_rows(self) -> int:
        """Rows of the result."""
        return (self.rows - self.window) // self.stride + 1

    @property
    def out_columns(self) -> int:
        """Columns of the result."""
        return (self.columns - self.window) // self.stride + 1


@dataclass(frozen=True)
class Pointwise:
    """`y = function(x...)`, element by element; softmax and the sums are of rows of `columns` elements."""

    function: str
    count: int
    element: Element
    columns: int = 0


@dataclass(frozen=True)
class Fused:
    """`count` times two products in a row: `d += alpha (a b^T) c`."""

    count: int
