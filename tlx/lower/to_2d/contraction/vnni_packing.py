"""VNNI packing: copies of right operands whose rows are interleaved in groups, as a matrix unit reads them.

Copies of right operands whose rows are interleaved in groups, as a matrix unit reads them (VNNI).

rows of an image's windows, in memory          copy, two rows a group

c  i  j                                        x, y        0 0   0 0   0 1   0 1 ...
0  0  0    0 1 2 ...                           group 0     r0    r1    r0    r1
0  0  1    1 2 3 ...                           group 1     r2    r3    r2    r3
...                                            ...
1  0  0    100 101 102 ...                     group 4     r8    r9    r8    r9        the last window of a channel, and
1  0  1    101 102 103 ...                                                             the first of the next one

Rows of a group lie at any distance, which differs from group to group: as many groups are written out as it takes for
distances to be the same again. What a register of a group holds is picked from these rows (`gathers`); columns are
written out, too, until the pattern begins anew, or where that takes too many registers those of a row of pixels.

Columns of several dimensions, a register's worth at a time.

14 x 14 columns, 16 at a time: whole registers, though they begin and end anywhere in a row; 12 of them, and the rest

    row 0    0 1 2 3 4 5 6 7 8 9 a b c d | 0 1        register 0: all of row 0, two of row 1
    row 1    2 3 4 5 6 7 8 9 a b c d | 0 1 2 3        register 1: the rest of row 1, four of row 2

What 28 x 28 columns need begins anew after 7 registers, 4 rows: these are written out, and there is a loop around them.

Registers of elements that lie at known distances in memory: loaded as lines, merged in place, then put in order.

elements at 0, 1, 2, 9, 10, 11      line 0    0 1 2 - - - - -
                                    line 6    - - - 9 10 11 - -        begins so that its elements have free places
                                    merged    0 1 2 9 10 11 - -        one shuffle for each line but the first
                                    order     0 9 1 10 2 11            one shuffle at the end

A matrix unit's groups of rows are such registers, whatever the distances within a row and between rows are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import Type, bytes_of
from tlx.ir.values import Value
from tlx.lower.memory.views import StridedDim
from tlx.lower.to_2d.contraction.problem import OperandMemory
from tlx.lower.to_2d.loops import LoopDim, loop_nest

_WRITTEN: Final = 16
"""Registers that are written out at most; else whole rows, or parts of them, fill registers as far as they do."""


@dataclass(frozen=True)
class RaggedColumns:
    """Columns that are copied by the same shuffle, as many as a register of each holds.

    Attributes:
        around: Loops around the registers: extent, stride in the operand, columns from one to the next.
        start: The first one's place in the operand, and its column.
        places: Elements from the first column of a register to each.
    """

    around: tuple[LoopDim, ...]
    start: tuple[int, int]
    places: tuple[int, ...]

    @property
    def count(self) -> int:
        """Registers."""
        return math.prod(extent for extent, _ in self.around)


def ragged_columns(columns: Sequence[StridedDim], lanes: int) -> list[RaggedColumns]:
    """All columns, in whole registers where these can be written out; else by whole rows, or parts of one."""
    outer, places = list(columns), (0,)
    while outer and len(places) % lanes:
        dim = outer.pop()
        some = lanes // math.gcd(len(places), lanes)
        taken = some if dim.extent % some == 0 else dim.extent
        if len(places) * taken > _WRITTEN * lanes:
            return _chunks_of_rows(columns, lanes)
        places = _repeated_places(places, StridedDim(taken, dim.stride))
        if taken < dim.extent:
            outer.append(StridedDim(dim.extent // taken, dim.stride * taken))
    around = _around(outer, len(places))
    return [RaggedColumns(around, (0, at), places[at : at + lanes]) for at in range(0, len(places), lanes)]


def are_whole_registers(chunks: Sequence[RaggedColumns], lanes: int) -> bool:
    """Whether each register holds the columns from a multiple of `lanes` on."""
    steps = [chunk.start[1] for chunk in chunks]
    steps += [step for chunk in chunks for _, (_, step) in chunk.around]
    return all(step % lanes == 0 for step in steps)


def _around(outer: Sequence[StridedDim], step: int) -> tuple[LoopDim, ...]:
    """Loops over dimensions, with columns from a position to the next; the last one's are `step` apart."""
    walks = list[LoopDim]()
    for dim in reversed(outer):
        walks.insert(0, LoopDim(dim.extent, (dim.stride, step)))
        step *= dim.extent
    return tuple(walks)


