"""What a register tile asks for on behalf of those behind it: C, A and B, where they come from behind the second cache.

The sum over K is cut into as many parts as the tile has rows. Part s asks for row s of the next tile of C, or for as
large a share of its columns, and each of its steps for some bytes of row s of a tile of A in the next block of rows;
all panels together ask for whole rows. Of a B that is read as it lies, each piece of a part asks, step by step, for a
row of the next panel, and all row tiles together for all rows:

    part 0    C[next tile][0]    step by step A[i + tiles][0], share j
      piece 0                    step by step B[first(i)][j + 1]
      piece 1                    step by step B[first(i) + 1][j + 1]
    part 1    C[next tile][1]    step by step A[i + tiles][1], share j
    ...

Else a tile waits for C when it begins, the first panel for A, and the first row tile for B, of which it reads a few
lines of each row (measured: Xeon with AMX, one core. Double: 2048 cubed 69 and 75 G/s, 1024x4096x4096 69 and 75. Float,
share of the peak: 128x3136x256 92 and 96 %, 64x3136x256 91 and 98, 256x3136x64 91 and 98).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.to_tiles.batch import SECOND
from tlx.lower.to_tiles.blocks import row_ranges
from tlx.lower.to_tiles.memory import LINE
from tlx.lower.to_tiles.operands import Block
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.target import Core, Target

_SHORTEST: Final = 8
"""Steps of a part."""

_SHORTEST_PIECE: Final = 4
"""Steps of a piece of a part."""

_AROUND: Final = 4
"""Instructions of a step beside products and their loads: counter, comparison, branch, the prefetch of B."""

_ADDED: Final = 3
"""Instructions that a part adds to a step: an address of B (the counter begins anew), a prefetch and its address."""


def is_alone(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether nothing else is asked for: a product that is no round of a loop, nor one of several of a sum."""
    return gemm.batch is None and len(gemm.sums) == 1 and not recipe.fetch


def asked_for(gemm: Gemm, recipe: Recipe, target: Target) -> str:
    """The operands that tiles ask for on behalf of those behind them: some of "CAB"."""
    a, b, c = (view.moves for view in (gemm.a, gemm.b, gemm.c))
    near = target.caches.l2
    if not is_alone(gemm, recipe) or a + b + c <= near or recipe.kc // recipe.kstep < _SHORTEST * recipe.mr:
        return ""
    if not _has_room(recipe, target.core):
        return ""
    in_rows = recipe.whole_a if recipe.pack_a else gemm.a.is_row_major
    as_it_lies = not recipe.pack_b and recipe.kstep == gemm.b.col_stride == 1 and _panels_meet_all(gemm, recipe)
    wanted = {
        "A": in_rows and a > near // 4,
        "B": as_it_lies and b > near // 4 and a + b + c > near * 5 // 4,
    }
    return "C" + "".join(operand for operand, is_wanted in wanted.items() if is_wanted)


