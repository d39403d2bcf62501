"""Transposed convolutions: inputs with holes, as convolutions of the input without them (phases, or sub-pixels).

Along one dimension `y[o]` is the sum of `w[j] * x[(o * stride + j * step) / 2]` where that is an element and no hole.
Four taps, one hole between neighbours, stride and step 1::

    x with holes    0   .   1   .   2   .   3
    y[0]            0       2                     taps       phase 0    y[2q]     = w[0] * x[q]     + w[2] * x[q + 1]
    y[1]                1       3                            phase 1    y[2q + 1] = w[1] * x[q + 1] + w[3] * x[q + 2]
    y[2]                    0       2

Phases whose neighbours in the result would lie next to each other are written to rows of their own, and interleaved::

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
from tlx.lower.to_2d.contraction.cost import CALL_CYCLES
from tlx.lower.to_2d.contraction.emit import emit_contraction
from tlx.lower.to_2d.contraction.operand_copies import strided_view
from tlx.lower.to_2d.contraction.problem import (
    Contraction,
    ContractionEpilogue,
    ContractionResult,
    EpilogueOperand,
    OperandMemory,
)
from tlx.lower.to_2d.convolution.dense import best_layout, emit_convolution
from tlx.lower.to_2d.convolution.operand_conversion import ReorderedCopy
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.convolution.skipped_products import SkippedProducts
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.memory.copies import copy, restrided_view
from tlx.target.target import Target

_MOST: Final = 64
"""Phases at most: each is code of its own."""
_INTERLEAVED: Final = 1.0
"""Cycles to interleave an element of the result: .6 to 1 (Zen 5, 2 to 8 phases, float, bfloat and bytes)."""


class AxisPhase(NamedTuple):
    """A phase along one dimension.

    Attributes:
        first, positions: Its first position in the result, and how many it has.
        tap, taps: The first position in the kernel that meets elements, and how many do.
        start: The element of the input that the first tap meets at the first position.
    """

    first: int
    positions: int
    tap: int
    taps: int
    start: int


Phase = tuple[AxisPhase, ...]
"""One along each dimension."""


@dataclass(frozen=True)
class PhasedAxis:
    """The phases along one dimension.

    Attributes:
        period: Positions of the result from one of a phase to the next.
        stride: Elements of the input between these.
        tap_period: Positions in the kernel from one that meets elements to the next.
        tap_step: Elements of the input between these.
        phases: From the first position on.
    """

    period: int
    stride: int
    tap_period: int
    tap_step: int
    phases: tuple[AxisPhase, ...]

    @classmethod
    def of(cls, positions: int, kernel: int, stride: int, input_step: int, kernel_step: int) -> PhasedAxis:
        """The phases of `positions` results of a kernel of so many positions; the steps are those of `Windows`."""
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
    """A convolution of an input with holes.

    Attributes:
        x: The input, without holes.
        w: The kernel.
        windows: Where it lies in the input with holes.
        result: Where the result goes.
    """

    x: TensorView
    w: TensorView
    windows: Windows
    result: ContractionResult

    @property
    def channels(self) -> int:
        """Dimensions before the spatial ones: N and C, or none."""
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
        """All of them."""
        return list(product(*(axis.phases for axis in self.axes)))

    @property
    def periods(self) -> list[int]:
        """Positions from one of a phase to the next, along each dimension of the result."""
        return [1] * self.channels + [axis.period for axis in self.axes]

    @property
    def interleaved(self) -> int | None:
        """The dimension along which phases take turns in rows of the result, if there is one."""
        dims = zip(self.result.target.dims, self.periods, strict=True)
        return next((d for d, (dim, period) in enumerate(dims) if period > 1 and dim.stride == 1 < dim.extent), None)

    def input_of(self, phase: Phase) -> _StridedBox:
        """The elements that a phase meets."""
        along = [
            (p.start, (p.positions - 1) * axis.stride + (p.taps - 1) * axis.tap_step + 1, 1)
            for p, axis in zip(phase, self.axes, strict=True)
        ]
        return _box(self.x.dims, along)

    def taps_of(self, phase: Phase) -> _StridedBox:
        """The part of the kernel that meets them."""
        return _box(self.w.dims, [(p.tap, p.taps, axis.tap_period) for p, axis in zip(phase, self.axes, strict=True)])

    def target_of(self, phase: Phase) -> _StridedBox:
        """Where a phase goes in the result."""
        along = [(p.first, p.positions, axis.period) for p, axis in zip(phase, self.axes, strict=True)]
        return _box(self.result.target.dims, along)

    @property
    def phase_windows(self) -> Windows:
        """Where the taps of a phase lie in its input."""
        return Windows(
            tuple(axis.stride for axis in self.axes), (1,) * len(self.axes), tuple(axis.tap_step for axis in self.axes)
        )

    @property
    def skipped_taps(self) -> list[list[bool]]:
        """For each phase and each tap, row-major, whether the phase leaves it out."""
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
    """Some elements of a view: how far behind its first one they begin, and their dimensions."""

    offset: int
    dims: list[StridedDim]


def _box(dims: Sequence[StridedDim], along: Sequence[tuple[int, int, int]]) -> _StridedBox:
    """Along the last dimensions a part each: its start, its extent, and positions from one to the next."""
    first = len(dims) - len(along)
    offset = sum(start * dim.stride for (start, _, _), dim in zip(along, dims[first:], strict=True))
    inner = [StridedDim(extent, dim.stride * step) for (_, extent, step), dim in zip(along, dims[first:], strict=True)]
    return _StridedBox(offset, [*dims[:first], *inner])


def _placed(b: TensorBuilder, view: TensorView, box: _StridedBox) -> TensorView:
    return restrided_view(b, view, box.dims, box.offset)


# Choice --------------------------------------------------------------------------------------------------------------


class PhaseCopies(NamedTuple):
    """How phases are computed.

    Attributes:
        x: The copy of the input that all of them read, if there is one: channels innermost.
        w: The copy of the kernel, tap by tap, unless it lies so: copies of some taps read all of its lines each time.
        cycles: About how many cycles all takes.
    """

    x: ReorderedCopy | None
    w: ReorderedCopy | None
    cycles: float


def choose_phases(target: Target, dilated: TransposedConvolution) -> PhaseCopies | None:
    """The copies with which phases are fastest; None where there are too many phases."""
    if len(dilated.phases) > _MOST:
        return None
    full = [phase for phase in dilated.phases if all(p.taps for p in phase)]
    count = math.prod(dim.extent for dim in dilated.result.target.dims)
    around = CALL_CYCLES * len(dilated.phases) + (0 if dilated.interleaved is None else count * _INTERLEAVED)
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
        found.append(PhaseCopies(x, w, around + cycles + sum(copied.cycles for copied in (x, w) if copied is not None)))
    return min(found, key=lambda choice: choice.cycles)


def _estimated(
    dilated: TransposedConvolution, phase: Phase, x: ReorderedCopy | None, w: ReorderedCopy | None
) -> DenseConvolution:
    """A phase whose operands and result lie anywhere; what follows its sums does not matter."""
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
    """Memory for the phases that take turns in some rows of the result, phase after phase.

    Attributes:
        dilated: The convolution.
        along: The dimension along which they take turns.
    """

    dilated: TransposedConvolution
    along: int

    @classmethod
    def of(cls, dilated: TransposedConvolution) -> InterleavedPhases | None:
        """The rows of a convolution; None where phases are written to the result."""
        along = dilated.interleaved
        return None if along is None else cls(dilated, along)

    @property
    def axis(self) -> PhasedAxis:
        """The dimension's phases."""
        return self.dilated.axes[self.along - self.dilated.channels]

    def dims(self, phase: Phase) -> list[StridedDim]:
        """The dimensions of a phase: in the result's order, that along which phases take turns last."""
        extents = [dim.extent for dim in self.dilated.target_of(phase).dims]
        room = [*extents]
        room[self.along] = self.axis.phases[0].positions
        dims = self.dilated.result.target.dims
        order = sorted(range(len(dims)), key=lambda d: (d != self.along, dims[d].stride), reverse=True)
        strides = TensorType.dense(self.dilated.result.element, [room[d] for d in order]).strides()
        return [StridedDim(extent, strides[order.index(d)]) for d, extent in enumerate(extents)]

    def size(self, phase: Phase) -> int:
        """Elements of a phase, and behind its rows so many that all phases are alike."""
        return math.prod(
            self.axis.phases[0].positions if d == self.along else dim.extent
            for d, dim in enumerate(self.dilated.target_of(phase).dims)
        )

    def write(self, b: TensorBuilder, phase: Phase, source: TensorView) -> None:
        """Interleave the phases that lie behind each other, of which `phase` is the first."""
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
        b: Where.
        op: The operation.
        dilated: What to compute.
        choice: How.
    """
    message = f"input with holes: {len(dilated.phases)} phases of the result, each from the input without them"
    context.remarks.add("applied", STAGE, message, op.instruction.span)
    result, along = dilated.result, dilated.interleaved
    holes = _skipped_products(context, b, op, dilated)
    if choice.x is not None:
        dilated = replace(
            dilated, x=choice.x.emit(context, b, op, "x", "phases of the result read it channel by channel")
        )
    if choice.w is not None:
        dilated = replace(
            dilated, w=choice.w.emit(context, b, op, "w", "phases of the result take some of its positions")
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
    """What holes add to the sums, where that may be anything but zero."""
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
        """All phases."""
        rows, result = InterleavedPhases.of(self.dilated), self.dilated.result
        if rows is None:
            for phase in self.dilated.phases:
                self._phase(phase, _placed(self.b, result.target, self.dilated.target_of(phase)))
            return
        turns = rows.along - self.dilated.channels
        firsts = [phase for phase in self.dilated.phases if phase[turns].first == 0]
        count = max(map(rows.size, firsts)) * len(rows.axis.phases)
        place = self.context.allocate(result.target.element, count, "phases")
        buffer = TensorView.of(place, TensorType.dense(result.target.element, (count,)))
        for first in firsts:
            for number, inner in enumerate(rows.axis.phases):
                phase = (*first[:turns], inner, *first[turns + 1 :])
                self._phase(phase, restrided_view(self.b, buffer, rows.dims(phase), number * rows.size(first)))
            rows.write(self.b, first, buffer)

    def _phase(self, phase: Phase, target: TensorView) -> None:
        """One phase, written to `target`."""
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
    """What follows the sums of a phase: operands are read where the phase is in the result."""
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
    """Write sums, or zeros, through what follows them: a contraction of one product a sum, by a factor."""
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
