"""How many positions of K a register tile multiplies at a time, where no operand is converted on the way.

    for k:                                       for k, by 2:
      acc += A[tile, k] @ B[k, panel]              acc += A[tile, k:k+2] @ B[k:k+2, panel]

A tile with registers to spare holds the rows of B of several positions: a loop has fewer instructions of its own, and
is left fewer times too late. A sum that is written out goes over a row of A while it is at it, which keeps what waits
for a load short. Each element is added in the order of K either way.

Measured (Xeon with AVX-512, medians in one process, cycles before and now): 32x32x32 float 1211, 1158; 13x17x19 double
451, 423; 12x24x36 float 550, 525, double 688, 667; 16x16x16 float, written out, 178, 167; 32x32x32 half, both packed,
1278, 1236, beside another thread on the core 1661, 1532. Four at a time, or two with hardly a register left, were not
faster.
"""

from __future__ import annotations

from typing import Final

from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.target import Target

_IN_LOOPS: Final = 2


def positions_at_once(gemm: Gemm, recipe: Recipe, target: Target, tile: tuple[int, int], *, written_out: bool) -> int:
    """Positions of K that a step of a tile's sum multiplies, by multiply-adds.

    Args:
        gemm: The product.
        recipe: How it is computed.
        target: Its registers hold the sums, and for each position a row of B and an element of A; a sum is added to
            less often in a row than instructions wait for one of them. Once more, and 16x16x16 floats take 47.1 ns
            where they take 46.1 (Emerald Rapids; a newer Xeon does not tell them apart).
        tile: Rows, and registers of a row.
        written_out: Whether the sum is no loop.
    """
    rows, vectors = tile
    if rows <= vectors or not _lies_in_rows(gemm, recipe) or recipe.ahead:
        return 1
    held = (target.registers - 1 - rows * vectors) // (vectors + 1)
    return max(1, min(held, int(target.core.latency) - 1 if written_out else _IN_LOOPS))


def _lies_in_rows(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether multiply-adds read both operands row by row, as they lie or in panels, without converting them."""
    if recipe.unit != "fma" or not recipe.operand_a == recipe.operand_b == recipe.accumulator:
        return False
    return gemm.a.is_row_major and (recipe.pack_b or gemm.b.row_stride > 0)
