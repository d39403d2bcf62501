"""Code for several registers, an instruction of each in turn, as no one waits for another register's.

    a0 = f(x0)  b0 = g(a0)  ...  a1 = f(x1)  b1 = g(a1)   ->   a0 = f(x0)  a1 = f(x1)  b0 = g(a0)  b1 = g(a1)

A processor looks some hundred instructions ahead for what does not wait, fewer where two threads share it: long chains
one after the other leave it idle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise

from tlx.ir.builder import Builder
from tlx.ir.values import Value


def interleaved(b: Builder, makes: Sequence[Callable[[], Value]]) -> list[Value]:
    """What each makes; their instructions stay apart where they are not as many or take more than one block."""
    block, marks, made = b.block, [b.index], list[Value]()
    for make in makes:
        made.append(make())
        marks.append(b.index)
    pieces = [block.instructions[start:end] for start, end in pairwise(marks)]
    if b.block is block and len({len(piece) for piece in pieces}) == 1:
        block.instructions[marks[0] : marks[-1]] = chain.from_iterable(zip(*pieces, strict=True))
    return made
