"""Software prefetch and non-temporal stores of products: where they are profitable, and the code for them.

for i: C[i] = A[i] @ B[i]           in iteration i, between its multiply-adds: prefetch A[i + 1], B[i + 1]

Where an iteration takes less time than the memory latency, it prefetches for an iteration after the next one. On a
matrix unit, that is slower: 10,000 products of 16x16x16 bfloat take 1.07 times as long with a distance of three
iterations (Xeon 6/207/2).

    all of A, B and C fit               operands are
    L2                                  not prefetched
    the last-level cache                prefetched: into L1 if two iterations fit there, else into L2
    neither                             prefetched, and C is written by non-temporal stores if aligned at run time

Measured on one Sapphire Rapids core, 2026-11-22, float: 10,000 products of 16x16x16 (30 MB) gain 4 % by prefetching;
those of 32x32x32 (120 MB) gain 37 % and, with the stores, 60 %. See `MemoryModel.retained_l3_bytes`, too.

A loop prefetches streams of memory, some bytes in each step. The kernel of a product has one of these kinds of streams:

1. A product in a loop: what a later iteration reads, spread evenly over the steps along K of all tiles. A product of
   few rows whose B misses L2 prefetches B's rows of the next pass over K in the same way: a panel reads a few lines of
   each row, each in a different page, but the prefetches are sequential.

    tile 0                      tile 1                      tile 2
    k = 0   1   2   3 ...       0   1   2   3 ...           0   1   2   3 ...
    A[i + 1] ------------------------------------------------------------->  a line, or a part of one, in each step
    B[i + 1] ------------------------------------------------------------->

   A product of few rows that streams a B that exceeds half of L2 prefetches, in each step, the lines of the next step
   that are below those it reads. With weights in turn, 1x768x3072 bfloats take 311 us instead of 444, 1x4096x4096 2.0
   ms instead of 2.3 (Xeon 6/167/1, alternated calls, 2026-11-30).

2. A register tile of a large product: C, A and B of later tiles. The sum over K is cut into as many parts as the tile
   has rows. Part s prefetches row s of the next tile of C, or as large a share of its columns. Each of its steps
   prefetches some bytes of row s of a tile of A in the next block of rows; all panels together prefetch whole rows. If
   B is not packed, each piece of a part prefetches, step by step, a row of the next panel; all row tiles together
   prefetch all of its rows.

    part 0    C[next tile][0]    step by step A[i + tiles][0], share j
      piece 0                    step by step B[first(i)][j + 1]
      piece 1                    step by step B[first(i) + 1][j + 1]
    part 1    C[next tile][1]    step by step A[i + tiles][1], share j
    ...

   A part also prefetches row s of this tile of each matrix that the epilogue reads.

   Otherwise each tile waits for C when it begins, the first panel waits for A, and the first row tile waits for B, as
   it reads only a few lines of each row of B. Measured on one core of a Xeon with AMX, without and with prefetches:
   double, 2048 cubed 69 and 75 G/s, 1024x4096x4096 69 and 75; float, share of the peak, 128x3136x256 92 and 96 %,
   64x3136x256 91 and 98, 256x3136x64 91 and 98.

3. A tile of a matrix unit: some rows of the next row tile of A with each panel of B. The hardware prefetcher follows
   each row separately, has to detect it again in each tile, and stops at the end of each page.

    step   multiplied                             prefetched, with two panels of B
    0      A[0:32, 0:32] by panel 0               A[32:48, 0:32]
    0      A[0:32, 0:32] by panel 1               A[48:64, 0:32]

   Measured on one core of a Xeon with AMX, 2026-11-22, by filters of 512 x 4608: bfloat 309 -> 283 us, bytes 152 -> 142
   us. With blocks of packed panels (Xeon 6/207/2): bfloat, 1024 cubed 1.04 times as fast, 2048 cubed 1.03; bytes, 2048
   cubed 1.03.

   Where B was packed before all calls, so that it is hardly in L2 when a call begins, a block of rows of A stays there
   instead, and tiles prefetch B. Each block of a few panels is read from L3 or memory while the one before is
   multiplied:

    row tile   multiplied                         prefetched in each step of K, with four row tiles in a block
    0          A[0:32] by panels 0 to 3           a line of each eighth of panels 4 to 7, from its start on
    1          A[32:64] by panels 0 to 3          a line of each eighth, from its first quarter on

   The eight runs lie in different pages, in each of which the hardware prefetcher runs ahead. They are a few lines
   further apart than they are long, so that they reach the ends of their pages one after the other; the hardware
   prefetcher reads the lines between.

   Measured on one core of a Xeon 6/167/1 with AMX, 2026-11-30, bfloat, twelve weights in turn. With one run, compared
   with no prefetches: 64x3072x768 588 -> 410 us, 128x3072x768 730 -> 540, 128x768x3072 780 -> 603, 512x3072x768 1.83 ->
   1.61 ms, 512x768x3072 2.26 -> 1.93. With several runs, compared with one, in alternated calls beside other work:
   64x3072x768 395 -> 295 us, 128x3072x768 573 -> 453, 128x768x3072 678 -> 481, 512x3072x768 1.76 -> 1.63 ms,
   512x768x3072 2.38 -> 2.01. Where B is in L2 already, such prefetches cost up to 5 %.

4. A tile of a matrix unit with few products: the lines of C that its sums are stored to. A line is read before it is
   written, and stores retire in order; where C is not in L1, the stores of a tile take longer than the products of one
   or two steps of K.

    step   multiplied                          prefetched for writing
    0      A[0:32, 0:64] B[0:64, 0:32]         C[0:16, 0:32]
    1      A[0:32, 64:128] B[64:128, 0:32]     C[16:32, 0:32]

   Measured without other load, 128x128x128 bytes: 1.05 times as fast (Xeon 6/207/2), 1.07 to 1.12 (with AMX-FP16); with
   four steps or more, stores hide behind the products, and prefetches only delay tile loads (256x256x256 bytes 0.9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I8, I64, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.cost import least_k_unroll
from tlx.lower.to_tiles.emit.gemm.function import GemmFunction
from tlx.lower.to_tiles.emit.tiles import ResultTile, tile_address
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import BatchStrides, Gemm
from tlx.lower.to_tiles.select.recipe import Recipe, column_ranges, row_ranges
from tlx.lower.to_tiles.select.recipe_cost import recipe_kind
from tlx.target.costs.core import CoreModel
from tlx.target.costs.limits import KernelLimits
from tlx.target.costs.memory import Caches, MemoryModel
from tlx.target.target import Target

L1_LOCALITY: Final = 3
L2_LOCALITY: Final = 2
"""Localities of `llvm.prefetch`."""


def batch_prefetch_distance(batch: BatchStrides, caches: Caches, memory: MemoryModel) -> int:
    """How many iterations ahead operands are prefetched.

    As many as take as long as the memory latency, if L1 holds what they read; otherwise as many as L1 holds.
    """
    moved = sum(abs(step) for step in batch.steps)
    read = sum(size for _, _, size in batch.read)
    fit = (caches.l1 - batch.sizes[0]) // read - 1 if read else 1
    return max(1, min(-(-memory.l2_miss_latency * memory.bytes_per_cycle // moved), fit)) if moved else 1


def batch_prefetch_locality(batch: BatchStrides | None, caches: Caches) -> int:
    """The locality with which a later iteration's operands are prefetched; 0 where they are not."""
    if batch is None or (batch.total is not None and batch.total <= caches.l2):
        return 0
    both = 2 * sum(size for _, _, size in batch.read) + batch.sizes[0]
    if both <= caches.l1:
        return L1_LOCALITY
    return L2_LOCALITY if both <= caches.l2 // 2 else 0


