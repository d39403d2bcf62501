"""Dilated inputs: whether zeros are written between the elements of an input, or phases read the input itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tlx.intrinsics.convolution import Windows
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import bytes_of
from tlx.lower.memory.views import Storage, StridedDim, TensorView
from tlx.lower.to_2d.contraction.problem import OperandMemory, strided_view
from tlx.lower.to_2d.convolution.dense import best_layout
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.convolution.transposed import PhaseCopies, TransposedConvolution, choose_phases
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.memory.copies import copy, copy_cycles, fill_zero
from tlx.lower.to_2d.memory.padding import PaddedDim
from tlx.target.target import Target


@dataclass(frozen=True)
class DilatedInput:
    """A copy of the input with zeros between its elements, and perhaps around them.

    Attributes:
        x: The input.
        dims: Its dimensions in the copy.
    """

    x: TensorView
    dims: Sequence[PaddedDim]

    @classmethod
    def by_windows(cls, x: TensorView, windows: Windows) -> DilatedInput:
        """The copy of an input that the windows of a convolution dilate."""
        steps = (1,) * (len(x.dims) - len(windows.input_steps)) + windows.input_steps
        extents = (dim.extent for dim in x.dims)
        return cls(x, [PaddedDim(0, e, 0, step, (e - 1) * step + 1) for e, step in zip(extents, steps, strict=True)])

    @property
    def type(self) -> TensorType:
        """The copy's type."""
        return TensorType.dense(self.x.element, [dim.extent for dim in self.dims])

    def cycles(self, target: Target, dilated: TransposedConvolution) -> float:
        """The estimated cycles of the copy and of the convolution that reads it."""
        whole = TensorView.of(Storage(self.x.storage.pointer), self.type)
        windows, result = dilated.windows, replace(dilated.result, epilogue=None)
        _, cycles = best_layout(target, DenseConvolution(whole, dilated.w, windows, result), result.element)
        zeroed = self.type.count * bytes_of(self.x.element) / target.block_costs.convolutions.zeroed_bytes_per_cycle
        return cycles + zeroed + copy_cycles(self.x.dims, self.x.element, target)

    def faster_phases(self, target: Target, dilated: TransposedConvolution) -> PhaseCopies | None:
        """The copies with which phases of the result are fastest; None if the copy with zeros is faster than phases."""
        choice = choose_phases(target, dilated)
        return None if choice is None or choice.cycles >= self.cycles(target, dilated) else choice

    def emit(self, context: EmitContext, b: TensorBuilder, op: TensorOp) -> TensorView:
        """Write the copy."""
        context.remark_copy(op, self.type.element, self.type.count, "x", "it is dilated")
        whole = TensorView.of(context.allocate(self.x.element, self.type.count, "dilated"), self.type)
        fill_zero(b, whole)
        every = zip(self.x.dims, whole.dims, self.dims, strict=True)
        dims = [StridedDim(source.extent, to.stride * dim.step) for source, to, dim in every]
        copy(b, self.x, strided_view(OperandMemory.of(whole), dims))
        return whole
