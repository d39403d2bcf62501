"""The cost of a product under a recipe: cycles of vector kernels and of matrix-unit kernels.

Register tiles are priced by `tlx.lower.cost`.

The cost decides which unit multiplies: a matrix unit, or vectors where a product is too small for it.

    unit      cycles of a kernel besides its products
    matrix    configuration, packing of whole tiles (padding included), sums stored through the cache
    vectors   packing; products of partly filled registers

A tile product is 8 to 16 times as fast as vectors, but 16x16x16 bytes take 425 cycles on the matrix unit and 50 by
vector dot products (Sapphire Rapids, operands in the first cache): 250 of them for the configuration, others for tile
loads that wait for what packing stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from tlx.ir.types import Type, bits_of, bytes_of
from tlx.lower.cost import (
    copied_a_cycles,
    port_cycles,
    product_cycles,
    randomized_cycles,
    tile_product_cycles,
    transfer_cycles,
    transposed_store_cycles,
)
from tlx.lower.to_tiles.problem import Gemm, partial_sums
from tlx.lower.to_tiles.select.blocking import elements_by_lane
from tlx.lower.to_tiles.select.recipe import PAIR, Recipe, column_ranges, row_ranges
from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches
from tlx.target.instructions.dots import Dot
from tlx.target.matrix_unit import MatrixUnitCosts, TileKind
from tlx.target.target import Target


def packs_by_steps(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether a matrix unit's B is packed step by step as it is multiplied, because only one row tile uses it."""
    whole = gemm.k % recipe.tile.kstep == 0 or len(gemm.term_offsets) == 1
    packs = recipe.packing.b and not recipe.packing.prepacked_b
    multiplies_all = recipe.mma.correction == "none" and not gemm.all_pairs  # else sums of columns come first
    return packs and gemm.m <= recipe.tile.mr and whole and multiplies_all


def a_stays_in_l1(gemm: Gemm, recipe: Recipe, caches: Caches) -> bool:
    """Whether a row tile of A stays in L1 while all columns of B are streamed."""
    return min(gemm.m, recipe.tile.mr) * gemm.total_k * bytes_of(gemm.a.element) <= caches.l1 * 3 // 4


@dataclass(frozen=True, slots=True)
class Cost:
    """Predicted cycles of a kernel on one thread.

    Attributes:
        compute: Products, packing and stores, with the operands of vector code in L1.
        total: The same with stalls for caches and memory.
    """

    compute: float
    total: float


def cost(gemm: Gemm, recipe: Recipe, target: Target) -> Cost:
    """The cost of a product by a recipe."""
    if recipe.mma.unit == "matrix":
        cycles = total = _matrix_cycles(gemm, recipe, target)
    else:
        products, others = _vector_parts(gemm, recipe, target)
        cycles = products + others + target.core.costs.call_cycles
        total = _with_memory_stalls(cycles, gemm, recipe, target)
    return Cost(cycles, randomized_cycles(target.core.costs.decision_seed, total, gemm.knob_key, recipe.mma.unit))


def recipe_dot(recipe: Recipe, target: Target) -> Dot | None:
    """The dot product that a recipe multiplies by; None for multiply-adds."""
    reads = str(recipe.mma.operand_a), str(recipe.mma.operand_b), recipe.mma.width
    dots = (dot for dot in target.usable_dots if (dot.lhs[0], dot.rhs[0], dot.width) == reads)
    return next(dots, None) if recipe.mma.unit == "dot" else None


def recipe_kind(recipe: Recipe, target: Target) -> TileKind:
    """The tiles of a recipe on the matrix unit."""
    assert target.matrix is not None
    return target.matrix.kind_for(str(recipe.mma.operand_a), str(recipe.mma.accumulator))


