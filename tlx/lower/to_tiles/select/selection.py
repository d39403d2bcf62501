"""Selects the recipe of a product, once for each product, target and set of knobs.

product                             operands become        instruction
matrix unit multiplies the types    as they are            tile product, 2x2 accumulators
  and is predicted to be faster,
  or B is interleaved for it, or
  all pairs of terms are multiplied
vector dot product multiplies them  as they are, VNNI      u8*s8, bf16*bf16
s8*s8 with only u8*s8 available     A xor 128              (A + 128) @ B - 128 * colsum(B)
u8*u8 with only u8*s8 available     B xor 128              A @ (B - 128) + 128 * rowsum(A)
u8*u8 with only s8*u8 available     A xor 128              (A - 128) @ B + 128 * colsum(B)
bytes with only i16*i16 available   i16, VNNI              pairs of i16
anything else, and where a dot      accumulator's type     fused multiply-add
  product is too slow
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from tlx.diagnostics import Note, UsageError
from tlx.ir.instructions import Instruction
from tlx.ir.types import I8, I16, I32, I64, IntType, Type, bits_of
from tlx.lower.context import LoweringContext
from tlx.lower.knobs import NO_KNOBS, OPENMP, KnobQuery, Knobs
from tlx.lower.to_tiles.problem import Gemm, gemm_accumulator_type
from tlx.lower.to_tiles.select.blocking import b_misses_l2
from tlx.lower.to_tiles.select.matrix_unit import matrix_unit_recipe
from tlx.lower.to_tiles.select.recipe import Correction, Recipe
from tlx.lower.to_tiles.select.recipe_cost import cost
from tlx.lower.to_tiles.select.streaming import streaming_methods, streaming_recipe
from tlx.lower.to_tiles.select.vector import vector_recipe
from tlx.target.costs.memory import Caches
from tlx.target.instructions.dots import Dot, Sign
from tlx.target.target import Target

CACHE_SIZE: Final = 4096  # products of a compilation


def select(gemm: Gemm, target: Target, knobs: Knobs = NO_KNOBS) -> Recipe:
    """The recipe for a product on a target: what the knobs demand, and otherwise the one of least cost.

    Targets that differ only in features that the product does not use share the recipe. It does not pack a B that
    another kernel packs.

    Raises:
        UsageError: The knobs do not fit.
    """
    recipe = _select_on(gemm, target if knobs else _with_dots_for(target, gemm.a.element, gemm.b.element), knobs)
    return recipe.with_prepacked_b() if gemm.is_b_prepacked and recipe.packing.b else recipe


@lru_cache(maxsize=CACHE_SIZE)
def _with_dots_for(target: Target, lhs: Type, rhs: Type) -> Target:
    """The target with only the dot products that can multiply two types, as they are or as i16; without a name."""
    types = {str(lhs), str(rhs)} | ({"i16"} if I8 in (lhs, rhs) else set[str]())
    dots = tuple(dot for dot in target.usable_dots if types.issuperset((dot.lhs[0], dot.rhs[0])))
    tiles = tuple(dot for dot in target.usable_matrix_dots if types.issuperset((dot.lhs[0], dot.rhs[0])))
    matrix = target.matrix.with_dots(tiles) if target.matrix is not None and tiles else None
    return Target(
        name="",
        title="",
        features=tuple(dict.fromkeys(f"+{dot.feature}" for dot in (*dots, *tiles))),
        vector_bytes=target.vector_bytes,
        registers=target.registers,
        instructions=target.instructions,
        narrow_floats=target.narrow_floats,
        dots=dots,
        matrix=matrix,
        caches=target.caches,
        memory=target.memory,
        core=target.core,
        block_costs=target.block_costs,
    )


@lru_cache(maxsize=CACHE_SIZE)
def _select_on(gemm: Gemm, target: Target, knobs: Knobs) -> Recipe:
    """`select`, cached by all attributes of the target."""
    types = _types(gemm)
    tile_dot = _matrix_dot(gemm, target, types)
    if tile_dot is not None and (knobs.tile is not None or gemm.b.interleave > 1 or gemm.all_pairs):
        return matrix_unit_recipe(gemm, target, types.narrow, *tile_dot, knobs)
    recipe, cycles = _in_registers(gemm, target)
    if not knobs:
        dots = tuple(dot for dot in target.usable_dots if dot.is_profitable(target.core))
        streamed = streaming_recipe(gemm, target, streaming_methods(gemm, dots, types.narrow, types.accumulator))
        return streamed[0] if streamed is not None and streamed[1] < cycles else recipe
    if recipe.mma.unit == "matrix" and tile_dot is not None:
        return matrix_unit_recipe(gemm, target, types.narrow, *tile_dot, knobs)
    return _vector_registers_recipe(gemm, target, types, knobs)


@lru_cache(maxsize=CACHE_SIZE)
def _in_registers(gemm: Gemm, target: Target) -> tuple[Recipe, float]:
    """The cheapest recipe that keeps a tile's sums in registers, vector or tile, and its cycles."""
    types = _types(gemm)
    recipe = _vector_registers_recipe(gemm, target, types, NO_KNOBS)
    cycles = cost(gemm, recipe, target).total
    tile_dot = _matrix_dot(gemm, target, types)
    if tile_dot is None or target.matrix is None:
        return recipe, cycles
    tiled, streamed = (1.0, 1.0) if _waits_for_prepared_b(gemm, target.caches) else target.matrix.costs.vector_speedups
    on_tiles = matrix_unit_recipe(gemm, target, types.narrow, *tile_dot)
    by_tiles = cost(gemm, on_tiles, target).total
    if by_tiles < cycles * tiled:
        return on_tiles, by_tiles / streamed
    return recipe, cycles