def _panels_meet_all(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether a panel may meet all row tiles before the next one does, and they can ask for all its rows.

    Where only some meet it, B is near for all others.
    """
    ranges = row_ranges(gemm, recipe)
    several = sum(rows.count for rows in ranges) >= _SHORTEST_PIECE
    return several and all(rows.count <= recipe.mc // rows.size for rows in ranges)


def pieces_of_parts(recipe: Recipe, steps: int, rows: int) -> int:
    """Pieces of each part, and so rows of B that it asks for: all rows together, where pieces are long enough.

    Args:
        recipe: A tile has as many parts as rows.
        steps: Steps along K of a tile, as many as B has rows.
        rows: Rows of A that a panel meets.
    """
    return max(1, min(-(-steps // rows), steps // (_SHORTEST_PIECE * recipe.mr)))


def _has_room(recipe: Recipe, core: Core) -> bool:
    """Whether a step can issue what a part adds to it in the cycles of its products.

    6x16 floats in 16 registers leave nothing on Haswell: 12 products, 8 loads and 4 of the loop fill its 6 cycles.
    """
    vectors = recipe.nr // recipe.lanes
    products = recipe.mr * vectors
    return products + recipe.mr + vectors + _AROUND + _ADDED <= core.width * products / core.products


def following(b: TensorBuilder, block: Block, i: Value, j: Value, *, last: bool) -> tuple[Value, Value]:
    """Row and column of the tile behind tile (i, j) of a block: below it, right of it, or in the next block.

    That is below, too, or where a block has the `last` rows, at the top of the next columns.
    """
    nothing = const_int(I64, 0)
    below = b.add(i, 1)
    beside = _either(b, (below, block.tiles), b.add(j, 1), j)
    below = _either(b, (below, block.tiles), nothing, below)
    ends = beside, block.panels
    if not last:
        below = _either(b, ends, block.tiles, below)
        beside = _either(b, ends, nothing, beside)
    row, column = b.mul(below, block.rows.size), b.mul(beside, block.columns.size)
    row = b.add(block.row, row)
    return _either(b, ends, nothing, row) if last else row, b.add(block.column, column)


def _either(b: TensorBuilder, pair: tuple[Value, Value], same: Value, other: Value) -> Value:
    """One value where both of a pair are the same, else the other one."""
    if isinstance(pair[0], ConstInt) and isinstance(pair[1], ConstInt):
        return same if pair[0] == pair[1] else other
    return b.select(b.icmp("eq", *pair), same, other)


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows of memory, which may lie behind the end of what is there.

    Attributes:
        base: An address.
        offset: Bytes from it to the first row.
        pitch: Bytes from a row to the next.
        size: Bytes that are asked for of each.
        each: Rows that are asked for together.
    """

    base: Value
    offset: Value
    pitch: int
    size: int
    each: int = 1


@dataclass(frozen=True, slots=True)
class _Walk:
    """A row that is asked for step by step.

    Attributes:
        base: An address.
        offset: Bytes from it to what step 0 asks for.
        each: Bytes that each step asks for.
    """

    base: Value
    offset: Value
    each: int


class NextTile:
    """Emits the prefetches of one tile after the other.

    Attributes:
        b: Where code is emitted.
        at_once: Rows that are asked for when a part begins.
        by_steps: Rows that are asked for step by step, one by each part.
        by_pieces: As much, one by each piece of a part.
        pieces: Pieces of a part.
    """

    def __init__(self, b: TensorBuilder) -> None:
        self.b = b
        self.at_once: Strip | None = None
        self.by_steps: Strip | None = None
        self.by_pieces: Strip | None = None
        self.pieces = 1
        self._walks: list[_Walk] = []

    def begin(self, row: Value, start: Value, steps: int) -> None:
        """A part begins: `steps` steps from `start` on, for a row."""
        b, strip = self.b, self.at_once
        if strip is not None:
            here = b.add(strip.offset, b.mul(row, strip.each * strip.pitch))
            for number, line in product(range(strip.each), range(0, strip.size, LINE)):
                b.prefetch(strip.base, b.add(here, number * strip.pitch + line), SECOND)
        self._walks = self._walk(self.by_steps, row, start, steps)

    def begin_piece(self, row: Value, start: Value, steps: int) -> None:
        """A piece of a part begins: `steps` steps from `start` on, for a row of its own."""
        self._walks = [*self._walks, *self._walk(self.by_pieces, row, start, steps)]

    def _walk(self, strip: Strip | None, row: Value, start: Value, steps: int) -> list[_Walk]:
        if strip is None:
            return []
        b, each = self.b, -(-strip.size // steps)
        return [_Walk(strip.base, b.add(strip.offset, b.sub(b.mul(row, strip.pitch), b.mul(start, each))), each)]

    def step(self, number: Value) -> None:
        """A step of a part."""
        for walk in self._walks:
            here = self.b.add(walk.offset, self.b.mul(number, walk.each))
            for line in range(0, walk.each, LINE):
                self.b.prefetch(walk.base, self.b.add(here, line), SECOND)

    def end(self) -> None:
        """The parts are done."""
        self._walks = []
