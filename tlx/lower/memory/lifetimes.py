"""Live ranges: the points of a function at which memory holds a value that may be read, as sets of intervals.

Instruction `i` has two points: it reads at 2i and writes at 2i + 1. So its result may reuse the memory of an operand
that it reads for the last time:

    0, 1    %a = f()              %a is live in [1, 4]
    2, 3    %b = g(%a)            %b is live in [3, 4]
    4, 5    %c = h(%a, %b)        %c is live from 5 on, and may reuse the memory of %a or %b

`live_range` numbers the points of each block by itself; `Lifetimes` numbers those of the whole function.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tlx.ir.control_flow import ControlFlow
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Instruction
from tlx.ir.rewrite import Use, uses
from tlx.ir.values import Local
from tlx.lower.memory.aliases import Position, instruction_positions

LiveInterval = tuple[int, int]
"""First and last point, of a block or a function, at which memory holds a value."""

_BLOCK_START: Final = -2
_BLOCK_END: Final = sys.maxsize
_DERIVES: Final = BINARY_OPCODES | CAST_OPCODES | {"getelementptr", "phi", "select", "freeze"}
_NOT_CAPTURING: Final = ("tlx.", "llvm.")


def live_range(flow: ControlFlow, block: str, point: int, reads: Sequence[Position]) -> dict[str, list[LiveInterval]]:
    """The points of each block between the definition of a value and its last read, both included.

    Args:
        flow: Control flow of the function.
        block: The block in which it is defined.
        point: The point of the definition.
        reads: Blocks and indices of the instructions that read it; the index after the last is the end of the block.
    """
    last = point
    live_in: dict[str, int] = {}  # the last point of blocks in which the value is live from the start
    live_out: set[str] = set()
    pending: list[str] = []
    for name, index in reads:
        if name == block and 2 * index > point:
            last = max(last, 2 * index)
        else:
            pending += [] if name in live_in else flow.predecessors[name]
            live_in[name] = max(live_in.get(name, _BLOCK_START), 2 * index)
    while pending:
        name = pending.pop()
        if name in live_out:
            continue
        live_out.add(name)
        if name == block:
            last = _BLOCK_END
            continue
        pending += [] if name in live_in else flow.predecessors[name]
        live_in[name] = _BLOCK_END
    ranges = {name: [(_BLOCK_START, end)] for name, end in live_in.items()}
    add_interval(ranges.setdefault(block, []), (point, last))
    return ranges


def intervals_overlap(one: Sequence[LiveInterval], other: Iterable[LiveInterval]) -> bool:
    """Whether two live ranges have a point in common; `one` is sorted, without overlaps."""
    for start, end in other:
        index = bisect_left(one, (start, start))
        if (index < len(one) and one[index][0] <= end) or (index and one[index - 1][1] >= start):
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
    """Live ranges of a function's temporaries, as intervals over its blocks in reverse post order.

    A temporary is live from its first access to its last one. A temporary that a loop accesses is live in the whole
    loop, since an iteration may read what the previous one wrote, unless a block is known to overwrite all of it.
    """

    flow: ControlFlow
    _cyclic: dict[tuple[str, str], bool] = field(default_factory=dict[tuple[str, str], bool])

    def of_memory(self, address: Local, scope: str) -> list[LiveInterval]:
        """The live range of memory, from its first access to the last one; the whole function if its address escapes.

        Args:
            address: The first byte of the memory.
            scope: The block that overwrites all of it first whenever the block runs; empty if unknown.
        """
        accesses: list[Position] = []
        pending = [address.name]
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            for use in self.uses.get(name, ()) if name not in seen else ():
                instruction = use.instruction
                if instruction.opcode == "icmp" or instruction.is_debug or instruction.callee == "free":
                    continue
                if instruction.opcode in _DERIVES:
                    pending.append(str(instruction.result))
                elif _may_capture(instruction, use.index):
                    return [(_BLOCK_START, _BLOCK_END)]
                else:
                    accesses.append(self.positions[id(instruction)])
            seen.add(name)
        return self.of_accesses(accesses, scope)

    def of_accesses(self, accesses: Sequence[Position], scope: str) -> list[LiveInterval]:
        """The live range of a temporary that only the given instructions access.

        Args:
            accesses: The instructions that read or write it.
            scope: The block that overwrites all of it first whenever the block runs; empty if unknown.
        """
        reachable = [(name, index) for name, index in accesses if name in self.flow.dominators]
        if not reachable:
            return []
        block = self._defining_block({name for name, _ in reachable}, scope)
        indices = [index for name, index in reachable if name == block]
        first = min(indices, default=len(self.flow.blocks[block].instructions) - 1)
        later = [position for position in reachable if position != (block, first)]
        return self._in_function(live_range(self.flow, block, 2 * first, later))

    def _defining_block(self, blocks: set[str], scope: str) -> str:
        """The nearest common dominator of some blocks that is in no loop except those around the scope."""
        if scope not in self.flow.dominators or not all(self.flow.dominates(scope, name) for name in blocks):
            scope = ""
        common = next(iter(blocks))
        while not all(self.flow.dominates(common, name) for name in blocks) or self._is_cyclic(common, scope):
            if self.flow.dominators[common] == common:
                break  # the entry block, which no valid program branches to
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
        """The position of each instruction, by its id."""
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

    def _in_function(self, ranges: Mapping[str, Sequence[LiveInterval]]) -> list[LiveInterval]:
        """Intervals of blocks as intervals of the function."""
        merged: list[LiveInterval] = []
        for name, intervals in ranges.items():
            if name in self._starts:
                start = self._starts[name]
                last = 2 * len(self.flow.blocks[name].instructions) - 1
                for low, high in intervals:
                    add_interval(merged, (start + max(low, 0), start + min(high, last)))
        return merged


def _may_capture(instruction: Instruction, index: int) -> bool:
    """Whether an instruction lets the address in an operand escape."""
    if instruction.opcode == "store":
        return index == 0
    return instruction.opcode != "load" and not str(instruction.callee).startswith(_NOT_CAPTURING)
