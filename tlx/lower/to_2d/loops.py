"""Loops over outer dimensions, with the offset of each operand.

    extents 2, 3, strides (12, 4), (0, 5)      offsets of two operands: 12*i + 4*j and 5*j

Neighbouring dimensions that every operand walks through as if they were one become one loop.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.types import I64
from tlx.ir.values import ConstInt, Value
from tlx.lower.stage import INDEPENDENT

Walk = tuple[int, tuple[int, ...]]
"""One dimension: its extent, and its stride in each operand."""

INDEX_LIMIT: Final = 1 << 31


def merged(walks: Sequence[Walk]) -> list[Walk]:
    """The dimensions, outermost first, without those of extent 1 and with neighbours merged where possible."""
    result: list[Walk] = []
    for extent, strides in walks:
        if extent == 1:
            continue
        if result and _continues(result[-1], extent, strides):
            result[-1] = (result[-1][0] * extent, strides)
        else:
            result.append((extent, strides))
    return result


def _continues(outer: Walk, extent: int, strides: tuple[int, ...]) -> bool:
    pairs = zip(outer[1], strides, strict=True)
    return outer[0] * extent < INDEX_LIMIT and all(far == near * extent for far, near in pairs)


@contextmanager
def nest(
    b: Builder, walks: Sequence[Walk], operands: int, name: str = "i", *, independent: bool = True
) -> Generator[list[Value]]:
    """Loops over dimensions, the first outermost; gives the element offset of each operand.

    No round reads what another one writes, and the loops say so (`INDEPENDENT`), unless they are not `independent`.
    """
    offsets: list[Value] = [ConstInt(I64, 0)] * operands
    with ExitStack() as stack:
        for extent, strides in walks:
            loop = stack.enter_context(b.loop(0, extent, name=name))
            loop.mark, index = INDEPENDENT if independent else "", loop.index
            offsets = [
                b.add(offset, b.mul(index, stride, f"{name}.offset"), f"{name}.offset")
                for offset, stride in zip(offsets, strides, strict=True)
            ]
        yield offsets
