"""`llvm.tensor.convolution`: a contraction on overlapping views of the input, without copies of windows.

Rewrite of 1 x 64 x 56 x 56 with 64 x 64 x 3 x 3, the result 54 x 54::

    %y = call <186624 x float> @llvm.tensor.convolution(token %x, token %w)
    ->
    %lhs.buf = w as 3 x 3 x 64 x 64                          ; position, filter, channel: channels next to each other
    batch.loop:                                              ; 54 rows of the result
      y[:, row, :] = lhs.buf[0] @ x[:, row, 0:54]            ; 64 x 64 times 64 x 54
      k.loop:                                                ; the other 8 positions in the kernel
        y[:, row, :] += lhs.buf[i, j] @ x[:, row + i, j:j+54]

Positions in the kernel are summed dimensions with the same strides in the input as positions of the result. The input
is copied first where that is faster (`convolution.layouts`). A dilated input becomes several convolutions of the input
itself (`convolution.transposed`); where these are many or small, zeros are written between its elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.intrinsics.convolution import Windows, dilated
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import bytes_of
from tlx.lower.memory.views import Storage, StridedDim, TensorView
from tlx.lower.to_2d.contraction.operand_copies import strided_view
from tlx.lower.to_2d.contraction.problem import ContractionEpilogue, ContractionResult, OperandMemory
from tlx.lower.to_2d.convolution.dense import best_layout, emit_convolution
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.convolution.transposed import TransposedConvolution, choose_phases, emit_phases
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.memory.copies import copy, copy_cycles, fill_zero
from tlx.lower.to_2d.rules.context import RuleContext
from tlx.target.target import Target

_FILLED: Final = 32
"""Bytes of zeros that are written in a cycle."""


def lower_convolution(
    context: RuleContext,
    b: TensorBuilder,
    op: TensorOp,
    target: TensorView,
    epilogue: ContractionEpilogue | None = None,
) -> None:
    """Write the cross-correlation of two tensors to `target`."""
    x, w = (context.view(tensor) for tensor in op.tensors)
    windows = Windows.of(len(x.dims), op.dims)
    result = ContractionResult(target, None, epilogue)
    if any(dim.extent > 1 < step for dim, step in zip(x.dims[::-1], windows.input_steps[::-1], strict=False)):
        with_holes, dilated = DilatedInput(x, windows), TransposedConvolution(x, w, windows, result)
        choice = choose_phases(context.target, dilated)
        if choice is not None and choice.cycles < with_holes.cycles(context.target, w, result):
            emit_phases(context, b, op, dilated, choice)
            return
        x = with_holes.emit(context, b, op)
    emit_convolution(context, b, op, DenseConvolution(x, w, windows, result))


@dataclass(frozen=True)
class DilatedInput:
    """A copy of the input with zeros between its elements.

    Attributes:
        x: The input.
        windows: How far apart its elements are.
    """

    x: TensorView
    windows: Windows

    @property
    def steps(self) -> tuple[int, ...]:
        """Positions from one element to the next, along each dimension."""
        return (1,) * (len(self.x.dims) - len(self.windows.input_steps)) + self.windows.input_steps

    @property
    def type(self) -> TensorType:
        """The copy's type."""
        extents = [dilated(dim.extent, step) for dim, step in zip(self.x.dims, self.steps, strict=True)]
        return TensorType.dense(self.x.element, extents)

    def cycles(self, target: Target, w: TensorView, result: ContractionResult) -> float:
        """About how many cycles it takes to make, and to read in a convolution."""
        whole = TensorView.of(Storage(self.x.storage.pointer), self.type)
        _, cycles = best_layout(
            target, DenseConvolution(whole, w, self.windows, replace(result, epilogue=None)), result.element
        )
        return cycles + self.type.count * bytes_of(self.x.element) / _FILLED + copy_cycles(self.x.dims, self.x.element)

    def emit(self, context: EmitContext, b: TensorBuilder, op: TensorOp) -> TensorView:
        """Write the copy."""
        context.remark_copy(op, self.type.element, self.type.count, "x", "it is dilated")
        whole = TensorView.of(context.allocate(self.x.element, self.type.count, "dilated"), self.type)
        fill_zero(b, whole)
        dims = [
            StridedDim(d.extent, t.stride * step)
            for d, t, step in zip(self.x.dims, whole.dims, self.steps, strict=True)
        ]
        copy(b, self.x, strided_view(OperandMemory.of(whole), dims))
        return whole
