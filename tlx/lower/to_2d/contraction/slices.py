"""Operands that are copied slice by slice, each into the same buffer, which stays in the caches.

for slice                          4 times
  buffer = slice of the operand
  for y                            the blocks of the result that read it
    out[:, slice, y, :] = w @ buffer[y, :]
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I64
from tlx.ir.values import Value, zero
from tlx.lower.to_2d.contraction.problem import LHS, RHS
from tlx.lower.to_2d.loop_nests import LoopDim, loop_nest


@dataclass(frozen=True)
class SlicedOperand:
    """An operand that is copied slice by slice.

    Attributes:
        column: The operand: LHS or RHS.
        loops: The loops over slices, with strides in the operands (for this operand, in its source) and in the result.
        write: Writes the slice at an element offset of the source.
    """

    column: int
    loops: Sequence[LoopDim]
    write: Callable[[Value], None]

    def swapped(self) -> SlicedOperand:
        """The operand of the contraction with swapped operands."""
        walks = [LoopDim(extent, (rhs, lhs, *others)) for extent, (lhs, rhs, *others) in self.loops]
        return SlicedOperand(RHS if self.column == LHS else LHS, walks, self.write)


@contextmanager
def slice_loops(b: TensorBuilder, sliced: SlicedOperand | None, columns: Sequence[int]) -> Generator[list[Value]]:
    """Write the loops over slices, each of which is written first; without a sliced operand there are none.

    Args:
        b: The builder.
        sliced: The sliced operand.
        columns: The operands and the result, by their columns in the loops.

    Yields:
        The offset of each of them in an iteration; that of the sliced operand is 0.
    """
    loops = [] if sliced is None else [LoopDim(n, tuple(strides[c] for c in columns)) for n, strides in sliced.loops]
    with loop_nest(b, loops, len(columns), "part", independent=False) as starts:
        if sliced is None:
            yield starts
            return
        sliced.write(starts[columns.index(sliced.column)])
        yield [zero(I64) if column == sliced.column else start for column, start in zip(columns, starts, strict=True)]