def _waits_for_prepared_b(gemm: Gemm, caches: Caches) -> bool:
    """Whether a product of several rows waits for panels that were packed before all calls and miss L2.

    Vectors have no lead over tiles then, whose loads follow each other more closely. GB/s of panels of 4096x4096
    bfloats on vectors and on tiles: 2 rows 9.8, 14.8; 4 rows 8.4, 15.0; 8 rows 14.6, 14.8; a plain read 16.4 (one core
    of a Xeon 6/167/1, medians of alternated calls, 2026-11-30). Vectors multiply one row as fast, and their panels can
    be narrower, so that more threads share them.
    """
    return gemm.m > 1 and gemm.packs_per_product == 0 and b_misses_l2(gemm, caches)


class _AccumulatorTypes(NamedTuple):
    """Types of a product's sums: the one its result needs, and a narrower one where that is exact."""

    accumulator: Type
    narrow: Type


def _types(gemm: Gemm) -> _AccumulatorTypes:
    accumulator = gemm_accumulator_type(gemm)
    return _AccumulatorTypes(accumulator, _narrow_accumulator(gemm, accumulator))


def _matrix_dot(gemm: Gemm, target: Target, types: _AccumulatorTypes) -> tuple[Dot, Correction] | None:
    """The matrix unit's instruction for a product, if it has one, and the correction that its signs need."""
    return _corrected_matrix_dot(gemm, target, types.narrow) if gemm.c.is_row_major else None


def _corrected_matrix_dot(gemm: Gemm, target: Target, accumulator: Type) -> tuple[Dot, Correction] | None:
    """The same, whatever the layout of C. Panels of A are in an order whose rows are not summed."""
    for lhs, rhs, correction in _dot_signs(gemm):
        dot = _find_dot(gemm, accumulator, target.usable_matrix_dots, lhs, rhs)
        if dot is not None and correction != "rows":
            return dot, correction
    return None


def fits_matrix_unit(gemm: Gemm, target: Target) -> bool:
    """Whether the target's matrix unit multiplies these types."""
    narrow = _narrow_accumulator(gemm, gemm_accumulator_type(gemm))
    return _corrected_matrix_dot(gemm, target, narrow) is not None


