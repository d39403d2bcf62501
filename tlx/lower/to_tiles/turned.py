"""A product of two column-major matrices as its transpose: of two row-major ones.

    C = A @ B  ->  C^T = B^T @ A^T           MxK KxN -> MxN   ->   NxK KxM -> NxM

Both operands are read as a product of row-major ones reads them, and C, which is column-major then, is transposed tile
by tile as it is stored, once; else A is copied by columns, and B is transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlx.ir.values import Global
from tlx.lower.to_tiles.choose import choose
from tlx.lower.to_tiles.found import Found
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.units import recipe_cycles, with_waits
from tlx.lower.to_tiles.view import View
from tlx.target import Target


def turned(found: Found, versions: Sequence[Target]) -> Gemm | None:
    """A product's transpose, to be given B and A, where that takes fewer cycles on all versions of a target."""
    gemm = found.problem
    if not isinstance(gemm, Gemm) or not _may_turn(gemm) or isinstance(found.pointers[2][0], Global):
        return None  # a constant B is packed by the compiler
    other = replace(
        gemm,
        a=_transposed(gemm.b),
        b=_transposed(gemm.a),
        c=_transposed(gemm.c),
        lhs_sign=gemm.rhs_sign,
        rhs_sign=gemm.lhs_sign,
        sums=tuple((b, a) for a, b in gemm.sums),
    )
    return other if all(_cycles(other, version) < _cycles(gemm, version) for version in versions) else None


def _may_turn(gemm: Gemm) -> bool:
    """Whether both operands are column-major, and C is nothing but the product."""
    by_columns = not gemm.a.is_row_major and not gemm.b.is_row_major and gemm.b.group == 1
    return by_columns and gemm.c.is_row_major and gemm.is_repeatable and gemm.batch is None and not gemm.crossed


def _transposed(view: View) -> View:
    return View(view.element, view.cols, view.rows, view.col_stride, view.row_stride)


def _cycles(gemm: Gemm, target: Target) -> float:
    recipe = choose(gemm, target)
    return with_waits(recipe_cycles(gemm, recipe, target), gemm, recipe, target)
