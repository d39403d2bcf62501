"""Emits prefetches: of later rounds of a loop, of later tiles, of rows of A, of lines of C, of rows read next.

What the kernel of a product in a loop does for the loop's next rounds, and where its own result goes.

The bytes that the next round, or one further on, reads are spread evenly over the steps along K of all tiles:

    tile 0                      tile 1                      tile 2
    k = 0   1   2   3 ...       0   1   2   3 ...           0   1   2   3 ...
    A[i + 1] ------------------------------------------------------------->  a line, or a part of one, in each step
    B[i + 1] ------------------------------------------------------------->

Few rows that meet a B from behind the second cache ask for B's rows of the next pass over K in the same way: a panel
reads a few lines of each row, a page each, but what is asked for lies end to end.

What a register tile asks for on behalf of those behind it: C, A and B, where they come from behind the second cache.

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

Asking for the next row tile of A while one that came from behind the second cache is multiplied by all of B.

    step   multiplied                             asked for, with two panels of B
    0      A[0:32, 0:32] by panel 0               A[32:48, 0:32]
    0      A[0:32, 0:32] by panel 1               A[48:64, 0:32]

The machine itself follows each row on its own, notices it anew in each tile, and stops at the end of each page.
Measured on one core of a Xeon with AMX, 2026-11-22, by filters of 512 x 4608: bfloat 309 -> 283 us, bytes 152 -> 142.
Beside blocks of packed panels, Xeon 6/207/2: bfloat, 1024 cubed 1.04 times as fast, 2048 cubed 1.03; bytes, 2048 1.03.

Asking for the lines of C that a tile of sums goes to, while its products are computed.

    step   multiplied                          asked for, to be written
    0      A[0:32, 0:64] B[0:64, 0:32]         C[0:16, 0:32]
    1      A[0:32, 64:128] B[64:128, 0:32]     C[16:32, 0:32]

A line is read before it is written, and stores wait in order. Where C is not in the first cache, the stores of a tile
take longer than the products of one or two steps of K. Measured in quiet rounds, 128x128x128 bytes: 1.05 times as fast
(Xeon 6/207/2), 1.07 to 1.12 (with AMX-FP16); with four steps or more, stores hide behind the products, and prefetches
only stand in the way of tile loads (256x256x256 bytes 0.9).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block
from tlx.ir.metadata import nontemporal_metadata
from tlx.ir.module import Module
from tlx.ir.types import I8, I64, bytes_of
from tlx.ir.values import ConstInt, Local, Value, const_int
from tlx.lower.to_tiles.emit.expression import ResultTile, tile_address
from tlx.lower.to_tiles.emit.gemm.operands import CacheBlock
from tlx.lower.to_tiles.prefetch.policy import L2_LOCALITY
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.caches import LINE
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, column_ranges, row_ranges


@dataclass(eq=False)
class BatchPrefetch:
    """Emits prefetches, and stores past the caches.

    Attributes:
        b: Where code is emitted.
        pointers: The kernel's: C, A, B, and what is added or an epilogue reads.
        gemm, recipe: What the kernel computes, and how.
        reads: What is asked for, as addresses that others lie so many bytes behind, and how many of those.
    """

    b: TensorBuilder
    pointers: Sequence[Value]
    gemm: Gemm
    recipe: Recipe
    reads: list[tuple[Value, int, int]] = field(default_factory=list[tuple[Value, int, int]])
    _before: int = 0
    _tile: Value = field(default_factory=lambda: const_int(I64, 0))
    _aligned: Value | None = None

    def __post_init__(self) -> None:
        counts = [sum(r.count for r in ranges(self.gemm, self.recipe)) for ranges in (row_ranges, column_ranges)]
        self._steps = -(-min(self.gemm.k, self.recipe.kc) // self.recipe.kstep)
        self._all_steps = counts[0] * counts[1] * self._steps
        if self.gemm.batch is not None and self.recipe.fetch:
            rounds = self.recipe.rounds
            self.reads = [(self.pointers[number], rounds * step, size) for number, step, size in self.gemm.batch.read]
        if self.recipe.past_caches:
            b, size = self.b, self.recipe.lanes * bytes_of(self.gemm.c.element)
            behind = b.binary("and", b.cast("ptrtoint", self.pointers[0], I64), const_int(I64, size - 1))
            self._aligned = b.icmp("eq", behind, const_int(I64, 0))

    def begin(self, base: Value, start: Value, size: int) -> None:
        """A pass over K begins, with so many rows of B from `start` on: those behind them are what it asks for.

        The last one asks for its own, which are near: there are none behind them.
        """
        if not self.recipe.fetch or self.gemm.batch is not None:
            return
        b, view = self.b, self.gemm.b
        last, pitch = self.gemm.k - self.recipe.kc, view.row_stride * bytes_of(view.element)
        following = b.umin(b.add(start, size), last)
        self.reads = [(b.gep(I8, b.retype(base, I8), b.mul(following, pitch)), 0, self.recipe.kc * pitch)]
        self._before = 0

    def enter(self, rows: int, columns: int, ij: tuple[Value, Value]) -> None:
        """A tile begins: row tile i and panel j of so many, behind all tiles before them.

        With no columns it is one of them that is emitted on its own, before the others.
        """
        b, (i, j) = self.b, ij
        if self.recipe.fetch:
            self._tile = b.add(b.add(b.mul(j, rows), i), self._before)
            self._before += rows * columns

    def fetch(self, step: Value) -> None:
        """Ask for what the tile's step `step` is to ask for."""
        if not self.reads:
            return
        b = self.b
        number = b.add(b.mul(self._tile, self._steps), step)
        for pointer, distance, size in self.reads:
            part = -(-size // self._all_steps)
            start = b.mul(number, part)
            for line in range(0, part, LINE):
                b.prefetch(pointer, b.add(start, distance + line), self.recipe.fetch)

    def store(self, address: Value, token: Local, pitch: int) -> None:
        """Store a tile of C, past the caches where that is asked for and C is aligned."""
        b = self.b
        if self._aligned is None:
            b.tensor_store(address, token, (0, pitch))
            return
        past = b.new_block("past", b.block)
        usual = b.new_block("usual", past)
        stored = b.new_block("stored", usual)
        b.branch_if(self._aligned, past, usual)
        for block, mark in ((past, nontemporal_metadata(b.module)), (usual, "")):
            b.at_end(block)
            b.tensor_store(address, token, (0, pitch), metadata=mark)
            b.branch(stored)
        b.at_end(stored)


def insert_fences(module: Module, nests: Collection[Function], kernels: Collection[str]) -> None:
    """Have a fence behind all rounds of the loops around kernels that store past the caches.

    Args:
        module: Where they are.
        nests: Functions that are such a loop.
        kernels: Names of the kernels; where they are called outside of nests, a fence follows each call.
    """
    for function in module.functions if kernels else ():
        for block in function.blocks:
            calls = [index for index, i in enumerate(block.instructions) if i.callee in kernels]
            if calls and function in nests:
                _fence(module, function, function.blocks[-1], 0)
                break
            for index in reversed(calls):
                _fence(module, function, block, index + 1)


def _fence(module: Module, function: Function, block: Block, index: int) -> None:
    b = Builder(module, function, block)
    b.index = index
    b.fence()


def next_tile_position(b: TensorBuilder, block: CacheBlock, i: Value, j: Value, *, last: bool) -> tuple[Value, Value]:
    """Row and column of the tile behind tile (i, j) of a block: below it, right of it, or in the next block.

    That is below, too, or where a block has the `last` rows, at the top of the next columns.
    """
    nothing = const_int(I64, 0)
    below = b.add(i, 1)
    beside = _select_pair(b, (below, block.tiles), b.add(j, 1), j)
    below = _select_pair(b, (below, block.tiles), nothing, below)
    ends = beside, block.panels
    if not last:
        below = _select_pair(b, ends, block.tiles, below)
        beside = _select_pair(b, ends, nothing, beside)
    row, column = b.mul(below, block.rows.size), b.mul(beside, block.columns.size)
    row = b.add(block.row, row)
    return _select_pair(b, ends, nothing, row) if last else row, b.add(block.column, column)


def _select_pair(b: TensorBuilder, pair: tuple[Value, Value], same: Value, other: Value) -> Value:
    """One value where both of a pair are the same, else the other one."""
    if isinstance(pair[0], ConstInt) and isinstance(pair[1], ConstInt):
        return same if pair[0] == pair[1] else other
    return b.select(b.icmp("eq", *pair), same, other)


@dataclass(frozen=True, slots=True)
class PrefetchStrip:
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


class NextTilePrefetch:
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
        self.at_once: PrefetchStrip | None = None
        self.by_steps: PrefetchStrip | None = None
        self.by_pieces: PrefetchStrip | None = None
        self.pieces = 1
        self._walks: list[_Walk] = []

    def begin(self, row: Value, start: Value, steps: int) -> None:
        """A part begins: `steps` steps from `start` on, for a row."""
        b, strip = self.b, self.at_once
        if strip is not None:
            here = b.add(strip.offset, b.mul(row, strip.each * strip.pitch))
            for number, line in product(range(strip.each), range(0, strip.size, LINE)):
                b.prefetch(strip.base, b.add(here, number * strip.pitch + line), L2_LOCALITY)
        self._walks = self._walk(self.by_steps, row, start, steps)

    def begin_piece(self, row: Value, start: Value, steps: int) -> None:
        """A piece of a part begins: `steps` steps from `start` on, for a row of its own."""
        self._walks = [*self._walks, *self._walk(self.by_pieces, row, start, steps)]

    def _walk(self, strip: PrefetchStrip | None, row: Value, start: Value, steps: int) -> list[_Walk]:
        if strip is None:
            return []
        b, each = self.b, -(-strip.size // steps)
        return [_Walk(strip.base, b.add(strip.offset, b.sub(b.mul(row, strip.pitch), b.mul(start, each))), each)]

    def step(self, number: Value) -> None:
        """A step of a part."""
        for walk in self._walks:
            here = self.b.add(walk.offset, self.b.mul(number, walk.each))
            for line in range(0, walk.each, LINE):
                self.b.prefetch(walk.base, self.b.add(here, line), L2_LOCALITY)

    def end(self) -> None:
        """The parts are done."""
        self._walks = []


class RowsOfAPrefetch:
    """Emits the prefetches of one kernel: some rows with each panel.

    Attributes:
        each: How many.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, panels: int) -> None:
        self.b = b
        self.view = gemm.a
        self.height = recipe.mr
        self.each = -(-recipe.mr // panels)
        self._first: Value | None = None

    def enter(self, panel: Value) -> None:
        """The products with a panel begin."""
        b = self.b
        self._first = b.mul(b.add(b.mul(panel, self.each), self.height), self.view.row_stride)

    def fetch(self, base: Value, k: Value) -> None:
        """Ask for what lies below a step of K of the row tile from `base` on; it need not exist."""
        b, size = self.b, bytes_of(self.view.element)
        assert self._first is not None
        behind = b.mul(b.add(self._first, k), size)
        for row in range(self.each):
            b.prefetch(base, b.add(behind, row * self.view.row_stride * size), L2_LOCALITY)


class CLinesPrefetch:
    """Emits the prefetches of one kernel: as many rows with each step along K."""

    def __init__(self, b: TensorBuilder, gemm: Gemm, steps: int) -> None:
        self.b = b
        self.view = gemm.c
        self.steps = steps
        self._place: tuple[Value, EqualTiles, EqualTiles] | None = None

    def enter(self, address: Value, rows: EqualTiles, columns: EqualTiles) -> None:
        """The products of the tile at an address begin."""
        self._place = address, rows, columns

    def fetch(self, step: Value) -> None:
        """Ask for a step's rows; those behind the last one are the last ones again."""
        assert self._place is not None
        b, (address, rows, columns) = self.b, self._place
        size = bytes_of(self.view.element)
        each = -(-rows.data // self.steps)
        first = b.umin(b.mul(step, each), rows.data - each)
        behind = b.mul(first, self.view.row_stride * size)
        for row in range(each):
            for line in range(0, columns.data * size, LINE):
                b.prefetch(address, b.add(behind, row * self.view.row_stride * size + line), write=True)


@dataclass(frozen=True, slots=True)
class RowPrefetch:
    """What is read soon.

    Attributes:
        base, view: The matrix that is read.
        distance: Bytes from what is read now to what is prefetched.
    """

    base: Value
    view: MatrixView
    distance: int


def prefetch_rows(b: TensorBuilder, prefetches: Sequence[RowPrefetch], place: ResultTile) -> None:
    """Prefetch the lines of what is read soon, for a tile that is read now."""
    for each in prefetches:
        for row in range(place.rows):
            at = replace(place, row=b.add(place.row or const_int(I64, 0), row))
            start = tile_address(b, each.view, each.base, at)
            for line in range(0, place.cols * bytes_of(each.view.element), LINE):
                b.prefetch(start, each.distance + line)
