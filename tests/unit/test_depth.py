"""How many positions of K a register tile multiplies at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.types import DOUBLE, FLOAT, HALF, Type
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.blocking import k_unroll
from tlx.lower.to_tiles.select.recipe import MultiplyAdd, Packing, Prefetch
from tlx.lower.to_tiles.select.selection import select
from tlx.target.discovery import targets

TARGET = targets()["avx512"]


def _gemm(element: Type, m: int, n: int, k: int) -> Gemm:
    return Gemm(
        MatrixView(element, m, k, k, 1),
        MatrixView(element, k, n, n, 1),
        MatrixView(element, m, n, n, 1),
        None,
        "f",
        "f",
    )


@pytest.mark.parametrize(
    ("element", "size", "tile", "written_out", "positions"),
    [
        (FLOAT, 16, (16, 1), True, 3),
        (DOUBLE, 8, (8, 1), True, 3),
        (FLOAT, 32, (11, 2), False, 2),
        (DOUBLE, 16, (8, 2), False, 2),
        (DOUBLE, 64, (6, 4), False, 1),
        (FLOAT, 64, (2, 4), False, 1),
    ],
)
def test_registers_to_spare_hold_more_rows_of_b(
    element: Type, size: int, tile: tuple[int, int], *, written_out: bool, positions: int
) -> None:
    gemm = _gemm(element, size, size, size)
    recipe = select(gemm, TARGET)
    assert k_unroll(gemm, recipe, TARGET, tile, written_out=written_out) == positions
    rows, vectors = tile
    assert positions == 1 or rows * vectors + positions * (vectors + 1) + 1 <= TARGET.registers


@pytest.mark.parametrize(
    ("change", "positions"),
    [
        ({"packing": Packing(a=True, b=False)}, 2),
        ({"packing": Packing(a=False, b=True)}, 2),
        ({"mma": MultiplyAdd("fma", "mma", FLOAT, HALF, FLOAT)}, 1),
        ({"prefetch": Prefetch(b_steps=8)}, 1),
        ({"mma": MultiplyAdd("dot", "mma", FLOAT, FLOAT, FLOAT)}, 1),
    ],
)
def test_operands_converted_as_they_are_read_and_prefetches_go_position_by_position(
    change: dict[str, object], positions: int
) -> None:
    gemm = _gemm(FLOAT, 32, 32, 32)
    recipe = replace(select(gemm, TARGET), **change)  # pyright: ignore[reportArgumentType]
    assert k_unroll(gemm, recipe, TARGET, (11, 2), written_out=False) == positions


def test_columns_of_a_go_position_by_position() -> None:
    gemm = replace(_gemm(FLOAT, 32, 32, 32), a=MatrixView(FLOAT, 32, 32, 1, 32))
    assert k_unroll(gemm, select(gemm, TARGET), TARGET, (11, 2), written_out=False) == 1
