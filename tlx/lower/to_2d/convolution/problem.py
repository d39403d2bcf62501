"""Convolutions as contractions on overlapping views of the input, and the layouts that the input may be copied to.

A copy of the input may be faster to read than the input itself. There are four layouts:

- `_SplitRegions`, for strides along rows, and for rows whose elements are not contiguous: rows are split into as many
  regions as the stride, so that neighbours in the result read neighbours in a region:

    x       0 1 2 3 4 5 6          stride 2          0 2 4 6 | 1 3 5

- `_ChannelsLast`, for few channels where a unit takes many positions along K at a time, and for any number of channels
  on vectors: channels are innermost, and a row of the window is one dimension together with its channels. Vectors then
  have filters as columns, where rows of pixels do not fill registers.
- `_Interleaved`, for a matrix unit that reads the right operand in groups along K (VNNI): each group of channels is
  interleaved once, not once for each row of the result and each position in the kernel.
- `_Bordered`, for an input of the caller without its border: the order stays. Of large inputs, each image is copied
  where its results are computed, so that the copy stays in the caches.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from tlx.intrinsics.convolution import Windows
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import Type, bytes_of
from tlx.ir.values import Value
from tlx.lower.context import MOST_INTERLEAVED_SUMS
from tlx.lower.cost import ComputeUnit, permutes_copies
from tlx.lower.memory.views import StridedDim, TensorView
from tlx.lower.to_2d.contraction.problem import (
    LHS,
    OUT,
    Contraction,
    ContractionResult,
    ModularStride,
    OperandMemory,
    QuasiAffineDim,
    strided_view,
)
from tlx.lower.to_2d.contraction.vnni import VnniCopy, VnniRows
from tlx.lower.to_2d.loop_nests import LoopDim
from tlx.lower.to_2d.memory.copies import copy, copy_cycles
from tlx.lower.to_2d.memory.padding import PaddedDim, PaddedSource, fill_border
from tlx.target.target import Target


@dataclass(frozen=True)
class DenseConvolution:
    """A convolution of an undilated input.

    Attributes:
        x: The input.
        w: The kernel.
        windows: Strides and dilation of the kernel.
        result: The destination, with the epilogue.
        ignore_matrix_unit: Whether vectors compute it even if there is a matrix unit.
        padding: What the input is copied from if its border is not in memory; `x` is then its view for estimates.
    """

    x: TensorView
    w: TensorView
    windows: Windows
    result: ContractionResult
    ignore_matrix_unit: bool = False
    padding: PaddedSource | None = None

    @property
    def input(self) -> TensorView:
        """The input in memory, without its border, which is not in memory."""
        return self.x if self.padding is None else self.padding.data

    def copy_input(self, b: TensorBuilder, destination: TensorView) -> None:
        """Copy the input, with the border that is not in memory, to a view of its dimensions."""
        if self.padding is not None:
            self.padding.write(b, destination)
        else:
            copy(b, self.x.row_major, destination)

    def row(self, at: Value) -> DenseConvolution:
        """The convolution that reads one row of the input, which has no border above or below it.

        Args:
            at: The address of the row's first element.
        """
        first = self.channels
        dims = [StridedDim(1, dim.stride) if d == first else dim for d, dim in enumerate(self.x.dims)]
        padding = None if self.padding is None else self.padding.position(first, at)
        return replace(self, x=strided_view(OperandMemory(at, self.x.element), dims), padding=padding)

    @property
    def channels(self) -> int:
        """Number of dimensions before the spatial ones: two, N and C, or none."""
        return len(self.x.dims) - len(self.windows.strides)

    @property
    def has_groups(self) -> bool:
        """Whether a filter reads only some of the channels."""
        return self.x.dims[1].extent != self.w.dims[1].extent

    @property
    def spatial_first(self) -> list[int]:
        """The kernel's dimensions with the spatial ones first: spatial ones, filters, channels."""
        return [*range(self.channels, len(self.w.dims)), *range(self.channels)]

    @property
    def kernel_positions(self) -> int:
        """Number of positions in the kernel."""
        return math.prod(dim.extent for dim in self.w.dims[self.channels :])

    @property
    def regions(self) -> StridedRegions:
        """The regions that the input's rows may be split into."""
        return StridedRegions(self)

    @property
    def contraction(self) -> Contraction:
        """The dimensions by role: groups are the batch, filters M, positions and images N, channels and kernel K."""
        x, w, result = self.x.dims, self.w.dims, self.result
        first = self.channels
        out = result.destination.dims
        positions = [
            result.free(d, out[d].extent, rhs=x[d].stride * stride)
            for d, stride in enumerate(self.windows.strides, first)
        ]
        kernel = [
            result.summed(w[d].extent, w[d].stride, x[d].stride * step)
            for d, step in enumerate(self.windows.kernel_steps, first)
        ]
        memories = OperandMemory.of(self.w), OperandMemory.of(self.x), OperandMemory.of(result.destination)
        may_transpose = result.epilogue is None or result.epilogue.preserves(result.destination.element)
        if not first:
            return Contraction(
                "matmul",
                *memories,
                (),
                (),
                tuple(positions),
                tuple(kernel),
                ignore_matrix_unit=self.ignore_matrix_unit,
                names=("w", "x"),
            )
        inner = w[1].extent
        groups = x[1].extent // inner
        filters = w[0].extent // groups
        batch = result.free(1, groups, lhs=w[0].stride * filters, rhs=x[1].stride * inner, times=filters)
        images = result.free(0, x[0].extent, rhs=x[0].stride)
        channels = result.summed(inner, w[1].stride, x[1].stride)
        m = (result.free(1, filters, lhs=w[0].stride),)
        n, k = (images, *positions), (channels, *kernel)
        return Contraction(
            "matmul",
            *memories,
            (batch,),
            m,
            n,
            k,
            may_transpose=may_transpose,
            ignore_matrix_unit=self.ignore_matrix_unit,
            names=("w", "x"),
        )


