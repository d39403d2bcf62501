"""How a target computes a product: types, instruction, register tile, cache blocks.

kind of product                     operands become        instruction
matrix unit knows the types         as they are            tile product, 2x2 accumulators
  and the product is not too small                         (`units` tells)
  or it is crossed, which only the
  unit multiplies
vector dot product knows them       as they are, VNNI      u8*s8, bf16*bf16
s8*s8 with only u8*s8 at hand       A xor 128              (A + 128) @ B - 128 * colsum(B)
u8*u8 with only u8*s8 at hand       B xor 128              A @ (B - 128) + 128 * rowsum(A)
bytes with only i16*i16 at hand     i16, VNNI              pairs of i16
anything else, and what a slow      accumulator's type     fused multiply-add
dot product would do
"""

from __future__ import annotations

from typing import Final, Literal

from tlx.ir.types import DOUBLE, FLOAT, I8, I16, I32, I64, IntType, Type, bits_of
from tlx.knobs import NO_KNOBS, Knobs
from tlx.lower.to_tiles.matrix_recipe import matrix_recipe
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.stream_recipe import kinds_of, stream_recipe
from tlx.lower.to_tiles.units import matrix_cycles, vector_cycles, with_waits
from tlx.lower.to_tiles.vector_recipe import vector_recipe
from tlx.target import Dot, Sign, Target

_OF_ESTIMATE: Final = (0.8, 0.6)
"""Measured cycles, of what is estimated for vectors beside a matrix unit: register tiles, streams."""


def choose(gemm: Gemm, target: Target, knobs: Knobs = NO_KNOBS) -> Recipe:
    """The recipe for a product: what the knobs say, else what the target's model does.

    Raises:
        UsageError: The knobs do not fit.
    """
    accumulator = accumulator_type(gemm)
    narrow = _narrow_accumulator(gemm, accumulator)
    dots = target.usable_matrix_dots if gemm.c.is_row_major else ()
    tile_dot = _find_dot(gemm, narrow, dots, gemm.lhs_sign, gemm.rhs_sign)
    if tile_dot is not None and (knobs.tile is not None or gemm.b.group > 1 or gemm.crossed):
        return matrix_recipe(gemm, target, narrow, tile_dot, knobs)
    recipe, dot = _on_vectors(gemm, target, accumulator, NO_KNOBS)
    cycles = with_waits(vector_cycles(gemm, recipe, target, dot), gemm, recipe, target)
    if tile_dot is not None:
        on_tiles = matrix_recipe(gemm, target, narrow, tile_dot)
        by_tiles = matrix_cycles(gemm, on_tiles, target)
        if by_tiles < cycles * _OF_ESTIMATE[0]:
            recipe, cycles = on_tiles, by_tiles / _OF_ESTIMATE[1]
    dots = tuple(dot for dot in target.usable_dots if dot.pays(target.core))
    if not knobs:
        streamed = stream_recipe(gemm, target, kinds_of(gemm, dots, narrow, accumulator))
        return streamed[0] if streamed is not None and streamed[1] < cycles else recipe
    if recipe.unit == "matrix" and tile_dot is not None:
        return matrix_recipe(gemm, target, narrow, tile_dot, knobs)
    return _on_vectors(gemm, target, accumulator, knobs)[0]


def fits_matrix_unit(gemm: Gemm, target: Target) -> bool:
    """Whether the target's matrix unit multiplies these types."""
    narrow = _narrow_accumulator(gemm, accumulator_type(gemm))
    return _find_dot(gemm, narrow, target.usable_matrix_dots, gemm.lhs_sign, gemm.rhs_sign) is not None


def _on_vectors(gemm: Gemm, target: Target, accumulator: Type, knobs: Knobs) -> tuple[Recipe, Dot | None]:
    """The recipe on vector registers, and its dot product."""
    narrow = _narrow_accumulator(gemm, accumulator)
    dots = tuple(dot for dot in target.usable_dots if dot.pays(target.core))
    for lhs, rhs, correction in _dot_signs(gemm):
        dot = _find_dot(gemm, narrow, dots, lhs, rhs)
        if dot is not None:
            return vector_recipe(gemm, target, narrow, dot, (lhs, rhs), correction, knobs), dot
    dot = _find_wider_dot(gemm, narrow, dots)
    if dot is not None:
        return vector_recipe(gemm, target, narrow, dot, ("s", "s"), "none", knobs), dot
    signs = gemm.lhs_sign, gemm.rhs_sign
    return vector_recipe(gemm, target, accumulator, None, signs, "none", knobs), None


def accumulator_type(gemm: Gemm) -> Type:
    """The type products are added up in: at least as precise as the result's."""
    widest = max(bits_of(element) for element in (gemm.a.element, gemm.b.element, gemm.result))
    if gemm.is_float:
        return DOUBLE if widest > 32 else FLOAT
    return I64 if widest > 32 else I32


def _narrow_accumulator(gemm: Gemm, accumulator: Type) -> Type:
    """i32 in place of i64 where 8-bit products cannot overflow it and nothing wider is added."""
    if accumulator != I64 or gemm.acc is not None or gemm.a.element.__class__ is not IntType:
        return accumulator
    bytes_only = bits_of(gemm.a.element) == 8 and bits_of(gemm.b.element) == 8
    return I32 if bytes_only and gemm.depth * 255 * 255 < 1 << 31 else accumulator


def _dot_signs(gemm: Gemm) -> list[tuple[Sign, Sign, Literal["none", "columns", "rows"]]]:
    """Signs a dot product may have for this product, best first, with the correction each needs."""
    direct = (gemm.lhs_sign, gemm.rhs_sign, "none")
    if direct[:2] == ("s", "s"):
        return [direct, ("u", "s", "columns")]
    if direct[:2] == ("u", "u"):
        return [direct, ("u", "s", "rows")]
    return [direct]


def _find_dot(gemm: Gemm, accumulator: Type, dots: tuple[Dot, ...], lhs: Sign, rhs: Sign) -> Dot | None:
    wanted = ((str(gemm.a.element), lhs), (str(gemm.b.element), rhs), str(accumulator))
    return next((d for d in dots if (d.lhs, d.rhs, d.accumulator) == wanted), None)


def _find_wider_dot(gemm: Gemm, accumulator: Type, dots: tuple[Dot, ...]) -> Dot | None:
    """A dot product of i16, which hold bytes of any sign exactly."""
    operands = ((gemm.a.element, gemm.lhs_sign), (gemm.b.element, gemm.rhs_sign))
    if not all(element == I8 or (element, sign) == (I16, "s") for element, sign in operands):
        return None
    wanted = (("i16", "s"), ("i16", "s"), str(accumulator))
    return next((d for d in dots if (d.lhs, d.rhs, d.accumulator) == wanted), None)
