"""Views: a tensor as strides over memory, and the matrices that loops over its outer dimensions visit.

shape <2, 3, 4>, layout <1, 0, 2>, pitches <0, 0, 8>      dims (extent, stride) in logical order

    memory dimension   0   1   2                              logical 0: (3, 8)
    positions          2   3   4                              logical 1: (2, 24)
    stride            24   8   1                              logical 2: (4, 1)

A view seen with other dimensions: the same positions in the same order, without moving anything.

6 x 4, dense: strides (4, 1)      as 2 x 3 x 4: (12, 4, 1)       as 3 x 8: (8, 1)
6 x 4 with pitch 8: (8, 1)        as 2 x 3 x 4: (24, 8, 1)       as 3 x 8: impossible
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Generic, NamedTuple, Self, TypeVar

from tlx.intrinsics.small_floats import SmallFloat
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.types import I1, I8, PTR, Type, bytes_of
from tlx.ir.values import Keyword, Value
from tlx.lower.memory.buffers import PrivateBuffer

NO_ADDRESS: Final = Keyword(PTR, "null")
"""The address of memory whose strides alone matter, such as for estimates."""
_PITCH_LIMIT: Final = 1 << 31
_MAX_DEINTERLEAVED: Final = 15
"""Largest number of columns that are merged in registers, all of which are live at once."""


def is_deinterleaved(pitch: int, columns: int) -> bool:
    """Whether columns, whose elements are `pitch` apart, are merged in registers, not transposed."""
    return pitch % 2 == 1 and 1 < columns <= pitch <= _MAX_DEINTERLEAVED


def reshaped_strides(shape: Sequence[int], strides: Sequence[int], extents: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of a view reshaped to `extents`, the outermost first; None if no strides reach the same positions.

    Args:
        shape: Extents of the view's dimensions, the outermost first.
        strides: Elements between neighbours along each of them.
        extents: Extents after reshaping; their product is that of `shape`.
    """
    pending = _equally_spaced(shape, strides)
    innermost_first: list[int] = []
    for extent in reversed(extents):
        if extent == 1:
            innermost_first.append(0)
            continue
        if not pending or pending[-1][0] % extent:
            return None
        size, step = pending.pop()
        innermost_first.append(step)
        if size > extent:
            pending.append((size // extent, extent * step))
    return None if pending else tuple(reversed(innermost_first))


def pitches_of(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """The pitches of a load that reads a tensor with some strides; None if there are none.

    Args:
        shape: Extents of its memory dimensions, the outermost first.
        strides: Elements between neighbours along each of them; that of a dimension of extent 1 means nothing.
    """
    if shape[-1] > 1 and strides[-1] != 1:
        return None
    pitches = [0] * len(shape)
    inner = 1
    for k in range(len(shape) - 1, 0, -1):
        outer = next((strides[d] for d in range(k - 1, -1, -1) if shape[d] > 1), shape[k] * inner)
        if outer % inner or outer < shape[k] * inner:
            return None
        pitches[k], inner = outer // inner, outer
    return tuple(pitches)


def _equally_spaced(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Extent and stride of the longest runs of equally spaced positions, the outermost first."""

    def collapsed(outer: tuple[int, int], inner: tuple[int, int]) -> tuple[int, int] | None:
        return (outer[0] * inner[0], inner[1]) if outer[1] == inner[0] * inner[1] else None

    return collapse_neighbours((dim for dim in zip(shape, strides, strict=True) if dim[0] > 1), collapsed)


Dim = TypeVar("Dim")


def collapse_neighbours(dims: Iterable[Dim], collapsed: Callable[[Dim, Dim], Dim | None]) -> list[Dim]:
    """Dimensions, the outermost first, with neighbours collapsed where possible.

    Args:
        dims: The dimensions.
        collapsed: The dimension that replaces an outer and an inner one; None if they cannot be collapsed.
    """
    result: list[Dim] = []
    for dim in dims:
        both = collapsed(result[-1], dim) if result else None
        result[-1:] = [both] if both is not None else [*result[-1:], dim]
    return result


Number = TypeVar("Number", bound=int | Value)
"""A number that is known when the program is compiled, or an i64 that is computed when it runs."""


@dataclass(frozen=True, slots=True)
class SmallFloatBytes:
    """What the bytes of a view are.

    Attributes:
        format: The format of the numbers.
        element: The type that products read them as.
    """

    format: SmallFloat
    element: Type


class StridedDim(NamedTuple, Generic[Number]):
    """One logical dimension of a view: how many elements hold data, and how far apart neighbours are."""

    extent: Number
    stride: Number


@dataclass(eq=False)
class Storage:
    """Memory that holds a flattened vector or a tensor.

    Attributes:
        pointer: Its address; until buffers are allocated, the vector that needs a buffer.
        load: The load that reads user memory: the storage holds what it reads. None for buffers and destinations.
        buffer: The private buffer, if it is one.
        is_constant: Whether it is the memory of an argument that is constant over calls.
    """

    pointer: Value
    load: Instruction | None = None
    buffer: PrivateBuffer | None = None
    is_constant: bool = False

    @property
    def is_private(self) -> bool:
        """Whether no user pointer can write here: it is a buffer or a constant."""
        return self.buffer is not None or self.load is None


@dataclass(frozen=True)
class StridedView(Generic[Number]):
    """A tensor in memory.

    Attributes:
        storage: The memory, from its first element on.
        element: Type of the elements in memory: truth values are bytes, 0 or 1.
        shape: Positions of each memory dimension, padding included.
        data_shape: Positions of each memory dimension that hold data.
        strides: Elements between neighbours along each memory dimension.
        layout: Logical dimension at each memory position.
    """

    storage: Storage
    element: Type
    shape: tuple[Number, ...]
    data_shape: tuple[Number, ...]
    strides: tuple[Number, ...]
    layout: tuple[int, ...]

    @classmethod
    def strided(cls, storage: Storage, element: Type, dims: Sequence[StridedDim[Number]]) -> Self:
        """A view of dimensions without padding, the outermost first."""
        extents, strides = tuple(dim.extent for dim in dims), tuple(dim.stride for dim in dims)
        return cls(storage, element, extents, extents, strides, tuple(range(len(dims))))

    @property
    def dims(self) -> list[StridedDim[Number]]:
        """Extent and stride of each logical dimension."""
        return [self.memory_dims[self.layout.index(d)] for d in range(len(self.layout))]

    @property
    def memory_dims(self) -> list[StridedDim[Number]]:
        """Extent and stride of each memory dimension, the outermost first."""
        return list(map(StridedDim, self.data_shape, self.strides))

    @property
    def is_padded(self) -> bool:
        """Whether it may have padding."""
        return self.data_shape != self.shape


@dataclass(frozen=True)
class TensorView(StridedView[int]):
    """A tensor of constant extents in memory.

    Attributes:
        vnni_group: Rows of a matrix that are interleaved (VNNI): with g of them, element (k, n) of a dense K x N is at
            `(k // g * N + n) * g + k % g`. Only the right operand of a product may have more than 1.
        offset: Elements of the storage before the first one of the view; 0 once that has an address of its own.
        small_floats: The format of bytes that are floats, of operands of products.
    """

    vnni_group: int = 1
    offset: int = 0
    small_floats: SmallFloatBytes | None = None

    @classmethod
    def of(cls, place: Storage, type_: TensorType, pitches: Sequence[int] | None = None) -> TensorView:
        """A tensor of a type, dense or with the pitches of a load or store."""
        return cls(
            place, storage_type(type_.element), type_.shape, type_.data_shape, type_.strides(pitches), type_.layout
        )

    @property
    def dims(self) -> list[StridedDim[int]]:
        """Extent and stride of each logical dimension."""
        return list(_dims(self.data_shape, self.strides, self.layout))

    @property
    def spanned_bytes(self) -> int:
        """Bytes from the first element of the storage to the end of the last one of the view that holds data."""
        spanned = spanned_elements(_dims(self.data_shape, self.strides, self.layout))
        return (self.offset + spanned) * bytes_of(self.element)

    def is_pointwise(self, other: TensorView) -> bool:
        """Whether every position in memory order provably has the same address, and as many bytes, in both."""
        if not self._starts_with(other):
            return False
        strides = reshaped_strides(self.shape, self.strides, other.shape)
        return strides is not None and all(
            extent == 1 or a == b for extent, a, b in zip(other.shape, strides, other.strides, strict=True)
        )

    def reordered(self, order: Sequence[int], type_: TensorType) -> TensorView:
        """The same memory, its memory dimensions taken in another order, as a tensor of `type_`."""
        return self._as(type_, tuple(self.strides[k] for k in order))

    def broadcast(self, type_: TensorType, places: Sequence[int]) -> TensorView:
        """The same memory as a row-major tensor of `type_`: dimension `i` becomes `places[i]`, others are repeated."""
        steps = [0] * type_.rank
        for place, dim in zip(places, self.dims, strict=True):
            steps[place] = dim.stride if dim.extent > 1 else 0
        return self._as(type_, tuple(steps))

    def aliases_exactly(self, other: TensorView) -> bool:
        """Whether every element provably has the same address, and as many bytes, in both."""
        return self._starts_with(other) and without_unit_dims(self.dims) == without_unit_dims(other.dims)

    def _starts_with(self, other: TensorView) -> bool:
        """Whether the first element provably has the same address, and as many bytes, in both."""
        same_start = self.storage.pointer == other.storage.pointer and self.offset == other.offset
        return same_start and bytes_of(self.element) == bytes_of(other.element)

    def part(self, ranges: Sequence[tuple[int, int]], type_: TensorType) -> TensorView:
        """A part of the same memory as a tensor of `type_`: the first position and the extent of each dimension."""
        offset = sum(first * dim.stride for (first, _), dim in zip(ranges, self.dims, strict=True))
        steps = tuple(self.dims[d].stride for d in type_.layout)
        return replace(self._as(type_, steps), offset=self.offset + offset)

    def reshaped(self, type_: TensorType) -> TensorView | None:
        """The same memory in the same order as a tensor of `type_`; None if it has no such strides."""
        # A layout names dimensions, and padding hides positions: neither moves elements.
        if type_.shape == self.shape and (type_.layout == self.layout or not self.is_padded):
            return self._as(type_, self.strides)
        steps = None if type_.is_padded or self.is_padded else reshaped_strides(self.shape, self.strides, type_.shape)
        return None if steps is None else self._as(type_, steps)

    def _as(self, type_: TensorType, steps: tuple[int, ...]) -> TensorView:
        element = storage_type(type_.element)
        return TensorView(self.storage, element, type_.shape, type_.data_shape, steps, type_.layout, offset=self.offset)

    @property
    def row_major(self) -> TensorView:
        """The same data without padding, its dimensions in logical order."""
        return replace(TensorView.strided(self.storage, self.element, self.dims), offset=self.offset)


@dataclass(frozen=True)
class BatchedMatrix:
    """The last two dimensions of a view in the form of a 2-D load or store.

    Attributes:
        type: Its type: row-major, or column-major with layout <1, 0>.
        pitch: Elements between neighbours along its outer memory dimension.
        batch: Strides of the outer dimensions.
    """

    type: TensorType
    pitch: int
    batch: tuple[int, ...]


@lru_cache(maxsize=4096)
def _dims(data: tuple[int, ...], steps: tuple[int, ...], layout: tuple[int, ...]) -> tuple[StridedDim[int], ...]:
    by_memory = dict(zip(layout, zip(data, steps, strict=True), strict=True))
    return tuple(StridedDim(*by_memory[d]) for d in range(len(layout)))


def storage_type(element: Type) -> Type:
    """The type of an element in memory: an i1 takes a byte."""
    return I8 if element == I1 else element


def spanned_elements(dims: Iterable[StridedDim[int]]) -> int:
    """Elements from the first one to the last one, both included."""
    return 1 + sum((extent - 1) * stride for extent, stride in dims)


def without_unit_dims(dims: Iterable[StridedDim[int]]) -> list[StridedDim[int]]:
    """Dimensions with more than one element; the strides of the others mean nothing."""
    return [dim for dim in dims if dim.extent > 1]


def has_dense_rows(dims: Iterable[StridedDim[int]]) -> bool:
    """Whether neighbours in a row are neighbours in memory; rows are along the last dimension of several elements."""
    inner = without_unit_dims(dims)
    return not inner or inner[-1].stride == 1


def as_matrices(view: TensorView) -> BatchedMatrix | None:
    """The matrices of a view; None if no 2-D load can express them.

    This is so where neither of the last two dimensions is contiguous, or a pitch exceeds 32 bits.
    """
    *outer, rows, columns = view.dims
    layout = load_layout(rows, columns)
    if layout is None:
        return None
    is_row_major, pitch = layout
    if is_row_major:
        type_ = TensorType.dense(view.element, (rows.extent, columns.extent))
    else:
        type_ = TensorType(view.element, (columns.extent, rows.extent), (1, 0), (0, 0))
    return BatchedMatrix(type_, pitch, tuple(dim.stride for dim in outer))


def load_layout(rows: StridedDim[int], columns: StridedDim[int]) -> tuple[bool, int] | None:
    """Whether the 2-D load of a matrix is row-major (else column-major), and its pitch; None if there is none."""
    if columns.stride == 1 or columns.extent == 1:
        pitch = rows.stride if rows.extent > 1 else columns.extent
        return (True, pitch) if pitch < _PITCH_LIMIT else None
    if rows.stride == 1 or rows.extent == 1:
        return (False, columns.stride) if columns.stride < _PITCH_LIMIT else None
    return None


def tensor_bytes(type_: TensorType) -> int:
    """Bytes of a flattened tensor, padding included."""
    return type_.count * bytes_of(type_.element)
