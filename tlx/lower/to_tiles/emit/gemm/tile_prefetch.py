"""What a register tile prefetches for the tiles after it, on vectors and on a matrix unit.

Where prefetches are profitable is decided in `tlx.lower.to_tiles.prefetch`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.to_tiles.emit.gemm.epilogue import TileEpilogue
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction
from tlx.lower.to_tiles.emit.gemm.matrix_operands import MatrixUnitOperands
from tlx.lower.to_tiles.emit.gemm.operands import Operands
from tlx.lower.to_tiles.emit.kernel import AxisBounds, loop_over_blocks
from tlx.lower.to_tiles.prefetch import L2_LOCALITY, Prefetcher, PrefetchStream, pieces_per_part


class VectorTilePrefetch:
    """Sets what a vector kernel's register tile prefetches: the next tile of C, the next block's A, the next panel.

    Attributes:
        function: The kernel's function.
        operands: Where the operands are.
        prefetcher: Emits the prefetches.
        epilogue: The epilogue, whose matrices are prefetched, too: a row of the tile with each part of K.
    """

    epilogue: TileEpilogue | None = None

    def __init__(self, function: GemmFunction, operands: Operands, prefetcher: Prefetcher) -> None:
        self.function, self.operands, self.prefetcher = function, operands, prefetcher
        self.b, self.gemm, self.recipe = function.b, function.gemm, function.recipe

    def begin_tile(self, block: CacheBlock, ij: tuple[Value, Value], position: tuple[Value, Value], a: Value) -> None:
        """Set what tile (i, j) of a block prefetches."""
        del a
        b, gemm, prefetcher, operands = self.b, self.gemm, self.prefetcher, self.recipe.prefetch.operands
        height, width, (i, j) = block.rows.size, block.columns.size, ij
        if "C" in operands:
            last = block.rows is self.function.rows[-1] and block.rows.count * height <= self.recipe.blocks.mc
            row, column = next_tile_position(b, block, i, j, last=last)
            sums = self.function.sums
            view, base = (gemm.c, self.function.c)
            if self.function.splits_k:
                view, base = sums.view, sums.memory.pointer
            size, by_rows = bytes_of(view.element), view.is_row_major
            offset = b.mul(b.add(b.mul(row, view.row_stride), b.mul(column, view.col_stride)), size)
            length, each = (width, 1) if by_rows else (height, -(-width // height))
            pitch = view.pitch * size
            prefetcher.at_parts = [
                PrefetchStream(base, offset, length * size, each * pitch, rows=each, pitch=pitch, locality=L2_LOCALITY)
            ]
            if self.epilogue is not None and block.k_pass.is_last:
                prefetcher.at_parts += self.epilogue.prefetches(block.rows, block.columns, position, height)
        if "A" in operands:
            size = bytes_of(self.recipe.mma.operand_a)
            count = -(-block.k_pass.size // max(1, self.recipe.blocks.nc // width))
            row = b.add(block.row, b.mul(b.add(i, block.tiles), height))
            base, pitch, start = self.operands.rows_of_a(block.k_pass)
            offset = b.mul(b.add(b.add(b.mul(row, pitch), start), b.mul(j, count)), size)
            prefetcher.over_parts = PrefetchStream(base, offset, count * size, pitch * size, locality=L2_LOCALITY)
        if "B" in operands:
            prefetcher.pieces, prefetcher.over_pieces = self._next_panel(block, i, j)

    def _next_panel(self, block: CacheBlock, i: Value, j: Value) -> tuple[int, PrefetchStream]:
        """The number of pieces of a part, and the rows of panel `j + 1` that row tile `i` prefetches.

        Each row of the tile prefetches the same number of rows of B. Where these exceed the rows of B, the last tiles
        prefetch the last rows again, which are cached by then.
        """
        b, view = self.b, self.gemm.b
        size = bytes_of(view.element)
        pieces = pieces_per_part(self.recipe, block.k_pass.size, self.gemm.m, self.function.target.core.limits)
        height = block.rows.size
        first = b.mul(b.add(block.row, b.mul(i, height)), pieces)
        row = b.add(b.umin(first, block.k_pass.size - pieces * height), block.k_pass.start)
        column = b.add(block.column, b.mul(b.add(j, 1), block.columns.size))
        offset = b.mul(b.add(b.mul(row, view.row_stride), column), size)
        length, pitch = block.columns.size * size, view.row_stride * size
        return pieces, PrefetchStream(self.function.rhs, offset, length, pitch, locality=L2_LOCALITY)


def next_tile_position(b: TensorBuilder, block: CacheBlock, i: Value, j: Value, *, last: bool) -> tuple[Value, Value]:
    """Row and column of the tile after tile (i, j) of a block: below it, right of it, or in the next block.

    The next block is below this one or, if this one contains the `last` rows, at the top of the next columns.
    """
    nothing = const_int(I64, 0)
    below = b.add(i, 1)
    panel = _select_pair(b, (below, block.tiles), b.add(j, 1), j)
    below = _select_pair(b, (below, block.tiles), nothing, below)
    ends = panel, block.panels
    if not last:
        below = _select_pair(b, ends, block.tiles, below)
        panel = _select_pair(b, ends, nothing, panel)
    row, column = b.mul(below, block.rows.size), b.mul(panel, block.columns.size)
    row = b.add(block.row, row)
    return _select_pair(b, ends, nothing, row) if last else row, b.add(block.column, column)


def _select_pair(b: TensorBuilder, pair: tuple[Value, Value], same: Value, other: Value) -> Value:
    """`same` if the values of a pair are equal, else `other`."""
    if isinstance(pair[0], ConstInt) and isinstance(pair[1], ConstInt):
        return same if pair[0] == pair[1] else other
    return b.select(b.icmp("eq", *pair), same, other)


class RowBlock:
    """A block of rows of A, which stays in L2 while all of B is read.

    Attributes:
        total: All row tiles.
        most: Row tiles of a block; all of them unless B is prefetched and A is larger than the cache.
        tiles: Row tiles of the block that is being multiplied.
    """

    def __init__(self, function: GemmFunction) -> None:
        recipe = function.recipe
        self.total = sum(rows.count for rows in function.rows)
        blocked = "B" in recipe.prefetch.operands and recipe.blocks.mc < function.gemm.m
        self.most = recipe.blocks.mc // recipe.tile.mr if blocked else self.total
        self.tiles = function.share.rows

    @contextmanager
    def loop(self, b: TensorBuilder) -> Generator[None]:
        """A loop over the blocks, if there are several."""
        if self.most >= self.total:
            yield
            return
        bounds = self.tiles.first or const_int(I64, 0), self.tiles.end or const_int(I64, self.total)
        with loop_over_blocks(b, bounds, self.most, "ic") as (first, tiles):
            self.tiles = AxisBounds(first, b.add(first, tiles))
            yield


_LINES_BETWEEN_RUNS: Final = 5
"""Lines between two runs of prefetches, which the hardware prefetches after the first run.

