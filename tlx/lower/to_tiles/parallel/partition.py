"""Parallel cost of kernels, and their partition: the grid of a product, the slabs of other problems.

The work of a kernel, in cycles, decides whether threads pay, and how it is cut for them. Products and packing take what
`cost` predicts for the recipe. Each row of tiles reads A once, and each panel B, from beyond a core's L2. Where two
threads compute the left and the right part of the same rows of C, hardware prefetching along rows makes each core fetch
cache lines that the other one writes.

A team cuts a product by a grid; each thread's rectangle of it is divided into jobs.

    thread 1, columns 3 to 6 in two cache blocks          a job: some consecutive units, numbered like this

         3   4 | 5                                            0   3
       +-------+---+                                          1   4
    0  |       |   |                                          2   5
    1  |       |   |
    2  |       |   |
       +-------+---+

A unit is a row tile by a cache block of columns, whose panels of B stay in L2 from one job to the next, packed where
the kernel keeps them; or some panels by all rows, where each call of the kernel packs the panels that it reads, and
reads A again. Threads are numbered down the grid's columns, so that neighbours read the same panels.

Maps, copies and reductions are cut into slabs that threads work on, each a smaller problem of the same kind.

    100,000 x 64, by rows             slab: 1,568 x 64, 63 times, pointers 1,568 rows further each time
                                      rest: 1,216 x 64

A dense matrix is cut as one long row. A reduction is cut along the axis that remains, so one thread computes each sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.parallel import partition
from tlx.ir.types import I64, Type, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.parallel.stealing import ThreadShare
from tlx.lower.to_tiles.problem.expression import Expression, MatrixLeaf
from tlx.lower.to_tiles.problem.problems import (
    Copy,
    Elementwise,
    Gemm,
    Reduction,
    RowFusion,
    as_long_row,
    pointer_views,
    take_rows,
)
from tlx.lower.to_tiles.problem.views import MatrixView
from tlx.lower.to_tiles.select.recipe import Recipe, column_ranges, k_passes, row_ranges
from tlx.lower.to_tiles.select.recipe_cost import cost, packs_by_steps
from tlx.target.target import Target


@dataclass(frozen=True, slots=True)
class ParallelCost:
    """The work of a kernel.

    Attributes:
        rows, columns: Numbers of row tiles and of panels.
        tile: Cycles of a tile.
        row, column: Additional cycles of each row of tiles, and of each panel.
        cut: Cycles that a row of tiles costs each thread where several share it.
        panels: Panels of a cache block.
        packs: Whether each call of the kernel packs the panels that it reads.
        keeps: Whether a call can reuse the panels that the previous one has packed.
    """

    rows: int
    columns: int
    tile: float
    row: float = 0.0
    column: float = 0.0
    cut: float = 0.0
    panels: int = 1
    packs: bool = False
    keeps: bool = False

    @property
    def cycles(self) -> float:
        """Cycles of the whole kernel."""
        return self.rows * self.columns * self.tile + self.rows * self.row + self.columns * self.column

    def team(self, least: int) -> int:
        """How many threads are worth having, where each should work for `least` cycles."""
        return min(self.rows * self.columns, int(self.cycles / max(least, 1)))


def gemm_parallel_cost(gemm: Gemm, recipe: Recipe, target: Target) -> ParallelCost | None:
    """The work of a product's kernel; None for a kernel that cannot be cut."""
    if gemm.reduction is not None:
        return None
    rows, columns = (sum(r.count for r in ranges) for ranges in (row_ranges(gemm, recipe), column_ranges(gemm, recipe)))

    def cycles(*, a: bool, b: bool) -> float:
        packing = replace(recipe.packing, a=a, b=b)
        return cost(gemm, replace(recipe, packing=packing), target).compute

    multiplying = cycles(a=False, b=False)
    packing_a = cycles(a=recipe.packing.a, b=False) - multiplying
    packing_b = cycles(a=False, b=recipe.packing.b and not recipe.packing.prepacked_b) - multiplying
    row = recipe.tile.mr * gemm.total_k * bytes_of(gemm.a.element) / target.memory.bytes_per_cycle + packing_a / rows
    column = (
        recipe.tile.nr * gemm.total_k * bytes_of(gemm.b.element) / target.memory.bytes_per_cycle + packing_b / columns
    )
    tile, panels = multiplying / (rows * columns), max(1, recipe.blocks.nc // recipe.tile.nr)
    packs = recipe.packing.b and not recipe.packing.prepacked_b
    keeps = packs and sum(part.count for part in k_passes(gemm, recipe)) == 1 and not packs_by_steps(gemm, recipe)
    cut = recipe.tile.mr * target.memory.shared_row_cycles if _stays(gemm, target) else 0.0
    return ParallelCost(rows, columns, tile, row, column, cut, panels, packs, keeps)


def _stays(gemm: Gemm, target: Target) -> bool:
    """Whether the work of two threads fits their L2 caches; otherwise cache lines move between cores in any case."""
    return sum(view.bytes_moved for view in (gemm.a, gemm.b, gemm.c)) <= 2 * target.caches.l2


_FEWEST: Final = 16
"""Units that a rectangle is cut into at least, where there are as many."""
_FEWEST_PACKED: Final = 4
"""The same where panels are packed: each separately packed group of panels reads A again."""

KernelCall = Callable[[Builder, list[Value]], None]
"""Emits a kernel's call for half-open ranges of row tiles and of panels."""


@dataclass(frozen=True, slots=True)
class GridPartition:
    """The grid of a team.

    Attributes:
        work: The work of the whole product.
        down, across: Threads in a column and in a row of the grid.
    """

    work: ParallelCost
    down: Value
    across: Value

    @classmethod
    def of(cls, b: Builder, work: ParallelCost, team: Value) -> GridPartition:
        """The grid for a team."""
        down = _rows_of_grid(b, work, team)
        return cls(work, down, b.binary("udiv", team, down) if work.columns > 1 else const_int(I64, 1))

    def portion(self, b: Builder, kernel: KernelCall, owner: Value) -> ThreadShare:
        """A thread's rectangle, empty for threads outside the grid."""
        work, none = self.work, const_int(I64, 0)
        row = b.binary("urem", owner, self.down)
        column = b.umin(b.binary("udiv", owner, self.down), b.sub(self.across, 1))
        rows = partition(b, const_int(I64, work.rows), row, self.down)
        columns = partition(b, const_int(I64, work.columns), column, self.across)
        height, width = b.sub(rows[1], rows[0]), b.sub(columns[1], columns[0])
        inside = b.icmp("ult", owner, b.mul(self.down, self.across))
        if work.packs and not work.keeps:
            step = self._step(b, width)
            units, rectangle = b.divided_up(width, step), _Rectangle(kernel, rows[0], columns[0], height, width, step)
            return ThreadShare(b.select(inside, units, none), rectangle.run_anew)
        blocks = self._blocks(b, height, width)
        rectangle = _Rectangle(kernel, rows[0], columns[0], height, width, blocks)
        run = rectangle.run_blocks if work.keeps else rectangle.run_whole
        return ThreadShare(b.select(inside, b.mul(blocks, height), none), run)

    def _step(self, b: Builder, width: Value) -> Value:
        """Panels that a call packs and uses for all rows: half a cache block, or a quarter of the columns."""
        quarter = b.add(b.binary("lshr", width, const_int(I64, 2)), 1)
        return b.umin(quarter, max(1, self.work.panels // 2))

    def _blocks(self, b: Builder, height: Value, width: Value) -> Value:
        """Number of blocks of columns: as the cache demands, or more where there are few rows.

        Where threads keep their panels, it is the same in all rectangles of a column of the grid.
        """
        cached = b.divided_up(width, self.work.panels)
        height = b.divided_up(const_int(I64, self.work.rows), self.down) if self.work.keeps else height
        fewest = _FEWEST_PACKED if self.work.keeps else _FEWEST
        enough = b.umin(width, b.divided_up(const_int(I64, fewest), height))
        return b.select(b.icmp("ult", cached, enough), enough, cached)


@dataclass(frozen=True, slots=True)
class _Rectangle:
    """A thread's rectangle of tiles; emits its jobs.

    Attributes:
        kernel: Emits calls.
        row, column: Its first row tile and panel.
        height, width: Its numbers of row tiles and panels.
        blocks: Number of cache blocks of columns; where each call packs its panels, how many panels that is.
    """

    kernel: KernelCall
    row: Value
    column: Value
    height: Value
    width: Value
    blocks: Value

    def run_anew(self, b: Builder, first: Value, last: Value) -> None:
        """Compute all rows by some panels, which the call packs."""
        behind = b.add(self.column, self.width)
        rows = self.row, b.add(self.row, self.height)
        self.kernel(b, [*rows, *(b.umin(b.add(self.column, b.mul(n, self.blocks)), behind) for n in (first, last))])

    def run_whole(self, b: Builder, first: Value, last: Value) -> None:
        """Compute some units by three calls: the end of a block, whole blocks, the beginning of one."""
        height, nothing = self.height, const_int(I64, 0)
        whole, behind = b.divided_up(first, height), b.binary("udiv", last, height)
        start, end = b.mul(whole, height), b.mul(behind, height)
        before = b.sub(whole, 1)
        with b.if_block(b.icmp("ult", first, start), "head"):
            above = b.mul(before, height)
            self._call(b, (b.sub(first, above), b.sub(b.umin(start, last), above)), before, whole)
        with b.if_block(b.icmp("ult", whole, behind), "middle"):
            self._call(b, (nothing, height), whole, behind)
        below = b.select(b.icmp("ule", whole, behind), b.sub(last, end), nothing)
        with b.if_block(b.icmp("ne", below, 0), "tail"):
            self._call(b, (nothing, below), behind, b.add(behind, 1))

    def run_blocks(self, b: Builder, first: Value, last: Value) -> None:
        """Compute some units, block by block."""
        height = self.height
        with b.loop(b.binary("udiv", first, height), b.divided_up(last, height), name="block", runs=True) as loop:
            before = b.mul(loop.index, height)
            top = b.select(b.icmp("ult", before, first), b.sub(first, before), const_int(I64, 0))
            rows = top, b.sub(b.umin(last, b.add(before, height)), before)
            self._call(b, rows, loop.index, b.add(loop.index, 1))

    def _call(self, b: Builder, rows: tuple[Value, Value], block: Value, behind: Value) -> None:
        """Call the kernel for some row tiles by the panels of a half-open range of blocks."""
        panels = (partition(b, self.width, number, self.blocks)[0] for number in (block, behind))
        self.kernel(b, [*(b.add(self.row, row) for row in rows), *(b.add(self.column, panel) for panel in panels)])


def _rows_of_grid(b: Builder, work: ParallelCost, team: Value) -> Value:
    """Number of rows of the thread grid that minimizes the work of the busiest thread.

    for down = 1 .. team:  across = team / down
        cycles = ceil(rows / down) * ceil(columns / across) * tile
               + ceil(rows / down) * (row, and cut if across > 1) + ceil(columns / across) * column
    """
    if work.columns == 1:
        return b.umin(team, work.rows)
    if work.rows == 1:
        return const_int(I64, 1)
    unit = max(work.cycles / (1 << 40), 1.0)
    costs = work.tile, work.row, work.row + work.cut, work.column
    tile, row, cut_row, column = (const_int(I64, round(cost / unit)) for cost in costs)
    start: list[Value] = [const_int(I64, 1), const_int(I64, (1 << 63) - 1)]
    last = b.add(b.umin(team, work.rows), 1)
    with b.loop(1, last, carry=start, name="down", runs=True) as loop:
        height = b.divided_up(const_int(I64, work.rows), loop.index)
        across = b.binary("udiv", team, loop.index)
        width = b.divided_up(const_int(I64, work.columns), across)
        reading = b.mul(height, b.select(b.icmp("ugt", across, 1), cut_row, row)) if work.cut else b.mul(height, row)
        cycles = b.add(b.mul(b.mul(height, width), tile), b.add(reading, b.mul(width, column)))
        better = b.icmp("ult", cycles, loop.carried[1])
        loop.next(b.select(better, loop.index, loop.carried[0]), b.select(better, cycles, loop.carried[1]))
    return loop.results[0]


Divisible = Copy | Elementwise | Reduction | RowFusion
_MOST: Final = 128
_PER_THREAD: Final = 4  # slabs that the least work of a thread is cut into
_GRANULE: Final = 16  # rows or columns
_LONG_GRANULE: Final = 1024  # elements of one long row


@dataclass(frozen=True, slots=True)
class SlabPointer:
    """A pointer of a kernel: its element type, and by how many elements it advances from slab to slab."""

    element: Type
    step: int


@dataclass(frozen=True, slots=True)
class Slabs:
    """A problem cut into slabs.

    Attributes:
        slab: The problem of a slab.
        count: Number of slabs.
        rest: The smaller problem after the last slab.
        pointers: The kernel's pointers.
        cycles: Work of the whole problem.
    """

    slab: Divisible
    count: int
    rest: Divisible | None
    pointers: tuple[SlabPointer, ...]
    cycles: float

    @property
    def total(self) -> int:
        """Slabs, the rest counted as one."""
        return self.count + (self.rest is not None)


def cut_into_slabs(problem: Divisible, target: Target, least: int) -> Slabs | None:
    """A problem cut into slabs for threads of at least `least` cycles each; None where that makes fewer than two."""
    if isinstance(problem, Elementwise):
        problem = as_long_row(problem)
    rows, cols = _extents(problem)
    by_rows = problem.axis == 1 if isinstance(problem, Reduction) else rows > 1
    extent = rows if by_rows else cols
    cycles = problem_cycles(problem, target)
    count = min(_MOST, int(cycles * _PER_THREAD / max(least, 1)), extent)
    pointers = _pointers(problem, by_rows=by_rows)
    if count < 2 or pointers is None:
        return None
    granule = _LONG_GRANULE if rows == 1 else _GRANULE
    size = -(-extent // count)
    if size > granule:
        size = -(-size // granule) * granule
    count, rest = divmod(extent, size)
    if count + (rest > 0) < 2:
        return None
    moving = tuple(SlabPointer(p.element, p.step * size) for p in pointers)
    remainder = _piece(problem, rest, by_rows=by_rows) if rest else None
    return Slabs(_piece(problem, size, by_rows=by_rows), count, remainder, moving, cycles)


def _extents(problem: Divisible) -> tuple[int, int]:
    if isinstance(problem, Copy):
        return problem.source.rows, problem.source.cols
    if isinstance(problem, RowFusion):
        return problem.rows, problem.parts[-1].problem.value.cols
    return problem.value.rows, problem.value.cols


def problem_cycles(problem: Divisible, target: Target) -> float:
    """The work of a problem, roughly: that of its memory traffic or of its instructions."""
    if isinstance(problem, Copy):
        return problem.bytes_moved / target.memory.bytes_per_cycle
    if isinstance(problem, RowFusion):
        return sum(problem_cycles(part.problem, target) for part in problem.parts)
    value = problem.value
    lanes = max(1, target.vector_bytes * 8 // value.bits)
    cost = problem.cost if isinstance(problem, Reduction) else value.cost
    return max(problem.bytes_moved / target.memory.bytes_per_cycle, cost * value.rows * value.cols / lanes)


def _pointers(problem: Divisible, *, by_rows: bool) -> tuple[SlabPointer, ...] | None:
    """The kernel's pointers, with their steps from a row or column to the next; None if one has two steps."""
    if isinstance(problem, Copy):
        return tuple(_pointer(view, by_rows=by_rows) for view in (problem.destination, problem.source))
    if isinstance(problem, RowFusion):
        found: dict[int, SlabPointer] = {}
        for part in problem.parts:
            for number, view in zip(part.pointers, pointer_views(part.problem), strict=True):
                found.setdefault(number, _pointer(view, by_rows=True))
        return tuple(found[number] for number in sorted(found))
    leaves: dict[int, SlabPointer] = {}
    moved = [(leaf, _pointer(leaf.view, by_rows=by_rows)) for leaf in problem.value.leaves()]
    if isinstance(problem, Reduction) and problem.epilogue is not None:
        moved += [(leaf, _pointer(leaf.view, by_rows=False)) for leaf in problem.epilogue.leaves()]
    for leaf, pointer in moved:
        if leaves.setdefault(leaf.pointer, pointer) != pointer:
            return None
    return (_pointer(problem.destination, by_rows=by_rows), *(leaves[number] for number in sorted(leaves)))


def _pointer(view: MatrixView, *, by_rows: bool) -> SlabPointer:
    extent, stride = (view.rows, view.row_stride) if by_rows else (view.cols, view.col_stride)
    return SlabPointer(view.element, stride if extent > 1 else 0)


def _piece(problem: Divisible, size: int, *, by_rows: bool) -> Divisible:
    """The problem on `size` rows or columns, which keeps the whole problem's choice of non-temporal stores."""
    if isinstance(problem, Copy):
        source, to = (_shorter(view, size, by_rows=by_rows) for view in (problem.source, problem.destination))
        return Copy(source, to, problem.bytes_moved)
    if isinstance(problem, RowFusion):
        parts = tuple(replace(part, problem=take_rows(part.problem, size)) for part in problem.parts)
        return replace(problem, rows=size, parts=parts)
    value = _shorter_value(problem.value, size, by_rows=by_rows)
    to = _shorter(problem.destination, size, by_rows=by_rows)
    if isinstance(problem, Elementwise):
        return Elementwise(to, value, problem.bytes_moved)
    finish = _shorter_value(problem.epilogue, size, by_rows=False) if problem.epilogue is not None else None
    return replace(problem, value=value, destination=to, epilogue=finish)


def _shorter_value(value: Expression, size: int, *, by_rows: bool) -> Expression:
    nodes = tuple(
        replace(node, view=_shorter(node.view, size, by_rows=by_rows)) if isinstance(node, MatrixLeaf) else node
        for node in value.nodes
    )
    return Expression(size if by_rows else value.rows, value.cols if by_rows else size, nodes)


def _shorter(view: MatrixView, size: int, *, by_rows: bool) -> MatrixView:
    """A view of that many rows or columns; a broadcast one is unchanged."""
    if by_rows:
        return replace(view, rows=size) if view.rows > 1 else view
    return replace(view, cols=size) if view.cols > 1 else view
