"""Input layouts of convolutions: copies that are faster to read than the input as it lies.

Along whose rows the kernel moves on by more than one element: split into as many regions, so that neighbours in the
result read neighbours:

    x       0 1 2 3 4 5 6          stride 2          0 2 4 6 | 1 3 5

Of few channels, for a unit that takes many positions along K at a time, and of any number for vectors: channels are
innermost, and a row of the window is one dimension with its channels. Vectors have filters as columns then, where rows
of pixels do not fill registers. For a matrix unit that reads the right operand in groups along K (VNNI): each group of
channels is interleaved once, not once for each row of the result and each position in the kernel.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import Type, bytes_of
from tlx.lower.context import MOST_INTERLEAVED_SUMS
from tlx.lower.memory.views import StridedDim, TensorView
from tlx.lower.to_2d.contraction.cost import ComputeUnit
from tlx.lower.to_2d.contraction.operand_copies import strided_view
from tlx.lower.to_2d.contraction.problem import LHS, OUT, Contraction, OperandMemory
from tlx.lower.to_2d.contraction.vnni_packing import VnniCopy, VnniRows
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.loops import LoopDim
from tlx.lower.to_2d.memory.copies import LINE_BYTES, copy, copy_cycles

_WORD: Final = 4
_CROWDED: Final = 512
"""Bytes of which the distance of neighbours is a multiple where their lines share sets of the first cache."""


@dataclass(frozen=True)
class InputLayout(ABC):
    """A copy of the input of a convolution.

    Attributes:
        problem: The convolution.
        name: Stem of its memory's name.
    """

    problem: DenseConvolution
    name: ClassVar[str]

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why it is made."""

    @property
    @abstractmethod
    def extents(self) -> list[int]:
        """Its dimensions, outermost first."""

    @property
    def slack_elements(self) -> int:
        """Elements behind it that are read, whatever they are."""
        return 0

    @abstractmethod
    def contraction(self, memory: OperandMemory) -> Contraction:
        """The contraction that reads it."""

    @abstractmethod
    def write(self, b: TensorBuilder, target: TensorView) -> None:
        """Copy the input."""

    @property
    @abstractmethod
    def dims(self) -> list[tuple[int, int]]:
        """Its extents, and elements between neighbours in the input."""

    def cycles(self) -> float:
        """About how many cycles it takes to make."""
        return copy_cycles(self.dims, self.problem.x.element)


def input_layouts(problem: DenseConvolution, unit: ComputeUnit) -> Iterator[InputLayout]:
    """The copies that may pay.

    Args:
        problem: The convolution.
        unit: What multiplies.
    """
    last = len(problem.x.dims) - 1
    positions = problem.result.target.dims[last].extent
    if problem.windows.strides[-1] > 1 and positions > 1:
        yield _SplitRegions(problem)
    if not problem.channels or problem.has_groups or problem.taps == 1:
        return
    whole = problem.w.dims[1].extent % unit.k_step == 0  # steps along K of channels alone
    if not whole or not unit.rows:
        yield _ChannelsLast(problem, _gap(problem, unit))
    elif unit.width > 1 and positions > 1 and not problem.contraction.reduces:
        yield _Interleaved(problem, unit.width, unit.lanes)


def _gap(problem: DenseConvolution, unit: ComputeUnit) -> int:
    """Elements between the channels of neighbours where these would else share few sets of the first cache.

    Only where products take turns: others have the channels of neighbours in one sum.
    """
    size = bytes_of(problem.x.element)
    turns = unit.rows == 0 and size >= _WORD and problem.taps <= MOST_INTERLEAVED_SUMS
    return LINE_BYTES // size if turns and problem.w.dims[1].extent * size % _CROWDED == 0 else 0


