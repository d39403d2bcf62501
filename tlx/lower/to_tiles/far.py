"""What a product on vector registers loses to memory behind the second cache: bytes that come from there or go there.

    A      once, or for each block of columns where it does not stay in the second cache
    B      once
    C      read, as lines are, and written, in each pass over K

They take 8 bytes a cycle beside the multiplications, hardly overlapped (measured: Xeon with AMX, float and double, 512
to 2048 cubed). Where each pass over K asks for the part of B that the next one reads, it comes while others are
multiplied, but for the first one, and C stays near; where tiles ask for A and C, half of them does. Up to four rows are
bound by memory alone; their share is that of what memory allows.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.types import bits_of
from tlx.lower.to_tiles.memory import FAR_BYTES, L2_BYTES
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.target import Target

_BOUND_BY_MEMORY: Final = 4


def share_with_memory(gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """The share of the peak that a recipe predicts for its inner loops, less what memory takes.

    Args:
        gemm: The product.
        recipe: Its recipe; `share` is that of the inner loops.
        target: The machine.
    """
    a, b, c = (view.moves * len(gemm.sums) for view in (gemm.a, gemm.b, gemm.c))
    if gemm.m <= _BOUND_BY_MEMORY or gemm.n <= _BOUND_BY_MEMORY or a + b + c <= target.caches.l2:
        return recipe.share
    blocks = -(-gemm.n // recipe.nc) if a > target.caches.l2 // 4 else 1
    passes = -(-gemm.k // recipe.kc)
    lanes = target.vector_bytes * 8 // bits_of(recipe.accumulator)
    best = gemm.m * gemm.n * gemm.depth / recipe.width / lanes / target.core.products
    near = best / recipe.share
    if recipe.fetch:
        waits = (a + b / passes) / FAR_BYTES + 2 * c * passes / L2_BYTES
        return best / (max(near, b / FAR_BYTES) + waits)
    a_waits, c_waits = (0.5 if operand in recipe.asks else 1.0 for operand in "AC")
    return best / (near + (a_waits * a * blocks + b + c_waits * 2 * c * passes) / FAR_BYTES)
