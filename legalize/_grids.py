"""Grids of tile registers: which flattened vectors are held in them, and in how many along M and N."""

from __future__ import annotations

from tlx.ir.module import Instruction
from tlx.ir.values import Local


def spread(found: dict[str, tuple[int, int]], phis: dict[str, Instruction]) -> dict[str, tuple[int, int]]:
    """Carry grids from sums through phis, both ways."""
    changed = True
    while changed:
        before = len(found)
        for name, phi in phis.items():
            sources = [value.name for value, _ in phi.incoming if isinstance(value, Local)]
            grid = next((found[n] for n in (name, *sources) if n in found), None)
            if grid is not None:
                found |= {n: grid for n in (name, *sources) if n == name or n in phis}
        changed = len(found) > before
    return found
