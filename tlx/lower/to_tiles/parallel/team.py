"""Teams: functions that run a kernel on the threads of a team, each on its share; B packed once for a team.

Each thread computes some of the tiles, a rectangle of a grid.

                 columns                    Rewrite:
           0     3     6     8                define internal void @K(args) { loops over all tiles }
         0 +-----+-----+-----+                  ->
    rows   |  0  |  1  |  2  |                define internal void @K.part(args, row, row.end, column, column.end)
         4 +-----+-----+-----+                define internal void @K.thread(shared) { my part of the grid: @K.part }
           |  3  |  4  |  5  |                define internal void @K(args) {
         8 +-----+-----+-----+                  team of one:      @K.part(args, 0, 8, 0, 8)
                                                team of several:  GOMP_parallel(@K.thread, args, team)
                                              }

The threads choose the grid at run time, when the size of the team is known (`partition`). A thread that has finished
helps the others (`stealing`). Each element of the result is computed by one thread, in the same order as by a team of
one, so results do not depend on the number of threads.

Inside a parallel region of the program a kernel runs on the calling thread.

A team of many threads packs B once: all pack, then all multiply.

Rewrite:
    define internal void @K(c, a, b) { a team runs @K.part, in which each thread packs the panels that it reads }
        ->
    define internal void @K(c, a, b) {
      team of a few: as above
      team of many:  panels = malloc
                     the team runs @K.pack.part(panels, b, first panel, last panel)
                     the team runs @K.packed.part(c, a, panels, part of the grid)
                     free(panels)
    }

In a grid of 4 x 4 threads, each thread would otherwise pack a quarter of B, four times its share, and the panels would
take four times as much of the shared cache. Two or three threads each have columns of their own, so nothing is packed
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.builder.parallel import Thread, emit_parallel_region, partition, team_size
from tlx.ir.functions import Argument, Function
from tlx.ir.module import Module
from tlx.ir.types import I64, VOID, FunctionType, bytes_of
from tlx.ir.values import Global, Value, const_int
from tlx.lower.to_tiles.emit.scratch import Scratch
from tlx.lower.to_tiles.pack.panel_cache import PartialKernel, panel_cache, whole_product_arguments
from tlx.lower.to_tiles.pack.prepacked import PackedPanels
from tlx.lower.to_tiles.parallel.partition import GridPartition, ParallelCost, Slabs
from tlx.lower.to_tiles.parallel.stealing import MAX_THREADS, ThreadShare, ThreadShares, emit_stealing, share_counters
from tlx.lower.to_tiles.parallel.tile_range import PART_SUFFIX
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.recipe import Recipe

TEAM_ATTRIBUTES: Final = "nounwind noinline"


ThreadBody = Callable[[Builder, list[Value], Thread, Value], None]
"""Emits the work of one of several threads, given the values that the team shares, and the counters of taken jobs."""
CooperativeBody = Callable[[Builder, list[Value], Value], None]
"""Emits the work of a team, given its number of threads and the function's arguments."""

MIN_COOPERATING_THREADS: Final = 4
"""Threads from which on a team runs `many`, where a kernel has it."""


def grid_kernel(module: Module, cut: PartialKernel, most: int, many: CooperativeBody | None = None) -> Function:
    """Add the function that runs a kernel with bounds on a team of at most `most` threads."""
    part = cut.kernel
    stem = part.name.strip('"').removesuffix(PART_SUFFIX)

    def alone(b: Builder, values: list[Value]) -> None:
        with panel_cache(b, cut) as kept:
            call_function(b, part, [*values, *whole_product_arguments(cut, kept)])

    return _team_kernel(module, stem, part.arguments[: cut.parameters], most, (grid_share(cut, most), alone), many)


def grid_share(cut: PartialKernel, most: int) -> ThreadBody:
    """Each thread's rectangle of a grid, run by a kernel with bounds, if there is work for several threads."""

    def share(b: Builder, own: list[Value], thread: Thread, taken: Value) -> None:
        grid = GridPartition.of(b, cut.work, thread.team)
        with panel_cache(b, cut) as kept:

            def kernel(b: Builder, bounds: list[Value]) -> None:
                call_function(b, cut.kernel, [*own, *bounds, *(kept.arguments(b, bounds[2]) if kept else ())])

            def portion(b: Builder, owner: Value) -> ThreadShare:
                return grid.portion(b, kernel, owner)

            emit_stealing(b, taken, thread, most, ThreadShares(portion, grid.down))

    return share


