"""Rearranging registers: interleaving for VNNI, transposing, picking every n-th element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.instructions import Instruction
from tlx.ir.types import I1, IntType, VectorType, bits_of
from tlx.ir.values import ConstInt, Keyword, Value, const_vector, int_elements, zero
from tlx.lower.legalize.registers import Permute, Registers, register_element, register_widths, slice_start

_LINE_BITS: Final = 512
_LANES: Final = 4


def resized(b: Builder, register: Value, width: int) -> Value:
    """A register cut to, or filled up with undefined lanes to, `width` lanes."""
    count = _count(register)
    return b.shuffle(register, None, [i if i < count else -1 for i in range(width)])


def zero_padded(b: Builder, register: Value, width: int) -> Value:
    """A register filled up with zeros to `width` lanes.

    A select, not a shuffle with zeros: LLVM 22 asserts on some chains of the latter.
    """
    count = _count(register)
    wide = resized(b, register, width)
    mask = const_vector([ConstInt(I1, int(i < count)) for i in range(width)])
    return b.select(mask, wide, zero(wide.type))


def interleaved_rows(b: Builder, rows: list[Value], permute: Permute | None = None) -> Value:
    """`v` equally wide registers as one: element i of row j goes to position `i * v + j`.

    Args:
        b: Where to emit.
        rows: The registers.
        permute: What permutes the elements of a register of 64 bytes, if an instruction does.
    """
    if len(rows) == 1:
        return rows[0]
    if _fills_lines(rows):
        return _interleaved_by_permutation(b, rows, permute)
    even, odd = interleaved_rows(b, rows[0::2]), interleaved_rows(b, rows[1::2])
    count = _count(even)
    if _is_zero(odd):
        return _zeros_between(b, even)
    return b.shuffle(even, odd, [i // 2 + (i % 2) * count for i in range(2 * count)])


def _fills_lines(rows: list[Value]) -> bool:
    """Whether rows, none of zeros, together make one register of 64 bytes."""
    type_ = rows[0].type
    assert isinstance(type_, VectorType)
    bits = bits_of(type_.element)
    return bits * type_.count * len(rows) == _LINE_BITS and not any(map(_is_zero, rows))


def _interleaved_by_permutation(b: Builder, rows: list[Value], permute: Permute | None) -> Value:
    """Rows interleaved by a permutation of one register, or shuffles that LLVM merges to one.

    Fours are dealt first as words, so that LLVM does not take them for a tree of pairs:

        r0 r0 r0 r0 | r1 ... | r2 ... | r3 ...      16-byte lanes: the rows behind each other
        r0 r1 r2 r3 | r0 r1 r2 r3 | ...             a word of each row in every lane
        0123 0123 0123 0123 | ...                   bytes of the rows, by turns
    """
    count, height = _count(rows[0]), len(rows)
    joined = _concatenated_pair(b, rows)
    places = [j * count + i for i in range(count) for j in range(height)]
    if permute is not None:
        return permute(joined, places)
    if height < _LANES:
        return b.shuffle(joined, None, places)
    words = VectorType(_LANES * height, IntType(_LINE_BITS // _LANES // height))
    across = [j * _LANES + lane for lane in range(_LANES) for j in range(height)]
    dealt = b.cast("bitcast", b.shuffle(b.cast("bitcast", joined, words), None, across), joined.type)
    part = count // _LANES
    starts = [lane * part * height for lane in range(_LANES)]
    return b.shuffle(dealt, None, [s + j * part + i for s in starts for i in range(part) for j in range(height)])


def _concatenated_pair(b: Builder, rows: list[Value]) -> Value:
    """Equally wide registers as one, behind each other."""
    if len(rows) == 1:
        return rows[0]
    half = len(rows) // 2
    first, second = _concatenated_pair(b, rows[:half]), _concatenated_pair(b, rows[half:])
    return b.shuffle(first, second, range(2 * _count(first)))


def _zeros_between(b: Builder, register: Value) -> Value:
    """Each element followed by a zero."""
    type_ = register.type
    assert isinstance(type_, VectorType)
    if _is_zero(register):
        return zero(VectorType(2 * type_.count, type_.element))
    bits = bits_of(type_.element)
    words = b.cast("bitcast", register, VectorType(type_.count, IntType(bits)))
    wide = b.cast("zext", words, VectorType(type_.count, IntType(2 * bits)))
    return b.cast("bitcast", wide, VectorType(2 * type_.count, type_.element))


def block_rows(b: Builder, tile: Registers, width: int, permute: Permute | None = None) -> Registers:
    """`reshape.block` of dimension 0 by `width`: rows k*width ... k*width+width-1 interleaved.

    RxC -> R/width x C*width; the registers of the result hold `width` times the lanes.
    """

    def line(k: int, chunk: int) -> Value:
        return interleaved_rows(b, [tile.regs[k * width + j][chunk] for j in range(width)], permute)

    regs = tuple(tuple(line(k, c) for c in range(len(tile.regs[0]))) for k in range(tile.rows // width))
    return Registers(tile.element, tile.rows // width, tile.cols * width, tile.lanes * width, regs)


def block_columns(b: Builder, tile: Registers, width: int) -> Registers:
    """`reshape.block` by `width` of a tile that lies transposed: neighbours along K move as one word.

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
    turned = transposed(b, wide).map(tile.element, elements)
    return Registers(tile.element, tile.cols // width, tile.rows * width, lanes, turned.regs)


def columns_repeated(b: Builder, column: Registers, rows: int, cols: int, lanes: int) -> Registers:
    """A column, or one element, repeated along rows of `cols`."""
    sizes = register_widths(cols, lanes)
    regs: list[tuple[Value, ...]] = []
    for row in column.regs:
        made = {width: b.shuffle(row[0], None, [0] * width) for width in dict.fromkeys(sizes)}
        regs.append(tuple(made[width] for width in sizes))
    return Registers(column.element, rows, cols, lanes, tuple(regs * (rows // column.rows)))


def with_lanes(b: Builder, tile: Registers, lanes: int) -> Registers:
    """The same tile in registers of another width."""
    if tile.lanes == lanes:
        return tile
    rows = tuple(tuple(_row_with_lanes(b, list(row), tile.lanes, tile.cols, lanes)) for row in tile.regs)
    return Registers(tile.element, tile.rows, tile.cols, lanes, rows)


def shuffled(b: Builder, tiles: Sequence[Registers], instruction: Instruction) -> Registers | None:
    """What a shufflevector of one or two tiles picks: neighbours of a row, or elements of registers in any order.

    Returns:
        None where it picks from more than a register of each.
    """
    first, count = tiles[0], instruction.type.count if isinstance(instruction.type, VectorType) else 0
    start = slice_start(instruction)
    if start is not None:
        return sliced(b, first, *divmod(start, first.cols), count)
    places, flat = int_elements(instruction.operands[2]), [tile.flat() for tile in tiles]
    if places is None or count > first.lanes or any(len(registers) > 1 for registers in flat):
        return None
    made = b.shuffle(flat[0][0], flat[1][0] if len(flat) > 1 else None, places)
    return Registers(first.element, 1, count, first.lanes, ((made,),))


def sliced(b: Builder, tile: Registers, row: int, column: int, count: int) -> Registers:
    """`count` neighbours of a row, from `column` on, as a tile of one row."""
    first, offset = divmod(column, tile.lanes)
    if offset + count <= tile.lanes:
        part = b.shuffle(tile.regs[row][first], None, range(offset, offset + count))
        return Registers(tile.element, 1, count, tile.lanes, ((part,),))
    line = list(tile.regs[row][first:])
    if offset:
        line = [b.shuffle(line[0], None, range(offset, tile.lanes)), *line[1:]]
        joined = line[0]
        for piece in line[1:]:
            joined = _concatenated(b, joined, piece, _count(joined))
        line = [joined]
        whole = Registers(tile.element, 1, _count(joined), _count(joined), (tuple(line),))
        return with_lanes(b, sliced(b, whole, 0, 0, count), tile.lanes)
    kept = line[: -(-count // tile.lanes)]
    kept[-1] = b.shuffle(kept[-1], None, range(count - (len(kept) - 1) * tile.lanes))
    return Registers(tile.element, 1, count, tile.lanes, (tuple(kept),))


def _row_with_lanes(b: Builder, row: list[Value], old: int, cols: int, new: int) -> list[Value]:
    result: list[Value] = []
    for j, width in enumerate(register_widths(cols, new)):
        start = j * new
        if new < old:
            offset = start % old
            result.append(b.shuffle(row[start // old], None, range(offset, offset + width)))
            continue
        joined = row[start // old]
        have = _count(joined)
        for piece in row[start // old + 1 : -(-(start + width) // old)]:
            joined = _concatenated(b, joined, piece, have)
            have += _count(piece)
        result.append(joined)
    return result


def _concatenated(b: Builder, first: Value, second: Value, have: int) -> Value:
    size = have + _count(second)
    wide = b.shuffle(second, None, [i if i < _count(second) else -1 for i in range(have)])
    if _count(second) > have:
        first = resized(b, first, _count(second))
        wide = second
    base = _count(first)
    return b.shuffle(first, wide, [i if i < have else base + i - have for i in range(size)])


def transposed(b: Builder, tile: Registers) -> Registers:
    """RxC -> CxR.

    R rows (a power of two) interleaved log2(R) times are the columns, one behind the other:

        a0 a1 a2 a3        a0 b0 c0 d0 | a1 b1 c1 d1
        b0 b1 b2 b3   ->   a2 b2 c2 d2 | ...
        ...
    """
    block = min(_power_of_two(tile.rows), tile.lanes)
    lines: list[list[Value]] = [[] for _ in range(tile.cols)]
    for start in range(0, tile.rows, block):
        height = min(block, tile.rows - start)
        for chunk, first in enumerate(tile.regs[start]):
            rows = [tile.regs[start + i][chunk] for i in range(height)]
            for i, column in enumerate(_columns(b, rows, _count(first))):
                lines[chunk * tile.lanes + i].append(column)
    regs = tuple(tuple(line) for line in lines)
    return with_lanes(b, Registers(tile.element, tile.cols, tile.rows, block, regs), tile.lanes)


def _columns(b: Builder, rows: list[Value], count: int) -> list[Value]:
    """The `count` columns of equally wide rows, each as a register of `len(rows)` lanes.

    Rows of zeros at the end (padding) are not shuffled along but filled in at the end. A row without a partner is
    interleaved with itself: with undefined lanes, LLVM 22 makes an extension that it has no instruction for.
    """
    present = max((i for i, r in enumerate(rows) if not _is_zero(r)), default=0) + 1
    if present < len(rows):
        columns = _columns(b, rows[:present], count)
        return [zero_padded(b, c, len(rows)) for c in columns]
    height = len(rows)
    block = _power_of_two(height)
    width = max(block, _power_of_two(count))
    half = block // 2
    padded = [resized(b, r, width) for r in rows]
    padded += padded[height - half : half]
    low = [i // 2 + (i % 2) * width for i in range(width)]
    high = [m + width // 2 for m in low]
    for _ in range(block.bit_length() - 1):
        pairs = [(padded[i], padded[i + half]) for i in range(half)]
        padded = [b.shuffle(x, y, mask) for x, y in pairs for mask in (low, high)]
    per_register = width // block
    return [
        b.shuffle(padded[c // per_register], None, range(c % per_register * block, c % per_register * block + height))
        for c in range(count)
    ]


def _is_zero(register: Value) -> bool:
    return isinstance(register, Keyword) and register.word == "zeroinitializer"


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def _count(register: Value) -> int:
    assert isinstance(register.type, VectorType)
    return register.type.count


def reshaped(b: Builder, tile: Registers, rows: int, cols: int) -> Registers | None:
    """The same flattened vector as a tile of other extents, where registers need not be cut; else None."""
    if tile.rows == 1 and cols % (lanes := min(tile.lanes, cols)) == 0:
        return Registers(tile.element, rows, cols, lanes, split_rows(with_lanes(b, tile, lanes).flat(), cols // lanes))
    if rows == 1 and tile.cols % tile.lanes == 0:
        return Registers(tile.element, 1, cols, tile.lanes, (tuple(tile.flat()),))
    if rows == 1 and tile.lanes % tile.cols == 0 == cols % tile.lanes and len(set(tile.flat())) == 1:
        places = [lane % tile.cols for lane in range(tile.lanes)]
        repeated = b.shuffle(tile.regs[0][0], None, places)
        return Registers(tile.element, 1, cols, tile.lanes, ((repeated,) * (cols // tile.lanes),))
    return None


def split_rows(registers: list[Value], size: int) -> tuple[tuple[Value, ...], ...]:
    """Registers as rows of `size`."""
    return tuple(tuple(registers[i : i + size]) for i in range(0, len(registers), size))


def as_words(b: Builder, register: Value, width: int) -> Value:
    """A register of elements as one of integers that hold `width` elements each."""
    type_ = register.type
    assert isinstance(type_, VectorType)
    return b.cast("bitcast", register, VectorType(type_.count // width, IntType(bits_of(type_.element) * width)))
