"""Parallel loop nests: each thread runs some iterations of the outermost parallel loop around kernels.

Rewrite, where stage 1 marked the loop (`!tlx.independent`) and every kernel in it writes to an address that depends on
the loop's index:
    define internal void @N(args) { for (i = 0; i < 100; i++) call @K(...) }
        ->
    define internal void @N.part(args, first, last) { for (i = first; i < last; i++) call @K(...) }
    define internal void @N(args) { a team runs @N.part }

A loop of few iterations is shared together with the loop in it, if that is marked as well and is its whole body:
    for (i = 0; i < 3; i++) for (j = 0; j < 50; j++) call @K(...)                150 iterations, from `first` to `last`
        ->
    for (i = first / 50; i < (last + 49) / 50; i++)
      for (j = max(first - i * 50, 0); j < min(last - i * 50, 50); j++) call @K(...)

A marked loop within unmarked ones is first outlined into a function, which they call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tlx.ir.analysis.control_flow import ControlFlow, NaturalLoop, natural_loops
from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.transform.functions import loop_region, outline_region
from tlx.ir.transform.rewrite import definitions, set_operand
from tlx.ir.types import I64
from tlx.ir.values import Local, Value, const_int
from tlx.lower.context import INDEPENDENT_METADATA, is_kernel
from tlx.lower.to_tiles.match.loops import loop_latch, loop_test, trip_count
from tlx.lower.to_tiles.parallel.team import TEAM_ATTRIBUTES, iterations_kernel
from tlx.lower.to_tiles.parallel.tile_range import PART_SUFFIX

_MULTI_STORE_PREFIX: Final = "tlx.rows."  # kernels that write to more than their first pointer
MIN_SHARED_ITERATIONS: Final = 16
"""Iterations from which on threads share the loop rather than the work of each kernel."""
_MIN_EVEN_ITERATIONS: Final = 64
"""Iterations from which on shares are about equal."""


def is_independent_latch(block: Block) -> bool:
    """Whether a block ends a loop whose iterations may run on several threads."""
    return INDEPENDENT_METADATA in block.terminator.text


def parallel_blocks(function: Function, several: Collection[str] = ()) -> set[str]:
    """Blocks in marked loops of many iterations.

    Args:
        function: The function.
        several: Blocks whose kernels write to more than one place, so that the loops around them are not shared.
    """
    if not any(is_independent_latch(block) for block in function.blocks):
        return set()
    flow = ControlFlow(function)
    loops = natural_loops(flow)
    nests = [_Nest(function, {}, flow, loops, loop) for loop in loops if not loop.blocks.intersection(several)]
    return {name for nest in nests if nest.trips >= MIN_SHARED_ITERATIONS for name in nest.loop.blocks}


def parallelise_nests(module: Module, nests: list[Function], cycles: Mapping[str, float], least: int) -> None:
    """Have teams run the nests that may run in parallel and are enough work.

    Args:
        module: The module of the nests.
        nests: Functions that are a loop around kernels.
        cycles: The work of kernels, by name.
        least: Cycles that are worth a thread.
    """
    for function in nests:
        done: set[str] = set()
        while (nest := _shareable(function, cycles, least, done)) is not None:
            done.add(nest.loop.header)
            if nest.loop is nest.loops[0]:
                _split(module, nest, nest.team(least))
                break
            region = loop_region(nest.flow, nest.loop, lambda _: True)
            if region is not None:
                name = module.global_names.fresh(f"{function.name}.inner")
                made = outline_region(module, function, region, name, function.signature.attributes)
                _split(module, _Nest.outermost(made, cycles), nest.team(least))
                _forget_kernels(module, function)


def _forget_kernels(module: Module, function: Function) -> None:
    """Stop treating a function as a nest if it no longer calls kernels."""
    kernels = {f.name for f in module.functions if is_kernel(module, f)}
    if not any(i.callee in kernels for i in function.instructions()):
        function.replace_attributes(TEAM_ATTRIBUTES)


def _shareable(function: Function, cycles: Mapping[str, float], least: int, done: set[str]) -> _Nest | None:
    """The outermost loop that threads can share and that is enough work, but for those in `done`, seen before."""
    flow = ControlFlow(function)
    loops = natural_loops(flow)
    for loop in loops:
        nest = _Nest(function, cycles, flow, loops, loop)
        if loop.header not in done and nest.team(least) > 1 and nest.is_apart:
            return nest
    return None


@dataclass(eq=False)
class _Nest:
    """A loop around kernels.

    Attributes:
        function: The function that holds it.
        costs: The work of kernels, by name.
        flow: The function's control flow.
        loops: The function's loops, outer ones first.
        loop: The loop.
    """

    function: Function
    costs: Mapping[str, float]
    flow: ControlFlow
    loops: list[NaturalLoop]
    loop: NaturalLoop

    @classmethod
    def outermost(cls, function: Function, costs: Mapping[str, float]) -> _Nest:
        """The first loop of a function."""
        flow = ControlFlow(function)
        loops = natural_loops(flow)
        return cls(function, costs, flow, loops, loops[0])

    @cached_property
    def inner(self) -> NaturalLoop | None:
        """The marked loop that is this one's whole body and is shared with it, where this one has few iterations."""
        inside = [loop for loop in self.loops if loop.header in self.loop.blocks and loop is not self.loop]
        own = trip_count(self.flow, self.loop)
        if (
            own >= _MIN_EVEN_ITERATIONS
            or not inside
            or _marked_trips(self.flow, inside[0]) < 1
            or not _is_counter(self.flow, inside[0])
        ):
            return None
        rest = self.loop.blocks - inside[0].blocks
        works = any(i.is_call or i.opcode == "store" for name in rest for i in self.flow.blocks[name].instructions)
        return None if works else inside[0]

    @property
    def trips(self) -> int:
        """Iterations that are shared; 0 where the loop is not marked."""
        own = _marked_trips(self.flow, self.loop)
        return own * (trip_count(self.flow, self.inner) if own and self.inner is not None else 1)

    @property
    def cycles(self) -> float:
        """The work of all kernels in one run of the loop."""
        total = 0.0
        for name in self.loop.blocks:
            times = 1
            for loop in self.loops:
                inside = loop.blocks <= self.loop.blocks and name in loop.blocks
                times *= trip_count(self.flow, loop) if inside else 1
            total += times * sum(self.costs.get(str(i.callee), 0.0) for i in self.flow.blocks[name].instructions)
        return total

    def team(self, least: int) -> int:
        """How many threads are worth having, where each should work for `least` cycles."""
        return min(self.trips, int(self.cycles / max(least, 1)))

    @property
    def is_apart(self) -> bool:
        """Whether every address that is written depends on the indices of the shared loops."""
        made = definitions(self.function)
        inside = [i for name in self.loop.blocks for i in self.flow.blocks[name].instructions]
        if any(str(i.callee).startswith(_MULTI_STORE_PREFIX) for i in inside):
            return False
        indices = [_index(self.flow, loop) for loop in (self.loop, self.inner) if loop is not None]
        written = [
            i.operands[1] if i.opcode == "store" else i.args[0] for i in inside if i.opcode == "store" or i.is_call
        ]
        return all(_depends_on_index(pointer, str(index.result), made) for pointer in written for index in indices)


