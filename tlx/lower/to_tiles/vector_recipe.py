"""Register tile and cache blocks of a product on vector registers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from tlx.ir.types import BFLOAT, FLOAT, HALF, I8, I16, Type, bits_of
from tlx.knobs import NO_KNOBS, Knobs
from tlx.lower.signs import MMA_NAMES
from tlx.lower.to_tiles import given
from tlx.lower.to_tiles.cost import Shape, predicted_share, register_tile
from tlx.lower.to_tiles.last_columns import last_columns
from tlx.lower.to_tiles.memory import LINE
from tlx.lower.to_tiles.next_round import streamed
from tlx.lower.to_tiles.next_tile import asked_for
from tlx.lower.to_tiles.pairs import last_pairs, pair_cycles
from tlx.lower.to_tiles.passes import fits_unpacked, holds_sums, is_far, k_block, rows_share_sets
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe, up
from tlx.lower.to_tiles.units import share_with_waits
from tlx.target import Dot, Sign, Target

_ELEMENTS: Final[dict[str, Type]] = {str(t): t for t in (I8, I16, HALF, BFLOAT)}
_AHEAD: Final = 8
_NARROWEST: Final = 128
_HALF_LINE: Final = LINE // 2
_OF_L3: Final = 4
"""Part of the last cache that all of A, packed, may take."""
_PACKED_AGAIN: Final = 2
"""Times that A is packed at most: a copy is read faster than it is made, from wherever it comes."""
_MOST_WIDENED: Final = 2
"""Times that an operand is converted, by one instruction, before packing it costs less."""


def vector_recipe(
    gemm: Gemm,
    target: Target,
    accumulator: Type,
    dot: Dot | None,
    signs: tuple[Sign, Sign],
    correction: Literal["none", "columns", "rows"],
    knobs: Knobs = NO_KNOBS,
) -> Recipe:
    """The recipe for a product by multiply-adds, or by a dot product with these signs and that correction.

    Raises:
        UsageError: The knobs do not fit.
    """
    full = target.vector_bytes * 8 // bits_of(accumulator)
    lanes = full if dot else _lanes(gemm.n, full, bits_of(accumulator))
    width = dot.width if dot else 1
    spare = int(correction == "columns") + (dot.temporaries if dot else 0)
    tile = given.vector_tile(knobs, target, lanes, spare=spare)
    operand_a = _ELEMENTS[dot.lhs[0]] if dot else accumulator
    operand_b = _ELEMENTS[dot.rhs[0]] if dot else accumulator
    size = bits_of(operand_b) // 8
    pack_b = given.packing(
        "B",
        knobs.pack_b,
        _why_pack_b(gemm, operand_b, dot, correction, lanes),
        not fits_unpacked(gemm, target, accumulator, size),
    )
    exact = holds_sums(gemm, accumulator)
    kc = given.k_block(gemm, knobs, width, exact=exact, model=k_block(gemm, target, accumulator, width, pack_b=pack_b))
    shape = Shape(gemm.m, gemm.n, lanes, target.caches.l1 // 2 // (kc * len(gemm.sums) * lanes * size))
    plain = dot is None and not knobs and _reads_b(gemm, target, accumulator) and kc >= gemm.k
    packs_a = plain and gemm.a.element != accumulator
    reads_b = plain or (dot is None and not pack_b and knobs.pack_a is not True)
    dots = last_columns(gemm, target, accumulator, shape, spare=spare, packs_a=packs_a) if reads_b else 0
    whole = replace(shape, lanes=full)
    pairs = last_pairs(gemm, target, accumulator, whole, packs_a=packs_a, dots=dots) if plain else 0
    dots = 0 if pairs else dots
    lanes = full if pairs else lanes
    shape = replace(shape, n=gemm.n - dots - pairs or pairs, lanes=lanes)
    by_columns = dot is None and knobs.pack_a is not False and _is_long(gemm, target, kc)
    shape = _by_columns(gemm, shape, copied=by_columns and gemm.n > shape.lanes, size=size)
    mr, nv = tile or register_tile(shape, target.registers, target.core, spare=spare)
    nr = nv * lanes
    widens = dot is None and knobs.pack_b is None and _widens_as_it_reads(gemm, target, accumulator, (mr, lanes))
    if dots or pairs or widens:
        operand_b, pack_b = gemm.b.element, False
    pack_a = given.packing(
        "A", knobs.pack_a, _why_pack_a(gemm, operand_a, width, correction), _a_lies_scattered(gemm, target, kc, nr)
    )
    depth = kc * len(gemm.sums)
    row = up(depth, width) * bits_of(operand_a) // 8
    by_columns = dot is None and pack_a and not gemm.a.is_row_major
    mc, nc = _cache_blocks(gemm, target, (mr, nr), (row, up(depth, width) * size), pack_a=pack_a, by_columns=by_columns)
    share = predicted_share(shape, target.core, (mr, nv)) * lanes / full
    if pairs == gemm.n:
        share = gemm.m * gemm.n * gemm.k / full / target.core.products / pair_cycles(gemm, target, mr)
    roomy = given.needed_registers(mr, nv, spare=spare) < target.registers  # else prefetches make LLVM spill
    useful = _comes_from_afar(gemm, target, (kc, nr), size, pack_b=pack_b)
    ahead = _AHEAD * (roomy and useful) if knobs.ahead is None else knobs.ahead
    recipe = Recipe(
        operand_a, operand_b, accumulator, MMA_NAMES[signs], width, "dot" if dot else "fma", correction,
        mr, nr, width, lanes, pack_a, pack_b, kc, mc, nc, share, ahead, dots=dots, pairs=pairs,
    )  # fmt: skip
    mc, nc = given.blocks(gemm, knobs, recipe)
    recipe = _completed(gemm, replace(recipe, mc=mc, nc=nc), target, row)
    if "B" in recipe.asks and knobs.nc is None:
        recipe = replace(recipe, nc=nr)  # tiles of both heights meet a panel before the next one does
    return recipe


def _comes_from_afar(gemm: Gemm, target: Target, panel: tuple[int, int], size: int, *, pack_b: bool) -> bool:
    """Whether a panel of B, K by columns of `size` bytes, is not in the first cache when it is read."""
    kc, nr = panel
    as_it_lies = not pack_b and (is_far(gemm, target) or rows_share_sets(gemm, size))
    return as_it_lies or 2 * kc * nr * size > target.caches.l1


def _completed(gemm: Gemm, recipe: Recipe, target: Target, row: int) -> Recipe:
    """With what follows from tiles and blocks; a row of A has so many bytes."""
    share = recipe.share
    several = recipe.pack_a and recipe.correction != "rows" and (recipe.nc < gemm.n or 0 < recipe.pairs < gemm.n)
    recipe = replace(recipe, whole_a=several and _is_packed_whole(gemm, target, row, recipe.nc))
    recipe = streamed(gemm, recipe, target)
    recipe = replace(recipe, asks=asked_for(gemm, recipe, target))
    share = share if gemm.batch is not None else share_with_waits(gemm, recipe, target)
    return replace(recipe, share=share)


def _is_packed_whole(gemm: Gemm, target: Target, row: int, nc: int) -> bool:
    """Whether an A that several blocks of columns read, rows of so many bytes, is packed once for all of them.

    The last cache holds it, or there are many blocks; else each of them packs it anew.
    """
    return gemm.m * row <= target.caches.l3 // _OF_L3 or gemm.n > _PACKED_AGAIN * nc


def _cache_blocks(
    gemm: Gemm, target: Target, tile: tuple[int, int], line: tuple[int, int], *, pack_a: bool, by_columns: bool
) -> tuple[int, int]:
    """Rows and columns of a cache block, of an A whose rows, and a B whose columns have so many bytes.

    An A that is copied column by column is copied as a whole where several blocks of columns read it, and lies in rows
    then; else it is copied block by block, and goes by beside B.
    """
    (mr, nr), (row, column), l2 = tile, line, target.caches.l2
    if by_columns:
        mc, nc = _blocks(target, tile, (gemm.m, row), (column, l2 // 2), pack_a=False)
        if nc < gemm.n and _is_packed_whole(gemm, target, row, nc):
            return mc, nc
    mc, nc = _blocks(target, tile, (gemm.m, row), (column, l2 // (4 if by_columns else 2)), pack_a=pack_a)
    if pack_a and gemm.n <= nr and gemm.a.is_row_major:
        mc = mr  # a row tile is packed right before its only product, and stays near
    return mc, nc


def _blocks(
    target: Target, tile: tuple[int, int], a: tuple[int, int], b: tuple[int, int], *, pack_a: bool
) -> tuple[int, int]:
    """Rows and columns of a cache block; A has rows of so many bytes, B columns of so many and room for so many.

    B's block stays in a part of the second cache, beside all of A where that is small, while A goes by. Where
    a panel of B stays in the first cache, it meets many row tiles there; else it comes from the second cache for each
    of them, and the rows of an A that is large meet all panels instead. Rows are packed many at a time.
    """
    caches = target.caches
    mr, nr = tile
    (rows, row), (column, for_b) = a, b
    beside = rows * row if rows * row <= caches.l2 // 4 else 0
    nc = max(nr, (for_b - beside) // column // nr * nr)
    held = caches.l2 // 4 if pack_a or beside or column * nr <= caches.l1 // 2 else caches.l1
    return max(mr, held // row // mr * mr), nc


def _lanes(n: int, full: int, bits: int) -> int:
    """Elements of a register: parts of one where a row fills no more, which are loaded faster than whole ones."""
    while n <= full // 2 and full * bits > _NARROWEST:
        full //= 2
    return full


def _why_pack_a(gemm: Gemm, operand: Type, width: int, correction: str) -> str:
    """Why A has to be packed; empty where it need not."""
    if gemm.a.element != operand:
        return f"{gemm.a.element} becomes {operand}"
    return "a dot product reads neighbours along K" if _dot_needs_packed_a(gemm, width, correction) else ""


def _why_pack_b(gemm: Gemm, operand: Type, dot: Dot | None, correction: str, lanes: int) -> str:
    """Why B has to be packed; empty where it need not."""
    if dot is not None and gemm.b.group == dot.width:
        if correction != "none":
            return "its columns are summed up" if correction == "columns" else "its bytes change sign"
        return f"N {gemm.n} is filled up to a multiple of {lanes}" if gemm.n % lanes else ""
    if dot is not None:
        return "a dot product reads neighbours along K"
    if gemm.b.element != operand:
        return f"{gemm.b.element} becomes {operand}"
    return "" if gemm.b.is_row_major else "it is column-major"


def _widens_as_it_reads(gemm: Gemm, target: Target, accumulator: Type, tile: tuple[int, int]) -> bool:
    """Whether B is read so seldom that converting it each time is less than converting, storing and reading it."""
    rows, lanes = tile
    converted = gemm.b.element == HALF and accumulator == FLOAT and target.converts_half
    times = _MOST_WIDENED if gemm.n % lanes == 0 else 1  # a part of a register takes more than one instruction
    fits = fits_unpacked(gemm, target, accumulator, bits_of(HALF) // 8)
    return converted and fits and gemm.m <= times * rows


def _reads_b(gemm: Gemm, target: Target, accumulator: Type) -> bool:
    """Whether B can be read as it lies, or converted as it is read, for two row tiles at most."""
    if not fits_unpacked(gemm, target, accumulator, bits_of(gemm.b.element) // 8):
        return False
    converted = gemm.b.element == HALF and accumulator == FLOAT and target.converts_half
    return gemm.b.element == accumulator or (converted and gemm.m <= target.registers // 2)


def _dot_needs_packed_a(gemm: Gemm, width: int, correction: str) -> bool:
    """A dot product reads `width` neighbours along K at once, and nothing behind the end of a row."""
    return width > 1 and (correction != "none" or gemm.k % width != 0 or not gemm.a.is_row_major)


def _is_long(gemm: Gemm, target: Target, kc: int) -> bool:
    """Whether A is column-major, and a line for each position of K is more than half of the first cache."""
    return not gemm.a.is_row_major and kc * LINE > target.caches.l1 // 2


def _a_lies_scattered(gemm: Gemm, target: Target, kc: int, nr: int) -> bool:
    """A row tile of a column-major A touches a cache line for each position of K: copied once, it is read in order."""
    return _is_long(gemm, target, kc) and gemm.n > 2 * nr


def _by_columns(gemm: Gemm, shape: Shape, *, copied: bool, size: int) -> Shape:
    """The shape with what it costs to store C, or to copy A, column by column."""
    if copied:
        shape = replace(shape, copied=max(1, _HALF_LINE // size))
    if gemm.c.is_row_major or gemm.batch is not None or len(gemm.sums) > 1:
        return shape
    return replace(shape, turned=gemm.depth, column=max(1, _HALF_LINE * 8 // bits_of(gemm.c.element)))
