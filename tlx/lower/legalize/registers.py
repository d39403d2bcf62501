"""Tiles as lists of vector registers, and how registers are rearranged: interleaved, transposed, permuted.

    8x40 float, 16 lanes          regs[row] = [<16 x float>, <16 x float>, <8 x float>]

bfloat and half registers are vectors of i16. LLVM before 19 selects no code for vectors of bfloat; and on a machine
without half, LLVM may fold bit operations on a half into operations that call the library for each element.

A target's permutation of one register takes its indices from an opaque value:

    %order = call <64 x i8> asm "", "=v,0"(<64 x i8> <i8 0, i8 16, i8 32, i8 48, i8 1, ...>)
    %permuted = permute(<64 x i8> %register, <64 x i8> %order)

If the indices were constant, LLVM would turn the permutation into a shuffle and merge it with the shuffles that built
the register. On x86, four rows of 16 bytes would take 11 instructions (LLVM 22, -O2) instead of two inserts from
memory, one of half a register and the permutation; two rows of 32 bytes would take a permutation of two registers
instead of an insert from memory and a permutation of one.

    %gathered = permute(<16 x float> %x, <16 x float> %y, <16 x i32> <i32 1073741824, i32 1073741826, ...>)

LLVM 19 and later narrow 64 bytes of indices to 16, and extend them by an instruction on a multiply port. Permutations
ignore the upper bits of an index; setting one of them prevents the narrowing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, TypeVar

from tlx.ir.builder import Builder
from tlx.ir.instructions import Instruction
from tlx.ir.types import (
    BFLOAT,
    HALF,
    I1,
    I16,
    FloatType,
    IntType,
    Type,
    VectorType,
    bits_of,
    next_power_of_two,
    vector_of,
)
from tlx.ir.values import (
    Aggregate,
    Constant,
    ConstFloat,
    ConstInt,
    Keyword,
    Splat,
    Value,
    const_float,
    const_ints,
    const_vector,
    int_elements,
    is_zeros,
    zero,
)

if TYPE_CHECKING:
    from tlx.target.target import Target


def register_element(element: Type) -> Type:
    """The element type of a register of these elements."""
    return I16 if element in (BFLOAT, HALF) else element


@dataclass(frozen=True, slots=True)
class Registers:
    """A rows x cols tile in registers of at most `lanes` elements, row by row.

    Attributes:
        element: Element type, which may be bfloat or half.
        regs: The registers of each row.
    """

    element: Type
    rows: int
    cols: int
    lanes: int
    regs: tuple[tuple[Value, ...], ...]

    def map(self, element: Type, change: Callable[[Value], Value]) -> Registers:
        """The tile with a function applied to every register."""
        regs = tuple(tuple(change(r) for r in row) for row in self.regs)
        return Registers(element, self.rows, self.cols, self.lanes, regs)

    def flat(self) -> list[Value]:
        """All registers, row by row."""
        return [r for row in self.regs for r in row]

    @property
    def row_registers(self) -> int:
        """Registers of a row."""
        return len(self.regs[0])

    def replaced(self, flat: Sequence[Value]) -> Registers:
        """The tile with other registers, in the order of `flat`."""
        rows = split_rows(flat, self.row_registers)
        return Registers(self.element, self.rows, self.cols, self.lanes, rows)


def slice_start(instruction: Instruction) -> int | None:
    """The start of a shuffle that extracts adjacent elements of its first operand; None for other instructions."""
    if instruction.opcode != "shufflevector":
        return None
    mask = int_elements(instruction.operands[2])
    source = instruction.operands[0].type
    if not mask or not isinstance(source, VectorType) or mask[-1] >= source.count:
        return None
    return mask[0] if mask == tuple(range(mask[0], mask[0] + len(mask))) else None


def register_widths(cols: int, lanes: int) -> list[int]:
    """Elements of each register of a row."""
    full, rest = divmod(cols, lanes)
    return [lanes] * full + ([rest] if rest else [])


def constant_registers(value: Constant, element: Type, rows: int, cols: int, lanes: int) -> Registers:
    """The registers of a constant flattened vector.

    Raises:
        ValueError: The constant has no elements.
    """
    stored = register_element(element)

    def register(start: int, size: int) -> Value:
        if isinstance(value, Keyword):
            if value.word == "zeroinitializer":
                return zero(vector_of(size, stored))
            return Keyword(vector_of(size, stored), value.word)
        if isinstance(value, Splat):
            return const_vector([_as_stored(value.element, stored)] * size)
        if isinstance(value, Aggregate):
            return const_vector([_as_stored(e, stored) for e in value.elements[start : start + size]])
        message = f"no elements in constant {value}"
        raise ValueError(message)

    sizes = register_widths(cols, lanes)
    regs = tuple(tuple(register(row * cols + j * lanes, size) for j, size in enumerate(sizes)) for row in range(rows))
    return Registers(element, rows, cols, lanes, regs)


def _as_stored(value: Value, stored: Type) -> Value:
    """A scalar constant as a register's element (bfloat and half as their bits)."""
    if value.type == stored:
        return value
    if isinstance(value, ConstFloat) and isinstance(value.type, FloatType):
        return ConstInt(stored, int(const_float(value.type, value.value).spelling[3:], 16))
    return zero(stored)


