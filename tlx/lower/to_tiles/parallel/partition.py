"""Parallel cost of kernels, and their partition: a grid of threads for a product, equal parts for other problems.

The work of a kernel, in cycles, decides how many threads pay and how the kernel is divided among them. The cycles of
products and packing are those that `cost` predicts for the recipe. Each row of tiles reads A once, and each panel reads
B once, from beyond a core's L2. Where two threads compute the left and the right half of the same rows of C, hardware
prefetching along the rows makes each core fetch cache lines that the other one writes.

A team divides a product by a grid of threads; the rectangle of each thread is divided into jobs.

    thread 1, columns 3 to 6 in two cache blocks          a job is a range of units, numbered like this

         3   4 | 5                                            0   3
       +-------+---+                                          1   4
    0  |       |   |                                          2   5
    1  |       |   |
    2  |       |   |
       +-------+---+

A unit is one row tile by one cache block of columns: the block's panels of B stay in L2 from one job to the next, and
stay packed if the kernel caches them. Where instead each call to the kernel packs the panels that it reads, a unit is
all rows by a few panels, and each unit reads A again. Threads are numbered down the columns of the grid, so that
neighbours read the same panels.

Maps, copies and reductions are partitioned into equal parts and a smaller rest, all problems of the same kind.

    100,000 x 64, by rows             part: 1,568 x 64, 63 times; pointers advance by 1,568 rows
                                      rest: 1,216 x 64

A dense matrix is partitioned as one long row. A reduction is partitioned along the axis that remains, so that one
thread computes each sum. A transpose is partitioned along the rows of what it writes, so that threads write to cache
lines of their own:

    24 x 10,816, written as 10,816 x 24      by columns: 256 rows of 24 elements each
                                             by rows: every thread would write 4 bytes of each 96
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.builder import Builder, partition
from tlx.ir.types import I64, Type, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf, MatrixView
from tlx.lower.to_tiles.problem import (
    Copy,
    Elementwise,
    Gemm,
    Reduction,
    RowFusion,
    as_long_row,
    pointer_views,
    take_rows,
)
from tlx.lower.to_tiles.select.elementwise import value_instructions
from tlx.lower.to_tiles.select.recipe import Recipe, column_ranges, k_passes, row_ranges
from tlx.lower.to_tiles.select.recipe_cost import cost, packs_by_steps
from tlx.target.costs.memory import Caches
from tlx.target.target import Target


@dataclass(frozen=True, slots=True)
class ParallelCost:
    """The work of a kernel.

    Attributes:
        rows, columns: Numbers of row tiles and of panels.
        tile: Cycles of a tile.
        row, column: Additional cycles of each row of tiles, and of each panel.
        shared_row: Cycles that a row of tiles costs each thread where several share it.
        panels: Panels of a cache block.
        packs_panels: Whether each call to the kernel packs the panels that it reads.
        caches_panels: Whether a call can reuse the panels that the previous call has packed.
    """

    rows: int
    columns: int
    tile: float
    row: float = 0.0
    column: float = 0.0
    shared_row: float = 0.0
    panels: int = 1
    packs_panels: bool = False
    caches_panels: bool = False

    @property
    def cycles(self) -> float:
        """Cycles of the whole kernel."""
        return self.rows * self.columns * self.tile + self.rows * self.row + self.columns * self.column

    def max_threads(self, least: int) -> int:
        """The most threads that each have at least `least` cycles of work."""
        return most_threads(self.rows * self.columns, self.cycles, least)


def most_threads(jobs: int, cycles: float, least: int) -> int:
    """The most threads that each have a job and at least `least` of all cycles."""
    return min(jobs, int(cycles / max(least, 1)))


def gemm_parallel_cost(gemm: Gemm, recipe: Recipe, target: Target) -> ParallelCost | None:
    """The work of a product's kernel; None for a kernel that cannot be divided."""
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
    packs_panels = recipe.packing.b and not recipe.packing.prepacked_b
    caches_panels = (
        packs_panels and sum(part.count for part in k_passes(gemm, recipe)) == 1 and not packs_by_steps(gemm, recipe)
    )
    shared_row = recipe.tile.mr * target.memory.false_sharing_row_cycles if _fits_l2(gemm, target.caches) else 0.0
    return ParallelCost(rows, columns, tile, row, column, shared_row, panels, packs_panels, caches_panels)


