"""Copies of a contraction's operands in the order in which blocks read them, whole or slice by slice.

x of 2 x 3 windows in 5 rows, copied          loops     step in the input     step in the copy
                                              i         5                     3 * 12
    i, j   y, x                               j         1                     12
    0, 0   12 elements next to each other     y, x      5, 1                  1
    0, 1   12 elements

An operand that does not fit into the caches is copied slice by slice, each into the same buffer:

for slice                          4 times
  buffer = slice of the operand    copied, in the order in which blocks read it
  for y                            the blocks of the result that read it
    out[:, slice, y, :] = w @ buffer[y, :]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.values import Value
from tlx.lower.memory.views import Storage, StridedDim, TensorView
from tlx.lower.to_2d.contraction.blocking import Blocking
from tlx.lower.to_2d.contraction.problem import LHS, RHS, ModularStride, OperandMemory, QuasiAffineDim
from tlx.lower.to_2d.contraction.vnni import VnniCopy, VnniRows, with_dense_strides
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.loop_nests import CollapsedDims, LoopDim
from tlx.lower.to_2d.memory.copies import copy

_OPERANDS: Final = ("lhs", "rhs")


@dataclass(frozen=True)
class ContractionLoops:
    """The loops of a contraction, with the strides of its operands or of their copies.

    Attributes:
        loops: The loops around the blocks of the result.
        sums: The loops around the products of a block.
        m, n, k: The dimensions of a product.
    """

    loops: list[LoopDim]
    sums: list[QuasiAffineDim]
    m: LoopDim
    n: LoopDim
    k: LoopDim


class OperandCopies:
    """Copies operands, which become dense in the order in which they are read."""

    def __init__(self, context: EmitContext, b: TensorBuilder, op: TensorOp, blocking: Blocking) -> None:
        self.context, self.op = context, op
        self.b = b
        self.blocking = blocking
        self.strides: dict[tuple[int, CollapsedDims], int] = {}
        alone = context.threads == "none"  # threads cannot share the buffer of a slice
        self._column = blocking.sliced_operand(context.target.blocks.near) if alone else None
        self._runs = [] if self._column is None else [run for run in blocking.loops if run.strides[self._column]]
        self._write: Callable[[Value], None] | None = None

    @property
    def sliced(self) -> SlicedOperand | None:
        """The operand that is copied slice by slice, if there is one; known once `operand` was called for both."""
        if self._column is None or self._write is None:
            return None
        return SlicedOperand(self._column, [self._walk(run) for run in self._runs], self._write)

    def operand(self, column: int) -> OperandMemory:
        """The memory that an operand is read from: its own, or a copy, which `sliced` may fill."""
        memory = (self.blocking.contraction.lhs, self.blocking.contraction.rhs)[column]
        if column not in self.blocking.copied:
            return memory
        runs = self.blocking.order(column)
        if column == RHS and self.blocking.groups is not None:
            return self._grouped(memory, runs, self.blocking.groups)
        if column == self._column:
            runs = [run for run in runs if run not in self._runs]
        dims = [dim.of(column) for run in runs for dim in run.dims]
        dense = TensorType.dense(memory.element, [dim.extent for dim in dims] or [1])
        place = self.context.allocate_copy(self.op, memory.element, dense.count, _OPERANDS[column])
        self._note(column, runs)
        source, target = strided_view(memory, dims), TensorView.of(place, dense)
        if column == self._column:
            self._write = partial(self._copy_part, source, target)
        else:
            copy(self.b, source, target)
        return OperandMemory(place.pointer, memory.element)

    def _copy_part(self, source: TensorView, target: TensorView, offset: Value) -> None:
        start = OperandMemory(self.b.gep(source.element, source.storage.pointer, offset), source.element)
        copy(self.b, strided_view(start, source.dims), target)

    def _grouped(self, memory: OperandMemory, runs: Sequence[CollapsedDims], groups: VnniRows) -> OperandMemory:
        """The right operand with interleaved rows; strides of rows and columns count groups."""
        *outer, rows, columns = runs
        room = self.blocking.padded_columns
        self.strides[RHS, columns], self.strides[RHS, rows] = 1, room
        self._note(RHS, outer, rows.extent * room)
        size = math.prod(run.extent for run in outer) * rows.extent * room
        reason = f"the matrix unit reads its rows in groups of {groups.width}"
        place = self.context.allocate_copy(self.op, memory.element, size, _OPERANDS[RHS], reason)
        loops = [
            walk for run in outer for walk in with_dense_strides([d.of(RHS) for d in run.dims], self.strides[RHS, run])
        ]
        dims = tuple(dim.of(RHS) for dim in columns.dims)
        strip = self.blocking.tile_columns
        copied = VnniCopy(self.b, memory, groups, tuple(loops), dims, strip or room, strip * rows.extent)
        copied.write(place.pointer)
        return OperandMemory(place.pointer, memory.element, groups.width, room, strip)

    def _note(self, column: int, runs: Sequence[CollapsedDims], stride: int = 1) -> None:
        for run in reversed(runs):
            self.strides[column, run] = stride
            stride *= run.extent

    def nest(self) -> ContractionLoops:
        """The loops of the contraction, once `operand` was called for both operands."""
        blocking = self.blocking
        loops = [self._walk(run) for run in blocking.loops if run not in self._runs]
        sums = [*self._quasi_affine(), *map(self._sum, blocking.outer_k)]
        return ContractionLoops(loops, sums, *map(self._walk, (blocking.m, blocking.n, blocking.k)))

    def _walk(self, run: CollapsedDims) -> LoopDim:
        strides = (self.strides.get((column, run), stride) for column, stride in enumerate(run.strides))
        return LoopDim(run.extent, tuple(strides))

    def _sum(self, run: CollapsedDims) -> QuasiAffineDim:
        extent, strides = self._walk(run)
        return QuasiAffineDim(extent, *(ModularStride.by(strides[column]) for column in (LHS, RHS)))

    def _quasi_affine(self) -> list[QuasiAffineDim]:
        """The quasi-affine dimension, whose strides are affine in a copy."""
        quasi_affine = self.blocking.contraction.quasi_affine
        if quasi_affine is None:
            return []
        (run,) = self.blocking.quasi_affine
        copies = [self.strides.get((column, run)) for column in (LHS, RHS)]
        old = quasi_affine.lhs, quasi_affine.rhs
        return [
            QuasiAffineDim(
                quasi_affine.extent,
                *(s if c is None else ModularStride.by(c) for s, c in zip(old, copies, strict=True)),
            )
        ]


def strided_view(memory: OperandMemory, dims: Sequence[StridedDim[int]]) -> TensorView:
    """A view with any dimensions, including those of overlapping windows."""
    return TensorView.strided(Storage(memory.pointer), memory.element, dims or [StridedDim(1, 1)])


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
