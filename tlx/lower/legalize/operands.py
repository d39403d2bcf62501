"""Operands of a tile product, asked for piece by piece, so that loads stand right before their use.

left:   scalar(r, k)            one element             word(r, g, v)           v neighbours along K as one integer
right:  vector(k, c)            register c of row k     words(g, c, v)          v rows, VNNI, as integers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tlx.ir.builder import Builder
from tlx.ir.types import IntType, Type, VectorType, bits_of
from tlx.ir.values import Aggregate, ConstInt, Value
from tlx.lower.legalize.memory import load_part
from tlx.lower.legalize.registers import Registers, storage, widths
from tlx.lower.legalize.shuffles import interleaved
from tlx.target import Target
from tlx.types import TensorType


class Left(Protocol):
    """The left operand: rows x K."""

    @property
    def element(self) -> Type:
        """Element type."""
        ...

    def scalar(self, b: Builder, row: int, k: int) -> Value:
        """Element (row, k), in its storage type."""
        ...

    def word(self, b: Builder, row: int, group: int, width: int) -> Value:
        """Elements (row, group * width ...) as one integer, lowest first."""
        ...


class Right(Protocol):
    """The right operand: K x columns."""

    @property
    def element(self) -> Type:
        """Element type."""
        ...

    def vector(self, b: Builder, k: int, chunk: int) -> Value:
        """Register `chunk` of row k."""
        ...

    def words(self, b: Builder, group: int, chunk: int, width: int) -> Value:
        """Rows group * width ... of register `chunk`'s columns, as integers that hold `width` elements each."""
        ...


