"""Caches and memory as kernels and their cost models see them, beyond the sizes that a target knows."""

from __future__ import annotations

from typing import Final

LINE: Final = 64
"""Bytes of a cache line."""
L2_BYTES: Final = 32
"""Bytes a cycle from the second-level cache: half a line."""
FAR_BYTES: Final = 8
"""Bytes a cycle from beyond the second-level cache."""
