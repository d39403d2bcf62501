"""Convolutions as contractions, and those whose input's rows are split into regions.

x       0 1 2 3 4 5 6          the kernel moves on by 2          0 2 4 6 | 1 3 5
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tlx.intrinsics.convolution import Windows
from tlx.lower.memory.views import TensorView
from tlx.lower.to_2d.contraction.problem import (
    Contraction,
    ContractionResult,
    ModularStride,
    OperandMemory,
    QuasiAffineDim,
)
from tlx.lower.to_2d.loops import LoopDim


@dataclass(frozen=True)
class DenseConvolution:
    """A convolution of an input without holes.

    Attributes:
        x: The input.
        w: The kernel.
        windows: Where it lies.
        result: Where the result goes, and what happens to it before.
        ignore_matrix_unit: Whether it is computed by vectors, where there is a matrix unit, too.
    """

    x: TensorView
    w: TensorView
    windows: Windows
    result: ContractionResult
    ignore_matrix_unit: bool = False

    @property
    def channels(self) -> int:
        """Dimensions before the spatial ones: N and C, or none."""
        return len(self.x.dims) - len(self.windows.strides)

    @property
    def has_groups(self) -> bool:
        """Whether a filter sees only some of the channels."""
        return self.x.dims[1].extent != self.w.dims[1].extent

    @property
    def tap_order(self) -> list[int]:
        """The kernel's dimensions, tap by tap: spatial ones, filters, channels."""
        return [*range(self.channels, len(self.w.dims)), *range(self.channels)]

    @property
    def taps(self) -> int:
        """Positions in the kernel."""
        return math.prod(dim.extent for dim in self.w.dims[self.channels :])

    @property
    def regions(self) -> StridedRegions:
        """What the input's rows may be split into."""
        return StridedRegions(self)

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
        memories = OperandMemory.of(self.w), OperandMemory.of(self.x), OperandMemory.of(result.target)
        may_turn = result.epilogue is None or result.epilogue.preserves(result.target.element)
        if not first:
            return Contraction(
                "matmul", *memories, (), (), tuple(positions), tuple(taps), ignore_matrix_unit=self.ignore_matrix_unit
            )
        inner = w[1].extent
        groups = x[1].extent // inner
        filters = w[0].extent // groups
        batch = result.free(1, groups, lhs=w[0].stride * filters, rhs=x[1].stride * inner, times=filters)
        images = result.free(0, x[0].extent, rhs=x[0].stride)
        channels = result.summed(inner, w[1].stride, x[1].stride)
        m = (result.free(1, filters, lhs=w[0].stride),)
        n, k = (images, *positions), (channels, *taps)
        return Contraction(
            "matmul", *memories, (batch,), m, n, k, may_transpose=may_turn, ignore_matrix_unit=self.ignore_matrix_unit
        )


@dataclass(frozen=True)
class StridedRegions:
    """The elements of each row by turns, `period` regions of them: neighbours in the result read neighbours in one."""

    problem: DenseConvolution

    @property
    def period(self) -> int:
        """How far the kernel moves on along a row."""
        return self.problem.windows.strides[-1]

    @property
    def starts(self) -> list[tuple[int, int]]:
        """For each position in the kernel's row the region it reads, and from where on."""
        step = self.problem.windows.kernel_steps[-1]
        places = (divmod(i * step, self.period) for i in range(self.problem.w.dims[-1].extent))
        return [(region, start) for start, region in places]

    @property
    def count(self) -> int:
        """Regions, up to the last one that is read."""
        return 1 + max(region for region, _ in self.starts)

    @property
    def furthest(self) -> int:
        """Where in a region the last position in the kernel's row begins to read."""
        return max(start for _, start in self.starts)

    def contraction(self, x: TensorView, region: int) -> Contraction:
        """The contraction that reads regions `region` elements apart, of which `x` is the first."""
        problem = self.problem
        windows = replace(problem.windows, strides=(*problem.windows.strides[:-1], 1))
        dense = replace(problem, x=x, windows=windows).contraction
        taps, along = problem.w.dims[-1], x.dims[-1].stride
        steps = ModularStride(problem.windows.kernel_steps[-1], self.period, region, along)
        if taps.extent == 1 or steps.step % steps.period == 0:
            *others, (extent, (lhs, _, *zeros)) = dense.k
            walk = LoopDim(extent, (lhs, steps.step // steps.period * along, *zeros))
            return replace(dense, k=(*others, walk))
        return replace(
            dense, k=dense.k[:-1], quasi_affine=QuasiAffineDim(taps.extent, ModularStride.by(taps.stride), steps)
        )
