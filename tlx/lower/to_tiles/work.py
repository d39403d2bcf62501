"""How much work a kernel is, in cycles, roughly: whether threads pay, and how to cut it for them.

Multiply-adds: two a cycle on vector registers; on a matrix unit, `rows` cycles for a product of tiles. Memory: bytes
that move between a core and a cache beyond its second one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.types import bytes_of
from tlx.lower.to_tiles.blocks import column_ranges, row_ranges
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe

_BYTES: Final = 8  # a cycle


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel does: `rows` x `columns` tiles; the cycles of a tile, and those that a row or column costs once."""

    rows: int
    columns: int
    tile: float
    row: float = 0.0
    column: float = 0.0

    @property
    def cycles(self) -> float:
        """All of it."""
        return self.rows * self.columns * self.tile + self.rows * self.row + self.columns * self.column

    def team(self, least: int) -> int:
        """How many threads are worth having, where each should work for `least` cycles."""
        return min(self.rows * self.columns, int(self.cycles / max(least, 1)))


def gemm_work(gemm: Gemm, recipe: Recipe) -> Work | None:
    """The work of a product's kernel; None for one that cannot be cut."""
    if gemm.reduction is not None:
        return None
    rows, columns = (sum(r.count for r in ranges) for ranges in (row_ranges(gemm, recipe), column_ranges(gemm, recipe)))
    tile = recipe.mr * recipe.nr * gemm.depth / _macs(recipe)
    a_tile = recipe.mr * gemm.depth * (bytes_of(gemm.a.element) + recipe.pack_a * bytes_of(recipe.operand_a))
    packs_b = recipe.pack_b and not recipe.shared_b
    b_panel = recipe.nr * gemm.depth * (bytes_of(gemm.b.element) + packs_b * bytes_of(recipe.operand_b))
    return Work(rows, columns, tile, a_tile / _BYTES, b_panel / _BYTES)


def _macs(recipe: Recipe) -> int:
    """Multiply-adds a cycle."""
    if recipe.unit == "matrix":
        return recipe.lanes * recipe.kstep
    return 2 * recipe.lanes * recipe.width
