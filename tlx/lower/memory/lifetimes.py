"""Live ranges: the points of a function at which memory holds a value that may be read, as sets of intervals."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tlx.ir.analysis.control_flow import ControlFlow
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Instruction
from tlx.ir.transform.rewrite import Use, uses
from tlx.ir.values import Local
from tlx.lower.memory.aliases import Position, instruction_positions

LiveInterval = tuple[int, int]
"""First and last point of a block at which a buffer holds a value: instruction `i` reads at 2i and writes at 2i + 1."""

_IN: Final = -2
_OUT: Final = sys.maxsize
_DERIVES: Final = BINARY_OPCODES | CAST_OPCODES | {"getelementptr", "phi", "select", "freeze"}
_NO_ACCESS: Final = frozenset({"icmp", "#dbg"})
_OURS: Final = ("tlx.", "llvm.")


def live_range(flow: ControlFlow, block: str, point: int, reads: Sequence[Position]) -> dict[str, list[LiveInterval]]:
    """The points of each block between the definition of a value and its last read, both included.

    Args:
        flow: Control flow of the function.
        block: Where it is defined.
        point: The point of the definition.
        reads: Blocks and indices of the instructions that read it; the index after the last is the end of the block.
    """
    last = point
    live_in: dict[str, int] = {}
    live_out: set[str] = set()
    pending: list[str] = []
    for name, index in reads:
        if name == block and 2 * index > point:
            last = max(last, 2 * index)
        else:
            pending += [] if name in live_in else flow.predecessors[name]
            live_in[name] = max(live_in.get(name, _IN), 2 * index)
    while pending:
        name = pending.pop()
        if name in live_out:
            continue
        live_out.add(name)
        if name == block:
            last = _OUT
            continue
        pending += [] if name in live_in else flow.predecessors[name]
        live_in[name] = _OUT
    ranges = {name: [(_IN, end)] for name, end in live_in.items()}
    add_interval(ranges.setdefault(block, []), (point, last))
    return ranges


def intervals_overlap(one: Sequence[LiveInterval], other: Iterable[LiveInterval]) -> bool:
    """Whether sorted intervals intersect others."""
    for start, end in other:
        at = bisect_left(one, (start, start))
        if (at < len(one) and one[at][0] <= end) or (at and one[at - 1][1] >= start):
            return True
    return False


def add_interval(ranges: list[LiveInterval], interval: LiveInterval) -> None:
    """Add an interval to a sorted list; adjacent intervals are merged."""
    start, end = interval
    low = bisect_left(ranges, (start, start))
    if low and ranges[low - 1][1] >= start - 1:
        low -= 1
    high = low
    while high < len(ranges) and ranges[high][0] <= end + 1:
        start, end = min(start, ranges[high][0]), max(end, ranges[high][1])
        high += 1
    ranges[low:high] = [(start, end)]


@dataclass(eq=False)
class Lifetimes:
    """Live ranges of a function's temporaries, as intervals over its instructions in reverse post order.

    A temporary is live between its first access and its last one. What a loop accesses is live in the whole loop, since
    an iteration may read what the previous one wrote, unless a block is known to overwrite all of it.
    """

    flow: ControlFlow
    _cyclic: dict[tuple[str, str], bool] = field(default_factory=dict[tuple[str, str], bool])

    @property
    def always(self) -> list[LiveInterval]:
        """The live range of a temporary that may be accessed anywhere."""
        return [(_IN, _OUT)]

    def of_memory(self, address: Local, scope: str = "") -> list[LiveInterval]:
        """From the first access of some memory to the last one; everywhere if its address escapes.

        Args:
            address: Where the memory begins.
            scope: The block that overwrites all of it first whenever the block runs; empty if unknown.
        """
        accesses: list[Position] = []
        pending = [address.name]
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            for use in self.uses.get(name, ()) if name not in seen else ():
                instruction = use.instruction
                if instruction.opcode in _NO_ACCESS or instruction.callee == "free":
                    continue
                if instruction.opcode in _DERIVES:
                    pending.append(str(instruction.result))
                elif _may_capture(instruction, use.index):
                    return self.always
                else:
                    accesses.append(self.positions[id(instruction)])
            seen.add(name)
        return self.of(accesses, scope)

    def of(self, accesses: Sequence[Position], scope: str = "") -> list[LiveInterval]:
        """The points at which a temporary holds a value that may be read.

        Args:
            accesses: The instructions that read or write it.
            scope: The block that overwrites all of it first whenever the block runs; empty if unknown.
        """
        reached = [(name, index) for name, index in accesses if name in self.flow.dominators]
        if not reached:
            return []
        block = self._definition({name for name, _ in reached}, scope)
        indices = [index for name, index in reached if name == block]
        first = min(indices, default=len(self.flow.blocks[block].instructions) - 1)
        later = [position for position in reached if position != (block, first)]
        return self._in_order(live_range(self.flow, block, 2 * first, later))

    def _definition(self, blocks: set[str], scope: str) -> str:
        """The nearest common dominator of some blocks that is in no loop but those around the scope."""
        if scope not in self.flow.dominators or not all(self.flow.dominates(scope, name) for name in blocks):
            scope = ""
        common = next(iter(blocks))
        while not all(self.flow.dominates(common, name) for name in blocks) or self._is_cyclic(common, scope):
            common = self.flow.dominators[common]
        return common

    def _is_cyclic(self, block: str, scope: str) -> bool:
        if (block, scope) not in self._cyclic:
            self._cyclic[block, scope] = self.flow.is_cyclic(block, scope)
        return self._cyclic[block, scope]

    @cached_property
    def uses(self) -> dict[str, list[Use]]:
        """The uses of each local."""
        return uses(self.flow.function)

    @cached_property
    def positions(self) -> dict[int, Position]:
        """Where each instruction stands, by its id."""
        return instruction_positions(self.flow.function)

    @cached_property
    def _starts(self) -> dict[str, int]:
        """The first point of each block in reverse post order."""
        starts: dict[str, int] = {}
        point = 0
        for name in self.flow.order:
            starts[name] = point
            point += 2 * len(self.flow.blocks[name].instructions)
        return starts

    def _in_order(self, ranges: Mapping[str, Sequence[LiveInterval]]) -> list[LiveInterval]:
        """Intervals of blocks as intervals of the function."""
        found: list[LiveInterval] = []
        for name, intervals in ranges.items():
            if name in self._starts:
                start = self._starts[name]
                last = 2 * len(self.flow.blocks[name].instructions) - 1
                for low, high in intervals:
                    add_interval(found, (start + max(low, 0), start + min(high, last)))
        return found


def _may_capture(instruction: Instruction, index: int) -> bool:
    """Whether the address in an operand escapes through an instruction."""
    if instruction.opcode == "store":
        return index == 0
    return instruction.opcode != "load" and not str(instruction.callee).startswith(_OURS)
