"""Shuffle masks: which lanes a shuffle takes, and the strided blocks that they are.

    lanes 0 17 34 ... 255 1 18 ... 271        one block: (17, 1), (16, 17)         a 16 x 17 matrix transposed
    lanes 0 W 1 W+1 2 W+2 ...                 of each operand (W, 1), every second lane of the result
    lanes 0 1 2 5 4 3 6 7 ... 399             three blocks: (3, 1), (3, -1) from lane 5 on, (394, 1) from lane 6 on
    lanes in any order                        none: a table

A lane of the result that may have any value fits every block, and a block's part outside of the operands, where only
such lanes can be, is left out. All of this takes time in proportion to the number of lanes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

import numpy as np

from tlx.intrinsics.numpy_types import Array
from tlx.ir.instructions import Instruction
from tlx.ir.types import StructType, VectorType
from tlx.ir.values import Aggregate, ConstInt, Keyword, Splat, Value, is_undefined
from tlx.lower.to_2d.loops import LoopDim

ANY: Final = -1
"""The lane of an element that may have any value."""
_MOST_BLOCKS: Final = 16
"""Blocks that are copied each by code of its own; what takes more goes by a table."""
_FEW_BLOCKS: Final = 4
"""Blocks that are better than a table, however small they are."""
_SAMPLE: Final = 4096
"""Lanes that tell in most cases that others are not periodic."""


@dataclass(frozen=True, slots=True)
class VectorShuffle:
    """What a shuffle takes from where.

    Attributes:
        operands: Vectors with elements of one type, none of which is undefined, and each is read.
        lanes: For each element of the result its number among the elements of all operands, or `ANY`.
    """

    operands: tuple[Value, ...]
    lanes: Array

    @classmethod
    def of(cls, instruction: Instruction) -> VectorShuffle:
        """What `shufflevector`, or `llvm.vector.reverse` or one of its kind, takes (`is_shuffle`)."""
        if instruction.opcode == "shufflevector":
            *operands, mask = instruction.operands
            return _reduced(operands, _mask(mask))
        return _reduced(*_INTRINSICS[str(_intrinsic(instruction))](instruction))

    @property
    def bounds(self) -> list[int]:
        """Numbers of the operands' first elements, and of the one behind the last operand's last element."""
        return [0, *accumulate(map(vector_width, self.operands))]

    @property
    def known(self) -> Array:
        """Which elements have no value of their own choice."""
        return self.lanes != ANY


@dataclass(frozen=True, slots=True)
class StridedLanes:
    """A part of a shuffle whose elements are strides apart.

    Attributes:
        start: The lane of its first element: among those of all operands, or of `operand`.
        at: Where that goes in the result.
        dims: Extent, and strides among lanes and in the result, the outermost first.
        operand: Which operand it is of; -1 where that is not known yet.
    """

    start: int
    at: int
    dims: tuple[LoopDim, ...]
    operand: int = -1


@dataclass(frozen=True, slots=True)
class LaneTable:
    """Blocks of the same strides from anywhere, which lie behind each other in the result.

    Attributes:
        starts: The lane of each one's first element.
        dims: Extent, and strides among lanes and in the result, the outermost first.
    """

    starts: Array
    dims: tuple[LoopDim, ...]

    @property
    def step(self) -> int:
        """Elements of a block."""
        return math.prod(extent for extent, _ in self.dims)


# What instructions take ----------------------------------------------------------------------------------------------


def vector_width(value: Value) -> int:
    """Elements of a vector."""
    assert isinstance(value.type, VectorType)
    return value.type.count


def is_shuffle(instruction: Instruction) -> bool:
    """Whether an instruction is a shuffle of vectors of known sizes."""
    if instruction.opcode == "shufflevector":
        return isinstance(instruction.type, VectorType) and not instruction.type.scalable
    return instruction.opcode == "call" and _intrinsic(instruction) is not None


def _intrinsic(instruction: Instruction) -> str | None:
    """`reverse` of a call of `llvm.vector.reverse.v600f32`; None if it calls anything else, or vectors are scalable."""
    prefix, _, name = (instruction.callee or "").strip('"').replace(".experimental", "").rpartition("llvm.vector.")
    kind = name.partition(".")[0]
    if prefix or kind not in _INTRINSICS or not isinstance(instruction.type, VectorType):
        return None
    types = (instruction.type, *(value.type for value in instruction.args))
    return None if any(isinstance(type_, VectorType) and type_.scalable for type_ in types) else kind


def deinterleave_factor(call: Instruction) -> int:
    """How many vectors `llvm.vector.deinterleave2` and its kind make of one; 0 of anything else."""
    name = (call.callee or "").strip('"').replace(".experimental", "")
    if not name.startswith("llvm.vector.deinterleave") or not isinstance(call.type, StructType):
        return 0
    first = call.args[0].type
    return len(call.type.elements) if isinstance(first, VectorType) and not first.scalable else 0


def _mask(mask: Value) -> Array:
    """The lanes of a `shufflevector`."""
    count = vector_width(mask)
    if isinstance(mask, Splat):
        return np.full(count, _lane(mask.element))
    if isinstance(mask, Keyword):
        return np.full(count, 0 if mask.word == "zeroinitializer" else ANY)
    assert isinstance(mask, Aggregate)
    return np.array(mask.integers or [_lane(element) for element in mask.elements], np.int64)


def _lane(element: Value) -> int:
    return element.value if isinstance(element, ConstInt) else ANY


def _number(value: Value) -> int:
    """A constant argument of an intrinsic."""
    assert isinstance(value, ConstInt)
    return value.value


def _range(call: Instruction, start: int) -> Array:
    return np.arange(start, start + vector_width(call.value))


def _reverse(call: Instruction) -> tuple[list[Value], Array]:
    return call.args, _range(call, 0)[::-1]


def _splice(call: Instruction) -> tuple[list[Value], Array]:
    first = _number(call.args[2])
    return call.args[:2], _range(call, first if first >= 0 else first + vector_width(call.value))


def _extract(call: Instruction) -> tuple[list[Value], Array]:
    return call.args[:1], _range(call, _number(call.args[1]))


def _insert(call: Instruction) -> tuple[list[Value], Array]:
    lanes, part, first = _range(call, 0), vector_width(call.args[1]), _number(call.args[2])
    lanes[first : first + part] = np.arange(len(lanes), len(lanes) + part)
    return call.args[:2], lanes


def _interleave(call: Instruction) -> tuple[list[Value], Array]:
    return call.args, _range(call, 0).reshape(len(call.args), -1).T.reshape(-1)


_INTRINSICS: Final[dict[str, Callable[[Instruction], tuple[list[Value], Array]]]] = {
    "reverse": _reverse,
    "splice": _splice,
    "extract": _extract,
    "insert": _insert,
    **{f"interleave{count}": _interleave for count in range(2, 9)},
}


def _reduced(operands: Sequence[Value], lanes: Array) -> VectorShuffle:
    """A shuffle of operands that it reads, each of them once; elements of undefined ones may have any value."""
    lanes = lanes.astype(np.int64)
    numbered = np.full(len(lanes), ANY, np.int64)
    kept: list[Value] = []
    starts: dict[Value, int] = {}
    first = behind = 0
    for operand in operands:
        width = vector_width(operand)
        mine = (lanes >= first) & (lanes < first + width)
        if mine.any() and not is_undefined(operand):
            if operand not in starts:
                starts[operand] = behind
                kept.append(operand)
                behind += width
            numbered[mine] = lanes[mine] - first + starts[operand]
        first += width
    return VectorShuffle(tuple(kept), numbered)


# The blocks of lanes -------------------------------------------------------------------------------------------------


def strided_blocks_of(shuffle: VectorShuffle) -> list[StridedLanes] | LaneTable:
    """The blocks of a shuffle that reads something, each in one operand; a table where there are too many."""
    heads, known, dims = shuffle.lanes, shuffle.known, ()
    if len(heads) > _MOST_BLOCKS:
        heads, known, dims = _nested(heads, known)
    step = math.prod(extent for extent, _ in dims)
    found = _runs(heads, known) or _periods(heads, known)
    if found is not None:
        scaled = [StridedLanes(b.start, b.at * step, (*_times(b.dims, step), *dims)) for b in found]
        blocks = _apart(scaled, shuffle.bounds)
        if blocks is not None:
            return [replace(b, dims=tuple(dim for dim in b.dims if dim.extent > 1)) for b in blocks]
    return _table(shuffle, heads, known, dims)


def _times(dims: Sequence[LoopDim], step: int) -> Iterator[LoopDim]:
    return (LoopDim(extent, (lane, to * step)) for extent, (lane, to) in dims)


def _nested(lanes: Array, known: Array) -> tuple[Array, Array, tuple[LoopDim, ...]]:
    """The first lanes of blocks that all have the same strides, as large as possible; and their dimensions."""
    dims: list[LoopDim] = []
    step = 1
    while len(lanes) > 1:
        extent, stride = _innermost(lanes, known)
        if extent == 1:
            break
        dims.insert(0, LoopDim(extent, (stride, step)))
        step *= extent
        lanes, known = _heads(lanes, known, extent, stride)
    return lanes, known, tuple(dims)


def _innermost(lanes: Array, known: Array) -> tuple[int, int]:
    """The largest number of neighbours that are the same stride apart all over, and the stride.

    Neighbours i < j that have other distances say that a block begins behind i, and not behind j.
    """
    at = np.flatnonzero(known)
    before, behind = at[:-1], at[1:]
    gap, rise = behind - before, lanes[behind] - lanes[before]
    stride = _usual(rise[gap == 1])
    apart = rise != stride * gap
    extent = int(np.gcd.reduce([len(lanes), *behind[apart & (gap == 1)].tolist()]))
    before, behind = before[apart & (gap > 1)], behind[apart & (gap > 1)]
    fitting = (e for e in _divisors(extent)[::-1] if bool((before // e != behind // e).all()))
    return next(fitting), stride


def _usual(numbers: Array) -> int:
    """The most frequent number; 0 where there is none."""
    if not len(numbers):
        return 0
    values, counts = np.unique(numbers, return_counts=True)
    return int(values[np.argmax(counts)])


def _divisors(number: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def _heads(lanes: Array, known: Array, extent: int, stride: int) -> tuple[Array, Array]:
    """The first lanes of blocks, each told by the first lane of it that is known."""
    firsts = (lanes.reshape(-1, extent) - stride * np.arange(extent)).reshape(-1)
    by_block = known.reshape(-1, extent)
    chosen = np.argmax(by_block, axis=1) + extent * np.arange(len(by_block))
    is_known: Array = np.any(by_block, axis=1)
    return firsts[chosen], is_known


def _runs(lanes: Array, known: Array) -> list[StridedLanes] | None:
    """A few runs of lanes, each the same stride apart; None if there are many, or most are of two lanes.

    lanes        0 1 2 77 5 6 7        a lane that is not as far from the next one as that from the one behind it
    runs         0 1 2|77|5 6 7        is a run of its own
    """
    at = np.flatnonzero(known)
    if not len(at):
        return []
    first, filled = int(at[0]), _filled(lanes, known)[at[0] : at[-1] + 1]
    rises = np.diff(filled)
    ends = [*(np.flatnonzero(np.diff(rises)) + 1).tolist(), len(rises)]
    if len(ends) > 4 * _MOST_BLOCKS:
        return None
    runs: list[StridedLanes] = []
    lane = 0
    while lane < len(filled):
        found = bisect_right(ends, lane)
        end = ends[found] if found < len(ends) else lane
        if end == lane + 1 and found + 1 < len(ends) and ends[found + 1] > end + 1:
            end = lane
        stride = int(rises[lane]) if end > lane else 0
        runs.append(StridedLanes(int(filled[lane]), first + lane, (LoopDim(end - lane + 1, (stride, 1)),)))
        lane = end + 1
    is_short = len(runs) > _FEW_BLOCKS and len(runs) * 3 > len(filled)
    return runs if len(runs) <= _MOST_BLOCKS and not is_short else None


def _filled(lanes: Array, known: Array) -> Array:
    """Lanes where each that may be any goes on from the one before as its neighbours do."""
    where = np.arange(len(lanes))
    at = np.flatnonzero(known)
    last = np.maximum.accumulate(np.where(known, where, at[0]))
    stride = _usual(np.diff(lanes[at])[np.diff(at) == 1])
    return lanes[last] + stride * (where - last)


def _periods(lanes: Array, known: Array) -> list[StridedLanes] | None:
    """A few runs of lanes that come again and again, each of them with a stride from one time to the next.

    lanes        1 2 3 0  5 6 7 4  9 10 11 8        period 4: runs 1 2 3 and 0, with stride 4
    """
    for period in _divisors(len(lanes))[1:-1]:
        sample = period * max(3, _SAMPLE // period)
        if sample < len(lanes) and _columns(lanes[:sample], known[:sample], period) is None:
            continue
        columns = _columns(lanes, known, period)
        blocks = None if columns is None else _periodic(*columns, len(lanes) // period)
        if blocks is not None:
            return blocks
    return None


def _columns(lanes: Array, known: Array, period: int) -> tuple[Array, Array, Array] | None:
    """The lanes of a period, and the strides of each to those of the next ones; None if they have none.

    Returns:
        The first lanes, their strides, and which of them are known.
    """
    table, is_known = lanes.reshape(-1, period), known.reshape(-1, period)
    rows, column = len(table), np.arange(period)
    first, last = np.argmax(is_known, axis=0), rows - 1 - np.argmax(is_known[::-1], axis=0)
    used: Array = np.any(is_known, axis=0)
    several = used & (last > first)
    strides = np.zeros(period, np.int64)
    rise = table[last, column] - table[first, column]
    strides[several] = rise[several] // (last - first)[several]
    strides[~several] = _usual(strides[several])
    starts = table[first, column] - first * strides
    fits = (table == starts + np.arange(rows)[:, None] * strides) | ~is_known
    return (starts, strides, used) if fits.all() else None


def _periodic(starts: Array, strides: Array, used: Array, times: int) -> list[StridedLanes] | None:
    """The runs of a period, each of lanes of one stride, repeated; None if there are many."""
    period = len(starts)
    ends = (np.flatnonzero(np.diff(strides)) + 1).tolist()
    if len(ends) >= _MOST_BLOCKS:
        return None
    blocks: list[StridedLanes] = []
    for begin, end in zip([0, *ends], [*ends, period], strict=True):
        runs = _runs(starts[begin:end], used[begin:end])
        if runs is None:
            return None
        around = LoopDim(times, (int(strides[begin]), period))
        blocks += [StridedLanes(run.start, run.at + begin, (around, *run.dims)) for run in runs]
    return blocks if len(blocks) <= _MOST_BLOCKS else None


# Operands ------------------------------------------------------------------------------------------------------------


def _apart(blocks: Sequence[StridedLanes], bounds: Sequence[int]) -> list[StridedLanes] | None:
    """Blocks that are cut where one operand ends and another one begins; None if there are many."""
    found: list[StridedLanes] = []
    pending = list(reversed(blocks))
    while pending:
        block = pending.pop()
        low, high = _reach(block.dims)
        operand = bisect_right(bounds, block.start + low) - 1
        if operand == bisect_right(bounds, block.start + high) - 1:
            if 0 <= operand < len(bounds) - 1:
                found.append(replace(block, start=block.start - bounds[operand], operand=operand))
        else:
            pending.extend(_cut(block, bounds))
        if len(found) + len(pending) > 2 * _MOST_BLOCKS:
            return None
    return found if len(found) <= _MOST_BLOCKS else None


def _reach(dims: Sequence[LoopDim]) -> tuple[int, int]:
    """The least and the greatest lane of a block, from its first one on."""
    ends = [(extent - 1) * stride for extent, (stride, _) in dims]
    return sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)


def _cut(block: StridedLanes, bounds: Sequence[int]) -> list[StridedLanes]:
    """A block cut along its longest stride, the last part first: parts in one operand, and single positions."""
    cut = max((d for d in block.dims if d[0] > 1), key=lambda d: abs(d[1][0]))
    extent, (stride, to) = cut
    number = block.dims.index(cut)
    low, high = _reach([*block.dims[:number], *block.dims[number + 1 :]])
    starts = block.start + stride * np.arange(extent)
    of_low, of_high = (np.searchsorted(bounds, starts + end, side="right") for end in (low, high))
    begins = (np.diff(of_low) != 0) | (of_low[1:] != of_high[1:]) | (of_low[:-1] != of_high[:-1])
    ends = [*(np.flatnonzero(begins) + 1).tolist(), extent]
    parts: list[StridedLanes] = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        around = (*block.dims[:number], LoopDim(end - begin, (stride, to)), *block.dims[number + 1 :])
        parts.append(StridedLanes(int(starts[begin]), block.at + begin * to, around))
    return parts[::-1]


def _table(shuffle: VectorShuffle, starts: Array, known: Array, dims: tuple[LoopDim, ...]) -> LaneTable:
    """Blocks as they are where each lies in one operand; else lane by lane."""
    at = np.flatnonzero(known)
    last = np.maximum.accumulate(np.where(known, np.arange(len(starts)), at[0]))
    low, high = _reach(dims)
    chosen, bounds = starts[last], shuffle.bounds
    operands, others = (np.searchsorted(bounds, chosen + end, side="right") - 1 for end in (low, high))
    if ((operands == others) & (operands >= 0) & (operands < len(bounds) - 1)).all():
        return LaneTable(chosen, dims)
    return _table(shuffle, shuffle.lanes, shuffle.known, ())
