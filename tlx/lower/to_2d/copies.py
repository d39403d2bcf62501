"""Copies between strided places, and fills: memcpy where both are dense, else loops around 2-D copies.

Rewrite of a 3-D copy whose rows lie 8 elements apart in the source and 4 in the destination::

    %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2, 3, 4>, <0, 1, 2>, <0, 0, 0>, <0, 5, 8>)
    call void @llvm.tensor.store(ptr %q, token %t, <0, 0, 0>)
    ->
    i.loop:                                                          ; 2 planes
      %s = getelementptr inbounds float, ptr %p, i64 (%i * 40)
      %d = getelementptr inbounds float, ptr %q, i64 (%i * 12)
      %x = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %s, <3, 4>, <0, 1>, <0, 0>, <0, 8>)
      call void @llvm.tensor.store.p0.v2i32(ptr %d, token %x, <0, 4>)

Where source and destination are dense along different dimensions the 2-D copy transposes::

    %x = call token @llvm.tensor.load(ptr %s, <R, C>, <0, 1>, ..., <0, p>)
    %v = call <R*C x float> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
    %t = call token @llvm.tensor.typeinfo(<R*C x float> %v, <C, R>, <1, 0>, ...)
    call void @llvm.tensor.store(ptr %d, token %t, <0, q>)

Where the source repeats, because its stride is 0 along some dimensions, rows, columns or elements are broadcast::

    %x = call token @llvm.tensor.load(ptr %s, <1, C>, <0, 1>, ..., <0, C>)
    %v = call <R*C x float> @llvm.tensor.broadcast(token %x, <2 x i32> <i32 R, i32 C>, <2 x i32> <i32 0, i32 1>)
    %t = call token @llvm.tensor.typeinfo(<R*C x float> %v, <R, C>, <0, 1>, ...)
    call void @llvm.tensor.store(ptr %d, token %t, <0, q>)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I1, I8, I64, VOID, Type, VectorType, bytes_of
from tlx.ir.values import ConstFloat, ConstInt, Value, zero
from tlx.lower.to_2d.leaves import leaf_vector, scalar_vector, store_vector
from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk, nest
from tlx.lower.to_2d.planes import longest, ordered, plane, without
from tlx.lower.to_2d.views import Dim, Place, View
from tlx.types import TensorType

_Places = tuple[Value, Value]

_SECOND: Final = 2
_FEW: Final = 4
"""Elements of a row that are picked from lines at least."""


def copy(b: TensorBuilder, source: View, target: View) -> None:
    """Copy the data of `source` to the same logical positions of `target`; the two do not overlap.

    The source's stride may be 0 along some dimensions: it repeats.
    """
    pairs = zip(source.dims, target.dims, strict=True)
    walks = ordered([(s.extent, (s.stride, t.stride)) for s, t in pairs])
    element = source.element
    places = source.place.pointer, target.place.pointer
    if any(w[1][0] == 0 for w in walks):
        _copy_blocks(b, places, (element, element), walks)
        return
    rows = next((w for w in walks if w[1] == (1, 1)), None)
    if rows is not None:
        _copy_rows(b, places, element, rows, without(walks, rows))
        return
    second = next(filter(is_every_second, walks), None)
    if second is not None:
        _copy_columns(b, places, element, second, without(walks, second))
        return
    inner = next((w for w in walks if w[1][0] == 1 and w[1][1] < INDEX_LIMIT), None)
    outer = next((w for w in walks if w[1][1] == 1 and w[1][0] < INDEX_LIMIT), None)
    if inner and outer:
        copy_transposed(b, places, element, (outer, inner), without(walks, outer, inner))
        return
    column = longest(walks)
    _copy_columns(b, places, element, column, without(walks, column))


def convert(b: TensorBuilder, source: View, target: View) -> None:
    """Copy the numbers of `source` to the same logical positions of `target`, whose elements are wider floats."""
    pairs = zip(source.dims, target.dims, strict=True)
    walks = ordered([(s.extent, (s.stride, t.stride)) for s, t in pairs])
    _copy_blocks(b, (source.place.pointer, target.place.pointer), (source.element, target.element), walks)


def is_every_second(walk: Walk) -> bool:
    """Whether a dimension of a copy is every second element of its source: the second stage picks them by registers."""
    extent, (source, target) = walk
    return target == 1 and source == _SECOND and extent >= _FEW


def part(b: TensorBuilder, view: View, dims: Sequence[tuple[int, int]], offset: int = 0) -> View:
    """Other dimensions (extent, stride) over the memory of a view, from an element on."""
    extents, steps = tuple(d[0] for d in dims), tuple(d[1] for d in dims)
    place = Place(b.gep(view.element, view.place.pointer, offset, "part")) if offset else view.place
    return View(place, view.element, extents, extents, steps, tuple(range(len(dims))))


def box(b: TensorBuilder, view: View, ranges: Sequence[tuple[int, int]]) -> View:
    """A part of a view: the first index and the extent along each logical dimension."""
    offset = sum(first * dim.stride for (first, _), dim in zip(ranges, view.dims, strict=True))
    return part(b, view, [Dim(r[1], dim.stride) for r, dim in zip(ranges, view.dims, strict=True)], offset)


def copy_bytes(b: TensorBuilder, source: Value, target: Value, size: int, *, overlap: bool = False) -> None:
    """`llvm.memcpy`, or `llvm.memmove` where the two may overlap."""
    if not overlap:
        b.memcpy(target, source, size)
        return
    i8p = b.pointer(I8)
    args = [b.retype(target, I8), b.retype(source, I8), ConstInt(I64, size), ConstInt(I1, 0)]
    b.call_intrinsic("llvm.memmove", [i8p, i8p, I64], VOID, args)


def fill_zero(b: TensorBuilder, target: View) -> None:
    """Set the data of a view to zero."""
    element, pointer = target.element, target.place.pointer
    walks = ordered([(d.extent, (d.stride,)) for d in target.dims])
    inner = next((w for w in walks if w[1] == (1,)), None)
    with nest(b, without(walks, inner), 1) as offsets:
        address = b.gep(element, pointer, offsets[0])
        if inner is None:
            b.store(zero(element), address, bytes_of(element))
        else:
            b.memset(address, 0, inner[0] * bytes_of(element))


def fill(b: TensorBuilder, scalar: Value, target: View) -> None:
    """Set the data of a view to a number."""
    element, pointer = target.element, target.place.pointer
    scalar = as_stored(b, scalar)
    if _is_zero(scalar):
        fill_zero(b, target)
        return
    rows, cols, rest = plane(ordered([(d.extent, (d.stride,)) for d in target.dims]))
    with nest(b, rest, 1) as offsets:
        address = b.gep(element, pointer, offsets[0], "to")
        if rows[0] == cols[0] == 1:
            b.store(scalar, address, bytes_of(element))
        else:
            vector = scalar_vector(b, scalar, rows[0], cols[0])
            store_vector(b, vector, address, element, rows[0], cols[0], _stride(rows, 0))


def as_stored(b: TensorBuilder, value: Value) -> Value:
    """A number, or a vector, as it lies in memory: truth values are bytes."""
    if isinstance(value.type, VectorType):
        return b.cast("zext", value, VectorType(value.type.count, I8)) if value.type.element == I1 else value
    if value.type != I1:
        return value
    return ConstInt(I8, value.unsigned) if isinstance(value, ConstInt) else b.cast("zext", value, I8)


def _is_zero(scalar: Value) -> bool:
    """Whether all bits of a number are zero; those of -0.0 are not."""
    if isinstance(scalar, ConstFloat):
        return scalar.value == 0 and math.copysign(1, scalar.value) > 0
    return isinstance(scalar, ConstInt) and scalar.value == 0


def _stride(walk: Walk, operand: int) -> int:
    return walk[1][operand] if walk[0] > 1 else 0


def _copy_blocks(b: TensorBuilder, places: _Places, elements: tuple[Type, Type], walks: list[Walk]) -> None:
    """Blocks of rows and columns; the source may repeat along some dimensions, and have narrower floats."""
    rows, cols, rest = plane(walks)
    with nest(b, rest, 2) as offsets:
        source, target = (
            b.gep(element, place, offset, name)
            for element, place, offset, name in zip(elements, places, offsets, ("from", "to"), strict=True)
        )
        strides = _stride(rows, 0), _stride(cols, 0)
        vector: Value = leaf_vector(b, source, elements[0], rows[0], cols[0], *strides)
        vector = b.cast("fpext", vector, VectorType(rows[0] * cols[0], elements[1]))
        store_vector(b, vector, target, elements[1], rows[0], cols[0], _stride(rows, 1))


def _copy_rows(b: TensorBuilder, places: _Places, element: Type, rows: Walk, rest: list[Walk]) -> None:
    """Both are dense along one dimension: 2-D copies of it and its neighbour, memcpy if there is none."""
    second = next((w for w in reversed(rest) if max(w[1]) < INDEX_LIMIT), None)
    with nest(b, without(rest, second), 2) as offsets:
        source, target = _addresses(b, places, element, offsets)
        if second is None:
            copy_bytes(b, source, target, rows[0] * bytes_of(element))
            return
        type_ = TensorType.dense(element, (second[0], rows[0]))
        token = b.tensor_load(source, type_, (0, second[1][0]), "rows")
        b.tensor_store(target, token, (0, second[1][1]))


def _copy_columns(b: TensorBuilder, places: _Places, element: Type, column: Walk | None, rest: Sequence[Walk]) -> None:
    """No dimension is dense in both: columns of one dimension, or single elements."""
    with nest(b, rest, 2) as offsets:
        source, target = _addresses(b, places, element, offsets)
        if column is None:
            size = bytes_of(element)
            b.store(b.load(element, source, size), target, size)
            return
        type_ = TensorType.dense(element, (column[0], 1))
        token = b.tensor_load(source, type_, (0, column[1][0]), "column")
        b.tensor_store(target, token, (0, column[1][1]))


def copy_transposed(
    b: TensorBuilder, places: _Places, element: Type, dims: tuple[Walk, Walk], rest: Sequence[Walk]
) -> None:
    """Copy between two places, within loops over `rest`.

    The source is dense along the second of `dims`, the destination along the first.
    """
    (outer, (pitch, _)), (inner, (_, target_pitch)) = dims
    with nest(b, rest, 2) as offsets:
        source, target = _addresses(b, places, element, offsets)
        type_ = TensorType.dense(element, (outer, inner))
        flipped = type_.transposed((1, 0))
        vector = b.transpose(b.tensor_load(source, type_, (0, pitch), "rows"), (1, 0), flipped)
        b.tensor_store(target, b.typeinfo(vector, flipped, "columns"), (0, target_pitch))


def _addresses(b: TensorBuilder, places: _Places, element: Type, offsets: Sequence[Value]) -> _Places:
    return b.gep(element, places[0], offsets[0], "from"), b.gep(element, places[1], offsets[1], "to")