Permute = Callable[[Value, Sequence[int]], Value]
"""A register and, for each lane of the result, the source lane -> the permuted register."""

Gather = Callable[[Sequence[Value], Sequence[int]], Value | None]
"""Registers and, for each lane of the result, a lane of their concatenation -> the result; None if unsupported."""


Result = TypeVar("Result")
_REGISTER_BITS: Final = 512
_LANE_BITS: Final = 128
_BYTE: Final = 8
_PERMUTED_BITS: Final = 16
"""Registers of bytes are operands where those of 16-bit elements are."""
_LANES: Final = 4


def splat_like(register: Value, number: float) -> Value:
    """A constant of a register's type with a number in every lane."""
    assert isinstance(register.type, VectorType)
    element, count = register.type.element, register.type.count
    if isinstance(element, IntType):
        return const_ints(element, [int(number)] * count)
    assert isinstance(element, FloatType)
    return const_vector([const_float(element, number)] * count)


def resized(b: Builder, register: Value, width: int) -> Value:
    """A register truncated, or extended by undefined lanes, to `width` lanes."""
    count = _count(register)
    return b.shuffle(register, None, [i if i < count else -1 for i in range(width)])


def zero_padded(b: Builder, register: Value, width: int) -> Value:
    """A register extended by zeros to `width` lanes.

    A select, not a shuffle with zeros: LLVM 22 asserts on some chains of the latter.
    """
    count = _count(register)
    wide = resized(b, register, width)
    mask = const_vector([ConstInt(I1, int(i < count)) for i in range(width)])
    return b.select(mask, wide, zero(wide.type))


