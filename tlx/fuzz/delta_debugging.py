"""Delta debugging (Zeller and Hildebrandt, 2002): leave out as many items as possible, many at once first."""

from __future__ import annotations

from collections.abc import Callable


def drop_items(size: int, drop: Callable[[int, int], int | None]) -> None:
    """Leave out runs of items: all of them first, then halves, quarters, down to single ones.

    Args:
        size: How many items there are.
        drop: Leaves out the items from one position to another (exclusive) and returns how many remain, or returns None
            where they have to stay.
    """
    chunk = size
    while chunk > 0:
        at = 0
        while at < size:
            left = drop(at, at + chunk)
            if left is None:
                at += chunk
            else:
                size = left
        chunk //= 2
