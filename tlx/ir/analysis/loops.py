"""The loops of a function as facts: what they count, how often they run, and which have independent iterations.

    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]                    the index
      ...
      %next = add i64 %i, 1
      %again = icmp slt i64 %next, 100                                the test: 100 iterations
      br i1 %again, label %loop, label %end, !tlx.independent !{}     the mark

Stage 1 marks its loops as independent. Stage 2 and the memory planner read the marks: such loops may be shared among
threads, and an operand that stays the same may be packed in front of them. Stage 3 removes the marks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tlx.ir.analysis.control_flow import ControlFlow, NaturalLoop, natural_loops
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.values import ConstInt

INDEPENDENT_METADATA: Final = ", !tlx.independent !{}"
"""Metadata of the branch back to a loop's header: no iteration reads what another one writes."""


@dataclass(frozen=True, slots=True, eq=False)
class Loop(NaturalLoop):
    """A natural loop, and what is known about its iterations.

    Attributes:
        entry: The block that enters the loop; None if there are several.
        latch: The block that branches back to the header; None if there are several.
        index: The first phi of the header, which is the index of loops that the builder makes.
        test: The comparison of the next index with the bound.
        trips: The trip count, if the bound is a constant; else 1.
        is_independent: Whether the loop is marked as independent.
    """

    entry: str | None
    latch: Block | None
    index: Instruction | None
    test: Instruction | None
    trips: int
    is_independent: bool


@dataclass(eq=False)
class FunctionLoops:
    """The loops of a function.

    Attributes:
        function: The function.
        flow: Its control flow.
        loops: All loops, outer ones first.
        independent: Those that are marked as independent, outer ones first.
    """

    function: Function

    def __post_init__(self) -> None:
        self.flow = ControlFlow(self.function)
        self.loops = [_loop(self.flow, loop) for loop in natural_loops(self.flow)]
        self.independent = [loop for loop in self.loops if loop.is_independent]

    def around(self, block: Block) -> list[Loop]:
        """The independent loops around a block, outer ones first."""
        return [loop for loop in self.independent if block.name in loop.blocks]


def _loop(flow: ControlFlow, loop: NaturalLoop) -> Loop:
    entries = [name for name in flow.predecessors[loop.header] if name not in loop.blocks]
    latches = [name for name in flow.predecessors[loop.header] if name in loop.blocks]
    latch = flow.blocks[latches[0]] if len(latches) == 1 else None
    test = next((i for i in reversed(latch.instructions) if i.opcode == "icmp"), None) if latch is not None else None
    bound = test.operands[1] if test is not None else None
    return Loop(
        loop.header,
        loop.blocks,
        entries[0] if len(entries) == 1 else None,
        latch,
        next(iter(flow.blocks[loop.header].phis), None),
        test,
        bound.value if isinstance(bound, ConstInt) else 1,
        latch is not None and INDEPENDENT_METADATA in latch.terminator.text,
    )


def has_independent_loops(function: Function) -> bool:
    """Whether any loop of a function is marked as independent."""
    return any(INDEPENDENT_METADATA in block.terminator.text for block in function.blocks)


def remove_marks(blocks: Iterable[Block]) -> None:
    """Remove the marks of the loops that end in some blocks."""
    for block in blocks:
        last = block.terminator
        last.text, last.trailer = (text.replace(INDEPENDENT_METADATA, "") for text in (last.text, last.trailer))
