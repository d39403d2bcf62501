"""Kernels on several threads: each works on some of the tiles, a rectangle of a grid.

                 columns                    Rewrite:
           0     3     6     8                define internal void @K(args) { loops over all tiles }
         0 +-----+-----+-----+                  ->
    rows   |  0  |  1  |  2  |                define internal void @K.part(args, row, row.end, column, column.end)
         4 +-----+-----+-----+                define internal void @K.thread(shared) { my part of the grid: @K.part }
           |  3  |  4  |  5  |                define internal void @K(args) {
         8 +-----+-----+-----+                  team of one:      @K.part(args, 0, 8, 0, 8)
                                                team of several:  GOMP_parallel(@K.thread, args, team)
                                              }

Which grid is chosen by the threads themselves, when they know how many they are (`grid`). A thread that is done helps
the others (`stealing`). An element of the result is computed by one thread, in the order in
which one thread would compute it, so results do not depend on the number of threads.
Inside a parallel region of the program a kernel runs on the thread that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.module import Argument, Function, Module
from tlx.ir.threads import Thread, cut, in_threads, team_size
from tlx.ir.types import I64, VOID, FunctionType
from tlx.ir.values import Global, Value, const_int
from tlx.lower.to_tiles.branches import branches
from tlx.lower.to_tiles.grid import Grid
from tlx.lower.to_tiles.kept import Cut, panels_kept, whole
from tlx.lower.to_tiles.share import PART
from tlx.lower.to_tiles.slabs import Slabs
from tlx.lower.to_tiles.stealing import MOST_THREADS, Portion, Shares, counters, shares

ATTRIBUTES: Final = "nounwind noinline"


Share = Callable[[Builder, list[Value], Thread, Value], None]
"""Emits what one of several threads does, given the values that the team has, and the counters of what is taken."""
Together = Callable[[Builder, list[Value], Value], None]
"""Emits what a team of so many threads does, given a function's arguments."""

MANY: Final = 4
"""Threads from which on a team does what `many` tells, where a kernel has that."""


def grid_kernel(module: Module, cut: Cut, most: int, many: Together | None = None) -> Function:
    """Add the function that runs a kernel with bounds on a team of at most `most` threads."""
    part = cut.kernel
    stem = part.name.strip('"').removesuffix(PART)

    def alone(b: Builder, values: list[Value]) -> None:
        with panels_kept(b, cut) as kept:
            call(b, part, [*values, *whole(cut, kept)])

    return _team_kernel(module, stem, part.arguments[: cut.parameters], most, (grid_share(cut, most), alone), many)


def grid_share(cut: Cut, most: int) -> Share:
    """Each thread's rectangle of a grid, by a kernel with bounds, where there is work for so many threads."""

    def share(b: Builder, own: list[Value], thread: Thread, taken: Value) -> None:
        grid = Grid.of(b, cut.work, thread.team)
        with panels_kept(b, cut) as kept:

            def kernel(b: Builder, bounds: list[Value]) -> None:
                call(b, cut.kernel, [*own, *bounds, *(kept.arguments(b, bounds[2]) if kept else ())])

            def portion(b: Builder, owner: Value) -> Portion:
                return grid.portion(b, kernel, owner)

            shares(b, taken, thread, most, Shares(portion, grid.down))

    return share


def range_share(count: int, most: int, run: Callable[[Builder, list[Value], tuple[Value, Value]], None]) -> Share:
    """Each thread's part of the numbers from 0 to `count`, work for so many threads; `run` does some of them."""

    def share(b: Builder, own: list[Value], thread: Thread, taken: Value) -> None:
        def portion(b: Builder, owner: Value) -> Portion:
            start, end = cut(b, const_int(I64, count), owner, thread.team)

            def job(b: Builder, first: Value, last: Value) -> None:
                run(b, own, (b.add(start, first), b.add(start, last)))

            return Portion(b.sub(end, start), job)

        shares(b, taken, thread, most, Shares(portion))

    return share