def _index(flow: ControlFlow, loop: NaturalLoop) -> Instruction:
    """The phi of a loop's index."""
    return flow.blocks[loop.header].phis[0]


def _is_counter(flow: ControlFlow, loop: NaturalLoop) -> bool:
    """Whether a loop carries only its index, and is entered from one block."""
    entered = [name for name in flow.predecessors[loop.header] if name not in loop.blocks]
    return len(flow.blocks[loop.header].phis) == 1 and len(entered) == 1


def _marked_trips(flow: ControlFlow, loop: NaturalLoop) -> int:
    """Iterations of a loop that is marked; 0 of any other."""
    latch = loop_latch(flow, loop)
    return trip_count(flow, loop) if latch is not None and is_independent_latch(latch) else 0


def _depends_on_index(value: Value, index: str, made: Mapping[str, Instruction]) -> bool:
    """Whether a value is computed from the index, by arithmetic alone."""
    if not isinstance(value, Local):
        return False
    if value.name == index:
        return True
    instruction = made.get(value.name)
    if instruction is None or instruction.opcode in ("phi", "load", "call"):
        return False
    return any(_depends_on_index(operand, index, made) for operand in instruction.operands)


def _split(module: Module, nest: _Nest, most: int) -> None:
    """Give a nest bounds, and replace it by the function that has a team run it."""
    old, trips = nest.function, nest.trips
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
    iterations_kernel(module, name, part, trips, most)


def _set_bounds(b: Builder, nest: _Nest, first: Value, last: Value) -> None:
    """Have a nest run from one iteration to another, given a builder at the end of its entry block."""
    flow, header = nest.flow, nest.flow.blocks[nest.loop.header]
    b.block.instructions.pop()
    b.index -= 1
    entry, behind = b.block, b.function.blocks[-1]
    runs = b.icmp("slt", first, last)
    if nest.inner is None:
        _rebound(flow, nest.loop, first, last)
    else:
        _cut_inner(b, nest, nest.inner, first, last)
    b.at_end(entry)
    b.branch_if(runs, header, behind)
    for loop in (nest.loop, nest.inner):
        latch = loop_latch(flow, loop) if loop is not None else None
        if latch is not None:
            _unmark(latch)


def _cut_inner(b: Builder, nest: _Nest, inner: NaturalLoop, first: Value, last: Value) -> None:
    """Have both loops of a nest run a range of their combined iterations."""
    trips = trip_count(nest.flow, inner)
    rounds = const_int(I64, trips)
    ends = b.divided_up(last, trips)
    _rebound(nest.flow, nest.loop, b.binary("udiv", first, rounds), ends)
    before = next(name for name in nest.flow.predecessors[inner.header] if name not in inner.blocks)
    b.block = nest.flow.blocks[before]
    b.index = len(b.block.instructions) - 1
    done = b.mul(_index(nest.flow, nest.loop).value, trips)
    low, high = b.sub(first, done), b.sub(last, done)
    start = b.select(b.icmp("sgt", low, 0), low, const_int(I64, 0))
    stop = b.select(b.icmp("slt", high, trips), high, rounds)
    _rebound(nest.flow, inner, start, stop)


def _rebound(flow: ControlFlow, loop: NaturalLoop, first: Value, last: Value) -> None:
    """Have a loop's index run from one number to another."""
    latch, phi = loop_latch(flow, loop), _index(flow, loop)
    test = loop_test(latch) if latch else None
    assert latch is not None
    assert test is not None
    for index in range(0, len(phi.operands), 2):
        label = phi.operands[index + 1]
        if isinstance(label, Local) and label.name != latch.name:
            set_operand(phi, index, first)
    set_operand(test, 1, last)


def _unmark(latch: Block) -> None:
    latch.terminator.text = latch.terminator.text.replace(INDEPENDENT_METADATA, "")
    latch.terminator.trailer = latch.terminator.trailer.replace(INDEPENDENT_METADATA, "")
