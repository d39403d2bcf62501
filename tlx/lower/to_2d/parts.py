"""An operand of a contraction that is made part by part, over the one before, so that a part stays in the caches.

for part                           4 times
  buffer = part of the operand     copied, or brought to another order
  for y                            the blocks of the result that read it
    out[:, part, y, :] = w @ buffer[y, :]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlx.ir.values import Value
from tlx.lower.to_2d.contraction import LHS, RHS
from tlx.lower.to_2d.loops import Walk


@dataclass(frozen=True)
class Parts:
    """The loops around what is done with a part, and what makes it.

    Attributes:
        column: The operand: LHS, RHS.
        walks: From part to part: how many, and elements in the result and the operands (of this one: in its source).
        write: Makes the part that begins so many elements behind the first one.
    """

    column: int
    walks: Sequence[Walk]
    write: Callable[[Value], None]

    def swapped(self) -> Parts:
        """Those of the transpose."""
        walks = [(extent, (rhs, lhs, *others)) for extent, (lhs, rhs, *others) in self.walks]
        return Parts(RHS if self.column == LHS else LHS, walks, self.write)