def range_share(count: int, most: int, run: Callable[[Builder, list[Value], tuple[Value, Value]], None]) -> ThreadBody:
    """Each thread's part of the numbers from 0 to `count`, work for so many threads; `run` emits a range of them."""

    def share(b: Builder, own: list[Value], thread: Thread, taken: Value) -> None:
        def portion(b: Builder, owner: Value) -> ThreadShare:
            start, end = partition(b, const_int(I64, count), owner, thread.team)

            def job(b: Builder, first: Value, last: Value) -> None:
                run(b, own, (b.add(start, first), b.add(start, last)))

            return ThreadShare(b.sub(end, start), job)

        emit_stealing(b, taken, thread, most, ThreadShares(portion))

    return share


def slabs_kernel(module: Module, stem: str, slabs: Slabs, kernels: Sequence[Function], most: int) -> Function:
    """Add the function that runs the kernel of slabs and, if there is one, that of the rest.

    A thread runs consecutive slabs; the rest counts as the last slab.
    """
    return iterations_kernel(module, stem, _slab_range_function(module, stem, slabs, kernels), slabs.total, most)


def iterations_kernel(module: Module, stem: str, part: Function, count: int, most: int) -> Function:
    """Add the function that has at most `most` threads run a function that takes the bounds of a loop.

    Args:
        module: Where it is added.
        stem: Its name.
        part: The function; its last two parameters are a half-open range of iterations.
        count: Number of iterations.
        most: Most threads of a team.
    """

    def run(b: Builder, own: list[Value], bounds: tuple[Value, Value]) -> None:
        call_function(b, part, [*own, *bounds])

    def alone(b: Builder, values: list[Value]) -> None:
        run(b, values, (const_int(I64, 0), const_int(I64, count)))

    return _team_kernel(module, stem, part.arguments[:-2], most, (range_share(count, most, run), alone))


def run_in_shares(b: Builder, name: str, values: list[Value], share: ThreadBody, team: Value) -> None:
    """Have a team of `team` threads (i32) run a new function `name`, with work stealing."""

    def body(inner: Builder, own: list[Value], thread: Thread) -> None:
        taken, *rest = own
        share(inner, rest, thread, taken)

    emit_parallel_region(b, name, [share_counters(b, team), *values], body, TEAM_ATTRIBUTES, team)


def _slab_range_function(module: Module, stem: str, slabs: Slabs, kernels: Sequence[Function]) -> Function:
    """Add the function that runs some slabs; its last parameters are their half-open range."""
    parameters = [(a.type, a.attributes, a.name) for a in kernels[0].arguments]
    bounds = [(I64, "", name) for name in ("slab", "slab.end")]
    function = new_function(
        module, module.global_names.fresh(stem + PART_SUFFIX), [*parameters, *bounds], TEAM_ATTRIBUTES
    )
    b = Builder(module, function)
    *values, first, last = (argument.value for argument in function.arguments)
    behind = b.umin(last, slabs.count) if slabs.rest else last
    with b.loop(first, behind, name="slab") as loop:
        call_function(b, kernels[0], _slab_arguments(b, slabs, values, loop.index))
    if slabs.rest:
        rest, done = b.if_else_blocks(b.icmp("eq", last, slabs.total), ("rest", "done"))
        b.at_end(rest)
        call_function(b, kernels[1], _slab_arguments(b, slabs, values, const_int(I64, slabs.count)))
        b.branch(done)
        b.at_end(done)
    b.ret()
    return function


def _slab_arguments(b: Builder, slabs: Slabs, values: Sequence[Value], number: Value) -> list[Value]:
    """A kernel's arguments for a slab."""
    pointers = [
        b.gep(pointer.element, value, b.mul(number, pointer.step))
        for pointer, value in zip(slabs.pointers, values, strict=False)
    ]
    return [*pointers, *values[len(pointers) :]]


