"""Convolutions whose input has a border that is not in memory, without a copy of the whole input.

Results whose windows lie inside of the input read it in place. Those at its edges read copies of the rows and columns
that their windows cover, together with the border::

    x of 6 x 6, windows of 3 x 3         a a a a a a     a: read rows 0 and 1, and the border above them
    in a border of 1                     l i i i i r     l, r: read columns 0 and 1, or 4 and 5, and the border
                                         l i i i i r     b: read rows 4 and 5, and the border below them
                                         l i i i i r     i: read x
                                         l i i i i r
                                         b b b b b b

Each region is a convolution of its own. That pays where products take no longer than the copy, as in a depthwise
convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tlx.intrinsics.convolution import dilated
from tlx.ir.tensors.builder import TensorBuilder
from tlx.lower.memory.views import Storage, StridedDim, TensorView
from tlx.lower.to_2d.contraction.problem import ContractionResult
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.memory.copies import slice_view
from tlx.lower.to_2d.memory.padding import Box, PaddedDim, PaddedSource, border_boxes


@dataclass(frozen=True)
class EdgeRegions:
    """The regions of a convolution's result.

    Attributes:
        problem: The convolution, whose input has a border that is not in memory.
        padding: What the input is copied from.
        boxes: The regions, as the first position and the extent along each dimension of the result; that whose windows
            lie inside of the input is the last.
    """

    problem: DenseConvolution
    padding: PaddedSource
    boxes: tuple[Box, ...]

    @classmethod
    def of(cls, problem: DenseConvolution) -> EdgeRegions | None:
        """The regions; None if the border is in memory, or may be written where the input is computed."""
        padding, first = problem.padding, problem.channels
        if padding is None or padding.data.storage.load is None or problem.contraction.reduces:
            return None
        out = [dim.extent for dim in problem.result.destination.dims]
        dims = [PaddedDim(0, extent, 0, 1, extent) for extent in out[:first]]
        for dim, extent, stride, reach in zip(
            padding.dims[first:], out[first:], problem.windows.strides, _reaches(problem), strict=True
        ):
            start = -(-dim.at // stride)
            end = min(extent, (dim.at + dim.count - reach) // stride + 1)
            if end <= start:
                return None
            dims.append(PaddedDim(0, end - start, start, 1, extent))
        inside = tuple((dim.at, dim.count) for dim in dims)
        return cls(problem, padding, (*border_boxes(dims), inside))

    def convolutions(self, b: TensorBuilder | None = None) -> list[DenseConvolution]:
        """The convolutions of the regions; without a builder, for estimates, all at the address of the whole."""
        return [self._region(box, b) for box in self.boxes]

    def _region(self, box: Box, b: TensorBuilder | None) -> DenseConvolution:
        problem, result, first = self.problem, self.problem.result, self.problem.channels
        strides = problem.windows.strides
        read = [
            dim.every(1, start * stride, (count - 1) * stride + reach)
            for dim, (start, count), stride, reach in zip(
                self.padding.dims[first:], box[first:], strides, _reaches(problem), strict=True
            )
        ]
        dims = (*self.padding.dims[:first], *read)
        data = _part(self.padding.data, [(dim.first, dim.count) for dim in dims], b)
        destination = _part(result.destination, box, b)
        epilogue = None if result.epilogue is None else result.epilogue.from_position([start for start, _ in box])
        part = replace(problem, x=data, result=ContractionResult(destination, None, epilogue), padding=None)
        dims = tuple(replace(dim, first=0) for dim in dims)
        if all(dim.is_identity for dim in dims):
            return part
        padding = replace(self.padding, data=data, dims=dims)
        return replace(part, x=padding.view, padding=padding)


def _reaches(problem: DenseConvolution) -> list[int]:
    """Number of elements that a window covers along each spatial dimension."""
    kernel = problem.w.dims[problem.channels :]
    return [dilated(dim.extent, step) for dim, step in zip(kernel, problem.windows.kernel_steps, strict=True)]


def _part(view: TensorView, box: Sequence[tuple[int, int]], b: TensorBuilder | None) -> TensorView:
    """A part of a view; without a builder, at the address of the view."""
    memory = Storage(view.storage.pointer)
    if b is not None:
        return slice_view(b, TensorView.strided(memory, view.element, view.dims), box)
    dims = [StridedDim(count, dim.stride) for (_, count), dim in zip(box, view.dims, strict=True)]
    return TensorView.strided(memory, view.element, dims)
