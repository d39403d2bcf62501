"""Transposed convolutions: a dilated input, computed as convolutions of the undilated input (phases, or sub-pixels).

Along one dimension `y[o]` is the sum of `w[j] * x[(o * stride + j * step) / 2]` over the positions j in the kernel at
which the index is an integer, and so not a hole. Four positions, one hole between neighbours, stride and step 1::

    x with holes    0   .   1   .   2   .   3
    y[0]            0       2                     j          phase 0    y[2q]     = w[0] * x[q]     + w[2] * x[q + 1]
    y[1]                1       3                            phase 1    y[2q + 1] = w[1] * x[q + 1] + w[3] * x[q + 2]
    y[2]                    0       2

An input that `pad` has dilated may have a border as well. Its place in the undilated input is the border of that, whose
copy writes it: `origin` is then the place of the copy's first element in the input with holes::

    border 3    .   .   .   0   .   1   .   2   .       the copy: one zero, then x; origin 3 - 2 = 1

If neighbours in a row of the result belong to different phases, each phase is written to a buffer, then interleaved::

    phase 0    y[0] y[2] y[4] ...
    phase 1    y[1] y[3] y[5] ...    ->    y[0] y[1] y[2] y[3] y[4] y[5] ...

Phases skip the products of weights and holes, which are 0 or NaN: see `skipped_products`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Final, NamedTuple

from tlx.intrinsics.convolution import Windows
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import FloatType, bytes_of
from tlx.ir.values import const_float, const_int
from tlx.lower.memory.views import StridedDim, TensorView
from tlx.lower.to_2d.analysis.tensor_operations import STAGE
from tlx.lower.to_2d.contraction.emit import emit_contraction
from tlx.lower.to_2d.contraction.problem import (
    Contraction,
    ContractionEpilogue,
    ContractionResult,
    OperandMemory,
    strided_view,
)
from tlx.lower.to_2d.convolution.dense import ReorderedCopy, best_layout, emit_convolution
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.convolution.skipped_products import SkippedProducts
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.memory.copies import copy, restrided_view
from tlx.lower.to_2d.memory.padding import PaddedDim, PaddedSource
from tlx.target.target import Target

_MAX_PHASES: Final = 64
"""Largest number of phases, each of which is code of its own."""


class AxisPhase(NamedTuple):
    """A phase along one dimension.

    Attributes:
        first, positions: Its first position in the result, and the number of its positions.
        kernel_start, kernel_positions: The first position in the kernel that reads elements, and the number of those.
        start: The element of the input that `kernel_start` reads at `first`.
    """

    first: int
    positions: int
    kernel_start: int
    kernel_positions: int
    start: int


Phase = tuple[AxisPhase, ...]
"""A phase along each spatial dimension."""


@dataclass(frozen=True)
class PhasedAxis:
    """The phases along one dimension.

    Attributes:
        period: Distance of a phase's positions in the result.
        stride: Distance of the elements of the input that they read.
        kernel_period: Distance of the positions in the kernel that read elements.
        element_step: Distance of the elements of the input that these read.
        phases: The phases, by their first position.
    """

    period: int
    stride: int
    kernel_period: int
    element_step: int
    phases: tuple[AxisPhase, ...]

    @classmethod
    def of(cls, positions: int, kernel: int, stride: int, input_step: int, kernel_step: int, origin: int) -> PhasedAxis:
        """The phases of `positions` results of a kernel of extent `kernel`; the steps are those of `Windows`.

        `origin` is the place of the input's first element in the input with holes.
        """
        period = input_step // math.gcd(stride, input_step)
        kernel_period = input_step // math.gcd(kernel_step, input_step)
        phases: list[AxisPhase] = []
        for first in range(min(period, positions)):
            places = (
                (kernel_start, first * stride + kernel_start * kernel_step - origin)
                for kernel_start in range(min(kernel_period, kernel))
            )
            kernel_start, place = next(
                (candidate for candidate in places if candidate[1] % input_step == 0), (kernel, 0)
            )
            count, kernel_positions = -(-(positions - first) // period), -(-(kernel - kernel_start) // kernel_period)
            phases.append(AxisPhase(first, count, kernel_start, kernel_positions, place // input_step))
        element_step = kernel_period * kernel_step // input_step
        return cls(period, period * stride // input_step, kernel_period, element_step, tuple(phases))

    @property
    def read(self) -> tuple[int, int]:
        """The elements of the input that are read: the first one, which may be negative, and the end."""
        reading = [p for p in self.phases if p.kernel_positions]
        steps = self.stride, self.element_step
        ends = [p.start + (p.positions - 1) * steps[0] + (p.kernel_positions - 1) * steps[1] + 1 for p in reading]
        return min((p.start for p in reading), default=0), max(ends, default=0)


@dataclass(frozen=True)
class TransposedConvolution:
    """A convolution of a dilated input.

    Attributes:
        x: The undilated input, with its border.
        w: The kernel.
        windows: Strides of the kernel in the dilated input, and dilations.
        result: The destination, with the epilogue.
        origin: Place of the input's first element in the dilated input, along each spatial dimension.
        padding: What the input is copied from if it has a border that is not in memory; `x` is then for estimates.
    """

    x: TensorView
    w: TensorView
    windows: Windows
    result: ContractionResult
    origin: tuple[int, ...]
    padding: PaddedSource | None = None

    @classmethod
    def of(cls, x: TensorView, w: TensorView, windows: Windows, result: ContractionResult) -> TransposedConvolution:
        """A convolution whose windows dilate the input, without a border."""
        return cls(x, w, windows, result, (0,) * len(windows.strides))

    @classmethod
    def of_padded(
        cls, source: PaddedSource, w: TensorView, windows: Windows, result: ContractionResult
    ) -> TransposedConvolution:
        """A convolution of an input that a pad dilates."""
        first, data = len(source.dims) - len(windows.strides), source.data
        steps = tuple(dim.step if dim.is_spread else 1 for dim in source.dims[first:])
        places = [dim.at - dim.first * step for dim, step in zip(source.dims[first:], steps, strict=True)]
        windows = replace(windows, input_steps=steps)
        borderless = cls(data, w, windows, result, tuple(places))
        read = [*((0, dim.extent) for dim in data.dims[:first]), *(axis.read for axis in borderless.axes)]
        dims = tuple(
            PaddedDim(0, dim.extent, max(0, -start), 1, max(dim.extent, end) + max(0, -start))
            for dim, (start, end) in zip(data.dims, read, strict=True)
        )
        if not any(dim.outside for dim in dims):
            return borderless
        inner = zip(places, dims[first:], steps, strict=True)
        origin = tuple(place - dim.at * step for place, dim, step in inner)
        extents = zip(dims, data.dims, strict=True)
        x = strided_view(OperandMemory.of(data), [StridedDim(padded.extent, dim.stride) for padded, dim in extents])
        return cls(x, w, windows, result, origin, replace(source, dims=dims))

    @property
    def channels(self) -> int:
        """Number of dimensions before the spatial ones: two, N and C, or none."""
        return len(self.x.dims) - len(self.windows.strides)

    @cached_property
    def axes(self) -> list[PhasedAxis]:
        """The phases along each spatial dimension."""
        first, windows = self.channels, self.windows
        sizes = zip(self.result.destination.dims[first:], self.w.dims[first:], strict=True)
        steps = zip(windows.strides, windows.input_steps, windows.kernel_steps, self.origin, strict=True)
        return [PhasedAxis.of(out.extent, w.extent, *step) for (out, w), step in zip(sizes, steps, strict=True)]

    @property
    def phases(self) -> list[Phase]:
        """All phases."""
        return list(product(*(axis.phases for axis in self.axes)))

    @property
    def periods(self) -> list[int]:
        """Distance of a phase's positions along each dimension of the result."""
        return [1] * self.channels + [axis.period for axis in self.axes]

    @property
    def interleaved(self) -> int | None:
        """The dimension along which phases are interleaved within rows of the result; None if there is none."""
        dims = zip(self.result.destination.dims, self.periods, strict=True)
        return next((d for d, (dim, period) in enumerate(dims) if period > 1 and dim.stride == 1 < dim.extent), None)

    def input_of(self, phase: Phase) -> _StridedBox:
        """The elements of the input that a phase reads."""
        along = [
            (p.start, (p.positions - 1) * axis.stride + (p.kernel_positions - 1) * axis.element_step + 1, 1)
            for p, axis in zip(phase, self.axes, strict=True)
        ]
        return _box(self.x.dims, along)

    def kernel_of(self, phase: Phase) -> _StridedBox:
        """The part of the kernel that a phase uses."""
        return _box(
            self.w.dims,
            [
                (p.kernel_start, p.kernel_positions, axis.kernel_period)
                for p, axis in zip(phase, self.axes, strict=True)
            ],
        )

    def destination_of(self, phase: Phase) -> _StridedBox:
        """The part of the result that a phase computes."""
        along = [(p.first, p.positions, axis.period) for p, axis in zip(phase, self.axes, strict=True)]
        return _box(self.result.destination.dims, along)

    @property
    def phase_windows(self) -> Windows:
        """Strides and dilation of a phase's kernel in its input."""
        return Windows(
            tuple(axis.stride for axis in self.axes),
            (1,) * len(self.axes),
            tuple(axis.element_step for axis in self.axes),
        )

    @property
    def skipped_positions(self) -> list[list[bool]]:
        """For each phase and each position in the kernel, row-major, whether the phase skips it."""
        extents = [dim.extent for dim in self.w.dims[self.channels :]]
        return [
            [
                not all(
                    position >= p.kernel_start and (position - p.kernel_start) % axis.kernel_period == 0
                    for position, p, axis in zip(positions, phase, self.axes, strict=True)
                )
                for positions in product(*map(range, extents))
            ]
            for phase in self.phases
        ]