def _team_kernel(
    module: Module,
    stem: str,
    arguments: Sequence[Argument],
    most: int,
    work: tuple[ThreadBody, Callable[[Builder, list[Value]], None]],
    many: CooperativeBody | None = None,
) -> Function:
    """A function of these arguments that a team of at most `most` threads runs, or one thread alone."""
    share, alone = work
    parameters = [(a.type, a.attributes, a.name) for a in arguments]
    function = new_function(module, module.global_names.fresh(stem), parameters, TEAM_ATTRIBUTES)
    thread = module.global_names.fresh(f"{stem}.thread")
    b = Builder(module, function)
    values: list[Value] = [argument.value for argument in function.arguments]
    size = team_size(b, min(most, MAX_THREADS))
    if many is not None and most >= MIN_COOPERATING_THREADS:
        large, small = b.if_else_blocks(b.icmp("uge", size, MIN_COOPERATING_THREADS), ("many", "few"))
        b.at_end(large)
        many(b, values, size)
        b.ret()
        b.at_end(small)
    several, one = b.if_else_blocks(b.icmp("ugt", size, 1), ("several", "one"))
    b.at_end(several)
    run_in_shares(b, thread, values, share, size)
    b.ret()
    b.at_end(one)
    alone(b, values)
    b.ret()
    return function


def call_function(b: Builder, callee: Function, args: Sequence[Value]) -> None:
    """Call a function of the module that returns nothing."""
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), callee.name), type_, args)


_MOST_BYTES: Final = 256 << 20
"""Larger panels are packed by each thread, which needs memory for only one cache block of them at a time."""
_B: Final = 2  # its place among a kernel's arguments


def packs_cooperatively(gemm: Gemm, recipe: Recipe, work: ParallelCost, least: int) -> bool:
    """Whether a team packs B once, rather than each thread the panels it reads.

    It does where threads in a column of the grid would pack the same panels, and packing is enough work for several
    threads itself. Not on a matrix unit, which waits for memory anyway: packing again what stays in L2 takes no longer
    than reading what others have packed (measured at 1024 and 2048 cubed of bfloat).
    """
    if not recipe.packing.b or recipe.packing.prepacked_b or recipe.mma.unit == "matrix":
        return False
    if PackedPanels.of(gemm, recipe).size(recipe) > _MOST_BYTES:
        return False
    return (
        min(work.rows, work.columns) >= MIN_COOPERATING_THREADS
        and work.columns * work.column >= MIN_COOPERATING_THREADS * least
    )


def pack_cooperatively(
    module: Module, gemm: Gemm, recipe: Recipe, kernels: tuple[Function, Function], work: ParallelCost, most: int
) -> CooperativeBody:
    """Returns what emits the code by which a team packs B, and then multiplies.

    Args:
        module: Where functions are added.
        gemm: The product.
        recipe: How it is computed, given B in panels.
        kernels: The one that packs some panels, and the one that multiplies a rectangle of the grid; both with bounds.
        work: The work of the product.
        most: The most threads that there is work for.
    """
    pack, part = kernels
    stem = pack.name.strip('"').removesuffix(f".pack{PART_SUFFIX}")
    rectangle = grid_share(PartialKernel(part, work), most)

    def panels_of(b: Builder, own: list[Value], bounds: tuple[Value, Value]) -> None:
        nothing = const_int(I64, 0)
        call_function(b, pack, [*own, nothing, nothing, *bounds])

    def emit(b: Builder, values: list[Value], size: Value) -> None:
        scratch = Scratch()
        element = recipe.mma.operand_b
        buffer = scratch.reserve(element, -(-PackedPanels.of(gemm, recipe).size(recipe) // bytes_of(element)))
        scratch.allocate(b)
        panels = buffer.pointer
        packing, multiplying = (module.global_names.fresh(f"{stem}.{name}") for name in ("packer", "multiplier"))
        run_in_shares(b, packing, [panels, values[_B]], range_share(work.columns, most, panels_of), size)
        run_in_shares(b, multiplying, [*values[:_B], panels, *values[_B + 1 :]], rectangle, size)
        scratch.release(b)

    return emit
