"""Recipes on vector registers: register tile, N tail and cache blocks of a product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tlx.ir.types import BFLOAT, FLOAT, HALF, I8, I16, Type, bits_of, bytes_of
from tlx.lower.cost import RegisterTileProblem, needed_registers, product_cycles, register_tile
from tlx.lower.knobs import Knobs
from tlx.lower.operations import MMA_NAMES
from tlx.lower.to_tiles.prefetch import with_prefetches
from tlx.lower.to_tiles.problem import Gemm, c_holds_sums
from tlx.lower.to_tiles.select import knob_constraints
from tlx.lower.to_tiles.select.blocking import (
    b_misses_l2,
    cache_blocks,
    elements_of_a,
    is_packed_whole,
    k_pass,
    may_split_k,
    reads_b_unpacked,
    rows_are_pages_apart,
)
from tlx.lower.to_tiles.select.recipe import (
    PAIR,
    CacheBlockSizes,
    Correction,
    MultiplyAdd,
    PackedOperands,
    PrefetchChoices,
    Recipe,
    RegisterTileShape,
    round_up,
)
from tlx.lower.to_tiles.select.recipe_cost import (
    dot_product_columns_cycles,
    dot_product_rows,
    paired_columns_cycles,
    paired_step_cycles,
    vector_efficiency,
)
from tlx.target.costs.core import CoreModel
from tlx.target.costs.limits import KernelLimits
from tlx.target.costs.memory import Caches
from tlx.target.instructions.dots import Dot, Sign
from tlx.target.target import Target

_ELEMENTS: Final[dict[str, Type]] = {str(t): t for t in (I8, I16, HALF, BFLOAT)}
_NARROWEST: Final = 128
_L2_MISS_STEPS: Final = 4
"""How much further ahead panels from beyond L2 are prefetched.

Zen 5, 8x4096x4096 by 8 and 32 steps ahead, in GOP/s: float 125 and 146, bfloat 227 and 306, i8 560 and 717; 49x512x4608
float 225 and 249, bfloat 533 and 516.
"""
_L2_MISS_SHARE: Final = 3
"""Inverse of the share of L1 that the prefetched steps of such a panel may fill: they are read before they are evicted.

Xeon (6/207/2), 1x4096x4096 by 59 KB and by 15 KB ahead, as shares of a stream that only reads B, 2026-11-28: float 91 %
and 104 %, bfloat 83 % and 104 %, i8 89 % and 103 %.
"""

_STREAMED_COLUMNS: Final = 32
"""Columns of the panels that a product of one row reads from beyond L2: few, as threads share them out.

One thread reads them as fast as panels of 464 columns, of which 768 columns have only two (0.97 to 1.02 of the time,
1x3072x768, 1x768x3072 and 1x4096x4096 floats, one core of a Xeon 6/167/1, 2026-11-30). Narrow panels for dot products
of bytes take 1.06 to 1.18 times as long.
"""
_LEAST_SUMS: Final = 2
"""Registers of sums that such a panel has at least, as each multiply-add waits for the one before."""


@dataclass(frozen=True, slots=True)
class _VectorProduct:
    """A product, and the instruction that multiplies it.

    Attributes:
        gemm: The product.
        target: The machine.
        accumulator: Type of its sums.
        dot: The dot product; None for multiply-adds.
        correction: Which sums correct the result; see `MultiplyAdd`.
    """

    gemm: Gemm
    target: Target
    accumulator: Type
    dot: Dot | None
    correction: Correction

    @property
    def full(self) -> int:
        """Sums that a register holds."""
        return self.target.vector_bytes * 8 // bits_of(self.accumulator)

    @property
    def width(self) -> int:
        """Consecutive positions of K that an instruction multiplies at once."""
        return self.dot.width if self.dot else 1

    @property
    def spare(self) -> int:
        """Registers that hold neither operands nor sums."""
        limits = self.target.core.limits.k_loop
        ahead = self.dot.scratch_registers + limits.spare_dot_registers if self.dot else limits.spare_registers
        return int(self.correction == "columns") + ahead

    @property
    def operand_a(self) -> Type:
        """Element type that A is read as."""
        return _ELEMENTS[self.dot.lhs[0]] if self.dot else self.accumulator

    @property
    def operand_b(self) -> Type:
        """Element type of B's panels."""
        return _ELEMENTS[self.dot.rhs[0]] if self.dot else self.accumulator

    @property
    def b_bytes(self) -> int:
        """Bytes of an element of B, packed."""
        return bits_of(self.operand_b) // 8

    def k_block(self, knobs: Knobs, *, pack_b: bool) -> int:
        """Positions of K in a pass."""
        model = k_pass(self.gemm, self.target, self.accumulator, self.width, pack_b=pack_b)
        splits = may_split_k(self.gemm, self.target, self.accumulator)
        return knob_constraints.k_block(self.gemm, knobs, self.width, splits=splits, default=model)


