"""Teams: functions that run a kernel on the threads of a team; cooperative packing, panel cache, work stealing.

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

The grid is chosen at run time, when the size of the team is known (`partition`). Each element of the result is computed
by one thread, in the same order as by a team of one, so results do not depend on the number of threads.

Inside a parallel region of the program a kernel runs on the calling thread.

Cooperative packing. A large team packs B once: all threads pack, then all multiply.

Rewrite:
    define internal void @K(c, a, b) { a team runs @K.part, and each thread packs the panels that it reads }
        ->
    define internal void @K(c, a, b) {
      small team: as above
      large team: panels = malloc
                  the team runs @K.pack.part(panels, b, first panel, last panel)
                  the team runs @K.packed.part(c, a, panels, part of the grid)
                  free(panels)
    }

In a grid of 4 x 4 threads, each thread would otherwise pack a quarter of B, four times its share, and the panels would
take four times as much of the shared cache. Two or three threads each have columns of their own, so nothing is packed
twice.

Panel cache. Jobs of neighbouring rows use the same panels of B. A thread packs them for the first of these jobs, into
private memory that it allocates once:

    memory = malloc, held = none
    for each job, for each block of panels that it reads:
      call @K.part(args, rows, panels, memory, held == first panel)        packs unless the panels are there
      held = first panel
    free(memory)

A thread that steals jobs from threads with the same panels reuses them, too.

Without the cache, 1024 cubed takes this many times as long with 4, 8 and 16 threads (Xeon with AMX, 16 processors,
2026-11-23): bfloat 1.27, 1.08, 1.15, bytes 1.21, 1.05, 1.18. Vector kernels, which pack together in large teams, gain
nothing from it (float 0.99, 1.00, 1.01).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder import Builder, Thread, emit_parallel_region, new_function, partition, team_size
from tlx.ir.functions import Argument, Function
from tlx.ir.module import Module
from tlx.ir.types import I8, I64, Type, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.kernel import BOUND_PARAMETERS, PANEL_CACHE_PARAMETERS, PART_SUFFIX, Scratch, call_function
from tlx.lower.to_tiles.pack.panels import PackedPanels
from tlx.lower.to_tiles.parallel.partition import GridPartition, ParallelCost, ProblemPartition, ThreadShare
from tlx.lower.to_tiles.parallel.stealing import MAX_THREADS, ThreadShares, emit_stealing, share_counters
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.recipe import Recipe

TEAM_ATTRIBUTES: Final = "nounwind noinline"


ThreadBody = Callable[[Builder, list[Value], Thread, Value], None]
"""Emits the work of one thread, given the values that the team shares, the thread, and the counters of jobs."""
SerialBody = Callable[[Builder, list[Value]], None]
"""Emits the work of a kernel on one thread, given the function's arguments."""

MIN_COOPERATING_THREADS: Final = 4
"""Least number of threads that pack B together."""


@dataclass(frozen=True, eq=False)
class CooperativePacking:
    """How a team packs B and then multiplies.

    Attributes:
        names: Stems of the functions that pack and multiply.
        pack: Emits a thread's part of packing: the values are the panels and B.
        multiply: Emits a thread's part of the product: the values are the kernel's, with the panels in place of B.
        element: Element type of the panels.
        count: Number of their elements.
    """

    names: tuple[str, str]
    pack: ThreadBody
    multiply: ThreadBody
    element: Type
    count: int

    @property
    def bytes(self) -> int:
        """Size of the panels."""
        return self.count * bytes_of(self.element)

    def packing_arguments(self, values: Sequence[Value], panels: Value) -> list[Value]:
        """The arguments of the function that packs."""
        return [panels, values[_B_ARGUMENT]]

    def multiply_arguments(self, values: Sequence[Value], panels: Value) -> list[Value]:
        """The arguments of the function that multiplies."""
        return [*values[:_B_ARGUMENT], panels, *values[_B_ARGUMENT + 1 :]]


@dataclass(frozen=True, eq=False)
class TeamWork:
    """How the threads of a team run a kernel.

    Attributes:
        function: The function that starts a team for the kernel.
        max_threads: Most threads that take part.
        share: The function that does one thread's share: the kernel's arguments, thread, team, counters.
        single_thread: Emits the work of a team of one.
        packing: How a large team packs B; None if each thread packs what it reads.
        packers: The functions that do a thread's share of packing, and of the product; empty without `packing`.
        threads: The functions that the team of this kernel executes.
    """

    function: Function
    max_threads: int
    share: Function
    single_thread: SerialBody
    packing: CooperativePacking | None
    packers: tuple[Function, ...]
    threads: tuple[str, ...]


