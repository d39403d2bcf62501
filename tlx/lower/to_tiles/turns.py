"""A register tile's sums over products that take turns: each step goes over a position of K in all of them.

A convolution's nine positions in the kernel, filters copied as a matrix of K x 9 N:

    for k                                    B[k]    b[0] b[1] ... b[8]      N columns each, next to each other
      for each product: acc += a[k] @ b[k]

B is read end to end. Written out, a step has as many multiply-adds as nine steps of one product, and windows that
overlap have elements of A in common. LLVM is not to see that, else it keeps them in registers that the sums need: 6x64
floats would be spilled. So products with common elements have addresses of A that nothing is known of:

    x, 6 rows       a[0] 0 1 2 3 4 5       a[3], a[6]: other lines, which have no element in common with a[0]
                    a[1]   1 2 3 4 5 6
                    a[2]     2 3 4 5 6 7
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.values import Value
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.sums import Sums

Add = Callable[[Value, tuple[Value, Value]], Value]
"""From a tile's sums and where a product's operands are at a position of K to the sums with that added."""


@dataclass(frozen=True)
class Turns:
    """Emits the sums.

    Attributes:
        b: Where.
        gemm: The product, of operands that are read as they lie.
        terms: The products of the sum.
        rows: Rows of the tile.
        add: What a step of one product is.
    """

    b: TensorBuilder
    gemm: Gemm
    terms: Sums
    rows: int
    add: Add

    def total(self, start: Value, operands: tuple[Value, Value], depth: int, *, written_out: bool) -> Value:
        """The sums of all products.

        Args:
            start: What they start from.
            operands: Where the first product's are.
            depth: Positions of K.
            written_out: Whether a step's products are, else they are a loop.
        """
        b, gemm = self.b, self.gemm
        a, rhs = operands
        starts = self._starts(a) if written_out else {}
        with b.loop(0, depth, carry=[start], name="k") as loop:
            along = b.mul(loop.index, gemm.a.col_stride)
            row = b.gep(gemm.b.element, rhs, b.mul(loop.index, gemm.b.row_stride))
            if written_out:
                loop.next(self._written_out(loop.carried[0], starts, along, row))
            else:
                loop.next(self._in_loop(loop.carried[0], b.gep(gemm.a.element, a, along), row))
        return loop.results[0]

    def _in_loop(self, total: Value, a: Value, row: Value) -> Value:
        b, gemm = self.b, self.gemm
        with self.terms.loop([total]) as term:
            here = b.gep(gemm.a.element, a, self.terms.offset(0, term.index))
            there = b.gep(gemm.b.element, row, self.terms.offset(1, term.index))
            term.next(self.add(term.carried[0], (here, there)))
        return term.results[0]

    def _written_out(self, total: Value, starts: dict[int, tuple[Value, int]], along: Value, row: Value) -> Value:
        b, gemm = self.b, self.gemm
        for term, (_, behind) in enumerate(gemm.sums):
            start, offset = starts[term]
            here = b.gep(gemm.a.element, b.gep(gemm.a.element, start, along), offset)
            total = self.add(total, (here, b.gep(gemm.b.element, row, behind)))
        return total

    def _starts(self, a: Value) -> dict[int, tuple[Value, int]]:
        """For each product an address of A, the same for products without common elements, and elements from there."""
        found: dict[int, tuple[Value, int]] = {}
        for group in apart(self.gemm, self.rows):
            first = self.gemm.sums[group[0]][0]
            start = self.b.plain(self.b.gep(self.gemm.a.element, a, first), "a.at")
            found |= {term: (start, self.gemm.sums[term][0] - first) for term in group}
        return found


def apart(gemm: Gemm, rows: int) -> list[list[int]]:
    """The products in groups in which no two have an element of a column of A in common, in tiles of so many rows."""
    groups: list[list[int]] = []
    pitch = max(1, gemm.a.row_stride)
    for term, (offset, _) in enumerate(gemm.sums):
        steps = [[offset - gemm.sums[other][0] for other in group] for group in groups]
        fits = [all(step % pitch or abs(step) >= rows * pitch for step in group) for group in steps]
        if any(fits):
            groups[fits.index(True)].append(term)
        else:
            groups.append([term])
    return groups
