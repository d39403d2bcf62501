"""Rearranging registers: on random tiles, the evaluator agrees with numpy."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.lower.legalize.register_functions import GENERIC, function, rearranged
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse
from tlx.ir.types import I8, I16, I32, IntType, VectorType
from tlx.ir.values import zero
from tlx.llvm.codegen import emit_code
from tlx.lower.legalize.memory import load_tile, load_transposed, transposed_lanes
from tlx.lower.legalize.registers import (
    Registers,
    block_columns,
    block_rows,
    interleaved_rows,
    resized,
    transposed,
    with_lanes,
    zero_padded,
)
from tlx.target.lookup import find_target

DTYPES = {I8: np.int8, I16: np.int16, I32: np.int32}
LANES = (1, 2, 4, 8, 16, 32)


def _tile(rng: random.Random, element: IntType, rows: int, cols: int) -> NDArray[Any]:
    seeded = np.random.default_rng(rng.randrange(1 << 30))
    info = np.iinfo(DTYPES[element])
    return seeded.integers(info.min, info.max, (rows, cols), DTYPES[element])


def _transposed(b: Builder, tile: Registers) -> Registers:
    return transposed(b, tile, GENERIC)


def _transposed_for_avx512(b: Builder, tile: Registers) -> Registers:
    return transposed(b, tile, find_target("avx512"))


@pytest.mark.parametrize("seed", range(25))
def test_transposed_swaps_rows_and_columns(seed: int) -> None:
    rng = random.Random(seed)
    element = rng.choice(list(DTYPES))
    tile = _tile(rng, element, rng.randint(1, 20), rng.randint(1, 40))
    lanes = rng.choice(LANES)
    for change in (_transposed, _transposed_for_avx512):
        assert np.array_equal(rearranged(change, element, tile, lanes), tile.T)


@pytest.mark.parametrize(("rows", "cols", "lanes"), [(16, 16, 16), (4, 64, 16), (5, 3, 4), (1, 7, 4), (7, 1, 4)])
def test_transposed_at_the_sizes_of_edges(rows: int, cols: int, lanes: int) -> None:
    tile = _tile(random.Random(1), I32, rows, cols)
    assert np.array_equal(rearranged(_transposed, I32, tile, lanes), tile.T)


@pytest.mark.parametrize(("element", "rows", "lanes"), [(I32, 16, 16), (I32, 8, 8), (I16, 32, 32)])
def test_squares_are_transposed_without_tables_of_indices(element: IntType, rows: int, lanes: int) -> None:
    """On x86, permutations across 16-byte lanes (`vpermt2d`) take their indices from memory."""
    module, _ = function(_transposed, element, (rows, lanes), lanes)
    code = emit_code(str(module), "asm", 2, features="+avx512f,+avx512bw,+avx512vl", triple="x86_64-linux-gnu").decode()
    assert "punpck" in code or "unpck" in code
    assert not re.search(r"\bvperm[it]", code)


@pytest.mark.parametrize(("rows", "most"), [(5, 90), (9, 160), (13, 210)])
def test_transposing_takes_few_instructions(rows: int, most: int) -> None:
    """Where LLVM sees all shuffles, it makes other permutations of them: three times as many instructions."""
    module, _ = function(_transposed_for_avx512, I32, (rows, 16), 16)
    code = emit_code(str(module), "asm", 2, features="+avx512f,+avx512bw,+avx512vl", triple="x86_64-linux-gnu").decode()
    assert len(re.findall(r"(?m)^\tv", code)) < most


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(
    ("element", "rows", "cols", "lanes", "pitch"),
    [(I32, 16, 16, 16, 16), (I32, 32, 4, 16, 20), (I32, 8, 24, 8, 24), (I16, 32, 16, 32, 17), (I8, 64, 32, 64, 32)],
)
def test_tiles_are_transposed_as_they_are_loaded(
    target: str, element: IntType, rows: int, cols: int, lanes: int, pitch: int
) -> None:
    memory = _tile(random.Random(rows), element, rows, pitch)

    def loaded(b: Builder, _whole: Registers) -> Registers:
        type_ = TensorType.dense(element, (rows, cols))
        made = load_transposed(b, find_target(target), b.function.arguments[1].value, type_, (0, pitch), lanes)
        assert made is not None
        return made

    assert np.array_equal(rearranged(loaded, element, memory, lanes), memory[:, :cols].T)


@pytest.mark.parametrize(
    ("rows", "cols", "lanes", "padding"),
    [
        (16, 6, 16, (0, 0)),
        (12, 16, 8, (0, 0)),
        (12, 16, 16, (0, 0)),
        (4, 16, 4, (0, 0)),
        (16, 16, 16, (1, 0)),
        (2, 16, 16, (0, 0)),
    ],
)
def test_tiles_with_partial_16_byte_lanes_are_not_transposed_at_the_load(
    rows: int, cols: int, lanes: int, padding: tuple[int, int]
) -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [(module.pointer_to(I32), "", "p")], "", ""))
    type_ = TensorType(I32, (rows, cols), (1, 0), padding)
    assert load_transposed(b, GENERIC, b.function.arguments[0].value, type_, None, lanes) is None


@pytest.mark.parametrize(
    ("element", "rows", "cols", "lanes"), [(I32, 8, 48, 16), (I32, 4, 8, 8), (I16, 16, 64, 32), (I8, 16, 32, 32)]
)
def test_tiles_of_few_rows_are_transposed_to_registers_of_16_bytes(
    element: IntType, rows: int, cols: int, lanes: int
) -> None:
    tile = _tile(random.Random(rows), element, rows, cols)

    def stored(b: Builder, whole: Registers) -> Registers:
        made = transposed_lanes(b, whole)
        assert made is not None
        return made

    assert np.array_equal(rearranged(stored, element, tile, lanes), tile.T)


@pytest.mark.parametrize(
    ("rows", "cols", "lanes"), [(16, 16, 16), (9, 48, 16), (4, 6, 8), (4, 16, 4), (4, 12, 16), (4, 24, 16)]
)
def test_tiles_that_fill_registers_or_no_16_bytes_are_not(rows: int, cols: int, lanes: int) -> None:
    tile = _tile(random.Random(rows), I32, rows, cols)

    def unchanged(b: Builder, whole: Registers) -> Registers:
        assert transposed_lanes(b, whole) is None
        return whole

    rearranged(unchanged, I32, tile, lanes)


@pytest.mark.parametrize("padding", [(0, 3), (2, 0), (3, 5)])
def test_transposed_keeps_padding_zero(padding: tuple[int, int]) -> None:
    tile = _tile(random.Random(2), I32, 8, 8)
    tile[8 - padding[0] :, :] = 0
    tile[:, 8 - padding[1] :] = 0

    def padded(b: Builder, dense: Registers) -> Registers:
        del dense
        type_ = TensorType(I32, (8, 8), (0, 1), padding)
        return _transposed(b, load_tile(b, GENERIC, b.function.arguments[1].value, type_, None, 4))

    assert np.array_equal(rearranged(padded, I32, tile, 4), tile.T)


@pytest.mark.parametrize("seed", range(25))
def test_relaned_keeps_every_element(seed: int) -> None:
    rng = random.Random(seed)
    element = rng.choice(list(DTYPES))
    tile = _tile(rng, element, rng.randint(1, 4), rng.randint(1, 70))
    lanes = rng.choice(LANES)
    assert np.array_equal(rearranged(lambda b, t: with_lanes(b, t, lanes), element, tile, rng.choice(LANES)), tile)


@pytest.mark.parametrize("seed", range(25))
def test_block_rows_interleaves_rows(seed: int) -> None:
    rng = random.Random(seed)
    width = rng.choice((2, 4))
    groups, cols = rng.randint(1, 4), rng.randint(1, 40)
    tile = _tile(rng, I8, groups * width, cols)
    expected = tile.reshape(groups, width, cols).transpose(0, 2, 1).reshape(groups, cols * width)
    assert np.array_equal(rearranged(lambda b, t: block_rows(b, t, width), I8, tile, rng.choice(LANES)), expected)


@pytest.mark.parametrize("seed", range(25))
def test_block_columns_moves_neighbours_as_words(seed: int) -> None:
    rng = random.Random(seed)
    width = rng.choice((2, 4))
    cols, groups = rng.randint(1, 17), rng.randint(1, 8)
    tile = _tile(rng, I8, cols, groups * width)  # N x K: a column-major K x N
    expected = tile.reshape(cols, groups, width).transpose(1, 0, 2).reshape(groups, cols * width)
    assert np.array_equal(
        rearranged(lambda b, t: block_columns(b, t, width, GENERIC), I8, tile, rng.choice(LANES)), expected
    )


def _row(change: str, lanes: int, width: int) -> Any:
    """A change of each register of a tile with one register a row."""

    def apply(b: Builder, tile: Registers) -> Registers:
        change_one = {"filled": zero_padded, "resized": resized}[change]
        regs = tuple((change_one(b, row[0], width),) for row in tile.regs)
        return Registers(tile.element, tile.rows, width, max(width, lanes), regs)

    return apply


@pytest.mark.parametrize(("have", "width"), [(3, 8), (1, 2), (4, 4), (7, 16)])
def test_filled_adds_zeros(have: int, width: int) -> None:
    tile = _tile(random.Random(3), I32, 2, have)
    expected = np.pad(tile, ((0, 0), (0, width - have)))
    assert np.array_equal(rearranged(_row("filled", have, width), I32, tile, have), expected)


@pytest.mark.parametrize(("have", "width"), [(8, 3), (2, 1), (4, 4)])
def test_resized_cuts(have: int, width: int) -> None:
    tile = _tile(random.Random(4), I32, 2, have)
    assert np.array_equal(rearranged(_row("resized", have, width), I32, tile, have), tile[:, :width])


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
@pytest.mark.parametrize("present", [0, 1, 3, 8])
def test_interleaved_with_rows_of_zeros(rows: int, present: int) -> None:
    """Rows of padding are not shuffled but widened."""
    tile = _tile(random.Random(5), I8, rows, 5)
    tile[present:] = 0

    def apply(b: Builder, t: Registers) -> Registers:
        padded = [row[0] if i < present else zero(row[0].type) for i, row in enumerate(t.regs)]
        return Registers(I8, 1, rows * 5, rows * 5, ((interleaved_rows(b, padded),),))

    assert np.array_equal(rearranged(apply, I8, tile, 8), tile.T.reshape(1, -1))


def test_relaned_to_the_same_lanes_emits_nothing() -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [], ""))
    tile = Registers(I32, 1, 4, 4, ((zero(VectorType(4, I32)),),))
    assert with_lanes(b, tile, 4) is tile
    assert b.block.instructions == []
