"""The kernel of a 2-D copy, straight or transposing, in tiles."""

from __future__ import annotations

from typing import Final

from tlx.ir.module import Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import VectorType, bits_of
from tlx.ir.values import Value
from tlx.lower.to_tiles.blocks import padded
from tlx.lower.to_tiles.problem import Copy
from tlx.lower.to_tiles.tiles import new_kernel
from tlx.target import Target
from tlx.types import TensorType

_ROW_VECTORS: Final = 4


def copy_kernel(module: Module, copy: Copy, target: Target) -> Function:
    """Add the kernel for a copy to the module: a function of pointers to the destination and the source.

    Destination and source are seen in the destination's memory order: `outer` x `inner`, inner with stride 1.
    """
    element = copy.source.element
    function = new_kernel(module, target, copy.kernel_name, [("to", element, ""), ("from", element, "")])
    b = TensorBuilder(module, function)
    lanes = max(1, target.vector_bytes * 8 // max(8, bits_of(element)))
    to, source = copy.destination, copy.source
    extents = (to.rows, to.cols) if to.is_row_major else (to.cols, to.rows)
    to_stride = to.row_stride if to.is_row_major else to.col_stride
    from_strides = (source.row_stride, source.col_stride)
    outer_stride, inner_stride = from_strides if to.is_row_major else from_strides[::-1]
    straight = inner_stride == 1 or extents[1] == 1
    sizes = (1, lanes * _ROW_VECTORS) if straight else (min(lanes, 16), min(lanes, 16))
    for rows in padded(extents[0], sizes[0], 1):
        for columns in padded(extents[1], sizes[1], 1):
            with b.loop(0, rows.count, name="i") as i, b.loop(0, columns.count, name="j") as j:
                row = b.add(b.mul(i.index, rows.size), rows.start)
                column = b.add(b.mul(j.index, columns.size), columns.start)
                at = b.add(b.mul(row, outer_stride), b.mul(column, inner_stride))
                address = b.gep(element, function.arguments[1].value, at)
                vector = _load(b, copy, address, (rows.size, columns.size), (outer_stride, inner_stride))
                out = TensorType.dense(element, (rows.size, columns.size))
                place = b.gep(element, function.arguments[0].value, b.add(b.mul(row, to_stride), column))
                b.tensor_store(place, b.typeinfo(vector, out, "rows"), (0, max(to_stride, 1)))
    b.ret()
    return function


def _load(b: TensorBuilder, copy: Copy, address: Value, size: tuple[int, int], strides: tuple[int, int]) -> Value:
    """A tile of the source as a row-major flattened vector."""
    element = copy.source.element
    if strides[1] == 1 or size[1] == 1:
        type_ = TensorType.dense(element, size)
        return b.tovector(b.tensor_load(address, type_, (0, max(strides[0], 1)), "x"), type_, "x.rows")
    type_ = TensorType(element, (size[1], size[0]), (1, 0), (0, 0))
    token = b.tensor_load(address, type_, (0, strides[1]), "x")
    return b.transpose(token, (0, 1), VectorType(size[0] * size[1], element), "x.rows")
