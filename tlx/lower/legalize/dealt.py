"""Columns dealt out to registers, as instructions on pairs or fours of rows leave them, and put in order again.

`reshape.permute` by (0, 1, 3, 2, 4) exchanges two of a tile's dimensions: its rows are blocks of x times y runs of
columns, and become blocks of y times x runs.

    pairs of bfloat rows, 32 columns, 4 x 2 runs of 4 -> 2 x 4 runs of 4       VPUNPCKLWD, VPUNPCKHWD
    a row of bfloats, 32 columns, 16 x 2 runs of 1 -> 2 x 16 runs of 1         shifted left, masked
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.types import BFLOAT, FLOAT, I32, Type, VectorType, bits_of
from tlx.ir.values import Value, const_ints
from tlx.lower.legalize.operands import as_words
from tlx.lower.legalize.permute import Gather, gathers
from tlx.lower.legalize.registers import Registers
from tlx.lower.legalize.shuffles import interleaved, relaned
from tlx.lower.legalize.vnni import can_unpack, unpacked

DEALING: Final = (0, 1, 3, 2, 4)
_AT_ONCE: Final = 2  # registers that elements are gathered from


@dataclass(eq=False, slots=True)
class DealtRight:
    """A right operand whose columns are dealt out.

    Attributes:
        tile: The rows as they lie.
        shape: How they are seen: rows, blocks, x, y, columns of a run.
        lanes: Elements of the accumulator's registers.
        vector_bits: Width of a register.
    """

    tile: Registers
    shape: tuple[int, ...]
    lanes: int
    vector_bits: int
    made: dict[tuple[int, int], list[Value]] = field(default_factory=dict[tuple[int, int], list[Value]])

    @property
    def element(self) -> Type:
        """Element type."""
        return self.tile.element

    @property
    def are_pairs_of_floats(self) -> bool:
        """Whether every other element goes to the same register, and is the half of a float."""
        _, _, x, y, run = self.shape
        return self.element == BFLOAT and (x, y, run) == (self.lanes, 2, 1) and self.tile.lanes == 2 * self.lanes

    def vector(self, b: Builder, k: int, chunk: int) -> Value:
        """Register `chunk` of row k."""
        found = dealt(b, Registers(self.element, 1, self.tile.cols, self.tile.lanes, (self.tile.regs[k],)), self.shape)
        return relaned(b, found, self.lanes).regs[0][chunk]

    def floats(self, b: Builder, k: int, chunk: int) -> Value:
        """Register `chunk` of row k as floats: the even elements moved up, or the odd ones where they are."""
        wide = VectorType(self.lanes, I32)
        bits = b.cast("bitcast", self.tile.regs[k][chunk // 2], wide)
        if chunk % 2:
            kept = b.binary("and", bits, const_ints(I32, [-(1 << 16)] * self.lanes))
        else:
            kept = b.binary("shl", bits, const_ints(I32, [16] * self.lanes))
        return b.cast("bitcast", kept, VectorType(self.lanes, FLOAT))

    def words(self, b: Builder, group: int, chunk: int, width: int) -> Value:
        """Rows group * width ... of register `chunk`'s columns, interleaved within lanes where that deals them out."""
        _, _, _, y, run = self.shape
        bits = bits_of(self.element)
        if y != width or not can_unpack(self.tile.lanes, bits, width, run, self.vector_bits):
            return as_words(b, interleaved(b, [self.vector(b, group * width + j, chunk) for j in range(width)]), width)
        block, number = divmod(chunk, width)
        if (group, block) not in self.made:
            rows = [self.tile.regs[group * width + j][block] for j in range(width)]
            self.made[group, block] = unpacked(b, rows, bits, self.vector_bits)
        return as_words(b, self.made[group, block][number], width)


def dealt(b: Builder, tile: Registers, shape: tuple[int, ...], gather: Gather | None = None) -> Registers:
    """A tile of the same registers with the columns of each row, seen as blocks x `x` x `y` x runs, dealt out.

    Args:
        b: Where to emit.
        tile: The tile.
        shape: Its rows, blocks, x, y, and columns of a run.
        gather: What gathers elements of two registers, if an instruction does.
    """
    _, _, x, y, run = shape
    size = x * y * run
    places = [(j * y + i) * run + t for i in range(y) for j in range(x) for t in range(run)]
    rows: list[tuple[Value, ...]] = []
    for row in tile.regs:
        line: list[Value] = []
        for start in range(0, tile.cols, tile.lanes):
            wanted = [c // size * size + places[c % size] for c in range(start, min(start + tile.lanes, tile.cols))]
            line.append(_gathered(b, row, tile.lanes, wanted, gather if run == 1 else None))
        rows.append(tuple(line))
    return Registers(tile.element, tile.rows, tile.cols, tile.lanes, tuple(rows))


def _gathered(b: Builder, row: tuple[Value, ...], lanes: int, columns: list[int], gather: Gather | None) -> Value:
    """One register of the columns of a row, which lie in some of its registers."""
    used = sorted({column // lanes for column in columns})
    if gather is not None and len(used) <= _AT_ONCE and len(columns) == lanes and gathers(row[0]):
        return gather([row[n] for n in used], [used.index(c // lanes) * lanes + c % lanes for c in columns])
    found = b.shuffle(row[used[0]], None, [c % lanes if c // lanes == used[0] else -1 for c in columns])
    for number in used[1:]:
        mask = [len(columns) + c % lanes if c // lanes == number else i for i, c in enumerate(columns)]
        found = b.shuffle(found, row[number], mask)
    return found


def pairs_of_floats(b: Builder, tile: Registers, shape: tuple[int, ...]) -> Registers | None:
    """A tile of bfloat with its columns dealt out, as float; None where they do not go to two registers in turn."""
    lanes = shape[2]
    right = DealtRight(tile, shape, lanes, lanes * bits_of(FLOAT))
    if not right.are_pairs_of_floats:
        return None
    made = [tuple(right.floats(b, row, i) for i in range(tile.cols // lanes)) for row in range(tile.rows)]
    return Registers(FLOAT, tile.rows, tile.cols, lanes, tuple(made))
