"""Loops of the host's part of a function, whose bounds are known when it is compiled."""

from __future__ import annotations

from typing import Final

from tlx.ir.control_flow import FunctionLoops, Loop
from tlx.ir.values import Local
from tlx.lower.to_blocks.memory import refused

_PHI_OPERANDS: Final = 4
MOST_REPEATED: Final = 1024
"""Most iterations whose kernels are launched one after the other."""


def is_repeated(loops: FunctionLoops, loop: Loop) -> bool:
    """Whether a loop's kernels can be launched for each iteration, one after the other: these are known and few."""
    latch, test, index = loop.latch, loop.test, loop.index
    if loop.is_independent or latch is None or test is None or index is None or len(index.operands) != _PHI_OPERANDS:
        return False
    exits = [name for name in loop.blocks if not set(loops.flow.successors[name]) <= loop.blocks]
    last = latch.terminator
    following = [
        str(value)
        for value, block in zip(index.operands[::2], index.operands[1::2], strict=True)
        if isinstance(block, Local) and block.name == latch.name
    ]
    is_counted = [str(test.operands[0])] == following and test.predicate in ("slt", "ult")
    is_tested = exits == [latch.name] and last.targets[0] == loop.header and str(last.operands[0]) == f"%{test.result}"
    if not is_counted or not is_tested:
        return False
    return loop.bounds is not None and loop.bounds.start >= 0 and loop.trips <= MOST_REPEATED


def index_of(loop: Loop) -> str:
    """The name of a loop's index."""
    assert loop.index is not None
    return str(loop.index.result)


def bounds_of(loop: Loop) -> range:
    """First value, end and step of a loop's index.

    Raises:
        LoweringError: They are not constant.
    """
    assert loop.index is not None
    if loop.bounds is None:
        remedy = "give it constant bounds and a positive constant step"
        raise refused("a loop whose bounds are known only at run time", loop.index, remedy)
    return loop.bounds
