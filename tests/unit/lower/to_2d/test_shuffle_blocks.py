"""The strided blocks of shuffles: they copy what the mask selects, within the bounds of the operands."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import pytest

from tlx.intrinsics.numpy_types import Array
from tlx.ir.types import FLOAT, VectorType
from tlx.ir.values import Local
from tlx.lower.to_2d.analysis.shuffles import ANY, LaneTable, StridedLanes, VectorShuffle, strided_blocks_of
from tlx.lower.to_2d.loop_nests import LoopDim


def _shuffle(widths: Sequence[int], lanes: Array) -> VectorShuffle:
    operands = tuple(Local(VectorType(width, FLOAT), f"x{k}") for k, width in enumerate(widths))
    return VectorShuffle(operands, lanes.reshape(-1).astype(np.int64))


def _elements(dims: Sequence[LoopDim]) -> Array:
    """Distances in the source and in the result."""
    result = np.zeros((1, 2), np.int64)
    for extent, strides in dims:
        result = (result[:, None] + np.arange(extent)[:, None] * np.array(strides)).reshape(-1, 2)
    return result


def _taken(shuffle: VectorShuffle, blocks: list[StridedLanes] | LaneTable) -> Array:
    """What blocks take; it is checked that all of it lies in one operand."""
    bounds = shuffle.bounds
    result = np.full(len(shuffle.mask), ANY)
    if isinstance(blocks, LaneTable):
        for number, start in enumerate(blocks.starts):
            source, target = (_elements(blocks.dims) + np.array([start, number * blocks.step])).T
            assert len({bisect_right(shuffle.bounds, lane) for lane in source.tolist()}) == 1
            assert source.min() >= 0
            assert source.max() < bounds[-1]
            result[target] = source
        return result
    for block in blocks:
        source, target = (_elements(block.dims) + np.array([block.start, block.at])).T
        assert source.min() >= 0
        assert source.max() < bounds[block.operand + 1] - bounds[block.operand]
        result[target] = source + bounds[block.operand]
    return result


_EACH = np.arange(400)
_BOTH = np.arange(800)


@pytest.mark.parametrize(
    ("lanes", "dims"),
    [
        (np.arange(272).reshape(16, 17).T, [((17, (1, 16)), (16, (17, 1)))]),
        (_EACH[::-1], [((400, (-1, 1)),)]),
        (_BOTH.reshape(2, 400).T, [((400, (1, 2)),)] * 2),
        (_EACH[1::3], [((133, (3, 1)),)]),
        (np.r_[0:3, 5, 4, 3, 6:400], [((3, (1, 1)),), ((3, (-1, 1)),), ((394, (1, 1)),)]),
        (_EACH.reshape(20, 20)[:, (np.arange(20) + 1) % 20], [((20, (20, 20)), (19, (1, 1))), ((20, (20, 20)),)]),
        (_BOTH[100:500], [((300, (1, 1)),), ((100, (1, 1)),)]),
        (np.where(_EACH % 2, _EACH, _EACH + 400), [((200, (2, 2)),)] * 2),
        (np.r_[0:100, [ANY] * 300], [((400, (1, 1)),)]),
        (np.r_[ANY, 0:300, [ANY] * 99], [((399, (1, 1)),)]),
    ],
)
def test_blocks(lanes: Array, dims: list[tuple[LoopDim, ...]]) -> None:
    shuffle = _shuffle([400, 400], lanes)
    actual = strided_blocks_of(shuffle)
    assert isinstance(actual, list)
    assert [block.dims for block in actual] == dims
    known = shuffle.defined
    np.testing.assert_array_equal(_taken(shuffle, actual)[known], shuffle.mask[known])


def test_rows_in_any_order_are_copied_by_a_table_of_rows() -> None:
    shuffle = _shuffle([800], _BOTH.reshape(40, 20)[np.random.default_rng(1).permutation(40)])
    actual = strided_blocks_of(shuffle)
    assert isinstance(actual, LaneTable)
    assert (len(actual.starts), actual.dims) == (40, ((20, (1, 1)),))


@pytest.mark.parametrize("seed", range(300))
def test_random_lanes(seed: int) -> None:
    choose = random.Random(seed)
    widths = [choose.choice([1, 3, 8, 12, 16, 20, 36]) for _ in range(choose.randint(1, 3))]
    count = sum(widths)
    lanes = np.zeros(1, np.int64)
    for _ in range(choose.randint(1, 4)):
        lanes = (lanes[:, None] + choose.randint(-7, 7) * np.arange(choose.randint(1, 6))).reshape(-1)
    lanes = (lanes + choose.randrange(count)) % count if choose.random() < 0.5 else lanes
    lanes = np.where((lanes >= 0) & (lanes < count), lanes, ANY)
    if choose.random() < 0.5:
        lanes[[choose.random() < 0.3 for _ in lanes]] = ANY
    for _ in range(choose.choice([0, 0, 1, 4])):
        lanes[choose.randrange(len(lanes))] = choose.randrange(count)
    lanes[choose.randrange(len(lanes))] = 0
    shuffle = _shuffle(widths, lanes)
    actual = strided_blocks_of(shuffle)
    assert isinstance(actual, LaneTable) or len(actual) <= 16
    np.testing.assert_array_equal(_taken(shuffle, actual)[shuffle.defined], lanes[shuffle.defined])