def with_prefetches(gemm: Gemm, recipe: Recipe, target: Target) -> Recipe:
    """The recipe with prefetches and non-temporal stores where they are profitable."""
    recipe = _with_memory_traffic(gemm, recipe, target)
    if recipe.mma.unit != "matrix":
        operands, lines = _operands_of_later_tiles(gemm, recipe, target), False
    else:
        operands = "B" if _prefetches_next_block(gemm, recipe, target.caches) else ""
        operands = (
            "A" if not operands and _prefetches_rows_of_a(gemm, recipe, target.caches, target.core.limits) else operands
        )
        lines = _prefetches_c_lines(gemm, recipe, target)
    prefetch, stores = replace(recipe.prefetch, operands=operands), replace(recipe.stores, prefetches_lines=lines)
    return replace(recipe, prefetch=prefetch, stores=stores)


def _with_memory_traffic(gemm: Gemm, recipe: Recipe, target: Target) -> Recipe:
    """The recipe with prefetches of the next iterations' operands, or of the next pass over K."""
    if gemm.batch is None:
        locality = L2_LOCALITY if _prefetches_next_pass(gemm, recipe, target.caches) else 0
        return replace(recipe, prefetch=replace(recipe.prefetch, locality=locality))
    blocked = recipe.mma.unit != "matrix" and (recipe.blocks.kc < gemm.k or recipe.blocks.mc < gemm.m)
    if len(gemm.term_offsets) > 1 or blocked or recipe.blocks.nc < gemm.n:
        return recipe
    is_aligned = gemm.is_repeatable and _is_c_aligned(gemm, recipe, target.caches)
    nontemporal = is_aligned and gemm.batch.exceeds_caches(target.caches, target.memory)
    distance = 1 if recipe.mma.unit == "matrix" else batch_prefetch_distance(gemm.batch, target.caches, target.memory)
    locality = batch_prefetch_locality(gemm.batch, target.caches)
    prefetch = replace(recipe.prefetch, locality=locality, distance=distance)
    return replace(recipe, prefetch=prefetch, stores=replace(recipe.stores, nontemporal=nontemporal))


