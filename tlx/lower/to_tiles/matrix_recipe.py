"""Register tile and cache blocks of a product on a matrix unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.ir.types import Type, bits_of
from tlx.knobs import NO_KNOBS, Knobs
from tlx.lower.signs import MMA_NAMES
from tlx.lower.to_tiles import given
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe, up
from tlx.target import Dot, Matrix

_PACKED: Final = 1 << 20
"""Bytes of B that are packed at a time."""


def matrix_recipe(gemm: Gemm, matrix: Matrix, accumulator: Type, dot: Dot, knobs: Knobs = NO_KNOBS) -> Recipe:
    """The recipe for a product whose types a tile product knows.

    Raises:
        UsageError: The knobs do not fit.
    """
    size = bits_of(gemm.a.element) // 8
    kstep = matrix.row_bytes // size
    lanes = matrix.row_bytes * 8 // bits_of(accumulator)
    mr, nr = matrix.rows * matrix.grid[0], lanes * matrix.grid[1]
    given.matrix_tile(knobs, matrix, lanes)
    whole = gemm.a.is_row_major and gemm.k % kstep == 0 and gemm.m % mr == 0
    nc = max(4 * nr, _PACKED // (up(gemm.k, kstep) * size) // nr * nr)
    pack_a = given.packing("A", knobs.pack_a, "" if whole else "the unit reads whole tiles of it", False)
    pack_b = given.packing("B", knobs.pack_b, "the unit reads it in groups", True)
    kc = given.k_block(gemm, knobs, kstep, exact=False, model=gemm.k)
    share = gemm.m * gemm.n * gemm.k / (up(gemm.m, mr) * up(gemm.n, nr) * up(gemm.k, kstep))
    recipe = Recipe(
        gemm.a.element, gemm.b.element, accumulator, MMA_NAMES[gemm.lhs_sign, gemm.rhs_sign], dot.width, "matrix",
        "none", mr, nr, kstep, lanes, pack_a, pack_b, kc, mr, nc, share,
    )  # fmt: skip
    mc, nc = given.blocks(gemm, knobs, recipe)
    return replace(recipe, mc=mc, nc=nc)
