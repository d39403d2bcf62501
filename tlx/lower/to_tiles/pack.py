"""Copying operands into panels that the inner loop reads in order.

B (row-major, K x N), width 2        panel of nr = 4 columns, [K/2][nr][2]

    b00 b01 b02 b03 ...                  b00 b10 b01 b11 b02 b12 b03 b13
    b10 b11 b12 b13 ...                  b20 b30 b21 b31 ...
    b20 ...

A (M x K) becomes rows of K rounded up to the step of the inner loop; what is added is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, Type, VectorType, bits_of
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.tiles import column_tile, convert, flip_sign_bit, tile
from tlx.lower.to_tiles.view import View
from tlx.target import Sign
from tlx.types import TensorType

_CHUNK_BYTES: Final = 64
_AT_ONCE: Final = 8
"""Registers of A that are read before the first of them is stored."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How an operand is packed.

    Attributes:
        view: The operand in memory.
        element: Element type of the panels.
        sign: How narrow integers are widened.
        width: VNNI factor.
        step: The inner loop's step along K; panels are zero up to a multiple of it.
        flip: Whether bytes are xored with 0x80.
        lanes: Elements that are transposed together.
        by_columns: Whether panels of A are [k][rows], as a column-major A lies, instead of rows.
    """

    view: View
    element: Type
    sign: Sign
    width: int
    step: int
    flip: bool
    lanes: int
    by_columns: bool = False

    def depth(self, k: int) -> int:
        """Positions along K that a panel has for `k` of the operand."""
        return -(-k // self.step) * self.step

    def is_run(self, k: int) -> bool:
        """Whether rows of `k` elements have nothing between them, neither in memory nor in panels of A."""
        return self.view.is_row_major and not self.by_columns and self.view.row_stride == k == self.depth(k)

    def finish(self, b: TensorBuilder, vector: Value) -> Value:
        """Convert and flip a tile's elements."""
        vector = convert(b, vector, self.element, self.sign)
        return flip_sign_bit(b, vector) if self.flip else vector


