"""Recipes on a matrix unit: register grid, panels and cache blocks of a product.

A step of K multiplies p tiles of A by q tiles of B: p + q tile loads for p * q tile products. Four accumulators hide a
product's latency, and 2x2 of them need the fewest loads; a flat result takes 1x4 or 4x1 rather than multiply padding.
Where all its columns fit one row of six, it takes them: each tile of A is loaded once, and nothing loops over register
tiles (one core, two products of 4x96x32 bfloat: 1.08 times as fast). Loops over such tiles are slower than over 1x4,
whose loads overlap: 16x192x256 takes 1.16 times as long.
Up to four tiles of columns take 1x4, too, where A misses L2: each of its tiles is loaded once, behind four products
instead of two (one core, 512x49x4608 bfloat: 268 -> 232 us, bytes 126 -> 119).

    M > 16 and N > 16     M <= 16           N <= 16
    A0  C00 C01           A0  C0 C1 C2 C3   A0  C0
    A1  C10 C11               B0 B1 B2 B3   A1  C1
        B0  B1                              A2  C2
                                            A3  C3  B0
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import gcd
from typing import Final

from tlx.ir.types import Type, bits_of
from tlx.lower.cost import tile_k_step
from tlx.lower.knobs import NO_KNOBS, Knobs
from tlx.lower.operations import MMA_NAMES
from tlx.lower.to_tiles.prefetch import a_misses_l2, with_prefetches
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select import knob_constraints
from tlx.lower.to_tiles.select.recipe import (
    CacheBlockSizes,
    Correction,
    MultiplyAdd,
    PackedOperands,
    PrefetchChoices,
    Recipe,
    RegisterTileShape,
    column_ranges,
    round_up,
    row_ranges,
)
from tlx.lower.to_tiles.select.recipe_cost import a_stays_in_l1, cost, recipe_kind
from tlx.target.costs.memory import Caches
from tlx.target.instructions.dots import Dot
from tlx.target.matrix_unit import MatrixUnit, MatrixUnitCosts, TileKind
from tlx.target.target import Target


def matrix_unit_recipe(
    gemm: Gemm,
    target: Target,
    accumulator: Type,
    dot: Dot,
    correction: Correction,
    knobs: Knobs = NO_KNOBS,
) -> Recipe:
    """The recipe for a product whose types the target's matrix unit multiplies, with that correction.

    Raises:
        UsageError: The knobs do not fit.
    """
    matrix = target.matrix
    assert matrix is not None
    size, kind = bits_of(gemm.a.element) // 8, matrix.kind_of(dot)
    unit_rows = kind.rows_for(gemm.m)
    grid = knob_constraints.matrix_grid(knobs, kind, unit_rows) or _grid(gemm, target.caches, kind)
    mr, nr = unit_rows * grid[0], kind.columns * grid[1]
    deepest = kind.step_bytes // size
    kstep = deepest * _steps_at_once(-(-gemm.k // deepest), kind)
    if kstep == deepest and (gemm.m, gemm.n) == (mr, nr):
        kstep = tile_k_step(gemm.k, deepest, dot.width)
    depth = round_up(gemm.k, kstep) * len(gemm.term_offsets) * size
    kc = knob_constraints.k_block(gemm, knobs, kstep, splits=False, default=gemm.k)
    signs = (gemm.lhs_sign, gemm.rhs_sign) if correction == "none" else (dot.lhs[1], dot.rhs[1])
    recipe = Recipe(
        MultiplyAdd("matrix", MMA_NAMES[signs], gemm.a.element, gemm.b.element, accumulator, dot.width, correction),
        RegisterTileShape(mr, nr, kstep, kind.columns, unit_rows=unit_rows),
        CacheBlockSizes(mr, nr, kc),
        PackedOperands(a=False, b=True),
        efficiency=0.0,
    )
    pack_a = knob_constraints.packing(
        "A", knobs.pack_a, _needs_packed_a(gemm, recipe, matrix), _is_packing_a_profitable(gemm, recipe, target)
    )
    gains_b = _is_packing_b_profitable(gemm, recipe, target)
    pack_b = knob_constraints.packing("B", knobs.pack_b, _needs_packed_b(gemm, recipe), gains_b)
    recipe = replace(recipe, packing=PackedOperands(pack_a, pack_b, a_in_groups=matrix.a_layout == "groups"))
    resident_rows = _resident_rows(gemm, recipe, target)
    b_block = target.caches.l2 // _STREAMED_SHARE if resident_rows else _b_block_bytes(gemm, recipe, target.caches)
    recipe = recipe.with_blocks(mc=resident_rows or mr, nc=max(nr, b_block // depth // nr * nr))
    if pack_a and recipe.blocks.nc < gemm.n and round_up(gemm.m, mr) * depth <= target.caches.l3 // 4:
        recipe = recipe.with_blocks(mc=round_up(gemm.m, mr))  # packed once for all blocks of columns
    mc, nc = knob_constraints.blocks(gemm, knobs, recipe)
    recipe = recipe.with_blocks(mc=mc, nc=nc)
    recipe = replace(recipe, prefetch=PrefetchChoices(b_bypasses_l1=_b_bypasses_l1(gemm, recipe, target.caches)))
    return with_prefetches(gemm, replace(recipe, efficiency=_efficiency(gemm, recipe, target)), target)


def _unit_costs(target: Target) -> MatrixUnitCosts:
    assert target.matrix is not None
    return target.matrix.costs


def _steps_at_once(steps: int, kind: TileKind) -> int:
    """Steps of K in an iteration: as many as divide all of them, so that none is padding."""
    return next(count for count in range(kind.unroll, 0, -1) if steps % count == 0)


def _grid(gemm: Gemm, caches: Caches, kind: TileKind) -> tuple[int, int]:
    """Accumulators along M and N."""
    (rows, columns), across = kind.grid, -(-gemm.n // kind.columns)
    if gemm.m <= kind.rows:
        return 1, across if kind.fits(1, across) else min(rows * columns, across)
    if gemm.n <= kind.columns:
        return min(rows * columns, -(-gemm.m // kind.rows), _adjacent_tiles(gemm, caches, kind)), 1
    if columns < across <= rows * columns and a_misses_l2(gemm, caches):
        return 1, across
    return rows, columns


def _adjacent_tiles(gemm: Gemm, caches: Caches, kind: TileKind) -> int:
    """How many vertically adjacent tiles of A fit the sets of L1 with their cache lines and the next ones.

    Rows 1 KB apart share 4 of 64 sets: 16 such rows take 4 of 12 ways, 64 rows would take 16.
    """
    pitch = gemm.a.row_stride * bits_of(gemm.a.element) // 8
    sets = min(caches.l1_way_bytes // gcd(pitch, caches.l1_way_bytes), caches.l1_way_bytes // caches.line_bytes)
    return max(1, caches.l1 // caches.l1_way_bytes * sets // (2 * kind.rows))


def _needs_packed_a(gemm: Gemm, recipe: Recipe, matrix: MatrixUnit) -> str:
    """Why tiles of A cannot be read in place; empty if they can."""
    if matrix.a_layout == "groups":
        return "the unit reads it in groups along K"
    if not gemm.a.is_row_major:
        return "the unit reads it by rows"
    if recipe.mma.correction != "none":
        return "its bytes change sign"
    if gemm.k % recipe.tile.kstep or any(r.padding for r in row_ranges(gemm, recipe)):
        return "the unit reads whole tiles of it"
    return ""


def _is_packing_a_profitable(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether rows that cross cache lines are read so often that copying them pays."""
    aligned = gemm.a.row_stride * bits_of(gemm.a.element) // 8 % target.caches.line_bytes == 0
    return not aligned and gemm.n >= _unit_costs(target).min_copy_uses * recipe.tile.nr


