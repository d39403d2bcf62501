"""Whether a core is ours alone, or another program runs on its second hyperthread.

That costs a loop of multiply-adds nothing, so the peak shows nothing; but it takes half of the front end, and with it a
fifth to a third of the speed of code that also loads, stores and counts. What shows it is

    the time of nops, which fill the front end   /   the time of a chain of multiplications, which is that of the clock

It is about the same in all quiet moments, at any clock, and half as much again to twice that in shared ones.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from math import inf
from typing import Final

from tlx.bench.native_calls import Repeat, loop, repeating

ENOUGH: Final = 3
"""Rounds that a median is taken of."""
NEAR: Final = 1.08
"""Times the lowest ratio, up to which a core is ours alone."""
_TURNS: Final = 11  # of 5 microseconds
_NOPS: Final = ("nop", 240, 200)  # a number that fills a few cycles of any width, and how often: 8000 cycles
_CHAIN: Final = ("imul %rax, %rax", 64, 40)


class Core:
    """The core that the thread is pinned to.

    Attributes:
        best: The lowest ratio so far.
    """

    def __init__(self) -> None:
        self.best = inf
        self._nops, self._chain = [_repeated(*what[:2]) for what in (_NOPS, _CHAIN)]
        self.ratio()  # the first calls take longer

    def ratio(self) -> float:
        """Time of the nops over that of the chain, now: the median of a few."""
        turns = [_elapsed(self._nops, _NOPS[2]) / _elapsed(self._chain, _CHAIN[2]) for _ in range(_TURNS)]
        ratio = statistics.median(turns)
        self.best = min(self.best, ratio)
        return ratio


def quiet(ratios: Sequence[float], best: float, steady: Sequence[Sequence[float]] = ()) -> list[int]:
    """The rounds that nobody disturbed.

    Args:
        ratios: The highest ratio of each round.
        best: The lowest there was at any time.
        steady: Speeds, round by round, that are low where somebody else has the unit: those of tile products.
    """
    return [
        index
        for index, ratio in enumerate(ratios)
        if ratio <= NEAR * best and all(NEAR * speeds[index] >= max(speeds) for speeds in steady)
    ]


def filling() -> Repeat:
    """The loop of nops, which fills the front end of a core."""
    return _repeated(*_NOPS[:2])


def _repeated(instruction: str, times: int) -> Repeat:
    body = f".rept {times}\\0A{instruction}\\0A.endr"
    return loop(repeating(f'  call void asm sideeffect "{body}", "~{{rax}},~{{flags}}"()\n'))


def _elapsed(repeat: Repeat, count: int) -> int:
    start = time.perf_counter_ns()
    repeat(count)
    return max(1, time.perf_counter_ns() - start)
