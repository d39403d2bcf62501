"""The cost model of products: cycles of register tiles, of vector kernels and of matrix-unit kernels.

Cost model of register tiles: cycles that a step along K takes, from the target's ports, latency and caches.

A step of a tile of `h` rows and `v` vectors issues `h*v` multiply-adds and `h + v` loads (a broadcast of A is one):

    ports      (multiplies^3 + loads^3)^(1/3)     both queues nearly full disturb each other (measured: a cube fits)
    chain      latency                            a sum is added to once a step, at most every `latency` cycles
    front end  0.05 (h + v)                       instructions around the products
    registers  3 %                                none is left over: LLVM may spill (4x24 of 16 registers, not 6x16)
    caches     0.1 v                              B from the second cache, prefetched, where a panel exceeds the first
    columns    12 v h / K, or 30                  C is stored column by column: halves of lines, or what crosses them
               3, or 7                            A is copied column by column: halves of lines, or what crosses them

28x16 is 78 % of the peak, 12x32 93 %, 6x64 97 %, 8x48 98 % (Sapphire Rapids, float, panels in L1).

Which unit multiplies: a matrix unit, or vectors where a product is too small for it to pay.

    unit      cycles of a kernel, apart from its products
    matrix    configuration, packing of whole tiles (padding included), sums stored through the cache
    vectors   packing; products of partly filled registers

A tile product is 8 to 16 times as fast as vectors, but 16x16x16 bytes take 425 cycles on the matrix unit and 50 by
vector dot products (Sapphire Rapids, operands in the first cache): 250 of them for the configuration, others for tile
loads that wait for what packing stored.

Measured there, in cycles: four loads and four products 65 from the first cache, 88 to 98 from the second, 164 beyond
512 KB of 4 KB pages; LDTILECFG 249; a tile store 21 (48 across lines); a row packed 2.5 to 3 in the first cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot
from typing import Final

from tlx.ir.types import Type, bits_of, bytes_of
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.caches import L2_BYTES_PER_CYCLE, LINE, MEMORY_BYTES_PER_CYCLE
from tlx.lower.to_tiles.select.recipe import PAIR, Recipe, column_ranges, row_ranges
from tlx.target.hardware import CoreModel, Dot
from tlx.target.target import Target

_FRONT_END: Final = 0.05
_STREAMED: Final = 0.1
_TIGHT: Final = 1.03
_TRANSPOSED_STORE: Final = 12.0
"""Cycles of a register of a tile that is stored column by column: halves of cache lines, or what crosses them."""
_TRANSPOSED_STORE_IN_PARTS: Final = 30.0
_COPIED: Final = 3.0
"""Cycles to copy one column of a tile's rows of A: equal parts of cache lines, or what crosses them."""
_COPIED_ACROSS: Final = 7.0
_ALL: Final = 1 << 30


def tile_step_cycles(core: CoreModel, height: float, vectors: int, *, streams: bool = False) -> float:
    """Cycles of one step along K of a tile of `height` rows (an average) and `vectors` registers a row.

    Args:
        core: The machine's ports.
        height: Rows.
        vectors: Registers of a row.
        streams: Whether B comes from the second cache.
    """
    multiplies = height * vectors / core.products
    loads = (height + vectors) / core.loads
    busy = max((multiplies**3 + loads**3) ** (1 / 3), core.latency)
    return busy + _FRONT_END * (height + vectors) + (_STREAMED * vectors if streams else 0)