@dataclass(eq=False)
class TeamKernels:
    """The kernels of a module that run on a team of threads.

    Attributes:
        module: The module.
        work: How a team runs each of them, by name.
    """

    module: Module
    work: dict[str, TeamWork] = field(default_factory=dict[str, TeamWork])


def grid_kernel(
    teams: TeamKernels, partial: PartialKernel, max_threads: int, packing: CooperativePacking | None
) -> Function:
    """Add the function that runs a kernel with bounds on a team of at most `max_threads` threads."""
    part = partial.kernel
    stem = part.name.strip('"').removesuffix(PART_SUFFIX)

    def run_on_one_thread(b: Builder, values: list[Value]) -> None:
        with panel_cache(b, partial) as cache:
            call_function(b, part, [*values, *whole_product_arguments(partial, cache)])

    return _team_kernel(
        teams,
        stem,
        part.arguments[: partial.parameters],
        max_threads,
        (grid_share(partial, max_threads), run_on_one_thread),
        packing,
    )


def grid_share(partial: PartialKernel, max_threads: int) -> ThreadBody:
    """The emitter of each thread's rectangle of a grid, computed by a kernel with bounds."""

    def share(b: Builder, values: list[Value], thread: Thread, counters: Value) -> None:
        grid = GridPartition.of(b, partial.work, thread.team)
        with panel_cache(b, partial) as cache:

            def kernel(b: Builder, bounds: list[Value]) -> None:
                call_function(b, partial.kernel, [*values, *bounds, *(cache.arguments(b, bounds[2]) if cache else ())])

            def portion(b: Builder, owner: Value) -> ThreadShare:
                return grid.portion(b, kernel, owner)

            emit_stealing(b, counters, thread, max_threads, ThreadShares(portion, grid.down))

    return share


def range_share(
    count: int, max_threads: int, run: Callable[[Builder, list[Value], tuple[Value, Value]], None]
) -> ThreadBody:
    """The emitter of each thread's part of the numbers from 0 to `count`; `run` emits the work for a range of them."""

    def share(b: Builder, values: list[Value], thread: Thread, counters: Value) -> None:
        def portion(b: Builder, owner: Value) -> ThreadShare:
            start, end = partition(b, const_int(I64, count), owner, thread.team)

            def job(b: Builder, first: Value, last: Value) -> None:
                run(b, values, (b.add(start, first), b.add(start, last)))

            return ThreadShare(b.sub(end, start), job)

        emit_stealing(b, counters, thread, max_threads, ThreadShares(portion))

    return share


def partition_kernel(
    teams: TeamKernels, stem: str, partition: ProblemPartition, kernels: Sequence[Function], max_threads: int
) -> Function:
    """Add the function that runs the kernel of a partition's parts and, if there is one, that of its rest.

    A thread runs consecutive parts; the rest counts as the last part.
    """
    part = _part_range_function(teams.module, stem, partition, kernels)
    return iterations_kernel(teams, stem, part, partition.total, max_threads)


def iterations_kernel(teams: TeamKernels, stem: str, part: Function, count: int, max_threads: int) -> Function:
    """Add the function by which at most `max_threads` threads run the iterations of a loop.

    Args:
        teams: Where it is added.
        stem: Its name.
        part: Runs a range of iterations, whose half-open bounds are its last two parameters.
        count: Number of iterations.
        max_threads: Most threads of a team.
    """

    def run(b: Builder, arguments: list[Value], bounds: tuple[Value, Value]) -> None:
        call_function(b, part, [*arguments, *bounds])

    def run_on_one_thread(b: Builder, values: list[Value]) -> None:
        run(b, values, (const_int(I64, 0), const_int(I64, count)))

    return _team_kernel(
        teams, stem, part.arguments[:-2], max_threads, (range_share(count, max_threads, run), run_on_one_thread)
    )


def run_in_shares(b: Builder, name: str, values: list[Value], share: ThreadBody, team: Value) -> Function:
    """Emit a team of `team` threads (i32) that run a new function `name`, with work stealing.

    Returns:
        The function that does a thread's share, which that function calls.
    """
    function = _share_function(b.module, f"{name}.share", [value.type for value in values], share)

    def body(inner: Builder, shared: list[Value], thread: Thread) -> None:
        counters, *rest = shared
        call_function(inner, function, [*rest, thread.number, thread.team, counters])

    emit_parallel_region(b, name, [share_counters(b, team), *values], body, TEAM_ATTRIBUTES, team)
    return function