_STREAMED_SHARE: Final = 10
"""Which part of L2 a block of B takes that passes through it. Two of them and a block of rows of A fit L2."""


def _resident_rows(gemm: Gemm, recipe: Recipe, target: Target) -> int:
    """Rows of A that stay in L2 while blocks of B pass through it; 0 where blocks of B stay there.

    B passes through if it was packed before all calls and most of it is hardly in L2 when a call begins. Then all rows
    stay, or as many as fit: four tiles or more, each of which does not stay in L1 anyway, if L3 holds B until the next
    rows are multiplied. Times with blocks of rows, divided by those with large blocks of columns of B (bfloat, cold
    weights, one core of a Xeon 6/167/1, 2026-11-30): 512x768x3072 .85, 512x2048x2048 .89, 1024x768x1536 .93,
    1024x1024x1024 1.01, 512x512x4608 (three tiles) 1.03, 512x4096x4096 1.18.
    """
    caches, mr = target.caches, recipe.tile.mr
    tiles, row = -(-gemm.m // mr), gemm.k * bits_of(gemm.a.element) // 8
    is_single = gemm.batch is None and len(gemm.term_offsets) == 1
    streams = recipe.packing.b and gemm.packs_per_product == 0 and gemm.b.bytes_moved > caches.l2 // 2
    if not is_single or not streams or tiles == 1:
        return 0
    most = recipe.tile.kstep * recipe.tile.nr * bits_of(recipe.mma.operand_b) // 8 // caches.line_bytes
    if gemm.a.bytes_moved <= caches.l2 // 2 and tiles <= most:  # each tile prefetches a line or more in each step
        return tiles * mr
    fit = caches.l2 * 3 // 8 // (mr * row)
    is_deep = mr * row >= 2 * caches.l1 and gemm.b.bytes_moved <= target.memory.retained_l3_bytes(target.caches)
    return fit * mr if _LEAST_RESIDENT_TILES <= fit <= most and is_deep and not recipe.packing.a else 0


_LEAST_RESIDENT_TILES: Final = 4
"""Least row tiles for which a block of B is read from beyond L2."""


def _b_block_bytes(gemm: Gemm, recipe: Recipe, caches: Caches) -> int:
    """Bytes of a block of B: half of L2, or a quarter where L2 holds B both in memory order and packed.

    Where rows of A do not stay in L1, they miss L2 for each block, so that fewer blocks of half of L2 are faster.
    """
    return caches.l2 // (4 if recipe.packing.b and a_stays_in_l1(gemm, recipe, caches) else 2)


def _needs_packed_b(gemm: Gemm, recipe: Recipe) -> str:
    """Why tiles of B cannot be read in place; empty if they can."""
    if recipe.mma.correction != "none":
        return "its columns are summed"
    if gemm.b.interleave != recipe.mma.width or (recipe.mma.width == 1 and not gemm.b.is_row_major):
        return "the unit reads it in groups"
    reads_beyond = any(
        c.padding and c.start + c.count * c.size > max(gemm.n, gemm.b.readable_columns)
        for c in column_ranges(gemm, recipe)
    )
    return "the unit reads whole tiles of it" if gemm.k % recipe.tile.kstep or reads_beyond else ""


def _is_packing_b_profitable(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether a tile's rows are so far apart, and read so often, that copying them pays.

    It does not where a row tile of A stays in L1: rows far apart pass through only a few sets, and panels through all.
    """
    size = bits_of(gemm.b.element) // 8
    far = gemm.b.row_stride * recipe.mma.width * size >= target.caches.two_set_pitch
    return (
        far
        and gemm.m >= _unit_costs(target).min_copy_uses * recipe.tile.mr
        and not a_stays_in_l1(gemm, recipe, target.caches)
    )


def _b_bypasses_l1(gemm: Gemm, recipe: Recipe, caches: Caches) -> bool:
    """Whether tiles of B are evicted from L1 before the next row tile reads them.

    They then bypass L1, so that lines of A stay there for the next panel. It does not pay where the working set barely
    exceeds L1, since some of B stays, or where a row tile is many times as large as L1, since nothing does. Measured,
    medians (Xeon 6/207/2): bfloat, 256 cubed with interleaved B 1.13 times as fast, 1024 cubed 1.20, 2048 cubed 1.03;
    bytes, 256 cubed, 72 KB, 0.93. Where the products of a sum read the same lines, 64x56x18*32 bfloat 0.65 (with
    AMX-FP16); where each tile is read twice in a step, as all pairs of a sum are multiplied, 1024 cubed 0.89.
    """
    row = gemm.total_k * bits_of(gemm.a.element) // 8
    working_set = (recipe.tile.mr + min(recipe.blocks.nc, round_up(gemm.n, recipe.tile.nr))) * row
    a_may_stay = recipe.tile.mr * row <= 4 * caches.l1
    starts = sorted(start for _, start in gemm.term_offsets)
    disjoint = recipe.packing.b or all(end - start >= gemm.b.size for start, end in pairwise(starts))
    is_reused = gemm.m > recipe.tile.mr and working_set > 2 * caches.l1
    return is_reused and a_may_stay and disjoint and not gemm.all_pairs


def _efficiency(gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """The fraction of the unit's peak that the kernel should reach: cycles of its products over all its cycles."""
    unit_costs, kind = _unit_costs(target), recipe_kind(recipe, target)
    tile = kind.rows * kind.columns * kind.step_bytes * 8 // bits_of(gemm.a.element)
    products = gemm.m * gemm.n * gemm.total_k * gemm.products_per_operand * kind.cycles / tile
    steps = -(-gemm.k // recipe.tile.kstep) * len(gemm.term_offsets)
    is_exposed = gemm.epilogue is not None and steps <= unit_costs.max_exposed_epilogue_steps
    epilogue = gemm.m * -(-gemm.n // recipe.tile.lanes) * unit_costs.epilogue_row_cycles if is_exposed else 0
    return products / (cost(gemm, recipe, target).compute + epilogue)
