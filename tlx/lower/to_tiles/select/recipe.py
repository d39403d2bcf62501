"""The recipe of a product, and the tiles that M, N and K are cut into by it.

Cutting M, N and K into tiles: full ones, and edges as padding or smaller tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tlx.ir.builder.instructions import Builder
from tlx.ir.types import Type
from tlx.ir.values import Value
from tlx.lower.remarks import ArithmeticUnit
from tlx.lower.to_tiles.problem.problems import Gemm


@dataclass(frozen=True, slots=True)
class Recipe:
    """The decisions for one product on one target.

    Attributes:
        operand_a, operand_b: Element types the multiply instruction reads.
        accumulator: Element type it adds to.
        mma: Name of the mma intrinsic in the inner loop.
        width: VNNI factor, 1 for plain multiply-add.
        unit: Which unit multiplies.
        correction: For the xor trick: whose sums are corrected.
        mr, nr: Register tile.
        kstep: Positions of K per inner step.
        lanes: Accumulator elements per register.
        pack_a, pack_b: Whether the operand is copied into panels first.
        kc, mc, nc: Cache blocks along K, M (in rows) and N (in columns).
        share: Predicted part of the unit's peak, 0 to 1.
        ahead: Steps by which B is prefetched into the first cache; 0 where it is not.
        fetch: Locality with which operands of a loop's next round, or B's rows of the next pass, are prefetched; 0
            where they are not.
        rounds: How many rounds ahead that is.
        past_caches: Whether C, where it is aligned, is stored past the caches.
        shared_b: Whether B's panels are those of several products, packed by another kernel.
        b_at: Where B or its panels lie in a block that holds them for several versions, in bytes; None where in none.
        streams: Rows of B that are read side by side, from end to end; 0 where a tile's sums stay in registers.
        order: Registers that columns of streamed rows are dealt out to, and how many stay together; see `streams`.
        dots: Last columns of C that are sums along K, in registers along K; see `last_columns`.
        pairs: Last columns of C that are summed up in even and odd positions of K; see `pairs`.
        whole_a: Whether all rows of A are packed before anything is multiplied, else those of a block.
        asks: Operands, some of "CAB", that tiles prefetch for those behind them; see `next_tile`.
        own_lines: Whether tiles prefetch the lines of C that they are stored to; see `own_lines`.
        passing_b: Whether tiles of B leave the first cache before they are read again; see `passing`.
    """

    operand_a: Type
    operand_b: Type
    accumulator: Type
    mma: str
    width: int
    unit: ArithmeticUnit
    correction: Literal["none", "columns", "rows"]
    mr: int
    nr: int
    kstep: int
    lanes: int
    pack_a: bool
    pack_b: bool
    kc: int
    mc: int
    nc: int
    share: float = 1.0
    ahead: int = 0
    fetch: int = 0
    rounds: int = 1
    past_caches: bool = False
    shared_b: bool = False
    b_at: int | None = None
    streams: int = 0
    order: tuple[int, int] = (1, 1)
    whole_a: bool = False
    dots: int = 0
    pairs: int = 0
    asks: str = ""
    own_lines: bool = False
    passing_b: bool = False


def round_up(number: int, step: int) -> int:
    """The number rounded up to a multiple of the step."""
    return -(-number // step) * step


@dataclass(frozen=True, slots=True)
class EqualTiles:
    """`count` equal tiles of `size` from `start` on; the last `padding` positions of each hold no data."""

    start: int
    count: int
    size: int
    padding: int = 0

    @property
    def data(self) -> int:
        """Positions of a tile that hold data."""
        return self.size - self.padding

    def begin(self, b: Builder, number: Value) -> Value:
        """Where the tile of a number begins."""
        return b.add(b.mul(number, self.size), self.start)


def padded_tiles(extent: int, size: int, granule: int) -> list[EqualTiles]:
    """Full tiles, and one with the rest, rounded up to `granule` by padding."""
    full, rest = divmod(extent, size)
    ranges = [EqualTiles(0, full, size)] if full else []
    if rest:
        rounded = -(-rest // granule) * granule
        ranges.append(EqualTiles(full * size, 1, rounded, rounded - rest))
    return ranges


def overlapping_tiles(extent: int, size: int, granule: int) -> list[EqualTiles]:
    """Full tiles, and one with the rest, of as many granules as it needs, that ends at the edge.

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

    A matrix unit works on whole tiles of its own: the last ones overlap or are padded. Vector code splits M evenly, so
    that two tile heights occur that differ by one: 100 rows by 8 are 9 tiles of 8 and 4 of 7.
    """
    if recipe.unit == "matrix":
        return (overlapping_tiles if gemm.is_repeatable else padded_tiles)(gemm.m, recipe.mr, recipe.lanes)
    tiles = -(-gemm.m // recipe.mr)
    height, taller = divmod(gemm.m, tiles)
    ranges = [EqualTiles(0, taller, height + 1)] if taller else []
    return [*ranges, EqualTiles(taller * (height + 1), tiles - taller, height)]


def column_ranges(gemm: Gemm, recipe: Recipe) -> list[EqualTiles]:
    """Panels along N.

    A matrix unit's last panel overlaps or is padded, as rows are; of strips it is padded. Vector code splits the
    registers of a row evenly, so that two widths occur that differ by one register, and a last panel of its own where N
    ends inside a register:

        N = 100, 16 lanes, up to 4 registers      64 | 36 + 12 of padding
        N = 24, 8 of them as pairs                16 | 8
    """
    if recipe.unit == "matrix":
        anywhere = gemm.is_repeatable and not gemm.b.in_strips
        return (overlapping_tiles if anywhere else padded_tiles)(gemm.n, recipe.nr, recipe.lanes)
    lanes, columns = recipe.lanes * recipe.order[0], gemm.n - recipe.dots - recipe.pairs
    paired = [EqualTiles(columns, 1, lanes // 2, lanes // 2 - recipe.pairs)] if recipe.pairs else []
    if not columns:
        return paired
    vectors = -(-columns // lanes)
    panels = -(-vectors // (recipe.nr // lanes))
    narrow, wider = divmod(vectors, panels)
    sizes = [(wider, (narrow + 1) * lanes), (panels - wider, narrow * lanes)]
    return [*_last_padded([(count, size) for count, size in sizes if count], vectors * lanes - columns), *paired]


def _last_padded(sizes: list[tuple[int, int]], padding: int) -> list[EqualTiles]:
    """Ranges of (count, size) one behind the other, the last tile of all with padding."""
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
    return padded_tiles(gemm.k, gemm.k if len(gemm.sums) > 1 else recipe.kc, 1)


PAIR: Final = 2
