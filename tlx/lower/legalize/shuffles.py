"""Rearranging registers: interleaving for VNNI, transposing, picking every n-th element."""

from __future__ import annotations

from tlx.ir.builder import Builder
from tlx.ir.types import VectorType
from tlx.ir.values import Keyword, Value, zero
from tlx.lower.legalize.registers import Registers, storage, widths


def resized(b: Builder, register: Value, width: int) -> Value:
    """A register cut to, or filled up with undefined lanes to, `width` lanes."""
    count = _count(register)
    return b.shuffle(register, None, [i if i < count else -1 for i in range(width)])


def interleaved(b: Builder, rows: list[Value]) -> Value:
    """`v` equally wide registers as one: element i of row j goes to position `i * v + j`."""
    if len(rows) == 1:
        return rows[0]
    half = len(rows) // 2
    even, odd = interleaved(b, rows[0::2]), interleaved(b, rows[1::2])
    count = _count(even)
    assert half * 2 == len(rows)
    return b.shuffle(even, odd, [i // 2 + (i % 2) * count for i in range(2 * count)])


def block_rows(b: Builder, tile: Registers, width: int) -> Registers:
    """`reshape.block` of dimension 0 by `width`: rows k*width ... k*width+width-1 interleaved.

    RxC -> R/width x C*width; the registers of the result hold `width` times the lanes.
    """
    regs = tuple(
        tuple(interleaved(b, [tile.regs[k * width + j][c] for j in range(width)]) for c in range(len(tile.regs[0])))
        for k in range(tile.rows // width)
    )
    return Registers(tile.element, tile.rows // width, tile.cols * width, tile.lanes * width, regs)


def unblock_rows(b: Builder, tile: Registers, width: int) -> Registers:
    """The inverse of `block_rows`."""
    rows: list[tuple[Value, ...]] = []
    for line in tile.regs:
        for j in range(width):
            rows.append(tuple(b.shuffle(r, None, range(j, _count(r), width)) for r in line))
    return Registers(tile.element, tile.rows * width, tile.cols // width, tile.lanes // width, tuple(rows))


def relaned(b: Builder, tile: Registers, lanes: int) -> Registers:
    """The same tile in registers of another width."""
    if tile.lanes == lanes:
        return tile
    rows = tuple(tuple(_relaned_row(b, list(row), tile.lanes, tile.cols, lanes)) for row in tile.regs)
    return Registers(tile.element, tile.rows, tile.cols, lanes, rows)


def _relaned_row(b: Builder, row: list[Value], old: int, cols: int, new: int) -> list[Value]:
    result: list[Value] = []
    for j, width in enumerate(widths(cols, new)):
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

    Square blocks of a power of two go through a network of interleavings: log2(n) rounds of n shuffles.
    """
    size = 1
    while size < min(tile.lanes, max(tile.rows, tile.cols)):
        size *= 2
    lanes = tile.lanes
    tile = relaned(b, tile, size)
    kept = VectorType(size, storage(tile.element))
    lines: list[list[Value]] = [[] for _ in range(tile.cols)]
    for r0 in range(0, tile.rows, size):
        height = min(size, tile.rows - r0)
        for c in range(len(tile.regs[0])):
            block = [resized(b, tile.regs[r0 + i][c], size) for i in range(height)]
            block += [Keyword(kept, "undef")] * (size - height)
            columns = _transposed_square(b, block)
            for i in range(_count(tile.regs[0][c])):
                lines[c * tile.lanes + i].append(resized(b, columns[i], height))
    regs = tuple(tuple(line) for line in lines)
    return relaned(b, Registers(tile.element, tile.cols, tile.rows, size, regs), lanes)


def _transposed_square(b: Builder, rows: list[Value]) -> list[Value]:
    size = len(rows)
    low = [i // 2 + (i % 2) * size for i in range(size)]
    high = [m + size // 2 for m in low]
    step = size
    while step > 1:
        half = size // 2
        paired: list[Value] = []
        for i in range(half):
            paired += [b.shuffle(rows[i], rows[i + half], low), b.shuffle(rows[i], rows[i + half], high)]
        rows = paired
        step //= 2
    return rows


def _count(register: Value) -> int:
    assert isinstance(register.type, VectorType)
    return register.type.count


def zero_row(tile: Registers) -> tuple[Value, ...]:
    """A row of zeros as wide as the tile's."""
    return tuple(zero(r.type) for r in tile.regs[0])
