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

An independent loop inside other loops is first outlined into a function that they call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.control_flow import FunctionLoops, Loop, has_independent_loops, remove_marks
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import definitions, set_operand
from tlx.ir.transform import loop_region, outline_region
from tlx.ir.types import I64
from tlx.ir.values import Local, Value, const_int
from tlx.lower.context import is_kernel
from tlx.lower.to_tiles.emit.kernel import PART_SUFFIX
from tlx.lower.to_tiles.parallel.partition import most_threads
from tlx.lower.to_tiles.parallel.team import TEAM_ATTRIBUTES, iterations_kernel

_MULTI_STORE_PREFIX: Final = "tlx.rows."  # kernels that write to more than their first pointer
MIN_SHARED_ITERATIONS: Final = 16
"""Least number of iterations for which threads share the loop rather than the work of each kernel."""
_MIN_EVEN_ITERATIONS: Final = 64
"""Least number of iterations that can be divided about equally among threads."""


def parallel_blocks(loops: FunctionLoops, several: Collection[str] = ()) -> set[str]:
    """The blocks in loops that have enough independent iterations to be shared.

    Args:
        loops: The function's loops.
        several: Blocks whose kernels write to several matrices, so that the loops around them are not shared.
    """
    nests = [_Nest({}, loops, loop) for loop in loops.independent if not loop.blocks.intersection(several)]
    return {name for nest in nests if nest.trips >= MIN_SHARED_ITERATIONS for name in nest.loop.blocks}


def parallelise_nests(module: Module, nests: list[Function], cycles: Mapping[str, float], least: int) -> None:
    """Divide the iterations of independent loops among a team of threads, where that is profitable.

    Args:
        module: The module of the nests.
        nests: Functions that consist of loops around calls of kernels.
        cycles: The cycles of one call of each kernel, by its name.
        least: Least cycles of work for which a thread pays.
    """
    for function in nests:
        done: set[str] = set()
        while (nest := _shareable(function, cycles, least, done)) is not None:
            done.add(nest.loop.header)
            if nest.loop is nest.loops.loops[0]:
                _split(module, nest, nest.max_threads(least))
                break
            region = loop_region(nest.loops.flow, nest.loop, lambda _: True)
            if region is not None:
                name = module.global_names.fresh(f"{function.name}.inner")
                inner = FunctionLoops(outline_region(module, function, region, name, function.signature.attributes))
                _split(module, _Nest(cycles, inner, inner.loops[0]), nest.max_threads(least))
                _drop_nest_attributes(module, function)


def _drop_nest_attributes(module: Module, function: Function) -> None:
    """Remove the attributes of a loop nest from a function that no longer calls kernels."""
    kernels = {f.name for f in module.functions if is_kernel(module, f)}
    if not any(i.callee in kernels for i in function.instructions()):
        function.replace_attributes(TEAM_ATTRIBUTES)


def _shareable(function: Function, cycles: Mapping[str, float], least: int, done: set[str]) -> _Nest | None:
    """The outermost loop that threads should share, except those whose header is in `done`."""
    if not has_independent_loops(function):
        return None
    loops = FunctionLoops(function)
    nests = [_Nest(cycles, loops, loop) for loop in loops.independent if loop.header not in done]
    return next((nest for nest in nests if nest.max_threads(least) > 1 and nest.writes_disjoint_memory), None)


@dataclass(eq=False)
class _Nest:
    """An independent loop around kernels.

    Attributes:
        costs: The cycles of one call of each kernel, by its name.
        loops: The loops of the function.
        loop: The loop.
    """

    costs: Mapping[str, float]
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
        total = 0.0
        for name in self.loop.blocks:
            times = 1
            for loop in self.loops.loops:
                times *= loop.trips if loop.blocks <= self.loop.blocks and name in loop.blocks else 1
            total += times * sum(self.costs.get(str(i.callee), 0.0) for i in self.loops.flow.blocks[name].instructions)
        return total

    def max_threads(self, least: int) -> int:
        """The most threads that each have at least `least` cycles of work."""
        return most_threads(self.trips, self.cycles, least)

    @property
    def writes_disjoint_memory(self) -> bool:
        """Whether every address that is written depends on the indices of the shared loops."""
        by_result = definitions(self.loops.function)
        inside = [i for name in self.loop.blocks for i in self.loops.flow.blocks[name].instructions]
        if any(str(i.callee).startswith(_MULTI_STORE_PREFIX) for i in inside):
            return False
        indices = [_index(loop) for loop in (self.loop, self.inner) if loop is not None]
        written = [
            i.operands[1] if i.opcode == "store" else i.args[0] for i in inside if i.opcode == "store" or i.is_call
        ]
        return all(_depends_on_index(pointer, str(index.result), by_result) for pointer in written for index in indices)


def _index(loop: Loop) -> Instruction:
    assert loop.index is not None
    return loop.index


def _depends_on_index(value: Value, index: str, by_result: Mapping[str, Instruction]) -> bool:
    """Whether a value is computed from the index, by arithmetic alone."""
    if not isinstance(value, Local):
        return False
    if value.name == index:
        return True
    instruction = by_result.get(value.name)
    if instruction is None or instruction.opcode in ("phi", "load", "call"):
        return False
    return any(_depends_on_index(operand, index, by_result) for operand in instruction.operands)


def _split(module: Module, nest: _Nest, max_threads: int) -> None:
    """Replace a nest by a function whose team of threads runs it, each thread a range of iterations."""
    old, trips = nest.loops.function, nest.trips
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
    iterations_kernel(module, name, part, trips, max_threads)


def _set_bounds(b: Builder, nest: _Nest, first: Value, last: Value) -> None:
    """Limit a nest to a range of iterations, given a builder at the end of its entry block."""
    header = nest.loops.flow.blocks[nest.loop.header]
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
