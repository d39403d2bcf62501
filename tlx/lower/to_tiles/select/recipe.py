"""The recipe of a product, and the tiles that it cuts M, N and K into: full ones, and padded or smaller edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from tlx.ir.builder import Builder
from tlx.ir.types import Type
from tlx.ir.values import Value
from tlx.lower.remarks import ArithmeticUnit
from tlx.lower.to_tiles.problem import Gemm

Correction = Literal["none", "columns", "rows"]
"""Which sums correct a product of flipped signs; see `MultiplyAdd`."""


@dataclass(frozen=True, slots=True)
class MultiplyAdd:
    """The instruction of the inner loop, and the types it works on.

    Attributes:
        unit: Which unit multiplies.
        name: Name of the mma intrinsic.
        operand_a, operand_b: Element types it reads.
        accumulator: Element type it adds to.
        width: Positions of K it multiplies at once (VNNI factor); 1 for plain multiply-add.
        correction: Which sums correct the result: of B's columns where A's signs are flipped, or of A's rows where B's
            are.
    """

    unit: ArithmeticUnit
    name: str
    operand_a: Type
    operand_b: Type
    accumulator: Type
    width: int = 1
    correction: Correction = "none"


@dataclass(frozen=True, slots=True)
class RegisterTileShape:
    """The register tile, and how the columns that do not fill it are summed.

    Attributes:
        mr, nr: Rows and columns.
        kstep: Positions of K per inner step.
        lanes: Accumulator elements per register, or columns of a matrix unit's tile.
        dot_columns: Last columns of C that are dot products: vectorized along K, see `emit.gemm.n_tail`.
        paired_columns: Last columns of C summed in even and odd positions of K, see `emit.gemm.n_tail`.
        streamed_rows: Rows of B read side by side, from end to end, with the sums in the first-level cache; 0 where the
            sums stay in registers.
        column_permutation: How many registers the columns of streamed rows are distributed over, and how many
            consecutive columns stay together; see `emit.gemm.kernel`.
        unit_rows: Rows of a tile of a matrix unit for this product; 0 for vectors.
    """

    mr: int
    nr: int
    kstep: int
    lanes: int
    dot_columns: int = 0
    paired_columns: int = 0
    streamed_rows: int = 0
    column_permutation: tuple[int, int] = (1, 1)
    unit_rows: int = 0


@dataclass(frozen=True, slots=True)
class CacheBlockSizes:
    """Cache blocks along M (rows), N (columns) and K (positions of a pass)."""

    mc: int
    nc: int
    kc: int


@dataclass(frozen=True, slots=True)
class PackedOperands:
    """Operands that are copied into panels before they are multiplied.

    Attributes:
        a, b: Whether the operand is packed.
        a_in_groups: Whether A is packed in groups along K, as B is, for a matrix unit that reads it so; else by rows.
        whole_a: Whether all rows of A are packed before anything is multiplied; else those of a block.
        prepacked_b: Whether another kernel has packed B, for several products or several calls.
        b_panel_offset: Byte offset of B's panels in a buffer that holds those of several versions; None for a buffer of
            its own.
    """

    a: bool
    b: bool
    whole_a: bool = False
    prepacked_b: bool = False
    b_panel_offset: int | None = None
    a_in_groups: bool = False


@dataclass(frozen=True, slots=True)
class PrefetchChoices:
    """What is prefetched, and which loads bypass a cache.

    Attributes:
        operands: Operands, some of "CAB", that a tile prefetches for later tiles.
        b_steps: How many steps ahead B is prefetched into the first-level cache; 0 for none.
        locality: Locality of the prefetches of a later iteration's operands, if the product is in a loop, else of B's
            rows of the next pass; 0 for none.
        distance: How many iterations ahead they are.
        b_bypasses_l1: Whether tiles of B are loaded without entering the first-level cache.
    """

    operands: str = ""
    b_steps: int = 0
    locality: int = 0
    distance: int = 1
    b_bypasses_l1: bool = False


@dataclass(frozen=True, slots=True)
class StoreChoices:
    """How C is stored.

    Attributes:
        nontemporal: Whether by non-temporal stores, where it is aligned.
        prefetches_lines: Whether a tile prefetches the cache lines of C that it will be stored to.
    """

    nontemporal: bool = False
    prefetches_lines: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """The decisions for one product on one target.

    Attributes:
        mma: The instruction and its types.
        tile: The register tile.
        blocks: Cache blocks.
        packing: Operands that are packed.
        prefetch: What is prefetched.
        stores: How C is stored.
        efficiency: Predicted fraction of the unit's peak, 0 to 1.
    """

    mma: MultiplyAdd
    tile: RegisterTileShape
    blocks: CacheBlockSizes
    packing: PackedOperands
    prefetch: PrefetchChoices = PrefetchChoices()
    stores: StoreChoices = StoreChoices()
    efficiency: float = 1.0

    def with_blocks(self, *, mc: int | None = None, nc: int | None = None) -> Recipe:
        """The recipe with other blocks along M and N."""
        blocks = replace(self.blocks, mc=mc or self.blocks.mc, nc=nc or self.blocks.nc)
        return replace(self, blocks=blocks)

    def with_prepacked_b(self) -> Recipe:
        """The recipe for a B that another kernel has packed."""
        return replace(self, packing=replace(self.packing, prepacked_b=True))


def round_up(value: int, step: int) -> int:
    """The value rounded up to a multiple of the step."""
    return -(-value // step) * step


@dataclass(frozen=True, slots=True)
class EqualTiles:
    """`count` equal tiles of `size` from `start` on; the last `padding` positions of each hold no data."""

    start: int
    count: int
    size: int
    padding: int = 0

    @property
    def valid(self) -> int:
        """Positions of a tile that hold data."""
        return self.size - self.padding

    def start_of(self, b: Builder, number: Value) -> Value:
        """The position at which a tile, given by its number, begins."""
        return b.add(b.mul(number, self.size), self.start)


def padded_tiles(extent: int, size: int, granule: int) -> list[EqualTiles]:
    """Full tiles, and one for the rest, padded to a multiple of `granule`."""
    full, rest = divmod(extent, size)
    ranges = [EqualTiles(0, full, size)] if full else []
    if rest:
        rounded = -(-rest // granule) * granule
        ranges.append(EqualTiles(full * size, 1, rounded, rounded - rest))
    return ranges


def overlapping_tiles(extent: int, size: int, granule: int) -> list[EqualTiles]:
    """Full tiles, and one for the rest, of as many granules as it needs, that ends at the edge.

    |--------|--------|
                   |----|      overlaps the tile before it: some positions are computed twice
    """
    full, rest = divmod(extent, size)
    rounded = -(-rest // granule) * granule
    if not rest or rounded > extent:
        return padded_tiles(extent, size, granule)
    ranges = [EqualTiles(0, full, size)] if full else []
    return [*ranges, EqualTiles(extent - rounded, 1, rounded)]


def row_ranges(gemm: Gemm, recipe: Recipe) -> list[EqualTiles]:
    """Tiles along M.

    A matrix unit works on tiles of one height: the last ones overlap or are padded. Vector code splits M evenly into
    tiles of two heights that differ by one: 100 rows by 8 are 9 tiles of 8 and 4 of 7.
    """
    if recipe.mma.unit == "matrix":
        split = overlapping_tiles if gemm.is_repeatable else padded_tiles
        return split(gemm.m, recipe.tile.mr, recipe.tile.unit_rows)
    tiles = -(-gemm.m // recipe.tile.mr)
    height, taller = divmod(gemm.m, tiles)
    ranges = [EqualTiles(0, taller, height + 1)] if taller else []
    return [*ranges, EqualTiles(taller * (height + 1), tiles - taller, height)]


def column_ranges(gemm: Gemm, recipe: Recipe) -> list[EqualTiles]:
    """Panels along N.

    A matrix unit's last panel overlaps or is padded, as row tiles are; a last strip is padded. Vector code splits the
    registers of a row evenly into panels of two widths that differ by one register; where N ends inside a register,
    the last panel is separate:

        N = 100, 16 lanes, up to 4 registers      64 | 36 + 12 of padding
        N = 24, 8 of them as pairs                16 | 8
    """
    if recipe.mma.unit == "matrix":
        may_overlap = gemm.is_repeatable and not gemm.b.in_strips
        return (overlapping_tiles if may_overlap else padded_tiles)(gemm.n, recipe.tile.nr, recipe.tile.lanes)
    tile, lanes = recipe.tile, recipe.tile.lanes * recipe.tile.column_permutation[0]
    columns = gemm.n - tile.dot_columns - tile.paired_columns
    paired = [EqualTiles(columns, 1, lanes // 2, lanes // 2 - tile.paired_columns)] if tile.paired_columns else []
    if not columns:
        return paired
    vectors = -(-columns // lanes)
    panels = -(-vectors // (recipe.tile.nr // lanes))
    narrow, wider = divmod(vectors, panels)
    sizes = [(wider, (narrow + 1) * lanes), (panels - wider, narrow * lanes)]
    return [*_last_padded([(count, size) for count, size in sizes if count], vectors * lanes - columns), *paired]


def _last_padded(sizes: list[tuple[int, int]], padding: int) -> list[EqualTiles]:
    """Consecutive ranges of (count, size); the last tile of all is padded."""
    ranges: list[EqualTiles] = []
    start = 0
    for count, size in sizes:
        ranges.append(EqualTiles(start, count, size))
        start += count * size
    if not padding:
        return ranges
    last = ranges.pop()
    if last.count > 1:
        ranges.append(EqualTiles(last.start, last.count - 1, last.size))
    return [*ranges, EqualTiles(start - last.size, 1, last.size, padding)]


def k_passes(gemm: Gemm, recipe: Recipe) -> list[EqualTiles]:
    """Passes over K: equal ones, and a shorter last one."""
    return padded_tiles(gemm.k, gemm.k if len(gemm.term_offsets) > 1 else recipe.blocks.kc, 1)


PAIR: Final = 2
"""Positions of K that share a register in `paired_columns`."""
