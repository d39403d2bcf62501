"""Teams of threads: they take turns, in a configurable order; `sched_yield` gives the turn to the next one.

    thread 0    thread 1    thread 2                in reverse order: 2, 1, 0, 2, 1, 0
       1           2           3                    ... up to a loop that waits for another thread, and yields
       4           5           6

Correct threads do not depend on each other, except where they wait, so results that change with the order reveal a
race.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Semaphore, Thread
from typing import Final

import numpy as np

from tlx.diagnostics import EvaluationError

_ALONE: Final = "a thread waits for threads of its team that have ended"


@dataclass(eq=False)
class ThreadTeam:
    """The current thread team.

    Attributes:
        max_threads: Threads of a team without a requested size, and the result of `omp_get_max_threads`.
        reverse_order: Whether the last thread of a team is run first.
        size: Threads of the team that runs now.
        number: Which of them is running.
    """

    max_threads: int = 1
    reverse_order: bool = False
    size: int = 1
    number: int = 0
    _run: _TeamRun | None = None

    def fork(self, body: Callable[[], object], requested: int) -> None:
        """Run the body once for every thread; a team inside a team has one thread.

        Raises:
            EvaluationError: No team can have the requested number of threads.
        """
        if not 0 <= requested < 1 << 16:
            raise EvaluationError(f"the program requests a team of {requested} threads")
        outer = self.size, self.number, self._run
        self.size = (requested or self.max_threads) if self.size == 1 else 1
        numbers = range(self.size)
        try:
            self._run = _TeamRun(self, body, [*reversed(numbers)] if self.reverse_order else [*numbers])
            self._run.run()
        finally:
            self.size, self.number, self._run = outer

    def yield_turn(self) -> None:
        """Let the other threads of the team run until they yield or end.

        Raises:
            EvaluationError: Another thread fails, or all others have ended.
        """
        if self._run is not None and self.size > 1:
            self._run.yield_turn()


@dataclass(eq=False)
class _TeamRun:
    """Runs the threads of a team.

    The caller runs one thread after the other. If one of them yields, it and those after it become threads of Python,
    except for the first one of these, which stays with the caller. They take turns: only one runs at a time.

    Attributes:
        team: The team.
        body: What each thread executes.
        order: The numbers of the threads, in the order in which they run. A thread's index in it is its place.
        threads: The threads of Python; empty before a thread yields.
        turns: What the thread at each place waits for.
        current: The place of the thread that runs.
        ended: The places of the threads that have ended.
        error: What the first failing thread has raised.
    """

    team: ThreadTeam
    body: Callable[[], object]
    order: list[int]
    threads: list[Thread] = field(default_factory=list[Thread])
    turns: list[Semaphore] = field(default_factory=list[Semaphore])
    current: int = 0
    ended: set[int] = field(default_factory=set[int])
    error: BaseException | None = None

    def run(self) -> None:
        """Run all threads; raises what the first failing one raises."""
        for place in range(len(self.order)):
            self._enter(place)
            try:
                self.body()
            except BaseException as error:
                if not self.threads:
                    raise
                self.error = self.error or error
            self._end(place)
            if self.threads:
                break
        for thread in self.threads:
            thread.join()
        if self.error is not None:
            raise self.error

    def yield_turn(self) -> None:
        """Let the other threads run."""
        place = self.current
        if len(self.ended) == len(self.order) - 1:
            raise EvaluationError(_ALONE)
        if not self.threads:
            self._start(place)
        self._pass_turn(place)
        self.turns[place].acquire()
        self._enter(place)
        if self.error is not None:
            raise EvaluationError("another thread of the team failed") from self.error

    def _start(self, first: int) -> None:
        """Start the threads after the one at place `first`; each waits for its turn."""
        self.turns = [Semaphore(0) for _ in self.order]
        later = range(first + 1, len(self.order))
        self.threads = [Thread(target=self._thread, args=(place,), daemon=True) for place in later]
        for thread in self.threads:
            thread.start()

    def _thread(self, place: int) -> None:
        self.turns[place].acquire()
        self._enter(place)
        try:
            with np.errstate(all="ignore"):
                if self.error is None:
                    self.body()
        except BaseException as error:  # noqa: BLE001 (`run` raises it in the caller's thread)
            self.error = self.error or error
        self._end(place)

    def _enter(self, place: int) -> None:
        self.current, self.team.number = place, self.order[place]

    def _end(self, place: int) -> None:
        self.ended.add(place)
        self._pass_turn(place)

    def _pass_turn(self, place: int) -> None:
        """Have the next thread run that has not ended."""
        count = len(self.order)
        following = ((place + step) % count for step in range(1, count))
        if self.threads and (successor := next((p for p in following if p not in self.ended), None)) is not None:
            self.turns[successor].release()
