"""Loading and storing tiles: whole registers, partial ones at padded edges, and transposed by 16-byte lanes.

A tile is transposed as it is loaded, 16 bytes of each row at a time.

16 rows of 16 floats, registers of 16 lanes; four loads fill a register, and four registers become four columns:

    row 0  [ a0 a1 a2 a3 ] .. |  row 4  [ e0 e1 e2 e3 ] ..  |  row 8 ..  |  row 12 ..      one 16-byte lane each
    row 1  [ b0 b1 b2 b3 ] .. |  row 5
    row 2  [ c0 c1 c2 c3 ] .. |  ...
    row 3  [ d0 d1 d2 d3 ] .. |
                    transposed in each lane      a0 b0 c0 d0 | e0 f0 g0 h0 | ...      column 0

Inserting a lane from memory uses either vector port, a 64-byte shuffle only one: 48 inserts and 32 shuffles take 40
cycles, where 64 shuffles of whole rows take 64 and need all registers. Four rows are read to their end before the next
four: rows that are whole pages apart share a set of L1, which has fewer ways than there are rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder
from tlx.ir.module import nontemporal_metadata
from tlx.ir.types import I1, I8, Type, VectorType, bits_of, bytes_of, next_power_of_two, vector_of
from tlx.ir.values import ConstInt, Value, const_vector, zero
from tlx.lower.legalize.registers import (
    Registers,
    interleaved_in_lanes,
    lane_elements,
    opaque_register,
    register_element,
    register_widths,
    resized,
    with_lanes,
    zero_padded,
)
from tlx.target.instructions.compilers import LlvmBackend
from tlx.target.target import Target


def load_tile(
    b: Builder, target: Target, pointer: Value, type_: TensorType, pitches: tuple[int, ...] | None, lanes: int
) -> Registers:
    """Load a tile, rows and columns in memory order; padding is not read and becomes zero.

    Of more than two dimensions, the outermost is the rows; the others, which are dense, are the columns.
    """
    rows, cols = type_.shape[0], type_.count // type_.shape[0]
    data_rows, data_cols = _data(type_)
    stride = type_.strides(pitches)[0]
    stored = in_memory(type_.element)
    regs: list[tuple[Value, ...]] = []
    for row in range(rows):
        line: list[Value] = []
        for j, width in enumerate(register_widths(cols, lanes)):
            present = min(width, max(0, data_cols - j * lanes)) if row < data_rows else 0
            address = b.gep(stored, pointer, row * stride + j * lanes) if present else pointer
            line.append(_from_memory(b, load_part(b, target, address, stored, width, present), type_.element))
        regs.append(tuple(line))
    return Registers(type_.element, rows, cols, lanes, tuple(regs))


def store_tile(
    b: Builder,
    target: Target,
    pointer: Value,
    tile: Registers,
    type_: TensorType,
    pitches: tuple[int, ...] | None,
    *,
    nontemporal: bool = False,
) -> None:
    """Store a tile; padding is not written. Stores are non-temporal only if all registers are aligned to their size.

    There is no non-temporal store for a register whose size is not a power of two.
    """
    data_rows, data_cols = _data(type_)
    stride = type_.strides(pitches)[0]
    stored = in_memory(type_.element)
    for row in range(data_rows):
        for j, register in enumerate(_to_memory(b, r, type_.element) for r in tile.regs[row]):
            present = min(_lanes_of(register), data_cols - j * tile.lanes)
            size = present * bytes_of(stored)
            if nontemporal and size & (size - 1) == 0:
                address = b.gep(stored, pointer, row * stride + j * tile.lanes)
                b.store(register, address, size, nontemporal_metadata(b.module))
            elif present > 0:
                store_part(b, target, b.gep(stored, pointer, row * stride + j * tile.lanes), register, present)


def in_memory(element: Type) -> Type:
    """The type of an element in memory: i1 is a byte."""
    return I8 if element == I1 else register_element(element)


def _from_memory(b: Builder, register: Value, element: Type) -> Value:
    return b.cast("trunc", register, VectorType(_lanes_of(register), I1)) if element == I1 else register


def _to_memory(b: Builder, register: Value, element: Type) -> Value:
    return b.cast("zext", register, VectorType(_lanes_of(register), I8)) if element == I1 else register


def load_part(b: Builder, target: Target, address: Value, element: Type, width: int, present: int) -> Value:
    """Load the first `present` of `width` elements; the others are zero.

    Masks are of powers of two of lanes, here and in `store_part`: LLVM 22 never ends when it splits masked loads and
    stores of other counts for SVE without optimisation.
    """
    type_ = vector_of(width, element)
    align = bits_of(element) // 8
    if present == 0:
        return zero(type_)
    masked = _is_masked(target, element, width, present)
    if present == width and not masked:
        return load_whole(b, target.backend, address, type_, align)
    if present == 1:
        return b.insert_element(zero(type_), b.load(element, address, align), 0)
    if masked:
        lanes = next_power_of_two(width)
        loaded = b.masked_load(vector_of(lanes, element), address, align, _mask(lanes, present))
        return b.shuffle(loaded, None, range(width))
    return zero_padded(b, load_whole(b, target.backend, address, vector_of(present, element), align), width)


def _is_masked(target: Target, element: Type, width: int, present: int) -> bool:
    """Whether to load or store the first `present` of `width` elements with a mask.

    LLVM accesses other numbers than powers of two in parts, in many instructions, which it takes long to select.
    """
    has_masks = bits_of(element) in target.instructions.masked_bits
    return bool(present & (present - 1)) and has_masks and (present < width or target.instructions.has_mask_registers)


def load_whole(b: Builder, backend: LlvmBackend, address: Value, type_: VectorType, align: int) -> Value:
    """Load a vector, in halves if LLVM would access what follows it, too."""
    if bytes_of(type_) not in backend.whole_register_bytes:
        return b.load(type_, address, align)
    count = type_.count // 2
    half = vector_of(count, type_.element)
    low, high = (b.load(half, b.gep(type_.element, address, first), align) for first in (0, count))
    return b.shuffle(low, high, range(type_.count))


def store_part(b: Builder, target: Target, address: Value, register: Value, present: int, align: int = 0) -> None:
    """Store the first `present` elements of a register, aligned as elements unless `align` says otherwise."""
    width = _lanes_of(register)
    element = _element_of(register)
    align = align or bits_of(element) // 8
    if _is_masked(target, element, width, present):
        lanes = next_power_of_two(width)
        b.masked_store(resized(b, register, lanes), address, align, _mask(lanes, present))
        return
    if present == 1 < width:
        b.store(b.extract_element(register, 0), address, align)
        return
    parts = 2 if present * bytes_of(element) in target.backend.whole_register_bytes else 1
    size = present // parts
    for first in range(0, present, size):
        part = b.shuffle(register, None, range(first, first + size))
        b.store(part, b.gep(element, address, first) if first else address, align)


def _data(type_: TensorType) -> tuple[int, int]:
    """Rows and columns that hold data; dimensions after the second count as columns."""
    data = type_.data_shape
    inner = type_.count // type_.shape[0] // type_.shape[1] if type_.rank > 1 else 1
    return data[0], (data[1] * inner if type_.rank > 1 else 1)


def _mask(width: int, present: int) -> Value:
    return const_vector([ConstInt(I1, int(i < present)) for i in range(width)])


def _lanes_of(register: Value) -> int:
    assert isinstance(register.type, VectorType)
    return register.type.count


def _element_of(register: Value) -> Type:
    assert isinstance(register.type, VectorType)
    return register.type.element


_LOADED_SHARE: Final = 2
"""One register in this many is loaded before the first ones are transposed."""
_PLAIN_LANES: Final = 2
"""Lanes that are joined without an opaque register: LLVM would join halves of more by a shuffle."""


def load_transposed(
    b: Builder, target: Target, pointer: Value, type_: TensorType, pitches: tuple[int, ...] | None, lanes: int
) -> Registers | None:
    """Load a tile's columns as the rows of registers; None if it does not fill 16-byte lanes.

    RxC -> CxR

    Args:
        b: Where to emit.
        target: The machine.
        pointer: The tile's first element.
        type_: Its type, R rows in memory order.
        pitches: Its pitches.
        lanes: Elements of a register.
    """
    element = type_.element
    rows, cols = type_.shape[0], type_.count // type_.shape[0]
    per_lane, block = lane_elements(element), min(rows, lanes)
    fills = rows % block == cols % per_lane == 0 and 1 < per_lane < block and _is_power_of_two(block)
    if type_.is_padded or in_memory(element) != register_element(element) or not fills:
        return None
    stride = type_.strides(pitches)[0]
    lane = VectorType(per_lane, register_element(element))

    def load(row: int, column: int) -> Value:
        return b.load(lane, b.gep(lane.element, pointer, row * stride + column), bits_of(element) // 8)

    def join(first: int, column: int) -> Value:
        return _joined(b, target, [load(row, column) for row in range(first, first - first % block + block, per_lane)])

    lines: list[list[Value]] = [[] for _ in range(cols)]
    at_once = max(1, target.registers // _LOADED_SHARE // per_lane) * per_lane
    for start, part in product(range(0, rows, block), range(0, cols, at_once)):
        columns = range(part, min(part + at_once, cols), per_lane)
        registers = [[join(start + i, column) for column in columns] for i in range(per_lane)]
        for column, joined in zip(columns, zip(*registers, strict=True), strict=True):
            for i, register in enumerate(interleaved_in_lanes(b, list(joined), per_lane)):
                lines[column + i].append(register)
    regs = tuple(tuple(line) for line in lines)
    return with_lanes(b, Registers(element, cols, rows, block, regs), lanes)


def transposed_lanes(b: Builder, tile: Registers) -> Registers | None:
    """A tile's columns as rows, in 16-byte registers to be stored; None if it does not fill those.

    RxC -> CxR, with fewer rows than lanes: a lane of a 64-byte register is stored without a shuffle.
    """
    per_lane, whole = lane_elements(tile.element), tile.cols % tile.lanes == 0 or tile.cols < tile.lanes
    fills = tile.rows % per_lane == tile.cols % per_lane == 0 and 1 < per_lane < tile.lanes and whole
    if not fills or tile.rows >= tile.lanes or not all(map(_is_power_of_two, (tile.lanes, min(tile.lanes, tile.cols)))):
        return None
    lines: list[list[Value]] = [[] for _ in range(tile.cols)]
    for start, index in product(range(0, tile.rows, per_lane), range(tile.row_registers)):
        rows = [tile.regs[start + i][index] for i in range(per_lane)]
        for i, register in enumerate(interleaved_in_lanes(b, rows, per_lane)):
            assert isinstance(register.type, VectorType)
            for first in range(0, register.type.count, per_lane):
                lane = b.shuffle(register, None, range(first, first + per_lane))
                lines[index * tile.lanes + first + i].append(lane)
    return Registers(tile.element, tile.cols, tile.rows, per_lane, tuple(tuple(line) for line in lines))


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _joined(b: Builder, target: Target, lanes: Sequence[Value]) -> Value:
    """A register of 16-byte lanes; each one after the second is inserted into an opaque register."""
    assert isinstance(lanes[0].type, VectorType)
    per_lane = lanes[0].type.count
    width = per_lane * len(lanes)
    register = resized(b, lanes[0], width)
    for index, lane in enumerate(lanes[1:], 1):
        if index >= _PLAIN_LANES:
            register = opaque_register(b, register, target)
        inserted = range(index * per_lane, index * per_lane + per_lane)
        mask = [width + i - inserted.start if i in inserted else i for i in range(width)]
        register = b.shuffle(register, resized(b, lane, width), mask)
    return register
