"""Costs of candidates: the cost model's, or drawn from a seed, to reach code that the model never selects."""

from __future__ import annotations

import math
import zlib


def randomized_cycles(seed: int | None, cycles: float, *candidate: object) -> float:
    """The cycles of a candidate; with a seed, the number in (0, 1] that it draws for the candidate instead.

    All candidates of a choice are correct, so a seed reaches code that the cost model never selects. A candidate of
    infinite cost stays one.
    """
    if seed is None or math.isinf(cycles):
        return cycles
    return (zlib.crc32(repr((seed, *candidate)).encode()) + 1) / (1 << 32)
