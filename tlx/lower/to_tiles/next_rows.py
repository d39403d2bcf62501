"""Asking for the next row tile of A while one that came from behind the second cache is multiplied by all of B.

    step   multiplied                             asked for, with two panels of B
    0      A[0:32, 0:32] by panel 0               A[32:48, 0:32]
    0      A[0:32, 0:32] by panel 1               A[48:64, 0:32]

The machine itself follows each row on its own, notices it anew in each tile, and stops at the end of each page.
Measured on one core of a Xeon with AMX, 2026-11-22, by filters of 512 x 4608: bfloat 309 -> 283 us, bytes 152 -> 142.
Beside blocks of packed panels, Xeon 6/207/2: bfloat, 1024 cubed 1.04 times as fast, 2048 cubed 1.03; bytes, 2048 1.03.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import bytes_of
from tlx.ir.values import Value
from tlx.lower.to_tiles.batch import SECOND
from tlx.lower.to_tiles.next_tile import is_alone
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.target import Target

_MOST_ROWS: Final = 4
"""Rows that a panel of several blocks asks for: with 8, 512x4096x4096 bfloat takes 1.1 times as long."""


def comes_from_afar(gemm: Gemm, target: Target) -> bool:
    """Whether A comes from behind the second cache, row tile by row tile."""
    return gemm.a.moves + gemm.b.moves > target.caches.l2


def asks_for_rows(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether A comes from behind the second cache for each block of columns, whose first panel would wait for it.

    Beside a block of packed B, a small A stays in that cache. In front of few panels, too many lines would be asked for
    at a time.
    """
    several = gemm.n > recipe.nr and gemm.m > recipe.mr and recipe.nc > recipe.nr
    stays = recipe.pack_b and gemm.a.moves <= target.caches.l2 // 4
    crowd = recipe.nc < gemm.n and recipe.mr * recipe.nr > _MOST_ROWS * recipe.nc
    asks = several and not (recipe.pack_a or stays or crowd)
    return asks and is_alone(gemm, recipe) and comes_from_afar(gemm, target)


class NextRows:
    """Emits the prefetches of one kernel: some rows with each panel.

    Attributes:
        each: How many.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, panels: int) -> None:
        self.b = b
        self.view = gemm.a
        self.height = recipe.mr
        self.each = -(-recipe.mr // panels)
        self._first: Value | None = None

    def enter(self, panel: Value) -> None:
        """The products with a panel begin."""
        b = self.b
        self._first = b.mul(b.add(b.mul(panel, self.each), self.height), self.view.row_stride)

    def fetch(self, base: Value, k: Value) -> None:
        """Ask for what lies below a step of K of the row tile from `base` on; it need not exist."""
        b, size = self.b, bytes_of(self.view.element)
        assert self._first is not None
        behind = b.mul(b.add(self._first, k), size)
        for row in range(self.each):
            b.prefetch(base, b.add(behind, row * self.view.row_stride * size), SECOND)
