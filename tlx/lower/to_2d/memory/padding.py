"""Padding: the position of a tensor's elements in a larger one, and copies that write the border as well.

A 3 x 4 tensor with a row above and two columns to the right; the boxes of the border do not overlap:

    s s s s s s      box 0: 1 x 6
    x x x x s s      box 1: 3 x 2
    x x x x s s
    x x x x s s
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tlx.intrinsics import lookup
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.rewrite import definitions, set_operand
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import FloatType, Type, VectorType
from tlx.ir.values import ConstFloat, Local, Value, const_float
from tlx.lower.memory.views import Storage, StridedDim, TensorView
from tlx.lower.to_2d.memory.copies import copy, fill, restrided_view, slice_view

WriteCopy = Callable[[TensorBuilder, TensorView, TensorView], None]

Box = tuple[tuple[int, int], ...]
"""A part of a tensor: the first position and the extent along each dimension."""


@dataclass(frozen=True)
class PaddedDim:
    """One dimension of a pad: the elements of the operand in the result, and their positions; negative padding crops.

    Attributes:
        first: The first element of the operand that is copied.
        count: The number of elements that are copied.
        at: Position of the first one in the result.
        step: Distance of neighbours in the result.
        extent: Extent of the result.
    """

    first: int
    count: int
    at: int
    step: int
    extent: int

    @classmethod
    def of(cls, extent: int, low: int, interior: int, result: int) -> PaddedDim:
        """The dimension of an operand's extent, padded to that of the result."""
        step = interior + 1
        first = max(0, -(low // step))
        last = min(extent - 1, (result - 1 - low) // step)
        return cls(first, max(0, last - first + 1), low + first * step, step, result)

    @property
    def outside(self) -> list[tuple[int, int]]:
        """The ranges before and after the elements: first position and extent."""
        end = self.at + (self.count - 1) * self.step + 1
        return [(first, count) for first, count in ((0, self.at), (end, self.extent - end)) if count > 0]

    @property
    def is_identity(self) -> bool:
        """Whether the result is the operand."""
        return (self.first, self.at, self.step if self.count > 1 else 1) == (0, 0, 1) and self.count == self.extent

    @property
    def is_spread(self) -> bool:
        """Whether padding goes between neighbours."""
        return self.step > 1 and self.count > 1

    def every(self, period: int, start: int, extent: int) -> PaddedDim:
        """The positions `start`, `start + period`, ... of the result, `extent` of them, as a dimension of their own.

        The elements in them are `period` apart in the operand; neighbours in the result must be neighbours there.
        """
        first = min(extent, max(0, -((start - self.at) // period)))
        end = min(extent, max(first, -(-(self.at + self.count - start) // period)))
        return PaddedDim(self.first + start + first * period - self.at, end - first, first, 1, extent)


def padded_dims(op: TensorOp) -> list[PaddedDim]:
    """The dimensions of a pad."""
    assert op.result is not None
    extents = op.tensors[0].type.extents
    low, interior = op.dims[0], op.dims[2] if len(op.dims) == 3 else (0,) * len(extents)
    return [PaddedDim.of(*numbers) for numbers in zip(extents, low, interior, op.result.extents, strict=True)]


def is_crop(op: TensorOp) -> bool:
    """Whether an operation is a pad whose result is a part of its operand, one element at least."""
    if op.intrinsic.name != "pad" or op.result is None or op.result.is_padded:
        return False
    return all(dim.count and not dim.outside and not dim.is_spread for dim in padded_dims(op))


@dataclass(frozen=True)
class Crop:
    """A dense tensor as a part of another dense one.

    Attributes:
        offset: The first element in the other tensor.
        extents: Extents of the part, the outermost first.
        strides: Elements between neighbours along each dimension.
    """

    offset: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, op: TensorOp) -> Crop | None:
        """The result of a pad that only crops a tensor without padding; None for any other operation."""
        if not is_crop(op) or op.result is None or not op.result.is_row_major:
            return None
        source = op.tensors[0].type
        if source.is_padded or not source.is_row_major:
            return None
        strides = source.strides()
        offset = sum(dim.first * stride for dim, stride in zip(padded_dims(op), strides, strict=True))
        return cls(offset, op.result.shape, strides)


def fill_border(b: TensorBuilder, destination: TensorView, dims: Sequence[PaddedDim], value: Value) -> None:
    """Write a value to the positions of the result outside of the box that holds the operand's elements."""
    if any(dim.count == 0 for dim in dims):
        fill(b, value, destination)
        return
    for ranges in border_boxes(dims):
        fill(b, value, slice_view(b, destination, ranges))


def border_boxes(dims: Sequence[PaddedDim]) -> list[Box]:
    """The border around the elements as boxes that do not overlap, outermost dimensions first."""
    return [
        (
            *((dim.at, dim.count) for dim in dims[:dimension]),
            outside,
            *((0, dim.extent) for dim in dims[dimension + 1 :]),
        )
        for dimension in range(len(dims))
        for outside in dims[dimension].outside
    ]


def spread(b: TensorBuilder, destination: TensorView, dims: Sequence[PaddedDim]) -> TensorView:
    """The part of the result that the elements are copied to."""
    return restrided_view(b, destination, *spread_dims(destination, dims))


def spread_dims(destination: TensorView, dims: Sequence[PaddedDim]) -> tuple[list[StridedDim[int]], int]:
    """The dimensions of the part of the result that the elements are copied to, and the offset of the first one."""
    pairs = list(zip(dims, destination.dims, strict=True))
    strided = [StridedDim(padded.count, dim.stride * padded.step) for padded, dim in pairs]
    return strided, sum(padded.at * dim.stride for padded, dim in pairs)


@dataclass(frozen=True)
class PaddedSource:
    """A tensor with a border that is not in memory: what copies the tensor writes the border, too.

    Attributes:
        data: The tensor without the border.
        dims: Its dimensions in the padded tensor, all of whose elements are in it, next to each other unless it is the
            input of a transposed convolution.
        value: The number in the border.
    """

    data: TensorView
    dims: tuple[PaddedDim, ...]
    value: Value

    @property
    def is_spread(self) -> bool:
        """Whether padding goes between elements."""
        return any(dim.is_spread for dim in self.dims)

    @property
    def view(self) -> TensorView:
        """The memory that the padded tensor would have, for estimates: its dimensions have the order of the data's."""
        order = tuple(sorted(range(len(self.dims)), key=lambda d: self.data.dims[d].stride, reverse=True))
        extents = tuple(self.dims[d].extent for d in order)
        type_ = TensorType(self.data.element, extents, order, (0,) * len(order))
        return TensorView.of(self.data.storage, type_).row_major

    def laid_out(self, type_: TensorType) -> PaddedSource:
        """The same with the dimensions of a tensor whose memory dimensions are those of this one."""
        places = [type_.position(d) for d in range(type_.rank)]
        data = TensorView.strided(self.data.storage, self.data.element, [self.data.dims[k] for k in places])
        data = replace(data, offset=self.data.offset)
        return replace(self, data=data, dims=tuple(self.dims[k] for k in places))

    def write(self, b: TensorBuilder, destination: TensorView, write_data: WriteCopy = copy) -> None:
        """Write the padded tensor; `write_data` copies the data."""
        fill_border(b, destination, self.dims, self.value)
        if all(dim.count for dim in self.dims):
            elements = slice_view(b, self.data, [(dim.first, dim.count) for dim in self.dims])
            write_data(b, elements, spread(b, destination, self.dims))

    def converted(self, b: TensorBuilder, element: Type) -> PaddedSource:
        """The same with a number in the border for a copy with elements of another type."""
        return replace(self, value=_converted(b, self.value, element))

    def position(self, dimension: int, at: Value) -> PaddedSource:
        """One position along a dimension, which is in the data: `at` is the address of the first element there."""
        dims = [dim if d != dimension else PaddedDim(0, 1, 0, 1, 1) for d, dim in enumerate(self.dims)]
        data = [dim if d != dimension else StridedDim(1, dim.stride) for d, dim in enumerate(self.data.dims)]
        return replace(self, data=TensorView.strided(Storage(at), self.data.element, data), dims=tuple(dims))


def _converted(b: TensorBuilder, value: Value, element: Type) -> Value:
    """A number as a wider float; a constant stays one."""
    if isinstance(value, ConstFloat) and isinstance(element, FloatType):
        return const_float(element, value.value)
    return b.cast("fpext", value, element)


# Common pads ---------------------------------------------------------------------------------------------------------


def merge_common_pads(function: Function) -> None:
    """Replace each pad that equals an earlier one in its block by that one.

    Rewrite of two convolutions of one input, each with a border of its own::

        %p = pad(%x), 1 on each side                    %p = pad(%x), 1 on each side
        %y = convolution(%p, %v)                        %y = convolution(%p, %v)
        %q = pad(%x), 1 on each side              ->
        %z = convolution(%q, %w)                        %z = convolution(%p, %w)

    Equal operations of other kinds, such as maps and products, are left to an optimiser that runs before TLX.
    """
    if sum(_calls(instruction, "pad") for instruction in function.instructions()) < 2:
        return
    known = definitions(function)
    replaced: dict[str, Value] = {}
    for block in function.blocks:
        pads: dict[tuple[str, ...], Value] = {}
        for instruction in block.instructions:
            if _calls(instruction, "pad"):
                tensor, *others = instruction.args
                key = (*_described(known, replaced, tensor), *(value.typed for value in others))
                first = pads.setdefault(key, instruction.value)
                if first != instruction.value:
                    replaced[str(instruction.result)] = first
    if not replaced:
        return
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i.result not in replaced]
    for instruction in function.instructions():
        for index, operand in enumerate(instruction.operands):
            if isinstance(operand, Local) and operand.name in replaced:
                set_operand(instruction, index, replaced[operand.name])


def _described(known: Mapping[str, Instruction], replaced: Mapping[str, Value], tensor: Value) -> tuple[str, ...]:
    """What identifies a token's tensor: the vector and its shape, or the token itself if it reads memory."""
    definition = known.get(tensor.name) if isinstance(tensor, Local) else None
    if definition is None or not _calls(definition, "typeinfo"):
        return (str(tensor),)
    vector, *shape = definition.args
    if not isinstance(vector, Local) or not isinstance(vector.type, VectorType):
        return (str(tensor),)
    return (str(replaced.get(vector.name, vector)), *map(str, shape))


def _calls(instruction: Instruction, name: str) -> bool:
    """Whether an instruction calls a tensor intrinsic of a name."""
    intrinsic = lookup(instruction.callee or "") if instruction.callee is not None else None
    return intrinsic is not None and intrinsic.name == name