def pack_b_panel(b: TensorBuilder, packing: Packing, source: Value, panel: Value, columns: Range, k: int) -> None:
    """Pack `k` rows of `columns.data` columns of B into one panel.

    Args:
        b: Where to emit.
        packing: How.
        source: Address of the first element.
        panel: Address of the panel.
        columns: Size and padding of the panel.
        k: Rows, at least 1.
    """
    if packing.view.group > 1:
        _copy_b_groups(b, packing, source, panel, columns, k)
        return
    if packing.width == 1 and not packing.view.is_row_major:
        _pack_b_columns(b, packing, source, panel, columns, k)
        return
    group = packing.width if packing.view.is_row_major else max(packing.width, packing.lanes)
    full, rest = divmod(k, group)
    if full:
        with b.loop(0, full, name="k") as loop:
            _pack_b_group(b, packing, source, panel, columns, b.mul(loop.index, group), group, 0)
    if rest:
        size = -(-rest // packing.width) * packing.width
        _pack_b_group(b, packing, source, panel, columns, const_int(I64, full * group), size, size - rest)
    depth = packing.depth(k)
    done = full * group + (-(-rest // packing.width) * packing.width if rest else 0)
    if depth > done:
        _zero(b, packing.element, b.gep(packing.element, panel, done * columns.size), (depth - done) * columns.size)


def _copy_b_groups(b: TensorBuilder, packing: Packing, source: Value, panel: Value, columns: Range, k: int) -> None:
    """Pack `k` rows of B that lie interleaved as the panel has them."""
    view, width = packing.view, packing.width
    size = columns.size * width
    type_ = tile(view.element, 1, size, (0, columns.padding * width))
    with b.loop(0, k // width, name="k") as loop:
        at = b.mul(loop.index, width)
        token = b.tensor_load(b.gep(view.element, source, b.mul(at, view.row_stride)), type_, None, "b")
        vector = packing.finish(b, b.tovector(token, type_, "b.rows"))
        packed = b.typeinfo(vector, tile(packing.element, 1, size), "b.packed")
        b.tensor_store(b.gep(packing.element, panel, b.mul(at, columns.size)), packed)


def _pack_b_columns(b: TensorBuilder, packing: Packing, source: Value, panel: Value, columns: Range, k: int) -> None:
    """Pack `k` rows of a column-major B: as many columns at a time as are transposed together, from end to end.

    The machine follows so many columns by itself, and their tiles fit the registers.
    """
    view, lanes = packing.view, packing.lanes
    full, rest = divmod(k, lanes)
    for strip in padded(columns.data, lanes, lanes):
        with b.loop(0, strip.count, name="c") as loop:
            column = b.add(b.mul(loop.index, strip.size), strip.start)
            here = b.gep(view.element, source, b.mul(column, view.col_stride))
            there = b.gep(packing.element, panel, column)
            pads = strip.padding, columns.size
            if full:
                with b.loop(0, full, name="k") as steps:
                    _transpose_b(b, packing, (here, there), b.mul(steps.index, lanes), lanes, pads)
            if rest:
                _transpose_b(b, packing, (here, there), const_int(I64, full * lanes), rest, pads)


def _transpose_b(
    b: TensorBuilder, packing: Packing, places: tuple[Value, Value], k: Value, size: int, pads: tuple[int, int]
) -> None:
    """Transpose `size` rows of a strip of columns; `pads` are the columns that are not there, and the panel's pitch."""
    view, lanes = packing.view, packing.lanes
    (source, panel), (missing, pitch) = places, pads
    type_ = column_tile(view.element, size, lanes, (0, missing))
    token = b.tensor_load(b.gep(view.element, source, b.mul(k, view.row_stride)), type_, (0, view.col_stride), "b")
    vector = packing.finish(b, b.transpose(token, (0, 1), VectorType(size * lanes, view.element), "b.rows"))
    packed = b.typeinfo(vector, tile(packing.element, size, lanes), "b.packed")
    b.tensor_store(b.gep(packing.element, panel, b.mul(k, pitch)), packed, (0, pitch))


def _pack_b_group(
    b: TensorBuilder, packing: Packing, source: Value, panel: Value, columns: Range, k: Value, size: int, padding: int
) -> None:
    """Pack `size` rows of B, the last `padding` of which are not there."""
    view = packing.view
    pads = (padding, columns.padding)
    address = b.gep(view.element, source, b.mul(k, view.row_stride))
    if view.is_row_major:
        type_ = tile(view.element, size, columns.size, pads)
        token = b.tensor_load(address, type_, (0, max(view.row_stride, 1)), "b")
    else:
        type_ = column_tile(view.element, size, columns.size, pads)
        token = b.tensor_load(address, type_, (0, view.col_stride), "b")
    flat = VectorType(size * columns.size, view.element)
    if packing.width > 1:
        vector: Value = b.reshape_block(token, (0,), (packing.width,), flat, "b.vnni")
    else:
        vector = b.tovector(token, type_, "b.rows")
    vector = packing.finish(b, vector)
    rows = size // packing.width
    packed = b.typeinfo(vector, tile(packing.element, rows, columns.size * packing.width), "b.packed")
    b.tensor_store(b.gep(packing.element, panel, b.mul(k, columns.size)), packed)


def pack_a_tile(b: TensorBuilder, packing: Packing, source: Value, panel: Value, rows: Range, k: int) -> None:
    """Pack one row tile of A, `k` columns, into rows of `packing.depth(k)` elements, or column by column."""
    if packing.by_columns:
        _copy_a_columns(b, packing, source, panel, rows, k)
        return
    depth = packing.depth(k)
    if packing.view.is_row_major:
        run = rows.data if packing.is_run(k) else 1
        with b.loop(0, rows.data // run, name="r") as loop:
            from_row = b.gep(packing.view.element, source, b.mul(loop.index, packing.view.row_stride))
            _pack_a_run(b, packing, from_row, b.gep(packing.element, panel, b.mul(loop.index, depth)), k * run)
    else:
        _pack_a_columns(b, packing, source, panel, rows, k)
    if rows.padding:
        _zero(b, packing.element, b.gep(packing.element, panel, rows.data * depth), rows.padding * depth)


def _pack_a_run(b: TensorBuilder, packing: Packing, source: Value, panel: Value, count: int) -> None:
    """Pack elements of A that lie side by side, and zeros up to the inner loop's step.

    Some registers at a time, then one at a time, the last one from where it ends: 55 of 16 are 0..47 and 39..54.
    """
    view, size = packing.view, packing.depth(count)
    widest = max(bits_of(view.element), bits_of(packing.element)) // 8
    register = min(_CHUNK_BYTES // widest, packing.lanes * packing.step)
    full = count // register

    def pack(start: Value, type_: TensorType) -> None:
        token = b.tensor_load(b.gep(view.element, source, start), type_, None, "a")
        vector = packing.finish(b, b.tovector(token, type_, "a.run"))
        packed = b.typeinfo(vector, TensorType.dense(packing.element, type_.shape), "a.packed")
        b.tensor_store(b.gep(packing.element, panel, start), packed)

    if full >= _AT_ONCE:
        with b.loop(0, full // _AT_ONCE, name="k") as loop:
            pack(b.mul(loop.index, _AT_ONCE * register), tile(view.element, _AT_ONCE, register))
    if full % _AT_ONCE:
        done = full // _AT_ONCE * _AT_ONCE * register
        pack(const_int(I64, done), tile(view.element, full % _AT_ONCE, register))
    if full * register < count == size > register:
        pack(const_int(I64, count - register), tile(view.element, 1, register))
    elif full * register < count:
        pack(const_int(I64, full * register), tile(view.element, 1, size - full * register, (0, size - count)))
    elif count < size:
        _zero(b, packing.element, b.gep(packing.element, panel, count), size - count)


def _copy_a_columns(b: TensorBuilder, packing: Packing, source: Value, panel: Value, rows: Range, k: int) -> None:
    """The columns of a row tile of a column-major A, one behind the other."""
    view = packing.view
    type_ = tile(view.element, 1, rows.size, (0, rows.padding))
    with b.loop(0, k, name="k") as loop:
        token = b.tensor_load(b.gep(view.element, source, b.mul(loop.index, view.col_stride)), type_, None, "a")
        vector = packing.finish(b, b.tovector(token, type_, "a.column"))
        packed = b.typeinfo(vector, tile(packing.element, 1, rows.size), "a.packed")
        b.tensor_store(b.gep(packing.element, panel, b.mul(loop.index, rows.size)), packed)


def _pack_a_columns(b: TensorBuilder, packing: Packing, source: Value, panel: Value, rows: Range, k: int) -> None:
    """A is column-major: transpose tiles of `rows.data` x `lanes`."""
    chunk = packing.lanes
    full, rest = divmod(k, chunk)
    if full:
        with b.loop(0, full, name="k") as loop:
            _transpose_a(b, packing, source, panel, rows, b.mul(loop.index, chunk), (chunk, 0, k))
    size = packing.depth(k) - full * chunk
    if rest:
        _transpose_a(b, packing, source, panel, rows, const_int(I64, full * chunk), (size, size - rest, k))
    elif size:
        with b.loop(0, rows.data, name="r") as loop:
            at = b.add(b.mul(loop.index, packing.depth(k)), full * chunk)
            _zero(b, packing.element, b.gep(packing.element, panel, at), size)


def _transpose_a(
    b: TensorBuilder, packing: Packing, source: Value, panel: Value, rows: Range, k: Value, part: tuple[int, int, int]
) -> None:
    """Transpose `size` columns of A from column `k` on, of which `padding` are not there."""
    size, padding, depth_of = part
    view = packing.view
    type_ = column_tile(view.element, rows.data, size, (0, padding))
    token = b.tensor_load(b.gep(view.element, source, b.mul(k, view.col_stride)), type_, (0, view.col_stride), "a")
    flat = VectorType(rows.data * size, view.element)
    vector = packing.finish(b, b.transpose(token, (0, 1), flat, "a.rows"))
    packed = b.typeinfo(vector, tile(packing.element, rows.data, size), "a.packed")
    b.tensor_store(b.gep(packing.element, panel, k), packed, (0, packing.depth(depth_of)))


def _zero(b: TensorBuilder, element: Type, pointer: Value, count: int) -> None:
    """Write zeros, in tiles of at most a cache line."""
    chunk = min(count, _CHUNK_BYTES * 8 // bits_of(element))
    full, rest = divmod(count, chunk)
    with b.loop(0, full, name="z") as loop:
        _zero_tile(b, element, b.gep(element, pointer, b.mul(loop.index, chunk)), chunk)
    if rest:
        _zero_tile(b, element, b.gep(element, pointer, full * chunk), rest)


def _zero_tile(b: TensorBuilder, element: Type, pointer: Value, count: int) -> None:
    zeros = b.typeinfo(zero(VectorType(count, element)), tile(element, 1, count), "zeros")
    b.tensor_store(pointer, zeros)


def load_vnni(b: TensorBuilder, element: Type, address: Value, k: int, n: int, width: int) -> Value:
    """A token of the `k` x `n` matrix that a VNNI panel holds at `address`.

    Rewrite:
        load <k/width, n, width>  ->  reshape.permute <0, 2, 1> to <k, n>  ->  typeinfo
    """
    packed = b.tensor_load(address, TensorType.dense(element, (k // width, n, width)), None, "b.vnni")
    flat = b.reshape_permute(packed, (0, 2, 1), (k, n), VectorType(k * n, element), "b.flat")
    return b.typeinfo(flat, tile(element, k, n), "b")
