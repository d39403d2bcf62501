"""Neighbouring dimensions that are walked through as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk


@dataclass(frozen=True, eq=False)
class Run:
    """Neighbouring dimensions that are walked through as one; the last of them is the innermost."""

    parts: tuple[Walk, ...]

    @cached_property
    def extent(self) -> int:
        """Positions."""
        return math.prod(extent for extent, _ in self.parts)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The strides of its steps, in the operands that are not copied."""
        return self.parts[-1][1]


def merge(walks: Sequence[Walk], packed: frozenset[int]) -> list[Run]:
    """The dimensions as runs, neighbours merged where every operand walks through them as one.

    Operands that are copied get the order that is needed.
    """
    runs: list[Run] = []
    for walk in walks:
        if runs and _continues(runs[-1], walk, packed):
            runs[-1] = Run((*runs[-1].parts, walk))
        else:
            runs.append(Run((walk,)))
    return runs


def _continues(run: Run, walk: Walk, packed: frozenset[int]) -> bool:
    extent, strides = walk
    if run.extent * extent >= INDEX_LIMIT:
        return False
    return all(
        bool(far) == bool(near) if column in packed else far == near * extent
        for column, (far, near) in enumerate(zip(run.strides, strides, strict=True))
    )
