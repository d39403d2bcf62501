"""The function of a product's kernel, and the blocks that its loops go over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I8
from tlx.ir.values import Value
from tlx.lower.to_tiles.parallel.tile_range import TileRange, arguments_and_tile_range
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.views import MatrixView
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, column_ranges, row_ranges
from tlx.target.hardware import Sign
from tlx.target.target import Target


@dataclass(frozen=True, slots=True)
class GemmFunction:
    """The function of a product's kernel, as all parts of the kernel see it.

    Attributes:
        b: The builder of its body.
        gemm, recipe, target: The product, how it is computed, and on which machine.
        arguments: Addresses of C, A, B and, if there is one, Acc; then the epilogue's leaves and scalars.
        c, a: Addresses of C and A.
        rhs: Address of B: of this version's form of it, where the argument points to the forms of all versions.
        share: The row tiles and panels that a call computes.
        rows, columns: Tiles along M and panels along N, in ranges of equal ones.
    """

    b: TensorBuilder
    gemm: Gemm
    recipe: Recipe
    target: Target
    arguments: Sequence[Value]
    c: Value
    a: Value
    rhs: Value
    share: TileRange
    rows: Sequence[EqualTiles]
    columns: Sequence[EqualTiles]

    @classmethod
    def of(cls, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> GemmFunction:
        """The function that a builder writes to."""
        arguments, share = arguments_and_tile_range(b.function)
        c, a, rhs = arguments[:3]
        packing = recipe.packing
        if packing.b_panel_offset is not None:
            form = b.gep(I8, b.retype(rhs, I8), packing.b_panel_offset)
            rhs = b.retype(form, recipe.mma.operand_b if packing.prepacked_b else gemm.b.element)
        rows, columns = row_ranges(gemm, recipe), column_ranges(gemm, recipe)
        return cls(b, gemm, recipe, target, arguments, c, a, rhs, share, rows, columns)

    @property
    def sign(self) -> Sign:
        """How integer sums are extended: signed if an operand is."""
        return "u" if self.gemm.lhs_sign == self.gemm.rhs_sign == "u" else "s"

    def at(self, view: MatrixView, base: Value, row: Value, column: Value) -> Value:
        """Address of an element of a matrix."""
        b = self.b
        return b.gep(view.element, base, b.add(b.mul(row, view.row_stride), b.mul(column, view.col_stride)))


@dataclass(frozen=True, slots=True)
class KPass:
    """A pass over `size` positions of K from `start` on; the first pass starts the sums, later ones add to C."""

    start: Value
    size: int
    first: bool


@dataclass(frozen=True, slots=True)
class CacheBlock:
    """A cache block: a pass over K, some panels from column `column` on, some row tiles from `row` on.

    Attributes:
        part: The pass.
        columns, column, panels: The range of panels, the first column, and the number of panels.
        rows, row, tiles: The range of row tiles, the first row, and the number of row tiles.
    """

    part: KPass
    columns: EqualTiles
    column: Value
    panels: Value
    rows: EqualTiles
    row: Value
    tiles: Value
