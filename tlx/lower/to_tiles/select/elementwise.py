"""Kernels without products: their tiles, their non-temporal stores, and their roofline.

Results larger than the caches are written by non-temporal stores, which avoid reading each line before writing it.

Such stores must be aligned, and results need not be. Elements at the ends of a row are computed twice, with the same
value both times, as the result is no operand:

    | first register |                                        temporal
        | tile, aligned | tile | tile | ... |                 non-temporal
                                    | rest of the row |       temporal

Measured on one Sapphire Rapids core, 2026-11-22: a copy moves 19 instead of 15 GB/s from 64 MB on, a sum of two arrays
20 instead of 15; at 32 MB, which are in the last-level cache, 20 instead of 26.

The roofline: a kernel is bound by the instructions of its elements, or by the cache or memory that holds its data.

    moves     bytes of each matrix once; intermediate results of problems on the same rows stay in L1
    where     the first cache that holds all of it: L1, L2, L3 (one program's share), else memory
    moving    L1: loads and one store a cycle, of whole registers; L2: half a line a cycle; beyond: 8 bytes a cycle
    work      instructions of the elements, over the ports

The longer of the two bounds the kernel. The model ignores loop overhead and other users of the memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.types import bits_of, bytes_of
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf
from tlx.lower.to_tiles.problem import Copy, Elementwise, Reduction, RowFusion, as_long_row, pointer_views, take_rows
from tlx.lower.to_tiles.select.recipe import EqualTiles, padded_tiles
from tlx.target.costs.memory import Caches
from tlx.target.target import Target

_SQUARE: Final = 16
COSTLY: Final = 20
_CONSTANTS: Final = 16
"""Registers for the constants of a mathematical function."""
_CHAIN: Final = 4
"""Further registers for each register that a mathematical function computes."""


@dataclass(frozen=True, slots=True)
class TileShape:
    """Rows and columns of a tile; edges along columns are padded to a multiple of `lanes`."""

    rows: int
    cols: int
    lanes: int


def elementwise_tile(problem: Elementwise, target: Target) -> TileShape:
    """The tile of a map: several rows share what they load, but data beyond L2 may be faster in memory order.

    Measured on depthwise 3x3 windows of floats. Numbers that are the same in all columns stay in registers: 128 images
    of 56x56 (3.3 MB) reach 60 GFLOP/s by tiles of six rows, 67 by single rows; 256 images of 28x28 (1.7 MB) 98 and 63
    (Xeon with AMX). Rows that are the same for the whole tile, such as filters in channels-last layout, are loaded once
    a tile: 32 channels of 112x112 (3.3 MB) reach 107 by tiles of eight rows, 84 by single rows, but 512 channels of
    56x56, whose rows share sets of L1, 62 and 80 (Zen 5).
    """
    value = problem.value
    shape = tile_shape(value, target)
    if (
        shape.cols != shape.lanes
        or len(_row_invariant_leaves(value)) < target.core.limits.elementwise.min_shared_leaves
        or problem.streamed_bytes <= target.caches.l2
    ):
        return shape
    in_order = all(leaf.view.cols == 1 for leaf in _row_invariant_leaves(value)) or _rows_share_few_sets(
        value, target.caches
    )
    return replace(shape, rows=1) if in_order else shape


def _rows_share_few_sets(value: Expression, caches: Caches) -> bool:
    """Whether the pitch of rows makes them share few sets of L1."""
    views = [(leaf.view, bytes_of(leaf.element)) for leaf in value.leaves()]
    return any(view.rows > 1 and view.row_stride * size % caches.two_set_pitch == 0 for view, size in views)


def tile_shape(value: Expression, target: Target) -> TileShape:
    """The tile that computes a few registers of each live value at a time."""
    lanes = value.lanes(target)
    if needs_transpose(value):
        return square_tile(value, lanes, target.registers)
    limits = target.core.limits
    if len(_row_invariant_leaves(value)) >= limits.elementwise.min_shared_leaves and value.rows > 1:
        tiles = -(
            -value.rows // max(1, min(limits.elementwise.max_shared_rows, target.registers // (value.max_live + 1)))
        )
        return TileShape(-(-value.rows // tiles), lanes, lanes)
    registers = max(1, min(limits.elementwise.max_registers_per_value, target.registers // (2 * value.max_live + 1)))
    if value.cost(target) >= COSTLY:
        registers = _even_if_joined(min(registers, _costly_registers(value, target)), value, target)
    across = min(registers, -(-value.cols // lanes))
    return TileShape(min(value.rows, max(1, registers // across)), across * lanes, lanes)


def _row_invariant_leaves(value: Expression) -> list[MatrixLeaf]:
    """The leaves that are the same in all rows."""
    return [node for node in map(value.nodes.__getitem__, value.row_invariant) if isinstance(node, MatrixLeaf)]


def _costly_registers(value: Expression, target: Target) -> int:
    """Registers computed at a time by long chains of instructions; a register of bfloat is two of float."""
    if value.branches:
        return 1
    return max(1, (target.registers - _CONSTANTS) // _CHAIN * min(32, value.bits(target)) // 32)


def _even_if_joined(registers: int, value: Expression, target: Target) -> int:
    """A number of registers at a time, even where two of them are rounded to one of half or bfloat.

    Three at a time take 1.08 to 1.16 times as long as two (GELU, SiLU and x tanh(x) of 65,536 bfloats in float with
    AVX-512, Xeon 6/167/1, medians, 2026-12-01): the third is rounded alone.
    """
    is_joined = registers > 1 and bits_of(value.nodes[-1].element) == 16 and value.bits(target) == 32
    return registers - registers % 2 if is_joined else registers


def needs_transpose(value: Expression) -> bool:
    """Whether tiles of a leaf have to be transposed."""
    return any(leaf.view.col_stride != 1 and leaf.view.cols > 1 for leaf in value.leaves())


def square_tile(value: Expression, lanes: int, registers: int) -> TileShape:
    """The tile to transpose; it has fewer rows where that is needed to keep all live values in registers."""
    side = min(lanes, _SQUARE)
    rows = side
    while rows > 4 and rows * (value.max_live + 1) > registers:
        rows //= 2
    return TileShape(min(rows, value.rows), side, side)


@dataclass(frozen=True, slots=True)
class Roofline:
    """What a kernel moves and computes, and which of the two bounds it.

    Attributes:
        bytes_moved: Bytes that are read and written.
        level: What holds them: `L1`, `L2`, `L3` or `memory`.
        transfer: Cycles to move them.
        compute: Cycles of the instructions on them.
        nontemporal: Whether results are written by non-temporal stores.
    """

    bytes_moved: int
    level: str
    transfer: float
    compute: float
    nontemporal: bool

    @property
    def share(self) -> float:
        """The part of the bandwidth that the kernel should reach."""
        return self.transfer / max(self.transfer, self.compute)


def roofline(problem: Elementwise | Reduction | RowFusion, target: Target) -> Roofline:
    """What bounds a problem's kernel on one thread."""
    read, written = _traffic(problem)
    moves = read + written
    place = _holding_cache(moves, target)
    work = value_instructions(problem, target) / target.core.fmas_per_cycle
    transfer = _transfer_cycles(read, written, place, target)
    return Roofline(moves, place, transfer, work, _has_nontemporal_stores(problem, target))