def _chunks_of_rows(columns: Sequence[StridedDim], lanes: int) -> list[RaggedColumns]:
    """Columns, `lanes` at most at a time: whole dimensions, the inner ones first, and some positions of another."""
    outer, places = list(columns), (0,)
    while outer[-1].extent * len(places) <= lanes:
        places = _repeated_places(places, outer.pop())
    each, (extent, stride) = len(places), outer.pop()
    around, some = _around(outer, extent * each), lanes // each
    full, rest = divmod(extent, some)
    chunks = [
        RaggedColumns(
            (*around, LoopDim(full, (some * stride, some * each))),
            (0, 0),
            _repeated_places(places, StridedDim(some, stride)),
        )
    ]
    if rest:
        start = full * some * stride, full * some * each
        chunks.append(RaggedColumns(around, start, _repeated_places(places, StridedDim(rest, stride))))
    return chunks


def _repeated_places(places: tuple[int, ...], dim: StridedDim) -> tuple[int, ...]:
    """Places, again for each position of a dimension around them."""
    return tuple(index * dim.stride + place for index in range(dim.extent) for place in places)


@dataclass(frozen=True, slots=True)
class GatheredLine:
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
class RegisterGather:
    """How a register is made.

    Attributes:
        count: Elements that are asked for.
        lanes: Elements that the register has.
        loads: What is loaded.
        order: Of each element where it is once all is merged.
    """

    count: int
    lanes: int
    loads: tuple[GatheredLine, ...]
    order: tuple[int, ...]

    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, places: tuple[int, ...], lanes: int) -> RegisterGather:
        """The register of elements at some distances from an address, none of them negative; `lanes` at most."""
        found: dict[int, int] = {}
        lines: list[GatheredLine] = []
        for needed in _lines(places, lanes):
            start = _start(needed, found, lanes)
            free = iter([lane for lane in range(lanes) if lane not in set(found.values())])
            mask = list(range(lanes))
            apart = any(place - start in found.values() for place in needed)
            for place in needed:
                lane = next(free) if apart else place - start
                found[place], mask[lane] = lane, lanes + place - start
            lines.append(GatheredLine(start, needed[-1] - start + 1, tuple(mask)))
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
        if len(self.loads) == 1 and self.order[: self.count] == tuple(range(self.count)):
            here = b.gep(element, source, self.loads[0].start, "from")
            line = b.tensor_load(here, TensorType.dense(element, (1, self.count)), (0, self.count), "line")
            b.tensor_store(to, line, (0, self.count))
            return
        merged: Value | None = None
        for line in self.loads:
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


_WRITE_CYCLES: Final = 8
"""Cycles to write a register of a copy that does not stay in the first cache."""
_MERGE_CYCLES: Final = 2.5
"""Cycles to load a line and to merge it."""
_MOST: Final = 64
"""Rows that are written out at most."""
_REGISTER: Final = 64


