"""VNNI packing of registers, and operands whose columns stay in the permuted order of interleaving within lanes.

Whole registers are interleaved within 128-bit lanes, then the lanes are put in order.

Four rows of 64 bytes (lane l of a row holds columns 16 l ... 16 l + 15) become four registers of 16 columns:

    unpack twice       q0 ... q3: lane l of q_i holds columns 16 l + 4 i ... + 3, four bytes of each
    order lanes        register j: lane j of q0, q1, q2, q3

That is 16 shuffles of whole registers; interleaving 16 columns at a time takes 44 shuffles of narrower ones.

Instructions on pairs or quadruples of rows leave columns in a permuted order. `reshape.permute` by (0, 1, 3, 2, 4)
expresses it, and its inverse: rows that are blocks of x times y runs of columns become blocks of y times x runs.

    pairs of bfloat rows, 32 columns, 4 x 2 runs of 4 -> 2 x 4 runs of 4       VPUNPCKLWD, VPUNPCKHWD
    a row of bfloats, 32 columns, 16 x 2 runs of 1 -> 2 x 16 runs of 1         shifted left, masked
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tlx.ir.builder import Builder
from tlx.ir.types import BFLOAT, FLOAT, I32, Type, VectorType, bits_of
from tlx.ir.values import Aggregate, Keyword, Value, const_ints
from tlx.lower.legalize.registers import (
    Gather,
    Registers,
    as_words,
    block_rows,
    interleaved_rows,
    permuter,
    resized,
    with_lanes,
)

if TYPE_CHECKING:
    from tlx.target.target import Target

_LANE_BITS: Final = 128
_MAX_LANES: Final = 4


def vnni_packed(b: Builder, tile: Registers, width: int, target: Target) -> Registers:
    """`reshape.block` of the rows by `width`: RxC -> R/width x C*width, by whole registers where possible."""
    vector_bits = target.vector_bytes * 8
    counts = [type_.count for r in tile.regs[0] if isinstance(type_ := r.type, VectorType)]
    bits = vector_bits // tile.lanes
    constant = any(isinstance(r, (Aggregate, Keyword)) for r in tile.flat())  # LLVM 22 asserts on shuffles of zeros
    if constant or not all(can_interleave(count, bits, width, vector_bits) for count in counts):
        narrow = with_lanes(b, tile, max(1, tile.lanes // width))
        return block_rows(b, narrow, width, permuter(b, tile.element, target))
    regs: list[tuple[Value, ...]] = []
    for group in range(0, tile.rows, width):
        columns = zip(*tile.regs[group : group + width], strict=True)
        regs.append(tuple(r for rows in columns for r in interleaved_registers(b, list(rows), vector_bits)))
    return Registers(tile.element, tile.rows // width, tile.cols * width, tile.lanes, tuple(regs))


def can_interleave(count: int, bits: int, width: int, vector_bits: int) -> bool:
    """Whether `width` rows of `count` elements fill more than half of registers and end with a group of columns."""
    size = count * bits
    fits = vector_bits // 2 < size <= vector_bits <= _MAX_LANES * _LANE_BITS
    return fits and width * bits <= 32 and width in (2, 4) and size * width % vector_bits == 0


def can_interleave_within_lanes(count: int, bits: int, width: int, run: int, vector_bits: int) -> bool:
    """Whether interleaving `width` rows of registers of `count` within lanes leaves runs of `run` columns."""
    return count * bits == vector_bits and run * width * bits == _LANE_BITS and width in (2, 4)


def interleaved_registers(b: Builder, row_values: list[Value], vector_bits: int) -> list[Value]:
    """Rows of at most a register each, interleaved: each register has all rows of some columns."""
    type_ = row_values[0].type
    assert isinstance(type_, VectorType)
    bits, width = bits_of(type_.element), len(row_values)
    full = vector_bits // bits
    wide = row_values if type_.count == full else [resized(b, row, full) for row in row_values]
    mixed = interleaved_within_lanes(b, wide, bits, vector_bits)
    ordered = _lanes_in_order(b, mixed, vector_bits // _LANE_BITS, _LANE_BITS // bits)
    return ordered[: type_.count * width // full]


def interleaved_within_lanes(b: Builder, row_values: list[Value], bits: int, vector_bits: int) -> list[Value]:
    """Rows interleaved within lanes: the lower halves of lanes, then the upper ones, of pairs of pairs."""
    if len(row_values) == 1:
        return row_values
    halves = (
        interleaved_within_lanes(b, row_values[0::2], bits, vector_bits),
        interleaved_within_lanes(b, row_values[1::2], bits, vector_bits),
    )
    interleaved: list[Value] = []
    for even, odd in zip(*halves, strict=True):
        interleaved += [b.shuffle(even, odd, _unpack_mask(bits, vector_bits, upper=upper)) for upper in (False, True)]
    return interleaved


def _unpack_mask(bits: int, vector_bits: int, *, upper: bool) -> list[int]:
    """VPUNPCKL or VPUNPCKH."""
    count, lane = vector_bits // bits, _LANE_BITS // bits
    mask: list[int] = []
    for start in range(0, count, lane):
        for at in range(start + upper * lane // 2, start + (1 + upper) * lane // 2):
            mask += [at, count + at]
    return mask


def _lanes_in_order(b: Builder, mixed: list[Value], lanes: int, size: int) -> list[Value]:
    """Lane 0 of all registers, then lane 1, ...: a transpose if there are as many lanes as registers."""

    def shuffle_lanes(x: Value, y: Value, order: list[int]) -> Value:
        return b.shuffle(x, y, [element for lane in order for element in range(lane * size, (lane + 1) * size)])

    width = len(mixed)
    if lanes == 1:
        return mixed
    if (lanes, width) == (4, 4):
        even, odd = [0, 2, 4, 6], [1, 3, 5, 7]
        q0, q1, q2, q3 = mixed
        pairs = [(shuffle_lanes(q0, q1, order), shuffle_lanes(q2, q3, order)) for order in (even, odd)]
        return [shuffle_lanes(*pairs[j % 2], (even, odd)[j // 2]) for j in range(4)]
    merged: list[Value] = []
    for j in range(width):
        sources = [divmod(j * lanes + t, width) for t in range(lanes)]
        x, y = sources[0][1], sources[1][1]
        merged.append(shuffle_lanes(mixed[x], mixed[y], [lane + (lanes if i == y else 0) for lane, i in sources]))
    return merged


COLUMN_PERMUTATION: Final = (0, 1, 3, 2, 4)


@dataclass(eq=False, slots=True)
class RightWithPermutedColumns:
    """A right operand with permuted columns.

    Attributes:
        tile: The rows in memory order.
        shape: Their shape: rows, blocks, x, y, columns of a run.
        lanes: Elements of the accumulator's registers.
        vector_bits: Width of a register.
        big_endian: Whether the first element of a pair is the upper half of their word.
        interleaved: Registers interleaved within lanes, by group and block.
    """

    tile: Registers
    shape: tuple[int, ...]
    lanes: int
    vector_bits: int
    big_endian: bool
    interleaved: dict[tuple[int, int], list[Value]] = field(default_factory=dict[tuple[int, int], list[Value]])

    @property
    def element(self) -> Type:
        """Element type."""
        return self.tile.element

    @property
    def are_pairs_of_floats(self) -> bool:
        """Whether even and odd elements go to different registers, and are halves of a float."""
        _, _, x, y, run = self.shape
        return self.element == BFLOAT and (x, y, run) == (self.lanes, 2, 1) and self.tile.lanes == 2 * self.lanes

    def vector(self, b: Builder, k: int, index: int) -> Value:
        """Register `index` of row k."""
        permuted = permuted_columns(
            b, Registers(self.element, 1, self.tile.cols, self.tile.lanes, (self.tile.regs[k],)), self.shape
        )
        return with_lanes(b, permuted, self.lanes).regs[0][index]

    def floats(self, b: Builder, k: int, index: int) -> Value:
        """Register `index` of row k as floats: the lower halves of words shifted up, or the upper ones masked."""
        wide = VectorType(self.lanes, I32)
        bits = b.cast("bitcast", self.tile.regs[k][index // 2], wide)
        if index % 2 != self.big_endian:
            bits = b.binary("and", bits, const_ints(I32, [-(1 << 16)] * self.lanes))
        else:
            bits = b.binary("shl", bits, const_ints(I32, [16] * self.lanes))
        return b.cast("bitcast", bits, VectorType(self.lanes, FLOAT))

    def words(self, b: Builder, group: int, index: int, width: int) -> Value:
        """Rows group * width ... of register `index`'s columns, interleaved within lanes if that is their order."""
        _, _, _, y, run = self.shape
        bits = bits_of(self.element)
        if y != width or not can_interleave_within_lanes(self.tile.lanes, bits, width, run, self.vector_bits):
            return as_words(
                b, interleaved_rows(b, [self.vector(b, group * width + j, index) for j in range(width)]), width
            )
        block, register = divmod(index, width)
        if (group, block) not in self.interleaved:
            rows = [self.tile.regs[group * width + j][block] for j in range(width)]
            self.interleaved[group, block] = interleaved_within_lanes(b, rows, bits, self.vector_bits)
        return as_words(b, self.interleaved[group, block][register], width)


