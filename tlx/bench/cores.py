"""Which processors are threads of one core: a virtual machine may not say, and two of them do no more than one.

A loop of nops fills the front end of a core (see `quiet`). On two processors at once it takes as long as on one, or, if
they share a core, half as much again to twice that.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from tlx.bench.native_calls import Repeat
from tlx.bench.quiet import filling

Together = Callable[[Sequence[int]], float]
"""The time that the loop takes on all of some processors at once."""

_SHARED: Final = 1.3
"""Times as long as alone, from which on processors share a core."""
_TURNS: Final = 4
_COUNT: Final = 60_000  # a millisecond, many times what threads take to start


def one_of_each_first(processors: Sequence[int], together: Together | None = None) -> list[int]:
    """Processors in an order in which those of different cores stand before second ones of a core.

    Args:
        processors: Their numbers.
        together: How to measure.
    """
    together = together or _Loop(filling())
    alone = min(together([processor]) for processor in processors)
    first: list[int] = []
    second: list[int] = []
    for processor in processors:
        shares = any(together([other, processor]) > _SHARED * alone for other in first)
        (second if shares else first).append(processor)
    return [*first, *second]


class _Loop:
    """Runs a loop on some processors at once."""

    def __init__(self, loop: Repeat) -> None:
        self._loop = loop

    def __call__(self, processors: Sequence[int]) -> float:
        """The least time that the slowest took, of a few turns."""
        return min(self._once(processors) for _ in range(_TURNS))

    def _once(self, processors: Sequence[int]) -> int:
        begin = threading.Barrier(len(processors))
        times: list[int] = []

        def run(processor: int) -> None:
            os.sched_setaffinity(0, {processor})  # of this thread alone
            begin.wait()
            start = time.perf_counter_ns()
            self._loop(_COUNT)
            times.append(time.perf_counter_ns() - start)

        threads = [threading.Thread(target=run, args=(processor,)) for processor in processors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(times)
