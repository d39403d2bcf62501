"""Arrays next to guard pages: a stray read or write ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_PROTECT_NONE: Final = 0
_libc: Final = ctypes.CDLL(None, use_errno=True)


def at_end(values: Array) -> Array:
    """A column-major copy that ends where forbidden memory begins."""
    return _placed(values, at_start=False)


def at_start(values: Array) -> Array:
    """A column-major copy that begins where forbidden memory ends."""
    return _placed(values, at_start=True)


def _placed(values: Array, *, at_start: bool) -> Array:
    page = mmap.PAGESIZE
    inner = -(-values.nbytes // page) * page
    memory = mmap.mmap(-1, inner + 2 * page)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for forbidden in (first, first + page + inner):
        if _libc.mprotect(ctypes.c_void_p(forbidden), ctypes.c_size_t(page), _PROTECT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = page if at_start else page + inner - values.nbytes
    flat = np.frombuffer(memory, values.dtype, values.size, offset)
    placed = flat.reshape(values.shape, order="F")
    placed[...] = values
    return placed