def _share_function(module: Module, name: str, types: Sequence[Type], share: ThreadBody) -> Function:
    """Add the function that does a thread's share: its parameters are values, the thread, the team, the counters."""
    shared = [(type_, "", f"x{number}") for number, type_ in enumerate(types)]
    counters = (module.pointer_to(I64), "", "counters")
    parameters = [*shared, (I64, "", "thread"), (I64, "", "team"), counters]
    function = new_function(module, module.global_names.fresh(name), parameters, TEAM_ATTRIBUTES)
    b = Builder(module, function)
    passed: list[Value] = [argument.value for argument in function.arguments]
    number, team, counter = passed[-3:]
    share(b, passed[:-3], Thread(number, team), counter)
    b.ret()
    return function


def _part_range_function(
    module: Module, stem: str, partition: ProblemPartition, kernels: Sequence[Function]
) -> Function:
    """Add the function that runs some parts; its last parameters are their half-open range."""
    parameters = [(a.type, a.attributes, a.name) for a in kernels[0].arguments]
    bounds = [(I64, "", name) for name in ("part", "part.end")]
    function = new_function(
        module, module.global_names.fresh(stem + PART_SUFFIX), [*parameters, *bounds], TEAM_ATTRIBUTES
    )
    b = Builder(module, function)
    *values, first, last = (argument.value for argument in function.arguments)
    end = b.umin(last, partition.count) if partition.rest else last
    with b.loop(first, end, name="part") as loop:
        call_function(b, kernels[0], _part_arguments(b, partition, values, loop.index))
    if partition.rest:
        rest, done = b.if_else_blocks(b.icmp("eq", last, partition.total), ("rest", "done"))
        b.at_end(rest)
        call_function(b, kernels[1], _part_arguments(b, partition, values, const_int(I64, partition.count)))
        b.branch(done)
        b.at_end(done)
    b.ret()
    return function


def _part_arguments(b: Builder, partition: ProblemPartition, values: Sequence[Value], number: Value) -> list[Value]:
    """A kernel's arguments for a part."""
    pointers = [
        b.gep(pointer.element, value, b.mul(number, pointer.step))
        for pointer, value in zip(partition.pointers, values, strict=False)
    ]
    return [*pointers, *values[len(pointers) :]]


def _team_kernel(
    teams: TeamKernels,
    stem: str,
    arguments: Sequence[Argument],
    max_threads: int,
    work: tuple[ThreadBody, SerialBody],
    packing: CooperativePacking | None = None,
) -> Function:
    """A function of these arguments, run by a team of at most `max_threads` threads or by one thread alone."""
    module, (share, run_on_one_thread) = teams.module, work
    parameters = [(a.type, a.attributes, a.name) for a in arguments]
    function = new_function(module, module.global_names.fresh(stem), parameters, TEAM_ATTRIBUTES)
    thread = module.global_names.fresh(f"{stem}.thread")
    threads, packers = [thread], tuple[Function, ...]()
    b = Builder(module, function)
    values: list[Value] = [argument.value for argument in function.arguments]
    size = team_size(b, min(max_threads, MAX_THREADS))
    packing = packing if max_threads >= MIN_COOPERATING_THREADS else None
    if packing is not None:
        large, small = b.if_else_blocks(b.icmp("uge", size, MIN_COOPERATING_THREADS), ("large.team", "small.team"))
        b.at_end(large)
        names = [module.global_names.fresh(name) for name in packing.names]
        packers = _pack_and_multiply(b, packing, names, values, size)
        threads += names
        b.ret()
        b.at_end(small)
    several, one = b.if_else_blocks(b.icmp("ugt", size, 1), ("parallel", "serial"))
    b.at_end(several)
    share_function = run_in_shares(b, thread, values, share, size)
    b.ret()
    b.at_end(one)
    run_on_one_thread(b, values)
    b.ret()
    teams.work[function.name] = TeamWork(
        function, min(max_threads, MAX_THREADS), share_function, run_on_one_thread, packing, packers, tuple(threads)
    )
    return function


def _pack_and_multiply(
    b: Builder, packing: CooperativePacking, names: Sequence[str], values: list[Value], size: Value
) -> tuple[Function, Function]:
    """Emit a team that packs, and one that multiplies; returns the functions that do a thread's share."""
    scratch = Scratch()
    buffer = scratch.reserve(packing.element, packing.count)
    scratch.allocate(b)
    panels = buffer.pointer
    pack = run_in_shares(b, names[0], packing.packing_arguments(values, panels), packing.pack, size)
    multiply = run_in_shares(b, names[1], packing.multiply_arguments(values, panels), packing.multiply, size)
    scratch.release(b)
    return pack, multiply


