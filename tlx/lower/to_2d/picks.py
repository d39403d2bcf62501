"""Registers of elements that lie at known distances in memory: loaded as lines, merged in place, then put in order.

elements at 0, 1, 2, 9, 10, 11      line 0    0 1 2 - - - - -
                                    line 6    - - - 9 10 11 - -        begins so that its elements have free places
                                    merged    0 1 2 9 10 11 - -        one shuffle for each line but the first
                                    order     0 9 1 10 2 11            one shuffle at the end

A matrix unit's groups of rows are such registers, whatever the distances within a row and between rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import Type
from tlx.ir.values import Value
from tlx.types import TensorType


@dataclass(frozen=True, slots=True)
class Line:
    """Elements that are loaded together.

    Attributes:
        start: Where the line begins.
        count: Elements up to the last one that is needed.
        mask: Of a line behind the first which elements are kept: of what was merged before, then of the line.
    """

    start: int
    count: int
    mask: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pick:
    """How a register is made.

    Attributes:
        count: Elements that are asked for.
        lanes: Elements that the register has.
        lines: What is loaded.
        order: Of each element where it is once all is merged.
    """

    count: int
    lanes: int
    lines: tuple[Line, ...]
    order: tuple[int, ...]

    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, places: tuple[int, ...], lanes: int) -> Pick:
        """The register of elements at some distances from an address, none of them negative; `lanes` at most."""
        found: dict[int, int] = {}
        lines: list[Line] = []
        for needed in _lines(places, lanes):
            start = _start(needed, found, lanes)
            free = iter([lane for lane in range(lanes) if lane not in set(found.values())])
            mask = list(range(lanes))
            apart = any(place - start in found.values() for place in needed)
            for place in needed:
                lane = next(free) if apart else place - start
                found[place], mask[lane] = lane, lanes + place - start
            lines.append(Line(start, needed[-1] - start + 1, tuple(mask)))
        order = [found[place] for place in places]
        return cls(len(places), lanes, tuple(lines), (*order, *range(len(order), lanes)))

    def emit(self, b: TensorBuilder, element: Type, source: Value, to: Value, count: int) -> None:
        """Write the tree: the register of what lies behind an address goes to another one, or its first elements.

        Args:
            b: Where.
            element: Type of the elements.
            source: The address that places are counted from.
            to: Where they go.
            count: How many may be written; those behind what was asked for are any of them.
        """
        if len(self.lines) == 1 and self.order[: self.count] == tuple(range(self.count)):
            here = b.gep(element, source, self.lines[0].start, "from")
            line = b.tensor_load(here, TensorType.dense(element, (1, self.count)), (0, self.count), "line")
            b.tensor_store(to, line, (0, self.count))
            return
        merged: Value | None = None
        for line in self.lines:
            type_ = TensorType(element, (1, self.lanes), (0, 1), (0, self.lanes - line.count))
            here = b.gep(element, source, line.start, "from")
            vector = b.tovector(b.tensor_load(here, type_, None, "line"), type_)
            merged = vector if merged is None else b.shuffle(merged, vector, line.mask, "merged")
        assert merged is not None
        picked = b.shuffle(merged, None, self.order, "picked")
        type_ = TensorType(element, (1, self.lanes), (0, 1), (0, self.lanes - count))
        b.tensor_store(to, b.typeinfo(picked, type_, "picked"))


def _lines(places: Sequence[int], lanes: int) -> list[list[int]]:
    """The places in order, in lines of as many elements as a register has."""
    lines: list[list[int]] = []
    for place in sorted(set(places)):
        if not lines or place - lines[-1][0] >= lanes:
            lines.append([])
        lines[-1].append(place)
    return lines


def _start(needed: Sequence[int], found: dict[int, int], lanes: int) -> int:
    """Where a line begins so that its elements fall into lanes that are free, if there is such a place behind 0."""
    taken = set(found.values())
    starts = range(needed[0], max(-1, needed[-1] - lanes), -1)
    fitting = (start for start in starts if not any(place - start in taken for place in needed))
    return next(fitting, needed[0])
