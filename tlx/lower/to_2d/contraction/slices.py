"""Operands that are copied slice by slice, each into the same buffer, which stays in the caches.

for slice                          4 times
  buffer = slice of the operand
  for y                            the blocks of the result that read it
    out[:, slice, y, :] = w @ buffer[y, :]

Slices of an operand that is constant over calls are products of their own, whose copies the preparation makes: in a
loop, all slices would share one buffer, and each call would copy them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product

from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I64
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_2d.contraction.blocking import Blocking
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
        dims = [LoopDim(extent, (rhs, lhs, *others)) for extent, (lhs, rhs, *others) in self.loops]
        return SlicedOperand(RHS if self.column == LHS else LHS, dims, self.write)


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


def constant_slices(
    b: TensorBuilder, blocking: Blocking, column: int | None
) -> Iterator[tuple[Blocking, tuple[int, ...]]]:
    """The blockings of the slices of a constant operand, or the whole one.

    Args:
        b: The builder.
        blocking: The whole blocking.
        column: The operand that is copied slice by slice: LHS, RHS or none.

    Yields:
        A blocking, and where it starts in each operand, the result, and the epilogue's operands; the sliced operand
        starts at its slice.
    """
    c = blocking.contraction
    runs = [] if column is None else [run for run in blocking.loops if run.strides[column]]
    if column is None or not (c.lhs, c.rhs)[column].is_constant or len(blocking.copied) > 1:
        yield blocking, (0,) * c.width
        return
    outside = {
        name: tuple(run for run in getattr(blocking, name) if run not in runs)
        for name in ("batch", "outer_m", "outer_n")
    }
    for place in product(*(range(run.extent) for run in runs)):
        starts = [sum(i * run.strides[k] for i, run in zip(place, runs, strict=True)) for k in range(c.width)]
        memory = (c.lhs, c.rhs)[column]
        pointer = b.gep(memory.element, memory.pointer, const_int(I64, starts[column]))
        starts[column] = 0
        slice_ = memory._replace(pointer=pointer)
        part = replace(c, lhs=slice_) if column == LHS else replace(c, rhs=slice_)
        yield replace(blocking, contraction=part, **outside), tuple(starts)