# Cooperative packing -------------------------------------------------------------------------------------------------


_MAX_SHARED_BYTES: Final = 256 << 20
"""If the panels are larger, each thread packs its own, one cache block at a time."""
_B_ARGUMENT: Final = 2  # the position of B among a kernel's arguments


def packs_cooperatively(gemm: Gemm, recipe: Recipe, work: ParallelCost, least: int) -> bool:
    """Whether a team packs B once, rather than each thread the panels it reads.

    It does where several threads of the grid would pack the same panels, and where packing alone is enough work for
    several threads. It does not on a matrix unit, which is bound by memory: packing panels into the thread's own L2
    takes no longer than reading those that other threads have packed (measured at 1024 and 2048 cubed of bfloat).
    """
    if not recipe.packing.b or recipe.packing.prepacked_b or recipe.mma.unit == "matrix":
        return False
    if PackedPanels.of(gemm, recipe).size(recipe) > _MAX_SHARED_BYTES:
        return False
    return (
        min(work.rows, work.columns) >= MIN_COOPERATING_THREADS
        and work.columns * work.column >= MIN_COOPERATING_THREADS * least
    )


def pack_cooperatively(
    gemm: Gemm, recipe: Recipe, kernels: tuple[Function, Function], work: ParallelCost, max_threads: int
) -> CooperativePacking:
    """How a team packs B and then multiplies.

    Args:
        gemm: The product.
        recipe: How it is computed, given B in panels.
        kernels: The kernel that packs some panels, and the one that multiplies a rectangle of the grid.
        work: The work of the product.
        max_threads: The most threads of a team.
    """
    pack, part = kernels
    stem = pack.name.strip('"').removesuffix(f".pack{PART_SUFFIX}")

    def panels_of(b: Builder, arguments: list[Value], bounds: tuple[Value, Value]) -> None:
        nothing = const_int(I64, 0)
        call_function(b, pack, [*arguments, nothing, nothing, *bounds])

    element = recipe.mma.operand_b
    return CooperativePacking(
        (f"{stem}.packer", f"{stem}.multiplier"),
        range_share(work.columns, max_threads, panels_of),
        grid_share(PartialKernel(part, work), max_threads),
        element,
        -(-PackedPanels.of(gemm, recipe).size(recipe) // bytes_of(element)),
    )


# Panel cache ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartialKernel:
    """A kernel that works on a part of its tiles.

    Attributes:
        kernel: Its last parameters are the bounds of the part and, if it caches panels, their memory and state.
        work: The cost and the tiles of the whole product.
        cache_bytes: Bytes of the cached panels; 0 if the kernel caches none.
    """

    kernel: Function
    work: ParallelCost
    cache_bytes: int = 0

    @property
    def parameters(self) -> int:
        """The number of the kernel's parameters that the function for the whole product has, too."""
        return (
            len(self.kernel.arguments)
            - len(BOUND_PARAMETERS)
            - (len(PANEL_CACHE_PARAMETERS) if self.work.caches_panels else 0)
        )


@dataclass(frozen=True)
class PanelCache:
    """The packed panels that a thread keeps from one job to the next.

    Attributes:
        memory: Their address.
        first_panel: Address of the number of the first one.
    """

    memory: Value
    first_panel: Value

    def arguments(self, b: Builder, first: Value) -> list[Value]:
        """A kernel's arguments after its bounds, for a block that begins with panel number `first`."""
        packed = b.cast("zext", b.icmp("eq", b.load(I64, self.first_panel, 8), first), I64, "packed")
        b.store(first, self.first_panel, 8)
        return [self.memory, packed]


@contextmanager
def panel_cache(b: Builder, partial: PartialKernel) -> Generator[PanelCache | None]:
    """Memory for a kernel's panels around the code emitted in this context; None if the kernel caches none."""
    if not partial.work.caches_panels:
        yield None
        return
    scratch = Scratch(joins=False)
    memory = scratch.reserve(I8, partial.cache_bytes)
    scratch.allocate(b)
    first_panel = b.alloca(I64, "cached.panel")
    b.store(const_int(I64, -1), first_panel, 8)
    yield PanelCache(memory.pointer, first_panel)
    scratch.release(b)


def whole_product_arguments(partial: PartialKernel, cache: PanelCache | None) -> Sequence[Value]:
    """The last arguments of a partial kernel that is to compute the whole product."""
    work = partial.work
    bounds = [const_int(I64, n) for n in (0, work.rows, 0, work.columns)]
    return [*bounds, *([cache.memory, const_int(I64, 0)] if cache else ())]