class _StridedBox(NamedTuple):
    """A strided part of a view: the offset of its first element, and its dimensions."""

    offset: int
    dims: list[StridedDim[int]]


def _box(dims: Sequence[StridedDim[int]], along: Sequence[tuple[int, int, int]]) -> _StridedBox:
    """The part of a view with a start, an extent and a step along each of its last dimensions."""
    first = len(dims) - len(along)
    offset = sum(start * dim.stride for (start, _, _), dim in zip(along, dims[first:], strict=True))
    inner = [StridedDim(extent, dim.stride * step) for (_, extent, step), dim in zip(along, dims[first:], strict=True)]
    return _StridedBox(offset, [*dims[:first], *inner])


def _boxed_view(b: TensorBuilder, view: TensorView, box: _StridedBox) -> TensorView:
    return restrided_view(b, view, box.dims, box.offset)


# Choice --------------------------------------------------------------------------------------------------------------


class PhaseCopies(NamedTuple):
    """The copies of operands that phases read.

    Attributes:
        x: The copy of the input with channels innermost, if there is one.
        w: The copy of the kernel with spatial dimensions outermost, unless it has that order. Without it each phase
            would read all cache lines of the kernel.
        cycles: The estimated cycles of all phases, including the copies.
    """

    x: ReorderedCopy | None
    w: ReorderedCopy | None
    cycles: float