@dataclass(eq=False, slots=True)
class LoadedLeft:
    """A left operand in memory."""

    pointer: Value
    type: TensorType
    pitches: tuple[int, ...] | None

    @property
    def element(self) -> Type:
        """Element type."""
        return self.type.element

    def address(self, b: Builder, row: int, k: int) -> Value:
        """Where element (row, k) is."""
        row_stride, k_stride = self.type.logical_strides(self.pitches)
        return b.gep(storage(self.element), self.pointer, row * row_stride + k * k_stride)

    def scalar(self, b: Builder, row: int, k: int) -> Value:
        """Element (row, k)."""
        kept = storage(self.element)
        return b.load(kept, self.address(b, row, k), bits_of(kept) // 8)

    def word(self, b: Builder, row: int, group: int, width: int) -> Value:
        """`width` neighbours, loaded as one integer."""
        size = bits_of(self.element)
        return b.load(IntType(size * width), self.address(b, row, group * width), size // 8)

    @property
    def has_words(self) -> bool:
        """Whether neighbours along K are neighbours in memory."""
        return self.type.logical_strides(self.pitches)[1] == 1


@dataclass(eq=False, slots=True)
class RegistersLeft:
    """A left operand in registers, or constant."""

    tile: Registers

    @property
    def element(self) -> Type:
        """Element type."""
        return self.tile.element

    def scalar(self, b: Builder, row: int, k: int) -> Value:
        """Element (row, k)."""
        return b.extract_element(self.tile.regs[row][k // self.tile.lanes], k % self.tile.lanes)

    def word(self, b: Builder, row: int, group: int, width: int) -> Value:
        """`width` neighbours of a register, as one integer."""
        start = group * width
        register = self.tile.regs[row][start // self.tile.lanes]
        first = start % self.tile.lanes
        bits = bits_of(self.element)
        if isinstance(register, Aggregate):
            return _constant_word(register, range(first, first + width), bits)
        part = b.shuffle(register, None, range(first, first + width))
        return b.cast("bitcast", part, IntType(bits * width))


def _constant_word(register: Aggregate, positions: range, bits: int) -> ConstInt:
    number = 0
    for shift, position in enumerate(positions):
        element = register.elements[position]
        assert isinstance(element, ConstInt)
        number |= (element.value & ((1 << bits) - 1)) << (shift * bits)
    total = bits * len(positions)
    return ConstInt(IntType(total), number - (1 << total) if number >> (total - 1) else number)


@dataclass(eq=False, slots=True)
class LoadedRight:
    """A right operand in memory, row-major."""

    target: Target
    pointer: Value
    type: TensorType
    pitches: tuple[int, ...] | None
    lanes: int

    @property
    def element(self) -> Type:
        """Element type."""
        return self.type.element

    def vector(self, b: Builder, k: int, chunk: int) -> Value:
        """Part of row k."""
        kept = storage(self.element)
        width = widths(self.type.shape[1], self.lanes)[chunk]
        present = max(0, min(width, self.type.data_shape[1] - chunk * self.lanes))
        offset = k * self.type.strides(self.pitches)[0] + chunk * self.lanes
        address = b.gep(kept, self.pointer, offset) if present else self.pointer
        return load_part(b, self.target, address, kept, width, present)

    def words(self, b: Builder, group: int, chunk: int, width: int) -> Value:
        """Rows loaded and interleaved."""
        return as_words(b, interleaved(b, [self.vector(b, group * width + j, chunk) for j in range(width)]), width)


@dataclass(eq=False, slots=True)
class VnniRight:
    """A right operand in a VNNI panel: [K/factor][columns][factor]."""

    pointer: Value
    element: Type
    columns: int
    factor: int
    lanes: int

    def address(self, b: Builder, group: int, chunk: int) -> Value:
        """Where a group of a register's columns is."""
        return b.gep(storage(self.element), self.pointer, (group * self.columns + chunk * self.lanes) * self.factor)

    def _group(self, b: Builder, group: int, chunk: int) -> Value:
        kept = storage(self.element)
        width = widths(self.columns, self.lanes)[chunk]
        return b.load(VectorType(width * self.factor, kept), self.address(b, group, chunk), bits_of(kept) // 8)

    def vector(self, b: Builder, k: int, chunk: int) -> Value:
        """Every `factor`-th element of a group."""
        group = self._group(b, k // self.factor, chunk)
        assert isinstance(group.type, VectorType)
        return b.shuffle(group, None, range(k % self.factor, group.type.count, self.factor))

    def words(self, b: Builder, group: int, chunk: int, width: int) -> Value:
        """A group as it lies."""
        if width == self.factor:
            return as_words(b, self._group(b, group, chunk), width)
        return as_words(b, interleaved(b, [self.vector(b, group * width + j, chunk) for j in range(width)]), width)


@dataclass(eq=False, slots=True)
class RegistersRight:
    """A right operand in registers, or constant."""

    tile: Registers

    @property
    def element(self) -> Type:
        """Element type."""
        return self.tile.element

    def vector(self, b: Builder, k: int, chunk: int) -> Value:
        """Register `chunk` of row k."""
        del b
        return self.tile.regs[k][chunk]

    def words(self, b: Builder, group: int, chunk: int, width: int) -> Value:
        """Rows interleaved; constants are folded."""
        rows = [self.tile.regs[group * width + j][chunk] for j in range(width)]
        constants = [r for r in rows if isinstance(r, Aggregate)]
        if len(constants) == width:
            return _constant_words(constants, bits_of(self.element))
        return as_words(b, interleaved(b, rows), width)


def _constant_words(rows: list[Aggregate], bits: int) -> Value:
    words: list[Value] = []
    for i in range(len(rows[0].elements)):
        column = Aggregate(VectorType(len(rows), rows[0].elements[0].type), tuple(r.elements[i] for r in rows), "<")
        words.append(_constant_word(column, range(len(rows)), bits))
    return Aggregate(VectorType(len(words), words[0].type), tuple(words), "<")


def as_words(b: Builder, register: Value, width: int) -> Value:
    """A register of elements as one of integers that hold `width` elements each."""
    type_ = register.type
    assert isinstance(type_, VectorType)
    return b.cast("bitcast", register, VectorType(type_.count // width, IntType(bits_of(type_.element) * width)))
