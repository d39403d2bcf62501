"""Tiles of kernels that go over matrices element by element: rows and columns of registers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.types import bytes_of
from tlx.lower.to_tiles.expression import Expression, Leaf
from tlx.lower.to_tiles.problem import Map
from tlx.target import Target

_MOST_REGISTERS: Final = 4
_SQUARE: Final = 16
_STEADY: Final = 4
"""Leaves that are the same in all rows from which on tiles are upright: each is loaded for all rows of a tile."""
_CHAINS: Final = 8
_CROWDED: Final = 2048
"""Bytes of which the distance of rows is a multiple where they share few sets of the first cache."""
COSTLY: Final = 20
_CONSTANTS: Final = 16
"""Registers that a mathematical function's constants fill."""
_CHAIN: Final = 4
"""Registers that one of it needs besides."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows and columns of a tile; edges along columns are padded to a multiple of `lanes`."""

    rows: int
    cols: int
    lanes: int


def shape_of(problem: Map, target: Target) -> Shape:
    """The tile of a map: upright ones read rows once, but beyond the second cache memory in its order may be faster.

    Measured, depthwise 3x3 windows, float. Numbers that are the same in all columns stay in registers: 128 images of
    56x56 (3.3 MB) 60 GFLOP/s by tiles of six rows, 67 by single ones; of 256 images of 28x28 (1.7 MB) 98 and 63 (Xeon
    with AMX). Steady rows, such as those of filters where channels lie next to each other, are loaded for each tile: 32
    channels of 112x112 (3.3 MB) 107 by tiles of eight rows, 84 by single ones, but 512 of 56x56, whose rows share sets
    of the first cache, 62 and 80 (Zen 5).
    """
    value = problem.value
    shape = tile_shape(value, target)
    if shape.cols != shape.lanes or len(_steady(value)) < _STEADY or problem.passed <= target.caches.l2:
        return shape
    in_order = all(leaf.view.cols == 1 for leaf in _steady(value)) or _is_crowded(value)
    return replace(shape, rows=1) if in_order else shape


def _is_crowded(value: Expression) -> bool:
    """Whether rows lie so that they share few sets of the first cache."""
    views = [(leaf.view, bytes_of(leaf.element)) for leaf in value.leaves()]
    return any(view.rows > 1 and view.row_stride * size % _CROWDED == 0 for view, size in views)


def tile_shape(value: Expression, target: Target) -> Shape:
    """The tile that keeps a few registers of each live value at once."""
    lanes = max(1, target.vector_bytes * 8 // value.bits)
    if needs_transpose(value):
        return square(value, lanes, target)
    if len(_steady(value)) >= _STEADY and value.rows > 1:
        tiles = -(-value.rows // max(1, min(_CHAINS, target.registers // (value.live + 1))))
        return Shape(-(-value.rows // tiles), lanes, lanes)
    registers = max(1, min(_MOST_REGISTERS, target.registers // (2 * value.live + 1)))
    if value.cost >= COSTLY:
        registers = min(registers, _costly_registers(value, target))
    across = min(registers, -(-value.cols // lanes))
    return Shape(min(value.rows, max(1, registers // across)), across * lanes, lanes)


def _steady(value: Expression) -> list[Leaf]:
    """Leaves that are the same in all rows."""
    return [node for node in map(value.nodes.__getitem__, value.steady) if isinstance(node, Leaf)]


def _costly_registers(value: Expression, target: Target) -> int:
    """Registers of long chains of instructions that are computed at a time; one of bfloat is two of float."""
    if value.branches:
        return 1
    return max(1, (target.registers - _CONSTANTS) // _CHAIN * min(32, value.bits) // 32)


def needs_transpose(value: Expression) -> bool:
    """Whether tiles of a leaf have to be transposed."""
    return any(leaf.view.col_stride != 1 and leaf.view.cols > 1 for leaf in value.leaves())


def square(value: Expression, lanes: int, target: Target) -> Shape:
    """The tile to transpose; it has fewer rows where that is needed to keep all live values in registers."""
    side = min(lanes, _SQUARE)
    rows = side
    while rows > 4 and rows * (value.live + 1) > target.registers:
        rows //= 2
    return Shape(min(rows, value.rows), side, side)
