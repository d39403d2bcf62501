"""Cutting M, N and K into tiles: full ones, and edges as padding or smaller tiles."""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.builder import Builder
from tlx.ir.values import Value
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Range:
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


def padded(extent: int, size: int, granule: int) -> list[Range]:
    """Full tiles, and one with the rest, rounded up to `granule` by padding."""
    full, rest = divmod(extent, size)
    ranges = [Range(0, full, size)] if full else []
    if rest:
        rounded = -(-rest // granule) * granule
        ranges.append(Range(full * size, 1, rounded, rounded - rest))
    return ranges


def ending(extent: int, size: int, granule: int) -> list[Range]:
    """Full tiles, and one with the rest, of as many granules as it needs, that ends at the edge.

    |--------|--------|
                   |----|      overlaps the tile before it: some positions are computed twice
    """
    full, rest = divmod(extent, size)
    rounded = -(-rest // granule) * granule
    if not rest or rounded > extent:
        return padded(extent, size, granule)
    ranges = [Range(0, full, size)] if full else []
    return [*ranges, Range(extent - rounded, 1, rounded)]


def row_ranges(gemm: Gemm, recipe: Recipe) -> list[Range]:
    """Tiles along M.

    A matrix unit works on whole tiles of its own: the last ones overlap or are padded. Vector code splits M evenly, so
    that two tile heights occur that differ by one: 100 rows by 8 are 9 tiles of 8 and 4 of 7.
    """
    if recipe.unit == "matrix":
        return (ending if gemm.is_repeatable else padded)(gemm.m, recipe.mr, recipe.lanes)
    tiles = -(-gemm.m // recipe.mr)
    height, taller = divmod(gemm.m, tiles)
    ranges = [Range(0, taller, height + 1)] if taller else []
    return [*ranges, Range(taller * (height + 1), tiles - taller, height)]


def column_ranges(gemm: Gemm, recipe: Recipe) -> list[Range]:
    """Panels along N.

    A matrix unit's last panel overlaps or is padded, as rows are; of strips it is padded. Vector code splits the
    registers of a row evenly, so that two widths occur that differ by one register, and a last panel of its own where N
    ends inside a register:

        N = 100, 16 lanes, up to 4 registers      64 | 36 + 12 of padding
        N = 24, 8 of them as pairs                16 | 8
    """
    if recipe.unit == "matrix":
        anywhere = gemm.is_repeatable and not gemm.b.in_strips
        return (ending if anywhere else padded)(gemm.n, recipe.nr, recipe.lanes)
    lanes, columns = recipe.lanes * recipe.order[0], gemm.n - recipe.dots - recipe.pairs
    paired = [Range(columns, 1, lanes // 2, lanes // 2 - recipe.pairs)] if recipe.pairs else []
    if not columns:
        return paired
    vectors = -(-columns // lanes)
    panels = -(-vectors // (recipe.nr // lanes))
    narrow, wider = divmod(vectors, panels)
    sizes = [(wider, (narrow + 1) * lanes), (panels - wider, narrow * lanes)]
    return [*_last_padded([(count, size) for count, size in sizes if count], vectors * lanes - columns), *paired]


def _last_padded(sizes: list[tuple[int, int]], padding: int) -> list[Range]:
    """Ranges of (count, size) one behind the other, the last tile of all with padding."""
    ranges: list[Range] = []
    start = 0
    for count, size in sizes:
        ranges.append(Range(start, count, size))
        start += count * size
    if not padding:
        return ranges
    last = ranges.pop()
    if last.count > 1:
        ranges.append(Range(last.start, last.count - 1, last.size))
    return [*ranges, Range(start - last.size, 1, last.size, padding)]


def k_passes(gemm: Gemm, recipe: Recipe) -> list[Range]:
    """Passes over K: equal ones, and a shorter last one."""
    return padded(gemm.k, gemm.k if len(gemm.sums) > 1 else recipe.kc, 1)