def choose_phases(target: Target, dilated: TransposedConvolution) -> PhaseCopies | None:
    """The copies with which phases are fastest; None if there are too many phases."""
    if len(dilated.phases) > _MAX_PHASES:
        return None
    costs = target.block_costs
    full = [phase for phase in dilated.phases if all(p.kernel_positions for p in phase)]
    count = math.prod(dim.extent for dim in dilated.result.destination.dims)
    overhead = costs.call_cycles * len(dilated.phases) + (
        0 if dilated.interleaved is None else count * costs.convolutions.phase_element_cycles
    )
    if not full:
        return PhaseCopies(None, None, overhead)
    products = [math.prod(p.positions * p.kernel_positions for p in phase) for phase in full]
    largest = full[products.index(max(products))]
    channels, rank = dilated.channels, len(dilated.x.dims)
    spatial = range(channels, rank)
    innermost, spatial_first = [*range(min(1, channels)), *spatial, *range(1, channels)], [*spatial, *range(channels)]
    choices: list[PhaseCopies] = []
    w = ReorderedCopy.of(dilated.w, spatial_first)
    copies = (None, ReorderedCopy.of(dilated.x, innermost))
    if dilated.padding is not None:
        copies = tuple(ReorderedCopy(dilated.x, tuple(order), dilated.x.element) for order in (innermost, range(rank)))
    for x in dict.fromkeys(copies):
        problem = _estimated(dilated, largest, x, w)
        cycles = best_layout(target, problem, problem.result.element)[1] * sum(products) / max(products)
        choices.append(
            PhaseCopies(x, w, overhead + cycles + sum(copied.cycles(target) for copied in (x, w) if copied is not None))
        )
    return min(choices, key=lambda choice: choice.cycles)


