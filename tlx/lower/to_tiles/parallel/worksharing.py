"""Worksharing loops: the iterations of a loop around kernels are divided among threads.

Rewrite, where the iterations are independent and every kernel in the loop writes to an address that depends on the
loop's index:
    define internal void @N(args) { for (i = 0; i < 100; i++) call @K(...) }
        ->
    define internal void @N.part(args, first, last) { for (i = first; i < last; i++) call @K(...) }
    define internal void @N(args) { a team runs @N.part }

A loop with few iterations is collapsed with the loop inside it, if that is independent too and is its whole body:
    for (i = 0; i < 3; i++) for (j = 0; j < 50; j++) call @K(...)                150 iterations, from `first` to `last`
        ->
    for (i = first / 50; i < (last + 49) / 50; i++)
      for (j = max(first - i * 50, 0); j < min(last - i * 50, 50); j++) call @K(...)

An independent loop inside other loops is first outlined into a function that they call. So is a loop with temporaries
of its own (`privatization`), before the memory planner gives them their places.

A loop of few iterations is shared if that takes less time than running each of its kernels by a team
(`parallel_blocks`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.control_flow import FunctionLoops, Loop, has_independent_loops, remove_marks
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import definitions, set_operand, underlying_object
from tlx.ir.transform import LoopRegion, loop_region, outline_region
from tlx.ir.types import I64
from tlx.ir.values import Local, Value, const_int
from tlx.lower.context import is_kernel
from tlx.lower.memory.allocation import ALLOCATORS
from tlx.lower.outlining import nest_attributes
from tlx.lower.to_tiles.emit.kernel import PART_SUFFIX
from tlx.lower.to_tiles.parallel.partition import most_threads
from tlx.lower.to_tiles.parallel.privatization import BufferUses, LoopTemporary, outline_with_temporaries
from tlx.lower.to_tiles.parallel.team import TEAM_ATTRIBUTES, TeamKernels, iterations_kernel

MIN_SHARED_ITERATIONS: Final = 16
"""Least number of iterations for which threads share the loop rather than the work of each kernel."""
_TYPICAL_TEAM: Final = 16
"""Threads of the team for which the ways to share a loop of few iterations are compared."""
_START_CYCLES: Final = 10_000
"""Cycles that it takes to start a team and to wait for it: 2 to 5 microseconds."""
_MIN_EVEN_ITERATIONS: Final = 64
"""Least number of iterations that can be divided about equally among threads."""


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What a kernel in a loop does.

    Attributes:
        cycles: Its cycles on one thread.
        threads: The most threads that it is worth.
        written: The addresses of the matrices that it writes.
    """

    cycles: float
    threads: int
    written: tuple[Value, ...]


def parallel_blocks(loops: FunctionLoops, work: Mapping[str, Sequence[KernelWork]], least: int) -> dict[str, int]:
    """The blocks in loops whose iterations threads share, so that their kernels run on one thread.

    Each block comes with the number of iterations that are shared.

    A loop of at least 16 iterations is shared. With fewer of them, the time on a typical team decides:

        loop        ceil(iterations / threads) * cycles of an iteration + start
        kernels     iterations * (the sum over its kernels of cycles / threads + start)

    Args:
        loops: The function's loops.
        work: The kernels in each block.
        least: Least cycles of work for which a thread pays.
    """
    buffers, blocks = BufferUses(loops.function), dict[str, int]()
    for loop in loops.independent:
        if loop.header in blocks:
            continue
        nest = _Nest(LoopCosts({}, {}), loops, loop)
        kernels = [kernel for name in loop.blocks for kernel in work.get(name, ())]
        private = _addresses(buffers.temporaries(loop))
        is_disjoint = all(nest.is_private(pointer, private) for kernel in kernels for pointer in kernel.written)
        if is_disjoint and (nest.trips >= MIN_SHARED_ITERATIONS or _is_profitable(nest, work, least)):
            blocks |= dict.fromkeys(loop.blocks, nest.trips)
    return blocks


def _is_profitable(nest: _Nest, work: Mapping[str, Sequence[KernelWork]], least: int) -> bool:
    """Whether a loop of few iterations takes less time if threads share it than if they share its kernels."""
    alone = inside = 0.0
    for name in nest.loop.blocks:
        times = nest.executions(name)
        for kernel in work.get(name, ()):
            threads = min(kernel.threads, _TYPICAL_TEAM)
            alone += times * kernel.cycles
            inside += times * (kernel.cycles / max(threads, 1) + (_START_CYCLES if threads > 1 else 0))
    return most_threads(nest.trips, alone, least) > 1 and _shared_loop_cycles(nest.trips, alone, least) < inside


