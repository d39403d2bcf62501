"""Knobs worth a measurement: they fit, no two make the same kernel, and the model expects much of the first.

tiles     the register tiles of the highest predicted share of the peak, some of them with B packed otherwise
blocks    one knob changed: K cut into passes, blocks of M and N halved and doubled, packing, prefetches
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from tlx.diagnostics import UsageError
from tlx.knobs import NO_KNOBS, Knobs
from tlx.lower.to_tiles.blocks import column_ranges, row_ranges
from tlx.lower.to_tiles.choose import choose
from tlx.lower.to_tiles.recipe import Recipe, up
from tlx.target import Target
from tlx.tune.product import Product

_WORST: Final = 0.7
"""Share of the best tile's prediction below which a tile is not tried."""


class Candidates:
    """The candidates for a product on a target; none is given out twice."""

    def __init__(self, product: Product, target: Target) -> None:
        self._product = product
        self._gemm = product.gemm
        self._target = target
        self._seen: set[Any] = set()
        self.default = choose(self._gemm, target)
        self._new(NO_KNOBS)

    def tiles(self, count: int) -> list[Knobs]:
        """The most promising register tiles; the first few of them, and the model's choice, packed otherwise, too."""
        found = [(recipe.share, Knobs(tile)) for tile in self._tiles() if (recipe := self._new(Knobs(tile)))]
        found.sort(key=lambda pair: -pair[0])
        least = _WORST * max([self.default.share, *(share for share, _ in found[:1])])
        tiles = [knobs for share, knobs in found if share >= least]
        packed = (replace(k, pack_b=on) for k in (NO_KNOBS, *tiles[: count // 5]) for on in (True, False))
        others = list(self._fitting(packed))
        return [*tiles[: max(count - len(others), 0)], *others][:count]

    def blocks(self, around: Knobs) -> list[Knobs]:
        """Knobs that differ from others in one cache block, in packing or in prefetches."""
        recipe = choose(self._gemm, self._target, around)
        k = self._gemm.k
        wanted: list[Knobs] = []
        if not self._product.fused:
            cuts = {up(-(-k // passes), recipe.kstep) for passes in (1, 2, 3, 4, 8)}
            wanted += [replace(around, kc=kc) for kc in sorted(cuts, reverse=True) if kc >= min(128, k)]
        wanted += [replace(around, mc=up(max(1, int(recipe.mc * f)), recipe.mr)) for f in (0.25, 0.5, 2, 4)]
        wanted += [replace(around, nc=up(max(1, int(recipe.nc * f)), recipe.nr)) for f in (0.25, 0.5, 2, 4)]
        wanted += [replace(around, ahead=ahead) for ahead in (0, 4, 8, 16)]
        wanted += [replace(around, pack_a=not recipe.pack_a), replace(around, pack_b=not recipe.pack_b)]
        return list(self._fitting(wanted))

    def _tiles(self) -> Iterator[tuple[int, int]]:
        lanes = self.default.lanes
        if self.default.unit == "matrix":
            rows = self._matrix_rows
            yield from ((p * rows, q * lanes) for p in range(1, 5) for q in range(1, 5))
            return
        for rows in range(1, min(self._target.registers, self._gemm.m) + 1):
            for vectors in range(1, self._target.registers):
                yield rows, vectors * lanes

    @property
    def _matrix_rows(self) -> int:
        return self._target.matrix.rows if self._target.matrix else 1

    def _fitting(self, wanted: Iterable[Knobs]) -> Iterator[Knobs]:
        return (knobs for knobs in wanted if self._new(knobs) is not None)

    def _new(self, knobs: Knobs) -> Recipe | None:
        """The recipe by some knobs; None if they do not fit or the kernel was given out before."""
        try:
            recipe = choose(self._gemm, self._target, knobs)
        except UsageError:
            return None
        kernel = self._kernel(recipe)
        if kernel in self._seen:
            return None
        self._seen.add(kernel)
        return recipe

    def _kernel(self, recipe: Recipe) -> Any:
        """What the kernel depends on: tiles of one size, and how many of them are worked on at a time."""
        rows, columns = row_ranges(self._gemm, recipe), column_ranges(self._gemm, recipe)
        tiles = [min(r.count, max(1, recipe.mc // r.size)) for r in rows]
        panels = [min(c.count, max(1, recipe.nc // c.size)) for c in columns]
        return (*rows, *columns, *tiles, *panels, recipe.kc, recipe.pack_a, recipe.pack_b, recipe.ahead)