def _vector_registers_recipe(gemm: Gemm, target: Target, types: _AccumulatorTypes, knobs: Knobs) -> Recipe:
    """The recipe on vector registers."""
    accumulator, narrow = types
    in_place = gemm.b.interleave > 1  # `to_2d` has decided that dot products read it so
    dots = tuple(dot for dot in target.usable_dots if in_place or dot.is_profitable(target.core))
    for lhs, rhs, correction in _dot_signs(gemm):
        dot = _find_dot(gemm, narrow, dots, lhs, rhs)
        if dot is not None:
            return vector_recipe(gemm, target, narrow, dot, (lhs, rhs), correction, knobs)
    dot = _find_wider_dot(gemm, narrow, dots)
    if dot is not None:
        return vector_recipe(gemm, target, narrow, dot, ("s", "s"), "none", knobs)
    signs = gemm.lhs_sign, gemm.rhs_sign
    return vector_recipe(gemm, target, accumulator, None, signs, "none", knobs)


def _narrow_accumulator(gemm: Gemm, accumulator: Type) -> Type:
    """i32 in place of i64 where 8-bit products cannot overflow it and nothing wider is added."""
    if accumulator != I64 or gemm.acc is not None or gemm.a.element.__class__ is not IntType:
        return accumulator
    bytes_only = bits_of(gemm.a.element) == 8 and bits_of(gemm.b.element) == 8
    return I32 if bytes_only and gemm.total_k * 255 * 255 < 1 << 31 else accumulator


def _dot_signs(gemm: Gemm) -> list[tuple[Sign, Sign, Correction]]:
    """Operand signs of the dot products that can compute this product, best first, with the correction each needs."""
    direct = (gemm.lhs_sign, gemm.rhs_sign, "none")
    if direct[:2] == ("s", "s"):
        return [direct, ("u", "s", "columns")]
    if direct[:2] == ("u", "u"):
        return [direct, ("u", "s", "rows"), ("s", "u", "columns")]
    return [direct]


def _find_dot(gemm: Gemm, accumulator: Type, dots: tuple[Dot, ...], lhs: Sign, rhs: Sign) -> Dot | None:
    signature = ((str(gemm.a.element), lhs), (str(gemm.b.element), rhs), str(accumulator))
    return next((d for d in dots if (d.lhs, d.rhs, d.accumulator) == signature), None)


def _find_wider_dot(gemm: Gemm, accumulator: Type, dots: tuple[Dot, ...]) -> Dot | None:
    """A dot product of i16, which hold bytes of any sign exactly."""
    operands = ((gemm.a.element, gemm.lhs_sign), (gemm.b.element, gemm.rhs_sign))
    if not all(element == I8 or (element, sign) == (I16, "s") for element, sign in operands):
        return None
    signature = (("i16", "s"), ("i16", "s"), str(accumulator))
    return next((d for d in dots if (d.lhs, d.rhs, d.accumulator) == signature), None)


def knobs_of(context: LoweringContext, gemm: Gemm, target: Target, at: Instruction) -> Knobs:
    """The knobs that the context has for a product; advisory knobs that do not fit are ignored, with a remark.

    The products of a split fp16 product have none, as knobs are for the product as it is.

    Raises:
        UsageError: Binding knobs do not fit.
    """
    if gemm.all_pairs:
        return NO_KNOBS
    key = gemm.knob_key if context.options.threads == "none" else f"{gemm.knob_key} {OPENMP}"
    knobs = context.options.knobs(KnobQuery(key, target.name, target.features))
    if not knobs:
        return NO_KNOBS
    try:
        select(gemm, target, knobs)
    except UsageError as error:
        if knobs.origin is None or knobs.origin.binding:
            raise _at_knob_entry(error, gemm, knobs, at) from None
        text = f"{gemm.title}: {knobs} {knobs.origin.text} ignored: {error.message}"
        context.remarks.add("missed", "to-tiles", text, at.span)
        return NO_KNOBS
    return knobs


def _at_knob_entry(error: UsageError, gemm: Gemm, knobs: Knobs, at: Instruction) -> UsageError:
    """The error at the entry that gives the knobs, with the product as a second location."""
    origin = knobs.origin
    notes = [Note(f"for {gemm.knob_key}", at.span)]
    return UsageError(error.message, origin.span if origin else None, notes)