def product_cycles(core: CoreModel, m: int, vectors: int, mr: int, nv: int, *, resident: int = _ALL) -> float:
    """Cycles per position of K over all tiles of a result of `m` rows and `vectors` registers a row.

    Rows and vectors are split evenly: tiles differ by at most one row and one vector. A panel of up to `resident`
    vectors stays in the first cache.
    """
    row_tiles = -(-m // mr)
    panels = -(-vectors // nv)
    narrow, wider = divmod(vectors, panels)
    height = m / row_tiles
    cycles = (panels - wider) * tile_step_cycles(core, height, narrow, streams=narrow > resident)
    if wider:
        cycles += wider * tile_step_cycles(core, height, narrow + 1, streams=narrow >= resident)
    return row_tiles * cycles


def fitting_tiles(m: int, vectors: int, registers: int, *, spare: int) -> Iterator[tuple[int, int]]:
    """Tiles (rows, vectors) that fit the registers.

    Rule (measured): `mr * nv + min(mr, nv) + 1 <= registers`; the smaller operand set is held, the other streamed.
    """
    for mr in range(1, min(m, registers) + 1):
        for nv in range(1, min(vectors, registers) + 1):
            if mr * nv + min(mr, nv) + 1 + spare > registers:
                break
            yield mr, nv


@dataclass(frozen=True, slots=True)
class RegisterTileProblem:
    """What the choice of a register tile depends on.

    Attributes:
        m, n: Rows and columns of the result.
        lanes: Elements of a register.
        resident: Vectors of B that may be side by side in a panel that stays in the first cache.
        transposed_store: Positions of K after which a tile is stored column by column; 0 where it is stored as it is.
        column: Rows of which 32 bytes of a column are.
        copied_a: Rows of which 32 bytes of a column of A are, where A is copied column by column; else 0.
    """

    m: int
    n: int
    lanes: int
    resident: int = _ALL
    transposed_store: int = 0
    column: int = 1
    copied_a: int = 0

    @property
    def vectors(self) -> int:
        """Registers of a row of the result."""
        return -(-self.n // self.lanes)


def register_tile(shape: RegisterTileProblem, registers: int, core: CoreModel, *, spare: int = 0) -> tuple[int, int]:
    """Rows and vectors of the register tile that needs the fewest cycles; `spare` are needed for something else."""

    def key(tile: tuple[int, int]) -> tuple[float, int, int, int]:
        mr, nv = tile
        cycles = product_cycles(core, shape.m, shape.vectors, mr, nv, resident=shape.resident)
        cycles += _by_columns(shape, mr)
        tight = mr * nv + min(mr, nv) + 1 + spare == registers
        return cycles * (_TIGHT if tight else 1), -(mr * nv), abs(mr - 8), nv

    return min(fitting_tiles(shape.m, shape.vectors, registers, spare=spare), key=key)


def _by_columns(shape: RegisterTileProblem, mr: int) -> float:
    """Cycles per position of K to store C, and to copy A, column by column, where that is done."""
    cycles = 0.0
    if shape.transposed_store:
        cycles += transposed_store_cycles(shape.m, shape.vectors, mr, shape.column) / shape.transposed_store
    if shape.copied_a:
        cycles += copied_a_cycles(shape.m, mr, shape.copied_a)
    return cycles


def copied_a_cycles(m: int, mr: int, step: int) -> float:
    """Cycles to copy a column of an A of `m` rows to tiles of up to `mr`, where `step` rows are half of a line."""
    filled, others = _filled(m, mr, step)
    return _COPIED * filled + _COPIED_ACROSS * others


def transposed_store_cycles(m: int, vectors: int, mr: int, column: int) -> float:
    """Cycles to store a result of `m` rows and `vectors` registers a row column by column.

    Args:
        m: Rows of the result.
        vectors: Registers of a row.
        mr: Rows of a tile.
        column: Rows of which 32 bytes of a column are.
    """
    filled, others = _filled(m, mr, column)
    return m * vectors * (_TRANSPOSED_STORE * filled + _TRANSPOSED_STORE_IN_PARTS * others) / (filled + others)


def _filled(m: int, mr: int, step: int) -> tuple[int, int]:
    """Row tiles whose rows are a multiple of a step, and others, of `m` rows that are split evenly."""
    tiles = -(-m // mr)
    height, taller = divmod(m, tiles)
    filled = taller * ((height + 1) % step == 0) + (tiles - taller) * (height % step == 0)
    return filled, tiles - filled


_CONFIGURATION: Final = 225  # cycles a call: LDTILECFG, and what waits for it
_LOAD: Final = (10.0, 26.0, 34.0, 88.0)
"""Cycles of a tile from the first-level cache, the second, from more of it than the first TLB has pages for, beyond."""
_LOAD_BYPASSING_L1: Final = (22.0, 28.0)
"""Cycles of a tile from the second cache past the first one, within the pages of the first TLB and beyond."""
_STORE: Final = (10.0, 44.0, 60.0)
"""Cycles of a tile of C beside the next products: 16 lines to the first cache, the second, beyond it."""
_PACKED_ROW: Final = (2.5, 5.0, 12.0)
"""Cycles of a row of a packed tile: shuffles, or a line read and a line written."""
_TRANSPOSED_ROW: Final = (12.0, 20.0, 20.0)
"""Cycles of a row of a packed tile of a column-major A."""
_MASKED: Final = 2.0  # more cycles of a row with padding
_CROSSING: Final = 1.3  # times as long takes a tile of C whose rows cross lines
_TLB_BYTES: Final = 384 << 10  # 96 pages of 4 KB
_FAR_PACKED: Final = 6  # cycles more of a register that comes from beyond the first cache
_PREFETCHED: Final = 0.125
"""Share of what tiles ask for early that they wait for all the same."""
_STREAM_DETECTION_BYTES: Final = 512  # bytes that could have come until a run is noticed
_CALL: Final = 20  # cycles of a vector kernel's call and loops
_PACKED: Final = 4  # cycles of a register that is packed for vectors
_TRANSPOSED_COLUMN: Final = (
    1.25  # of one that is transposed, for each of the columns, which come from beyond the second cache
)
_CORRECTED: Final = 2  # more of one whose columns are added up
_BESIDE: Final = 0.5
"""Share of the cycles of packing and its like in which no product runs, on average: measured of products of 8 to 100
(float, half, bfloat, bytes; Xeon 6/207/2, called again and again), .3 to .6 of most."""


def packs_by_steps(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether a matrix unit's B is packed step by step as it is multiplied: one row tile uses it, and never again."""
    whole = gemm.k % recipe.tile.kstep == 0 or len(gemm.term_offsets) == 1
    packs = recipe.packing.b and not recipe.packing.prepacked_b
    return packs and gemm.m <= recipe.tile.mr and whole and not gemm.all_pairs


def stays_near(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether a row tile of A stays in the first cache while all columns of B go by."""
    return min(gemm.m, recipe.tile.mr) * gemm.total_k * bytes_of(gemm.a.element) <= target.caches.l1 * 3 // 4


def recipe_cycles(gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles of a product by its recipe."""
    if recipe.mma.unit == "matrix":
        return matrix_cycles(gemm, recipe, target)
    reads = str(recipe.mma.operand_a), str(recipe.mma.operand_b), recipe.mma.width
    dots = (dot for dot in target.usable_dots if (dot.lhs[0], dot.rhs[0], dot.width) == reads)
    return vector_cycles(gemm, recipe, target, next(dots, None) if recipe.mma.unit == "dot" else None)


def matrix_cycles(gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles of a product on the matrix unit.

    A step of p x q tiles loads p of A and q of B while it multiplies p * q times: what takes longer counts. Where not
    all fits the first cache, it passes through it: C is read and written back, and packed tiles are.
    """
    matrix, size = target.matrix, bits_of(gemm.a.element) // 8
    assert matrix is not None
    rows, columns = -(-gemm.m // matrix.rows), -(-gemm.n // recipe.tile.lanes)
    steps = -(-gemm.k // recipe.tile.kstep) * len(gemm.term_offsets)
    tiles, depth = rows * columns, steps * recipe.tile.kstep * size
    p, q = min(rows, recipe.tile.mr // matrix.rows), min(columns, recipe.tile.nr // recipe.tile.lanes)
    packs_b = recipe.packing.b and not recipe.packing.prepacked_b
    by_steps = packs_by_steps(gemm, recipe)
    kept = packs_b and not by_steps
    held = kept * min(recipe.blocks.nc, gemm.n) + (recipe.packing.a and recipe.blocks.mc > recipe.tile.mr) * gemm.m
    place = _holding_level(gemm, recipe, target, depth * held)
    many_pages = min(recipe.blocks.nc, gemm.n) * depth > _TLB_BYTES
    load_b = _LOAD[0 if place == 0 or by_steps else 1 + many_pages]
    load_b = _LOAD_BYPASSING_L1[many_pages] if recipe.prefetch.b_bypasses_l1 else load_b
    loads = tiles * steps * (_tile_of_a(gemm, recipe, target, place) / q + load_b / p)
    loads += tiles * steps * (gemm.products_per_operand - 1) * (_LOAD[0] / q + _LOAD[0] / p)
    products = tiles * steps * gemm.products_per_operand * matrix.rows
    row_of_a, row_of_b = _packed_rows(gemm, recipe, place)
    lines = recipe.tile.kstep // recipe.mma.width  # rows of a tile of B
    packing = steps * (
        lines * columns * packs_b * gemm.packs_per_product * row_of_b + matrix.rows * rows * recipe.packing.a * row_of_a
    )
    crosses = gemm.c.row_stride * bits_of(recipe.mma.accumulator) // 8 % LINE and gemm.m > 1
    store = _STORE[place] * (_CROSSING if crosses else 1)
    once = _CONFIGURATION if gemm.batch is None else 0  # a loop configures once, and its rounds overlap
    busy = max(products, loads) + tiles * store + packing
    return once + max(busy, transfer_cycles(gemm.a.bytes_moved + gemm.b.bytes_moved, target))


def _packed_rows(gemm: Gemm, recipe: Recipe, place: int) -> tuple[float, float]:
    """Cycles of a row of a packed tile of A, and of B; `place`: where operands and what is packed are together."""
    deep = _MASKED if gemm.k % recipe.tile.kstep else 0
    masked_a = _MASKED if any(r.padding for r in row_ranges(gemm, recipe)) else deep
    masked_b = _MASKED if any(c.padding for c in column_ranges(gemm, recipe)) else deep
    row_of_b = _PACKED_ROW[0 if packs_by_steps(gemm, recipe) else place] + masked_b
    if not gemm.a.is_row_major:
        return _TRANSPOSED_ROW[place] + masked_a, row_of_b
    return _PACKED_ROW[place if recipe.blocks.mc > recipe.tile.mr else 0] + masked_a, row_of_b


def _tile_of_a(gemm: Gemm, recipe: Recipe, target: Target, place: int) -> float:
    """Cycles of loading a tile of A.

    Where A does not stay in the second cache, a row tile comes from behind it for the first panel of each block.
    """
    if place == 0 or stays_near(gemm, recipe, target):
        return _LOAD[0]
    first = (
        min(1.0, recipe.tile.nr / min(recipe.blocks.nc, gemm.n)) if gemm.a.bytes_moved > target.caches.l2 // 2 else 0.0
    )
    row_tile = recipe.tile.mr * gemm.total_k * bytes_of(gemm.a.element)
    half = min(1.0, target.caches.l1 / row_tile / 2)  # of what would fit, as rows take turns
    stays = recipe.prefetch.b_bypasses_l1 * half
    return (1 - first) * (stays * _LOAD[0] + (1 - stays) * _LOAD[1]) + first * _LOAD[-1]


def _holding_level(gemm: Gemm, recipe: Recipe, target: Target, packed: int) -> int:
    """Where operands, result and so many bytes of packed ones are together: first cache, second, or beyond."""
    operands = gemm.total_k * (gemm.m + gemm.n) * bits_of(gemm.a.element) // 8
    total = operands + packed + gemm.m * gemm.n * bits_of(recipe.mma.accumulator) // 8
    return (total > target.caches.l1) + (total > target.caches.l2)


def transfer_cycles(size: float, target: Target) -> float:
    """Cycles in which so many bytes come from the cache or memory that holds them all; none from the first cache."""
    if size <= target.caches.l1:
        return 0
    return size / (L2_BYTES_PER_CYCLE if size <= target.caches.l2 else MEMORY_BYTES_PER_CYCLE)


def with_memory_stalls(cycles: float, gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles of a kernel by vector tiles whose operands come from beyond the first cache, given those on what is near.

    A     once, or for each block of columns where it does not stay in the second cache
    B     packing waits for it, and products wait for what was packed earlier. What is not packed is read in runs as
          long as a tile is wide, and caches and memory take a while to notice each run, where no tile asks for it
    C     read, as lines are, and written, in each pass over K

    What comes from beyond the second cache is hardly overlapped (measured: Xeon with AMX, float and double, 512 to 2048
    cubed). Where each pass over K asks for the part of B that the next one reads, and multiplies for as long as that
    takes to come, only the first one waits, and C stays near; where tiles ask for A and C, an eighth of them does.
    """
    a, b = (view.bytes_moved * len(gemm.term_offsets) for view in (gemm.a, gemm.b))
    c = gemm.c.bytes_moved
    passes = -(-gemm.k // recipe.blocks.kc)
    waiting = _with_b(cycles, gemm, recipe, target)
    if a + b + c <= target.caches.l2:
        return waiting
    if recipe.prefetch.locality:
        waiting = cycles if cycles >= b / MEMORY_BYTES_PER_CYCLE else waiting
        return waiting + (a + b / passes) / MEMORY_BYTES_PER_CYCLE + 2 * c * passes / L2_BYTES_PER_CYCLE
    blocks = -(-gemm.n // recipe.blocks.nc) if a > target.caches.l2 // 4 else 1
    a_waits, c_waits = (_PREFETCHED if operand in recipe.prefetch.operands else 1.0 for operand in "AC")
    return waiting + (a_waits * a * blocks + c_waits * 2 * c * passes) / MEMORY_BYTES_PER_CYCLE


def vector_efficiency(gemm: Gemm, recipe: Recipe, target: Target, dot: Dot | None) -> float:
    """The part of the vectors' peak that a kernel should reach, called again and again: calls run into one another."""
    products, others = _vector_parts(gemm, recipe, target, dot)
    cycles = products + _BESIDE * others
    if gemm.batch is None:
        cycles = with_memory_stalls(cycles, gemm, recipe, target)
    return min(1.0, ideal_cycles(gemm, recipe.mma.accumulator, target, dot) / cycles)


def ideal_cycles(gemm: Gemm, accumulator: Type, target: Target, dot: Dot | None) -> float:
    """Cycles of the products alone on vectors, all lanes filled."""
    lanes = target.vector_bytes * 8 // bits_of(accumulator)
    each = dot.cycles / dot.width if dot else 1 / target.core.products
    return gemm.m * gemm.n * gemm.total_k / lanes * each


def _with_b(cycles: float, gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles of a kernel that waits for B alone."""
    moves = gemm.b.bytes_moved
    if recipe.packing.b and moves > target.caches.l1:
        packed = gemm.k * gemm.n * bytes_of(recipe.mma.operand_b)
        read = transfer_cycles(packed, target) if gemm.packs_per_product < 1 else 0
        return hypot(cycles + packed / target.vector_bytes * _FAR_PACKED * gemm.packs_per_product, read)
    run = min(recipe.tile.nr, gemm.n) * bytes_of(gemm.b.element)
    noticed = _STREAM_DETECTION_BYTES / run if moves > target.caches.l2 and "B" not in recipe.prefetch.operands else 0
    return max(cycles, transfer_cycles(moves, target) * (1 + noticed))


def vector_cycles(gemm: Gemm, recipe: Recipe, target: Target, dot: Dot | None) -> float:
    """Cycles of a product on vector registers, by multiply-adds or a dot product."""
    return sum(_vector_parts(gemm, recipe, target, dot)) + _CALL


def _vector_parts(gemm: Gemm, recipe: Recipe, target: Target, dot: Dot | None) -> tuple[float, float]:
    """Cycles of register tiles' products; and of packing, storing column by column, and columns summed otherwise."""
    core, lanes = target.core, recipe.tile.lanes
    terms, steps = len(gemm.term_offsets), -(-gemm.k // recipe.tile.kstep)
    vectors = -(-(gemm.n - recipe.tile.dot_columns - recipe.tile.paired_columns) // lanes)
    slower = max(1.0, dot.cycles * core.products) if dot is not None else 1.0
    pairs = paired_columns_cycles(gemm, target, recipe.tile.mr) if recipe.tile.paired_columns else 0
    if not vectors:
        return pairs, terms * _packed_a(gemm, recipe, target)
    products = slower * steps * product_cycles(core, gemm.m, vectors, recipe.tile.mr, recipe.tile.nr // lanes)
    corrected = _CORRECTED if recipe.mma.correction != "none" else 0
    near = (
        gemm.b.is_row_major
        or gemm.b.interleave > 1
        or gemm.a.bytes_moved + gemm.b.bytes_moved + gemm.c.bytes_moved <= target.caches.l2
    )
    packed_b = (_PACKED if near else _TRANSPOSED_COLUMN * lanes) + corrected
    others = steps * vectors * packed_b * gemm.packs_per_product if recipe.packing.b else 0
    others += _packed_a(gemm, recipe, target)
    if not gemm.c.is_row_major:
        column = max(1, LINE // 2 // bytes_of(gemm.c.element))
        others += transposed_store_cycles(gemm.m, vectors, recipe.tile.mr, column)
    along = dot_product_columns_cycles(gemm, target, recipe.tile.dot_columns, lanes) if recipe.tile.dot_columns else 0
    return terms * products, terms * others + along + pairs


def _packed_a(gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles to pack A: registers of its rows, or one column after the other of its row tiles; none where it is not."""
    if not recipe.packing.a:
        return 0
    if recipe.mma.unit == "fma" and not gemm.a.is_row_major:
        return gemm.k * copied_a_cycles(gemm.m, recipe.tile.mr, max(1, LINE // 2 // bytes_of(recipe.mma.operand_a)))
    return gemm.m * -(-gemm.k * bits_of(recipe.mma.operand_a) // (8 * target.vector_bytes)) * _PACKED


_DOT_PRODUCT_FOLDED: Final = 3
"""Cycles to add up the lanes of a sum and to store it, of several together."""
_DOT_PRODUCT_COPIED: Final = 2
"""Cycles to copy an element of B."""


def dot_product_columns_cycles(gemm: Gemm, target: Target, count: int, lanes: int) -> float:
    """About how many cycles sums along K take, for so many columns."""
    core = target.core
    step = max(count / core.products, (1 + count / 4) / core.loads)
    return gemm.m * (-(-gemm.k // lanes) * step + count * _DOT_PRODUCT_FOLDED) + gemm.k * count * _DOT_PRODUCT_COPIED


def dot_product_rows(target: Target, count: int) -> int:
    """Rows of so many sums that fit the registers, beside a part of each column and a part of a row."""
    return (target.registers - 1) // count - 1


_INTERLEAVED: Final = (1.0, 2.5)
"""Cycles to interleave two rows of B in registers, and to store them."""
_PAIR_FOLDED: Final = 0.75
"""Cycles to add up the sums of a row."""


def paired_step_cycles(gemm: Gemm, target: Target, mr: int, vectors: float) -> float:
    """Cycles of a step along K for all rows, in tiles of up to `mr`: what the ports allow.

    The model of `cost` has a tile of one register a row wait for loads: 12x16 would take 7.9 cycles. It takes 6.5.
    """
    core, tiles = target.core, -(-gemm.m // mr)
    rows = gemm.m / tiles
    return tiles * max(rows * vectors / core.products, (rows + vectors) / core.loads, core.latency)


def paired_columns_cycles(gemm: Gemm, target: Target, mr: int) -> float:
    """About how many cycles the columns take that are summed by pairs, in tiles of up to `mr` rows."""
    steps = -(-gemm.k // PAIR)
    stored = not pairs_stay_in_registers(steps, target)
    return steps * (paired_step_cycles(gemm, target, mr, 1) + _INTERLEAVED[stored]) + gemm.m * _PAIR_FOLDED


def pairs_stay_in_registers(steps: int, target: Target) -> bool:
    """Whether so many pairs of B's rows stay in a quarter of the registers."""
    return steps <= target.registers // 4
