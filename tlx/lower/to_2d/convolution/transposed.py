"""Transposed convolutions: a dilated input, computed as convolutions of the undilated input (phases, or sub-pixels).

Along one dimension `y[o]` is the sum of `w[j] * x[(o * stride + j * step) / 2]` over those j for which the index is
whole, that is, no hole. Four taps, one hole between neighbours, stride and step 1::

    x with holes    0   .   1   .   2   .   3
    y[0]            0       2                     taps       phase 0    y[2q]     = w[0] * x[q]     + w[2] * x[q + 1]
    y[1]                1       3                            phase 1    y[2q + 1] = w[1] * x[q + 1] + w[3] * x[q + 2]
    y[2]                    0       2

If neighbours in a row of the result belong to different phases, each phase is written to a buffer, then interleaved::

    phase 0    y[0] y[2] y[4] ...
    phase 1    y[1] y[3] y[5] ...    ->    y[0] y[1] y[2] y[3] y[4] y[5] ...
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
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import FloatType, bytes_of
from tlx.ir.values import Value, const_float, const_int
from tlx.lower.memory.views import StridedDim, TensorView
from tlx.lower.to_2d.analysis.tensor_operations import STAGE
from tlx.lower.to_2d.contraction.emit import emit_contraction
from tlx.lower.to_2d.contraction.operand_copies import strided_view
from tlx.lower.to_2d.contraction.problem import (
    Contraction,
    ContractionEpilogue,
    ContractionResult,
    EpilogueOperand,
    OperandMemory,
)
from tlx.lower.to_2d.convolution.dense import ReorderedCopy, best_layout, emit_convolution
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.convolution.skipped_products import SkippedProducts
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.memory.copies import copy, restrided_view
from tlx.target.target import Target

_MOST: Final = 64
"""Largest number of phases, each of which is code of its own."""


class AxisPhase(NamedTuple):
    """A phase along one dimension.

    Attributes:
        first, positions: Its first position in the result, and the number of its positions.
        tap, taps: The first position in the kernel that reads elements, and the number of those that do.
        start: The element of the input that the first tap reads at the first position.
    """

    first: int
    positions: int
    tap: int
    taps: int
    start: int


Phase = tuple[AxisPhase, ...]
"""A phase along each spatial dimension."""


@dataclass(frozen=True)
class PhasedAxis:
    """The phases along one dimension.

    Attributes:
        period: Distance of a phase's positions in the result.
        stride: Distance of the elements of the input that they read.
        tap_period: Distance of the positions in the kernel that read elements.
        tap_step: Distance of the elements of the input that they read.
        phases: The phases, by their first position.
    """

    period: int
    stride: int
    tap_period: int
    tap_step: int
    phases: tuple[AxisPhase, ...]

    @classmethod
    def of(cls, positions: int, kernel: int, stride: int, input_step: int, kernel_step: int) -> PhasedAxis:
        """The phases of `positions` results of a kernel of extent `kernel`; the steps are those of `Windows`."""
        period = input_step // math.gcd(stride, input_step)
        tap_period = input_step // math.gcd(kernel_step, input_step)
        phases: list[AxisPhase] = []
        for first in range(min(period, positions)):
            places = ((tap, first * stride + tap * kernel_step) for tap in range(min(tap_period, kernel)))
            tap, place = next((found for found in places if found[1] % input_step == 0), (kernel, 0))
            count, taps = -(-(positions - first) // period), -(-(kernel - tap) // tap_period)
            phases.append(AxisPhase(first, count, tap, taps, place // input_step))
        tap_step = tap_period * kernel_step // input_step
        return cls(period, period * stride // input_step, tap_period, tap_step, tuple(phases))


@dataclass(frozen=True)
class TransposedConvolution:
    """A convolution of a dilated input.

    Attributes:
        x: The undilated input.
        w: The kernel.
        windows: Strides of the kernel in the dilated input, and dilations.
        result: The destination, with the epilogue.
    """

    x: TensorView
    w: TensorView
    windows: Windows
    result: ContractionResult

    @property
    def channels(self) -> int:
        """Number of dimensions before the spatial ones: two, N and C, or none."""
        return len(self.x.dims) - len(self.windows.strides)

    @cached_property
    def axes(self) -> list[PhasedAxis]:
        """The phases along each spatial dimension."""
        first, windows = self.channels, self.windows
        sizes = zip(self.result.target.dims[first:], self.w.dims[first:], strict=True)
        steps = zip(windows.strides, windows.input_steps, windows.kernel_steps, strict=True)
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
        dims = zip(self.result.target.dims, self.periods, strict=True)
        return next((d for d, (dim, period) in enumerate(dims) if period > 1 and dim.stride == 1 < dim.extent), None)

    def input_of(self, phase: Phase) -> _StridedBox:
        """The elements of the input that a phase reads."""
        along = [
            (p.start, (p.positions - 1) * axis.stride + (p.taps - 1) * axis.tap_step + 1, 1)
            for p, axis in zip(phase, self.axes, strict=True)
        ]
        return _box(self.x.dims, along)

    def taps_of(self, phase: Phase) -> _StridedBox:
        """The part of the kernel that a phase uses."""
        return _box(self.w.dims, [(p.tap, p.taps, axis.tap_period) for p, axis in zip(phase, self.axes, strict=True)])

    def target_of(self, phase: Phase) -> _StridedBox:
        """The part of the result that a phase gives."""
        along = [(p.first, p.positions, axis.period) for p, axis in zip(phase, self.axes, strict=True)]
        return _box(self.result.target.dims, along)

    @property
    def phase_windows(self) -> Windows:
        """Strides and dilation of a phase's taps in its input."""
        return Windows(
            tuple(axis.stride for axis in self.axes), (1,) * len(self.axes), tuple(axis.tap_step for axis in self.axes)
        )

    @property
    def skipped_taps(self) -> list[list[bool]]:
        """For each phase and each tap, row-major, whether the phase skips it."""
        extents = [dim.extent for dim in self.w.dims[self.channels :]]
        return [
            [
                not all(
                    tap >= p.tap and (tap - p.tap) % axis.tap_period == 0
                    for tap, p, axis in zip(taps, phase, self.axes, strict=True)
                )
                for taps in product(*map(range, extents))
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


def _placed(b: TensorBuilder, view: TensorView, box: _StridedBox) -> TensorView:
    return restrided_view(b, view, box.dims, box.offset)


# Choice --------------------------------------------------------------------------------------------------------------


class PhaseCopies(NamedTuple):
    """The copies of operands that phases read.

    Attributes:
        x: The copy of the input with channels innermost, if there is one.
        w: The copy of the kernel with taps outermost, unless it has that order: phases would read all of its lines.
        cycles: The estimated cycles of all phases, including the copies.
    """

    x: ReorderedCopy | None
    w: ReorderedCopy | None
    cycles: float


def choose_phases(target: Target, dilated: TransposedConvolution) -> PhaseCopies | None:
    """The copies with which phases are fastest; None if there are too many phases."""
    if len(dilated.phases) > _MOST:
        return None
    costs = target.blocks
    full = [phase for phase in dilated.phases if all(p.taps for p in phase)]
    count = math.prod(dim.extent for dim in dilated.result.target.dims)
    around = costs.call * len(dilated.phases) + (0 if dilated.interleaved is None else count * costs.phase)
    if not full:
        return PhaseCopies(None, None, around)
    works = [math.prod(p.positions * p.taps for p in phase) for phase in full]
    largest = full[works.index(max(works))]
    channels, rank = dilated.channels, len(dilated.x.dims)
    spatial = range(channels, rank)
    innermost, by_taps = [*range(min(1, channels)), *spatial, *range(1, channels)], [*spatial, *range(channels)]
    found: list[PhaseCopies] = []
    w = ReorderedCopy.of(dilated.w, by_taps)
    for x in dict.fromkeys((None, ReorderedCopy.of(dilated.x, innermost))):
        problem = _estimated(dilated, largest, x, w)
        cycles = best_layout(target, problem, problem.result.element)[1] * sum(works) / max(works)
        found.append(
            PhaseCopies(x, w, around + cycles + sum(copied.cycles(costs) for copied in (x, w) if copied is not None))
        )
    return min(found, key=lambda choice: choice.cycles)


def _estimated(
    dilated: TransposedConvolution, phase: Phase, x: ReorderedCopy | None, w: ReorderedCopy | None
) -> DenseConvolution:
    """A phase for estimates: without the addresses of operands and result, and without the epilogue."""
    copied = replace(
        dilated,
        x=dilated.x if x is None else x.view(OperandMemory.of(dilated.x)),
        w=dilated.w if w is None else w.view(OperandMemory.of(dilated.w)),
    )
    target, rows = dilated.result.target, InterleavedPhases.of(dilated)
    boxes = (copied.x, copied.input_of(phase)), (copied.w, copied.taps_of(phase)), (target, dilated.target_of(phase))
    x_view, w_view, out = (strided_view(OperandMemory.of(view), box.dims) for view, box in boxes)
    if rows is not None:
        out = strided_view(OperandMemory.of(target), rows.dims(phase))
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
        extents = [dim.extent for dim in self.dilated.target_of(phase).dims]
        room = [*extents]
        room[self.along] = self.axis.phases[0].positions
        dims = self.dilated.result.target.dims
        order = sorted(range(len(dims)), key=lambda d: (d != self.along, dims[d].stride), reverse=True)
        strides = TensorType.dense(self.dilated.result.element, [room[d] for d in order]).strides()
        return [StridedDim(extent, strides[order.index(d)]) for d, extent in enumerate(extents)]

    def size(self, phase: Phase) -> int:
        """Number of elements of a phase, with its rows padded to those of the longest phase."""
        return math.prod(
            self.axis.phases[0].positions if d == self.along else dim.extent
            for d, dim in enumerate(self.dilated.target_of(phase).dims)
        )

    def write(self, b: TensorBuilder, phase: Phase, source: TensorView) -> None:
        """Interleave phases in the result that are contiguous in the buffer; `phase` is the first of them."""
        target, whole = self.dilated.result.target, self.dilated.target_of(phase)
        here, there = self.dims(phase), whole.dims
        full, rest = divmod(target.dims[self.along].extent, self.axis.period)
        around = [d for d in range(len(there)) if d != self.along]
        from_, to = [here[d] for d in around], [there[d] for d in around]
        size, period = self.size(phase), self.axis.period
        if full:
            columns = [StridedDim(full, 1), StridedDim(period, size)]
            copy(
                b,
                restrided_view(b, source, [*from_, *columns]),
                restrided_view(b, target, [*to, StridedDim(full, period), StridedDim(period, 1)], whole.offset),
            )
        if rest:
            start = whole.offset + full * period
            copy(
                b,
                restrided_view(b, source, [*from_, StridedDim(rest, size)], full),
                restrided_view(b, target, [*to, StridedDim(rest, 1)], start),
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
        dilated = replace(
            dilated, x=choice.x.emit(context, b, op, "x", "phases of the result read it with channels innermost")
        )
    if choice.w is not None:
        dilated = replace(
            dilated, w=choice.w.emit(context, b, op, "w", "each phase of the result reads some of its positions")
        )
    if along is None or result.epilogue is None or not any(strides[along] for strides in result.epilogue.strides):
        _PhaseEmitter(context, b, op, dilated, holes).emit()
        return
    type_ = TensorType.dense(result.element, [dim.extent for dim in result.target.dims])
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
    return SkippedProducts.emit(context, b, op, w, element, dilated.skipped_taps)


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
                self._phase(phase, _placed(self.b, result.target, self.dilated.target_of(phase)))
            return
        axis = rows.along - self.dilated.channels
        firsts = [phase for phase in self.dilated.phases if phase[axis].first == 0]
        count = max(map(rows.size, firsts)) * len(rows.axis.phases)
        place = self.context.allocate(result.target.element, count, "phases")
        buffer = TensorView.of(place, TensorType.dense(result.target.element, (count,)))
        for first in firsts:
            for number, inner in enumerate(rows.axis.phases):
                phase = (*first[:axis], inner, *first[axis + 1 :])
                self._phase(phase, restrided_view(self.b, buffer, rows.dims(phase), number * rows.size(first)))
            rows.write(self.b, first, buffer)

    def _phase(self, phase: Phase, target: TensorView) -> None:
        """Write one phase to `target`."""
        epilogue = _phase_epilogue(self.dilated, phase)
        if self.holes is not None:
            epilogue = self.holes.with_skipped(self.dilated.phases.index(phase), epilogue, len(target.dims))
        result = ContractionResult(target, None, epilogue)
        if not all(p.taps for p in phase):
            _emit_elements(self.context, self.b, self.op, None, result)
            return
        x = _placed(self.b, self.dilated.x, self.dilated.input_of(phase))
        w = _placed(self.b, self.dilated.w, self.dilated.taps_of(phase))
        emit_convolution(self.context, self.b, self.op, DenseConvolution(x, w, self.dilated.phase_windows, result))


def _phase_epilogue(dilated: TransposedConvolution, phase: Phase) -> ContractionEpilogue | None:
    """The epilogue of a phase, whose operands are read at the phase's positions in the result."""
    epilogue = dilated.result.epilogue
    if epilogue is None:
        return None
    inner, firsts = epilogue.emit, [0] * dilated.channels + [p.first for p in phase]
    starts = [
        sum(first * stride for first, stride in zip(firsts, strides, strict=True)) for strides in epilogue.strides
    ]

    def emit(b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]) -> Value:
        moved = [replace(leaf, start=start) for leaf, start in zip(leaves, starts, strict=True)]
        return inner(b, vector, rows, cols, moved)

    strides = tuple(
        tuple(stride * period for stride, period in zip(leaf, dilated.periods, strict=True))
        for leaf in epilogue.strides
    )
    return replace(epilogue, strides=strides, emit=emit)


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
    strides = [0] * len(result.target.dims) if sums is None else [dim.stride for dim in sums.dims]
    batch = tuple(
        result.free(d, dim.extent, rhs=stride)
        for d, (dim, stride) in enumerate(zip(result.target.dims, strides, strict=True))
    )
    out = OperandMemory.of(result.target)
    contraction = Contraction("matmul", memory, rhs, out, batch, (), (), (result.summed(1, 0, 0),))
    emit_contraction(context, b, op, contraction, result.epilogue)