def _prefetches_next_pass(gemm: Gemm, recipe: Recipe, caches: Caches) -> bool:
    """Whether a product of few rows reads an unpacked B that exceeds L2, while L2 holds B of two passes over K."""
    blocks = recipe.blocks
    one_block = blocks.mc >= gemm.m and all(blocks.nc >= c.count * c.size for c in column_ranges(gemm, recipe))
    in_place = gemm.b.is_dense and not recipe.packing.b and recipe.blocks.kc < gemm.k
    size = bytes_of(gemm.b.element)
    near, far = 2 * recipe.blocks.kc * gemm.n * size, gemm.k * gemm.n * size
    return one_block and in_place and near <= caches.l2 < far


def _is_c_aligned(gemm: Gemm, recipe: Recipe, caches: Caches) -> bool:
    """Whether all registers of C are aligned to their size if the first one is, and a tile fills whole cache lines."""
    element = bytes_of(gemm.c.element)
    size, pitch = recipe.tile.lanes * element, gemm.c.row_stride * element
    steps = gemm.batch.steps[0] if gemm.batch else 0
    widths = [columns.size * element for columns in column_ranges(gemm, recipe)]
    one_panel = len(widths) == 1 == gemm.n // recipe.tile.nr
    whole = all(width % caches.line_bytes == 0 for width in widths) or (gemm.c.is_dense and one_panel)
    same = gemm.c.element == recipe.mma.accumulator
    return whole and same and gemm.c.is_row_major and gemm.n % recipe.tile.lanes == pitch % size == steps % size == 0


def a_misses_l2(gemm: Gemm, caches: Caches) -> bool:
    """Whether row tiles of A miss L2."""
    return gemm.a.bytes_moved + gemm.b.bytes_moved > caches.l2


