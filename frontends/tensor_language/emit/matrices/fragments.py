"""Cooperative matrices as fragments of a grid's products, as defined in `tlx.target.grid_unit`.

A matrix consists of blocks of 8 lines. Lane l of the warp holds, of line l / 4 of each block, the adjacent elements
c (l mod 4), ..., c (l mod 4) + c - 1:

    matrix_acc   lines are rows, c = 2
    matrix_a     lines are rows, c = 4 / (bytes of an element), but 1 of doubles
    matrix_b     lines are columns, the same c

    block of 16-bit elements of A      K 0  1   2  3   4  5   6  7
                               row 0   lane 0 lane 1 lane 2 lane 3
                               row 1   lane 4 lane 5 lane 6 lane 7

Components are those of the blocks, column by column of blocks. Sums have the same places as 16-bit elements of A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tlx.frontends.tensor_language.emit.arithmetic.registers import gathered
from tlx.frontends.tensor_language.emit.arithmetic.scalars import from_memory
from tlx.frontends.tensor_language.emit.emitter import Emitter, Parts, memory_type, tensor_element
from tlx.frontends.tensor_language.types import F32, CoopMatrixType, ScalarType
from tlx.ir.types import HALF, I16, I32, I64, IntType, Type, bits_of
from tlx.ir.values import Value, const_int
from tlx.target import thread_calls

if TYPE_CHECKING:
    from tlx.target.grid_unit import FragmentProduct

_LINES: Final = 8
_LANES_OF_LINE: Final = 4
_WARP: Final = _LINES * _LANES_OF_LINE
_REGISTER_BITS: Final = 32
LINE_BYTES: Final = 16
"""Bytes of a line of memory that is loaded as a part of a fragment, and its alignment."""
_SUMS: Final = 2


@dataclass(frozen=True, slots=True)
class FragmentLayout:
    """How the entries of a matrix are distributed over the lanes of a warp."""

    type: CoopMatrixType

    @property
    def adjacent(self) -> int:
        """Elements of a line of a block that a lane holds."""
        bits = self.type.component.bits
        return _SUMS if self.type.use == "matrix_acc" else max(1, _REGISTER_BITS // bits)

    @property
    def lines_are_columns(self) -> bool:
        """Whether the lines of blocks are columns of the matrix."""
        return self.type.use == "matrix_b"

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of a block."""
        length = _LANES_OF_LINE * self.adjacent
        return (length, _LINES) if self.lines_are_columns else (_LINES, length)

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks of a column of blocks, and columns of blocks."""
        rows, columns = self.block
        return self.type.rows // rows, self.type.columns // columns

    @property
    def components(self) -> int:
        """Length of a lane's vector."""
        return self.type.rows * self.type.columns // _WARP

    def number(self, row: int, column: int) -> int:
        """The first component that belongs to a block."""
        return (column * self.blocks[0] + row) * self.adjacent

    def place(self, component: int) -> tuple[int, int]:
        """Row and column of a component of lane 0."""
        block, element = divmod(component, self.adjacent)
        column, row = divmod(block, self.blocks[0])
        rows, columns = self.block
        row, column = row * rows, column * columns
        return (row + element, column) if self.lines_are_columns else (row, column + element)

    def from_lane_0(self, e: Emitter, lane: Value) -> tuple[Value, Value]:
        """Rows and columns from the place of a component of lane 0 to that of a lane (i64), i64."""
        line = e.b.binary("lshr", lane, const_int(I64, 2))
        element = e.b.mul(e.b.binary("and", lane, const_int(I64, 3)), self.adjacent)
        return (element, line) if self.lines_are_columns else (line, element)

    def is_aligned_with(self, other: FragmentLayout) -> bool:
        """Whether each lane holds the same entries of both."""
        return self.block == other.block and self.adjacent == other.adjacent


