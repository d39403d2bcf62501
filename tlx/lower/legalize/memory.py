"""Loading and storing tiles: whole registers, and partial ones at padded edges."""

from __future__ import annotations

from tlx.ir.builder import Builder
from tlx.ir.metadata import nontemporal
from tlx.ir.types import I1, I8, Type, VectorType, bits_of, bytes_of
from tlx.ir.values import ConstInt, Value, const_vector, zero
from tlx.lower.legalize.registers import Registers, storage, widths
from tlx.lower.legalize.shuffles import filled
from tlx.target import Target
from tlx.types import TensorType


def load_tile(
    b: Builder, target: Target, pointer: Value, type_: TensorType, pitches: tuple[int, ...] | None, lanes: int
) -> Registers:
    """Load a tile, rows and columns in memory order; padding becomes zero and is not read.

    A tile of more than two dimensions is read as its outermost one by all others, which are dense.
    """
    rows, cols = type_.shape[0], type_.count // type_.shape[0]
    data_rows, data_cols = _data(type_)
    stride = type_.strides(pitches)[0]
    kept = in_memory(type_.element)
    regs: list[tuple[Value, ...]] = []
    for row in range(rows):
        line: list[Value] = []
        for j, width in enumerate(widths(cols, lanes)):
            present = min(width, max(0, data_cols - j * lanes)) if row < data_rows else 0
            address = b.gep(kept, pointer, row * stride + j * lanes) if present else pointer
            line.append(_from_memory(b, load_part(b, target, address, kept, width, present), type_.element))
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
    past_caches: bool = False,
) -> None:
    """Store a tile; padding is not written. Past the caches only where all registers are aligned to their size.

    A register whose size is no power of two has no instruction for that.
    """
    data_rows, data_cols = _data(type_)
    stride = type_.strides(pitches)[0]
    kept = in_memory(type_.element)
    for row in range(data_rows):
        for j, register in enumerate(_to_memory(b, r, type_.element) for r in tile.regs[row]):
            present = min(_lanes_of(register), data_cols - j * tile.lanes)
            size = present * bytes_of(kept)
            if past_caches and size & (size - 1) == 0:
                place = b.gep(kept, pointer, row * stride + j * tile.lanes)
                b.store(register, place, size, nontemporal(b.module))
            elif present > 0:
                store_part(b, target, b.gep(kept, pointer, row * stride + j * tile.lanes), register, present)


def in_memory(element: Type) -> Type:
    """The type that an element of a register has in memory: i1 is a byte."""
    return I8 if element == I1 else storage(element)


def _from_memory(b: Builder, register: Value, element: Type) -> Value:
    return b.cast("trunc", register, VectorType(_lanes_of(register), I1)) if element == I1 else register


def _to_memory(b: Builder, register: Value, element: Type) -> Value:
    return b.cast("zext", register, VectorType(_lanes_of(register), I8)) if element == I1 else register


def load_part(b: Builder, target: Target, address: Value, element: Type, width: int, present: int) -> Value:
    """Load the first `present` of `width` elements, the others are zero."""
    type_ = VectorType(width, element)
    align = bits_of(element) // 8
    if present == 0:
        return zero(type_)
    if present == width:
        return b.load(type_, address, align)
    if present == 1:
        return b.insert_element(zero(type_), b.load(element, address, align), 0)
    if present & (present - 1) and bits_of(element) in target.masked_bits:
        return b.masked_load(type_, address, align, _mask(width, present))
    part = b.load(VectorType(present, element), address, align)
    return filled(b, part, width)


def store_part(b: Builder, target: Target, address: Value, register: Value, present: int) -> None:
    """Store the first `present` elements of a register."""
    width = _lanes_of(register)
    element = _element_of(register)
    align = bits_of(element) // 8
    if present < width and present & (present - 1) and bits_of(element) in target.masked_bits:
        b.masked_store(register, address, align, _mask(width, present))
        return
    if present == 1 < width:
        b.store(b.extract_element(register, 0), address, align)
        return
    b.store(b.shuffle(register, None, range(present)), address, align)


def _data(type_: TensorType) -> tuple[int, int]:
    """Rows and columns that hold data; dimensions behind the second count as columns."""
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
