"""The code for software prefetches: streams of memory that are requested along with a loop.

The kernel of a product requests one of these, as `policy` decides:

1. A product in a loop: what a later iteration reads, spread evenly over the steps along K of all tiles. A product of
   few rows whose B misses L2 requests B's rows of the next pass over K in the same way: a panel reads a few lines of
   each row, each in a page of its own, but the requests are sequential.

    tile 0                      tile 1                      tile 2
    k = 0   1   2   3 ...       0   1   2   3 ...           0   1   2   3 ...
    A[i + 1] ------------------------------------------------------------->  a line, or a part of one, in each step
    B[i + 1] ------------------------------------------------------------->

2. A register tile of a large product: C, A and B of later tiles. The sum over K is cut into as many parts as the tile
   has rows. Part s requests row s of the next tile of C, or as large a share of its columns. Each of its steps requests
   some bytes of row s of a tile of A in the next block of rows; all panels together request whole rows. If B is not
   packed, each piece of a part requests, step by step, a row of the next panel; all row tiles together request all of
   its rows.

    part 0    C[next tile][0]    step by step A[i + tiles][0], share j
      piece 0                    step by step B[first(i)][j + 1]
      piece 1                    step by step B[first(i) + 1][j + 1]
    part 1    C[next tile][1]    step by step A[i + tiles][1], share j
    ...

   Otherwise each tile waits for C when it begins, the first panel waits for A, and the first row tile for B: it reads
   only a few lines of each row of B. Measured on one core of a Xeon with AMX, without and with them: double, 2048
   cubed 69 and 75 G/s, 1024x4096x4096 69 and 75; float, share of the peak, 128x3136x256 92 and 96 %, 64x3136x256
   91 and 98, 256x3136x64 91 and 98.

3. A tile of a matrix unit: some rows of the next row tile of A with each panel of B. The hardware prefetcher follows
   each row separately, has to detect it again in each tile, and stops at the end of each page.

    step   multiplied                             requested, with two panels of B
    0      A[0:32, 0:32] by panel 0               A[32:48, 0:32]
    0      A[0:32, 0:32] by panel 1               A[48:64, 0:32]

   Measured on one core of a Xeon with AMX, 2026-11-22, by filters of 512 x 4608: bfloat 309 -> 283 us, bytes 152 -> 142
   us. With blocks of packed panels (Xeon 6/207/2): bfloat, 1024 cubed 1.04 times as fast, 2048 cubed 1.03; bytes, 2048
   cubed 1.03.

4. A tile of a matrix unit with few products: the lines of C that its sums are stored to. A line is read before it is
   written, and stores retire in order; where C is not in L1, the stores of a tile take longer than the products of one
   or two steps of K.

    step   multiplied                          requested, to be written
    0      A[0:32, 0:64] B[0:64, 0:32]         C[0:16, 0:32]
    1      A[0:32, 64:128] B[64:128, 0:32]     C[16:32, 0:32]

   Measured without other load, 128x128x128 bytes: 1.05 times as fast (Xeon 6/207/2), 1.07 to 1.12 (with AMX-FP16); with
   four steps or more, stores hide behind the products, and prefetches only delay tile loads (256x256x256 bytes 0.9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I8, I64, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.tiles import ResultTile, tile_address
from tlx.lower.to_tiles.prefetch.policy import L1_LOCALITY
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.views import MatrixView
from tlx.lower.to_tiles.select.recipe import Recipe, column_ranges, row_ranges


@dataclass(frozen=True, slots=True)
class PrefetchStream:
    """Blocks of memory that are requested step by step: `rows` rows of `size` bytes each. They need not be mapped.

    Attributes:
        base: An address.
        offset: Bytes from it to the block of step 0.
        size: Bytes of a row.
        advance: Bytes from the block of a step to that of the next one.
        last: The most that blocks advance: later steps request the last block again; 0 for no limit.
        rows: Rows of a block.
        pitch: Bytes from row to row.
        locality: Which caches are filled; see `policy`.
        write: Whether the memory is to be written, else read.
    """

    base: Value
    offset: Value
    size: int
    advance: int = 0
    last: int = 0
    rows: int = 1
    pitch: int = 0
    locality: int = L1_LOCALITY
    write: bool = False

    def emit(self, b: TensorBuilder, line: int, step: Value | None = None) -> None:
        """Request the block of a step, in cache lines of `line` bytes."""
        advance = b.mul(step, self.advance) if step is not None else const_int(I64, 0)
        start = b.add(self.offset, b.umin(advance, self.last) if self.last else advance)
        for row in range(self.rows):
            for start_of_line in range(0, self.size, line):
                b.prefetch(self.base, b.add(start, row * self.pitch + start_of_line), self.locality, write=self.write)

    def spread(self, b: TensorBuilder, number: Value, first: Value, steps: int) -> PrefetchStream:
        """The stream that requests row `number` of this one piece by piece, in `steps` steps from step `first` on."""
        each = -(-self.size // steps)
        offset = b.add(self.offset, b.sub(b.mul(number, self.advance), b.mul(first, each)))
        return replace(self, offset=offset, size=each, advance=each)


class Prefetcher:
    """Emits the prefetches of a product's kernel: those of its streams, in each step along K of a tile.

    Attributes:
        streams: What the steps of the tile request.
        at_parts: What a tile requests at the beginning of each part of K: one row.
        over_parts, over_pieces: Rows that are requested step by step: one by each part, and one by each piece of a
            part.
        pieces: Pieces of a part.
        line: Bytes of a cache line.
    """

    def __init__(self, b: TensorBuilder, pointers: Sequence[Value], gemm: Gemm, recipe: Recipe, line: int) -> None:
        self.b = b
        self.line = line
        self.gemm = gemm
        self.recipe = recipe
        self.streams: list[PrefetchStream] = []
        self.at_parts: PrefetchStream | None = None
        self.over_parts: PrefetchStream | None = None
        self.over_pieces: PrefetchStream | None = None
        self.pieces = 1
        self._later: list[tuple[Value, int, int]] = []  # address, distance, and bytes of what all tiles share
        self._tiles_before = 0
        self._steps = -(-min(gemm.k, recipe.blocks.kc) // recipe.tile.kstep)
        tiles = [sum(r.count for r in ranges(gemm, recipe)) for ranges in (row_ranges, column_ranges)]
        self._all_steps = tiles[0] * tiles[1] * self._steps
        if gemm.batch is not None and recipe.prefetch.locality:
            distance = recipe.prefetch.distance
            self._later = [(pointers[number], distance * step, size) for number, step, size in gemm.batch.read]

    def begin_pass(self, base: Value, start: Value, size: int) -> None:
        """Begin a pass over `size` rows of B from `start` on: its tiles share the prefetching of the next pass's rows.

        The last pass requests its own rows, which are in cache, since no rows follow them.
        """
        if not self.recipe.prefetch.locality or self.gemm.batch is not None:
            return
        b, view = self.b, self.gemm.b
        last, pitch = self.gemm.k - self.recipe.blocks.kc, view.row_stride * bytes_of(view.element)
        following = b.umin(b.add(start, size), last)
        self._later = [(b.gep(I8, b.retype(base, I8), b.mul(following, pitch)), 0, self.recipe.blocks.kc * pitch)]
        self._tiles_before = 0

    def begin_tile(self, rows: int, columns: int, ij: tuple[Value, Value]) -> None:
        """Begin row tile i by panel j of a range of `rows` by `columns` tiles, after the tiles of earlier ranges.

        With 0 columns it is a tile that is emitted separately, before the others of its range.
        """
        self.streams = []
        if not self._later:
            return
        b, (i, j) = self.b, ij
        tile = b.add(b.add(b.mul(j, rows), i), self._tiles_before)
        self._tiles_before += rows * columns
        for pointer, distance, size in self._later:
            part = -(-size // self._all_steps)
            offset = b.add(b.mul(tile, self._steps * part), distance)
            self.streams.append(PrefetchStream(pointer, offset, part, part, locality=self.recipe.prefetch.locality))

    def begin_part(self, number: Value, first: Value, steps: int) -> None:
        """Begin part `number` of K: `steps` steps from step `first` on."""
        if self.at_parts is not None:
            self.at_parts.emit(self.b, self.line, number)
        self.streams = self._spread(self.over_parts, number, first, steps)

    def begin_piece(self, number: Value, first: Value, steps: int) -> None:
        """Begin piece `number` of K, a part of a part: `steps` steps from step `first` on."""
        self.streams = [*self.streams, *self._spread(self.over_pieces, number, first, steps)]

    def _spread(self, stream: PrefetchStream | None, number: Value, first: Value, steps: int) -> list[PrefetchStream]:
        return [] if stream is None else [stream.spread(self.b, number, first, steps)]

    def end_parts(self) -> None:
        """End the parts: later steps request nothing."""
        self.streams = []

    def step(self, number: Value) -> None:
        """Emit the prefetches of a step along K."""
        for stream in self.streams:
            stream.emit(self.b, self.line, number)


@dataclass(frozen=True, slots=True)
class RowPrefetch:
    """A matrix whose rows are prefetched ahead of the reads.

    Attributes:
        base, view: The matrix.
        distance: Bytes from the read to the prefetch.
        line: Bytes of a cache line.
    """

    base: Value
    view: MatrixView
    distance: int
    line: int


def prefetch_rows(b: TensorBuilder, prefetches: Sequence[RowPrefetch], place: ResultTile) -> None:
    """Prefetch ahead of a tile that is read."""
    for each in prefetches:
        size = bytes_of(each.view.element)
        start, distance = tile_address(b, each.view, each.base, place), const_int(I64, each.distance)
        rows, pitch = place.rows, each.view.row_stride * size
        PrefetchStream(start, distance, place.cols * size, rows=rows, pitch=pitch).emit(b, each.line)
