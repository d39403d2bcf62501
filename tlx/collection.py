"""Python's garbage collector, and where it only costs time."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_RARELY: Final = 1_000_000
"""Objects more that are alive when a collection begins; Python's own number is 700."""


@contextmanager
def without_collection() -> Generator[None]:
    """No garbage collection in the block.

    A module is a great many objects that refer to one another without cycles: looking for cycles among them takes a
    quarter of the time of a lowering and finds none.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def end_without_collection() -> None:
    """No garbage collection from here to the end of the process, the one that Python makes at its end included.

    That is for a process that does one thing and ends: all it has goes with it.
    """
    gc.disable()
    atexit.register(gc.freeze)  # what is frozen is not looked at


def collect_rarely() -> None:
    """Garbage collection a thousand times as rarely, for a process that reads, lowers and evaluates many modules.

    As often as Python looks by itself, that is a fifth of the process's time.
    """
    gc.set_threshold(_RARELY)