class Fragments(NamedTuple):
    """An operand of a product of fragments: its layout, and a register for each block."""

    layout: FragmentLayout
    registers: Sequence[Value]


def fits(product: FragmentProduct, type_: CoopMatrixType) -> bool:
    """Whether a matrix consists of operands, or sums, of a product of fragments."""
    element = _spelled(type_.component)
    match type_.use:
        case "matrix_a":
            return element == product.lhs and _tiles(type_, product.rows, product.depth)
        case "matrix_b":
            return element == product.rhs and _tiles(type_, product.depth, product.columns)
        case _:
            sums = F32 if type_.component.is_narrow_float else type_.component
            return _spelled(sums)[0] == product.accumulator and _tiles(type_, product.rows, product.columns)


def _spelled(type_: ScalarType) -> tuple[str, str]:
    """An element type and its signs, as products name them."""
    return str(tensor_element(type_)), "s" if type_.kind == "int" else "f"


def _tiles(type_: CoopMatrixType, rows: int, columns: int) -> bool:
    return type_.component.kind != "complex" and type_.rows % rows == 0 and type_.columns % columns == 0


def product_of(e: Emitter, a: CoopMatrixType, b: CoopMatrixType, c: CoopMatrixType) -> FragmentProduct | None:
    """The product of fragments that computes `A B + C`."""
    assert e.item is not None
    return next((p for p in e.item.products if all(fits(p, type_) for type_ in (a, b, c))), None)


