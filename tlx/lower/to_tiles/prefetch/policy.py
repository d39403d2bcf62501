"""What products prefetch, how far ahead and into which cache, and which of them use non-temporal stores.

for i: C[i] = A[i] @ B[i]           in iteration i, between its multiply-adds: prefetch A[i + 1], B[i + 1]

Where an iteration takes less time than the memory latency, it prefetches for a later iteration than the next. On a
matrix unit that does not pay: 10,000 products of 16x16x16 bfloat take 1.07 times as long with a distance of three
iterations (Xeon 6/207/2).

    all of A, B and C fit               operands are
    L2                                  not prefetched
    the last-level cache                prefetched: into L1 if two iterations fit there, else into L2
    neither                             prefetched, and C is written by non-temporal stores if aligned at run time

Measured on one Sapphire Rapids core, 2026-11-22, float: 10,000 products of 16x16x16 (30 MB) gain 4 % by prefetching;
those of 32x32x32 (120 MB) gain 37 % and, with the stores, 60 %. `select.caches` has more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.ir.types import bytes_of
from tlx.lower.to_tiles.problem.problems import BatchStrides, Gemm
from tlx.lower.to_tiles.select.caches import batch_exceeds_caches
from tlx.lower.to_tiles.select.recipe import Recipe, column_ranges, row_ranges
from tlx.target.hardware import CoreModel, KernelLimits
from tlx.target.target import Target

L1_LOCALITY: Final = 3
L2_LOCALITY: Final = 2
"""Localities of `llvm.prefetch`."""


def batch_prefetch_distance(batch: BatchStrides, target: Target) -> int:
    """How many iterations ahead operands are prefetched.

    As many as take the memory latency, if what they read fits L1; else as many as fit.
    """
    moved = sum(abs(step) for step in batch.steps)
    held = sum(size for _, _, size in batch.read)
    fit = (target.caches.l1 - batch.sizes[0]) // held - 1 if held else 1
    return max(1, min(-(-target.memory.latency * target.memory.bytes_per_cycle // moved), fit)) if moved else 1


def batch_prefetch_locality(batch: BatchStrides | None, target: Target) -> int:
    """The locality with which a later iteration's operands are prefetched; 0 where they are not."""
    if batch is None or (batch.total is not None and batch.total <= target.caches.l2):
        return 0
    both = 2 * sum(size for _, _, size in batch.read) + batch.sizes[0]
    if both <= target.caches.l1:
        return L1_LOCALITY
    return L2_LOCALITY if both <= target.caches.l2 // 2 else 0


def with_prefetches(gemm: Gemm, recipe: Recipe, target: Target) -> Recipe:
    """The recipe with what its kernel prefetches, and with non-temporal stores, where these pay."""
    recipe = _with_memory_traffic(gemm, recipe, target)
    if recipe.mma.unit != "matrix":
        operands, lines = _operands_of_later_tiles(gemm, recipe, target), False
    else:
        operands = "A" if _prefetches_rows_of_a(gemm, recipe, target) else ""
        lines = _prefetches_c_lines(gemm, recipe, target)
    prefetch, stores = replace(recipe.prefetch, operands=operands), replace(recipe.stores, prefetches_lines=lines)
    return replace(recipe, prefetch=prefetch, stores=stores)


def _with_memory_traffic(gemm: Gemm, recipe: Recipe, target: Target) -> Recipe:
    """The recipe of a product in one block, in a loop or in passes over K, with prefetches of later operands."""
    if gemm.batch is None:
        locality = L2_LOCALITY if _prefetches_next_pass(gemm, recipe, target) else 0
        return replace(recipe, prefetch=replace(recipe.prefetch, locality=locality))
    blocked = recipe.mma.unit != "matrix" and (recipe.blocks.kc < gemm.k or recipe.blocks.mc < gemm.m)
    if len(gemm.term_offsets) > 1 or blocked or recipe.blocks.nc < gemm.n:
        return recipe
    past = batch_exceeds_caches(gemm.batch, target) and _is_c_aligned(gemm, recipe, target) and gemm.is_repeatable
    distance = 1 if recipe.mma.unit == "matrix" else batch_prefetch_distance(gemm.batch, target)
    fetch = batch_prefetch_locality(gemm.batch, target)
    prefetch = replace(recipe.prefetch, locality=fetch, distance=distance)
    return replace(recipe, prefetch=prefetch, stores=replace(recipe.stores, nontemporal=past))


