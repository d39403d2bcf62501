"""Delta debugging (Zeller and Hildebrandt, 2002): remove as many items as possible, large ranges first."""

from __future__ import annotations

from collections.abc import Callable


def drop_items(size: int, drop: Callable[[int, int], int | None]) -> None:
    """Remove ranges of items: all of them first, then halves, quarters, down to single ones.

    Args:
        size: Number of items.
        drop: Removes the items from one position to another (exclusive) and returns how many remain, or returns None if
            they are needed.
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
