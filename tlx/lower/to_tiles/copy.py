"""The kernel of a 2-D copy, straight or transposing, in tiles; a large straight one is written past the caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.metadata import nontemporal
from tlx.ir.module import Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, VectorType, bits_of, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.problem import Copy
from tlx.lower.to_tiles.stream import Span, aligned_spans, boundary_of, plain_spans, to_boundary
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
    outer, inner = (to.rows, to.cols) if to.is_row_major else (to.cols, to.rows)
    to_stride = to.row_stride if to.is_row_major else to.col_stride
    across, along = source.row_stride, source.col_stride
    strides = (across, along) if to.is_row_major else (along, across)
    straight = strides[1] == 1 or inner == 1
    boundary = boundary_of(copy, target) if straight else 0
    if boundary and to_stride == strides[0] == inner:
        outer, inner, strides = 1, outer * inner, (0, 1)
    height, width = (1, lanes * _ROW_VECTORS) if straight else (min(lanes, 16), min(lanes, 16))
    spans = aligned_spans(inner, width, 1, boundary) if boundary else plain_spans(inner, width, 1)
    pointers = function.arguments[0].value, function.arguments[1].value
    tiles = _Tiles(b, copy, pointers, to_stride, strides, boundary)
    for rows in padded(outer, height, 1):
        for span in spans:
            tiles.emit(rows, span)
    if boundary:
        b.fence()
    b.ret()
    return function


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Emits the loops over tiles of one size.

    Attributes:
        b: Where.
        copy: What is copied.
        pointers: The destination, the source.
        to_stride: Elements from row to row of the destination.
        strides: Elements from row to row of the source, and from column to column.
        boundary: Elements that stores past the caches are aligned to; 0 where there are none.
    """

    b: TensorBuilder
    copy: Copy
    pointers: tuple[Value, Value]
    to_stride: int
    strides: tuple[int, int]
    boundary: int

    def emit(self, rows: Range, span: Span) -> None:
        b, columns = self.b, span.columns
        with b.loop(0, rows.count, name="i") as i:
            start = self._start(span, rows, i.index)
            with b.loop(0, columns.count, name="j") as j:
                row = b.add(b.mul(i.index, rows.size), rows.start)
                column = b.add(b.mul(j.index, columns.size), start)
                self._tile(row, column, (rows.size, columns.size), nontemporal(b.module) if span.past_caches else "")

    def _start(self, span: Span, rows: Range, index: Value) -> Value:
        """The first column of a row's tiles."""
        if not span.past_caches:
            return const_int(I64, span.columns.start)
        b, element = self.b, self.copy.source.element
        row = b.add(b.mul(index, rows.size), rows.start)
        first = b.gep(element, self.pointers[0], b.mul(row, self.to_stride))
        return to_boundary(b, first, bytes_of(element), self.boundary)

    def _tile(self, row: Value, column: Value, size: tuple[int, int], mark: str) -> None:
        b, element = self.b, self.copy.source.element
        at = b.add(b.mul(row, self.strides[0]), b.mul(column, self.strides[1]))
        vector = self._loaded(b.gep(element, self.pointers[1], at), size)
        place = b.gep(element, self.pointers[0], b.add(b.mul(row, self.to_stride), column))
        out = b.typeinfo(vector, TensorType.dense(element, size), "rows")
        b.tensor_store(place, out, (0, max(self.to_stride, 1)), metadata=mark)

    def _loaded(self, address: Value, size: tuple[int, int]) -> Value:
        """A tile of the source as a row-major flattened vector."""
        b, element = self.b, self.copy.source.element
        if self.strides[1] == 1 or size[1] == 1:
            type_ = TensorType.dense(element, size)
            return b.tovector(b.tensor_load(address, type_, (0, max(self.strides[0], 1)), "x"), type_, "x.rows")
        type_ = TensorType(element, (size[1], size[0]), (1, 0), (0, 0))
        token = b.tensor_load(address, type_, (0, self.strides[1]), "x")
        return b.transpose(token, (0, 1), VectorType(size[0] * size[1], element), "x.rows")