def multiplied(e: Emitter, product: FragmentProduct, left: Fragments, right: Fragments, start: Value) -> Value:
    """`A B + C`.

    Args:
        e: The emitter.
        product: The product of fragments.
        left: A.
        right: B.
        start: The components of C.

    Returns:
        The components of the sums.
    """
    (a, of_a), (b, of_b) = left, right
    c = FragmentLayout(CoopMatrixType(F32, a.type.rows, b.type.columns, "matrix_acc"))
    sums: list[Value] = [e.b.extract_element(start, number) for number in range(c.components)]
    down, across = product.rows // _LINES, product.columns // _LINES
    chunks = product.depth // a.block[1]
    for k in range(a.blocks[1] // chunks):
        of_k = range(k * chunks, (k + 1) * chunks)
        for i in range(a.type.rows // product.rows):
            rows = range(i * down, (i + 1) * down)
            lhs = [of_a[a.number(row, chunk) // a.adjacent] for chunk in of_k for row in rows]
            for j in range(b.type.columns // product.columns):
                columns = range(j * across, (j + 1) * across)
                rhs = [of_b[b.number(chunk, column) // b.adjacent] for column in columns for chunk in of_k]
                numbers = [c.number(row, column) + n for column in columns for row in rows for n in range(_SUMS)]
                acc = thread_calls.multiply(e.b, product, [sums[n] for n in numbers], lhs, rhs)
                for number, value in zip(numbers, acc, strict=True):
                    sums[number] = value
    return gathered(e, sums)


def registers_of(e: Emitter, components: Value, layout: FragmentLayout) -> list[Value]:
    """A register for each block."""
    scalars: list[Value] = [e.b.extract_element(components, number) for number in range(layout.components)]
    count, component = layout.adjacent, layout.type.component
    if count == 1:
        return scalars
    return [_packed(e, scalars[k : k + count], component) for k in range(0, len(scalars), count)]


def _packed(e: Emitter, scalars: Sequence[Value], type_: ScalarType) -> Value:
    """Some elements, held in the register type, as the bits of an i32."""
    bits, result = bits_of(memory_type(type_)), const_int(I32, 0)
    packed: Value = result
    for number, scalar in enumerate(scalars):
        element = e.b.cast("zext", _bits(e, scalar, type_), I32)
        packed = e.b.binary("or", e.b.binary("shl", element, const_int(I32, bits * number)), packed)
    return packed


def _bits(e: Emitter, scalar: Value, type_: ScalarType) -> Value:
    """The bits of an element that the narrow type holds exactly."""
    if not type_.is_narrow_float:
        return scalar
    if memory_type(type_) == HALF:
        return e.b.cast("bitcast", e.b.cast("fptrunc", scalar, HALF), I16)
    bits = e.b.cast("bitcast", scalar, I32)
    return e.b.cast("trunc", e.b.binary("lshr", bits, const_int(I32, 16)), I16)


def loads_lines(layout: FragmentLayout, *, by_rows: bool) -> bool:
    """Whether blocks of a matrix are matrices of 8 lines x 16 bytes of memory, whose lines are its columns, or rows."""
    along_lines = by_rows != layout.lines_are_columns
    size = layout.type.component.size
    return layout.adjacent * size * _LANES_OF_LINE == LINE_BYTES and (along_lines or size == LINE_BYTES // _LINES)


def load_registers(e: Emitter, layout: FragmentLayout, address: Value, pitch: Value, *, by_rows: bool) -> Parts:
    """A matrix from shared memory: a register for each block.

    Args:
        e: The emitter.
        layout: Its layout.
        address: Its first entry, aligned to 16 bytes.
        pitch: Elements from a line to the next.
        by_rows: Whether lines of memory are rows.
    """
    assert e.item is not None
    b, type_ = e.b, layout.type
    element = memory_type(type_.component)
    lane = b.cast("zext", e.item.lane, I64)
    line, matrix = b.binary("and", lane, const_int(I64, _LINES - 1)), b.binary("lshr", lane, const_int(I64, 3))
    (down, across), (rows, columns) = layout.blocks, layout.block
    transposed = by_rows == layout.lines_are_columns
    registers: dict[int, Value] = {}
    for first in range(0, down * across, thread_calls.MATRICES):
        if layout.lines_are_columns or down % 2 or across % 2:  # four that follow each other
            number = b.umin(b.add(matrix, first), down * across - 1)
            row, column = b.binary("urem", number, const_int(I64, down)), b.binary("udiv", number, const_int(I64, down))
            numbers = range(first, min(first + thread_calls.MATRICES, down * across))
        else:  # two by two, as products take them
            corner_column, corner_row = (2 * k for k in divmod(first // thread_calls.MATRICES, down // 2))
            row = b.add(b.binary("and", matrix, const_int(I64, 1)), corner_row)
            column = b.add(b.binary("lshr", matrix, const_int(I64, 1)), corner_column)
            numbers = [(corner_column + k // 2) * down + corner_row + k % 2 for k in range(thread_calls.MATRICES)]
        row, column = b.mul(row, rows), b.mul(column, columns)
        along, lines = (column, row) if by_rows else (row, column)
        at = b.gep(element, address, b.add(along, b.mul(b.add(lines, line), pitch)))
        registers |= zip(numbers, thread_calls.load_fragments(b, at, transposed=transposed), strict=False)
    return tuple(registers[number] for number in range(down * across))


def from_registers(e: Emitter, layout: FragmentLayout, registers: Sequence[Value]) -> Value:
    """The components of a matrix, given a register for each block."""
    count, component = layout.adjacent, layout.type.component
    return gathered(e, [scalar for register in registers for scalar in _unpacked(e, register, count, component)])


def _unpacked(e: Emitter, register: Value, count: int, type_: ScalarType) -> list[Value]:
    """The elements that are the bits of an i32, in the register type."""
    element, bits = memory_type(type_), _REGISTER_BITS // count
    scalars: list[Value] = []
    for number in range(count):
        shifted = e.b.binary("lshr", register, const_int(I32, bits * number))
        scalars.append(from_memory(e, _as(e, e.b.cast("trunc", shifted, IntType(bits)), element), type_))
    return scalars


def _as(e: Emitter, value: Value, type_: Type) -> Value:
    return value if value.type == type_ else e.b.cast("bitcast", value, type_)
