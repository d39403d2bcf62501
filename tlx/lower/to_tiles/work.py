"""How much work a kernel is, in cycles: whether threads pay, and how to cut it for them.

Multiplying and packing take what `units` predicts of a recipe. Each row of tiles reads A once, and each panel B, from
beyond a core's second cache. Where one thread computes the left part of C's rows and another one the right part, the
machine, which reads ahead along rows, has each core fetch lines that the other one writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.types import bytes_of
from tlx.lower.to_tiles.blocks import column_ranges, k_passes, row_ranges
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.units import packs_by_steps, recipe_cycles
from tlx.target import Target

_BYTES: Final = 8  # a cycle
_CUT: Final = 128
"""Cycles that each thread loses at a row of C that others have parts of: some lines go back and forth between cores.

Two threads, interleaved B, 512 cubed (Xeon 6/207/2): 70 of bytes, 140 to 180 of bfloat, half of it where only one of
them works.
"""


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel does.

    Attributes:
        rows, columns: How many tiles there are, down and across.
        tile: Cycles of a tile.
        row, column: Cycles that a row of tiles, or a panel, costs once.
        cut: Cycles that a row of tiles costs each thread where several have parts of it.
        panels: Panels of a cache block.
        packs: Whether each call of the kernel packs the panels that it reads.
        keeps: Whether a call finds the panels that the one before it has packed.
    """

    rows: int
    columns: int
    tile: float
    row: float = 0.0
    column: float = 0.0
    cut: float = 0.0
    panels: int = 1
    packs: bool = False
    keeps: bool = False

    @property
    def cycles(self) -> float:
        """All of it."""
        return self.rows * self.columns * self.tile + self.rows * self.row + self.columns * self.column

    def team(self, least: int) -> int:
        """How many threads are worth having, where each should work for `least` cycles."""
        return min(self.rows * self.columns, int(self.cycles / max(least, 1)))


def gemm_work(gemm: Gemm, recipe: Recipe, target: Target) -> Work | None:
    """The work of a product's kernel; None for one that cannot be cut."""
    if gemm.reduction is not None:
        return None
    rows, columns = (sum(r.count for r in ranges) for ranges in (row_ranges(gemm, recipe), column_ranges(gemm, recipe)))

    def cycles(*, a: bool, b: bool) -> float:
        return recipe_cycles(gemm, replace(recipe, pack_a=a, pack_b=b), target)

    multiplying = cycles(a=False, b=False)
    packing_a = cycles(a=recipe.pack_a, b=False) - multiplying
    packing_b = cycles(a=False, b=recipe.pack_b and not recipe.shared_b) - multiplying
    row = recipe.mr * gemm.depth * bytes_of(gemm.a.element) / _BYTES + packing_a / rows
    column = recipe.nr * gemm.depth * bytes_of(gemm.b.element) / _BYTES + packing_b / columns
    tile, panels = multiplying / (rows * columns), max(1, recipe.nc // recipe.nr)
    packs = recipe.pack_b and not recipe.shared_b
    keeps = packs and sum(part.count for part in k_passes(gemm, recipe)) == 1 and not packs_by_steps(gemm, recipe)
    cut = recipe.mr * _CUT if _stays(gemm, target) else 0.0
    return Work(rows, columns, tile, row, column, cut, panels, packs, keeps)


def _stays(gemm: Gemm, target: Target) -> bool:
    """Whether what two threads have to do stays in their second caches: else lines are on their way in any case."""
    return sum(view.moves for view in (gemm.a, gemm.b, gemm.c)) <= 2 * target.caches.l2
