"""Work that few numbers need, done only where one of a register does.

      %any = icmp ne i8 (bitcast %rare), 0
      br i1 %any, label %rare.do, label %rare.end
    rare.do:                                        ; all lanes, then
      %chosen = select %rare, %slow, %fast
      br label %rare.end
    rare.end:
      %r = phi [ %fast, %before ], [ %chosen, %rare.do ]

The builder stands in another block afterwards. Phis that name the block it stood in follow if that block has its
terminator already; who adds the terminator later names `b.block` as it is then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tlx.ir.rewriter import split_block
from tlx.ir.types import IntType
from tlx.ir.values import Value
from tlx.lower.legalize.math.lanes import Lanes


def where_any(lanes: Lanes, rare: Value, fast: Sequence[Value], slow: Callable[[], Sequence[Value]]) -> list[Value]:
    """The values of `fast`, and those of `slow` in the lanes that are rare.

    Args:
        lanes: Arithmetic on registers of as many lanes as `rare` has.
        rare: A vector of i1.
        fast: Registers, already computed.
        slow: Emits the others, as many, and returns them.
    """
    b = lanes.b
    mask = b.cast("bitcast", rare, IntType(lanes.count))
    any_ = b.icmp("ne", mask, 0)
    end = split_block(b.function, b.block, b.index, "rare.end")
    before = b.block
    do = b.new_block("rare.do", before)
    b.at_end(before)
    b.branch_if(any_, do, end)
    b.at_end(do)
    chosen = [b.select(rare, s, f) for s, f in zip(slow(), fast, strict=True)]
    b.branch(end)
    done = b.block
    b.block, b.index = end, 0
    return [b.phi(f.type, [(f, before), (c, done)]) for f, c in zip(fast, chosen, strict=True)]
