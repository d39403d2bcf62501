"""Shuffle masks: the lanes that a shuffle selects, as strided blocks or as a table.

    lanes 0 17 34 ... 255 1 18 ... 271        one block: (17, 1), (16, 17)         a 16 x 17 matrix transposed
    lanes 0 W 1 W+1 2 W+2 ...                 of each operand (W, 1), every second lane of the result
    lanes 0 1 2 5 4 3 6 7 ... 399             three blocks: (3, 1), (3, -1) from lane 5 on, (394, 1) from lane 6 on
    lanes in an irregular order               none: a table

An undefined lane of the result fits any block. The part of a block outside of the operands, which has undefined lanes
only, is dropped. The running time is linear in the number of lanes.
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
from tlx.lower.to_2d.loop_nests import LoopDim

ANY: Final = -1
"""The lane of an undefined element."""
_MOST_BLOCKS: Final = 16
"""Largest number of blocks with separate code; more are copied by a table."""
_FEW_BLOCKS: Final = 4
"""Largest number of blocks that are better than a table even if they are small."""
_SAMPLE: Final = 4096
"""Number of lanes in a sample that rules out most periods quickly."""


@dataclass(frozen=True, slots=True)
class VectorShuffle:
    """The operands and the mask of a shuffle.

    Attributes:
        operands: Vectors with elements of one type; each is read, and none is undefined.
        mask: For each element of the result its lane in the concatenated operands, or `ANY`.
    """

    operands: tuple[Value, ...]
    mask: Array

    @classmethod
    def of(cls, instruction: Instruction) -> VectorShuffle:
        """The shuffle of a `shufflevector`, or of an intrinsic such as `llvm.vector.reverse` (`is_shuffle`)."""
        if instruction.opcode == "shufflevector":
            *operands, mask = instruction.operands
            return _reduced(operands, _mask(mask))
        return _reduced(*_INTRINSICS[str(_intrinsic(instruction))](instruction))

    @property
    def bounds(self) -> list[int]:
        """The first lane of each operand, and the total number of lanes."""
        return [0, *accumulate(map(vector_width, self.operands))]

    @property
    def defined(self) -> Array:
        """Which elements of the result are defined."""
        return self.mask != ANY


@dataclass(frozen=True, slots=True)
class StridedLanes:
    """A part of a shuffle with strided lanes.

    Attributes:
        start: The lane of its first element, in all operands or in `operand`.
        at: The position of that element in the result.
        dims: Extents, with strides in lanes and in the result, outermost first.
        operand: The index of the operand; -1 if that is not known yet.
    """

    start: int
    at: int
    dims: tuple[LoopDim, ...]
    operand: int = -1


@dataclass(frozen=True, slots=True)
class LaneTable:
    """Blocks with equal strides and any first lanes, which are contiguous in the result.

    Attributes:
        starts: The lane of each block's first element.
        dims: Extents, with strides in lanes and in the result, outermost first.
    """

    starts: Array
    dims: tuple[LoopDim, ...]

    @property
    def step(self) -> int:
        """Number of elements of a block."""
        return math.prod(extent for extent, _ in self.dims)


# Instructions --------------------------------------------------------------------------------------------------------


def vector_width(value: Value) -> int:
    """Number of elements of a vector."""
    assert isinstance(value.type, VectorType)
    return value.type.count


def is_shuffle(instruction: Instruction) -> bool:
    """Whether an instruction shuffles vectors of known sizes."""
    if instruction.opcode == "shufflevector":
        return isinstance(instruction.type, VectorType) and not instruction.type.scalable
    return instruction.opcode == "call" and _intrinsic(instruction) is not None


def _intrinsic(instruction: Instruction) -> str | None:
    """The shuffle intrinsic that is called, as `reverse` for `llvm.vector.reverse.v600f32`; None if there is none."""
    prefix, _, name = (instruction.callee or "").strip('"').replace(".experimental", "").rpartition("llvm.vector.")
    kind = name.partition(".")[0]
    if prefix or kind not in _INTRINSICS or not isinstance(instruction.type, VectorType):
        return None
    types = (instruction.type, *(value.type for value in instruction.args))
    return None if any(isinstance(type_, VectorType) and type_.scalable for type_ in types) else kind


def deinterleave_factor(call: Instruction) -> int:
    """The number of results of `llvm.vector.deinterleave2` and the like; 0 for any other call."""
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


def _constant(value: Value) -> int:
    """A constant argument of an intrinsic."""
    assert isinstance(value, ConstInt)
    return value.value


def _range(call: Instruction, start: int) -> Array:
    return np.arange(start, start + vector_width(call.value))


def _reverse(call: Instruction) -> tuple[list[Value], Array]:
    return call.args, _range(call, 0)[::-1]


def _splice(call: Instruction) -> tuple[list[Value], Array]:
    first = _constant(call.args[2])
    return call.args[:2], _range(call, first if first >= 0 else first + vector_width(call.value))


def _extract(call: Instruction) -> tuple[list[Value], Array]:
    return call.args[:1], _range(call, _constant(call.args[1]))


def _insert(call: Instruction) -> tuple[list[Value], Array]:
    lanes, part, first = _range(call, 0), vector_width(call.args[1]), _constant(call.args[2])
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


def _reduced(operands: Sequence[Value], mask: Array) -> VectorShuffle:
    """A shuffle without repeated, unread and undefined operands; lanes of undefined operands become `ANY`."""
    mask = mask.astype(np.int64)
    numbered = np.full(len(mask), ANY, np.int64)
    distinct: list[Value] = []
    starts: dict[Value, int] = {}
    first = end = 0
    for operand in operands:
        width = vector_width(operand)
        in_operand = (mask >= first) & (mask < first + width)
        if in_operand.any() and not is_undefined(operand):
            if operand not in starts:
                starts[operand] = end
                distinct.append(operand)
                end += width
            numbered[in_operand] = mask[in_operand] - first + starts[operand]
        first += width
    return VectorShuffle(tuple(distinct), numbered)


# The blocks of lanes -------------------------------------------------------------------------------------------------


def strided_blocks_of(shuffle: VectorShuffle) -> list[StridedLanes] | LaneTable:
    """The strided blocks of a shuffle with defined elements, each in one operand; a table if there are too many."""
    heads, defined, dims = shuffle.mask, shuffle.defined, ()
    if len(heads) > _MOST_BLOCKS:
        heads, defined, dims = _nested(heads, defined)
    step = math.prod(extent for extent, _ in dims)
    runs = _strided_runs(heads, defined) or _periodic_runs(heads, defined)
    if runs is not None:
        scaled = [StridedLanes(run.start, run.at * step, (*_scaled(run.dims, step), *dims)) for run in runs]
        blocks = _split_at_operands(scaled, shuffle.bounds)
        if blocks is not None:
            return [replace(b, dims=tuple(dim for dim in b.dims if dim.extent > 1)) for b in blocks]
    return _table(shuffle, heads, defined, dims)


def _scaled(dims: Sequence[LoopDim], step: int) -> Iterator[LoopDim]:
    return (LoopDim(extent, (lane, to * step)) for extent, (lane, to) in dims)


def _nested(mask: Array, defined: Array) -> tuple[Array, Array, tuple[LoopDim, ...]]:
    """The first lanes of the largest blocks that all have the same strides, and the dimensions of the blocks."""
    dims: list[LoopDim] = []
    step = 1
    while len(mask) > 1:
        extent, stride = _innermost(mask, defined)
        if extent == 1:
            break
        dims.insert(0, LoopDim(extent, (stride, step)))
        step *= extent
        mask, defined = _first_lanes(mask, defined, extent, stride)
    return mask, defined, tuple(dims)


def _innermost(mask: Array, defined: Array) -> tuple[int, int]:
    """The largest extent such that lanes in all blocks of that extent have the same stride, and the stride.

    Neighbours i < j whose lanes differ by another stride must be in different blocks.
    """
    at = np.flatnonzero(defined)
    before, after = at[:-1], at[1:]
    gap, rise = after - before, mask[after] - mask[before]
    stride = _mode(rise[gap == 1])
    breaks = rise != stride * gap
    extent = int(np.gcd.reduce([len(mask), *after[breaks & (gap == 1)].tolist()]))
    before, after = before[breaks & (gap > 1)], after[breaks & (gap > 1)]
    fitting = (e for e in _divisors(extent)[::-1] if bool((before // e != after // e).all()))
    return next(fitting), stride


def _mode(numbers: Array) -> int:
    """The most frequent number; 0 if there is none."""
    if not len(numbers):
        return 0
    values, counts = np.unique(numbers, return_counts=True)
    return int(values[np.argmax(counts)])


def _divisors(number: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def _first_lanes(mask: Array, defined: Array, extent: int, stride: int) -> tuple[Array, Array]:
    """The first lanes of blocks, each computed from the first defined lane of the block."""
    firsts = (mask.reshape(-1, extent) - stride * np.arange(extent)).reshape(-1)
    by_block = defined.reshape(-1, extent)
    first_defined = np.argmax(by_block, axis=1) + extent * np.arange(len(by_block))
    is_defined: Array = np.any(by_block, axis=1)
    return firsts[first_defined], is_defined


def _strided_runs(mask: Array, defined: Array) -> list[StridedLanes] | None:
    """Runs of lanes with a constant stride; None if there are many, or most have two lanes.

    lanes        0 1 2 77 5 6 7        77 is a separate run: it continues neither that before it nor that after it
    runs         0 1 2|77|5 6 7
    """
    at = np.flatnonzero(defined)
    if not len(at):
        return []
    first, filled = int(at[0]), _filled(mask, defined)[at[0] : at[-1] + 1]
    rises = np.diff(filled)
    ends = [*(np.flatnonzero(np.diff(rises)) + 1).tolist(), len(rises)]
    if len(ends) > 4 * _MOST_BLOCKS:
        return None
    runs: list[StridedLanes] = []
    lane = 0
    while lane < len(filled):
        index = bisect_right(ends, lane)
        end = ends[index] if index < len(ends) else lane
        if end == lane + 1 and index + 1 < len(ends) and ends[index + 1] > end + 1:
            end = lane  # the next run is longer and begins with this element
        stride = int(rises[lane]) if end > lane else 0
        runs.append(StridedLanes(int(filled[lane]), first + lane, (LoopDim(end - lane + 1, (stride, 1)),)))
        lane = end + 1
    is_short = len(runs) > _FEW_BLOCKS and len(runs) * 3 > len(filled)
    return runs if len(runs) <= _MOST_BLOCKS and not is_short else None


def _filled(mask: Array, defined: Array) -> Array:
    """The lanes with each undefined one extrapolated from the last defined one by the most frequent stride."""
    where = np.arange(len(mask))
    at = np.flatnonzero(defined)
    last = np.maximum.accumulate(np.where(defined, where, at[0]))
    stride = _mode(np.diff(mask[at])[np.diff(at) == 1])
    return mask[last] + stride * (where - last)


def _periodic_runs(mask: Array, defined: Array) -> list[StridedLanes] | None:
    """Runs of lanes that repeat, each with a stride from one period to the next; None if there are many.

    lanes        1 2 3 0  5 6 7 4  9 10 11 8        period 4: runs 1 2 3 and 0, with stride 4
    """
    for period in _divisors(len(mask))[1:-1]:
        sample = period * max(3, _SAMPLE // period)
        if sample < len(mask) and _columns(mask[:sample], defined[:sample], period) is None:
            continue
        columns = _columns(mask, defined, period)
        blocks = None if columns is None else _runs_of_period(*columns, len(mask) // period)
        if blocks is not None:
            return blocks
    return None


def _columns(mask: Array, defined: Array, period: int) -> tuple[Array, Array, Array] | None:
    """The lanes of the first period, and their strides from period to period; None if strides are not constant.

    Returns:
        The first lanes, their strides, and which of them are defined.
    """
    table, is_defined = mask.reshape(-1, period), defined.reshape(-1, period)
    rows, column = len(table), np.arange(period)
    first, last = np.argmax(is_defined, axis=0), rows - 1 - np.argmax(is_defined[::-1], axis=0)
    used: Array = np.any(is_defined, axis=0)
    repeats = used & (last > first)
    strides = np.zeros(period, np.int64)
    rise = table[last, column] - table[first, column]
    strides[repeats] = rise[repeats] // (last - first)[repeats]
    strides[~repeats] = _mode(strides[repeats])
    starts = table[first, column] - first * strides
    fits = (table == starts + np.arange(rows)[:, None] * strides) | ~is_defined
    return (starts, strides, used) if fits.all() else None


def _runs_of_period(starts: Array, strides: Array, used: Array, times: int) -> list[StridedLanes] | None:
    """The runs of a period, each with one stride from period to period; None if there are many."""
    period = len(starts)
    ends = (np.flatnonzero(np.diff(strides)) + 1).tolist()
    if len(ends) >= _MOST_BLOCKS:
        return None
    blocks: list[StridedLanes] = []
    for begin, end in zip([0, *ends], [*ends, period], strict=True):
        runs = _strided_runs(starts[begin:end], used[begin:end])
        if runs is None:
            return None
        repeats = LoopDim(times, (int(strides[begin]), period))
        blocks += [StridedLanes(run.start, run.at + begin, (repeats, *run.dims)) for run in runs]
    return blocks if len(blocks) <= _MOST_BLOCKS else None


# Operands ------------------------------------------------------------------------------------------------------------


def _split_at_operands(blocks: Sequence[StridedLanes], bounds: Sequence[int]) -> list[StridedLanes] | None:
    """Blocks that are split at the bounds of operands; None if there are many."""
    split: list[StridedLanes] = []
    pending = list(reversed(blocks))
    while pending:
        block = pending.pop()
        low, high = _lane_range(block.dims)
        operand = bisect_right(bounds, block.start + low) - 1
        if operand == bisect_right(bounds, block.start + high) - 1:
            if 0 <= operand < len(bounds) - 1:
                split.append(replace(block, start=block.start - bounds[operand], operand=operand))
        else:
            pending.extend(_cut(block, bounds))
        if len(split) + len(pending) > 2 * _MOST_BLOCKS:
            return None
    return split if len(split) <= _MOST_BLOCKS else None


def _lane_range(dims: Sequence[LoopDim]) -> tuple[int, int]:
    """The smallest and the largest lane of a block, relative to its first one."""
    ends = [(extent - 1) * stride for extent, (stride, _) in dims]
    return sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)


def _cut(block: StridedLanes, bounds: Sequence[int]) -> list[StridedLanes]:
    """A block split along its largest stride: parts in one operand, and single positions; the last part first."""
    longest = max((d for d in block.dims if d.extent > 1), key=lambda d: abs(d.strides[0]))
    extent, (stride, to) = longest
    number = block.dims.index(longest)
    low, high = _lane_range([*block.dims[:number], *block.dims[number + 1 :]])
    starts = block.start + stride * np.arange(extent)
    of_low, of_high = (np.searchsorted(bounds, starts + end, side="right") for end in (low, high))
    begins = (np.diff(of_low) != 0) | (of_low[1:] != of_high[1:]) | (of_low[:-1] != of_high[:-1])
    ends = [*(np.flatnonzero(begins) + 1).tolist(), extent]
    parts: list[StridedLanes] = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        dims = (*block.dims[:number], LoopDim(end - begin, (stride, to)), *block.dims[number + 1 :])
        parts.append(StridedLanes(int(starts[begin]), block.at + begin * to, dims))
    return parts[::-1]


def _table(shuffle: VectorShuffle, starts: Array, defined: Array, dims: tuple[LoopDim, ...]) -> LaneTable:
    """A table of the blocks if each is in one operand; else a table of single lanes."""
    at = np.flatnonzero(defined)
    last = np.maximum.accumulate(np.where(defined, np.arange(len(starts)), at[0]))
    low, high = _lane_range(dims)
    filled, bounds = starts[last], shuffle.bounds
    operands, others = (np.searchsorted(bounds, filled + end, side="right") - 1 for end in (low, high))
    if ((operands == others) & (operands >= 0) & (operands < len(bounds) - 1)).all():
        return LaneTable(filled, dims)
    return _table(shuffle, shuffle.mask, shuffle.defined, ())
