"""A view seen with other dimensions: the same positions in the same order, without moving anything.

6 x 4, dense: strides (4, 1)      as 2 x 3 x 4: (12, 4, 1)       as 3 x 8: (8, 1)
6 x 4 with pitch 8: (8, 1)        as 2 x 3 x 4: (24, 8, 1)       as 3 x 8: impossible
"""

from __future__ import annotations

from collections.abc import Sequence


def strides_in(sizes: Sequence[int], steps: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of the dimensions `wanted`, the outermost first; None if they cut or join what lies apart.

    Args:
        sizes: Extents of the view's dimensions, the outermost first.
        steps: Elements between neighbours along each of them.
        wanted: Extents of the dimensions to see instead; their product is that of `sizes`.
    """
    pending = _runs(sizes, steps)
    strides: list[int] = []
    for extent in reversed(wanted):
        if extent == 1:
            strides.append(0)
            continue
        if not pending or pending[-1][0] % extent:
            return None
        size, step = pending.pop()
        strides.append(step)
        if size > extent:
            pending.append((size // extent, extent * step))
    return None if pending else tuple(reversed(strides))


def _runs(sizes: Sequence[int], steps: Sequence[int]) -> list[tuple[int, int]]:
    """Extent and step of the longest runs of equally spaced positions, the outermost first."""
    runs: list[tuple[int, int]] = []
    for size, step in zip(sizes, steps, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * step:
            size *= runs.pop()[0]
        runs.append((size, step))
    return runs