@dataclass(frozen=True)
class StridedRegions:
    """The elements of each row, split into `period` regions: neighbours in the result read neighbours in a region."""

    problem: DenseConvolution

    @property
    def period(self) -> int:
        """The stride of the kernel along a row."""
        return self.problem.windows.strides[-1]

    @property
    def starts(self) -> list[tuple[int, int]]:
        """For each position in the kernel's row the region that it reads, and its first element there."""
        step = self.problem.windows.kernel_steps[-1]
        places = (divmod(i * step, self.period) for i in range(self.problem.w.dims[-1].extent))
        return [(region, start) for start, region in places]

    @property
    def count(self) -> int:
        """Number of regions, up to the last one that is read."""
        return 1 + max(region for region, _ in self.starts)

    @property
    def largest_start(self) -> int:
        """The largest first element in a region, over all positions in the kernel's row."""
        return max(start for _, start in self.starts)

    def contraction(self, x: TensorView, region: int) -> Contraction:
        """The contraction that reads regions that are `region` elements apart, the first of which is `x`."""
        problem = self.problem
        windows = replace(problem.windows, strides=(*problem.windows.strides[:-1], 1))
        dense = replace(problem, x=x, windows=windows).contraction
        row, along = problem.w.dims[-1], x.dims[-1].stride
        steps = ModularStride(problem.windows.kernel_steps[-1], self.period, region, along)
        if row.extent == 1 or steps.step % steps.period == 0:
            *others, (extent, (lhs, _, *zeros)) = dense.k
            dim = LoopDim(extent, (lhs, steps.step // steps.period * along, *zeros))
            return replace(dense, k=(*others, dim))
        return replace(
            dense, k=dense.k[:-1], quasi_affine=QuasiAffineDim(row.extent, ModularStride.by(row.stride), steps)
        )


_WORD: Final = 4


@dataclass(frozen=True)
class InputLayout(ABC):
    """A copy of the input of a convolution.

    Attributes:
        problem: The convolution.
        name: Stem of the buffer's name.
    """

    problem: DenseConvolution
    name: ClassVar[str]

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why the copy is made."""

    @property
    @abstractmethod
    def extents(self) -> list[int]:
        """The copy's extents, outermost first."""

    @property
    def slack_elements(self) -> int:
        """Number of elements after the copy that may be read or written; their values do not matter."""
        return 0

    @abstractmethod
    def contraction(self, memory: OperandMemory) -> Contraction:
        """The contraction that reads the copy."""

    @abstractmethod
    def write(self, b: TensorBuilder, destination: TensorView) -> None:
        """Write the copy."""

    @property
    @abstractmethod
    def dims(self) -> list[tuple[int, int]]:
        """The copy's extents, each with its stride in the input."""

    @property
    @abstractmethod
    def row_dim(self) -> int:
        """The copy's dimension that is the outermost of several spatial dimensions of the input."""

    def cycles(self, target: Target) -> float:
        """The estimated cycles to make the copy."""
        element = self.problem.x.element
        return copy_cycles(self.dims, element, target, permutes=permutes_copies(target, element))


def input_layouts(problem: DenseConvolution, unit: ComputeUnit) -> Iterator[InputLayout]:
    """The copies that may pay.

    Args:
        problem: The convolution.
        unit: The unit that multiplies.
    """
    last = len(problem.x.dims) - 1
    positions = problem.result.destination.dims[last].extent
    if positions > 1 and (problem.windows.strides[-1] > 1 or problem.x.dims[last].stride > 1):
        yield _SplitRegions(problem)
    if problem.padding is not None and problem.padding.data.storage.load is not None and problem.channels:
        yield _Bordered(problem)
    if not problem.channels or problem.has_groups or problem.kernel_positions == 1:
        return
    whole = problem.w.dims[1].extent % unit.k_step == 0  # steps along K of channels alone
    yield _ChannelsLast(problem, _gap(problem, unit))
    if unit.rows and whole and unit.width > 1 and positions > 1 and not problem.contraction.reduces:
        yield _Interleaved(problem, unit.width, unit.lanes)


def _gap(problem: DenseConvolution, unit: ComputeUnit) -> int:
    """Elements of padding between neighbouring positions, whose channels would otherwise share few sets of L1.

    Only interleaved sums need it: other products have the channels of neighbours in one sum.
    """
    size = bytes_of(problem.x.element)
    interleaved = unit.rows == 0 and size >= _WORD and problem.kernel_positions <= MOST_INTERLEAVED_SUMS
    shares_sets = problem.w.dims[1].extent * size % unit.costs.convolutions.set_conflict_pitch_bytes == 0
    return unit.target.caches.line_bytes // size if interleaved and shares_sets else 0


@dataclass(frozen=True)
class _Interleaved(InputLayout):
    """A copy with interleaved channels for a matrix unit: for each element of a row a group of channels.

        x[0, 0] x[1, 0] x[0, 1] x[1, 1] ...        pairs of bfloat: all windows read this copy in place

    Rows are split into regions if the stride is more than 1, and padded so that whole tiles can be read.
    """

    width: int
    lanes: int
    name: ClassVar[str] = "groups"

    @property
    def reason(self) -> str:
        """Why the input is copied."""
        reason = "the matrix unit reads channels in groups"
        return f"{reason} and {_SplitRegions(self.problem).reason}" if self._is_split else reason

    @property
    def _is_split(self) -> bool:
        return self.problem.regions.period > 1

    @property
    def _room(self) -> int:
        """Columns of the result, padded to whole tiles."""
        return -(-self.problem.result.destination.dims[-1].extent // self.lanes) * self.lanes

    @property
    def extents(self) -> list[int]:
        """Images, outer spatial dimensions, regions, groups of channels, columns, channels of a group."""
        images, channels, *outer, _ = (dim.extent for dim in self.problem.x.dims)
        columns = self._room + self.problem.regions.largest_start - self._columns_behind
        return [images, *outer, self.problem.regions.count, channels // self.width, columns, self.width]

    @property
    def dims(self) -> list[tuple[int, int]]:
        """The copy's extents, each with its stride in the input; columns include padding."""
        images, channels, *outer, row = self.problem.x.dims
        enclosing = [dim.stride for dim in (images, *outer)]
        within = [row.stride, channels.stride * self.width, row.stride * self.problem.regions.period, channels.stride]
        return list(zip(self.extents, [*enclosing, *within], strict=True))

    @property
    def slack_elements(self) -> int:
        """Number of elements after the last row that tiles read, or that its registers write after a border."""
        padding = self.problem.padding
        return (self._columns_behind + (0 if padding is None else padding.dims[-1].at)) * self.width

    @property
    def _columns_behind(self) -> int:
        """Number of columns that tiles read after the last row, if rows are only as long as whole tiles.

        Rows then begin at cache lines, and so do the tiles of the first position in the kernel.
        """
        largest_start = self.problem.regions.largest_start
        return largest_start if self.problem.result.destination.dims[-1].extent + largest_start <= self._room else 0

    @property
    def row_dim(self) -> int:
        """The rows follow the images."""
        return 1

    def contraction(self, memory: OperandMemory) -> Contraction:
        """The contraction that reads the copy; strides of columns and channels count groups."""
        strides = TensorType.dense(memory.element, self.extents).strides()
        images, *outer, region, groups, columns, _ = map(StridedDim, self.extents, strides)
        channels = StridedDim(groups.extent * self.width, groups.stride)
        view = strided_view(memory, [images, channels, *outer, columns])
        contraction = self.problem.regions.contraction(view, region.stride)
        (channel, *kernel), (*others, along) = contraction.k, contraction.n
        rows = LoopDim(channel.extent, (channel.strides[LHS], groups.stride // self.width, *channel.strides[OUT:]))
        along = LoopDim(along.extent, (along.strides[LHS], 1, *along.strides[OUT:]))
        grouped = memory._replace(vnni_group=self.width, readable_columns=self._room)
        return replace(contraction, rhs=grouped, n=(*others, along), k=(*kernel, rows))

    def cycles(self, target: Target) -> float:
        """The estimated cycles to make the copy, whose padding is not written."""
        images, channels, *outer, row = self.problem.x.dims
        rows = channels.extent * self.problem.regions.count * math.prod(dim.extent for dim in (images, *outer))
        columns = StridedDim(-(-row.extent // self.problem.regions.period), row.stride * self.problem.regions.period)
        return self._groups.cycles(rows, [columns], self.lanes, target.block_costs)

    @property
    def _groups(self) -> VnniRows:
        channels = self.problem.input.dims[1]
        groups = VnniRows.of([StridedDim(channels.extent, channels.stride)], self.width)
        assert groups is not None
        return groups

    def write(self, b: TensorBuilder, destination: TensorView) -> None:
        """Write the copy, region by region: channels are interleaved rows, with the region's elements as columns.

        The registers of a row may write further columns: where its elements start after a border, also those of the
        border at the start of the next row. So the border is written last.
        """
        padding, data = self.problem.padding, self.problem.input
        images, *outer, region, _, columns, _ = destination.dims
        first, _, *inner, row = data.dims
        pairs = zip((first, *inner), (images, *outer), strict=True)
        enclosing = tuple(LoopDim(source.extent, (source.stride, to.stride)) for source, to in pairs)
        period = self.problem.regions.period
        regions = [self._columns(number, columns.extent) for number in range(region.extent)]
        for number, inside in enumerate(regions):
            start = b.gep(destination.element, data.storage.pointer, inside.first * row.stride)
            elements = StridedDim(inside.count, row.stride * period)
            at = number * region.stride + inside.at * columns.stride
            if padding is not None:
                at += sum(dim.at * to.stride for dim, to in zip(padding.dims[2:], outer, strict=False))
            there = b.gep(destination.element, destination.storage.pointer, at)
            source = OperandMemory(start, destination.element)
            VnniCopy(b, source, self._groups, enclosing, (elements,), columns.extent).write(there)
        if padding is not None:
            self._fill_borders(b, destination, padding, regions)

    def _columns(self, region: int, room: int) -> PaddedDim:
        """The columns of a region with elements of the input, of at most `room`."""
        period, extent = self.problem.regions.period, self.problem.x.dims[-1].extent
        read = min(room, -(-(extent - region) // period))
        row = PaddedDim(0, extent, 0, 1, extent) if self.problem.padding is None else self.problem.padding.dims[-1]
        return row.every(period, region, read)

    def _fill_borders(
        self, b: TensorBuilder, destination: TensorView, padding: PaddedSource, regions: Sequence[PaddedDim]
    ) -> None:
        """Write the border of each region."""
        images, *outer, region, groups, columns, channels = destination.dims
        for number, inside in enumerate(regions):
            start = b.gep(destination.element, destination.storage.pointer, number * region.stride)
            dims = [images, *outer, groups, StridedDim(inside.extent, columns.stride), channels]
            whole = [PaddedDim(0, dim.extent, 0, 1, dim.extent) for dim in (groups, channels)]
            padded = [padding.dims[0], *padding.dims[2:-1], whole[0], inside, whole[1]]
            fill_border(b, strided_view(OperandMemory(start, destination.element), dims), padded, padding.value)


@dataclass(frozen=True)
class _ChannelsLast(InputLayout):
    """A copy with channels innermost.

    Neighbours along a row are contiguous, too, so that the channels of a window's row are one dimension.

        x[0, 0] x[1, 0] x[2, 0] x[0, 1] x[1, 1] x[2, 1] ...        7 x 7, 3 channels: 7 sums of 21 products
    """

    gap: int
    name: ClassVar[str] = "last"

    @property
    def reason(self) -> str:
        """Why the input is copied."""
        return "channels of neighbouring positions are summed in one pass"

    @property
    def extents(self) -> list[int]:
        """Images, rows, columns, channels with padding."""
        images, channels, *spatial = (dim.extent for dim in self.problem.x.dims)
        return [images, *spatial, channels + self.gap]

    @property
    def dims(self) -> list[tuple[int, int]]:
        """The copy's extents, each with its stride in the input."""
        images, channels, *spatial = self.problem.x.dims
        return [(dim.extent, dim.stride) for dim in (images, *spatial, channels)]

    def _dims(self, element: Type) -> list[StridedDim[int]]:
        """The copy's dimensions in the input's order."""
        images, *spatial, _ = map(StridedDim, self.extents, TensorType.dense(element, self.extents).strides())
        return [images, StridedDim(self.problem.x.dims[1].extent, 1), *spatial]

    def contraction(self, memory: OperandMemory) -> Contraction:
        """The contraction that reads the copy."""
        return replace(self.problem, x=strided_view(memory, self._dims(memory.element))).contraction

    @property
    def row_dim(self) -> int:
        """The rows follow the images."""
        return 1

    def write(self, b: TensorBuilder, destination: TensorView) -> None:
        """Write the copy."""
        images, *spatial, channels = destination.dims
        dims = [images, StridedDim(self.problem.x.dims[1].extent, channels.stride), *spatial]
        self.problem.copy_input(b, strided_view(OperandMemory.of(destination), dims))


@dataclass(frozen=True)
class _Bordered(InputLayout):
    """A copy with the border, whose dimensions have the order of the input's."""

    name: ClassVar[str] = "bordered"

    @property
    def reason(self) -> str:
        """Why the input is copied."""
        return "its border is not in memory"

    @property
    def _order(self) -> list[int]:
        """The input's dimensions, outermost first."""
        dims = self.problem.x.dims
        return sorted(range(len(dims)), key=lambda d: dims[d].stride, reverse=True)

    @property
    def extents(self) -> list[int]:
        """The input's extents."""
        return [self.problem.x.dims[d].extent for d in self._order]

    @property
    def dims(self) -> list[tuple[int, int]]:
        """The input's dimensions."""
        return [(self.problem.x.dims[d].extent, self.problem.x.dims[d].stride) for d in self._order]

    @property
    def row_dim(self) -> int:
        """The input's rows."""
        return self._order.index(self.problem.channels)

    def contraction(self, memory: OperandMemory) -> Contraction:
        """The contraction that reads the copy."""
        strides = dict(zip(self._order, TensorType.dense(memory.element, self.extents).strides(), strict=True))
        dims = [StridedDim(dim.extent, strides[d]) for d, dim in enumerate(self.problem.x.dims)]
        return replace(self.problem, x=strided_view(memory, dims)).contraction

    def write(self, b: TensorBuilder, destination: TensorView) -> None:
        """Write the copy."""
        dims = [destination.dims[self._order.index(d)] for d in range(len(self._order))]
        self.problem.copy_input(b, strided_view(OperandMemory.of(destination), dims))


@dataclass(frozen=True)
class _SplitRegions(InputLayout):
    """A copy whose rows are split into regions."""

    name: ClassVar[str] = "split"

    @property
    def reason(self) -> str:
        """Why the input is copied."""
        period = self.problem.regions.period
        return f"its rows are read in steps of {period}" if period > 1 else "its rows are not contiguous"

    def cycles(self, target: Target) -> float:
        """The estimated cycles to make the copy."""
        size = math.prod(self.extents) * bytes_of(self.problem.x.element)
        is_last = self.problem.channels > 0 and self.problem.x.dims[1].stride == 1
        return super().cycles(target) + size * is_last * target.block_costs.convolutions.channels_first_byte_cycles

    @property
    def _columns(self) -> int:
        """Largest number of elements of a region's row that are read."""
        return self.problem.result.destination.dims[-1].extent + self.problem.regions.largest_start

    @property
    def extents(self) -> list[int]:
        """The number of regions, and the extents of one."""
        return [self.problem.regions.count, *(dim.extent for dim in self.problem.x.dims[:-1]), self._columns]

    @property
    def dims(self) -> list[tuple[int, int]]:
        """The copy's extents, each with its stride in the input."""
        *others, last = (dim.stride for dim in self.problem.x.dims)
        return list(zip(self.extents, (last, *others, last * self.problem.regions.period), strict=True))

    def contraction(self, memory: OperandMemory) -> Contraction:
        """The contraction that reads the regions."""
        region, *strides = TensorType.dense(memory.element, self.extents).strides()
        dims = [StridedDim(dim.extent, stride) for dim, stride in zip(self.problem.x.dims, strides, strict=True)]
        return self.problem.regions.contraction(strided_view(memory, dims), region)

    @property
    def row_dim(self) -> int:
        """The rows follow the regions, images and channels."""
        return 1 + self.problem.channels

    def write(self, b: TensorBuilder, destination: TensorView) -> None:
        """Write the copy, region by region."""
        for region in sorted({region for region, _ in self.problem.regions.starts}):
            there = b.gep(destination.element, destination.storage.pointer, region * destination.dims[0].stride)
            memory, dims = OperandMemory(there, destination.element), destination.dims[1:]
            columns = min(self._columns, -(-(self.problem.x.dims[-1].extent - region) // self.problem.regions.period))
            to = strided_view(memory, [*dims[:-1], StridedDim(columns, dims[-1].stride)])
            self._region(b, region, columns).copy_input(b, to)

    def _region(self, b: TensorBuilder, region: int, columns: int) -> DenseConvolution:
        """The convolution with the first columns of one region as input."""
        problem, period = self.problem, self.problem.regions.period
        x, padding = problem.x, problem.padding
        *outer, row = x.dims
        if padding is not None:
            *others, last = padding.dims
            inside = last.every(period, region, columns)
            *enclosing, line = padding.data.dims
            start = b.gep(x.element, padding.data.storage.pointer, inside.first * line.stride)
            dims = [*enclosing, StridedDim(inside.count, line.stride * period)]
            data = strided_view(OperandMemory(start, x.element), dims)
            padding = replace(padding, data=data, dims=(*others, replace(inside, first=0)))
            return replace(problem, padding=padding)
        start = b.gep(x.element, x.storage.pointer, region * row.stride)
        dims = [*outer, StridedDim(columns, row.stride * period)]
        return replace(problem, x=strided_view(OperandMemory(start, x.element), dims))
