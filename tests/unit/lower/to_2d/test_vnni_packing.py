"""Gathers of elements at known distances into a register: loads, merges and a permutation give them in order."""

from __future__ import annotations

import random

import pytest

from tlx.lower.memory.views import StridedDim
from tlx.lower.to_2d.contraction.vnni import RegisterGather, are_whole_registers, ragged_columns

WINDOWS = {
    "neighbours": tuple(range(16)),
    "every second": tuple(range(0, 32, 2)),
    "two rows of seven": tuple(9 * y + x for y in range(2) for x in range(7)),
    "pairs of channels": tuple(c * 81 + x for x in range(16) for c in range(2)),
    "steps of two in two channels": tuple(c * 900 + 2 * x for x in range(16) for c in range(2)),
    "four taps": tuple(9 * (i // 3) + i % 3 + x for x in range(7) for i in range(4)),
    "far apart": tuple(1000 * i for i in range(8)),
    "again and again": (3, 3, 3, 70, 70),
    "no room in place": tuple(64 * (i % 8) + i // 8 for i in range(32)),
}


def value(gather: RegisterGather, memory: list[int], count: int) -> list[int]:
    """The elements that a gather stores."""
    merged: list[int] | None = None
    for line in gather.loads:
        assert 0 < line.count <= gather.lanes
        loaded = memory[line.start : line.start + line.count] + [-1] * (gather.lanes - line.count)
        both = (merged or loaded) + loaded
        merged = loaded if merged is None else [both[lane] for lane in line.mask]
    assert merged is not None
    return [merged[lane] for lane in gather.order][:count]


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("name", WINDOWS)
def test_gathers_the_requested_elements(name: str, lanes: int) -> None:
    places = WINDOWS[name]
    memory = list(range(max(places) + 1))  # nothing behind the last element is read
    gather = RegisterGather.of(places, lanes)
    assert value(gather, memory, len(places)) == list(places)
    assert len(gather.order) == lanes


def test_gathers_any_positions() -> None:
    rng = random.Random(5)
    for _ in range(300):
        reach = rng.choice((20, 100, 1000))
        places = tuple(rng.randrange(reach) for _ in range(rng.randrange(1, 33)))
        assert value(RegisterGather.of(places, 32), list(range(max(places) + 1)), len(places)) == list(places)


def test_gathers_load_few_lines() -> None:
    assert len(RegisterGather.of(WINDOWS["two rows of seven"], 32).loads) == 1
    assert len(RegisterGather.of(WINDOWS["steps of two in two channels"], 32).loads) == 2


def test_merged_lines_need_no_permutation() -> None:
    """Elements of two lines that have different lanes are merged without moving."""
    gather = RegisterGather.of(WINDOWS["steps of two in two channels"], 32)
    assert gather.loads[1].mask == tuple(lane if lane % 2 == 0 else 32 + lane for lane in range(32))
    assert gather.order == tuple(range(32))


@pytest.mark.parametrize(
    ("extents", "registers"),
    [((7, 7), 4), ((14, 14), 13), ((28, 28), 7), ((56, 56), 7), ((5, 56, 56), 7), ((30,), 2), ((3, 61, 61), 2)],
)
def test_columns_are_each_copied_once(extents: tuple[int, ...], registers: int) -> None:
    stride, dims = 2, list[StridedDim[int]]()
    for extent in reversed(extents):
        dims.insert(0, StridedDim(extent, stride))
        stride *= extent + 2
    chunks = ragged_columns(dims, 16)
    assert len(chunks) == registers
    copied: list[tuple[int, int]] = []
    for chunk in chunks:
        starts = [chunk.start]
        for extent, (step, columns) in chunk.enclosing:
            starts = [(at + i * step, column + i * columns) for at, column in starts for i in range(extent)]
        assert len(starts) == chunk.count
        assert all(column % 16 == 0 for _, column in starts) == are_whole_registers([chunk], 16)
        copied += [(column + i, at + place) for at, column in starts for i, place in enumerate(chunk.places)]
    assert sorted(copied) == list(enumerate(_places(dims)))


def _places(dims: list[StridedDim[int]]) -> list[int]:
    places = [0]
    for dim in dims:
        places = [place + index * dim.stride for place in places for index in range(dim.extent)]
    return places
