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
