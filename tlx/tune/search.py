"""The search for one product on one machine: successive halving, twice, against the model's choice.

probe:   the model's choice alone, which shows whether anything can be measured
tiles:   measure `WIDTH` candidates for a few rounds, the better half of them for twice as many, and so on
blocks:  the same with candidates around the best one and the model's choice, and once more if that helped
final:   the best one against the model's choice, in many rounds; it is kept if it is faster beyond noise
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.knobs import NO_KNOBS, Knobs
from tlx.target import Target
from tlx.tune.candidates import Candidates
from tlx.tune.product import Product
from tlx.tune.trial import Outcome, Trial

WIDTH: Final = 16
_ROUNDS: Final = 3
_SWEEPS: Final = 2
_MOST_ROUNDS: Final = 15
_FINAL_ROUNDS: Final = 21
_GAIN: Final = 1.01
_WINS: Final = 0.75

Measure = Callable[[Sequence[Trial]], Sequence[Outcome | None]]
"""Measures trials; None for those that the budget did not suffice for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a search found.

    Attributes:
        knobs: Those that are faster than the model's choice; none where it is the best.
        outcome: The last measurement of the best candidate; None where nothing else was measured.
        complete: Whether the budget sufficed.
        error: Why not even the model's choice could be measured; empty where it could.
    """

    knobs: Knobs
    outcome: Outcome | None
    complete: bool
    error: str = ""


class Search:
    """A search."""

    def __init__(self, product: Product, target: Target, measure: Measure) -> None:
        self._product = product
        self._target = target
        self._measure = measure
        self._complete = True

    def run(self) -> Finding:
        """Measure until the best candidate is known or the budget is spent."""
        (probe,) = self._measure([self._trial(NO_KNOBS, 1)])
        if probe is None or probe.error:
            return Finding(NO_KNOBS, None, complete=False, error=probe.error if probe else "")
        candidates = Candidates(self._product, self._target)
        best, ratio = self._halved(candidates.tiles(WIDTH))
        if ratio <= 1.0:
            best, ratio = NO_KNOBS, 1.0
        for sweep in range(_SWEEPS):
            if not self._complete:
                break
            around = [NO_KNOBS, best] if best and not sweep else [best]
            found, better = self._halved([knobs for base in around for knobs in candidates.blocks(base)])
            if better <= ratio:
                break
            best, ratio = found, better
        if not best:
            return Finding(NO_KNOBS, None, self._complete)
        return self._final(best)

    def _halved(self, candidates: Sequence[Knobs]) -> tuple[Knobs, float]:
        """The best of some candidates and how much faster than the model's choice it is."""
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
            alive = [knobs for found, knobs in measured[: len(alive) // 2] if found > 0]
            rounds = min(2 * rounds + 1, _MOST_ROUNDS)
        return best, ratio

    def _final(self, knobs: Knobs) -> Finding:
        (outcome,) = self._measure([self._trial(knobs, _FINAL_ROUNDS)])
        if outcome is None or not _is_faster(outcome):
            return Finding(NO_KNOBS, outcome, self._complete and outcome is not None)
        return Finding(knobs, outcome, self._complete)

    def _trial(self, knobs: Knobs, rounds: int) -> Trial:
        return Trial(self._product.words, self._target.name, self._target.features, str(knobs), rounds)


def _is_faster(outcome: Outcome) -> bool:
    """Faster in most rounds, and by more than nothing."""
    wins = sum(ratio > 1.0 for ratio in outcome.ratios)
    return outcome.ratio >= _GAIN and wins >= _WINS * len(outcome.ratios)