def _traffic(problem: Elementwise | Reduction | RowFusion) -> tuple[int, int]:
    """Bytes read and bytes written."""
    if not isinstance(problem, RowFusion):
        return problem.value.bytes_moved, problem.destination.bytes_moved
    sizes: dict[int, int] = {}
    results: set[int] = set()
    for part in problem.parts:
        results.add(part.pointers[0])
        for number, view in zip(part.pointers, pointer_views(part.problem), strict=True):
            sizes[number] = max(sizes.get(number, 0), view.bytes_moved)
    moved = {number: size for number, size in sizes.items() if number not in problem.scratch_pointers}
    return (
        sum(size for number, size in moved.items() if number not in results),
        sum(size for number, size in moved.items() if number in results),
    )


def _holding_cache(moves: int, target: Target) -> str:
    sizes = {
        "L1": target.caches.l1,
        "L2": target.caches.l2,
        "L3": target.memory.usable_l3_bytes(target.caches),
    }
    return next((name for name, size in sizes.items() if moves <= size), "memory")


def _transfer_cycles(read: int, written: int, place: str, target: Target) -> float:
    if place == "L1":
        width = max(target.vector_bytes, 1)
        return max(read / (target.core.loads_per_cycle * width), written / width)
    memory = target.memory
    return (read + written) / (memory.l2_bytes_per_cycle if place == "L2" else memory.bytes_per_cycle)


def value_instructions(problem: Elementwise | Reduction | RowFusion, target: Target) -> float:
    """Instructions on registers, beyond loads and stores."""
    if isinstance(problem, RowFusion):
        return sum(value_instructions(part.problem, target) for part in problem.parts)
    value = problem.value
    lanes = value.lanes(target)
    cost = problem.cost(target) if isinstance(problem, Reduction) else value.cost(target)
    return cost * value.rows * value.cols / lanes


