"""Whatever knobs a product takes, it computes the same: random products by random knobs that fit, evaluated."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.knobs import NO_KNOBS, FixedKnobs, Knobs
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.lookup import find_target
from tlx.tuning.product import ProductWorkload, parse_product
from tlx.tuning.search import Candidates

TARGETS = ("generic", "avx2", "avx512", "amx")
_TYPES = (
    "float",
    "double",
    "half -> float",
    "bfloat -> float",
    "bfloat",
    "i8 -> i32 ss",
    "i8 -> i32 us",
    "i8 -> i32 uu",
)
_LAYOUTS = ("", "", " nt", " tn", " tt")


def _random_product(rng: random.Random) -> ProductWorkload:
    m, n, k = (rng.choice((1, 3, 16, 17, 33, rng.randint(1, 70))) for _ in range(3))
    return parse_product(f"matmul {m}x{n}x{k} {rng.choice(_TYPES)}{rng.choice(_LAYOUTS)}")


def _random_knobs(rng: random.Random, product: ProductWorkload, target: str) -> Knobs:
    candidates = Candidates(product, find_target(target))
    tiles = [NO_KNOBS, *candidates.tiles(100)]
    base = rng.choice(tiles)
    return rng.choice([base, *candidates.blocks(base)])


def _as_memory(array: Array) -> Any:
    """The array with the element type that the evaluator knows."""
    types: dict[Any, Any] = {np.dtype(np.uint16): ml_dtypes.bfloat16, np.dtype(np.uint8): np.int8}
    return array.view(types.get(array.dtype, array.dtype)).reshape(-1)


def check_product(product: ProductWorkload, knobs: Knobs, target: str, stage: str) -> None:
    """Evaluate the output of a stage for a product with some knobs, and compare it with numpy."""
    work = product.workload
    arrays = work.arrays()
    options = Options(stop_after=stage, knobs=FixedKnobs(knobs))
    machine = Machine(lower(parse(work.text()), target, options=options))
    machine.call("work", *(_as_memory(arrays[buffer.name]) for buffer in work.buffers))
    work.check(arrays["c"], product.expected(arrays), f"{target} with {knobs or 'no knobs'}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(6))
def test_knobs_do_not_change_what_tiles_compute(target: str, seed: int) -> None:
    rng = random.Random(seed)
    product = _random_product(rng)
    check_product(product, _random_knobs(rng, product, target), target, "to-tiles")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(6, 10))
def test_knobs_do_not_change_what_instructions_compute(target: str, seed: int) -> None:
    rng = random.Random(seed)
    product = _random_product(rng)
    check_product(product, _random_knobs(rng, product, target), target, "legalize")


@pytest.mark.parametrize("knobs", ["kc", "mc", "nc", "pack_a", "pack_b", "ahead"])
def test_each_knob_on_its_own(knobs: str) -> None:
    product = parse_product("matmul 40x70x33 float")
    values: dict[str, Any] = {"kc": 8, "mc": 10, "nc": 32, "pack_a": True, "pack_b": True, "ahead": 4}
    check_product(product, Knobs((5, 32), **{knobs: values[knobs]}), "avx512", "legalize")


@pytest.mark.parametrize("tile", [(16, 64), (64, 16), (16, 32), (16, 16), (32, 16), (48, 16)])
@pytest.mark.parametrize("words", ["matmul 33x70x40 bfloat -> float", "matmul 64x64x64 i8 -> i32 us"])
def test_tiles_of_a_matrix_unit(tile: tuple[int, int], words: str) -> None:
    check_product(parse_product(words), Knobs(tile), "amx", "legalize")


def test_last_columns_of_a_part_of_k_with_no_whole_register() -> None:
    """Three positions of K are left for the second part, four lanes are summed along K."""
    product = parse_product("matmul 40x33x23 float")
    options = Options(stop_after="to-tiles", knobs=FixedKnobs(Knobs(kc=20)))
    assert "%kd" in str(lower(parse(product.workload.text()), "generic", options=options))
    check_product(product, Knobs(kc=20), "generic", "to-tiles")