def _shared_loop_cycles(trips: int, cycles: float, least: int) -> float:
    """The cycles of a loop whose iterations a typical team shares: those of its busiest thread, and the start."""
    threads = max(1, min(most_threads(trips, cycles, least), _TYPICAL_TEAM))
    return -(-trips // threads) * cycles / trips + _START_CYCLES


def _addresses(temporaries: Sequence[LoopTemporary]) -> frozenset[str]:
    """The names of the addresses in some temporaries."""
    return frozenset[str]().union(*(temporary.addresses for temporary in temporaries))


@dataclass(frozen=True, slots=True)
class LoopCosts:
    """What is known about kernels, by their names.

    Attributes:
        cycles: The cycles of one call.
        written: The positions of the pointers that a kernel writes to, if it is not only the first.
    """

    cycles: Mapping[str, float]
    written: Mapping[str, tuple[int, ...]]


def privatize_loops(module: Module, functions: Sequence[Function], costs: LoopCosts, least: int) -> list[Function]:
    """Outline the loops that threads are to share and that have temporaries of their own.

    Args:
        module: The module.
        functions: Functions that call kernels.
        costs: The kernels.
        least: Least cycles of work for which a thread pays.

    Returns:
        The new functions, which are loop nests.
    """
    kernels = {f.name: f for f in module.functions if is_kernel(module, f)}
    nests: list[Function] = []
    for function in functions:
        while (found := _privatizable(function, costs, least)) is not None:
            region, temporaries = found
            called = {str(i.callee) for block in region.blocks for i in block.instructions}
            attributes = nest_attributes(module, [kernels[name] for name in called if name in kernels])
            nests.append(outline_with_temporaries(module, function, region, temporaries, attributes))
    return nests


def parallelise_nests(teams: TeamKernels, nests: list[Function], costs: LoopCosts, least: int) -> None:
    """Divide the iterations of independent loops among a team of threads, where that is profitable.

    Args:
        teams: Where the functions that run on a team are added.
        nests: Functions that consist of loops around calls to kernels.
        costs: The kernels.
        least: Least cycles of work for which a thread pays.
    """
    module = teams.module
    for function in nests:
        done: set[str] = set()
        while (nest := _shareable(function, costs, least, done)) is not None:
            done.add(nest.loop.header)
            if nest.loop is nest.loops.loops[0]:
                _split(teams, nest, nest.max_threads(least))
                break
            region = loop_region(nest.loops.flow, nest.loop, lambda _: True)
            if region is not None:
                name = module.global_names.fresh(f"{function.name}.inner")
                inner = FunctionLoops(outline_region(module, function, region, name, function.signature.attributes))
                _split(teams, _Nest(costs, inner, inner.loops[0]), nest.max_threads(least))
                _drop_nest_attributes(module, function)


def _drop_nest_attributes(module: Module, function: Function) -> None:
    """Remove the attributes of a loop nest from a function that no longer calls kernels."""
    kernels = {f.name for f in module.functions if is_kernel(module, f)}
    if not any(i.callee in kernels for i in function.instructions()):
        function.replace_attributes(TEAM_ATTRIBUTES)


def _shareable(function: Function, costs: LoopCosts, least: int, done: set[str]) -> _Nest | None:
    """The loop that threads should share, except those whose header is in `done`."""
    if not has_independent_loops(function):
        return None
    loops = FunctionLoops(function)
    nests = [_Nest(costs, loops, loop) for loop in loops.independent if loop.header not in done]
    nests = [nest for nest in nests if nest.max_threads(least) > 1 and nest.writes_disjoint_memory()]
    return _fastest(nests, least) if nests else None


def _fastest(nests: Sequence[_Nest], least: int) -> _Nest:
    """The first of some loops, or one inside it that takes less time on a typical team if threads share it instead.

    Four iterations around twelve are divided among four threads at most, the twelve among twelve.
    """
    outer = nests[0]
    return min((n for n in nests if n.loop.blocks <= outer.loop.blocks), key=lambda n: outer.cycles_sharing(n, least))


def _privatizable(function: Function, costs: LoopCosts, least: int) -> tuple[LoopRegion, list[LoopTemporary]] | None:
    """The first loop with temporaries of its own that threads should share, and these."""
    if not has_independent_loops(function):
        return None
    loops, buffers = FunctionLoops(function), BufferUses(function)
    found: dict[str, tuple[LoopRegion, list[LoopTemporary]]] = {}
    nests: list[_Nest] = []
    for loop in loops.independent:
        nest, temporaries = _Nest(costs, loops, loop), buffers.temporaries(loop)
        region = loop_region(loops.flow, loop, lambda _: True) if nest.max_threads(least) > 1 else None
        if region is not None and nest.writes_disjoint_memory(_addresses(temporaries)):
            found[loop.header] = region, temporaries
            nests.append(nest)
    while nests:
        region, temporaries = found[_fastest(nests, least).loop.header]
        if temporaries:
            return region, temporaries
        nests = [nest for nest in nests if nest.loop.blocks.isdisjoint(nests[0].loop.blocks)]
    return None


@dataclass(eq=False)
class _Nest:
    """An independent loop around kernels.

    Attributes:
        costs: The kernels.
        loops: The loops of the function.
        loop: The loop.
    """

    costs: LoopCosts
    loops: FunctionLoops
    loop: Loop

    @cached_property
    def inner(self) -> Loop | None:
        """The loop that is collapsed with this one, if this one has few iterations.

        It is independent, carries nothing but its index, and is the whole body of this loop.
        """
        inside = [loop for loop in self.loops.loops if loop.header in self.loop.blocks and loop is not self.loop]
        if self.loop.trips >= _MIN_EVEN_ITERATIONS or not inside:
            return None
        inner, blocks = inside[0], self.loops.flow.blocks
        if not inner.is_independent or inner.trips < 1 or inner.entry is None or len(blocks[inner.header].phis) > 1:
            return None
        rest = self.loop.blocks - inner.blocks
        has_effects = any(i.is_call or i.opcode == "store" for name in rest for i in blocks[name].instructions)
        return None if has_effects else inner

    @property
    def trips(self) -> int:
        """Iterations that are shared."""
        return self.loop.trips * (self.inner.trips if self.inner is not None else 1)

    @property
    def cycles(self) -> float:
        """The cycles of all kernels in one execution of the loop."""
        return sum(
            self.executions(name) * self.costs.cycles.get(str(i.callee), 0.0)
            for name in sorted(self.loop.blocks)
            for i in self.loops.flow.blocks[name].instructions
            if i.is_call
        )

    def executions(self, block: str) -> int:
        """How often a block runs in one execution of the loop."""
        enclosing = self.loops.enclosing_loops(self.loops.flow.blocks[block])
        return prod(loop.trips for loop in enclosing if loop.blocks <= self.loop.blocks)

    def cycles_sharing(self, inside: _Nest, least: int) -> float:
        """The cycles of one execution of this loop on a typical team that shares a loop inside it, or this one."""
        times = self.executions(inside.loop.header) / inside.loop.trips
        return self.cycles - times * (inside.cycles - _shared_loop_cycles(inside.trips, inside.cycles, least))

    def max_threads(self, least: int) -> int:
        """The most threads that each have at least `least` cycles of work."""
        return most_threads(self.trips, self.cycles, least)

    def writes_disjoint_memory(self, private: Container[str] = frozenset()) -> bool:
        """Whether every address that is written depends on the indices of the shared loops, or is private.

        Args:
            private: Names of the addresses in temporaries of an iteration.
        """
        inside = [i for name in self.loop.blocks for i in self.loops.flow.blocks[name].instructions]
        written = [pointer for i in inside for pointer in self._written(i)]
        return all(self.is_private(pointer, private) for pointer in written)

    def _written(self, instruction: Instruction) -> list[Value]:
        """The addresses that an instruction may write to."""
        if instruction.opcode == "store":
            return [instruction.operands[1]]
        positions = self.costs.written.get(str(instruction.callee), (0,)) if instruction.is_call else ()
        return [instruction.args[position] for position in positions]

    def is_private(self, pointer: Value, private: Container[str] = frozenset()) -> bool:
        """Whether iterations write to an address apart: it depends on the index, or is in a temporary of their own."""
        if isinstance(pointer, Local) and pointer.name in private:
            return True
        if self._is_in_temporary(pointer):
            return True
        indices = [_index(loop) for loop in (self.loop, self.inner) if loop is not None]
        return all(_depends_on_index(pointer, str(index.result), self._definitions) for index in indices)

    @cached_property
    def _definitions(self) -> dict[str, Instruction]:
        return definitions(self.loops.function)

    def _is_in_temporary(self, pointer: Value) -> bool:
        """Whether an address is in memory that the function, a nest that is only this loop, allocates for itself."""
        if self.loop is not self.loops.loops[0] or self.loop.entry is None:
            return False
        base = underlying_object(pointer, self._definitions, ("getelementptr", "bitcast"))
        definition = self._definitions.get(base.name) if isinstance(base, Local) else None
        return definition is not None and (definition.opcode == "alloca" or definition.callee in ALLOCATORS)


def _index(loop: Loop) -> Instruction:
    assert loop.index is not None
    return loop.index


def _depends_on_index(value: Value, index_name: str, by_result: Mapping[str, Instruction]) -> bool:
    """Whether a value is computed from the index, by arithmetic alone."""
    if not isinstance(value, Local):
        return False
    if value.name == index_name:
        return True
    instruction = by_result.get(value.name)
    if instruction is None or instruction.opcode in ("phi", "load", "call"):
        return False
    return any(_depends_on_index(operand, index_name, by_result) for operand in instruction.operands)


def _split(teams: TeamKernels, nest: _Nest, max_threads: int) -> None:
    """Replace a nest by a function whose team of threads runs it, each thread a range of iterations."""
    module, old, trips = teams.module, nest.loops.function, nest.trips
    name = old.name.strip('"')
    names = [old.names.fresh(stem) for stem in ("first", "last")]
    parameters = [(a.type, a.attributes, a.name) for a in old.arguments]
    bounds = [(I64, "", bound) for bound in names]
    fresh = module.global_names.fresh(name + PART_SUFFIX)
    part = new_function(module, fresh, [*parameters, *bounds], old.signature.attributes)
    part.blocks, part.names = old.blocks, old.names
    _set_bounds(Builder(module, part, part.entry), nest, Local(I64, names[0]), Local(I64, names[1]))
    module.remove(old)
    module.global_names.taken.discard(name)
    iterations_kernel(teams, name, part, trips, max_threads)


def _set_bounds(b: Builder, nest: _Nest, first: Value, last: Value) -> None:
    """Limit a nest to a range of iterations."""
    header = nest.loops.flow.blocks[nest.loop.header]
    assert nest.loop.entry is not None
    b.at_end(nest.loops.flow.blocks[nest.loop.entry])
    b.block.instructions.pop()
    b.index -= 1
    entry, exit_block = b.block, b.function.blocks[-1]
    is_nonempty = b.icmp("slt", first, last)
    if nest.inner is None:
        _set_loop_bounds(nest.loop, first, last)
    else:
        _set_inner_bounds(b, nest, nest.inner, first, last)
    b.at_end(entry)
    b.branch_if(is_nonempty, header, exit_block)
    remove_marks(loop.latch for loop in (nest.loop, nest.inner) if loop is not None and loop.latch is not None)


def _set_inner_bounds(b: Builder, nest: _Nest, inner: Loop, first: Value, last: Value) -> None:
    """Limit the two collapsed loops of a nest to a range of their iterations."""
    trips = const_int(I64, inner.trips)
    ends = b.ceil_div(last, inner.trips)
    _set_loop_bounds(nest.loop, b.binary("udiv", first, trips), ends)
    assert inner.entry is not None
    b.block = nest.loops.flow.blocks[inner.entry]
    b.index = len(b.block.instructions) - 1
    done = b.mul(_index(nest.loop).value, inner.trips)
    low, high = b.sub(first, done), b.sub(last, done)
    start = b.select(b.icmp("sgt", low, 0), low, const_int(I64, 0))
    stop = b.select(b.icmp("slt", high, inner.trips), high, trips)
    _set_loop_bounds(inner, start, stop)


def _set_loop_bounds(loop: Loop, first: Value, last: Value) -> None:
    """Set the half-open range of a loop's index."""
    assert loop.latch is not None
    assert loop.test is not None
    phi = _index(loop)
    for index in range(0, len(phi.operands), 2):
        label = phi.operands[index + 1]
        if isinstance(label, Local) and label.name != loop.latch.name:
            set_operand(phi, index, first)
    set_operand(loop.test, 1, last)
