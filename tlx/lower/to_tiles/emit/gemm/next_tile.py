"""What a register tile prefetches for the next ones: rows of C, and parts of A and B."""

from __future__ import annotations

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction
from tlx.lower.to_tiles.emit.gemm.operands import Operands
from tlx.lower.to_tiles.prefetch.policy import L2_LOCALITY, pieces_per_part
from tlx.lower.to_tiles.prefetch.streams import Prefetcher, PrefetchStream


class NextTilePrefetch:
    """Sets what a register tile on vectors prefetches: of the next tile of C, the next block's A and the next panel.

    Attributes:
        function: The kernel's function.
        operands: Where the operands are.
        prefetcher: Emits the prefetches.
    """

    def __init__(self, function: GemmFunction, operands: Operands, prefetcher: Prefetcher) -> None:
        self.function, self.operands, self.prefetcher = function, operands, prefetcher
        self.b, self.gemm, self.recipe = function.b, function.gemm, function.recipe

    def begin_tile(self, block: CacheBlock, ij: tuple[Value, Value], place: tuple[Value, Value], a: Value) -> None:
        """Set what tile (i, j) of a block prefetches."""
        del place, a
        b, gemm, prefetcher, operands = self.b, self.gemm, self.prefetcher, self.recipe.prefetch.operands
        height, width, (i, j) = block.rows.size, block.columns.size, ij
        if "C" in operands:
            last = block.rows is self.function.rows[-1] and block.rows.count * height <= self.recipe.blocks.mc
            row, column = next_tile_position(b, block, i, j, last=last)
            size, by_rows = bytes_of(gemm.c.element), gemm.c.is_row_major
            offset = b.mul(b.add(b.mul(row, gemm.c.row_stride), b.mul(column, gemm.c.col_stride)), size)
            length, each = (width, 1) if by_rows else (height, -(-width // height))
            pitch = gemm.c.pitch * size
            prefetcher.at_parts = PrefetchStream(
                self.function.c, offset, length * size, each * pitch, rows=each, pitch=pitch, locality=L2_LOCALITY
            )
        if "A" in operands:
            size = bytes_of(self.recipe.mma.operand_a)
            share = -(-block.part.size // max(1, self.recipe.blocks.nc // width))
            row = b.add(block.row, b.mul(b.add(i, block.tiles), height))
            base, pitch, start = self.operands.rows_of_a(block.part)
            offset = b.mul(b.add(b.add(b.mul(row, pitch), start), b.mul(j, share)), size)
            prefetcher.over_parts = PrefetchStream(base, offset, share * size, pitch * size, locality=L2_LOCALITY)
        if "B" in operands:
            prefetcher.pieces, prefetcher.over_pieces = self._next_panel(block, i, j)

    def _next_panel(self, block: CacheBlock, i: Value, j: Value) -> tuple[int, PrefetchStream]:
        """The number of pieces of a part, and the rows of the panel after panel `j` that row tile `i` prefetches.

        Each row of the tile prefetches the same number of rows of B. If that is more than B has, the last tiles
        prefetch the last rows again, which are in cache by then.
        """
        b, view = self.b, self.gemm.b
        size = bytes_of(view.element)
        pieces = pieces_per_part(self.recipe, block.part.size, self.gemm.m, self.function.target.core.limits)
        height = block.rows.size
        first = b.mul(b.add(block.row, b.mul(i, height)), pieces)
        row = b.add(b.umin(first, block.part.size - pieces * height), block.part.start)
        column = b.add(block.column, b.mul(b.add(j, 1), block.columns.size))
        offset = b.mul(b.add(b.mul(row, view.row_stride), column), size)
        length, pitch = block.columns.size * size, view.row_stride * size
        return pieces, PrefetchStream(self.function.rhs, offset, length, pitch, locality=L2_LOCALITY)


def next_tile_position(b: TensorBuilder, block: CacheBlock, i: Value, j: Value, *, last: bool) -> tuple[Value, Value]:
    """Row and column of the tile after tile (i, j) of a block: below it, right of it, or in the next block.

    The next block is below this one or, if this one has the `last` rows, at the top of the next columns.
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
    """`same` if both of a pair are equal, else `other`."""
    if isinstance(pair[0], ConstInt) and isinstance(pair[1], ConstInt):
        return same if pair[0] == pair[1] else other
    return b.select(b.icmp("eq", *pair), same, other)
