"""Copies between strided places, and zeroes: memcpy where both are dense, else loops around 2-D copies.

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
"""

from __future__ import annotations

from collections.abc import Sequence

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I1, I8, I64, VOID, Type, bytes_of
from tlx.ir.values import ConstInt, Value, zero
from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk, merged, nest
from tlx.lower.to_2d.views import View
from tlx.types import TensorType

_Places = tuple[Value, Value]


def copy(b: TensorBuilder, source: View, target: View) -> None:
    """Copy the data of `source` to the same logical positions of `target`; the two do not overlap."""
    pairs = zip(source.dims, target.dims, strict=True)
    walks = _walks([(s.extent, (s.stride, t.stride)) for s, t in pairs])
    element = source.element
    places = source.place.pointer, target.place.pointer
    rows = next((w for w in walks if w[1] == (1, 1)), None)
    if rows is not None:
        _copy_rows(b, places, element, rows, _without(walks, rows))
        return
    inner = next((w for w in walks if w[1][0] == 1 and w[1][1] < INDEX_LIMIT), None)
    outer = next((w for w in walks if w[1][1] == 1 and w[1][0] < INDEX_LIMIT), None)
    if inner and outer:
        _copy_transposed(b, places, element, (outer, inner), _without(walks, outer, inner))
        return
    _copy_columns(b, places, element, walks)


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
    walks = _walks([(d.extent, (d.stride,)) for d in target.dims])
    inner = next((w for w in walks if w[1] == (1,)), None)
    with nest(b, _without(walks, inner), 1) as offsets:
        address = b.gep(element, pointer, offsets[0])
        if inner is None:
            b.store(zero(element), address, bytes_of(element))
        else:
            b.memset(address, 0, inner[0] * bytes_of(element))


def _walks(walks: list[Walk]) -> list[Walk]:
    """Dimensions from the largest stride in the destination to the smallest, merged where they are one."""
    return merged(sorted(walks, key=lambda w: w[1][::-1], reverse=True))


def _without(walks: Sequence[Walk], *taken: Walk | None) -> list[Walk]:
    return [w for w in walks if not any(w is t for t in taken)]


def _longest(walks: Sequence[Walk]) -> Walk | None:
    """The longest dimension whose strides a pitch can say."""
    return max((w for w in walks if max(w[1]) < INDEX_LIMIT), key=lambda w: w[0], default=None)


def _copy_rows(b: TensorBuilder, places: _Places, element: Type, rows: Walk, rest: list[Walk]) -> None:
    """Both are dense along one dimension: 2-D copies of it and its neighbour, memcpy if there is none."""
    second = next((w for w in reversed(rest) if max(w[1]) < INDEX_LIMIT), None)
    with nest(b, _without(rest, second), 2) as offsets:
        source, target = _addresses(b, places, element, offsets)
        if second is None:
            copy_bytes(b, source, target, rows[0] * bytes_of(element))
            return
        type_ = TensorType.dense(element, (second[0], rows[0]))
        token = b.tensor_load(source, type_, (0, second[1][0]), "rows")
        b.tensor_store(target, token, (0, second[1][1]))


def _copy_columns(b: TensorBuilder, places: _Places, element: Type, walks: list[Walk]) -> None:
    """No dimension is dense in both: columns of the longest one, or single elements."""
    column = _longest(walks)
    with nest(b, _without(walks, column), 2) as offsets:
        source, target = _addresses(b, places, element, offsets)
        if column is None:
            size = bytes_of(element)
            b.store(b.load(element, source, size), target, size)
            return
        type_ = TensorType.dense(element, (column[0], 1))
        token = b.tensor_load(source, type_, (0, column[1][0]), "column")
        b.tensor_store(target, token, (0, column[1][1]))


def _copy_transposed(
    b: TensorBuilder, places: _Places, element: Type, dims: tuple[Walk, Walk], rest: list[Walk]
) -> None:
    """The source is dense along the second of `dims`, the destination along the first."""
    (outer, (pitch, _)), (inner, (_, target_pitch)) = dims
    with nest(b, rest, 2) as offsets:
        source, target = _addresses(b, places, element, offsets)
        type_ = TensorType.dense(element, (outer, inner))
        flipped = type_.transposed((1, 0))
        vector = b.transpose(b.tensor_load(source, type_, (0, pitch), "rows"), (1, 0), flipped)
        b.tensor_store(target, b.typeinfo(vector, flipped, "columns"), (0, target_pitch))


def _addresses(b: TensorBuilder, places: _Places, element: Type, offsets: Sequence[Value]) -> _Places:
    return b.gep(element, places[0], offsets[0], "from"), b.gep(element, places[1], offsets[1], "to")