With them, the runs reach the ends of their pages one after the other.
"""


class MatrixTilePrefetch:
    """Sets what a tile prefetches: cache lines of C, a share of the next block of B, rows of the next row tile of A.

    Attributes:
        function: The kernel's function.
        operands: Packs the operands.
        prefetcher: Emits the prefetches.
        row_block: The block of rows that the tile is in.
        by_rows: Whether a row tile is multiplied by the panels of all widths before the next one starts.
    """

    def __init__(
        self,
        function: GemmFunction,
        operands: MatrixUnitOperands,
        prefetcher: Prefetcher,
        row_block: RowBlock,
        *,
        by_rows: bool,
    ) -> None:
        self.function, self.operands, self.prefetcher = function, operands, prefetcher
        self.row_block, self.by_rows = row_block, by_rows

    def begin_tile(self, block: CacheBlock, ij: tuple[Value, Value], position: tuple[Value, Value], a: Value) -> None:
        """Begin a tile; arguments as those of `BeginTile`."""
        b, gemm, recipe, ranges = self.function.b, self.function.gemm, self.function.recipe, self.function.columns
        if recipe.stores.prefetches_lines:
            size, each = bytes_of(gemm.c.element), -(-block.rows.valid // self.operands.steps)
            pitch, length = gemm.c.row_stride * size, block.columns.valid * size
            address, none = self.function.at(gemm.c, self.function.c, *position), const_int(I64, 0)
            last = (block.rows.valid - each) * pitch
            lines = PrefetchStream(address, none, length, each * pitch, last, each, pitch, write=True)
            self.prefetcher.streams.append(lines)
        if "B" in recipe.prefetch.operands:
            self.prefetcher.streams.append(self._next_panels(block, ij))
        if "A" in recipe.prefetch.operands:
            counts = [self.operands.at_a_time(columns) for columns in ranges]  # panels between two row tiles
            size, each = bytes_of(gemm.a.element), -(-recipe.tile.mr // (sum(counts) if self.by_rows else max(counts)))
            before = [columns.count for columns in ranges if columns.start < block.columns.start]
            panel, pitch = b.add(ij[1], sum(before) if self.by_rows else 0), gemm.a.row_stride * size
            offset = b.mul(b.add(b.mul(panel, each), recipe.tile.mr), pitch)
            step = recipe.tile.kstep * size
            rows = PrefetchStream(a, offset, 1, step, rows=each, pitch=pitch, locality=L2_LOCALITY)
            self.prefetcher.streams.append(rows)

    def _next_panels(self, block: CacheBlock, ij: tuple[Value, Value]) -> PrefetchStream:
        """What a tile prefetches of the next block of B: all tiles of a block together prefetch as many panels.

        The next block is cut into as many runs as a step prefetches lines, and each step prefetches a line of each run.
        """
        function, (i, j) = self.function, ij
        b, recipe, steps, line = function.b, function.recipe, self.operands.steps, function.target.caches.line_bytes
        before = sum(rows.count for rows in function.rows if rows.start < block.rows.start)
        step = recipe.tile.kstep * block.columns.size * bytes_of(recipe.mma.operand_b)
        tiles = self.row_block.most
        row = b.sub(b.add(i, before), self.row_block.tiles.first or const_int(I64, 0))
        tile = b.add(b.mul(row, block.panels), j)
        ahead = b.add(b.mul(block.panels, step * steps), b.mul(tile, steps * line))
        first = self.operands.b_address(block, const_int(I64, 0), block.column)
        runs, run = -(-step // (tiles * line)), tiles * self.operands.at_a_time(block.columns) * steps * line
        pitch = run + _LINES_BETWEEN_RUNS * line
        return PrefetchStream(first, ahead, line, line, rows=runs, pitch=pitch, locality=L2_LOCALITY)
