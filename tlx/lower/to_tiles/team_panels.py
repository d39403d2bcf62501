"""Products on many threads whose B the team packs once: all pack, then all multiply.

Rewrite:
    define internal void @K(c, a, b) { a team runs @K.part, in which each thread packs the panels that it reads }
        ->
    define internal void @K(c, a, b) {
      team of a few: as above
      team of many:  panels = malloc
                     the team runs @K.pack.part(panels, b, first panel, last panel)
                     the team runs @K.packed.part(c, a, panels, part of the grid)
                     free(panels)
    }

In a grid of 4 x 4 threads, each would otherwise pack a quarter of B, four times what is its own, to memory of its own,
of which there would be four times as much in the cache that threads share. Of two or three threads each has columns of
its own.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.module import Function, Module
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.kept import Cut
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.scratch import Scratch
from tlx.lower.to_tiles.share import PART
from tlx.lower.to_tiles.shared import Panels
from tlx.lower.to_tiles.team import MANY, Together, call, grid_share, in_shares, range_share
from tlx.lower.to_tiles.work import Work

_MOST_BYTES: Final = 256 << 20
"""Larger panels are left to each thread, which needs memory for a cache block of them at a time only."""
_B: Final = 2  # its place among a kernel's arguments


def packs_together(gemm: Gemm, recipe: Recipe, work: Work, least: int) -> bool:
    """Whether a team packs B once, rather than each thread what it reads.

    It does where threads above each other would pack the same, and packing is worth several threads itself. A matrix
    unit waits for memory anyway: to pack again what stays in the second-level cache takes it no longer than to read
    what others have packed (measured at 1024 and 2048 cubed of bfloat).
    """
    if not recipe.pack_b or recipe.shared_b or recipe.unit == "matrix":
        return False
    if Panels.of(gemm, recipe).size(recipe) > _MOST_BYTES:
        return False
    return min(work.rows, work.columns) >= MANY and work.columns * work.column >= MANY * least


def pack_together(
    module: Module, gemm: Gemm, recipe: Recipe, kernels: tuple[Function, Function], work: Work, most: int
) -> Together:
    """What emits the code by which a team packs B, and then multiplies.

    Args:
        module: Where functions are added.
        gemm: The product.
        recipe: How it is computed, given B in panels.
        kernels: What packs some panels, and what multiplies a rectangle of the grid by panels; both with bounds.
        work: The grid.
        most: How many threads there is work for.
    """
    pack, part = kernels
    stem = pack.name.strip('"').removesuffix(f".pack{PART}")
    rectangle = grid_share(Cut(part, work), most)

    def panels_of(b: Builder, own: list[Value], bounds: tuple[Value, Value]) -> None:
        nothing = const_int(I64, 0)
        call(b, pack, [*own, nothing, nothing, *bounds])

    def emit(b: Builder, values: list[Value], size: Value) -> None:
        scratch = Scratch()
        scratch.reserve(recipe.operand_b, -(-Panels.of(gemm, recipe).size(recipe) // bytes_of(recipe.operand_b)))
        (panels,) = scratch.allocate(b)
        packing, multiplying = (module.global_names.fresh(f"{stem}.{name}") for name in ("packer", "multiplier"))
        in_shares(b, packing, [panels, values[_B]], range_share(work.columns, most, panels_of), size)
        in_shares(b, multiplying, [*values[:_B], panels, *values[_B + 1 :]], rectangle, size)
        scratch.release(b)

    return emit