class _ColumnSums(NamedTuple):
    """How columns of C are summed.

    Attributes:
        shape: The columns of register tiles, or those summed by pairs where there are no others.
        dots: Number of last columns that are dot products, vectorized along K.
        pairs: Number of last columns that are summed in even and odd positions of K.
    """

    shape: RegisterTileProblem
    dots: int
    pairs: int


def vector_recipe(
    gemm: Gemm,
    target: Target,
    accumulator: Type,
    dot: Dot | None,
    signs: tuple[Sign, Sign],
    correction: Correction,
    knobs: Knobs,
) -> Recipe:
    """The recipe for a product by multiply-adds, or by a dot product with these signs and that correction.

    Raises:
        UsageError: The knobs do not fit.
    """
    product = _VectorProduct(gemm, target, accumulator, dot, correction)
    width, size, spare = product.width, product.b_bytes, product.spare
    lanes = product.full if dot else _lanes(gemm.n, product.full, bits_of(accumulator))
    tile = knob_constraints.vector_tile(knobs, target, lanes, spare=spare)
    unpacked = reads_b_unpacked(gemm, target, accumulator, size)
    pack_b = knob_constraints.packing("B", knobs.pack_b, _why_pack_b(product, lanes), not unpacked)
    kc = product.k_block(knobs, pack_b=pack_b)
    columns = _columns(product, knobs, (kc, lanes), pack_b=pack_b)
    lanes = columns.shape.lanes
    mr, nv = tile or register_tile(columns.shape, target.registers, target.core, spare=spare)
    if tile is None and dot is None and pack_b and gemm.m == 1 and _streams_panels(gemm, target.caches):
        nv = min(nv, max(_LEAST_SUMS, _STREAMED_COLUMNS // lanes))
    nr = nv * lanes
    widens = dot is None and knobs.pack_b is None and _widens_as_it_reads(gemm, target, accumulator, (mr, lanes))
    operand_b = product.operand_b
    if columns.dots or columns.pairs or widens:
        operand_b, pack_b = gemm.b.element, False
    pack_a = knob_constraints.packing(
        "A", knobs.pack_a, _why_pack_a(product), _is_packing_a_profitable(gemm, target.caches, kc, nr)
    )
    depth = round_up(kc * len(gemm.term_offsets), width)
    row = depth * bits_of(product.operand_a) // 8
    by_columns = dot is None and pack_a and not gemm.a.is_row_major
    mc, nc = cache_blocks(
        gemm, target.caches, target.core.limits, (mr, nr), (row, depth * size), pack_a=pack_a, by_columns=by_columns
    )
    useful = _prefetches_b(product, (kc, nr), pack_a=pack_a, pack_b=pack_b)
    has_spare = (
        needed_registers(mr, nv, spare=spare, elements=columns.shape.elements) < target.registers
    )  # else LLVM spills at prefetches
    steps = target.core.limits.prefetch.b_steps
    if _streams_panels(gemm, target.caches) and pack_b:
        steps = min(steps * _L2_MISS_STEPS, max(steps, target.caches.l1 // _L2_MISS_SHARE // (width * nr * size)))
    ahead = steps * (has_spare and useful) if knobs.ahead is None else knobs.ahead
    unit = "dot" if dot else "fma"
    recipe = Recipe(
        MultiplyAdd(unit, MMA_NAMES[signs], product.operand_a, operand_b, accumulator, width, correction),
        RegisterTileShape(mr, nr, width, lanes, columns.dots, columns.pairs),
        CacheBlockSizes(mc, nc, kc),
        PackedOperands(pack_a, pack_b),
        PrefetchChoices(b_steps=ahead),
    )
    mc, nc = knob_constraints.blocks(gemm, knobs, recipe)
    recipe = _completed(gemm, recipe.with_blocks(mc=mc, nc=nc), target, row)
    if "B" in recipe.prefetch.operands and knobs.nc is None:
        recipe = recipe.with_blocks(nc=nr)  # tiles of both heights use a panel before the next one is loaded
    return replace(recipe, efficiency=vector_efficiency(gemm, recipe, target))


def _columns(product: _VectorProduct, knobs: Knobs, block: tuple[int, int], *, pack_b: bool) -> _ColumnSums:
    """How columns are summed, given the positions of K in a pass and the columns of a register."""
    gemm, target, accumulator = product.gemm, product.target, product.accumulator
    (kc, lanes), size = block, product.b_bytes
    resident = target.caches.l1 // 2 // (kc * len(gemm.term_offsets) * lanes * size)
    by_rows = not gemm.is_interleaved and (gemm.a.is_row_major or product.dot is not None)
    elements = elements_of_a(target, accumulator) if by_rows else 1
    shape = RegisterTileProblem(gemm.m, gemm.n, lanes, resident, elements=elements)
    plain = product.dot is None and not knobs and _reads_b(gemm, target, accumulator) and kc >= gemm.k
    packs_a = plain and gemm.a.element != accumulator
    reads_b = plain or (product.dot is None and not pack_b and knobs.pack_a is not True)
    dots = (
        dot_product_columns(
            gemm, target.registers, target.core, accumulator, shape, spare=product.spare, packs_a=packs_a
        )
        if reads_b
        else 0
    )
    whole = replace(shape, lanes=product.full)
    pairs = paired_columns(gemm, target, accumulator, whole, packs_a=packs_a, dots=dots) if plain else 0
    dots, shape = (0, whole) if pairs else (dots, shape)
    shape = replace(shape, n=gemm.n - dots - pairs or pairs)
    long = product.dot is None and knobs.pack_a is not False and _column_lines_exceed_l1(gemm, target.caches, kc)
    return _ColumnSums(
        _by_columns(gemm, target.caches, shape, copied=long and gemm.n > shape.lanes, size=size), dots, pairs
    )


def _streams_panels(gemm: Gemm, caches: Caches) -> bool:
    """Whether B in panels comes from beyond L2 in each call: they were packed before all calls."""
    return gemm.packs_per_product == 0 and b_misses_l2(gemm, caches)


def _prefetches_b(product: _VectorProduct, panel: tuple[int, int], *, pack_a: bool, pack_b: bool) -> bool:
    """Whether it pays to prefetch B some steps ahead: not where interleaved sums read it sequentially."""
    gemm, target = product.gemm, product.target
    is_sequential = product.dot is None and gemm.is_interleaved and not pack_a and not pack_b
    return not is_sequential and _panel_misses_l1(
        gemm, target.caches, target.core.limits, panel, product.b_bytes, pack_b=pack_b
    )


def _panel_misses_l1(
    gemm: Gemm, caches: Caches, limits: KernelLimits, panel: tuple[int, int], size: int, *, pack_b: bool
) -> bool:
    """Whether a panel of B, K by columns of `size` bytes, misses L1 when it is read.

    Each term has a panel of its own, unless they overlap as the windows of an image do.
    """
    kc, nr = panel
    starts = [start for _, start in gemm.term_offsets]
    columns = min(nr * len(starts), nr + max(starts) - min(starts))
    strided = not pack_b and (b_misses_l2(gemm, caches) or rows_are_pages_apart(gemm, size, caches, limits))
    return strided or 2 * kc * columns * size > caches.l1


def _completed(gemm: Gemm, recipe: Recipe, target: Target, row: int) -> Recipe:
    """The recipe with the decisions that follow from tiles and blocks; `row` is the size of a row of A in bytes."""
    tile = recipe.tile
    several = recipe.mma.correction != "rows" and (recipe.blocks.nc < gemm.n or 0 < tile.paired_columns < gemm.n)
    # A is read back from memory while B, once converted, is in registers: the sooner it is packed, the better.
    is_paired = tile.paired_columns > 0 and gemm.m <= tile.mr
    whole = (several and is_packed_whole(gemm, target.caches, target.core.limits, row, recipe.blocks.nc)) or is_paired
    recipe = replace(recipe, packing=replace(recipe.packing, whole_a=recipe.packing.a and whole))
    return with_prefetches(gemm, recipe, target)


def _lanes(n: int, full: int, bits: int) -> int:
    """Elements of a register; a narrower one, where a row fills no more, loads faster than a masked full one."""
    while n <= full // 2 and full * bits > _NARROWEST:
        full //= 2
    return full


def _why_pack_a(product: _VectorProduct) -> str:
    """Why A has to be packed; empty where it need not."""
    element = product.gemm.a.element
    if element != product.operand_a:
        return f"{element} becomes {product.operand_a}"
    return "a dot product reads neighbours along K" if _dot_needs_packed_a(product) else ""


def _why_pack_b(product: _VectorProduct, lanes: int) -> str:
    """Why B has to be packed; empty where it need not."""
    gemm, correction = product.gemm, product.correction
    if product.dot is not None and gemm.b.interleave == product.width:
        if correction != "none":
            return "its columns are summed" if correction == "columns" else "its bytes change sign"
        return f"N {gemm.n} is padded to a multiple of {lanes}" if gemm.n % lanes else ""
    if product.dot is not None:
        return "a dot product reads neighbours along K"
    if gemm.b.element != product.operand_b:
        return f"{gemm.b.element} becomes {product.operand_b}"
    return "" if gemm.b.is_row_major else "it is column-major"


def _widens_as_it_reads(gemm: Gemm, target: Target, accumulator: Type, tile: tuple[int, int]) -> bool:
    """Whether B is read so rarely that converting it at each use is cheaper than packing it."""
    rows, lanes = tile
    converted = gemm.b.element == HALF and accumulator == FLOAT and target.narrow_floats.converts_half
    whole = gemm.n % lanes == 0  # loading a part of a register takes more than one instruction
    times = target.core.limits.packing.max_widening_uses if whole else 1
    fits = reads_b_unpacked(gemm, target, accumulator, bits_of(HALF) // 8)
    return converted and fits and gemm.m <= times * rows


def _reads_b(gemm: Gemm, target: Target, accumulator: Type) -> bool:
    """Whether B can be read unpacked, or converted as it is read by at most two row tiles."""
    if not reads_b_unpacked(gemm, target, accumulator, bits_of(gemm.b.element) // 8):
        return False
    converted = gemm.b.element == HALF and accumulator == FLOAT and target.narrow_floats.converts_half
    return gemm.b.element == accumulator or (converted and gemm.m <= target.registers // 2)


def _dot_needs_packed_a(product: _VectorProduct) -> bool:
    """Whether a dot product needs A packed: it reads `width` consecutive elements along K, none past a row's end."""
    gemm, width = product.gemm, product.width
    return width > 1 and (product.correction != "none" or gemm.k % width != 0 or not gemm.a.is_row_major)


def _column_lines_exceed_l1(gemm: Gemm, caches: Caches, kc: int) -> bool:
    """Whether A is column-major, and a cache line for each position of K exceeds half of L1."""
    return not gemm.a.is_row_major and kc * caches.line_bytes > caches.l1 // 2


def _is_packing_a_profitable(gemm: Gemm, caches: Caches, kc: int, nr: int) -> bool:
    """Whether copying a column-major A pays, whose row tiles read a cache line for each position of K."""
    return _column_lines_exceed_l1(gemm, caches, kc) and gemm.n > 2 * nr


def _by_columns(
    gemm: Gemm, caches: Caches, shape: RegisterTileProblem, *, copied: bool, size: int
) -> RegisterTileProblem:
    """The shape with what the cost of storing C, or copying A, column by column depends on."""
    half_line = caches.line_bytes // 2
    if copied:
        shape = replace(shape, copied_a=max(1, half_line // size))
    if gemm.c.is_row_major or gemm.batch is not None or len(gemm.term_offsets) > 1:
        return shape
    return replace(shape, transposed_store=gemm.total_k, column=max(1, half_line * 8 // bits_of(gemm.c.element)))


def dot_product_columns(
    gemm: Gemm,
    registers: int,
    core: CoreModel,
    accumulator: Type,
    shape: RegisterTileProblem,
    *,
    spare: int,
    packs_a: bool,
) -> int:
    """How many last columns are dot products along K: 0 where a register of padded columns takes fewer cycles.

    Args:
        gemm: The product, whose B is read unpacked.
        registers: Number of vector registers.
        core: The machine's core.
        accumulator: Type of the sums.
        shape: All of C.
        spare: Registers that are needed for something else.
        packs_a: Whether A is packed, as `accumulator`, else read in place.
    """
    count = gemm.n % shape.lanes
    if not count or gemm.n < shape.lanes or not _can_sum_along_k(gemm, accumulator, packs_a=packs_a):
        return 0

    def cycles(columns: int) -> float:
        part = replace(shape, n=columns)
        mr, nv = register_tile(part, registers, core, spare=spare)
        step = product_cycles(core, part.m, part.vectors, mr, nv, resident=part.resident, elements=part.elements)
        return gemm.k * step

    along = cycles(gemm.n - count) + dot_product_columns_cycles(gemm, core, count, shape.lanes)
    return count if along < cycles(gemm.n) and dot_product_rows(registers, count) > 1 else 0


def _can_sum_along_k(gemm: Gemm, accumulator: Type, *, packs_a: bool) -> bool:
    """Whether columns may be dot products along K, of which C holds the sums until they are complete."""
    reads = gemm.a.is_row_major and gemm.b.is_row_major and len(gemm.term_offsets) == 1
    known = gemm.a.element == accumulator or packs_a
    return gemm.is_float and gemm.acc is None and reads and known and c_holds_sums(gemm, accumulator)


def paired_columns(
    gemm: Gemm, target: Target, accumulator: Type, shape: RegisterTileProblem, *, packs_a: bool, dots: int
) -> int:
    """How many last columns are summed by pairs: 0 where a register of padded columns takes fewer cycles.

    Args:
        gemm: The product, whose B is read unpacked.
        target: The machine.
        accumulator: Type of the sums.
        shape: All of C, in whole registers.
        packs_a: Whether A is packed, with its rows padded with zeros.
        dots: Columns that would be dot products otherwise.
    """
    count, lanes = gemm.n % shape.lanes, shape.lanes
    if not 0 < count <= lanes // PAIR or not _can_pair(gemm, target, accumulator, packs_a=packs_a):
        return 0
    if gemm.k * lanes // PAIR * bytes_of(accumulator) > target.caches.l1 // 4:
        return 0  # pairs of B's rows would not stay in registers
    if gemm.n > count and gemm.a.bytes_moved > target.caches.l2 // 2:
        return 0  # A is read once more
    rest = gemm.n - count
    main = _register_tile_cycles(gemm, target.registers, target.core, rest, lanes) if rest else 0
    mr, _ = register_tile(replace(shape, n=rest or count), target.registers, target.core)
    other = (
        main + dot_product_columns_cycles(gemm, target.core, dots, lanes)
        if dots
        else _register_tile_cycles(gemm, target.registers, target.core, gemm.n, lanes)
    )
    return count if main + paired_columns_cycles(gemm, target.registers, target.core, mr) < other else 0


def _can_pair(gemm: Gemm, target: Target, accumulator: Type, *, packs_a: bool) -> bool:
    """Whether sums by pairs give the same result."""
    reads = gemm.a.is_row_major and gemm.b.is_row_major and gemm.c.is_row_major and len(gemm.term_offsets) == 1
    known = gemm.a.element == accumulator or packs_a
    stores = gemm.reduction is None and not (gemm.batch and gemm.batch.exceeds_caches(target.caches, target.memory))
    return gemm.is_float and target.instructions.has_fma and gemm.k >= PAIR and reads and known and stores


def _register_tile_cycles(gemm: Gemm, registers: int, core: CoreModel, columns: int, lanes: int) -> float:
    """Approximate cycles of register tiles with this number of columns."""
    mr, nv = register_tile(RegisterTileProblem(gemm.m, columns, lanes), registers, core)
    vectors = -(-columns // lanes)
    panels = -(-vectors // nv)
    return gemm.k * panels * paired_step_cycles(gemm, core, mr, vectors / panels)
