"""Memory that ends at a page nobody may touch, and begins behind one.

An array of compiled code lies either so that the byte behind its last one is inaccessible, or so that the byte in front
of its first one is; what is left of its pages is filled and must stay as it is.

    [ no access ][ fill | array ][ no access ]        [ no access ][ array | fill ][ no access ]
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Final

import numpy as np

from tlx.numpy_types import Array

_PAGE: Final = mmap.PAGESIZE
_FILL: Final = 0xFF  # NaN in every floating-point type
_NO_ACCESS: Final = 0
_libc: Final = ctypes.CDLL(None, use_errno=True)


class GuardedArray:
    """A copy of an array between two inaccessible pages.

    Args:
        array: What it holds, one-dimensional.
        at_end: Whether it ends at the page behind it, or begins at the page in front of it.

    Attributes:
        array: The copy.
    """

    def __init__(self, array: Array, *, at_end: bool) -> None:
        pages = -(-array.nbytes // _PAGE) * _PAGE
        memory = mmap.mmap(-1, pages + 2 * _PAGE)
        inside = np.frombuffer(memory, np.uint8, pages, _PAGE)
        inside[:] = _FILL
        start = pages - array.nbytes if at_end else 0
        self.array = inside[start : start + array.nbytes].view(array.dtype)
        self.array[:] = array
        self._rest = (inside[:start], inside[start + array.nbytes :])
        address = int(inside.__array_interface__["data"][0])
        _forbid(address - _PAGE)
        _forbid(address + pages)

    @property
    def is_intact(self) -> bool:
        """Whether the rest of the array's pages is as it was."""
        return all(bool(np.all(part == _FILL)) for part in self._rest)


def _forbid(page: int) -> None:
    if _libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), _NO_ACCESS):
        raise OSError(ctypes.get_errno(), "mprotect")