def _prefetches_next_block(gemm: Gemm, recipe: Recipe, caches: Caches) -> bool:
    """Whether a block of rows of A stays in L2 while blocks of a B that was packed before all calls pass through it."""
    rows, passes = min(recipe.blocks.mc, gemm.m), recipe.packing.b and recipe.blocks.nc < gemm.n
    stay = rows > recipe.tile.mr and rows * gemm.k * bytes_of(gemm.a.element) <= caches.l2 // 2
    return gemm.packs_per_product == 0 and passes and stay and _is_single_product(gemm, recipe)


def _prefetches_rows_of_a(gemm: Gemm, recipe: Recipe, caches: Caches, limits: KernelLimits) -> bool:
    """Whether A misses L2 in each block of columns, so that the first panel of a block would wait for it.

    A small A stays in L2 beside a block of packed B. With few panels, each would have to prefetch too many lines.
    """
    several = gemm.n > recipe.tile.nr and gemm.m > recipe.tile.mr and recipe.blocks.nc > recipe.tile.nr
    is_small = recipe.packing.b and gemm.a.bytes_moved <= caches.l2 // 4
    few_panels = recipe.tile.mr * recipe.tile.nr > limits.prefetch.panel_rows * recipe.blocks.nc
    too_many_lines = recipe.blocks.nc < gemm.n and few_panels
    is_profitable = several and not (recipe.packing.a or is_small or too_many_lines)
    return is_profitable and _is_single_product(gemm, recipe) and a_misses_l2(gemm, caches)


_LOOP_INSTRUCTIONS: Final = 3
"""Instructions of an iteration besides those of its steps: counter, comparison, branch."""

_PART_INSTRUCTIONS: Final = 3
"""Instructions that a part adds to an iteration: an address of B (the counter restarts), a prefetch and its address."""