def _estimated(
    dilated: TransposedConvolution, phase: Phase, x: ReorderedCopy | None, w: ReorderedCopy | None
) -> DenseConvolution:
    """A phase for estimates: without the addresses of operands and result, and without the epilogue."""
    copied = replace(
        dilated,
        x=dilated.x if x is None else x.view(OperandMemory.of(dilated.x)),
        w=dilated.w if w is None else w.view(OperandMemory.of(dilated.w)),
    )
    destination, rows = dilated.result.destination, InterleavedPhases.of(dilated)
    boxes = (
        (copied.x, copied.input_of(phase)),
        (copied.w, copied.kernel_of(phase)),
        (destination, dilated.destination_of(phase)),
    )
    x_view, w_view, out = (strided_view(OperandMemory.of(view), box.dims) for view, box in boxes)
    if rows is not None:
        out = strided_view(OperandMemory.of(destination), rows.dims(phase))
    out = replace(out, element=dilated.result.element)
    return DenseConvolution(x_view, w_view, dilated.phase_windows, ContractionResult(out))


# Rows of phases ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InterleavedPhases:
    """A buffer for the phases that are interleaved within rows of the result, phase after phase.

    Attributes:
        dilated: The convolution.
        along: The dimension along which they are interleaved.
    """

    dilated: TransposedConvolution
    along: int

    @classmethod
    def of(cls, dilated: TransposedConvolution) -> InterleavedPhases | None:
        """The buffer of a convolution; None if phases are written to the result."""
        along = dilated.interleaved
        return None if along is None else cls(dilated, along)

    @property
    def axis(self) -> PhasedAxis:
        """The phases along the dimension."""
        return self.dilated.axes[self.along - self.dilated.channels]

    def dims(self, phase: Phase) -> list[StridedDim[int]]:
        """The dimensions of a phase in the buffer, where the interleaved dimension is the innermost one."""
        extents = [dim.extent for dim in self.dilated.destination_of(phase).dims]
        room = [*extents]
        room[self.along] = self.axis.phases[0].positions
        dims = self.dilated.result.destination.dims
        order = sorted(range(len(dims)), key=lambda d: (d != self.along, dims[d].stride), reverse=True)
        strides = TensorType.dense(self.dilated.result.element, [room[d] for d in order]).strides()
        return [StridedDim(extent, strides[order.index(d)]) for d, extent in enumerate(extents)]

    def size(self, phase: Phase) -> int:
        """Number of elements of a phase, with its rows padded to those of the longest phase."""
        return math.prod(
            self.axis.phases[0].positions if d == self.along else dim.extent
            for d, dim in enumerate(self.dilated.destination_of(phase).dims)
        )

    def write(self, b: TensorBuilder, phase: Phase, source: TensorView) -> None:
        """Interleave phases in the result that are contiguous in the buffer; `phase` is the first of them."""
        destination, whole = self.dilated.result.destination, self.dilated.destination_of(phase)
        here, there = self.dims(phase), whole.dims
        full, rest = divmod(destination.dims[self.along].extent, self.axis.period)
        others = [d for d in range(len(there)) if d != self.along]
        from_, to = [here[d] for d in others], [there[d] for d in others]
        size, period = self.size(phase), self.axis.period
        if full:
            columns = [StridedDim(full, 1), StridedDim(period, size)]
            copy(
                b,
                restrided_view(b, source, [*from_, *columns]),
                restrided_view(b, destination, [*to, StridedDim(full, period), StridedDim(period, 1)], whole.offset),
            )
        if rest:
            start = whole.offset + full * period
            copy(
                b,
                restrided_view(b, source, [*from_, StridedDim(rest, size)], full),
                restrided_view(b, destination, [*to, StridedDim(rest, 1)], start),
            )


# Emission ------------------------------------------------------------------------------------------------------------


def emit_phases(
    context: EmitContext, b: TensorBuilder, op: TensorOp, dilated: TransposedConvolution, choice: PhaseCopies
) -> None:
    """Write a convolution phase by phase.

    Args:
        context: Target, temporaries and remarks.
        b: The builder.
        op: The operation.
        dilated: The convolution.
        choice: The copies that phases read.
    """
    message = f"dilated input: {len(dilated.phases)} phases of the result, each a convolution of the undilated input"
    context.remarks.add("applied", STAGE, message, op.instruction.span)
    result, along = dilated.result, dilated.interleaved
    holes = _skipped_products(context, b, op, dilated)
    if choice.x is not None:
        reason = "phases of the result read it with channels innermost"
        if dilated.padding is not None:
            reason = "its border is not in memory"
        dilated = replace(dilated, x=choice.x.emit(context, b, op, "x", reason, dilated.padding), padding=None)
    if choice.w is not None:
        dilated = replace(
            dilated, w=choice.w.emit(context, b, op, "w", "each phase of the result reads some of its positions")
        )
    if along is None or result.epilogue is None or not any(strides[along] for strides in result.epilogue.strides):
        _PhaseEmitter(context, b, op, dilated, holes).emit()
        return
    type_ = TensorType.dense(result.element, [dim.extent for dim in result.destination.dims])
    sums = TensorView.of(context.allocate(type_.element, type_.count, "sums"), type_)
    _PhaseEmitter(context, b, op, replace(dilated, result=ContractionResult(sums)), holes).emit()
    _emit_elements(context, b, op, sums, result)


