"""Register tile and cache blocks of a product on a matrix unit."""

from __future__ import annotations

from typing import Final

from tlx.ir.types import Type, bits_of
from tlx.lower.signs import MMA_NAMES
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe, up
from tlx.target import Dot, Matrix

_PACKED: Final = 1 << 20
"""Bytes of B that are packed at a time."""


def matrix_recipe(gemm: Gemm, matrix: Matrix, accumulator: Type, dot: Dot) -> Recipe:
    """The recipe for a product whose types a tile product knows."""
    size = bits_of(gemm.a.element) // 8
    kstep = matrix.row_bytes // size
    lanes = matrix.row_bytes * 8 // bits_of(accumulator)
    mr, nr = matrix.rows * matrix.grid[0], lanes * matrix.grid[1]
    whole = gemm.a.is_row_major and gemm.k % kstep == 0 and gemm.m % mr == 0
    nc = max(4 * nr, _PACKED // (up(gemm.k, kstep) * size) // nr * nr)
    return Recipe(
        gemm.a.element, gemm.b.element, accumulator, MMA_NAMES[gemm.lhs_sign, gemm.rhs_sign], dot.width, "matrix",
        "none", mr, nr, kstep, lanes, not whole, True, gemm.k, min(mr, gemm.m), min(nc, gemm.n),
    )  # fmt: skip
