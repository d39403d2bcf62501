"""The search for the best knobs of a product: the model's candidates, measured by successive halving.

probe:   the model's choice alone, to see whether it can be measured
tiles:   measure `WIDTH` candidates for a few rounds, the better half of them for twice as many, and so on: the register
         tiles with the highest predicted share of the peak, some of them with the opposite packing of B
blocks:  the same with candidates around the best one and the model's choice, and once more if that helped: one knob
         changed, K cut into passes, blocks of M and N halved and doubled, packing, prefetches
final:   the best one against the model's choice, in many rounds; it wins if it is faster beyond noise

All candidates fit the product and the target, and no two give the same kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tlx.diagnostics import UsageError
from tlx.lower.knobs import NO_KNOBS, Knobs
from tlx.lower.to_tiles.select.recipe import Recipe, column_ranges, round_up, row_ranges
from tlx.lower.to_tiles.select.selection import select
from tlx.target.target import Target
from tlx.tuning.product import ProductWorkload
from tlx.tuning.trial import Trial, TrialOutcome

WIDTH: Final = 16
_ROUNDS: Final = 3
_SWEEPS: Final = 2
_MOST_ROUNDS: Final = 15
_FINAL_ROUNDS: Final = 21
_GAIN: Final = 1.01
_WINS: Final = 0.75

MeasureTrials = Callable[[Sequence[Trial]], Sequence[TrialOutcome | None]]
"""Measures trials; the outcome is None for those beyond the budget."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    Attributes:
        knobs: The best knobs; empty if the model's choice is the fastest.
        outcome: The last measurement of the best candidate; None if only the model's choice was measured.
        complete: Whether the budget sufficed.
        error: Why the model's choice could not be measured; empty if it could.
    """

    knobs: Knobs
    outcome: TrialOutcome | None
    complete: bool
    error: str = ""


class Search:
    """The search for one product."""

    def __init__(self, product: ProductWorkload, target: Target, measure: MeasureTrials) -> None:
        self._product = product
        self._target = target
        self._measure = measure
        self._complete = True

    def run(self) -> SearchResult:
        """Measure until the best candidate is known or the budget is spent."""
        (probe,) = self._measure([self._trial(NO_KNOBS, 1)])
        if probe is None or probe.error:
            return SearchResult(NO_KNOBS, None, complete=False, error=probe.error if probe else "")
        candidates = Candidates(self._product, self._target)
        best, ratio = self._halved(candidates.tiles(WIDTH))
        if ratio <= 1.0:
            best, ratio = NO_KNOBS, 1.0
        for sweep in range(_SWEEPS):
            if not self._complete:
                break
            bases = [NO_KNOBS, best] if best and not sweep else [best]
            variant, variant_ratio = self._halved([knobs for base in bases for knobs in candidates.blocks(base)])
            if variant_ratio <= ratio:
                break
            best, ratio = variant, variant_ratio
        if not best:
            return SearchResult(NO_KNOBS, None, self._complete)
        return self._final(best)

    def _halved(self, candidates: Sequence[Knobs]) -> tuple[Knobs, float]:
        """The best of the candidates by successive halving, and its speedup over the model's choice."""
        rounds = _ROUNDS
        alive: list[Knobs] = list(candidates)
        best, ratio = NO_KNOBS, 1.0
        while alive and self._complete:
            outcomes = self._measure([self._trial(knobs, rounds) for knobs in alive])
            self._complete = all(outcome is not None for outcome in outcomes)
            measured = [(outcome.ratio, knobs) for outcome, knobs in zip(outcomes, alive, strict=True) if outcome]
            measured.sort(key=lambda pair: -pair[0])
            if measured:
                ratio, best = measured[0]
            if len(alive) == 1:
                break
            alive = [knobs for speedup, knobs in measured[: len(alive) // 2] if speedup > 0]
            rounds = min(2 * rounds + 1, _MOST_ROUNDS)
        return best, ratio

    def _final(self, knobs: Knobs) -> SearchResult:
        (outcome,) = self._measure([self._trial(knobs, _FINAL_ROUNDS)])
        if outcome is None or not _is_faster(outcome):
            return SearchResult(NO_KNOBS, outcome, self._complete and outcome is not None)
        return SearchResult(knobs, outcome, self._complete)

    def _trial(self, knobs: Knobs, rounds: int) -> Trial:
        return Trial(self._product.words, self._target.name, self._target.features, str(knobs), rounds)


def _is_faster(outcome: TrialOutcome) -> bool:
    """Whether a candidate is faster in most rounds, and measurably so."""
    wins = sum(ratio > 1.0 for ratio in outcome.ratios)
    return outcome.ratio >= _GAIN and wins >= _WINS * len(outcome.ratios)


_WORST: Final = 0.7
"""Tiles predicted to be slower than this share of the best tile's prediction are not tried."""


class Candidates:
    """The candidates for a product on a target, each proposed once."""

    def __init__(self, product: ProductWorkload, target: Target) -> None:
        self._product = product
        self._gemm = product.gemm
        self._target = target
        self._seen: set[Any] = set()
        self.default = select(self._gemm, target)
        self._new(NO_KNOBS)

    def tiles(self, count: int) -> list[Knobs]:
        """The most promising register tiles; the first few, and the model's choice, also with the opposite packing."""
        candidates = [(recipe.efficiency, Knobs(tile)) for tile in self._tiles() if (recipe := self._new(Knobs(tile)))]
        candidates.sort(key=lambda pair: -pair[0])
        minimum = _WORST * max([self.default.efficiency, *(share for share, _ in candidates[:1])])
        tiles = [knobs for share, knobs in candidates if share >= minimum]
        packed = (replace(k, pack_b=on) for k in (NO_KNOBS, *tiles[: count // 5]) for on in (True, False))
        others = list(self._new_candidates(packed))
        return [*tiles[: max(count - len(others), 0)], *others][:count]

    def blocks(self, base: Knobs) -> list[Knobs]:
        """Variants of knobs that differ in one cache block, in packing or in prefetching."""
        recipe = select(self._gemm, self._target, base)
        k = self._gemm.k
        variants: list[Knobs] = []
        if not self._product.fused:
            cuts = {round_up(-(-k // passes), recipe.tile.kstep) for passes in (1, 2, 3, 4, 8)}
            variants += [replace(base, kc=kc) for kc in sorted(cuts, reverse=True) if kc >= min(128, k)]
        tile, blocks = recipe.tile, recipe.blocks
        variants += [replace(base, mc=round_up(max(1, int(blocks.mc * f)), tile.mr)) for f in (0.25, 0.5, 2, 4)]
        variants += [replace(base, nc=round_up(max(1, int(blocks.nc * f)), tile.nr)) for f in (0.25, 0.5, 2, 4)]
        variants += [replace(base, ahead=ahead) for ahead in (0, 4, 8, 16)]
        variants += [replace(base, pack_a=not recipe.packing.a), replace(base, pack_b=not recipe.packing.b)]
        return list(self._new_candidates(variants))

    def _tiles(self) -> Iterator[tuple[int, int]]:
        lanes = self.default.tile.lanes
        if self.default.mma.unit == "matrix":
            rows = self.default.tile.unit_rows
            yield from ((p * rows, q * lanes) for p in range(1, 5) for q in range(1, 5))
            return
        for rows in range(1, min(self._target.registers, self._gemm.m) + 1):
            for vectors in range(1, self._target.registers):
                yield rows, vectors * lanes

    def _new_candidates(self, variants: Iterable[Knobs]) -> Iterator[Knobs]:
        return (knobs for knobs in variants if self._new(knobs) is not None)

    def _new(self, knobs: Knobs) -> Recipe | None:
        """The recipe for some knobs; None if they do not fit or give a kernel that was proposed before."""
        try:
            recipe = select(self._gemm, self._target, knobs)
        except UsageError:
            return None
        kernel = self._kernel(recipe)
        if kernel in self._seen:
            return None
        self._seen.add(kernel)
        return recipe

    def _kernel(self, recipe: Recipe) -> Any:
        """The parts of a recipe that the kernel depends on: tiles of one size, and the tiles of a block."""
        rows, columns = row_ranges(self._gemm, recipe), column_ranges(self._gemm, recipe)
        tiles = [min(r.count, max(1, recipe.blocks.mc // r.size)) for r in rows]
        panels = [min(c.count, max(1, recipe.blocks.nc // c.size)) for c in columns]
        packing = recipe.packing
        return (*rows, *columns, *tiles, *panels, recipe.blocks.kc, packing.a, packing.b, recipe.prefetch.b_steps)
