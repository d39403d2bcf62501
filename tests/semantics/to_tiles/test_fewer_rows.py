"""Products whose rows do not fill a matrix unit's tiles: tiles have fewer rows, or the last ones are padded."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.semantics.to_tiles.test_knobs import check_product
from tests.support.tools import quick
from tlx.lower.knobs import FixedKnobs, Knobs
from tlx.lower.options import Options
from tlx.tuning.product import parse_product

ROWS = (4, 24, 65, 1, 13, 15, 17, 20, 30, 36, 50)


@pytest.mark.parametrize("rows", quick(ROWS, 3))
@pytest.mark.parametrize("types", ["bfloat -> float", "i8 -> i32 ss"])
def test_rows_that_do_not_fill_tiles(rows: int, types: str) -> None:
    product = parse_product(f"matmul {rows}x{rows * 7 % 60 + 17}x{64 if rows % 2 else 70} {types}")
    knobs = Knobs((32, 32) if rows > 16 else (16, 64))
    for stage in ("to-tiles", "legalize"):
        check_product(product, knobs, "amx", stage)


@pytest.mark.parametrize("size", quick(("4x96x64", "9x85x70", "16x80x128"), 2))
@pytest.mark.parametrize("types", ["bfloat -> float", "i8 -> i32 ss"])
def test_all_columns_in_one_row_of_tiles(size: str, types: str) -> None:
    """Five and six accumulators leave two registers, for a tile of A and one of B at a time."""
    product = parse_product(f"matmul {size} {types}")
    for stage in ("to-tiles", "legalize"):
        check_product(product, Knobs((16, 96 if "96" in size or "85" in size else 80)), "amx", stage)


def test_emulated_tiles_are_loaded_again_after_every_two_uses() -> None:
    work = parse_product("matmul 4x96x64 bfloat -> float").workload
    options = Options(emulate_matrix=True, knobs=FixedKnobs(Knobs((16, 96))))
    compiled = tlx.compile(work.text(), "amx", opt_level=0, options=options)
    assert "tdpbf16ps" in compiled.lowered
    a, b = np.ones((4, 64), np.float32), np.arange(64 * 96, dtype=np.float32).reshape(64, 96) % 7
    c = np.zeros((4, 96), np.float32)
    compiled.work(c, a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16))
    assert np.array_equal(c, a @ b)