def _fits_l2(gemm: Gemm, caches: Caches) -> bool:
    """Whether the matrices fit the L2 caches of two threads; otherwise cache lines move between cores in any case."""
    return sum(view.bytes_moved for view in (gemm.a, gemm.b, gemm.c)) <= 2 * caches.l2


_MIN_UNITS: Final = 16
"""Least number of units that a rectangle is divided into, if it has as many tiles."""
_MIN_PACKED_UNITS: Final = 4
"""The same where panels are packed: A is read again for each group of panels that is packed separately."""

KernelCall = Callable[[Builder, list[Value]], None]
"""Emits a kernel's call for half-open ranges of row tiles and of panels."""


RunUnits = Callable[[Builder, Value, Value], None]
"""Emits a job: a half-open range of the units of a share."""


@dataclass(frozen=True, slots=True)
class ThreadShare:
    """The share of one thread: its number of units, and the emitter of a job."""

    units: Value
    run: RunUnits


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
        if work.packs_panels and not work.caches_panels:
            step = self._step(b, width)
            units, rectangle = b.ceil_div(width, step), _Rectangle(kernel, rows[0], columns[0], height, width, step)
            return ThreadShare(b.select(inside, units, none), rectangle.run_all_rows)
        blocks = self._blocks(b, height, width)
        rectangle = _Rectangle(kernel, rows[0], columns[0], height, width, blocks)
        run = rectangle.run_blocks if work.caches_panels else rectangle.run_whole
        return ThreadShare(b.select(inside, b.mul(blocks, height), none), run)

    def _step(self, b: Builder, width: Value) -> Value:
        """Panels that a call packs and multiplies: at most half a cache block and a quarter of the columns."""
        quarter = b.add(b.binary("lshr", width, const_int(I64, 2)), 1)
        return b.umin(quarter, max(1, self.work.panels // 2))

    def _blocks(self, b: Builder, height: Value, width: Value) -> Value:
        """Number of blocks of columns: as many as fit the cache, or more where there are few rows.

        Where threads cache their panels, it is the same in all rectangles of a column of the grid.
        """
        fitting = b.ceil_div(width, self.work.panels)
        height = b.ceil_div(const_int(I64, self.work.rows), self.down) if self.work.caches_panels else height
        fewest = _MIN_PACKED_UNITS if self.work.caches_panels else _MIN_UNITS
        enough = b.umin(width, b.ceil_div(const_int(I64, fewest), height))
        return b.select(b.icmp("ult", fitting, enough), enough, fitting)


@dataclass(frozen=True, slots=True)
class _Rectangle:
    """A thread's rectangle of tiles; emits its jobs.

    Attributes:
        kernel: Emits calls.
        row, column: Its first row tile and panel.
        height, width: Its numbers of row tiles and panels.
        blocks: Number of cache blocks of columns, or where each call packs its panels, the number of panels of a unit.
    """

    kernel: KernelCall
    row: Value
    column: Value
    height: Value
    width: Value
    blocks: Value

    def run_all_rows(self, b: Builder, first: Value, last: Value) -> None:
        """Compute all rows of some panels, which the call packs."""
        end = b.add(self.column, self.width)
        rows = self.row, b.add(self.row, self.height)
        self.kernel(b, [*rows, *(b.umin(b.add(self.column, b.mul(n, self.blocks)), end) for n in (first, last))])

    def run_whole(self, b: Builder, first: Value, last: Value) -> None:
        """Compute some units by three calls: the end of a block, whole blocks, the beginning of one."""
        height, nothing = self.height, const_int(I64, 0)
        first_whole, whole_end = b.ceil_div(first, height), b.binary("udiv", last, height)
        start, end = b.mul(first_whole, height), b.mul(whole_end, height)
        before = b.sub(first_whole, 1)
        with b.if_block(b.icmp("ult", first, start), "head"):
            above = b.mul(before, height)
            self._call(b, (b.sub(first, above), b.sub(b.umin(start, last), above)), before, first_whole)
        with b.if_block(b.icmp("ult", first_whole, whole_end), "middle"):
            self._call(b, (nothing, height), first_whole, whole_end)
        below = b.select(b.icmp("ule", first_whole, whole_end), b.sub(last, end), nothing)
        with b.if_block(b.icmp("ne", below, 0), "tail"):
            self._call(b, (nothing, below), whole_end, b.add(whole_end, 1))

    def run_blocks(self, b: Builder, first: Value, last: Value) -> None:
        """Compute some units, block by block."""
        height = self.height
        with b.loop(b.binary("udiv", first, height), b.ceil_div(last, height), name="block", nonempty=True) as loop:
            before = b.mul(loop.index, height)
            top = b.select(b.icmp("ult", before, first), b.sub(first, before), const_int(I64, 0))
            rows = top, b.sub(b.umin(last, b.add(before, height)), before)
            self._call(b, rows, loop.index, b.add(loop.index, 1))

    def _call(self, b: Builder, rows: tuple[Value, Value], block: Value, block_end: Value) -> None:
        """Call the kernel for some row tiles by the panels of a half-open range of blocks."""
        panels = (partition(b, self.width, number, self.blocks)[0] for number in (block, block_end))
        self.kernel(b, [*(b.add(self.row, row) for row in rows), *(b.add(self.column, panel) for panel in panels)])


def _rows_of_grid(b: Builder, work: ParallelCost, team: Value) -> Value:
    """Number of rows of the thread grid that minimizes the work of the busiest thread.

    for down = 1 .. team:  across = team / down
        cycles = ceil(rows / down) * ceil(columns / across) * tile
               + ceil(rows / down) * (row + shared_row if across > 1 else row) + ceil(columns / across) * column
    """
    if work.columns == 1:
        return b.umin(team, work.rows)
    if work.rows == 1:
        return const_int(I64, 1)
    unit = max(work.cycles / (1 << 40), 1.0)
    costs = work.tile, work.row, work.row + work.shared_row, work.column
    tile, row, shared_row, column = (const_int(I64, round(cost / unit)) for cost in costs)
    start: list[Value] = [const_int(I64, 1), const_int(I64, (1 << 63) - 1)]
    last = b.add(b.umin(team, work.rows), 1)
    with b.loop(1, last, carry=start, name="grid.rows", nonempty=True) as loop:
        height = b.ceil_div(const_int(I64, work.rows), loop.index)
        across = b.binary("udiv", team, loop.index)
        width = b.ceil_div(const_int(I64, work.columns), across)
        reading = (
            b.mul(height, b.select(b.icmp("ugt", across, 1), shared_row, row))
            if work.shared_row
            else b.mul(height, row)
        )
        cycles = b.add(b.mul(b.mul(height, width), tile), b.add(reading, b.mul(width, column)))
        better = b.icmp("ult", cycles, loop.carried[1])
        loop.next(b.select(better, loop.index, loop.carried[0]), b.select(better, cycles, loop.carried[1]))
    return loop.results[0]


Divisible = Copy | Elementwise | Reduction | RowFusion
_MAX_PARTS: Final = 128
_PARTS_PER_THREAD: Final = 4  # parts of the least work of a thread
_GRANULE: Final = 16  # rows or columns
_LONG_GRANULE: Final = 1024  # elements of one long row


@dataclass(frozen=True, slots=True)
class PartPointer:
    """A pointer of a kernel: its element type, and by how many elements it advances from part to part."""

    element: Type
    step: int


@dataclass(frozen=True, slots=True)
class ProblemPartition:
    """A problem divided into equal parts and a rest.

    Attributes:
        part: The problem of a part.
        count: Number of parts.
        rest: The smaller problem after the last part.
        pointers: The kernel's pointers.
        cycles: Work of the whole problem.
    """

    part: Divisible
    count: int
    rest: Divisible | None
    pointers: tuple[PartPointer, ...]
    cycles: float

    @property
    def total(self) -> int:
        """Number of parts, including the rest."""
        return self.count + (self.rest is not None)


def partition_problem(problem: Divisible, target: Target, least: int) -> ProblemPartition | None:
    """The parts of a problem, for threads of at least `least` cycles each; None if there would be fewer than two."""
    if isinstance(problem, Elementwise):
        problem = as_long_row(problem)
    rows, cols = _extents(problem)
    by_rows = _is_by_rows(problem)
    extent = rows if by_rows else cols
    cycles = problem_cycles(problem, target)
    count = min(_MAX_PARTS, int(cycles * _PARTS_PER_THREAD / max(least, 1)), extent)
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
    steps = tuple(PartPointer(p.element, p.step * size) for p in pointers)
    remainder = _part(problem, rest, by_rows=by_rows) if rest else None
    return ProblemPartition(_part(problem, size, by_rows=by_rows), count, remainder, steps, cycles)


def _is_by_rows(problem: Divisible) -> bool:
    """Whether parts are rows of a problem rather than columns."""
    if isinstance(problem, Reduction):
        return problem.axis == 1
    rows, cols = _extents(problem)
    return rows > 1 and (not isinstance(problem, Copy) or problem.destination.is_row_major or cols <= _GRANULE)


def _extents(problem: Divisible) -> tuple[int, int]:
    if isinstance(problem, Copy):
        return problem.source.rows, problem.source.cols
    if isinstance(problem, RowFusion):
        return problem.rows, problem.parts[-1].problem.value.cols
    return problem.value.rows, problem.value.cols


def problem_cycles(problem: Divisible, target: Target) -> float:
    """The work of a problem, roughly: the longer of its memory traffic and its instructions."""
    if isinstance(problem, Copy):
        return problem.bytes_moved / target.memory.bytes_per_cycle
    if isinstance(problem, RowFusion):
        return sum(problem_cycles(part.problem, target) for part in problem.parts)
    return max(problem.bytes_moved / target.memory.bytes_per_cycle, value_instructions(problem, target))


def _pointers(problem: Divisible, *, by_rows: bool) -> tuple[PartPointer, ...] | None:
    """The kernel's pointers, with their steps from one row or column to the next; None if a pointer has two steps."""
    if isinstance(problem, Copy):
        return tuple(_pointer(view, by_rows=by_rows) for view in (problem.destination, problem.source))
    if isinstance(problem, RowFusion):
        pointers: dict[int, PartPointer] = {}
        for part in problem.parts:
            for number, view in zip(part.pointers, pointer_views(part.problem), strict=True):
                pointers.setdefault(number, _pointer(view, by_rows=True))
        return tuple(pointers[number] for number in sorted(pointers))
    leaves: dict[int, PartPointer] = {}
    steps = [(leaf, _pointer(leaf.view, by_rows=by_rows)) for leaf in problem.value.leaves()]
    if isinstance(problem, Reduction) and problem.epilogue is not None:
        steps += [(leaf, _pointer(leaf.view, by_rows=False)) for leaf in problem.epilogue.leaves()]
    for leaf, pointer in steps:
        if leaves.setdefault(leaf.pointer, pointer) != pointer:
            return None
    return (_pointer(problem.destination, by_rows=by_rows), *(leaves[number] for number in sorted(leaves)))


def _pointer(view: MatrixView, *, by_rows: bool) -> PartPointer:
    extent, stride = (view.rows, view.row_stride) if by_rows else (view.cols, view.col_stride)
    return PartPointer(view.element, stride if extent > 1 else 0)


def _part(problem: Divisible, size: int, *, by_rows: bool) -> Divisible:
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
    epilogue = _shorter_value(problem.epilogue, size, by_rows=False) if problem.epilogue is not None else None
    return replace(problem, value=value, destination=to, epilogue=epilogue)


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