def slabs_kernel(module: Module, stem: str, slabs: Slabs, kernels: Sequence[Function], most: int) -> Function:
    """Add the function that runs the kernels of slabs and, if there is one, of what is left behind them.

    Thread t runs neighbouring slabs; where the rest is, the last one runs it as well.
    """
    return iterations_kernel(module, stem, _slabs_part(module, stem, slabs, kernels), slabs.total, most)


def iterations_kernel(module: Module, stem: str, part: Function, count: int, most: int) -> Function:
    """Add the function that has at most `most` threads run a function that takes the bounds of a loop.

    Args:
        module: Where it is added.
        stem: Its name.
        part: Its last two parameters are the first number, and the one behind the last.
        count: How many numbers there are.
        most: Threads there may be.
    """

    def run(b: Builder, own: list[Value], bounds: tuple[Value, Value]) -> None:
        call(b, part, [*own, *bounds])

    def alone(b: Builder, values: list[Value]) -> None:
        run(b, values, (const_int(I64, 0), const_int(I64, count)))

    return _team_kernel(module, stem, part.arguments[:-2], most, (range_share(count, most, run), alone))


def in_shares(b: Builder, name: str, values: list[Value], share: Share, team: Value) -> None:
    """Have a team of so many threads (i32) do a new function of that name, each its share and parts of the others'."""

    def body(inner: Builder, own: list[Value], thread: Thread) -> None:
        taken, *rest = own
        share(inner, rest, thread, taken)

    in_threads(b, name, [counters(b, team), *values], body, ATTRIBUTES, team)


def _slabs_part(module: Module, stem: str, slabs: Slabs, kernels: Sequence[Function]) -> Function:
    """Add the function that runs some slabs; its last parameters are the first one, and the one behind the last."""
    parameters = [(a.type, a.attributes, a.name) for a in kernels[0].arguments]
    bounds = [(I64, "", name) for name in ("slab", "slab.end")]
    function = new_function(module, module.global_names.fresh(stem + PART), [*parameters, *bounds], ATTRIBUTES)
    b = Builder(module, function)
    *values, first, last = (argument.value for argument in function.arguments)
    behind = b.umin(last, slabs.count) if slabs.rest else last
    with b.loop(first, behind, name="slab") as loop:
        call(b, kernels[0], _moved(b, slabs, values, loop.index))
    if slabs.rest:
        rest, done = branches(b, b.icmp("eq", last, slabs.total), ("rest", "done"))
        b.at_end(rest)
        call(b, kernels[1], _moved(b, slabs, values, const_int(I64, slabs.count)))
        b.branch(done)
        b.at_end(done)
    b.ret()
    return function


def _moved(b: Builder, slabs: Slabs, values: Sequence[Value], number: Value) -> list[Value]:
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
    work: tuple[Share, Callable[[Builder, list[Value]], None]],
    many: Together | None = None,
) -> Function:
    """A function of these arguments that a team of at most `most` threads runs, or one thread alone."""
    share, alone = work
    parameters = [(a.type, a.attributes, a.name) for a in arguments]
    function = new_function(module, module.global_names.fresh(stem), parameters, ATTRIBUTES)
    thread = module.global_names.fresh(f"{stem}.thread")
    b = Builder(module, function)
    values: list[Value] = [argument.value for argument in function.arguments]
    size = team_size(b, min(most, MOST_THREADS))
    if many is not None and most >= MANY:
        large, small = branches(b, b.icmp("uge", size, MANY), ("many", "few"))
        b.at_end(large)
        many(b, values, size)
        b.ret()
        b.at_end(small)
    several, one = branches(b, b.icmp("ugt", size, 1), ("several", "one"))
    b.at_end(several)
    in_shares(b, thread, values, share, size)
    b.ret()
    b.at_end(one)
    alone(b, values)
    b.ret()
    return function


def call(b: Builder, callee: Function, args: Sequence[Value]) -> None:
    """Call a function of the module that returns nothing."""
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), callee.name), type_, args)