def _skipped_products(
    context: EmitContext, b: TensorBuilder, op: TensorOp, dilated: TransposedConvolution
) -> SkippedProducts | None:
    """The products of weights and holes, unless all of them are zero."""
    element = dilated.result.element
    if not isinstance(element, FloatType) or {"nnan", "fast"} & set(op.instruction.flags):
        return None
    w = dilated.w
    if not dilated.channels:
        w = strided_view(OperandMemory.of(w), [StridedDim(1, 0), StridedDim(1, 0), *w.dims])
    return SkippedProducts.emit(context, b, op, w, element, dilated.skipped_positions)


@dataclass(frozen=True)
class _PhaseEmitter:
    """Writes the phases of a convolution."""

    context: EmitContext
    b: TensorBuilder
    op: TensorOp
    dilated: TransposedConvolution
    holes: SkippedProducts | None

    def emit(self) -> None:
        """Write all phases."""
        rows, result = InterleavedPhases.of(self.dilated), self.dilated.result
        if rows is None:
            for phase in self.dilated.phases:
                self._phase(phase, _boxed_view(self.b, result.destination, self.dilated.destination_of(phase)))
            return
        axis = rows.along - self.dilated.channels
        firsts = [phase for phase in self.dilated.phases if phase[axis].first == 0]
        count = max(map(rows.size, firsts)) * len(rows.axis.phases)
        place = self.context.allocate(result.destination.element, count, "phases")
        buffer = TensorView.of(place, TensorType.dense(result.destination.element, (count,)))
        for first in firsts:
            for number, inner in enumerate(rows.axis.phases):
                phase = (*first[:axis], inner, *first[axis + 1 :])
                self._phase(phase, restrided_view(self.b, buffer, rows.dims(phase), number * rows.size(first)))
            rows.write(self.b, first, buffer)

    def _phase(self, phase: Phase, destination: TensorView) -> None:
        """Write one phase to `destination`."""
        epilogue = _phase_epilogue(self.dilated, phase)
        if self.holes is not None:
            epilogue = self.holes.with_skipped(self.dilated.phases.index(phase), epilogue, len(destination.dims))
        result = ContractionResult(destination, None, epilogue)
        if not all(p.kernel_positions for p in phase):
            _emit_elements(self.context, self.b, self.op, None, result)
            return
        x = _boxed_view(self.b, self.dilated.x, self.dilated.input_of(phase))
        w = _boxed_view(self.b, self.dilated.w, self.dilated.kernel_of(phase))
        emit_convolution(self.context, self.b, self.op, DenseConvolution(x, w, self.dilated.phase_windows, result))


def _phase_epilogue(dilated: TransposedConvolution, phase: Phase) -> ContractionEpilogue | None:
    """The epilogue of a phase, whose operands are read at the phase's positions in the result."""
    epilogue = dilated.result.epilogue
    if epilogue is None:
        return None
    return epilogue.from_position([0] * dilated.channels + [p.first for p in phase], dilated.periods)


def _emit_elements(
    context: EmitContext, b: TensorBuilder, op: TensorOp, sums: TensorView | None, result: ContractionResult
) -> None:
    """Apply the epilogue to sums in memory, or to zeros: a contraction with a factor of 1, or 0."""
    element = result.element
    number = int(sums is not None)
    factor = context.allocate(element, 1, "factor")
    value = const_float(element, number) if isinstance(element, FloatType) else const_int(element, number)
    b.store(value, factor.pointer, bytes_of(element))
    memory = OperandMemory(factor.pointer, element)
    rhs = memory if sums is None else OperandMemory.of(sums)
    strides = [0] * len(result.destination.dims) if sums is None else [dim.stride for dim in sums.dims]
    batch = tuple(
        result.free(d, dim.extent, rhs=stride)
        for d, (dim, stride) in enumerate(zip(result.destination.dims, strides, strict=True))
    )
    out = OperandMemory.of(result.destination)
    contraction = Contraction("matmul", memory, rhs, out, batch, (), (), (result.summed(1, 0, 0),))
    emit_contraction(context, b, op, contraction, result.epilogue)
