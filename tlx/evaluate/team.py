"""A team of threads, run one thread after the other, in an order that the machine is told.

What threads do must not depend on each other, so any order gives the same; two that differ would tell of a race.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tlx.diagnostics import EvaluationError


@dataclass(eq=False)
class Team:
    """The team that runs.

    Attributes:
        most: Threads of a team that asks for no number, and what `omp_get_max_threads` gives.
        backwards: Whether the last thread of a team is run first.
        size: Threads of the team that runs now.
        number: Which of them is running.
    """

    most: int = 1
    backwards: bool = False
    size: int = 1
    number: int = 0

    def fork(self, body: Callable[[], object], wanted: int) -> None:
        """Run the body once for every thread; a team inside a team has one thread.

        Raises:
            EvaluationError: No such number of threads can be wanted.
        """
        if not 0 <= wanted < 1 << 16:
            raise EvaluationError(f"a team of {wanted} threads is asked for")
        outer = self.size, self.number
        self.size = (wanted or self.most) if self.size == 1 else 1
        numbers = range(self.size)
        try:
            for number in reversed(numbers) if self.backwards else numbers:
                self.number = number
                body()
        finally:
            self.size, self.number = outer
