"""How much work a kernel is, in cycles, roughly: whether threads pay, and how to cut it for them.

Multiply-adds: two a cycle on vector registers; on a matrix unit, `rows` cycles for a product of tiles. Memory: bytes
that move between a core and a cache beyond its second one.
"""

from __future__ import annotations

from math import prod
from typing import Final

from tlx.ir.types import bytes_of
from tlx.lower.to_tiles.blocks import column_ranges, padded, row_ranges
from tlx.lower.to_tiles.expression import Expression
from tlx.lower.to_tiles.map import Shape
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.threads import Work
from tlx.lower.to_tiles.view import View

_BYTES: Final = 8  # a cycle


def gemm_work(gemm: Gemm, recipe: Recipe) -> Work | None:
    """The work of a product's kernel; None for one that cannot be cut."""
    if gemm.reduction is not None:
        return None
    rows, columns = (sum(r.count for r in ranges) for ranges in (row_ranges(gemm, recipe), column_ranges(gemm, recipe)))
    tile = recipe.mr * recipe.nr * gemm.k / _macs(recipe)
    a_tile = recipe.mr * gemm.k * (bytes_of(gemm.a.element) + recipe.pack_a * bytes_of(recipe.operand_a))
    b_panel = recipe.nr * gemm.k * (bytes_of(gemm.b.element) + recipe.pack_b * bytes_of(recipe.operand_b))
    return Work(rows, columns, tile, a_tile / _BYTES, b_panel / _BYTES)


def _macs(recipe: Recipe) -> int:
    """Multiply-adds a cycle."""
    if recipe.unit == "matrix":
        return recipe.lanes * recipe.kstep
    return 2 * recipe.lanes * recipe.width


def expression_work(value: Expression, written: View, shape: Shape, axes: tuple[bool, bool]) -> Work:
    """The work of going over an expression once.

    Args:
        value: The expression.
        written: What is written meanwhile.
        shape: The tiles.
        axes: Whether rows, and columns, may be cut.
    """
    tiles = [sum(r.count for r in padded(*cut, 1)) for cut in ((value.rows, shape.rows), (value.cols, shape.cols))]
    moved = sum(bytes_of(leaf.element) * leaf.view.rows * leaf.view.cols for leaf in value.leaves())
    moved += bytes_of(written.element) * written.rows * written.cols
    cycles = max(moved / _BYTES, value.cost * value.rows * value.cols / shape.lanes)
    rows, columns = (count if may else 1 for count, may in zip(tiles, axes, strict=True))
    return Work(rows, columns, cycles / prod((rows, columns)))
