"""Combs: columns next to each other, each an odd number of elements from one of its elements to the next."""

from __future__ import annotations

from typing import Final

_MOST: Final = 15
"""Columns, all of whose registers are held while they are merged."""


def is_comb(pitch: int, columns: int) -> bool:
    """Whether some columns, elements of each `pitch` apart, are merged in registers, and not transposed."""
    return pitch % 2 == 1 and 1 < columns <= pitch <= _MOST