def _has_nontemporal_stores(problem: Elementwise | Reduction | RowFusion, target: Target) -> bool:
    if isinstance(problem, Elementwise):
        return has_nontemporal_stores(problem, target)
    if isinstance(problem, Reduction):
        return False
    rows = fused_block_rows(problem, target.caches)
    pieces = (take_rows(part.problem, rows) for part in problem.parts if part.is_disjoint)
    return any(has_nontemporal_stores(piece, target) for piece in pieces if isinstance(piece, Elementwise))


_MIN_ALIGNED_TILES: Final = 8
"""Least number of tiles of a row that are aligned, so that the elements computed twice are a small share."""

_TILES_PER_RUN: Final = 8
"""Adjacent tiles of 64 bytes that are read together (`copy.py` has measurements)."""


@dataclass(frozen=True, slots=True)
class ColumnSpan:
    """Tiles of a row; those with non-temporal stores begin at the row's first aligned element, not at its first."""

    columns: EqualTiles
    is_nontemporal: bool = False


def exceeds_caches(problem: Copy | Elementwise, target: Target) -> bool:
    """Whether a result and its operands exceed the caches: those of the whole problem, if this is a part of one."""
    return (problem.total_bytes or problem.bytes_moved) > target.memory.retained_l3_bytes(target.caches)


def store_alignment(problem: Copy | Elementwise, target: Target) -> int:
    """Elements that non-temporal stores are aligned to: those of a register; 0 for no such stores."""
    element = problem.destination.element
    return target.vector_bytes // bytes_of(element) if bits_of(element) > 1 and exceeds_caches(problem, target) else 0


def plain_spans(cols: int, width: int, lanes: int) -> list[ColumnSpan]:
    """The tiles of a row: full ones of `width` elements, and one of whole registers, padded."""
    return [ColumnSpan(columns) for columns in padded_tiles(cols, width, lanes)]


def aligned_spans(cols: int, width: int, lanes: int, boundary: int) -> list[ColumnSpan]:
    """The tiles of a row, most of them aligned to `boundary` elements; a row of fewer than a few tiles stays whole.

    Tiles are at least `width` wide, rounded up to a multiple of the boundary, so that all are aligned like the first.
    """
    width = -(-width // boundary) * boundary
    if cols < _MIN_ALIGNED_TILES * width:
        return plain_spans(cols, width, lanes)
    count = (cols - boundary + 1) // width
    done = count * width
    rest = [EqualTiles(done + r.start, r.count, r.size, r.padding) for r in padded_tiles(cols - done, width, lanes)]
    head = padded_tiles(boundary, width, lanes)
    return [*map(ColumnSpan, head), ColumnSpan(EqualTiles(0, count, width), True), *map(ColumnSpan, rest)]


def tiles_per_run(rows: EqualTiles, *, nontemporal: bool) -> int:
    """Vertically adjacent tiles that are written in succession, for a result whose source is transposed.

    They read adjacent cache lines of the source's rows, which memory delivers fastest. With non-temporal stores the run
    is the whole column, since no written line has to stay in a cache until its neighbours are written.
    """
    return rows.count if nontemporal else min(rows.count, _TILES_PER_RUN)


def elementwise_store_alignment(problem: Elementwise, target: Target) -> int:
    """Elements that non-temporal stores are aligned to: those of a register; 0 for no such stores."""
    boundary = store_alignment(problem, target)
    if not needs_transpose(problem.value):
        return boundary
    are_lines = boundary == tile_shape(problem.value, target).cols and problem.destination.row_stride % boundary == 0
    return boundary if are_lines else 0


def has_nontemporal_stores(problem: Elementwise, target: Target) -> bool:
    """Whether the kernel of a problem with long rows uses non-temporal stores, unless a leaf is the destination."""
    problem = as_long_row(problem)
    shape, boundary = elementwise_tile(problem, target), elementwise_store_alignment(problem, target)
    if not boundary:
        return False
    return any(span.is_nontemporal for span in aligned_spans(problem.value.cols, shape.cols, shape.lanes, boundary))


_BLOCK_GRANULE = 8
"""Rows that the tiles of short rows have at most."""


def fused_block_rows(problem: RowFusion, caches: Caches) -> int:
    """Rows of a block: the data they read and write fills half of the L1 cache."""
    widths: dict[int, int] = {}
    for part in problem.parts:
        for number, view in zip(part.pointers, pointer_views(part.problem), strict=True):
            if view.rows == problem.rows:
                widths[number] = max(widths.get(number, 0), view.cols * bytes_of(view.element))
    rows = max(1, caches.l1 // 2 // sum(widths.values()))
    return min(problem.rows, rows - rows % _BLOCK_GRANULE if rows > _BLOCK_GRANULE else rows)
