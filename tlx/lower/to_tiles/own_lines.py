"""Asking for the lines of C that a tile of sums goes to, while its products are computed.

    step   multiplied                          asked for, to be written
    0      A[0:32, 0:64] B[0:64, 0:32]         C[0:16, 0:32]
    1      A[0:32, 64:128] B[64:128, 0:32]     C[16:32, 0:32]

A line is read before it is written, and stores wait in order. Where C is not in the first cache, the stores of a tile
take longer than the products of one or two steps of K. Measured in quiet rounds, 128x128x128 bytes: 1.05 times as fast
(Xeon 6/207/2), 1.07 to 1.12 (with AMX-FP16); with four steps or more, stores hide behind the products, and prefetches
only stand in the way of tile loads (256x256x256 bytes 0.9).
"""

from __future__ import annotations

from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import bytes_of
from tlx.ir.values import Value
from tlx.lower.to_tiles.blocks import Range
from tlx.lower.to_tiles.memory import LINE
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.target import Target

_LINE_CYCLES: Final = 3  # from the second cache, to be written


def asks_for_own(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether tiles ask for their lines of C: it is only written, not to the first cache, and products are few."""
    assert target.matrix is not None
    total = sum(view.moves for view in (gemm.a, gemm.b, gemm.c))
    written = gemm.acc is None and gemm.batch is None and not recipe.past_caches and gemm.c.is_row_major
    tiles = recipe.mr // target.matrix.rows * (recipe.nr // recipe.lanes)
    products = -(-gemm.k // recipe.kstep) * len(gemm.sums) * gemm.uses * tiles * target.matrix.rows
    lines = recipe.mr * -(-recipe.nr * bytes_of(gemm.c.element) // LINE)
    return written and total > target.caches.l1 and products < lines * _LINE_CYCLES


class OwnLines:
    """Emits the prefetches of one kernel: as many rows with each step along K."""

    def __init__(self, b: TensorBuilder, gemm: Gemm, steps: int) -> None:
        self.b = b
        self.view = gemm.c
        self.steps = steps
        self._place: tuple[Value, Range, Range] | None = None

    def enter(self, address: Value, rows: Range, columns: Range) -> None:
        """The products of the tile at an address begin."""
        self._place = address, rows, columns

    def fetch(self, step: Value) -> None:
        """Ask for a step's rows; those behind the last one are the last ones again."""
        assert self._place is not None
        b, (address, rows, columns) = self.b, self._place
        size = bytes_of(self.view.element)
        each = -(-rows.data // self.steps)
        first = b.umin(b.mul(step, each), rows.data - each)
        behind = b.mul(first, self.view.row_stride * size)
        for row in range(each):
            for line in range(0, columns.data * size, LINE):
                b.prefetch(address, b.add(behind, row * self.view.row_stride * size + line), write=True)