def interleaved_rows(b: Builder, row_values: list[Value], permute: Permute | None = None) -> Value:
    """`v` equally wide registers as one: element i of row j goes to position `i * v + j`.

    Args:
        b: The builder.
        row_values: The registers.
        permute: Permutes the elements of a 64-byte register, if the target has an instruction.
    """
    if len(row_values) == 1:
        return row_values[0]
    if _fill_register(row_values):
        return _interleaved_by_permutation(b, row_values, permute)
    even, odd = interleaved_rows(b, row_values[0::2]), interleaved_rows(b, row_values[1::2])
    count = _count(even)
    if is_zeros(odd):
        return _zeros_between(b, even)
    return b.shuffle(even, odd, [i // 2 + (i % 2) * count for i in range(2 * count)])


def _fill_register(row_values: list[Value]) -> bool:
    """Whether rows, none of them zero, together fill a 64-byte register."""
    type_ = row_values[0].type
    assert isinstance(type_, VectorType)
    bits = bits_of(type_.element)
    return bits * type_.count * len(row_values) == _REGISTER_BITS and not any(map(is_zeros, row_values))


def _interleaved_by_permutation(b: Builder, row_values: list[Value], permute: Permute | None) -> Value:
    """Rows interleaved by a permutation of one register, or by shuffles that LLVM merges into one.

    Four rows are first transposed as words, so that LLVM does not match a tree of pairs:

        r0 r0 r0 r0 | r1 ... | r2 ... | r3 ...      16-byte lanes: the rows concatenated
        r0 r1 r2 r3 | r0 r1 r2 r3 | ...             a word of each row in every lane
        0123 0123 0123 0123 | ...                   bytes of the rows, interleaved
    """
    count, height = _count(row_values[0]), len(row_values)
    joined = _all_concatenated(b, row_values)
    mask = [j * count + i for i in range(count) for j in range(height)]
    if permute is not None:
        return permute(joined, mask)
    if height < _LANES:
        return b.shuffle(joined, None, mask)
    words = VectorType(_LANES * height, IntType(_REGISTER_BITS // _LANES // height))
    across = [j * _LANES + lane for lane in range(_LANES) for j in range(height)]
    transposed_words = b.cast("bitcast", b.shuffle(b.cast("bitcast", joined, words), None, across), joined.type)
    part = count // _LANES
    starts = [lane * part * height for lane in range(_LANES)]
    return b.shuffle(
        transposed_words, None, [s + j * part + i for s in starts for i in range(part) for j in range(height)]
    )


def _all_concatenated(b: Builder, row_values: list[Value]) -> Value:
    """Equally wide registers, concatenated."""
    if len(row_values) == 1:
        return row_values[0]
    half = len(row_values) // 2
    first, second = _all_concatenated(b, row_values[:half]), _all_concatenated(b, row_values[half:])
    return b.shuffle(first, second, range(2 * _count(first)))


def _zeros_between(b: Builder, register: Value) -> Value:
    """Each element followed by a zero, whichever byte of a word comes first; see `zero_padded` for the select."""
    type_ = register.type
    assert isinstance(type_, VectorType)
    count = 2 * type_.count
    if is_zeros(register):
        return zero(VectorType(count, type_.element))
    spread = b.shuffle(register, None, [-1 if i % 2 else i // 2 for i in range(count)])
    mask = const_vector([ConstInt(I1, int(i % 2 == 0)) for i in range(count)])
    return b.select(mask, spread, zero(spread.type))


def block_rows(b: Builder, tile: Registers, width: int, permute: Permute | None = None) -> Registers:
    """`reshape.block` of dimension 0 by `width`: rows k*width ... k*width+width-1 interleaved.

    RxC -> R/width x C*width; the registers of the result hold `width` times the lanes.
    """

    def register(k: int, index: int) -> Value:
        return interleaved_rows(b, [tile.regs[k * width + j][index] for j in range(width)], permute)

    regs = tuple(tuple(register(k, i) for i in range(tile.row_registers)) for k in range(tile.rows // width))
    return Registers(tile.element, tile.rows // width, tile.cols * width, tile.lanes * width, regs)


def block_columns(b: Builder, tile: Registers, width: int, target: Target) -> Registers:
    """`reshape.block` by `width` of a transposed tile: `width` elements along K move as one word.

    NxK -> K/width x N*width
    """
    lanes = max(width, tile.lanes)
    rows = with_lanes(b, tile, lanes)
    bits = bits_of(register_element(tile.element))

    def words(register: Value) -> Value:
        return b.cast("bitcast", register, VectorType(_count(register) // width, IntType(bits * width)))

    def elements(register: Value) -> Value:
        return b.cast("bitcast", register, VectorType(_count(register) * width, register_element(tile.element)))

    wide = rows.map(IntType(bits * width), words)
    wide = Registers(wide.element, tile.rows, tile.cols // width, lanes // width, wide.regs)
    columns = transposed(b, wide, target).map(tile.element, elements)
    return Registers(tile.element, tile.cols // width, tile.rows * width, lanes, columns.regs)


def columns_repeated(b: Builder, column: Registers, rows: int, cols: int, lanes: int) -> Registers:
    """A column, or one element, broadcast along rows of `cols`."""
    sizes = register_widths(cols, lanes)
    regs: list[tuple[Value, ...]] = []
    for row in column.regs:
        splats = {width: b.shuffle(row[0], None, [0] * width) for width in dict.fromkeys(sizes)}
        regs.append(tuple(splats[width] for width in sizes))
    return Registers(column.element, rows, cols, lanes, tuple(regs * (rows // column.rows)))


def with_lanes(b: Builder, tile: Registers, lanes: int) -> Registers:
    """The tile in registers of another width."""
    if tile.lanes == lanes:
        return tile
    rows = tuple(tuple(_row_with_lanes(b, list(row), tile.lanes, tile.cols, lanes)) for row in tile.regs)
    return Registers(tile.element, tile.rows, tile.cols, lanes, rows)


def shuffled(b: Builder, tiles: Sequence[Registers], instruction: Instruction) -> Registers | None:
    """A shufflevector of one or two tiles: adjacent elements of a row, or any elements of tiles of one row.

    Backends split a shuffle of several registers.

    Returns:
        None where it reads several rows of a tile, or its mask is not constant.
    """
    first, count = tiles[0], instruction.type.count if isinstance(instruction.type, VectorType) else 0
    start = slice_start(instruction)
    if start is not None:
        return sliced(b, first, *divmod(start, first.cols), count)
    mask = int_elements(instruction.operands[2])
    if mask is None or any(tile.rows > 1 for tile in tiles):
        return None
    lanes = max(count, *(tile.cols for tile in tiles))
    (left,), *others = (with_lanes(b, tile, lanes).flat() for tile in tiles)
    register = b.shuffle(left, others[0][0] if others else None, mask)
    return with_lanes(b, Registers(first.element, 1, count, lanes, ((register,),)), first.lanes)


def sliced(b: Builder, tile: Registers, row: int, column: int, count: int) -> Registers:
    """`count` elements of a row, from `column` on, as a tile of one row."""
    first, offset = divmod(column, tile.lanes)
    if offset + count <= tile.lanes:
        part = b.shuffle(tile.regs[row][first], None, range(offset, offset + count))
        return Registers(tile.element, 1, count, tile.lanes, ((part,),))
    line = list(tile.regs[row][first:])
    if offset:
        line = [b.shuffle(line[0], None, range(offset, tile.lanes)), *line[1:]]
        joined = line[0]
        for register in line[1:]:
            joined = _concatenated(b, joined, register, _count(joined))
        line = [joined]
        whole = Registers(tile.element, 1, _count(joined), _count(joined), (tuple(line),))
        return with_lanes(b, sliced(b, whole, 0, 0, count), tile.lanes)
    line = line[: -(-count // tile.lanes)]
    line[-1] = b.shuffle(line[-1], None, range(count - (len(line) - 1) * tile.lanes))
    return Registers(tile.element, 1, count, tile.lanes, (tuple(line),))


def _row_with_lanes(b: Builder, row: list[Value], old: int, cols: int, new: int) -> list[Value]:
    result: list[Value] = []
    for j, width in enumerate(register_widths(cols, new)):
        start = j * new
        if new < old:
            offset = start % old
            result.append(b.shuffle(row[start // old], None, range(offset, offset + width)))
            continue
        joined = row[start // old]
        count = _count(joined)
        for register in row[start // old + 1 : -(-(start + width) // old)]:
            joined = _concatenated(b, joined, register, count)
            count += _count(register)
        result.append(joined)
    return result


def _concatenated(b: Builder, first: Value, second: Value, count: int) -> Value:
    """The `count` elements of a register, followed by those of another."""
    size = count + _count(second)
    wide = b.shuffle(second, None, [i if i < _count(second) else -1 for i in range(count)])
    if _count(second) > count:
        first = resized(b, first, _count(second))
        wide = second
    base = _count(first)
    return b.shuffle(first, wide, [i if i < count else base + i - count for i in range(size)])


def transposed(b: Builder, tile: Registers, target: Target) -> Registers:
    """RxC -> CxR, R and C of any size; see `_columns`."""
    block = min(next_power_of_two(tile.rows), tile.lanes)
    lines: list[list[Value]] = [[] for _ in range(tile.cols)]
    for start in range(0, tile.rows, block):
        height = min(block, tile.rows - start)
        for index, first in enumerate(tile.regs[start]):
            rows = [tile.regs[start + i][index] for i in range(height)]
            for i, column in enumerate(_columns(b, rows, _count(first), target)):
                lines[index * tile.lanes + i].append(column)
    regs = tuple(tuple(line) for line in lines)
    return with_lanes(b, Registers(tile.element, tile.cols, tile.rows, block, regs), tile.lanes)


def _columns(b: Builder, row_values: list[Value], count: int, target: Target) -> list[Value]:
    """The `count` columns of equally wide rows, each as a register of `len(rows)` lanes.

    Rows are interleaved in each 16-byte lane, then the lanes are: a machine with wider registers does both without
    tables of indices, and LLVM compiles it in half the time of shuffles across lanes. Where all lanes are needed, LLVM
    does not look through the interleaved rows: it would make permutations with tables of some shuffles.

    Rows of zeros at the end (padding) are not shuffled; zeros are inserted into the result. A row without a partner is
    interleaved with itself: with undefined lanes, LLVM 22 creates an extension that it cannot select.
    """
    present = max((i for i, r in enumerate(row_values) if not is_zeros(r)), default=0) + 1
    if present < len(row_values):
        columns = _columns(b, row_values[:present], count, target)
        return [zero_padded(b, c, len(row_values)) for c in columns]
    height, block = len(row_values), next_power_of_two(len(row_values))
    width = max(block, next_power_of_two(count))
    lane = lane_elements(_element(row_values[0]))
    lane = lane if 1 < lane < width else width
    size = min(block, lane)
    padded = [resized(b, row, width) for row in row_values]
    padded += padded[-1:] * (-height % size)
    groups = [interleaved_in_lanes(b, padded[i : i + size], lane) for i in range(0, len(padded), size)]
    if len(groups) > 1 and count > width - lane:
        whole = height // size
        groups[:whole] = [[opaque_register(b, register, target) for register in group] for group in groups[:whole]]
    groups += groups[-1:] * (block // size - len(groups))
    together = [
        _transposed_lanes(b, list(part), lane)
        if len(groups) * lane == width
        else interleaved_in_lanes(b, list(part), width, lane)
        for part in zip(*groups, strict=True)
    ]
    columns: list[Value] = []
    for column in range(count):
        index, place = divmod(column % lane, lane // size)
        first = column // lane * lane * len(groups) + place * size
        start = first % width
        columns.append(b.shuffle(together[index][first // width], None, range(start, start + height)))
    return columns


def opaque_register(b: Builder, register: Value, target: Target) -> Value:
    """The register, opaque to LLVM where it has instructions that permute registers like it.

    LLVM makes permutations of several shuffles. It looks for them in all that a register is made of, for most of the
    time of its instruction selection.
    """
    bits = max(_PERMUTED_BITS, bits_of(_element(register)))
    if target.instructions.permutes is None or not target.can_permute(bits):
        return register
    return b.opaque(register, target.instructions.permutes.opaque_constraint)


def interleaved_in_lanes(b: Builder, registers: list[Value], lane: int, unit: int = 1) -> list[Value]:
    """R registers (a power of two), interleaved log2(R) times in each lane of `lane` elements, `unit` at a time.

    a0 a1 a2 a3 | a4 ..        a0 b0 a1 b1 | a4 b4 ..        a0 b0 c0 d0 | a4 b4 c4 d4 | ...
    b0 b1 b2 b3 | b4 ..   ->   a2 b2 a3 b3 | ..         ->   a1 b1 c1 d1 | ..
    c0 c1 c2 c3 | c4 ..        c0 d0 c1 d1 | ..              a2 b2 c2 d2 | ..
    d0 d1 d2 d3 | d4 ..        c2 d2 c3 d3 | ..              a3 b3 c3 d3 | ..
    """
    width, half = _count(registers[0]), len(registers) // 2
    units = [start + i // 2 * unit + i % 2 * width for start in range(0, width, lane) for i in range(lane // unit)]
    low = [source + i for source in units for i in range(unit)]
    high = [source + lane // 2 for source in low]
    for _ in range(len(registers).bit_length() - 1):
        pairs = [(registers[i], registers[i + half]) for i in range(half)]
        registers = [b.shuffle(x, y, mask) for x, y in pairs for mask in (low, high)]
    return registers


def _transposed_lanes(b: Builder, registers: list[Value], lane: int) -> list[Value]:
    """The first lane of each register, the second of each, ...; as many registers as a register has lanes.

    a0 a1 a2 a3        a0 a2 b0 b2        a0 b0 c0 d0
    b0 b1 b2 b3   ->   c0 c2 d0 d2   ->   a2 b2 c2 d2        and the same for the odd lanes
    ...
    """
    if len(registers) == 1:
        return registers
    even = [start + i for start in range(0, 2 * _count(registers[0]), 2 * lane) for i in range(lane)]
    odd = [source + lane for source in even]
    pairs = list(zip(registers[::2], registers[1::2], strict=True))
    halves = [_transposed_lanes(b, [b.shuffle(x, y, mask) for x, y in pairs], lane) for mask in (even, odd)]
    return [register for pair in zip(*halves, strict=True) for register in pair]


def lane_elements(element: Type) -> int:
    """Elements in a 16-byte lane of a register; 1 for elements that are not whole bytes."""
    bits = bits_of(register_element(element))
    return _LANE_BITS // bits if bits >= _BYTE and next_power_of_two(bits) == bits else 1


def _element(register: Value) -> Type:
    assert isinstance(register.type, VectorType)
    return register.type.element


def _count(register: Value) -> int:
    assert isinstance(register.type, VectorType)
    return register.type.count


def reshaped(b: Builder, tile: Registers, rows: int, cols: int) -> Registers | None:
    """The flattened vector as a tile of other extents; None if that would cut registers."""
    if tile.rows == 1 and cols % (lanes := min(tile.lanes, cols)) == 0:
        return Registers(tile.element, rows, cols, lanes, split_rows(with_lanes(b, tile, lanes).flat(), cols // lanes))
    if rows == 1 and tile.cols % tile.lanes == 0:
        return Registers(tile.element, 1, cols, tile.lanes, (tuple(tile.flat()),))
    if rows == 1 and tile.lanes % tile.cols == 0 == cols % tile.lanes and len(set(tile.flat())) == 1:
        repeated = b.shuffle(tile.regs[0][0], None, [lane % tile.cols for lane in range(tile.lanes)])
        return Registers(tile.element, 1, cols, tile.lanes, ((repeated,) * (cols // tile.lanes),))
    return None


def split_rows(registers: Sequence[Value], size: int) -> tuple[tuple[Value, ...], ...]:
    """Registers grouped into rows of `size`."""
    return tuple(tuple(registers[i : i + size]) for i in range(0, len(registers), size))


def as_words(b: Builder, register: Value, width: int) -> Value:
    """A register as integers of `width` elements each."""
    type_ = register.type
    assert isinstance(type_, VectorType)
    return b.cast("bitcast", register, VectorType(type_.count // width, IntType(bits_of(type_.element) * width)))


_IGNORED_BIT: Final = 1 << 30
_MAX_GATHERED: Final = 2


def permuter(b: Builder, element: Type, target: Target) -> Permute | None:
    """A function that permutes elements of a type in the current block; None where LLVM's shuffles are as good."""
    bits, permutes = bits_of(register_element(element)), target.instructions.permutes
    if permutes is None or bits not in permutes.opaque_bits or not permutes.permutes(bits, target.features):
        return None
    word = IntType(bits)
    words = VectorType(permutes.register_bytes * 8 // bits, word)
    orders: dict[tuple[int, ...], Value] = {}

    def permute(register: Value, mask: Sequence[int]) -> Value:
        key = tuple(mask)
        if key not in orders:
            orders[key] = b.opaque(const_ints(word, key), permutes.opaque_constraint, "order")
        source = b.cast("bitcast", register, words)
        return b.cast("bitcast", permutes.permute(b, source, orders[key], "permuted"), register.type)

    return permute


def gatherer(b: Builder, target: Target) -> Gather | None:
    """A function that gathers elements of one or two whole registers; None if the target has no instruction."""
    permutes = target.instructions.permutes
    if permutes is None or not all(permutes.permutes(bits_of(e), target.features) for e in permutes.permute_two_types):
        return None

    def gather(registers: Sequence[Value], mask: Sequence[int]) -> Value | None:
        type_ = registers[0].type
        if not isinstance(type_, VectorType) or type_.element not in permutes.permute_two_types:
            return None
        bits = bits_of(type_.element)
        if type_.count * bits != permutes.register_bytes * 8 or len(registers) > _MAX_GATHERED:
            return None
        order = const_ints(IntType(bits), [_IGNORED_BIT + lane for lane in mask])
        if len(registers) == 1:
            return permutes.permute(b, registers[0], order, "gathered")
        return permutes.permute_two(b, registers[0], registers[1], order, "gathered")

    return gather


def emit_interleaved(b: Builder, emitters: Sequence[Callable[[], Result]]) -> list[Result]:
    """Call each function and interleave their instructions, if each emits equally many into the same block.

        a0 = f(x0)  b0 = g(a0)  ...  a1 = f(x1)  b1 = g(a1)   ->   a0 = f(x0)  a1 = f(x1)  b0 = g(a0)  b1 = g(a1)

    The dependency chains of different registers are independent. Out-of-order execution covers some hundred
    instructions, fewer when two threads share a core: long chains one after the other would leave ports idle.
    """
    block, ends, results = b.block, [b.index], list[Result]()
    for emit in emitters:
        results.append(emit())
        ends.append(b.index)
    sequences = [block.instructions[start:end] for start, end in pairwise(ends)]
    if b.block is block and len({len(sequence) for sequence in sequences}) == 1:
        block.instructions[ends[0] : ends[-1]] = chain.from_iterable(zip(*sequences, strict=True))
    return results
