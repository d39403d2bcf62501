"""Types of views, as they follow from the memref that is viewed; the address space and the element type stay.

    %A: memref<f32x32x16x8>            shape (32, 16, 8), stride (1, 32, 512)

    expand  %A[1->2x8]                 shape (32, 2, 8, 8), stride (1, 32, 64, 512)      16 = 2 * 8, 64 = 32 * 2
    fuse    %A[0,1]                    shape (512, 8), stride (1, 512)                   512 = 32 * 16
    subview %A[4:8,%i,0:%n]            shape (8, ?), stride (1, 512)                     mode 1 has no size and goes

Sizes that are names are `?`. A stride behind a `?` is `?` too.
"""

from __future__ import annotations

from collections.abc import Iterable

from tlx.frontends.tensor_language.ast.base import Name, Slice
from tlx.frontends.tensor_language.types import Extent, MemrefType, times


def expanded(type_: MemrefType, mode: int, sizes: Iterable[int | Name]) -> MemrefType:
    """The memref with one mode seen as several, the first of which lies closest together."""
    shape = tuple(size if isinstance(size, int) else None for size in sizes)
    strides: list[Extent] = [type_.stride[mode]]
    for extent in shape[:-1]:
        strides.append(times(strides[-1], extent))
    return _replaced(type_, mode, mode, shape, tuple(strides))


def fused(type_: MemrefType, first: int, last: int) -> MemrefType:
    """The memref with the modes `first` to `last`, both of them included, seen as one."""
    extent: Extent = 1
    for one in type_.shape[first : last + 1]:
        extent = times(extent, one)
    return _replaced(type_, first, last, (extent,), (type_.stride[first],))


def sliced(type_: MemrefType, slices: Iterable[Slice]) -> MemrefType:
    """The part of a memref that a slice each mode describes; modes without a size, or with the size 0, go."""
    kept = [(s.size, stride) for s, stride in zip(slices, type_.stride, strict=True) if s.size not in (None, 0)]
    shape = tuple(size if isinstance(size, int) else None for size, _ in kept)
    return MemrefType(type_.element, shape, tuple(stride for _, stride in kept), type_.address_space)


def _replaced(
    type_: MemrefType, first: int, last: int, shape: tuple[Extent, ...], stride: tuple[Extent, ...]
) -> MemrefType:
    """The memref with other modes in place of `first` to `last`."""
    before, after = slice(0, first), slice(last + 1, None)
    return MemrefType(
        type_.element,
        (*type_.shape[before], *shape, *type_.shape[after]),
        (*type_.stride[before], *stride, *type_.stride[after]),
        type_.address_space,
    )