def permuted_columns(b: Builder, tile: Registers, shape: tuple[int, ...], gather: Gather | None = None) -> Registers:
    """A tile with the columns of each row permuted from blocks x `x` x `y` x runs to blocks x `y` x `x` x runs.

    Args:
        b: The builder.
        tile: The tile.
        shape: Its rows, blocks, x, y, and columns of a run.
        gather: Gathers elements of two registers, if the target has an instruction.
    """
    _, _, x, y, run = shape
    size = x * y * run
    order = [(j * y + i) * run + t for i in range(y) for j in range(x) for t in range(run)]
    rows: list[tuple[Value, ...]] = []
    for row in tile.regs:
        line: list[Value] = []
        for start in range(0, tile.cols, tile.lanes):
            columns = [c // size * size + order[c % size] for c in range(start, min(start + tile.lanes, tile.cols))]
            line.append(_gathered(b, row, tile.lanes, columns, gather if run == 1 else None))
        rows.append(tuple(line))
    return Registers(tile.element, tile.rows, tile.cols, tile.lanes, tuple(rows))


def _gathered(b: Builder, row: tuple[Value, ...], lanes: int, columns: list[int], gather: Gather | None) -> Value:
    """One register of a row's columns, gathered from its registers."""
    used = sorted({column // lanes for column in columns})
    if gather is not None and len(columns) == lanes:
        mask = [used.index(c // lanes) * lanes + c % lanes for c in columns]
        if (gathered := gather([row[n] for n in used], mask)) is not None:
            return gathered
    merged = b.shuffle(row[used[0]], None, [c % lanes if c // lanes == used[0] else -1 for c in columns])
    for register in used[1:]:
        mask = [len(columns) + c % lanes if c // lanes == register else i for i, c in enumerate(columns)]
        merged = b.shuffle(merged, row[register], mask)
    return merged


def permuted_bfloat_as_float(
    b: Builder, tile: Registers, shape: tuple[int, ...], *, big_endian: bool
) -> Registers | None:
    """A bfloat tile with permuted columns as float; None unless even and odd columns go to different registers."""
    lanes = shape[2]
    right = RightWithPermutedColumns(tile, shape, lanes, lanes * bits_of(FLOAT), big_endian)
    if not right.are_pairs_of_floats:
        return None
    regs = tuple(tuple(right.floats(b, row, i) for i in range(tile.cols // lanes)) for row in range(tile.rows))
    return Registers(FLOAT, tile.rows, tile.cols, lanes, regs)
