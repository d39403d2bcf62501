"""VNNI packing of whole registers: rows interleaved within 128-bit lanes, then the lanes put in order.

Four rows of 64 bytes (lane l of a row holds columns 16 l ... 16 l + 15) become four registers of 16 columns:

    unpack twice       q0 ... q3: lane l of q_i holds columns 16 l + 4 i ... + 3, four bytes of each
    order lanes        register j: lane j of q0, q1, q2, q3

That is 16 shuffles, each of a whole register; interleaving 16 columns at a time takes 44 of less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.builder import Builder
from tlx.ir.types import VectorType, bits_of
from tlx.ir.values import Aggregate, Keyword, Value
from tlx.lower.legalize.permute import permuter
from tlx.lower.legalize.registers import Registers
from tlx.lower.legalize.shuffles import block_rows, relaned, resized

if TYPE_CHECKING:
    from tlx.target import Target

_LANE_BITS: Final = 128
_MOST_LANES: Final = 4


def blocked(b: Builder, tile: Registers, width: int, target: Target) -> Registers:
    """`reshape.block` of the rows by `width`: RxC -> R/width x C*width, by whole registers where they are filled."""
    vector_bits = target.vector_bytes * 8
    counts = [type_.count for r in tile.regs[0] if isinstance(type_ := r.type, VectorType)]
    bits = vector_bits // tile.lanes
    constant = any(isinstance(r, (Aggregate, Keyword)) for r in tile.flat())  # LLVM 22 asserts on shuffles of zeros
    if constant or not all(can_interleave(count, bits, width, vector_bits) for count in counts):
        narrow = relaned(b, tile, max(1, tile.lanes // width))
        return block_rows(b, narrow, width, permuter(b, tile.element, target))
    regs: list[tuple[Value, ...]] = []
    for group in range(0, tile.rows, width):
        chunks = zip(*tile.regs[group : group + width], strict=True)
        regs.append(tuple(r for rows in chunks for r in interleaved_registers(b, list(rows), vector_bits)))
    return Registers(tile.element, tile.rows // width, tile.cols * width, tile.lanes, tuple(regs))


def can_interleave(count: int, bits: int, width: int, vector_bits: int) -> bool:
    """Whether `width` rows of `count` elements fill more than half of registers and end with a group of columns."""
    size = count * bits
    fits = vector_bits // 2 < size <= vector_bits <= _MOST_LANES * _LANE_BITS
    return fits and width * bits <= 32 and width in (2, 4) and size * width % vector_bits == 0


def can_unpack(count: int, bits: int, width: int, run: int, vector_bits: int) -> bool:
    """Whether interleaving within lanes leaves runs of so many columns of `width` rows, registers of `count`."""
    return count * bits == vector_bits and run * width * bits == _LANE_BITS and width in (2, 4)


def interleaved_registers(b: Builder, rows: list[Value], vector_bits: int) -> list[Value]:
    """Rows, of at most a register each, as registers of which each holds all rows of some columns."""
    type_ = rows[0].type
    assert isinstance(type_, VectorType)
    bits, width = bits_of(type_.element), len(rows)
    full = vector_bits // bits
    wide = [_widened(b, row, type_.count, full) for row in rows]
    mixed = unpacked(b, wide, bits, vector_bits)
    ordered = _ordered(b, mixed, vector_bits // _LANE_BITS, _LANE_BITS // bits)
    return ordered[: type_.count * width // full]


def _widened(b: Builder, row: Value, count: int, full: int) -> Value:
    return row if count == full else resized(b, row, full)


def unpacked(b: Builder, rows: list[Value], bits: int, vector_bits: int) -> list[Value]:
    """Rows interleaved within lanes: lower halves of lanes, then upper ones, of pairs of pairs."""
    if len(rows) == 1:
        return rows
    halves = (unpacked(b, rows[0::2], bits, vector_bits), unpacked(b, rows[1::2], bits, vector_bits))
    found: list[Value] = []
    for even, odd in zip(*halves, strict=True):
        found += [b.shuffle(even, odd, _unpack_mask(bits, vector_bits, upper=upper)) for upper in (False, True)]
    return found


def _unpack_mask(bits: int, vector_bits: int, *, upper: bool) -> list[int]:
    """VPUNPCKL or VPUNPCKH."""
    count, lane = vector_bits // bits, _LANE_BITS // bits
    mask: list[int] = []
    for start in range(0, count, lane):
        for at in range(start + upper * lane // 2, start + (1 + upper) * lane // 2):
            mask += [at, count + at]
    return mask


def _ordered(b: Builder, mixed: list[Value], lanes: int, size: int) -> list[Value]:
    """Lane 0 of all registers, then lane 1, ...: a transposition where there are as many lanes as registers."""

    def pick(x: Value, y: Value, places: list[int]) -> Value:
        return b.shuffle(x, y, [at for place in places for at in range(place * size, (place + 1) * size)])

    width = len(mixed)
    if lanes == 1:
        return mixed
    if (lanes, width) == (4, 4):
        even, odd = [0, 2, 4, 6], [1, 3, 5, 7]
        pairs = [(pick(mixed[0], mixed[1], p), pick(mixed[2], mixed[3], p)) for p in (even, odd)]
        return [pick(*pairs[j % 2], (even, odd)[j // 2]) for j in range(4)]
    found: list[Value] = []
    for j in range(width):
        places = [divmod(j * lanes + t, width) for t in range(lanes)]
        x, y = (places[0][1], places[1][1])
        found.append(pick(mixed[x], mixed[y], [lane + (lanes if i == y else 0) for lane, i in places]))
    return found
