"""Caches and memory as kernels and their cost models see them, beyond the sizes that a target knows."""

from __future__ import annotations

from typing import Final

from tlx.target import Target

LINE: Final = 64
"""Bytes of a cache line."""
PAGE: Final = 4096
"""Bytes of a page; rows whole pages apart share sets of the first cache."""
L2_BYTES: Final = 32
"""Bytes a cycle from the second-level cache: half a line."""
FAR_BYTES: Final = 8
"""Bytes a cycle from beyond the second-level cache."""
FAR_WAIT: Final = 768
"""Cycles from asking for what is beyond the second-level cache to having it."""
_SHARE: Final = 32 << 20
"""No more of a last-level cache, which other cores use too, is counted on."""


def counted_on(target: Target) -> int:
    """Bytes of the last-level cache that one program may take to be its own."""
    return min(target.caches.l3, _SHARE)
