"""Loops of the host's part of a function, whose bounds are known when it is compiled."""

from __future__ import annotations

from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.control_flow import FunctionLoops, Loop
from tlx.ir.values import ConstInt, Local
from tlx.lower.to_blocks.memory import refused

_PHI_OPERANDS: Final = 4
_MOST_REPEATED: Final = 1024


def is_repeated(loops: FunctionLoops, loop: Loop) -> bool:
    """Whether a loop's kernels are launched for each iteration: these are few, known, and depend on each other."""
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
    try:
        start, step = bounds_of(loop)
        return start >= 0 and step > 0 and trips_of(loop) <= _MOST_REPEATED
    except LoweringError:
        return False


def index_of(loop: Loop) -> str:
    """The name of a loop's index."""
    assert loop.index is not None
    return str(loop.index.result)


def bounds_of(loop: Loop) -> tuple[int, int]:
    """First value and step of a loop's index."""
    assert loop.index is not None
    assert loop.latch is not None
    pairs = list(zip(loop.index.operands[::2], loop.index.operands[1::2], strict=True))
    start = next(value for value, block in pairs if isinstance(block, Local) and block.name != loop.latch.name)
    following = next(value for value, block in pairs if isinstance(block, Local) and block.name == loop.latch.name)
    step = next(
        (i.operands[1] for i in loop.latch.instructions if i.result is not None and f"%{i.result}" == str(following)),
        None,
    )
    if not isinstance(start, ConstInt) or not isinstance(step, ConstInt):
        raise refused("a loop whose bounds are known only at run time", loop.index)
    return start.value, step.value


def trips_of(loop: Loop) -> int:
    """The trip count of a loop that is tested at its end."""
    start, step = bounds_of(loop)
    bound = loop.test.operands[1] if loop.test is not None else None
    if not isinstance(bound, ConstInt):
        assert loop.index is not None
        raise refused("a loop whose bounds are known only at run time", loop.index)
    return max(1, -(-(bound.value - start) // step))
