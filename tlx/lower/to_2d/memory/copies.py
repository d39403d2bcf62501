"""Copies: 2-D blocks loaded and stored, strided tensors copied and filled, and the cost of a copy in cycles.

The leaves of a 2-D tree are strided blocks and scalars as row-major vectors; its root is the store of a vector.

A row-major block whose rows are `p` elements apart, and its transpose::

    %t = call token @llvm.tensor.load(ptr %x, <R, C>, <0, 1>, ..., <0, p>)
    %v = call <R*C x float> @llvm.tensor.tovector(token %t)

    %t = call token @llvm.tensor.load(ptr %x, <C, R>, <1, 0>, ..., <0, p>)
    %v = call <R*C x float> @llvm.tensor.transpose(token %t, <2 x i32> <i32 0, i32 1>)

A row that is repeated, a column, a single element, and a scalar::

    %t = call token @llvm.tensor.load(ptr %x, <1, C> | <R, 1> | <1, 1>, ...)
    %v = call <R*C x float> @llvm.tensor.broadcast(token %t, <2 x i32> <i32 R, i32 C>, <2 x i32> <i32 0, i32 1>)

    %s = insertelement <1 x float> undef, float %scalar, i32 0
    %t = call token @llvm.tensor.typeinfo(<1 x float> %s, <1, 1>, <0, 1>, ...)
    %v = call <R*C x float> @llvm.tensor.broadcast(token %t, <2 x i32> <i32 R, i32 C>, <2 x i32> <i32 0, i32 1>)

Copies and fills are memcpy and memset where source and destination are dense, else loops around 2-D copies.

Rewrite of a 3-D copy whose rows are 8 elements apart in the source and 4 in the destination::

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

Approximate cycles of a copy, by the code that `copy` emits for it:

contiguous dimension                        is copied by         cycles
the same in source and copy                 rows                 6 a row, 2.5 for each register of it
one of the source, another of the copy      transposed tiles     128 for each tile, even a partial one; 200 for elements
                                                                 of less than 32 bits
 the same, an odd number up to 15 apart     merged registers     8 for each register, where one instruction permutes it
of the copy, stride 2 in the source         lines, shuffled      3 a row, 4 for each register of it, 0.15 for each
                                                                 byte that is read, once where windows overlap, and
                                                                 0.05 for each that is written outside the caches;
                                                                 where one instruction permutes a register of words
of the copy only                            single elements      1.5 for each

Measured on a Xeon with AMX: float, in the caches. Larger copies take longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.module import Module, UnparsedText
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I1, I8, I64, VOID, ArrayType, IntType, Type, VectorType, bytes_of
from tlx.ir.values import (
    Aggregate,
    Constant,
    ConstFloat,
    ConstInt,
    Global,
    Keyword,
    Local,
    Splat,
    Value,
    const_vector,
    zero,
)
from tlx.lower.cost import randomized_cycles
from tlx.lower.memory.views import Storage, StridedDim, TensorView, is_deinterleaved, storage_type
from tlx.lower.to_2d.loop_nests import (
    INDEX_LIMIT,
    LoopDim,
    choose_plane,
    column_dim,
    loop_nest,
    ordered_by_stride,
    without_dims,
)
from tlx.target.costs.blocks import BlockCosts
from tlx.target.target import Target


def load_block(
    b: TensorBuilder, pointer: Value, element: Type, rows: int, cols: int, row_stride: int, col_stride: int
) -> Local:
    """The row-major vector of a block in memory; a stride of 0 repeats, that of a single row or column does not matter.

    Args:
        b: The builder.
        pointer: The block's first element.
        element: Type of its elements.
        rows: Its rows.
        cols: Its columns.
        row_stride: Elements from a row to the next.
        col_stride: Elements from a column to the next.

    Raises:
        ValueError: Neither stride is 0 or 1.
    """
    down, right = row_stride if rows > 1 else 0, col_stride if cols > 1 else 0
    if right == 1 and (down or rows == 1):
        return b.tovector(b.tensor_load(pointer, TensorType.dense(element, (rows, cols)), (0, down or cols), "rows"))
    if right > 1 and (down == 1 or rows == 1):
        type_ = TensorType(element, (cols, rows), (1, 0), (0, 0))
        return b.transpose(b.tensor_load(pointer, type_, (0, right), "columns"), (0, 1))
    if right > 1 or (down and right):
        message = f"no 2-D load reads {rows} x {cols} elements with strides {row_stride} and {col_stride}"
        raise ValueError(message)
    return _load_repeated(b, pointer, element, (rows, cols), (down, right))


def _load_repeated(
    b: TensorBuilder, pointer: Value, element: Type, extents: tuple[int, int], strides: tuple[int, int]
) -> Local:
    """A row, a column or one element, repeated along the dimensions whose stride is 0."""
    rows, cols = (extent if stride else 1 for extent, stride in zip(extents, strides, strict=True))
    token = b.tensor_load(pointer, TensorType.dense(element, (rows, cols)), (0, strides[0] or cols), "part")
    return b.tovector(token) if (rows, cols) == extents else b.broadcast(token, extents, (0, 1))


def splat_block(b: TensorBuilder, scalar: Value, rows: int, cols: int) -> Local:
    """A block every element of which is a scalar."""
    one: Value = (
        const_vector([scalar])
        if isinstance(scalar, Constant)
        else b.insert_element(Keyword(VectorType(1, scalar.type), "undef"), scalar, 0, "scalar")
    )
    token = b.typeinfo(one, TensorType.dense(scalar.type, (1, 1)), "scalar")
    return b.broadcast(token, (rows, cols), (0, 1))


def store_block(
    b: TensorBuilder, vector: Value, pointer: Value, element: Type, rows: int, cols: int, pitch: int
) -> None:
    """The root of a tree: write a row-major vector as a block whose rows are `pitch` elements apart."""
    token = b.typeinfo(vector, TensorType.dense(element, (rows, cols)), "block")
    b.tensor_store(pointer, token, (0, pitch if rows > 1 else cols))


def constant_array(module: Module, value: Value) -> Global:
    """A constant vector as an array: LLVM aligns vectors to their size, and linkers reject large alignments."""
    name = module.global_names.fresh("tensor.constant")
    type_ = value.type
    assert isinstance(type_, VectorType)
    if isinstance(value, (Aggregate, Splat)):
        elements = value.elements if isinstance(value, Aggregate) else (value.element,) * type_.count
        if type_.element == I1:
            elements = tuple(ConstInt(I8, int(str(e) in ("1", "-1", "true"))) for e in elements)
        value = Aggregate(ArrayType(type_.count, storage_type(type_.element)), elements, "[")
    text = f"\n\n@{name} = private unnamed_addr constant {value.typed}, align 64"
    module.append(UnparsedText(text))
    return Global(module.pointer_to(value.type), name)


_Pointers = tuple[Value, Value]

WIDEST_VECTOR: Final = 64
"""Bytes of the vectors that copies are written with; targets with narrower registers split them."""
_SECOND: Final = 2
_REVERSED: Final = (-1, 1)
_LEAST_STRIDE2: Final = 4
"""Least elements of a row that are gathered from cache lines."""


def copy(b: TensorBuilder, source: TensorView, destination: TensorView) -> None:
    """Copy the data of `source` to the same logical positions of `destination`; the two do not overlap.

    The source's stride may be 0 along some dimensions: it repeats. Where it is negative, the source is reversed.
    """
    dims = [LoopDim(s.extent, (s.stride, t.stride)) for s, t in zip(source.dims, destination.dims, strict=True)]
    if any(dim.strides[0] < 0 for dim in dims):
        _copy_backwards(b, source, destination, dims)
        return
    ordered = ordered_by_stride(dims)
    element = source.element
    pointers = source.storage.pointer, destination.storage.pointer
    if any(dim.strides[0] == 0 for dim in ordered):
        _copy_blocks(b, pointers, (element, element), ordered)
        return
    rows = next((dim for dim in ordered if dim.strides == (1, 1)), None)
    if rows is not None:
        _copy_rows(b, pointers, element, rows, without_dims(ordered, rows))
        return
    second = next(filter(is_stride2_copy, ordered), None)
    if second is not None:
        _copy_columns(b, pointers, element, second, without_dims(ordered, second))
        return
    inner = next((dim for dim in ordered if dim.strides[0] == 1 and dim.strides[1] < INDEX_LIMIT), None)
    outer = next((dim for dim in ordered if dim.strides[1] == 1 and dim.strides[0] < INDEX_LIMIT), None)
    if inner and outer:
        copy_transposed(b, pointers, element, (outer, inner), without_dims(ordered, outer, inner))
        return
    column = column_dim(ordered)
    _copy_columns(b, pointers, element, column, without_dims(ordered, column))


def _copy_backwards(b: TensorBuilder, source: TensorView, destination: TensorView, dims: Sequence[LoopDim]) -> None:
    """Copy a source that is reversed along some dimensions; a contiguous one of them is reversed in registers."""
    element = source.element
    line = next((dim for dim in dims if dim.strides == _REVERSED), None)
    loops = without_dims(dims, line) if line is not None else [dim for dim in dims if dim.strides[0] < 0]
    with loop_nest(b, loops, 2) as offsets:
        start, to = _addresses(b, (source.storage.pointer, destination.storage.pointer), element, offsets)
        if line is not None:
            _reverse(b, start, to, element, line.extent)
            return
        forward = [dim for dim in dims if dim.strides[0] >= 0]
        copy_block(b, start, to, element, forward)


def copy_block(b: TensorBuilder, source: Value, destination: Value, element: Type, dims: Sequence[LoopDim]) -> None:
    """Copy a strided block from one address to another.

    Args:
        b: The builder.
        source: The address of its first element.
        destination: The address of the first element's copy.
        element: Type of the elements.
        dims: Extents, and strides in source and destination.
    """
    views = [
        TensorView.strided(Storage(pointer), element, [dim.of(operand) for dim in dims])
        for operand, pointer in enumerate((source, destination))
    ]
    copy(b, *views)


def _reverse(b: TensorBuilder, source: Value, destination: Value, element: Type, count: int) -> None:
    """Copy the elements that end at `source` in reverse order, as integers, a register at a time."""
    word = IntType(8 * bytes_of(element))
    source, destination = b.retype(source, word), b.retype(destination, word)
    lanes = WIDEST_VECTOR // bytes_of(element)
    whole, rest = divmod(count, lanes)
    if whole:
        with loop_nest(b, [LoopDim(whole, (-lanes, lanes))], 2, "register") as (here, there):
            first = b.gep(word, source, b.add(here, 1 - lanes), "from")
            _reverse_register(b, first, b.gep(word, destination, there, "to"), VectorType(lanes, word))
    if rest:
        first = b.gep(word, source, 1 - count, "from")
        _reverse_register(b, first, b.gep(word, destination, whole * lanes, "to"), VectorType(rest, word))


def _reverse_register(b: TensorBuilder, source: Value, destination: Value, type_: VectorType) -> None:
    align = bytes_of(type_.element)
    register = b.load(type_, b.retype(source, type_), align)
    reversed_ = b.shuffle(register, None, range(type_.count)[::-1], "reversed")
    b.store(reversed_, b.retype(destination, type_), align)


def convert(b: TensorBuilder, source: TensorView, destination: TensorView) -> None:
    """Copy the numbers of `source` to the same logical positions of `destination`, whose elements are wider floats."""
    pairs = zip(source.dims, destination.dims, strict=True)
    dims = ordered_by_stride([LoopDim(s.extent, (s.stride, t.stride)) for s, t in pairs])
    _copy_blocks(b, (source.storage.pointer, destination.storage.pointer), (source.element, destination.element), dims)


def is_stride2_copy(dim: LoopDim) -> bool:
    """Whether a dimension of a copy has stride 2 in its source: stage 2 deinterleaves it in registers."""
    extent, (source, destination) = dim
    return destination == 1 and source == _SECOND and extent >= _LEAST_STRIDE2


def restrided_view(b: TensorBuilder, view: TensorView, dims: Sequence[tuple[int, int]], offset: int = 0) -> TensorView:
    """Other dimensions (extent, stride) over the memory of a view, from an element on."""
    place = Storage(b.gep(view.element, view.storage.pointer, offset, "part")) if offset else view.storage
    return TensorView.strided(place, view.element, [StridedDim(*dim) for dim in dims])


def slice_view(b: TensorBuilder, view: TensorView, ranges: Sequence[tuple[int, int]]) -> TensorView:
    """A part of a view: the first index and the extent along each logical dimension."""
    offset = sum(first * dim.stride for (first, _), dim in zip(ranges, view.dims, strict=True))
    return restrided_view(
        b, view, [StridedDim(r[1], dim.stride) for r, dim in zip(ranges, view.dims, strict=True)], offset
    )


def copy_bytes(b: TensorBuilder, source: Value, destination: Value, size: int, *, overlap: bool = False) -> None:
    """`llvm.memcpy`, or `llvm.memmove` where the two may overlap."""
    if not overlap:
        b.memcpy(destination, source, size)
        return
    i8p = b.pointer(I8)
    args = [b.retype(destination, I8), b.retype(source, I8), ConstInt(I64, size), ConstInt(I1, 0)]
    b.call_intrinsic("llvm.memmove", [i8p, i8p, I64], VOID, args)


def fill_zero(b: TensorBuilder, destination: TensorView) -> None:
    """Set the data of a view to zero."""
    fill(b, zero(destination.element), destination)


def fill(b: TensorBuilder, scalar: Value, destination: TensorView) -> None:
    """Set the data of a view to a number: with memset if it is a contiguous zero, else by rows and columns."""
    element, pointer = destination.element, destination.storage.pointer
    scalar = to_storage_type(b, scalar)
    rows, cols, rest = choose_plane(ordered_by_stride([LoopDim(d.extent, (d.stride,)) for d in destination.dims]))
    with loop_nest(b, rest, 1) as offsets:
        address = b.gep(element, pointer, offsets[0], "to")
        if rows.extent == cols.extent == 1:
            b.store(scalar, address, bytes_of(element))
        elif rows.extent == 1 and not rest and _is_zero(scalar):
            b.memset(address, 0, cols.extent * bytes_of(element))
        else:
            vector = splat_block(b, scalar, rows.extent, cols.extent)
            store_block(b, vector, address, element, rows.extent, cols.extent, _stride(rows, 0))


def to_storage_type(b: TensorBuilder, value: Value) -> Value:
    """A scalar or a vector as it is stored: an i1 is a byte."""
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


def _stride(dim: LoopDim, operand: int) -> int:
    return dim.strides[operand] if dim.extent > 1 else 0


def _copy_blocks(b: TensorBuilder, pointers: _Pointers, elements: tuple[Type, Type], dims: list[LoopDim]) -> None:
    """Copy blocks of rows and columns; the source may repeat along some dimensions, and have narrower floats."""
    rows, cols, rest = choose_plane(dims)
    with loop_nest(b, rest, 2) as offsets:
        source, destination = (
            b.gep(element, place, offset, name)
            for element, place, offset, name in zip(elements, pointers, offsets, ("from", "to"), strict=True)
        )
        strides = _stride(rows, 0), _stride(cols, 0)
        vector: Value = load_block(b, source, elements[0], rows[0], cols[0], *strides)
        vector = b.cast("fpext", vector, VectorType(rows[0] * cols[0], elements[1]))
        store_block(b, vector, destination, elements[1], rows[0], cols[0], _stride(rows, 1))


def _copy_rows(b: TensorBuilder, pointers: _Pointers, element: Type, rows: LoopDim, rest: list[LoopDim]) -> None:
    """Copy along a dimension that is contiguous in both: 2-D copies of it and its neighbour, memcpy if it has none."""
    second = next((dim for dim in reversed(rest) if max(dim.strides) < INDEX_LIMIT), None)
    with loop_nest(b, without_dims(rest, second), 2) as offsets:
        source, destination = _addresses(b, pointers, element, offsets)
        if second is None:
            copy_bytes(b, source, destination, rows.extent * bytes_of(element))
            return
        type_ = TensorType.dense(element, (second.extent, rows.extent))
        token = b.tensor_load(source, type_, (0, second.strides[0]), "rows")
        b.tensor_store(destination, token, (0, second.strides[1]))


def _copy_columns(
    b: TensorBuilder, pointers: _Pointers, element: Type, column: LoopDim | None, rest: Sequence[LoopDim]
) -> None:
    """Copy where no dimension is contiguous in both: columns of one dimension, or single elements."""
    with loop_nest(b, rest, 2) as offsets:
        source, destination = _addresses(b, pointers, element, offsets)
        if column is None:
            size = bytes_of(element)
            b.store(b.load(element, source, size), destination, size)
            return
        type_ = TensorType.dense(element, (column.extent, 1))
        token = b.tensor_load(source, type_, (0, column.strides[0]), "column")
        b.tensor_store(destination, token, (0, column.strides[1]))


def copy_transposed(
    b: TensorBuilder, pointers: _Pointers, element: Type, dims: tuple[LoopDim, LoopDim], rest: Sequence[LoopDim]
) -> None:
    """Copy and transpose from one address to another, within loops over `rest`.

    The source is dense along the second of `dims`, the destination along the first.
    """
    (outer, (pitch, _)), (inner, (_, destination_pitch)) = dims
    with loop_nest(b, rest, 2) as offsets:
        source, destination = _addresses(b, pointers, element, offsets)
        type_ = TensorType.dense(element, (outer, inner))
        flipped = type_.transposed((1, 0))
        vector = b.transpose(b.tensor_load(source, type_, (0, pitch), "rows"), (1, 0), flipped)
        b.tensor_store(destination, b.typeinfo(vector, flipped, "columns"), (0, destination_pitch))


def _addresses(b: TensorBuilder, pointers: _Pointers, element: Type, offsets: Sequence[Value]) -> _Pointers:
    return b.gep(element, pointers[0], offsets[0], "from"), b.gep(element, pointers[1], offsets[1], "to")


_WIDE: Final = 4


def copy_cycles(dims: Sequence[tuple[int, int]], element: Type, target: Target, *, permutes: bool = False) -> float:
    """Cycles of a copy.

    Args:
        dims: Extent of each dimension, and elements from a position to the next in the source; the copy is dense, the
            last one innermost.
        element: Type of the elements.
        target: The machine.
        permutes: Whether one instruction permutes them in a register.
    """
    return randomized_cycles(
        target.block_costs.decision_seed, _copy_cycles(dims, element, target, permutes=permutes), dims, element
    )


def _copy_cycles(dims: Sequence[tuple[int, int]], element: Type, target: Target, *, permutes: bool) -> float:
    costs = target.block_costs
    loops: list[LoopDim] = []
    count = 1
    for extent, stride in reversed(dims):
        loops.append(LoopDim(extent, (stride, count)))
        count *= extent
    size = count * bytes_of(element)
    far = 0 if size <= costs.cached_operand_bytes else size / target.memory.bytes_per_cycle  # stores overlap
    ordered = ordered_by_stride(loops)
    second = next((dim.extent for dim in ordered if is_stride2_copy(dim)), None)
    if permutes and second is not None and bytes_of(element) >= _WIDE:
        lines = math.ceil(second * bytes_of(element) / costs.register_bytes)
        read = min(2 * count, 1 + sum((extent - 1) * stride for extent, stride in dims)) * bytes_of(element)
        copies = costs.copies
        written = size * copies.stride2_written_byte_cycles if size > costs.cached_operand_bytes else 0
        each = copies.stride2_row_cycles + lines * copies.stride2_register_cycles
        return read * copies.stride2_read_byte_cycles + written + count / second * each
    if permutes and any(_is_deinterleaved(dim, ordered) for dim in ordered):
        return far + size / costs.register_bytes * costs.copies.deinterleaved_register_cycles
    return far + _cached_copy_cycles(ordered, count, bytes_of(element), costs)


def _is_deinterleaved(dim: LoopDim, dims: Sequence[LoopDim]) -> bool:
    """Whether a dimension that is contiguous in the copy is deinterleaved: columns of a narrow matrix in the source."""
    _, (source, destination) = dim
    return destination == 1 and any(is_deinterleaved(source, extent) for extent, (s, t) in dims if s == 1 < t)


def _cached_copy_cycles(dims: Sequence[LoopDim], count: int, size: int, costs: BlockCosts) -> float:
    """Cycles of a copy of `count` elements of this size that are in the caches."""
    row = next((extent for extent, strides in dims if strides in {(0, 1), (1, 1)}), None)
    if row is not None:
        registers = math.ceil(row * size / costs.register_bytes)
        return count / row * (costs.copies.row_cycles + registers * costs.copies.row_register_cycles)
    read = next((extent for extent, strides in dims if strides[0] == 1), None)
    written = next((extent for extent, strides in dims if strides[1] == 1), None)
    if read is None or written is None:
        return count * costs.copies.element_cycles
    tiles = math.ceil(read / costs.copies.tile_side) * math.ceil(written / costs.copies.tile_side)
    each = costs.copies.narrow_tile_cycles if size < _WIDE else costs.copies.tile_cycles
    return count / (read * written) * tiles * each