@dataclass(frozen=True)
class VnniRows:
    """Rows of an operand in groups.

    Attributes:
        width: Rows of a group.
        around: Loops around the rows that are written out: extent, and stride in the operand.
        offsets: Elements from the first of these rows to each: some groups, behind each other.
    """

    width: int
    around: tuple[StridedDim, ...]
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, rows: Sequence[StridedDim], width: int) -> VnniRows | None:
        """The groups of the rows that some dimensions are; None if there are too many to write out."""
        around, inner, count = list(rows), list[StridedDim](), 1
        while count % width:
            if not around:
                return None
            extent, stride = around.pop()
            some = width // math.gcd(count, width)
            taken = some if extent % some == 0 else extent
            around.append(StridedDim(extent // taken, stride * taken))
            inner.insert(0, StridedDim(taken, stride))
            count *= taken
            if taken == extent:
                around.pop()
        if count > _MOST or any(dim.stride < 0 for dim in rows):
            return None
        offsets = tuple(sum(places) for places in product(*(range(0, d.extent * d.stride, d.stride) for d in inner)))
        return cls(width, tuple(around), offsets)

    def gathers(self, chunk: RaggedColumns, lanes: int) -> list[tuple[int, RegisterGather]]:
        """For each group that is written out the first element of a register of its columns, and what that holds."""
        found: list[tuple[int, RegisterGather]] = []
        for first in range(0, len(self.offsets), self.width):
            rows = self.offsets[first : first + self.width]
            places = tuple(place + row - min(rows) for place in chunk.places for row in rows)
            found.append((min(rows), RegisterGather.of(places, lanes)))
        return found

    def cycles(self, rows: float, columns: Sequence[StridedDim], lanes: int) -> float:
        """About how many cycles it takes to copy `rows` rows of such columns; `lanes` of them fit a register."""
        chunks = ragged_columns(columns, lanes)
        lines = max(len(pick.loads) for _, pick in self.gathers(chunks[0], lanes * self.width))
        each = max(_WRITE_CYCLES, _MERGE_CYCLES * lines)
        return rows / self.width * sum(chunk.count for chunk in chunks) * each


@dataclass(frozen=True)
class VnniCopy:
    """A copy.

    Attributes:
        b: Where it is written.
        source: The operand.
        groups: Its rows.
        outer: Loops around the matrices that are copied: extent, strides in the operand and in the copy.
        columns: Dimensions of a row in the operand.
        pitch: Columns of a row of the copy: what is written behind the last one does not matter.
        strip: Elements from the first `pitch` columns to the next ones in the copy; 0 where there are no others.
    """

    b: TensorBuilder
    source: OperandMemory
    groups: VnniRows
    outer: tuple[LoopDim, ...]
    columns: tuple[StridedDim, ...]
    pitch: int
    strip: int = 0

    def write(self, target: Value) -> None:
        """Write the copy."""
        b, (pointer, element, *_) = self.b, self.source
        lanes = _REGISTER // bytes_of(element)
        width = self.groups.width
        with loop_nest(b, [*self.outer, *self._rows], 2, "groups") as (start, there):
            base, out = b.gep(element, pointer, start, "from"), b.gep(element, target, there, "to")
            for chunk in ragged_columns(self.columns, lanes // width):
                around = [LoopDim(extent, (here, self._place(column))) for extent, (here, column) in chunk.around]
                with loop_nest(b, around, 2, "column") as (along, to):
                    for number, (first, pick) in enumerate(self.groups.gathers(chunk, lanes)):
                        here = b.gep(element, base, b.add(along, chunk.start[0] + first), "row")
                        place = b.add(to, self._place(chunk.start[1]) + number * self.pitch * width)
                        pick.emit(b, element, here, b.gep(element, out, place, "group"), self._columns(chunk) * width)

    def _columns(self, chunk: RaggedColumns) -> int:
        """Columns that are written: the last register is whole, if there is room behind the last column."""
        columns = _REGISTER // bytes_of(self.source.element) // self.groups.width
        start = chunk.start[1] % self.pitch if self.strip else chunk.start[1]
        return len(chunk.places) if chunk.around else min(columns, self.pitch - start)

    def _place(self, column: int) -> int:
        """Elements from the first column of a row of the copy to another one."""
        return column // self.pitch * self.strip if self.strip else column * self.groups.width

    @property
    def _rows(self) -> tuple[LoopDim, ...]:
        """Loops around the rows that are written out, in the operand and in the copy."""
        walks, step = list[LoopDim](), len(self.groups.offsets) * self.pitch
        for extent, stride in reversed(self.groups.around):
            walks.insert(0, LoopDim(extent, (stride, step)))
            step *= extent
        return tuple(walks)