@dataclass(frozen=True)
class _Interleaved(InputLayout):
    """A convolution whose input is copied as a matrix unit reads it: neighbours along a row, a group of channels each.

        x[0, 0] x[1, 0] x[0, 1] x[1, 1] ...        pairs of bfloat: all windows read this copy where it lies

    Rows are split where the kernel moves on by more than one element, and so long that whole tiles can be read.
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
        """Columns that tiles read."""
        return -(-self.problem.result.target.dims[-1].extent // self.lanes) * self.lanes

    @property
    def extents(self) -> list[int]:
        """Images, dimensions around rows, regions, groups of channels, columns, channels of a group."""
        images, channels, *outer, _ = (dim.extent for dim in self.problem.x.dims)
        columns = self._room + self.problem.regions.furthest - self.slack_elements // self.width
        return [images, *outer, self.problem.regions.count, channels // self.width, columns, self.width]

    @property
    def dims(self) -> list[tuple[int, int]]:
        """Its extents, and elements between neighbours in the input; a row has more columns than that."""
        images, channels, *outer, row = self.problem.x.dims
        around = [dim.stride for dim in (images, *outer)]
        within = [row.stride, channels.stride * self.width, row.stride * self.problem.regions.period, channels.stride]
        return list(zip(self.extents, [*around, *within], strict=True))

    @property
    def slack_elements(self) -> int:
        """Elements that tiles read behind the last row: rows that hold all columns are no longer than tiles are wide.

        They begin at lines then, as do tiles at the first position of the kernel.
        """
        furthest = self.problem.regions.furthest
        fits = self.problem.result.target.dims[-1].extent + furthest <= self._room
        return furthest * self.width if fits else 0

    def contraction(self, memory: OperandMemory) -> Contraction:
        """The contraction that reads the copy; steps along columns and channels are in groups."""
        strides = TensorType.dense(memory.element, self.extents).strides()
        images, *outer, region, groups, columns, _ = map(StridedDim, self.extents, strides)
        channels = StridedDim(groups.extent * self.width, groups.stride)
        view = strided_view(memory, [images, channels, *outer, columns])
        found = self.problem.regions.contraction(view, region.stride)
        (channel, *taps), (*others, along) = found.k, found.n
        rows = LoopDim(channel.extent, (channel.strides[LHS], groups.stride // self.width, *channel.strides[OUT:]))
        along = LoopDim(along.extent, (along.strides[LHS], 1, *along.strides[OUT:]))
        grouped = memory._replace(vnni_group=self.width, readable_columns=self._room)
        return replace(found, rhs=grouped, n=(*others, along), k=(*taps, rows))

    def cycles(self) -> float:
        """About how many cycles it takes to make: what lies beside the data is not written."""
        images, channels, *outer, row = self.problem.x.dims
        rows = channels.extent * self.problem.regions.count * math.prod(dim.extent for dim in (images, *outer))
        columns = StridedDim(-(-row.extent // self.problem.regions.period), row.stride * self.problem.regions.period)
        return self._groups.cycles(rows, [columns], self.lanes)

    @property
    def _groups(self) -> VnniRows:
        channels = self.problem.x.dims[1]
        groups = VnniRows.of([StridedDim(channels.extent, channels.stride)], self.width)
        assert groups is not None
        return groups

    def write(self, b: TensorBuilder, target: TensorView) -> None:
        """Copy the input, region by region: channels in groups of rows, whose columns are those of the region."""
        images, *outer, region, _, columns, _ = target.dims
        first, _, *inner, row = self.problem.x.dims
        pairs = zip((first, *inner), (images, *outer), strict=True)
        around = [LoopDim(source.extent, (source.stride, to.stride)) for source, to in pairs]
        period = self.problem.regions.period
        for number in range(region.extent):
            source = OperandMemory(
                b.gep(target.element, self.problem.x.storage.pointer, number * row.stride), target.element
            )
            there = b.gep(target.element, target.storage.pointer, number * region.stride)
            read = min(columns.extent, -(-(row.extent - number) // period))
            part = StridedDim(read, row.stride * period)
            VnniCopy(b, source, self._groups, tuple(around), (part,), columns.extent).write(there)


@dataclass(frozen=True)
class _ChannelsLast(InputLayout):
    """A convolution whose input is copied with its channels next to each other.

    The channels of neighbours along a row are next to each other, too: those of a window's row are one dimension.

        x[0, 0] x[1, 0] x[2, 0] x[0, 1] x[1, 1] x[2, 1] ...        7 x 7, 3 channels: 7 sums of 21 products
    """

    gap: int
    name: ClassVar[str] = "last"

    @property
    def reason(self) -> str:
        """Why the input is copied."""
        return "its channels are summed together with those of their neighbours"

    @property
    def extents(self) -> list[int]:
        """Images, rows, columns, channels and the gap behind them."""
        images, channels, *spatial = (dim.extent for dim in self.problem.x.dims)
        return [images, *spatial, channels + self.gap]

    @property
    def dims(self) -> list[tuple[int, int]]:
        """Its extents, and elements between neighbours in the input."""
        images, channels, *spatial = self.problem.x.dims
        return [(dim.extent, dim.stride) for dim in (images, *spatial, channels)]

    def _dims(self, element: Type) -> list[StridedDim]:
        """The copy's dimensions in the input's order."""
        images, *spatial, _ = map(StridedDim, self.extents, TensorType.dense(element, self.extents).strides())
        return [images, StridedDim(self.problem.x.dims[1].extent, 1), *spatial]

    def contraction(self, memory: OperandMemory) -> Contraction:
        """The contraction that reads the copy."""
        return replace(self.problem, x=strided_view(memory, self._dims(memory.element))).contraction

    def write(self, b: TensorBuilder, target: TensorView) -> None:
        """Copy the input."""
        copy(b, self.problem.x.row_major, strided_view(OperandMemory.of(target), self._dims(target.element)))


@dataclass(frozen=True)
class _SplitRegions(InputLayout):
    """A convolution whose input is split into regions."""

    name: ClassVar[str] = "split"

    @property
    def reason(self) -> str:
        """Why the input is copied."""
        return f"its rows are read in steps of {self.problem.regions.period}"

    @property
    def _columns(self) -> int:
        """Elements of a row of a region that are read, where most are."""
        return self.problem.result.target.dims[-1].extent + self.problem.regions.furthest

    @property
    def extents(self) -> list[int]:
        """Regions, and the dimensions of one."""
        return [self.problem.regions.count, *(dim.extent for dim in self.problem.x.dims[:-1]), self._columns]

    @property
    def dims(self) -> list[tuple[int, int]]:
        """Its extents, and elements between neighbours in the input."""
        *others, last = (dim.stride for dim in self.problem.x.dims)
        return list(zip(self.extents, (last, *others, last * self.problem.regions.period), strict=True))

    def contraction(self, memory: OperandMemory) -> Contraction:
        """The contraction that reads the regions."""
        region, *strides = TensorType.dense(memory.element, self.extents).strides()
        dims = [StridedDim(dim.extent, stride) for dim, stride in zip(self.problem.x.dims, strides, strict=True)]
        return self.problem.regions.contraction(strided_view(memory, dims), region)

    def write(self, b: TensorBuilder, target: TensorView) -> None:
        """Copy the input into the regions."""
        x, period = self.problem.x, self.problem.regions.period
        for region in sorted({region for region, _ in self.problem.regions.starts}):
            columns = min(self._columns, -(-(x.dims[-1].extent - region) // period))
            start = b.gep(x.element, x.storage.pointer, region * x.dims[-1].stride)
            source = [*x.dims[:-1], StridedDim(columns, x.dims[-1].stride * period)]
            there = b.gep(x.element, target.storage.pointer, region * target.dims[0].stride)
            dims = [*target.dims[1:-1], StridedDim(columns, target.dims[-1].stride)]
            copy(
                b,
                strided_view(OperandMemory(start, x.element), source),
                strided_view(OperandMemory(there, x.element), dims),
            )
