"""Building counted loops, tested at their end.

before:  br label %i.loop                      (guarded: br i1 %runs, label %i.loop, label %i.end)
i.loop:  %i = phi i64 [ first, %before ], [ %i.next, %latch ]
         ... body ...
latch:   %i.next = add i64 %i, step
         %again = icmp slt i64 %i.next, last
         br i1 %again, label %i.loop, label %i.end
i.end:
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tlx.ir.rewriter import add_incoming, split_block
from tlx.ir.types import I64
from tlx.ir.values import Value

if TYPE_CHECKING:
    from tlx.ir.builder import Builder


@dataclass(eq=False)
class LoopState:
    """A loop under construction.

    Attributes:
        index: The loop variable, i64.
        mark: Metadata of the branch back, as text.
        carried: Values that the loop carries, in its body.
        following: What they are when the body has run.
        results: Values carried out of the loop, filled in when the loop is closed.
    """

    index: Value
    mark: str = ""
    carried: list[Value] = field(default_factory=list[Value])
    following: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])

    def next(self, *values: Value) -> None:
        """Set the carried values' next ones, in the order of `carry`."""
        self.following = list(values)


def counted_loop(
    b: Builder, bounds: tuple[Value, Value, int], carry: list[Value], name: str, *, guarded: bool
) -> Generator[LoopState]:
    """Build a loop around what the caller builds while this generator waits; `Builder.loop` is its front.

    Args:
        b: Where; it stands behind the loop afterwards.
        bounds: First value, the bound it stays below, and the step of the loop variable.
        carry: Values that the loop carries, as they enter it.
        name: Stem of the names.
        guarded: Whether the loop may not run at all.
    """
    first, last, step = bounds
    tail = split_block(b.function, b.block, b.index, f"{name}.end")
    before = b.block
    body = b.new_block(f"{name}.loop", before)
    b.at_end(before)
    if guarded:
        b.branch_if(b.icmp("slt", first, last), body, tail)
    else:
        b.branch(body)
    b.at_end(body)
    index = b.phi(I64, [(first, before)], name)
    state = LoopState(index, "", [b.phi(v.type, [(v, before)], f"{name}.acc") for v in carry])
    yield state
    latch = b.block
    following = b.add(index, step, f"{name}.next")
    again = b.icmp("slt", following, last)
    b.branch_if(again, body, tail)
    latch.terminator.text += state.mark
    latch.terminator.trailer += state.mark
    nexts = state.following or state.carried
    for phi, value in zip(body.instructions, [following, *nexts], strict=False):
        add_incoming(phi, value, latch.name)
    b.block, b.index = tail, 0
    state.results = list(nexts)
    if guarded:
        state.results = [b.phi(v.type, [(c, before), (v, latch)]) for c, v in zip(carry, nexts, strict=True)]