def _prefetches_next_pass(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether few rows read an unpacked B that misses L2, which holds two passes over K of it."""
    blocks = recipe.blocks
    one_block = blocks.mc >= gemm.m and all(blocks.nc >= c.count * c.size for c in column_ranges(gemm, recipe))
    in_place = gemm.b.is_dense and not recipe.packing.b and recipe.blocks.kc < gemm.k
    size = bytes_of(gemm.b.element)
    near, far = 2 * recipe.blocks.kc * gemm.n * size, gemm.k * gemm.n * size
    return one_block and in_place and near <= target.caches.l2 < far


def _is_c_aligned(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether all registers of C are aligned to their size if the first one is, and a tile fills whole cache lines."""
    element = bytes_of(gemm.c.element)
    size, pitch = recipe.tile.lanes * element, gemm.c.row_stride * element
    steps = gemm.batch.steps[0] if gemm.batch else 0
    widths = [columns.size * element for columns in column_ranges(gemm, recipe)]
    one_panel = len(widths) == 1 == gemm.n // recipe.tile.nr
    whole = all(width % target.caches.line == 0 for width in widths) or (gemm.c.is_dense and one_panel)
    same = gemm.c.element == recipe.mma.accumulator
    return whole and same and gemm.c.is_row_major and gemm.n % recipe.tile.lanes == pitch % size == steps % size == 0


def a_misses_l2(gemm: Gemm, target: Target) -> bool:
    """Whether row tiles of A miss L2."""
    return gemm.a.bytes_moved + gemm.b.bytes_moved > target.caches.l2


def _prefetches_rows_of_a(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether A misses L2 in each block of columns, so that the first panel would wait for it.

    A small A stays in L2 together with a block of packed B. Where there are few panels, each would have to request too
    many lines.
    """
    several = gemm.n > recipe.tile.nr and gemm.m > recipe.tile.mr and recipe.blocks.nc > recipe.tile.nr
    stays = recipe.packing.b and gemm.a.bytes_moved <= target.caches.l2 // 4
    few = recipe.tile.mr * recipe.tile.nr > target.core.limits.prefetch_rows * recipe.blocks.nc
    crowd = recipe.blocks.nc < gemm.n and few
    pays = several and not (recipe.packing.a or stays or crowd)
    return pays and _is_single_product(gemm, recipe) and a_misses_l2(gemm, target)


_LOOP_INSTRUCTIONS: Final = 4
"""Instructions of a step besides products and their loads: counter, comparison, branch, the prefetch of B."""

_PART_INSTRUCTIONS: Final = 3
"""Instructions that a part adds to a step: an address of B (the counter restarts), a prefetch and its address."""


def _is_single_product(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether nothing else is prefetched: one product, not a sum of several, outside of loops."""
    return gemm.batch is None and len(gemm.term_offsets) == 1 and not recipe.prefetch.locality


def _operands_of_later_tiles(gemm: Gemm, recipe: Recipe, target: Target) -> str:
    """The operands that register tiles prefetch for later tiles: some of "CAB"."""
    a, b, c = (view.bytes_moved for view in (gemm.a, gemm.b, gemm.c))
    near = target.caches.l2
    if (
        not _is_single_product(gemm, recipe)
        or a + b + c <= near
        or recipe.blocks.kc // recipe.tile.kstep < target.core.limits.prefetch_part * recipe.tile.mr
    ):
        return ""
    if not _has_issue_slots(recipe, target.core):
        return ""
    in_rows = recipe.packing.whole_a if recipe.packing.a else gemm.a.is_row_major
    b_in_rows = not recipe.packing.b and recipe.tile.kstep == gemm.b.col_stride == 1
    b_in_place = b_in_rows and _panels_meet_all_rows(gemm, recipe, target.core.limits)
    wanted = {
        "A": in_rows and a > near // 4,
        "B": b_in_place and b > near // 4 and a + b + c > near * 5 // 4,
    }
    return "C" + "".join(operand for operand, is_wanted in wanted.items() if is_wanted)


def _panels_meet_all_rows(gemm: Gemm, recipe: Recipe, limits: KernelLimits) -> bool:
    """Whether all row tiles may use a panel before the next panel is read, so that they can request all its rows.

    Where only some use it, B is in cache for all others.
    """
    ranges = row_ranges(gemm, recipe)
    several = sum(rows.count for rows in ranges) >= limits.prefetch_piece
    return several and all(rows.count <= recipe.blocks.mc // rows.size for rows in ranges)


def pieces_per_part(recipe: Recipe, steps: int, rows: int, limits: KernelLimits) -> int:
    """Pieces of each part, and so rows of B that it requests: all rows together, where pieces are long enough.

    Args:
        recipe: A tile has as many parts as rows.
        steps: Steps along K of a tile, as many as B has rows.
        rows: Rows of A that use a panel.
        limits: The machine's limits.
    """
    return max(1, min(-(-steps // rows), steps // (limits.prefetch_piece * recipe.tile.mr)))


def _has_issue_slots(recipe: Recipe, core: CoreModel) -> bool:
    """Whether a step can issue what a part adds to it in the cycles of its products.

    6x16 floats in 16 registers leave nothing on Haswell: 12 products, 8 loads and 4 of the loop fill its 6 cycles.
    """
    vectors = recipe.tile.nr // recipe.tile.lanes
    products = recipe.tile.mr * vectors
    return (
        products + recipe.tile.mr + vectors + _LOOP_INSTRUCTIONS + _PART_INSTRUCTIONS
        <= core.width * products / core.products
    )


def _prefetches_c_lines(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether tiles prefetch their lines of C: it is only written, misses L1, and tile products are few."""
    assert target.matrix is not None
    total = sum(view.bytes_moved for view in (gemm.a, gemm.b, gemm.c))
    written = gemm.acc is None and gemm.batch is None and not recipe.stores.nontemporal and gemm.c.is_row_major
    tiles = recipe.tile.mr // target.matrix.rows * (recipe.tile.nr // recipe.tile.lanes)
    products = (
        -(-gemm.k // recipe.tile.kstep)
        * len(gemm.term_offsets)
        * gemm.products_per_operand
        * tiles
        * target.matrix.rows
    )
    lines = recipe.tile.mr * -(-recipe.tile.nr * bytes_of(gemm.c.element) // target.caches.line)
    return written and total > target.caches.l1 and products < lines * target.memory.line_for_write
