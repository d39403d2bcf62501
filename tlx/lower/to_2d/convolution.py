"""`llvm.tensor.convolution`: a contraction on overlapping views of the input, without copies of windows.

Rewrite of 1 x 64 x 56 x 56 with 64 x 64 x 3 x 3, the result 54 x 54::

    %y = call <186624 x float> @llvm.tensor.convolution(token %x, token %w)
    ->
    %lhs.buf = w as 3 x 3 x 64 x 64                          ; position, filter, channel: channels next to each other
    batch.loop:                                              ; 54 rows of the result
      y[:, row, :] = lhs.buf[0] @ x[:, row, 0:54]            ; 64 x 64 times 64 x 54
      k.loop:                                                ; the other 8 positions in the kernel
        y[:, row, :] += lhs.buf[i, j] @ x[:, row + i, j:j+54]

Positions in the kernel are dimensions that are added up, and walk through the input as positions of the result do.
Three things are copied first, where that pays: an input with holes (into zeros); an input along whose rows the kernel
moves on by more than one element; and one of few channels, for a unit that takes many positions along K at a time.
The second is split into as many regions, so that neighbours in the result read neighbours:

    x       0 1 2 3 4 5 6          stride 2          0 2 4 6 | 1 3 5

In the third's copy channels are innermost: a row of the window is one dimension, with its channels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from tlx.intrinsics.convolution import Windows, dilated
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import Type, bytes_of
from tlx.lower.to_2d.blocking import copy_cycles
from tlx.lower.to_2d.blocks import emit_contraction, strided_view
from tlx.lower.to_2d.buffers import size_text
from tlx.lower.to_2d.contraction import Contraction, Epilogue, Memory, Result, Steps, Uneven
from tlx.lower.to_2d.copies import copy, fill_zero
from tlx.lower.to_2d.plan import STAGE, Plan
from tlx.lower.to_2d.views import Dim, View
from tlx.lower.to_2d.ways import least_cycles, unit_of
from tlx.types import TensorType


def lower_convolution(
    plan: Plan, b: TensorBuilder, op: TensorOp, target: View, epilogue: Epilogue | None = None
) -> None:
    """Write the cross-correlation of two tensors to `target`."""
    x, w = (plan.view(tensor) for tensor in op.tensors)
    windows = Windows.of(len(x.dims), op.dims)
    x = _with_holes(plan, b, op, x, windows)
    problem = _Problem(x, w, windows, Result(target, None, epilogue))
    element = target.element if epilogue is None else epilogue.element
    image = _best_image(plan, problem, element)
    if image is None:
        emit_contraction(plan, b, op, problem.contraction, epilogue)
        return
    type_ = TensorType.dense(x.element, image.extents)
    _remark(plan, op, type_, image.reason)
    place = plan.new_place(x.element, type_.count, image.name)
    image.write(b, View.of(place, type_))
    emit_contraction(plan, b, op, image.contraction(Memory(place.pointer, x.element)), epilogue)


def _best_image(plan: Plan, problem: _Problem, element: Type) -> _Split | _ChannelsLast | None:
    """The copy of the input that takes the fewest cycles, its making included; None for the input as it lies."""
    memory = Memory.of(problem.x)
    best, least = None, least_cycles(plan, problem.contraction, element)
    for image in (problem.split(), problem.channels_last(unit_of(plan, problem.contraction, element).step)):
        if image is None:
            continue
        cycles = least_cycles(plan, image.contraction(memory), element)
        cycles += copy_cycles(math.prod(image.extents), memory.element)
        if cycles < least:
            best, least = image, cycles
    return best


def _remark(plan: Plan, op: TensorOp, type_: TensorType, reason: str) -> None:
    size = size_text(type_.count * bytes_of(type_.element))
    plan.context.remarks.add("missed", STAGE, f"copy of {size} of operand x, because {reason}", op.instruction.span)


def _with_holes(plan: Plan, b: TensorBuilder, op: TensorOp, x: View, windows: Windows) -> View:
    """The input with zeros between its elements, in a buffer, where it is dilated."""
    steps = (1,) * (len(x.dims) - len(windows.input_steps)) + windows.input_steps
    extents = [dilated(dim.extent, step) for dim, step in zip(x.dims, steps, strict=True)]
    if extents == [dim.extent for dim in x.dims]:
        return x
    type_ = TensorType.dense(x.element, extents)
    _remark(plan, op, type_, "it is dilated")
    whole = View.of(plan.new_place(x.element, type_.count, "dilated"), type_)
    fill_zero(b, whole)
    dims = [Dim(d.extent, t.stride * step) for d, t, step in zip(x.dims, whole.dims, steps, strict=True)]
    copy(b, x, strided_view(Memory.of(whole), dims))
    return whole


@dataclass(frozen=True)
class _Problem:
    """A convolution of an input without holes."""

    x: View
    w: View
    windows: Windows
    result: Result

    @property
    def channels(self) -> int:
        """Dimensions before the spatial ones: N and C, or none."""
        return len(self.x.dims) - len(self.windows.strides)

    @property
    def contraction(self) -> Contraction:
        """The dimensions by role: groups are the batch, filters M, positions and images N, channels and kernel K."""
        x, w, result = self.x.dims, self.w.dims, self.result
        first = self.channels
        out = result.target.dims
        positions = [
            result.free(d, out[d].extent, rhs=x[d].stride * stride)
            for d, stride in enumerate(self.windows.strides, first)
        ]
        taps = [
            result.summed(w[d].extent, w[d].stride, x[d].stride * step)
            for d, step in enumerate(self.windows.kernel_steps, first)
        ]
        memories = Memory.of(self.w), Memory.of(self.x), Memory.of(result.target)
        if not first:
            return Contraction("matmul", *memories, (), (), tuple(positions), tuple(taps))
        inner = w[1].extent
        groups = x[1].extent // inner
        filters = w[0].extent // groups
        batch = result.free(1, groups, lhs=w[0].stride * filters, rhs=x[1].stride * inner, times=filters)
        images = result.free(0, x[0].extent, rhs=x[0].stride)
        channels = result.summed(inner, w[1].stride, x[1].stride)
        m = (result.free(1, filters, lhs=w[0].stride),)
        return Contraction("matmul", *memories, (batch,), m, (images, *positions), (channels, *taps))

    def split(self) -> _Split | None:
        """The input split along its last dimension; None where its elements are read one after the other."""
        last = len(self.x.dims) - 1
        step, extent = self.windows.strides[-1], self.result.target.dims[last].extent
        if step == 1 or extent == 1:
            return None
        return _Split(self)

    def channels_last(self, step: int) -> _ChannelsLast | None:
        """The input with channels innermost; None where they alone are whole steps along K, or there is no window."""
        taps = math.prod(dim.extent for dim in self.w.dims[self.channels :])
        if not self.channels or self.x.dims[1].extent != self.w.dims[1].extent:
            return None
        return None if taps == 1 or self.w.dims[1].extent % step == 0 else _ChannelsLast(self)


@dataclass(frozen=True)
class _ChannelsLast:
    """A convolution whose input is copied with its channels next to each other.

    The channels of neighbours along a row are next to each other, too: those of a window's row are one dimension.

        x[0, 0] x[1, 0] x[2, 0] x[0, 1] x[1, 1] x[2, 1] ...        7 x 7, 3 channels: 7 sums of 21 products
    """

    problem: _Problem
    name: Final = "last"
    reason: Final = "its few channels are summed together with those of their neighbours"

    @property
    def extents(self) -> list[int]:
        """Images, rows, columns, channels."""
        images, channels, *spatial = (dim.extent for dim in self.problem.x.dims)
        return [images, *spatial, channels]

    def _dims(self, element: Type) -> list[Dim]:
        """The copy's dimensions in the input's order."""
        images, *spatial, channels = map(Dim, self.extents, TensorType.dense(element, self.extents).strides())
        return [images, channels, *spatial]

    def contraction(self, memory: Memory) -> Contraction:
        """The contraction that reads the copy."""
        return replace(self.problem, x=strided_view(memory, self._dims(memory.element))).contraction

    def write(self, b: TensorBuilder, target: View) -> None:
        """Copy the input."""
        copy(b, self.problem.x.row_major, strided_view(Memory.of(target), self._dims(target.element)))


@dataclass(frozen=True)
class _Split:
    """A convolution whose input is split into regions of every `period`-th element of each row."""

    problem: _Problem
    name: Final = "split"

    @property
    def reason(self) -> str:
        """Why the input is copied."""
        return f"its rows are read in steps of {self.period}"

    @property
    def period(self) -> int:
        """How far the kernel moves on along a row."""
        return self.problem.windows.strides[-1]

    @property
    def _starts(self) -> list[tuple[int, int]]:
        """For each position in the kernel's row the region it reads, and from where on."""
        step = self.problem.windows.kernel_steps[-1]
        places = (divmod(i * step, self.period) for i in range(self.problem.w.dims[-1].extent))
        return [(region, start) for start, region in places]

    @property
    def _columns(self) -> int:
        """Elements of a row of a region that are read, where most are."""
        return self.problem.result.target.dims[-1].extent + max(start for _, start in self._starts)

    @property
    def extents(self) -> list[int]:
        """Regions, and the dimensions of one."""
        regions = 1 + max(region for region, _ in self._starts)
        return [regions, *(dim.extent for dim in self.problem.x.dims[:-1]), self._columns]

    def contraction(self, memory: Memory) -> Contraction:
        """The contraction that reads the regions."""
        problem = self.problem
        region, *strides = TensorType.dense(memory.element, self.extents).strides()
        dims = [Dim(dim.extent, stride) for dim, stride in zip(problem.x.dims, strides, strict=True)]
        windows = replace(problem.windows, strides=(*problem.windows.strides[:-1], 1))
        dense = _Problem(strided_view(memory, dims), problem.w, windows, problem.result).contraction
        taps = problem.w.dims[-1]
        steps = Steps(problem.windows.kernel_steps[-1], self.period, region, 1)
        uneven = Uneven(taps.extent, Steps.by(taps.stride), steps)
        if taps.extent == 1 or steps.step % steps.period == 0:
            *others, (extent, (lhs, _, *zeros)) = dense.k
            walk = extent, (lhs, steps.step // steps.period, *zeros)
            return replace(dense, k=(*others, walk))
        return replace(dense, k=dense.k[:-1], uneven=uneven)

    def write(self, b: TensorBuilder, target: View) -> None:
        """Copy the input into the regions."""
        x = self.problem.x
        for region in sorted({region for region, _ in self._starts}):
            columns = min(self._columns, -(-(x.dims[-1].extent - region) // self.period))
            start = b.gep(x.element, x.place.pointer, region * x.dims[-1].stride)
            source = [*x.dims[:-1], Dim(columns, x.dims[-1].stride * self.period)]
            there = b.gep(x.element, target.place.pointer, region * target.dims[0].stride)
            dims = [*target.dims[1:-1], Dim(columns, target.dims[-1].stride)]
            copy(b, strided_view(Memory(start, x.element), source), strided_view(Memory(there, x.element), dims))
