"""Loops around kernels on several threads: each thread runs some iterations of the outermost loop.

Rewrite, where stage 1 marked the loop (`!tlx.independent`) and every kernel in it writes where its index says:
    define internal void @N(args) { for (i = 0; i < 100; i++) call @K(...) }
        ->
    define internal void @N.part(args, first, last) { for (i = first; i < last; i++) call @K(...) }
    define internal void @N(args) { a team runs @N.part }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.dominance import ControlFlow, Loop, natural_loops
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import definitions, set_operand
from tlx.ir.types import I64
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.stage import INDEPENDENT
from tlx.lower.to_tiles.share import PART
from tlx.lower.to_tiles.team import iterations_kernel

_SEVERAL: Final = "tlx.rows."  # kernels that write to more than their first pointer
MANY: Final = 16
"""Iterations from which on threads share them, rather than the work of each kernel."""


def is_marked(block: Block) -> bool:
    """Whether a block ends a loop whose iterations may run on several threads."""
    return INDEPENDENT in block.terminator.text


def shared_blocks(function: Function) -> set[str]:
    """Blocks in marked loops of many iterations."""
    if not any(is_marked(block) for block in function.blocks):
        return set()
    flow = ControlFlow(function)
    loops = [loop for loop in natural_loops(flow) if (latch := _latch(flow, loop)) and is_marked(latch)]
    return {name for loop in loops if trips_of(flow, loop) >= MANY for name in loop.blocks}


def spread(module: Module, nests: list[Function], cycles: Mapping[str, float], least: int) -> None:
    """Have teams run those nests that may be, and that are work enough.

    Args:
        module: Where they are.
        nests: Functions that are a loop around kernels.
        cycles: The work of kernels, by name.
        least: Cycles that are worth a thread.
    """
    for function in nests:
        nest = _Nest(function, cycles)
        most = min(nest.trips, int(nest.cycles / max(least, 1)))
        if most > 1 and nest.is_apart:
            _split(module, nest, most)


@dataclass(eq=False)
class _Nest:
    function: Function
    costs: Mapping[str, float]

    @cached_property
    def flow(self) -> ControlFlow:
        return ControlFlow(self.function)

    @cached_property
    def loops(self) -> list[Loop]:
        return natural_loops(self.flow)

    @property
    def latch(self) -> Block | None:
        """The block that ends the outermost loop."""
        return _latch(self.flow, self.loops[0])

    @property
    def trips(self) -> int:
        """Iterations of the outermost loop; 0 where it is not marked."""
        return trips_of(self.flow, self.loops[0]) if self.latch is not None and is_marked(self.latch) else 0

    @property
    def cycles(self) -> float:
        """The work of all kernels."""
        total = 0.0
        for block in self.function.blocks:
            times = 1
            for loop in self.loops:
                times *= trips_of(self.flow, loop) if block.name in loop.blocks else 1
            total += times * sum(self.costs.get(str(i.callee), 0.0) for i in block.instructions)
        return total

    @cached_property
    def index(self) -> Instruction:
        """The phi of the outermost loop's index."""
        return self.flow.blocks[self.loops[0].header].phis[0]

    @property
    def is_apart(self) -> bool:
        """Whether all that is written is at a place that the outermost index moves."""
        made = definitions(self.function)
        if any(str(i.callee).startswith(_SEVERAL) for i in self.function.instructions()):
            return False
        return all(_depends(pointer, str(self.index.result), made) for pointer in self._written())

    def _written(self) -> list[Value]:
        found: list[Value] = []
        for instruction in self.function.instructions():
            if instruction.opcode == "store":
                found.append(instruction.operands[1])
            elif instruction.is_call:
                found.append(instruction.args[0])
        return found


def _depends(value: Value, index: str, made: Mapping[str, Instruction]) -> bool:
    """Whether a value is computed from the index, by arithmetic alone."""
    if not isinstance(value, Local):
        return False
    if value.name == index:
        return True
    instruction = made.get(value.name)
    if instruction is None or instruction.opcode in ("phi", "load", "call"):
        return False
    return any(_depends(operand, index, made) for operand in instruction.operands)


def _latch(flow: ControlFlow, loop: Loop) -> Block | None:
    """The one block that goes back to the header."""
    back = [name for name in flow.predecessors[loop.header] if name in loop.blocks]
    return flow.blocks[back[0]] if len(back) == 1 else None


def _test(latch: Block) -> Instruction | None:
    """The comparison of the next index with the bound."""
    return next((i for i in reversed(latch.instructions) if i.opcode == "icmp"), None)


def trips_of(flow: ControlFlow, loop: Loop) -> int:
    """Iterations of a loop from 0, step 1, to a constant; 1 of any other."""
    latch = _latch(flow, loop)
    test = _test(latch) if latch else None
    bound = test.operands[1] if test else None
    return bound.value if isinstance(bound, ConstInt) else 1


def _split(module: Module, nest: _Nest, most: int) -> None:
    """Give a nest bounds, and put the function that has a team run it in its place."""
    old, latch, trips = nest.function, nest.latch, nest.trips
    test = _test(latch) if latch else None
    assert latch is not None
    assert test is not None
    name = old.name.strip('"')
    names = [old.names.fresh(stem) for stem in ("first", "last")]
    parameters = [(a.type, a.attributes, a.name) for a in old.arguments]
    bounds = [(I64, "", bound) for bound in names]
    fresh = module.global_names.fresh(name + PART)
    part = new_function(module, fresh, [*parameters, *bounds], old.signature.attributes)
    part.blocks, part.names = old.blocks, old.names
    first, last = (Local(I64, bound) for bound in names)
    header = nest.flow.blocks[nest.loops[0].header]
    _start_from(nest.index, first, latch)
    set_operand(test, 1, last)
    latch.terminator.text = latch.terminator.text.replace(INDEPENDENT, "")
    latch.terminator.trailer = latch.terminator.trailer.replace(INDEPENDENT, "")
    entry = part.entry
    entry.instructions.pop()
    b = Builder(module, part, entry)
    b.branch_if(b.icmp("slt", first, last), header, part.blocks[-1])
    module.remove(old)
    module.global_names.taken.discard(name)
    iterations_kernel(module, name, part, trips, most)


def _start_from(phi: Instruction, first: Value, latch: Block) -> None:
    for index in range(0, len(phi.operands), 2):
        label = phi.operands[index + 1]
        if isinstance(label, Local) and label.name != latch.name:
            set_operand(phi, index, first)