def _is_single_product(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether nothing else is prefetched: a single product, outside of loops."""
    return gemm.batch is None and len(gemm.term_offsets) == 1 and not recipe.prefetch.locality


def _operands_of_later_tiles(gemm: Gemm, recipe: Recipe, target: Target) -> str:
    """The operands that register tiles prefetch for later tiles: some of "CAB"."""
    a, b, c = (view.bytes_moved for view in (gemm.a, gemm.b, gemm.c))
    l2 = target.caches.l2
    if (
        not _is_single_product(gemm, recipe)
        or a + b + c <= l2
        or recipe.blocks.kc // recipe.tile.kstep < target.core.limits.prefetch.min_part_steps * recipe.tile.mr
    ):
        return ""
    if not _has_issue_slots(recipe, target.core):
        return ""
    in_rows = recipe.packing.whole_a if recipe.packing.a else gemm.a.is_row_major
    b_in_rows = not recipe.packing.b and recipe.tile.kstep == gemm.b.col_stride == 1
    b_in_place = b_in_rows and _panels_meet_all_rows(gemm, recipe, target.core.limits)
    is_profitable = {
        "A": in_rows and a > l2 // 4,
        "B": b_in_place and b > l2 // 4 and a + b + c > l2 * 5 // 4,
    }
    return "C" + "".join(operand for operand, pays in is_profitable.items() if pays)


def _panels_meet_all_rows(gemm: Gemm, recipe: Recipe, limits: KernelLimits) -> bool:
    """Whether all row tiles use a panel before the next panel is read, so that together they prefetch all its rows.

    Otherwise B is cached when the remaining row tiles read it.
    """
    ranges = row_ranges(gemm, recipe)
    several = sum(rows.count for rows in ranges) >= limits.prefetch.min_piece_steps
    return several and all(rows.count <= recipe.blocks.mc // rows.size for rows in ranges)


def pieces_per_part(recipe: Recipe, steps: int, rows: int, limits: KernelLimits) -> int:
    """Pieces of a part, each of which prefetches a row of B: enough for all rows, unless pieces would be too short.

    Args:
        recipe: A tile has as many parts as rows.
        steps: Steps along K of a tile, as many as B has rows.
        rows: Rows of A that use a panel.
        limits: The machine's limits.
    """
    return max(1, min(-(-steps // rows), steps // (limits.prefetch.min_piece_steps * recipe.tile.mr)))


def _has_issue_slots(recipe: Recipe, core: CoreModel) -> bool:
    """Whether steps can issue the prefetches of a part in the cycles of their products.

    6x16 floats in 16 registers leave a slot and a half on Haswell, whose 6 cycles of a step take 24 instructions: 12
    products, 8 loads, B's prefetch, and a quarter of the 6 of an iteration of four steps. With an iteration for each
    step, there would be no slot. Speed with prefetches on AVX2, where 2 MB of L2 are more than the 512 KB assumed
    (medians of alternated calls on a Xeon 6/167/1, and on a 6/207/2; 2026-11-30): products of 384, 512, 1024 and 2048
    .99, 1.03, 1.04, 1.10, and .97, 1.00, .99, 1.04; the detector of ddddocr 1.02, and 1.00.
    """
    rows, vectors = recipe.tile.mr, recipe.tile.nr // recipe.tile.lanes
    products = rows * vectors
    unroll = least_k_unroll(core, rows, is_dot=recipe.mma.unit == "dot")
    overhead = (_LOOP_INSTRUCTIONS + _PART_INSTRUCTIONS) / unroll
    return products + rows + vectors + 1 + overhead <= core.issue_width * products / core.fmas_per_cycle


def _prefetches_c_lines(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether tiles prefetch their lines of C: C is only written and misses L1, and tile products are few."""
    kind = recipe_kind(recipe, target)
    total = sum(view.bytes_moved for view in (gemm.a, gemm.b, gemm.c))
    written = gemm.acc is None and gemm.batch is None and not recipe.stores.nontemporal and gemm.c.is_row_major
    tiles = recipe.tile.mr // kind.rows * (recipe.tile.nr // kind.columns)
    products = (
        -(-gemm.k // recipe.tile.kstep) * len(gemm.term_offsets) * gemm.products_per_operand * tiles * kind.cycles
    )
    lines = recipe.tile.mr * -(-recipe.tile.nr * bytes_of(gemm.c.element) // target.caches.line_bytes)
    return written and total > target.caches.l1 and products < lines * target.memory.write_allocate_cycles


@dataclass(frozen=True, slots=True)
class PrefetchStream:
    """Blocks of memory, possibly unmapped, that are prefetched step by step: `rows` rows of `size` bytes each.

    Attributes:
        base: An address.
        offset: Bytes from it to the block of step 0.
        size: Bytes of a row.
        advance: Bytes from the block of a step to that of the next one.
        last: The most that blocks advance: later steps prefetch the last block again; 0 for no limit.
        rows: Rows of a block.
        pitch: Bytes from row to row.
        locality: Which caches are filled: `L1_LOCALITY` or `L2_LOCALITY`.
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
        """Prefetch the block of a step, in cache lines of `line` bytes."""
        advance = b.mul(step, self.advance) if step is not None else const_int(I64, 0)
        start = b.add(self.offset, b.umin(advance, self.last) if self.last else advance)
        for row in range(self.rows):
            for start_of_line in range(0, self.size, line):
                b.prefetch(self.base, b.add(start, row * self.pitch + start_of_line), self.locality, write=self.write)

    def spread(self, b: TensorBuilder, number: Value, first: Value, steps: int) -> PrefetchStream:
        """The stream that prefetches row `number` of this stream over `steps` steps from step `first` on."""
        each = -(-self.size // steps)
        offset = b.add(self.offset, b.sub(b.mul(number, self.advance), b.mul(first, each)))
        return replace(self, offset=offset, size=each, advance=each)


class Prefetcher:
    """Emits the prefetches of a product's kernel: those of its streams, in each step along K of a tile.

    Attributes:
        streams: What the steps of the tile prefetch.
        at_parts: Streams of which a tile prefetches one step at the beginning of each part of K.
        over_parts, over_pieces: Rows that are prefetched step by step, one by each part or by each piece of a part.
        pieces: Pieces of a part.
        line: Bytes of a cache line.
    """

    def __init__(self, function: GemmFunction) -> None:
        gemm, recipe = function.gemm, function.recipe
        self.b, self.gemm, self.recipe, self.line = function.b, gemm, recipe, function.target.caches.line_bytes
        self.streams: list[PrefetchStream] = []
        self.at_parts: list[PrefetchStream] = []
        self.over_parts: PrefetchStream | None = None
        self.over_pieces: PrefetchStream | None = None
        self.pieces = 1
        self._shared: list[tuple[Value, int, int]] = []  # address, distance and bytes of what all tiles prefetch
        self._tiles_before = 0
        self._steps = -(-min(gemm.k, recipe.blocks.kc) // recipe.tile.kstep)
        tiles = [sum(r.count for r in ranges) for ranges in (function.rows, function.columns)]
        self._all_steps = tiles[0] * tiles[1] * self._steps
        if gemm.batch is not None and recipe.prefetch.locality:
            distance = recipe.prefetch.distance
            self._shared = [(function.arguments[n], distance * step, size) for n, step, size in gemm.batch.read]

    def begin_pass(self, base: Value, start: Value, size: int) -> None:
        """Begin a pass over `size` rows of B from `start` on, whose tiles together prefetch the next pass's rows.

        The last pass prefetches its own rows, which are cached, since no rows follow them.
        """
        if not self.recipe.prefetch.locality or self.gemm.batch is not None:
            return
        b, view = self.b, self.gemm.b
        last, pitch = self.gemm.k - self.recipe.blocks.kc, view.row_stride * bytes_of(view.element)
        following = b.umin(b.add(start, size), last)
        self._shared = [(b.gep(I8, b.retype(base, I8), b.mul(following, pitch)), 0, self.recipe.blocks.kc * pitch)]
        self._tiles_before = 0

    def begin_tile(self, rows: int, columns: int, ij: tuple[Value, Value]) -> None:
        """Begin row tile i by panel j of a range of `rows` by `columns` tiles, after the tiles of earlier ranges.

        With 0 columns it is a tile that is emitted separately, before the others of its range.
        """
        self.streams = []
        if not self._shared:
            return
        b, (i, j) = self.b, ij
        tile = b.add(b.add(b.mul(j, rows), i), self._tiles_before)
        self._tiles_before += rows * columns
        for pointer, distance, size in self._shared:
            part = -(-size // self._all_steps)
            offset = b.add(b.mul(tile, self._steps * part), distance)
            self.streams.append(PrefetchStream(pointer, offset, part, part, locality=self.recipe.prefetch.locality))

    def begin_part(self, number: Value, first: Value, steps: int) -> None:
        """Begin part `number` of K: `steps` steps from step `first` on."""
        for stream in self.at_parts:
            stream.emit(self.b, self.line, number)
        self.streams = self._spread(self.over_parts, number, first, steps)

    def begin_piece(self, number: Value, first: Value, steps: int) -> None:
        """Begin piece `number` of K, a part of a part: `steps` steps from step `first` on."""
        self.streams = [*self.streams, *self._spread(self.over_pieces, number, first, steps)]

    def _spread(self, stream: PrefetchStream | None, number: Value, first: Value, steps: int) -> list[PrefetchStream]:
        return [] if stream is None else [stream.spread(self.b, number, first, steps)]

    def end_parts(self) -> None:
        """End the parts: later steps prefetch nothing."""
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
        distance: Bytes from what is read to what is prefetched.
        line: Bytes of a cache line.
    """

    base: Value
    view: MatrixView
    distance: int
    line: int


def prefetch_rows(b: TensorBuilder, prefetches: Sequence[RowPrefetch], place: ResultTile) -> None:
    """Prefetch rows ahead of a tile that is read."""
    for each in prefetches:
        size = bytes_of(each.view.element)
        start, distance = tile_address(b, each.view, each.base, place), const_int(I64, each.distance)
        rows, pitch = place.rows, each.view.row_stride * size
        PrefetchStream(start, distance, place.cols * size, rows=rows, pitch=pitch).emit(b, each.line)