def _matrix_cycles(gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles of a product on the matrix unit; where the working set exceeds L1, C and packed tiles leave it."""
    matrix, size = target.matrix, bits_of(gemm.a.element) // 8
    assert matrix is not None
    unit_costs, kind = matrix.costs, recipe_kind(recipe, target)
    height = recipe.tile.unit_rows
    rows, columns = -(-gemm.m // height), -(-gemm.n // kind.columns)
    steps, kstep = -(-gemm.k // recipe.tile.kstep) * len(gemm.term_offsets), recipe.tile.kstep
    if kstep * size > kind.step_bytes:
        steps, kstep = steps * (kstep * size // kind.step_bytes), kind.step_bytes // size
    tiles, depth = rows * columns, steps * kstep * size
    p, q = min(rows, recipe.tile.mr // height), min(columns, recipe.tile.nr // kind.columns)
    packs_b = recipe.packing.b and not recipe.packing.prepacked_b
    by_steps = packs_by_steps(gemm, recipe)
    packed_columns = min(recipe.blocks.nc, gemm.n) if packs_b and not by_steps else 0
    packed_rows = gemm.m if recipe.packing.a and recipe.blocks.mc > recipe.tile.mr else 0
    place = _holding_level(gemm, recipe, target.caches, depth * (packed_columns + packed_rows))
    many_pages = min(recipe.blocks.nc, gemm.n) * depth > target.memory.tlb_bytes
    load_b = unit_costs.load_cycles[0 if place == 0 or by_steps else 1 + many_pages]
    load_b = unit_costs.l1_bypassing_load_cycles[many_pages] if recipe.prefetch.b_bypasses_l1 else load_b
    reload = (gemm.products_per_operand - 1) * unit_costs.load_cycles[0]
    load_a = (_tile_of_a(gemm, recipe, target, place) + reload) * height / kind.rows
    product = tile_product_cycles((p, q), gemm.products_per_operand * kind.cycles, load_a, load_b + reload)
    row_of_a, row_of_b = _packed_rows(gemm, recipe, unit_costs, place)
    lines = kstep // recipe.mma.width  # rows of a tile of B
    packing = steps * (
        lines * columns * packs_b * gemm.packs_per_product * row_of_b + height * rows * recipe.packing.a * row_of_a
    )
    crosses = gemm.c.row_stride * bits_of(recipe.mma.accumulator) // 8 % target.caches.line_bytes and gemm.m > 1
    store = (
        unit_costs.store_cycles[place] * (unit_costs.line_crossing_store_factor if crosses else 1) * height / kind.rows
    )
    once = (
        unit_costs.configure_cycles if gemm.batch is None else 0
    )  # a loop configures once, and its iterations overlap
    busy = tiles * (steps * product + store) + packing
    return once + max(busy, transfer_cycles(gemm.a.bytes_moved + gemm.b.bytes_moved, target.caches, target.memory))


def _packed_rows(gemm: Gemm, recipe: Recipe, unit_costs: MatrixUnitCosts, place: int) -> tuple[float, float]:
    """Cycles of a row of a packed tile of A, and of B; `place`: the cache level that holds operands and panels."""
    deep = unit_costs.masked_row_cycles if gemm.k % recipe.tile.kstep else 0
    masked_a = unit_costs.masked_row_cycles if any(r.padding for r in row_ranges(gemm, recipe)) else deep
    masked_b = unit_costs.masked_row_cycles if any(c.padding for c in column_ranges(gemm, recipe)) else deep
    row_of_b = unit_costs.packed_row_cycles[0 if packs_by_steps(gemm, recipe) else place] + masked_b
    if gemm.a.is_row_major == recipe.packing.a_in_groups:
        return unit_costs.transposed_row_cycles[place] + masked_a, row_of_b
    return unit_costs.packed_row_cycles[place if recipe.blocks.mc > recipe.tile.mr else 0] + masked_a, row_of_b


def _tile_of_a(gemm: Gemm, recipe: Recipe, target: Target, place: int) -> float:
    """Cycles of loading a tile of A.

    Where A does not stay in L2, the first panel of each block loads a row tile from beyond it.
    """
    assert target.matrix is not None
    load = target.matrix.costs.load_cycles
    if place == 0 or a_stays_in_l1(gemm, recipe, target.caches):
        return load[0]
    first = (
        min(1.0, recipe.tile.nr / min(recipe.blocks.nc, gemm.n)) if gemm.a.bytes_moved > target.caches.l2 // 2 else 0.0
    )
    row_tile = recipe.tile.mr * gemm.total_k * bytes_of(gemm.a.element)
    half = min(1.0, target.caches.l1 / row_tile / 2)  # half of L1: the next row tile evicts the other half
    stays = recipe.prefetch.b_bypasses_l1 * half
    return (1 - first) * (stays * load[0] + (1 - stays) * load[1]) + first * load[-1]


def _holding_level(gemm: Gemm, recipe: Recipe, caches: Caches, packed: int) -> int:
    """The cache level that holds operands, result and this many bytes of panels together: L1, L2, or beyond."""
    operands = gemm.total_k * (gemm.m + gemm.n) * bits_of(gemm.a.element) // 8
    total = operands + packed + gemm.m * gemm.n * bits_of(recipe.mma.accumulator) // 8
    return (total > caches.l1) + (total > caches.l2)


def _with_memory_stalls(cycles: float, gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles of a kernel by vector tiles whose operands miss L1, given its cycles on operands in L1.

    A     read once, or for each block of columns where it does not stay in L2
    B     packing waits for it, and products wait for panels that were packed earlier. An unpacked B is read in runs of
          a tile's width, and hardware prefetchers take a while to recognise each run, where no tile prefetches it
    C     each cache line of the sums read and written in each pass over K, and C written in the last one

    Reads from beyond L2 are hardly overlapped (measured: Xeon with AMX, float and double, 512 to 2048 cubed). Where
    each pass over K prefetches the part of B that the next one reads, and multiplies for as long as that takes, only
    the first pass waits, and C stays in L2; where tiles prefetch A and C, an eighth of their stalls remains.
    """
    a, b = (view.bytes_moved * len(gemm.term_offsets) for view in (gemm.a, gemm.b))
    c, memory = gemm.c.bytes_moved, target.memory
    passes = -(-gemm.k // recipe.blocks.kc)
    stored = c + (passes - 1) * partial_sums(gemm, recipe.mma.accumulator).bytes_moved
    waiting = _with_b_stalls(cycles, gemm, recipe, target)
    if a + b + c <= target.caches.l2:
        return waiting
    if recipe.prefetch.locality:
        waiting = cycles if cycles >= b / memory.bytes_per_cycle else waiting
        return waiting + (a + b / passes) / memory.bytes_per_cycle + 2 * stored / memory.l2_bytes_per_cycle
    blocks = -(-gemm.n // recipe.blocks.nc) if a > target.caches.l2 // 4 else 1
    a_waits, c_waits = (
        target.core.costs.prefetched_stall_share if operand in recipe.prefetch.operands else 1.0 for operand in "AC"
    )
    return waiting + (a_waits * a * blocks + c_waits * 2 * stored) / memory.bytes_per_cycle


def vector_efficiency(gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """The fraction of the vectors' peak that a kernel should reach when it is called repeatedly and calls overlap."""
    products, others = _vector_parts(gemm, recipe, target)
    cycles = products + target.core.costs.unoverlapped_packing_share * others
    if gemm.batch is None:
        cycles = _with_memory_stalls(cycles, gemm, recipe, target)
    return min(1.0, ideal_cycles(gemm, recipe.mma.accumulator, target, recipe_dot(recipe, target)) / cycles)


def ideal_cycles(gemm: Gemm, accumulator: Type, target: Target, dot: Dot | None) -> float:
    """Cycles of the products alone on vectors with all lanes filled."""
    lanes = target.vector_bytes * 8 // bits_of(accumulator)
    each = dot.cycles / dot.width if dot else 1 / target.core.fmas_per_cycle
    return gemm.m * gemm.n * gemm.total_k / lanes * each


def _with_b_stalls(cycles: float, gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles of a kernel with the stalls for B alone."""
    moves = gemm.b.bytes_moved
    if recipe.packing.b and moves > target.caches.l1:
        packed = gemm.k * gemm.n * bytes_of(recipe.mma.operand_b)
        read = transfer_cycles(packed, target.caches, target.memory) if gemm.packs_per_product < 1 else 0
        return hypot(
            cycles + packed / target.vector_bytes * target.core.costs.packing.l1_miss_cycles * gemm.packs_per_product,
            read,
        )
    run = min(recipe.tile.nr, gemm.n) * bytes_of(gemm.b.element)
    detection = (
        target.memory.stream_detection_bytes / run
        if moves > target.caches.l2 and "B" not in recipe.prefetch.operands
        else 0
    )
    return max(cycles, transfer_cycles(moves, target.caches, target.memory) * (1 + detection))


def _vector_parts(gemm: Gemm, recipe: Recipe, target: Target) -> tuple[float, float]:
    """Cycles of register tiles' products; and of packing, column-by-column stores, and the N tail."""
    core, lanes, dot = target.core, recipe.tile.lanes, recipe_dot(recipe, target)
    terms, steps = len(gemm.term_offsets), -(-gemm.k // recipe.tile.kstep)
    vectors = -(-(gemm.n - recipe.tile.dot_columns - recipe.tile.paired_columns) // lanes)
    slower = max(1.0, dot.cycles * core.fmas_per_cycle) if dot is not None else 1.0
    pairs = (
        paired_columns_cycles(gemm, target.registers, target.core, recipe.tile.mr) if recipe.tile.paired_columns else 0
    )
    if not vectors:
        return pairs, terms * _packed_a(gemm, recipe, target)
    tile = recipe.tile.mr, recipe.tile.nr // lanes
    products = (
        slower
        * steps
        * product_cycles(core, gemm.m, vectors, *tile, elements=elements_by_lane(gemm, recipe, target, tile))
    )
    corrected = core.costs.packing.column_sum_cycles if recipe.mma.correction != "none" else 0
    near = (
        gemm.b.is_row_major
        or gemm.b.interleave > 1
        or gemm.a.bytes_moved + gemm.b.bytes_moved + gemm.c.bytes_moved <= target.caches.l2
    )
    packed_b = (core.costs.packing.register_cycles if near else core.costs.packing.column_cycles * lanes) + corrected
    others = steps * vectors * packed_b * gemm.packs_per_product if recipe.packing.b else 0
    others += _packed_a(gemm, recipe, target)
    if not gemm.c.is_row_major:
        column = max(1, target.caches.line_bytes // 2 // bytes_of(gemm.c.element))
        others += transposed_store_cycles(core, gemm.m, vectors, recipe.tile.mr, column)
    along = (
        dot_product_columns_cycles(gemm, target.core, recipe.tile.dot_columns, lanes) if recipe.tile.dot_columns else 0
    )
    return terms * products, terms * others + along + pairs


def _packed_a(gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles to pack A, by registers of its rows or by columns of its row tiles; 0 where it is not packed."""
    if not recipe.packing.a:
        return 0
    if recipe.mma.unit == "fma" and not gemm.a.is_row_major:
        return gemm.k * copied_a_cycles(
            target.core, gemm.m, recipe.tile.mr, max(1, target.caches.line_bytes // 2 // bytes_of(recipe.mma.operand_a))
        )
    if not gemm.a.is_row_major:
        return gemm.m * gemm.k * target.core.costs.packing.transposed_element_cycles
    return (
        gemm.m
        * -(-gemm.k * bits_of(recipe.mma.operand_a) // (8 * target.vector_bytes))
        * target.core.costs.packing.register_cycles
    )


def dot_product_columns_cycles(gemm: Gemm, core: CoreModel, count: int, lanes: int) -> float:
    """Approximate cycles of dot products along K for a number of columns."""
    step = max(count / core.fmas_per_cycle, (1 + count / 4) / core.loads_per_cycle)
    costs = core.costs.column_tail
    summed = gemm.m * (-(-gemm.k // lanes) * step + count * costs.dot_sum_cycles)
    return summed + gemm.k * count * costs.dot_copy_cycles


def dot_product_rows(registers: int, count: int) -> int:
    """Rows of sums that fit the registers, besides one register for each column and one for a row."""
    return (registers - 1) // count - 1


def paired_step_cycles(gemm: Gemm, core: CoreModel, mr: int, vectors: float) -> float:
    """Cycles of a step along K for all rows, in tiles of up to `mr`: what the ports allow.

    For a tile of one register a row, `tlx.lower.cost` overestimates loads: it gives 7.9 cycles for 12x16, which takes
    6.5.
    """
    tiles = -(-gemm.m // mr)
    rows = gemm.m / tiles
    return tiles * port_cycles(core, rows * vectors, rows + vectors)


def paired_columns_cycles(gemm: Gemm, registers: int, core: CoreModel, mr: int) -> float:
    """Approximate cycles of the columns that are summed by pairs, in tiles of up to `mr` rows."""
    steps = -(-gemm.k // PAIR)
    stored = not pairs_stay_in_registers(steps, registers)
    costs = core.costs.column_tail
    interleaved = costs.pair_store_cycles if stored else costs.pair_interleave_cycles
    return steps * (paired_step_cycles(gemm, core, mr, 1) + interleaved) + gemm.m * costs.pair_sum_cycles


def pairs_stay_in_registers(steps: int, registers: int) -> bool:
    """Whether this many pairs of B's rows fit a quarter of the registers."""
    return steps <= registers // 4
